"""Kafka Streams and Kafka Connect as child processes that can be killed."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from tests.support.evidence.logs import watch
from tests.support.java import QUICK_TO_START, STREAMS, classpath
from tests.support.patience import PATIENCE_S
from tests.support.processes.nodes import port_of, reserve_port, write_properties


class Program:
    """A main class of the jars; it can be started again after `kill`."""

    def __init__(self, main_class: str, *arguments: str, log: Path) -> None:
        self._command = ["java", *QUICK_TO_START, "-Xmx256m", "-cp", classpath(STREAMS)]
        self._command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", main_class, *arguments]
        self._log = log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        watch(self._log.stem, self._log)
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def check(self) -> None:
        """Check that it runs."""
        assert self.process is not None
        if self.process.poll() is not None:
            raise AssertionError(self._log.read_text()[-4000:])

    def kill(self) -> None:
        """Send SIGKILL."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(PATIENCE_S)


@contextmanager
def running(*programs: Program) -> Iterator[None]:
    """Start programs, and kill them at the end."""
    try:
        for program in programs:
            program.start()
        yield
    finally:
        for program in programs:
            if program.process is not None and program.process.poll() is None:
                program.kill()


class Worker(Program):
    """A worker of a Connect cluster, with its REST interface."""

    def __init__(self, folder: Path, name: str, bootstrap: str) -> None:
        self._reserved = reserve_port()
        self.address = f"127.0.0.1:{port_of(self._reserved)}"
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "connect",
            "listeners": f"http://{self.address}",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "offset.flush.interval.ms": "300",
            "scheduled.rebalance.max.delay.ms": "0",
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "500",
        }
        for kind in ("config", "offset", "status"):
            settings[f"{kind}.storage.topic"] = f"connect-{kind}"
            settings[f"{kind}.storage.replication.factor"] = "-1"
        file = folder / f"{name}.properties"
        write_properties(file, settings)
        main_class = "org.apache.kafka.connect.cli.ConnectDistributed"
        super().__init__(main_class, str(file), log=folder / f"{name}.log")

    def ask(self, path: str, body: object = None) -> Any:
        """Send GET, or PUT with a JSON body."""
        data = None if body is None else json.dumps(body).encode()
        method = "GET" if body is None else "PUT"
        request = Request(f"http://{self.address}{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        with urlopen(request, timeout=PATIENCE_S) as response:
            return json.load(response)

    def ask_until(self, path: str, wanted: Any, body: object = None) -> Any:
        """Repeat a request until the response is right; workers refuse while they rebalance."""
        deadline, seen = time.monotonic() + PATIENCE_S, None
        while time.monotonic() < deadline:
            self.check()
            try:
                seen = self.ask(path, body)
                if wanted(seen):
                    return seen
            except (URLError, OSError) as error:
                seen = error
            time.sleep(0.1)
        raise AssertionError(f"{path}: {seen!r}")
