"""``consume --group``: print records as a member of a consumer group, and commit their offsets.

An offset is stored for the next commit after the record before it was printed and flushed. So every
committed record has reached the output, however the command ends; some may be printed again.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from pykafka_core.cli.arguments import utf8
from pykafka_core.cli.client.clients import client_config, interruptible, kafka_errors
from pykafka_core.cli.client.groups_admin import Partition
from pykafka_core.cli.client.produce import Interrupt
from pykafka_core.cli.errors import USAGE, CliError

from .consume import ConsumeOptions, Shown, headers_at, partitions_of, print_record

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, TopicPartition

_POLL_S = 0.5
_STORE_EVERY = 1000
_RESETS = {"beginning": "earliest", "end": "latest"}


def consume_in_group(options: ConsumeOptions) -> None:
    """Print records up to the ends of this member's partitions, or until Ctrl-C.

    Raises:
        CliError: The topic does not exist, the member cannot join the group, or offsets cannot be
            committed.
    """
    assert options.group is not None
    what = f"cannot consume {options.topic} in group {utf8(options.group)}"
    reset = _reset(options)
    partitions_of(options)
    with kafka_errors(what):
        member = _Member(options, _consumer(options, reset))
        try:
            _print_all(member, options)
            member.store()
        finally:
            member.leave()
    if member.has_nothing:
        advice = (
            "the group has more members than the topic has partitions, or has not assigned them yet"
        )
        print(f"no partition was assigned: {advice}", file=sys.stderr)


def _print_all(member: "_Member", options: ConsumeOptions) -> None:
    """Print records to the end; on Ctrl-C still finish the record that is being printed."""
    with Interrupt() as interrupt, suppress(KeyboardInterrupt):
        for message in member.messages():
            interrupt.is_reading = False
            print_record(_shown(message, options), options)
            member.printed(message)
            interrupt.is_reading = True
            if interrupt.is_noted:
                return


def _reset(options: ConsumeOptions) -> str:
    if options.partitions:
        advice = "leave out --partition, or --group"
        raise CliError("a group assigns partitions itself", advice, exit_code=USAGE)
    if options.start not in _RESETS:
        raise CliError(
            f"--from {options.start!r} is not a start for a group",
            "use beginning or end, for partitions without a committed offset; or move the group with "
            "`pykafka-core groups reset-offsets`",
            exit_code=USAGE,
        )
    return _RESETS[options.start]


def _consumer(options: ConsumeOptions, reset: str) -> "Consumer":
    from confluent_kafka import Consumer

    return Consumer(
        {
            **client_config(options.bootstrap),
            "group.id": options.group,
            "auto.offset.reset": reset,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
        }
    )


class _Member:
    """The partitions of a member, which change while it polls, and its printed offsets."""

    def __init__(self, options: ConsumeOptions, client: "Consumer") -> None:
        self._options = options
        self._client = client
        self._is_joined = False
        self._had_partitions = False
        self._assigned: set[Partition] = set()
        self._ended: set[Partition] = set()
        self._next_offsets: dict[Partition, int] = {}
        self._printed_count = 0

    @property
    def has_nothing(self) -> bool:
        """Return whether the member has joined, but never had a partition."""
        return self._is_joined and not self._had_partitions

    def messages(self) -> "Iterator[Message]":
        """Yield records up to ``--max``, or to the end of every partition unless it follows."""
        self._client.subscribe(
            [self._options.topic],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )
        while not self._is_over():
            # One at a time: a rebalance in the middle of a batch would come before its records are
            # printed.
            message = self._client.poll(0)
            if message is None:  # output for the reader of a pipe, before the next wait
                self.store()
                message = self._client.poll(_POLL_S)
            if message is not None and self._is_record(message):
                yield message

    def printed(self, message: "Message") -> None:
        """Note a printed record, so that a commit can cover it."""
        self._next_offsets[_partition(message)] = message.offset() + 1
        self._printed_count += 1
        if self._printed_count % _STORE_EVERY == 0:
            self.store()

    def store(self) -> None:
        """Flush the printed records, and store their offsets for the next commit."""
        sys.stdout.flush()
        for one, offset in self._next_offsets.items():
            self._store(one, offset)
        self._next_offsets.clear()

    def leave(self) -> None:
        """Commit and leave the group; Ctrl-C ends the wait for both."""
        try:
            interruptible(self._commit)
        finally:
            interruptible(self._client.close)

    def _is_over(self) -> bool:
        if self._options.count is not None and self._printed_count >= self._options.count:
            return True
        return not self._options.follow and self._is_joined and self._assigned <= self._ended

    def _is_record(self, message: "Message") -> bool:
        from confluent_kafka import KafkaError, KafkaException

        error = message.error()
        if error is None:
            return True
        if error.code() == KafkaError._PARTITION_EOF:
            self._ended.add(_partition(message))
        # a pager stopped this process; it joins again
        elif error.code() != KafkaError._MAX_POLL_EXCEEDED:
            raise KafkaException(error)
        return False

    def _commit(self) -> None:
        from confluent_kafka import KafkaError, KafkaException

        try:
            self._client.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._NO_OFFSET:  # everything is committed already
                raise

    def _store(self, one: Partition, offset: int) -> None:
        from confluent_kafka import KafkaError, KafkaException, TopicPartition

        try:
            self._client.store_offsets(offsets=[TopicPartition(*one, offset)])
        except KafkaException as error:
            if error.args[0].code() != KafkaError._STATE:  # another member has the partition now
                raise

    def _on_assign(self, _client: "Consumer", partitions: "Sequence[TopicPartition]") -> None:
        self._is_joined = True
        self._had_partitions |= bool(partitions)
        self._assigned |= {Partition(one.topic, one.partition) for one in partitions}

    def _on_revoke(self, client: "Consumer", partitions: "Sequence[TopicPartition]") -> None:
        self.store()  # the client commits it when this returns
        self._on_lost(client, partitions)

    def _on_lost(self, _client: "Consumer", partitions: "Sequence[TopicPartition]") -> None:
        gone = {Partition(one.topic, one.partition) for one in partitions}
        self._assigned -= gone
        self._ended -= gone


def _shown(message: "Message", options: ConsumeOptions) -> Shown:
    from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE

    topic, partition = _partition(message)
    kind, timestamp = message.timestamp()
    try:
        headers = message.headers()
    except (
        UnicodeDecodeError,
        SystemError,
    ):  # the name of a header is not UTF-8, and the client cannot read it
        headers = headers_at(options, partition, message.offset())
    return Shown(
        topic,
        partition,
        message.offset(),
        None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
        "CreateTime" if kind == TIMESTAMP_CREATE_TIME else "LogAppendTime",
        message.key(),
        message.value(),
        headers or (),
    )


def _partition(message: "Message") -> Partition:
    topic, partition = message.topic(), message.partition()
    assert topic is not None
    assert partition is not None
    return Partition(topic, partition)
