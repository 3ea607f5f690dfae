"""The keys of the transaction coordinator's deadlines."""

from typing import NamedTuple

EXPIRY = "transactional ids' expiry"


class Timeout(NamedTuple):
    """Key of the timeout of an open transaction."""

    transactional_id: str
