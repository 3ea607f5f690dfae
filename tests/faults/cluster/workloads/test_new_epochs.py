"""The node that made a producer take a new epoch is read from librdkafka's log."""

import logging

import pytest

from tests.faults.cluster.workloads.new_epochs import OutOfOrder

PREFIX = "[rdkafka#producer-2] [thrd:127.0.0.1:19892/3]:"
LINES = {
    f"ERRSEQ {PREFIX} 127.0.0.1:19892/3: ProduceRequest for orders [0] with 1 message(s) failed due to skipped"
    " sequence numbers (PID{Id:0,Epoch:0}, base seq 2 > next seq 1) caused by previous failed request": [
        3
    ],
    f"DRAIN {PREFIX} orders [0] beginning partition drain: drain before retrying": [],
}
"""Lines that librdkafka writes with Apache Kafka."""


@pytest.mark.parametrize("line", LINES)
def test_node_of_an_out_of_order_log_line_is_reported(line: str) -> None:
    told: list[int] = []
    OutOfOrder(told.append).emit(logging.makeLogRecord({"msg": line}))
    assert told == LINES[line]
