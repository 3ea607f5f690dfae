"""Tables keep their values whole, however narrow the terminal is."""

import pytest

from pykafka_core.cli.output import print_table

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
def test_values_and_words_of_headers_are_never_broken(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    print_table([ROW], empty="none")
    printed = capsys.readouterr().out
    for word in (ROW["topic"], "1,2,3", "1,234,567,890", "watermark", "replicas"):
        assert str(word) in printed
    assert ("high watermark" in printed) == (columns == "200")


def test_no_rows_are_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([], empty="no topics")
    assert capsys.readouterr().out == "no topics\n"
