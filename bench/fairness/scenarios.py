"""The scenarios: a load that keeps the broker busy, and the probes that run at the same time."""

from typing import NamedTuple

from .groups import MEMBERS, PART_TOPICS
from .probes import Probe, api_versions, control, heartbeat, record

DATA: dict[str, Probe] = {"ApiVersions": api_versions, "one record": record}
GROUPS: dict[str, Probe] = {"Heartbeat": heartbeat}
CONTROL: dict[str, Probe] = {"ApiVersions": api_versions, "CreatePartitions": control}


class Scenario(NamedTuple):
    """Probes that run during a load.

    Attributes:
        load: A name of `loads.LOADS`; empty without a load.
        connections: Number of connections of the load.
        disk_ms: Additional time of each write and sync.
        stall_ms: Additional time of one write of the load.
        wide: Whether the brokers have 9,000 more partitions.
        parts: Whether the brokers have the topics of `groups.unequal_parts`.
        ours_alone: Not run on Apache Kafka, because its heap of 1 GiB is too small.
    """

    name: str
    probes: dict[str, Probe] = DATA
    load: str = ""
    connections: int = 1
    disk_ms: int = 0
    stall_ms: int = 0
    wide: bool = False
    parts: bool = False
    ours_alone: bool = False


FIREHOSES = {
    "acks=0, 60 KB": ("acks=0 of 60 KB, slow disk", 5),
    "acks=0, 2 KB": ("acks=0 of 2 KB", 0),
    "idempotent, 60 KB": ("idempotent of 60 KB, 5 in flight, slow disk", 5),
}
CONTROL_LOADS = {
    "DeleteTopics": "DeleteTopics of 16,000 names",
    "DescribeConfigs": "DescribeConfigs of one topic 12,000 times",
    "Metadata": "Metadata of 87,500 missing names",
    "IncrementalAlterConfigs": "IncrementalAlterConfigs of 50,000 topics",
}

SCENARIOS = [
    Scenario("nothing else", DATA | CONTROL),
    *(
        Scenario(f"{count} x {text}", DATA, load, count, disk_ms)
        for load, (text, disk_ms) in FIREHOSES.items()
        for count in (1, 4, 8)
    ),
    Scenario("one write of 3 s and fetches there", DATA, "stalled write", 2, stall_ms=3000),
    Scenario("batches that inflate to 100 MB", DATA, "inflating"),
    Scenario("20 x 18 million empty records", DATA | CONTROL, "rewritten", 20, ours_alone=True),
    Scenario("fetch sessions that grow to 120,000", DATA | CONTROL, "growing session", 4),
    *(Scenario(text, CONTROL, load) for load, text in CONTROL_LOADS.items()),
    Scenario("400 x JoinGroup of members that never join again", GROUPS, "never join again", 400),
    Scenario(f"{MEMBERS:,} members of a group that rebalance", GROUPS, "members of a group"),
    Scenario(
        f"150 members with unequal parts of {PART_TOPICS:,} topics",
        GROUPS,
        "unequal parts",
        10,
        parts=True,
    ),
    Scenario("Metadata of 9,000 partitions", DATA, "all topics", wide=True),
]
