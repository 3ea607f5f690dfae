import pytest

from pykafka_core.metadata.elections import elections
from pykafka_core.metadata.image.image import MetadataImage, Partition, Topic, Topics
from pykafka_core.metadata.image.mutators import draft_of

ID = b"0123456789abcdef"
ME = 1


def image(partition: Partition) -> MetadataImage:
    topic = Topic("orders", ID, {0: partition})
    return MetadataImage(topics=Topics({ID: topic}, {"orders": topic}))


def after(partition: Partition, *, clean: bool = True) -> Partition:
    base = image(partition)
    return draft_of(base, elections(base, ME, clean=clean)).image.topics.by_id[ID].partitions[0]


def partition(**changes: object) -> Partition:
    base = Partition(replicas=(1,), isr=(1,), leader=1, leader_epoch=4, partition_epoch=6)
    return base._replace(**changes)  # type: ignore[arg-type]


def test_leader_that_stopped_cleanly_leads_again_in_its_epoch() -> None:
    assert elections(image(partition()), ME, clean=True) == []


def test_leader_that_was_killed_starts_a_new_epoch() -> None:
    elected = after(partition(), clean=False)
    assert (elected.leader, elected.leader_epoch, elected.isr) == (1, 5, (1,))


def test_an_eligible_leader_is_elected_cleanly() -> None:
    # The state that Apache Kafka leaves after a clean shutdown.
    elected = after(partition(leader=-1, isr=(), elr=(1,), last_known_elr=(1,)))
    assert (elected.leader, elected.isr, elected.elr) == (1, (1,), ())
    assert (elected.last_known_elr, elected.recovering, elected.leader_epoch) == ((), False, 5)


def test_the_last_known_leader_is_elected_uncleanly() -> None:
    # The state that Apache Kafka leaves after a SIGKILL and a start of only its controller.
    elected = after(partition(leader=-1, isr=(), elr=(), last_known_elr=(1,)))
    assert (elected.leader, elected.isr, elected.recovering) == (1, (1,), True)


@pytest.mark.parametrize(
    "foreign",
    [
        partition(replicas=(2,), isr=(2,), leader=2),
        partition(replicas=(1, 2), isr=(2,), leader=-1),
    ],
    ids=["no replica", "not in sync"],
)
def test_ineligible_broker_is_not_elected(foreign: Partition) -> None:
    assert elections(image(foreign), ME, clean=False) == []


def test_isr_of_a_lone_leader_is_itself() -> None:
    assert after(partition(replicas=(1, 2), isr=(1, 2), leader=2)).isr == (1,)
