"""``groups why``: shows a group from a broker's ``--metrics`` port; Kafka has no such request."""

import json
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import quote

from pykafka_core.cli.arguments import utf8
from pykafka_core.cli.errors import USAGE, CliError
from pykafka_core.cli.output import print_json, print_table

DEFAULT_METRICS = "127.0.0.1:9404"
_TIMEOUT_S = 15.0
_HTTP_OK, _HTTP_NOT_FOUND = 200, 404


def why(group: str, metrics: str | None, *, as_json: bool) -> None:
    """Show the state of a group and its recent events.

    Raises:
        CliError: No broker answers there, or there is no such group.
    """
    found = _ask(metrics or DEFAULT_METRICS, utf8(group))
    if as_json:
        print_json(found)
    else:
        _show(found)


def _ask(metrics: str, group: str) -> dict[str, Any]:
    host, _, port = metrics.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise CliError(f"--metrics {metrics!r} is not HOST:PORT", exit_code=USAGE)
    connection = HTTPConnection(host.strip("[]"), int(port), timeout=_TIMEOUT_S)
    try:
        connection.request("GET", f"/groups/{quote(group, safe='')}")
        response = connection.getresponse()
        body = response.read()
        if response.status == _HTTP_OK:
            found = json.loads(body)
            if isinstance(found, dict):
                return found
    except (OSError, HTTPException, ValueError) as error:
        advice = f"start it with `pykafka-core serve --metrics {DEFAULT_METRICS}`, and pass its address with --metrics"
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise CliError(f"cannot read groups from {metrics}: {reason}", advice) from error
    finally:
        connection.close()
    text = body.decode(errors="replace").strip()
    if response.status == _HTTP_NOT_FOUND and text.startswith("there is no group"):
        raise CliError(f"there is no group {group}", "see `pykafka-core groups list`")
    raise CliError(f"cannot read {group} from {metrics}: {text[:500]}", "try again in a second")


def _show(found: dict[str, Any]) -> None:
    print(f"group {found['group']} is {found['state']}")
    for sentence in found["explanation"]:
        print(f"  {sentence}")
    members = [
        {name: one[name] for name in ("member_id", "instance_id", "host", "is_waited_for")}
        for one in found["members"]
    ]
    print_table(members, title="members", empty="no members")
    print_table(found["lag"], title="lag", empty="nothing is committed")
    print_table(found["history"], title="events, oldest first", empty="no history")
