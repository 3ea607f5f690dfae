"""``topics elect``: elects preferred replicas, or unclean leaders."""

from typing import Annotated

import typer

from pykafka_core.cli.options import Bootstrap, Json
from pykafka_core.cli.output import print_json, print_table
from pykafka_core.errors import ElectionNotNeededError, error_of
from pykafka_core.protocol.messages import ElectLeadersRequest, ElectLeadersResponse

from . import wire

ELECT_LEADERS, VERSION = 43, 2
PREFERRED, UNCLEAN = 0, 1
Names = Annotated[
    list[str] | None, typer.Argument(metavar="[NAMES]...", help="Names of topics; default: all.")
]


def elect(
    names: Names = None,
    unclean: Annotated[
        bool,
        typer.Option(
            "--unclean",
            help="Elect an out-of-sync replica for partitions without a leader. Records may be lost.",
        ),
    ] = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Elect the preferred replica of each partition as its leader: the first of its replicas.

    With --unclean: elect an out-of-sync replica, only for partitions without a leader.
    """
    what = "cannot elect leaders"
    with wire.cluster(bootstrap, what) as cluster:
        request = ElectLeadersRequest(
            election_type=UNCLEAN if unclean else PREFERRED,
            topic_partitions=[
                ElectLeadersRequest.TopicPartitions(topic=name, partitions=partitions)
                for name, partitions in cluster.partitions(names or None).items()
            ],
            timeout_ms=wire.CONTROLLER_TIMEOUT_MS,
        )
        response = cluster.any().ask_newest(ELECT_LEADERS, VERSION, request, ElectLeadersResponse)
    wire.check(response.error_code, what)
    results = [
        (topic.topic, one)
        for topic in response.replica_election_results
        for one in topic.partition_result
        if one.error_code != ElectionNotNeededError.code
    ]
    elected = [f"{topic}-{one.partition_id}" for topic, one in results if not one.error_code]
    failed = [
        f"{topic}-{one.partition_id}: {one.error_message or error_of(one.error_code).text}"
        for topic, one in results
        if one.error_code
    ]
    if as_json:
        print_json({"elected": elected, "failed": failed})
    else:
        print_table(
            [{"elected": name} for name in elected], empty="no election was needed" * (not failed)
        )
    wire.check_all(failed, what)
