"""Records with duplicates, as a producer sends them that retries; and their true sums.

Three in ten flights are sent twice, as if their confirmation were lost.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from json import loads
from typing import Final, NamedTuple

from .records import Flight, Record

ID_HEADER: Final = "message-id"
_DELAY: Final = 1000  # records between a flight and its retry


class Delays(NamedTuple):
    """Sums of one carrier's flights in one scheduled hour.

    `minutes` are the arrival delays of landed flights.
    """

    flights: int
    landed: int
    minutes: int


CarrierHour = tuple[str, str]
"""The carrier, and the hour as 2013-01-01T10:00:00Z."""


def with_retries(source: Sequence[Flight]) -> list[Record]:
    """Give each flight an id, and repeat 3 of 10 with the same id, some thousand records later."""
    firsts = [_record(number, flight) for number, flight in enumerate(source)]
    again = (record for number, record in enumerate(firsts) if number % 10 < 3)
    mixed: list[Record] = []
    for start in range(0, len(firsts), _DELAY):
        mixed += firsts[start : start + _DELAY]
        if start:
            mixed += islice(again, 3 * _DELAY // 10)
    return [*mixed, *again]


def _record(number: int, flight: Flight) -> Record:
    carrier, value = flight
    return Record(carrier, value, [(ID_HEADER, f"flight-{number}".encode())])


def delays(source: Iterable[Flight]) -> dict[CarrierHour, Delays]:
    """Return the result of a pipeline that counts each flight once."""
    sums: dict[CarrierHour, list[int]] = defaultdict(lambda: [0, 0, 0])
    for carrier, hour, minutes in _arrivals(source):
        row = sums[carrier, hour]
        row[0] += 1
        if minutes is not None:
            row[1] += 1
            row[2] += minutes
    return {place: Delays(*row) for place, row in sums.items()}


def _arrivals(source: Iterable[Flight]) -> Iterator[tuple[str, str, int | None]]:
    for carrier, value in source:
        flight = loads(value)
        yield carrier, flight["time_hour"], flight["arr_delay"]
