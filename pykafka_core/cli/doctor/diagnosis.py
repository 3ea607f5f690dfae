"""The checks of `doctor`, and the output of their findings."""

from collections.abc import Iterator
from pathlib import Path

from pykafka_core.cli.errors import CliError
from pykafka_core.cli.output import print_json

from .directory import check_directory
from .finding import Finding, Level, ok, problem
from .limits import check_limits, segments_of
from .port import check_port

DEFAULT_PORT = 9092
DEFAULT_DATA = Path("data")
"""The defaults of ``serve``."""


def diagnose(
    data_dir: Path | None, port: int | None, bootstrap: str | None, *, as_json: bool
) -> None:
    """Check the named things, or else the defaults of ``serve``; always check the limits.

    Raises:
        CliError: There is a problem, which the command has shown.
    """
    found = []
    for finding in _findings(data_dir, port, bootstrap):
        found.append(finding)
        if not as_json:
            _show(finding)
    count = sum(one.level is Level.PROBLEM for one in found)
    if as_json:
        print_json({"healthy": not count, "findings": [_as_json(one) for one in found]})
    if count:
        raise CliError(f"{count} problem{'' if count == 1 else 's'} found")


def _findings(data_dir: Path | None, port: int | None, bootstrap: str | None) -> Iterator[Finding]:
    if data_dir is None and port is None and bootstrap is None:
        data_dir, port = DEFAULT_DATA, DEFAULT_PORT
    if data_dir is not None:
        yield from check_directory(data_dir)
    if port is not None:
        yield from check_port(port)
    yield from check_limits(0 if data_dir is None else segments_of(data_dir))
    if bootstrap is not None:
        yield from _check_broker(bootstrap)


def _check_broker(bootstrap: str) -> Iterator[Finding]:
    from pykafka_core.cli.client.status import look

    try:
        status = look(bootstrap)
    except CliError as error:
        text, _, advice = str(error).partition("\n  ")
        yield problem("broker", text, advice)
        return
    yield ok("broker", f"{bootstrap} answers; it belongs to cluster {status.cluster_id}")
    advice = f"see `pykafka-core status -b {bootstrap}`, and the logs of the brokers"
    for one in status.problems:
        yield problem("cluster", one, advice)


def _show(finding: Finding) -> None:
    print(f"{finding.level:<8} {finding.subject}: {finding.text}", flush=True)
    if finding.advice:
        print(f"{'':<8}   {finding.advice}", flush=True)


def _as_json(finding: Finding) -> dict[str, str]:
    return {**finding._asdict(), "level": finding.level.value}
