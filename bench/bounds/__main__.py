"""Print the peak memory of each attack: ``python -m bench.bounds [MEMORY_MAX_MIB]``."""

import sys
import time

from .attacks import ATTACKS
from .broker import MIB, measured

memory_max = int(sys.argv[1]) if len(sys.argv) > 1 else 64
print(f"memory_max {memory_max} MiB; MiB resident: idle, at most, at most beyond idle")
for name, attack in ATTACKS.items():
    with measured(memory_max * MIB) as broker:
        began = time.monotonic()
        attack(broker.address)
        took_s = time.monotonic() - began
        idle, peak = broker.idle_bytes // MIB, broker.peak_bytes() // MIB
        print(f"{name:28} {idle:5} {peak:5} {peak - idle:5}  in {took_s:.1f} s", flush=True)
