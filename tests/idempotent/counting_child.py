"""One of several processes on a ledger: `python -m tests.idempotent.counting_child ADDRESS COUNT`.

It prints ``ready`` and waits for a line. Then it claims the ids 0 to COUNT - 1, each in a separate
transaction that reads the mark and increments it.
"""

import sys

from pykafka_core.idempotent import PartitionKey
from pykafka_core.types import ZERO_ID
from tests.idempotent.databases import database_at, effect

KEY = PartitionKey(ZERO_ID, "orders", 0)


def main(address: str, count: str) -> None:
    database = database_at(address)
    with database.ledger() as ledger:
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(int(count)):
            with ledger.transaction("g") as transaction:
                mark = transaction.marks().get(KEY, 0)
                if transaction.claim([b"%d" % number]) == [True]:
                    effect(database, transaction.connection, f"{number:02}")
                transaction.advance({KEY: mark + 1})


if __name__ == "__main__":
    main(*sys.argv[1:])
