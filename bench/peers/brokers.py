"""The brokers that are compared: ours, Apache Kafka, and librdkafka's mock cluster. All listen on
127.0.0.1.
"""

import compileall
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pykafka_core
from pykafka_core.types import id_text, random_id
from tests.support.costs import charge
from tests.support.processes.nodes import (
    SERVE,
    format_kafka,
    kafka_command,
    port_of,
    reserve_port,
    wait_until_ready,
)

HERE = Path(__file__).resolve().parent
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
STDERR = 2
"""The descriptor; `sys.stderr` may be an object without one."""
START_PATIENCE_S = 200


class Peer(Protocol):
    """A broker in a separate process, whose CPU time and memory can be read."""

    name: str
    bootstrap: str
    pid: int
    start_seconds: float

    def stop(self) -> None:
        """End the process and remove its data."""


def compile_package() -> None:
    """Compile our modules to bytecode, as pip does when it installs a wheel, so that a start does
    not include this.
    """
    compileall.compile_dir(Path(pykafka_core.__file__).parent, quiet=1)


def cpu_seconds(pid: int) -> float:
    """Return the user and system time of a process so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process (Linux)."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


def wait_until_serving(bootstrap: str, process: subprocess.Popen[bytes]) -> None:
    """Return once the broker responds to Metadata."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    quiet = {"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 100}
    deadline = time.monotonic() + START_PATIENCE_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the broker at {bootstrap} ended with {process.returncode}")
        try:
            AdminClient(quiet).list_topics(timeout=5)
            return
        except KafkaException:
            continue
    raise RuntimeError(f"no broker at {bootstrap} within {START_PATIENCE_S} s")


class Ours:
    """`pykafka-core serve` on disk.

    Args:
        folder: Folder for its files.
        durability: Option of `serve`.
        environment: Variables in addition to those of this process.
        config: Settings that differ from its defaults.
    """

    def __init__(
        self,
        folder: Path,
        durability: str = "os",
        environment: Mapping[str, str] | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        self.name = f"pykafka_core {durability}"
        self._folder = folder / durability
        begun = time.monotonic()
        command = [*SERVE, "--data", str(self._folder)]
        for name, value in (config or {}).items():
            command += ["--set", f"{name}={value}"]
        self._process = subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0", "--durability", durability],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | (environment or {}),
        )
        self.bootstrap = wait_until_ready(self._process, "our broker")
        self.start_seconds = time.monotonic() - begun
        self.pid = self._process.pid

    def stop(self) -> None:
        """See `Peer`."""
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=100)
        shutil.rmtree(self._folder, ignore_errors=True)


AS_ITS_SCRIPTS = ("-Xmx1g", "-Xms1g", "-XX:+UseG1GC")
QUICK_TO_START = ("-Xmx1g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options for tests in which Apache Kafka does little after its start."""


class ApacheKafka:
    """Apache Kafka of `java/pom.xml`: one KRaft node with default settings.

    Args:
        folder: Folder for its files.
        config: Settings that differ from its defaults.
        environment: Variables in addition to those of this process.
        jvm: Options of Java; by default those of Kafka's scripts.
        controller: The port of its controller, if other nodes must know it before the start.
        quorum: Cluster id and first voters, as arguments of the storage tool; empty for a single
            node.
        classpath: The jars of another release; those of ``java/pom.xml`` if empty.
    """

    name = "Apache Kafka"

    def __init__(
        self,
        folder: Path,
        config: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        jvm: Sequence[str] = AS_ITS_SCRIPTS,
        controller: socket.socket | None = None,
        quorum: Sequence[str] = (),
        classpath: str = "",
    ) -> None:
        self._folder = folder / "kafka"
        self._folder.mkdir(parents=True)
        self._reserved = [reserve_port(), controller or reserve_port()]
        broker, quorum_port = map(port_of, self._reserved)
        properties = self._folder / "server.properties"
        properties.write_text(
            "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
            f"controller.quorum.bootstrap.servers=127.0.0.1:{quorum_port}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{quorum_port}\n"
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{quorum_port}\n"
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
            f"log.dirs={self._folder / 'data'}\noffsets.topic.replication.factor=1\n"
            "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
            + "".join(f"{name}={value}\n" for name, value in (config or {}).items())
        )
        java = ["java", *jvm, "-cp", classpath or self.classpath()]
        alone = ("--standalone", "-t", id_text(random_id(os.urandom)))
        format_kafka(java, properties, *(quorum or alone))
        self._command = kafka_command(java, properties)
        self._environment = os.environ | (environment or {})
        self.bootstrap, self.data = f"127.0.0.1:{broker}", self._folder / "data"
        self.start()

    def start(self) -> None:
        """Start, or start again after `halt`; return when it serves."""
        begun = time.monotonic()
        # It logs to stdout. In a test, pytest captures our stderr and shows it when the test fails.
        self._process = subprocess.Popen(self._command, stdout=STDERR, env=self._environment)
        self.pid = self._process.pid
        wait_until_serving(self.bootstrap, self._process)
        self.start_seconds = time.monotonic() - begun

    @staticmethod
    def classpath() -> str:
        """Return the jars of Apache Kafka, for a JVM that the caller starts; the first call fetches
        them.
        """
        charge("jvm")
        listed = HERE / "java" / "target" / "classpath"
        listed.parent.mkdir(exist_ok=True)
        if not listed.exists():
            part = listed.with_suffix(f".{os.getpid()}")
            subprocess.run(
                [
                    "mvn",
                    "-q",
                    "-B",
                    "-f",
                    str(HERE / "java" / "pom.xml"),
                    "dependency:build-classpath",
                ]
                + [f"-Dmdep.outputFile={part}"],
                check=True,
            )
            part.replace(listed)
        return listed.read_text().strip()

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self._process.kill()
        self._process.wait()

    def halt(self) -> None:
        """Stop and keep the data; thousands of partitions take minutes to close."""
        self._process.terminate()
        self._process.wait(300)

    def stop(self) -> None:
        """See `Peer`."""
        self.halt()
        for reserved in self._reserved:
            reserved.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class Mock:
    """librdkafka's mock cluster in a child process: no disk, no CRC."""

    name = "librdkafka mock"

    def __init__(self, _: Path) -> None:
        begun = time.monotonic()
        code = (
            "import sys; from confluent_kafka import Producer;"
            "p = Producer({'test.mock.num.brokers': 1, 'bootstrap.servers': 'unused'});"
            "b = next(iter(p.list_topics(timeout=10).brokers.values()));"
            "print(f'{b.host}:{b.port}', flush=True); sys.stdin.read()"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.bootstrap, self.pid = self._process.stdout.readline().strip(), self._process.pid
        self.start_seconds = time.monotonic() - begun

    def stop(self) -> None:
        """See `Peer`."""
        self._process.kill()
        self._process.wait()
