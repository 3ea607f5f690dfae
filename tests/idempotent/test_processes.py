"""Several processes on one ledger."""

import subprocess
import sys
from contextlib import ExitStack

from tests.idempotent.counting_child import KEY
from tests.idempotent.databases import Database, effects

COUNT, PROCESSES = 40, 2


def test_processes_of_one_group_repeat_nothing_and_lose_nothing(database: Database) -> None:
    arguments = ["-m", "tests.idempotent.counting_child", database.address, str(COUNT)]
    with ExitStack() as stack:
        children = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, *arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(PROCESSES)
        ]
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in children:  # start all of them before the first wait
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        for child in children:
            child.communicate()
        assert [child.returncode for child in children] == [0] * PROCESSES
    with database.ledger() as ledger, ledger.transaction("g") as transaction:
        assert transaction.marks() == {KEY: PROCESSES * COUNT}
    assert effects(database) == [f"{number:02}" for number in range(COUNT)]
