"""A directory of Apache Kafka with features that this version lacks: the start names them."""

import logging
import shutil
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.errors import ClusterError
from tests.support.processes.ports import free_ports

GOLDEN = Path(__file__).parent / "golden" / "clean" / "data"


def test_a_controller_with_share_groups_is_refused_by_the_name_of_the_feature(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(GOLDEN, tmp_path / "data", copy_function=shutil.copyfile)
    port = free_ports()
    settings = {
        "process.roles": "broker,controller",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}",
        "controller.quorum.voters": f"1@127.0.0.1:{port}",
    }
    foreign = r"does not support share\.version=1, streams\.version=1; lower them .* downgrade"
    with caplog.at_level(logging.CRITICAL), pytest.raises(ClusterError, match=foreign):
        Broker(tmp_path / "data", config=settings)
    (line,) = (one for one in caplog.records if one.levelno == logging.CRITICAL)
    assert line.exc_info is None
