"""The committed state of the coordinators, from their records, and the rules for new records."""

from collections.abc import Callable
from typing import Any

from pykafka_core.coordinator.transaction.records import read_transaction, read_transactional_id
from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.coordinator.transaction.transaction import Transaction
from pykafka_core.protocol.coordinator_records import (
    GROUP_KEYS,
    decode_record_key,
    decode_record_value,
)
from tests.simulation.rules.ledger import Batch
from tests.simulation.rules.offsets import OffsetsModel

Report = Callable[[str, object], None]

_COMMITS = (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
_ABORTS = (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT)
_MAY_FOLLOW_PREPARE = {
    TransactionState.PREPARE_COMMIT: _COMMITS,
    TransactionState.PREPARE_ABORT: _ABORTS,
}


class Committed:
    """State from committed batches.

    Attributes:
        transactions: By transactional id.
        offsets: Offsets of groups, by partition of `__consumer_offsets`.
        identities: All past and present producers, by transactional id.
        generations: Generations of classic groups.
        texts: All metadata of offset commits.
        epochs: Epochs of members of consumer groups, by group and member id.
        epochs_seen: The same, including removed members.
        revoking: Those members that still have to revoke partitions, for which there is a timeout.
        held: Topic ids and partitions of those members.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self.transactions: dict[str, Transaction] = {}
        self.identities: set[tuple[str, int, int]] = set()
        self.offsets: dict[int, OffsetsModel] = {}
        self.generations: dict[str, int] = {}
        self.texts: set[str] = set()
        self.group_epochs: dict[str, int] = {}
        self.epochs: dict[tuple[str, str], int] = {}
        self.epochs_seen: set[tuple[str, str, int]] = set()
        self.revoking: set[tuple[str, str]] = set()
        self.held: dict[tuple[str, str], set[tuple[bytes, int]]] = {}
        self._rules: dict[str, Callable[[Any, Any], None]] = {
            "OffsetCommitKey": self._offset,
            "GroupMetadataKey": self._group,
            "ConsumerGroupMetadataKey": self._consumer_group,
            "ConsumerGroupCurrentMemberAssignmentKey": self._member,
        }

    def transaction_batch(self, batch: Batch) -> None:
        """Process a batch of `__transaction_state`."""
        for key, value in batch.records:
            assert key is not None
            name = read_transactional_id(key)
            if value is None:
                self.transactions.pop(name, None)
            else:
                self._transaction(read_transaction(name, value))

    def _transaction(self, new: Transaction) -> None:
        old = self.transactions.get(new.transactional_id)
        self.transactions[new.transactional_id] = new
        self.identities.add((new.transactional_id, new.producer_id, new.producer_epoch))
        if old is None:
            return
        if old.producer_id == new.producer_id and new.producer_epoch < old.producer_epoch:
            self._report("a producer's epoch went back", (old, new))
        allowed = _MAY_FOLLOW_PREPARE.get(old.state)
        if allowed is not None and new.state not in allowed:
            self._report("a decision was changed", (old, new))
        if new.state in _MAY_FOLLOW_PREPARE and old.state is not TransactionState.ONGOING:
            is_epoch_fence = old.state is new.state
            is_tv2_abort = new.state is TransactionState.PREPARE_ABORT
            if not (is_epoch_fence or is_tv2_abort):
                self._report("a transaction ended that was not open", (old, new))

    def group_batch(self, index: int, batch: Batch) -> None:
        """Process a batch of `__consumer_offsets`."""
        model = self.offsets.setdefault(index, OffsetsModel())
        if batch.is_control:
            model.marker(batch.producer_id, committed=batch.is_commit)
            return
        for position, (key, value) in enumerate(batch.records, batch.base_offset):
            assert key is not None
            kind = GROUP_KEYS[int.from_bytes(key[:2], "big")]
            rule = self._rules.get(kind)
            if rule is not None:
                name = kind.removesuffix("Key") + "Value"
                read = None if value is None else decode_record_value(name, value)
                read_key = decode_record_key(GROUP_KEYS, key)
                rule(read_key, read)
                if kind == "OffsetCommitKey":
                    model.offset(batch, position, read_key, read)
        self._check_owners()

    def _offset(self, key: Any, value: Any) -> None:
        if value is not None:
            self.texts.add(value.metadata)

    def _group(self, key: Any, value: Any) -> None:
        if value is None:
            self.generations.pop(key.group, None)
            return
        if value.generation < self.generations.get(key.group, 0):
            self._report("a generation went back", (key.group, value.generation))
        self.generations[key.group] = value.generation

    def _consumer_group(self, key: Any, value: Any) -> None:
        if value is None:
            self.group_epochs.pop(key.group_id, None)
            return
        if value.epoch < self.group_epochs.get(key.group_id, 0):
            self._report("a group's epoch went back", (key.group_id, value.epoch))
        self.group_epochs[key.group_id] = value.epoch

    def _member(self, key: Any, value: Any) -> None:
        place = key.group_id, key.member_id
        if value is None:
            self.epochs.pop(place, None)
            self.held.pop(place, None)
            return
        if value.member_epoch < self.epochs.get(place, 0):
            self._report("a member's epoch went back", (place, value))
        self.epochs[place] = value.member_epoch
        self.epochs_seen.add((*place, value.member_epoch))
        if value.partitions_pending_revocation:
            self.revoking.add(place)
        else:
            self.revoking.discard(place)
        rows = (*value.assigned_partitions, *value.partitions_pending_revocation)
        self.held[place] = {(row.topic_id, index) for row in rows for index in row.partitions}

    def _check_owners(self) -> None:
        owners: dict[tuple[str, bytes, int], str] = {}
        for (group, member), held in self.held.items():
            for topic_id, index in held:
                other = owners.setdefault((group, topic_id, index), member)
                if other != member:
                    self._report("two members hold a partition", (group, index, other, member))
