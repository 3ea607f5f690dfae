"""A broker next to threads that only compute. It prints its address, and ends with its stdin."""

import sys
import threading

from pykafka_core import Broker


def hog() -> None:
    while True:
        sum(range(1000))


if __name__ == "__main__":
    with Broker(config={"group.initial.rebalance.delay.ms": 2000}) as broker:
        broker.create_topic("topic")
        print(broker.bootstrap_servers, flush=True)
        for _ in range(int(sys.argv[1])):
            threading.Thread(target=hog, daemon=True).start()
        sys.stdin.read()
