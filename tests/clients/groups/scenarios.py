"""Scenarios of one group, written once for all clients.

Each scenario gets a `Group` whose topic holds `RECORDS` records over `PARTITIONS` partitions,
number n in partition n % PARTITIONS. At the end, `Group.check` checks all events of the members.
"""

from collections.abc import Callable, Mapping

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.groups.checks import TopicPartition, anomalies
from tests.clients.groups.clients import Client
from tests.clients.groups.member import Member, wait
from tests.faults.history import Anomaly, Read
from tests.support.patience import PATIENCE_MS, PATIENCE_S

PARTITIONS = 6
RECORDS = 60
SHORT_SESSION_MS = PATIENCE_MS // 10
"""Long enough for a member that a busy machine stops for seconds; a killed member is removed."""
NOTHING: Mapping[str, object] = {}


class Group:
    """A group of one client on a separate topic, with all members it has had."""

    def __init__(
        self, client: Client, bootstrap: str, name: str, strategy: str | None = None
    ) -> None:
        self.client, self.bootstrap, self.name = client, bootstrap, name
        self.strategy = strategy
        self.written: list[str] = []
        self.members: list[Member] = []
        self.repeated: set[TopicPartition] = set()
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._admin.create_topics([NewTopic(name, PARTITIONS)])[name].result(PATIENCE_S)
        self.write(RECORDS)

    def write(self, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for _ in range(count):
            number = len(self.written)
            producer.produce(self.name, f"{number}", partition=number % PARTITIONS)
            self.written.append(f"{number}")
        assert producer.flush(PATIENCE_S) == 0

    def join(self, **settings: object) -> Member:
        given = {
            "bootstrap": self.bootstrap,
            "group": self.name,
            "topic": self.name,
            "strategy": self.strategy,
        }
        # A static member that returns is the same member to the group.
        name = str(settings.get("instance", f"member-{len(self.members)}"))
        member = self.client.start(name, given | settings)
        self.members.append(member)
        return member

    def wait(self, is_done: Callable[[], bool], what: str) -> None:
        wait(self.members, is_done, what)

    def wait_for_shares(self, *shares: int) -> None:
        """Wait until the living members own so many partitions each, and together all of them."""

        def is_shared() -> bool:
            owning = [len(one.owned) for one in self.members if one.owned]
            return sorted(owning) == sorted(shares)

        self.wait(is_shared, f"shares {shares}")

    def wait_for_all(self) -> None:
        """Wait until every written record was seen."""
        self.wait(lambda: self.seen == set(self.written), "every record seen")

    @property
    def seen(self) -> set[str]:
        return {seen.value for one in self.members for seen in one.seen}

    def commit(self) -> None:
        """Make each living member commit its records."""
        for member in self.members:
            if member.owned:
                member.commit()

    def wait_for_assignor(self, assignor: str) -> None:
        """Wait until the broker reports this strategy; it reports none while members rejoin."""

        def is_agreed() -> bool:
            described = self._admin.describe_consumer_groups([self.name])[self.name]
            return str(described.result(PATIENCE_S).partition_assignor) == assignor

        self.wait(is_agreed, f"assignor {assignor}")

    def close(self) -> None:
        for member in self.members:
            member.close()

    def check(self) -> list[Anomaly]:
        """Return the anomalies; after `close`."""
        reads = [
            Read(one.name, 0, *seen.place, seen.value, seen.at)
            for one in self.members
            for seen in one.seen
        ]
        owned = [span for one in self.members for span in one.spans if self.client.tells_owners]
        return anomalies(reads, owned, written=self.written, repeated=self.repeated)


def join(group: Group) -> None:
    """One member owns all partitions and sees each record once."""
    group.join()
    group.wait_for_shares(PARTITIONS)
    group.wait_for_all()


def two(
    group: Group, first: Mapping[str, object] = NOTHING, second: Mapping[str, object] = NOTHING
) -> tuple[Member, Member]:
    """Two members with half of the partitions each; all records so far are committed."""
    alone = group.join(**first)
    group.wait_for_all()
    group.commit()
    other = group.join(**second)
    group.wait_for_shares(3, 3)
    return alone, other


def rebalance(group: Group) -> None:
    """A second member gets half, and the first one gets it back when the second one leaves."""
    _, second = two(group)
    assert group.strategy is not None
    group.wait_for_assignor(group.client.strategies[group.strategy])
    group.write(12)
    group.wait_for_all()
    group.commit()
    second.close()
    group.wait_for_shares(PARTITIONS)
    group.write(6)
    group.wait_for_all()


def static_restart(group: Group) -> None:
    """A static member leaves and returns to its partitions; the other's assignment is unchanged."""
    stays, returns = two(group, {"instance": "stays"}, {"instance": "returns"})
    owned, changes = set(returns.owned), stays.changes
    returns.close()
    again = group.join(instance="returns")
    group.wait(lambda: again.owned == owned, "its partitions again")
    group.write(12)
    group.wait_for_all()
    assert stays.changes == changes


def commit_and_resume(group: Group) -> None:
    """A later member resumes after the commits of an earlier one."""
    first = group.join()
    group.wait_for_all()
    first.commit()
    first.close()
    group.write(12)
    group.join()
    group.wait_for_all()


def seek(group: Group) -> None:
    """A member seeks back to an offset and reads from there."""
    member = group.join()
    group.wait_for_all()
    again = [(0, offset) for offset in range(3, RECORDS // PARTITIONS)]
    group.repeated |= set(again)
    before = len(member.seen)
    member.ask("seek", "sought", partition=0, offset=3)
    group.wait(lambda: len(member.seen) == before + len(again), "records after the seek")
    assert [seen.place for seen in member.seen[before:]] == again


def pause(group: Group) -> None:
    """A paused partition returns no records until it is resumed, and then all of them."""
    member = group.join()
    group.wait_for_all()
    member.ask("pause", "paused", partition=0)
    # A fetch in flight may still return records of the partition. New records end it.
    _wait_for_others(group)
    assert _wait_for_others(group) not in group.seen
    member.ask("resume", "resumed", partition=0)
    group.wait_for_all()


def _wait_for_others(group: Group) -> str:
    """Write a record per partition, wait for all but the first one, and return the first value."""
    first = len(group.written)
    group.write(PARTITIONS)
    paused, *others = group.written[first:]
    group.wait(lambda: set(others) <= group.seen, "records of the others")
    return paused


def lag(group: Group) -> None:
    """The client's own calls return the group's lag."""
    member = group.join()
    group.wait_for_all()
    member.commit()
    assert member.lag() == dict.fromkeys(range(PARTITIONS), 0)
    group.write(12)
    group.wait_for_all()
    assert member.lag() == dict.fromkeys(range(PARTITIONS), 2)


def take_over(group: Group) -> None:
    """After SIGKILL the other member resumes exactly after the commits of the killed one."""
    settings = {"session_ms": SHORT_SESSION_MS}
    stays, dies = two(group, settings, settings)
    group.write(12)
    group.wait_for_all()
    stays.commit()
    # A client that commits itself may die between a poll and its commit, so repeats are allowed.
    group.repeated |= {seen.place for seen in dies.seen}
    uncommitted = set() if group.client.commits_itself else set(group.repeated)
    dies.kill()
    group.wait_for_shares(PARTITIONS)
    group.write(6)
    group.wait_for_all()
    group.wait(lambda: uncommitted <= {seen.place for seen in stays.seen}, "what was not committed")


FOR_ALL: dict[str, Callable[[Group], None]] = {
    "join": join,
    "commit and resume": commit_and_resume,
    "take-over": take_over,
}
IF_OFFERED: dict[str, Callable[[Group], None]] = {
    "static restart": static_restart,
    "seek": seek,
    "pause": pause,
    "lag": lag,
}
