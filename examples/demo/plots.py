"""The results of the demo as bars of text and as PNG files."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from .flights import airline_names
from .retries import CarrierHour, Delays

_WIDTH: Final = 36
_BLUE, _RED = "#4878a8", "#c44e52"


def print_delays(totals: Mapping[CarrierHour, Delays], console: Console) -> None:
    """Print the mean delay of each carrier, the longest first."""
    _bars("Mean delay on arrival, minutes", mean_delays(totals), "{:.1f}", console)


def print_throughput(
    batches: Sequence[Mapping[str, Any]], killed_after: int, console: Console
) -> None:
    """Print the records per second of each batch, in the order of their completion."""
    _bars("Records per second", throughput(batches, killed_after), "{:,.0f}", console)


def draw_delays(totals: Mapping[CarrierHour, Delays], path: Path) -> None:
    """Draw the bars of `print_delays` as PNG."""
    rows = mean_delays(totals)
    figure, axes = _figure("Mean delay on arrival, flights from New York City, 2013")
    names = [name for name, _ in reversed(rows)]
    values = [value for _, value in reversed(rows)]
    bars = axes.barh(names, values, color=_BLUE)
    axes.bar_label(bars, fmt="%.1f", padding=3)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel("minutes")
    axes.margins(x=0.12)
    figure.savefig(path, dpi=120)


def draw_throughput(batches: Sequence[Mapping[str, Any]], killed_after: int, path: Path) -> None:
    """Draw the bars of `print_throughput` as PNG."""
    rows = throughput(batches, killed_after)
    figure, axes = _figure("Spark to SQLite, each record counted once")
    axes.bar(
        [name.replace(", ", "\n") for name, _ in rows], [value for _, value in rows], color=_BLUE
    )
    axes.axvline(killed_after - 0.5, color=_RED, linestyle="--")
    axes.text(killed_after - 0.45, axes.get_ylim()[1] * 0.98, "kill -9", color=_RED, va="top")
    axes.set_ylabel("records per second")
    axes.set_xlabel("batch")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    figure.savefig(path, dpi=120)


def mean_delays(totals: Mapping[CarrierHour, Delays]) -> list[tuple[str, float]]:
    """Return pairs of airline and minutes, descending, without airlines that never landed."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for (carrier, _), row in totals.items():
        sums[carrier][0] += row.landed
        sums[carrier][1] += row.minutes
    names = airline_names()
    means = [
        (names.get(carrier, carrier), minutes / landed)
        for carrier, (landed, minutes) in sums.items()
        if landed
    ]
    return sorted(means, key=lambda row: -row[1])


def throughput(batches: Sequence[Mapping[str, Any]], killed_after: int) -> list[tuple[str, float]]:
    """Return pairs of batch and records per second; a repeated batch is marked."""
    return [
        (
            f"{batch['batch']}, again" if number == killed_after else str(batch["batch"]),
            batch["records"] / batch["seconds"],
        )
        for number, batch in enumerate(batches)
    ]


def _bars(title: str, rows: Sequence[tuple[str, float]], form: str, console: Console) -> None:
    table = Table(
        title=title, title_justify="left", box=None, show_header=False, padding=(0, 1, 0, 0)
    )
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    largest = max((abs(value) for _, value in rows), default=0) or 1
    for name, value in rows:
        length = round(_WIDTH * abs(value) / largest)
        color = "green" if value < 0 else "cyan"
        table.add_row(name, form.format(value), f"[{color}]{'█' * length}[/{color}]")
    console.print(table)
    console.print()


def _figure(title: str) -> tuple[Any, Any]:
    """Return a figure without a display, which can be saved to a file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
