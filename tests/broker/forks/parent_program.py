"""A program that embeds a broker and forks a child: `parent_program.py DATA`.

Both wait for a signal.

It prints the broker's address, and once a client is connected the child's process id.
"""

import os
import signal
import sys

from pykafka_core import Broker
from tests.support.patience import eventually

with Broker(sys.argv[1], listeners="PLAINTEXT://127.0.0.1:0") as broker:
    broker.create_topic("orders", partitions=1)
    print(broker.bootstrap_servers, flush=True)
    eventually(lambda: broker.statistics()["connections_open"] == 1)
    child = os.fork()
    if child == 0:
        os.close(sys.stdout.fileno())
    else:
        print(child, flush=True)
    while True:
        signal.pause()
