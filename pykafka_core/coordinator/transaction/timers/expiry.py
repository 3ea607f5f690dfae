"""Expiry of transactional ids, as ``TransactionStateManager.removeExpiredTransactionalIds``.

All ids are searched at an interval, some in each turn. Ids with an open or prepared transaction do
not expire.
"""

from pykafka_core.coordinator.shard import CoordinatorResult
from pykafka_core.coordinator.transaction.records import transaction_tombstone
from pykafka_core.coordinator.transaction.state import Transactions
from pykafka_core.coordinator.transaction.timers.keys import EXPIRY
from pykafka_core.types import NS_PER_MS

SEARCHED_MAX = 1_000
"""Ids that a turn searches: about a millisecond."""
PAUSE_NS = NS_PER_MS
"""Time until the search continues, in which requests are handled."""


def arm_expiry(state: Transactions, result: CoordinatorResult) -> None:
    """Schedule the next search after the interval."""
    interval_ms = state.settings.remove_expired_interval_ms
    state.deadlines.set(EXPIRY, result.now_ns + interval_ms * NS_PER_MS)


def expire(state: Transactions, result: CoordinatorResult) -> None:
    """Search some ids, and schedule the next turn."""
    to_search = state.to_search
    if not to_search:
        to_search.extend(state.by_id)
    for _ in range(min(SEARCHED_MAX, len(to_search))):
        if not _search(to_search[0], state, result):
            break
        to_search.popleft()
    if to_search:
        state.deadlines.set(EXPIRY, result.now_ns + PAUSE_NS)
    else:
        arm_expiry(state, result)


def _search(transactional_id: str, state: Transactions, result: CoordinatorResult) -> bool:
    """Remove an id if it has expired; return False if its tombstone did not fit."""
    transaction = state.by_id.get(transactional_id)
    expires_before_ms = result.now_ms - state.settings.id_expiration_ms
    if (
        transaction is None
        or not transaction.state.is_ended
        or transaction.last_update_ms > expires_before_ms
    ):
        return True
    if not result.append_some([transaction_tombstone(transactional_id)]):
        return not result.records  # a tombstone too large for an empty turn must not end the search
    state.remove(transactional_id)
    return True
