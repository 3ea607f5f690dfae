"""Print the peak memory of each attack.

Usage: ``python -m bench.bounds [--memory-max MIB] [--together --seconds S]``.
"""

import argparse
import time

from .attacks import ATTACKS
from .batches import MIB
from .broker import measured
from .together import report


def one_by_one(memory_max: int) -> None:
    """Run each attack on a separate broker."""
    print(f"memory_max {memory_max // MIB} MiB; MiB resident: idle, at most, at most beyond idle")
    for name, attack in ATTACKS.items():
        with measured(memory_max) as broker:
            began = time.monotonic()
            attack(broker.address)
            took_s = time.monotonic() - began
            idle, peak = broker.idle_bytes // MIB, broker.peak_bytes() // MIB
            print(f"{name:28} {idle:5} {peak:5} {peak - idle:5}  in {took_s:.1f} s", flush=True)


def main() -> None:
    """Run the command; the module describes its arguments."""
    parser = argparse.ArgumentParser("python -m bench.bounds")
    parser.add_argument("--memory-max", type=int, default=64, metavar="MIB")
    parser.add_argument(
        "--together", action="store_true", help="all attacks at once, together with honest clients"
    )
    parser.add_argument("--seconds", type=float, default=120)
    arguments = parser.parse_args()
    if arguments.together:
        report(arguments.memory_max * MIB, arguments.seconds)
    else:
        one_by_one(arguments.memory_max * MIB)


if __name__ == "__main__":
    main()
