#!/usr/bin/env python3
"""Run the oracle on two clusters of three nodes, ours and Apache Kafka's, in place of two brokers.

  tools/oracle_of_clusters.py ORACLE OURS KAFKA $(tools/oracle_filter.py --cases) |
    tools/oracle_filter.py --release 4.4.0

ORACLE is the program, OURS and KAFKA the address of one node of each cluster; both have the same
settings.

Theory of operation. The oracle sends all requests to one node, which must lead the topics of its
cases. So this program makes that node the preferred leader of the internal topics and of the topics
that exist at the begin of a case; they have a replica on each node. The cluster itself places
topics that the requests of a case create.
"""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

INTERNAL_PARTITIONS = 50
INTERNAL = {
    "__consumer_offsets": {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    },
    "__transaction_state": {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "2",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    },
}
"""As both kinds of broker would make them."""
TOPIC_ALREADY_EXISTS = 36


def loaded(program: Path) -> ModuleType:
    """The oracle as a module, without its last line, which runs it."""
    sys.path.insert(0, str(program.parent))
    module = ModuleType("oracle")
    module.__file__ = str(program)
    source = program.read_text().removesuffix("sys.exit(main())\n")
    exec(compile(source, program, "exec"), module.__dict__)
    return module


def on_a_cluster(alone: Any) -> Any:
    """The oracle's class of a broker, for a node of a cluster."""

    class Node(alone):  # type: ignore[misc]
        def __init__(self, address: str, word: str) -> None:
            super().__init__(address, word)
            self.nodes = nodes_from(self.connection, address)

        def topic(self, *arguments: Any, **configs: str) -> Any:
            self.quiet = self.placed
            try:
                return super().topic(*arguments, **configs)
            finally:
                del self.quiet

        def placed(self, api: str, version: int, body: dict[str, Any], **more: Any) -> Any:
            if api == "CreateTopics":
                for topic in body["Topics"]:
                    topic["Assignments"] = assignments(self.nodes, topic["NumPartitions"])
                    topic["NumPartitions"] = topic["ReplicationFactor"] = -1
            return super().quiet(api, version, body, **more)

    return Node


def nodes_from(connection: Any, address: str) -> list[int]:
    """Ids of all nodes, that of this address first."""
    nodes = connection.call("Metadata", 12, {"Topics": []})["Brokers"]
    port = int(address.rpartition(":")[2])
    return [
        node["NodeId"]
        for node in sorted(nodes, key=lambda one: (one["Port"] != port, one["NodeId"]))
    ]


def assignments(nodes: list[int], partitions: int) -> list[dict[str, Any]]:
    """A replica on each node of each partition; the first one leads."""
    return [{"PartitionIndex": index, "BrokerIds": nodes} for index in range(partitions)]


def make_internal_topics(node: Any) -> None:
    """Unless they are there, from an earlier run."""
    for name, configs in INTERNAL.items():
        topic = {
            "Name": name,
            "NumPartitions": -1,
            "ReplicationFactor": -1,
            "Assignments": assignments(node.nodes, INTERNAL_PARTITIONS),
            "Configs": [{"Name": key, "Value": value} for key, value in configs.items()],
        }
        response = node.connection.call("CreateTopics", 7, {"Topics": [topic], "timeoutMs": 30_000})
        if response["Topics"][0]["ErrorCode"] not in (0, TOPIC_ALREADY_EXISTS):
            sys.exit(f"{name} could not be made: {response}")


def main() -> int:
    """Run it."""
    oracle: Any = loaded(Path(sys.argv[1]))  # It may start this program again, in its environment.
    del sys.argv[1]
    oracle.Broker = on_a_cluster(oracle.Broker)
    for address in sys.argv[1:3]:
        node = oracle.Broker(address, "internal")
        make_internal_topics(node)
        node.close()
    return int(oracle.main())


if __name__ == "__main__":
    sys.exit(main())
