"""Tables never cut their values, however narrow the terminal is."""

import pytest
from rich.console import Console

from pykafka_core.cli.output import Moment, print_table, table

ROW = {
    "topic": "payments.by-customer.and-country.v2",
    "partition": 0,
    "leader": 1,
    "replicas": [1, 2, 3],
    "isr": [1, 2, 3],
    "log_start_offset": 1_234_567_890,
    "high_watermark": 1_234_567_890,
}


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_values_and_words_of_headers_are_never_split(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    print_table([ROW], empty="none")
    printed = capsys.readouterr().out
    for word in (ROW["topic"], "1,2,3", "1,234,567,890", "watermark", "replicas"):
        assert str(word) in printed
    assert ("high watermark" in printed) == (columns == "200")


def test_empty_table_prints_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([], empty="no topics")
    assert capsys.readouterr().out == "no topics\n"


@pytest.mark.parametrize("columns", [60, 100])
def test_redrawn_table_fits_the_terminal_and_truncates_nothing(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    row = {"node": 1, "address": "kafka-1.internal.example.com:19092", "out_of_sync": 3}
    wide = row | {"roles": ["broker", "controller", "active"], "voter_silent_ms": 120}
    Console().print(table([wide]))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    assert "…" not in "".join(lines)
    cells = [[cell.strip() for cell in line.split("│")] for line in lines if "│" in line]
    assert "".join(line[2] for line in cells) == row["address"]


def test_a_table_shows_times_as_dates(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([{"seen": Moment(1_795_851_151_097)}, {"seen": Moment(-1)}], empty="none")
    printed = capsys.readouterr().out
    assert "2026-11-28T07:32:31.097+00:00" in printed
    assert " -1 " not in printed
