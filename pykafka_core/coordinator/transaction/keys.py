"""The keys of the transaction coordinator's deadlines."""

from typing import NamedTuple

EXPIRY = "transactional ids' expiry"


class Timeout(NamedTuple):
    """The transaction of an id has been open for too long."""

    transactional_id: str
