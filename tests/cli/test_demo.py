"""``demo`` on a part of its data: what it prints, and that a record which changed on its way is told."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.progress import Progress

from pykafka_core import Broker
from pykafka_core.cli import demo, main
from pykafka_core.cli.flights import flights

FLIGHTS = 2_000


def run(*arguments: str) -> object:
    with pytest.raises(SystemExit) as caught:
        main(["demo", "--flights", str(FLIGHTS), *arguments])
    return caught.value.code


def test_flights_come_back_verified_and_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--data", str(tmp_path)) == 0
    printed = capsys.readouterr().out
    assert f"Verified: {FLIGHTS:,} records are those that were sent" in printed
    carriers = {carrier for (carrier, _), _ in zip(flights(), range(FLIGHTS), strict=False)}
    first_cells = {line.split()[0] for line in printed.splitlines() if line.split()}
    assert carriers <= first_cells, "a carrier has no row"
    with Broker(tmp_path) as kept:
        assert kept.topics() == {demo.TOPIC: demo.PARTITIONS}


def test_a_changed_record_fails_the_demo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    send = demo._send

    def send_others(bootstrap: str, source: Sequence[demo.Flight], progress: Progress) -> None:
        carrier, value = source[-1]
        send(bootstrap, [*source[:-1], (carrier, value.replace(b"2013", b"2014"))], progress)

    monkeypatch.setattr(demo, "_send", send_others)
    assert run() == 1
    assert "is not the one that was sent" in capsys.readouterr().err
