"""`connector_jars` finds the connector, or fetches it with Spark's own Ivy, or gives advice."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home

from spark_udfs import ConnectorMissing, SparkSetupError, connector, connector_jars
from spark_udfs.environment import installed_spark
from tests.support.costs import charge

SPARK = installed_spark()
CONNECTOR = f"spark-sql-kafka-0-10_{SPARK.scala}"


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, without a folder in the environment."""
    monkeypatch.delenv("PYKAFKA_CONNECTOR_JARS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pykafka_core"


class Repository:
    """A Maven repository in a folder; its jars contain no classes."""

    def __init__(self, folder: Path) -> None:
        charge("jvm")  # because a JVM resolves modules of the repository
        self.folder = folder
        self.settings = folder / "ivysettings.xml"
        folder.mkdir()
        self.settings.write_text(
            '<ivysettings><settings defaultResolver="here"/><resolvers>'
            f'<ibiblio name="here" m2compatible="true" root="{folder.as_uri()}"/></resolvers></ivysettings>'
        )

    def add(self, group: str, name: str, version: str, needs: str = "") -> None:
        place = self.folder / group.replace(".", "/") / name / version
        place.mkdir(parents=True)
        (place / f"{name}-{version}.jar").write_bytes(b"classes")
        (place / f"{name}-{version}.pom").write_text(
            f"<project><modelVersion>4.0.0</modelVersion><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<version>{version}</version><dependencies>{needs}</dependencies></project>"
        )
        published = "".join(
            f"<version>{path.name}</version>" for path in place.parent.iterdir() if path.is_dir()
        )
        (place.parent / "maven-metadata.xml").write_text(
            f"<metadata><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<versioning><versions>{published}</versions></versioning></metadata>"
        )


def needs(group: str, name: str, version: str) -> str:
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
        f"<version>{version}</version></dependency>"
    )


def test_spark_home_is_the_one_that_pyspark_finds() -> None:
    assert Path(_find_spark_home()) == SPARK.home


def test_given_folder_of_jars_is_used(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYKAFKA_CONNECTOR_JARS", str(tmp_path))
    with pytest.raises(ConnectorMissing, match="holds no spark-sql-kafka-0-10 jar: put there"):
        connector_jars()
    made = [tmp_path / f"{CONNECTOR}-4.0.0.jar", tmp_path / "z.jar"]
    for jar in made:
        jar.touch()
    assert connector_jars() == made
    made[0].rename(tmp_path / "spark-sql-kafka-0-10_2.12-3.5.1.jar")
    with pytest.raises(ConnectorMissing, match=r"for Spark 3\.5\.1 on Scala 2\.12"):
        connector_jars()


@pytest.mark.jvm
def test_missing_jars_are_fetched_once_and_those_of_spark_are_not(
    cache: Path, tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "repository")
    clients = needs("org.apache.kafka", "kafka-clients", "9.1")
    brought = needs(
        "org.apache.hadoop", "hadoop-client-runtime", "9.9"
    )  # and not in the repository
    repository.add("org.apache.spark", CONNECTOR, SPARK.version, clients + brought)
    repository.add("org.apache.kafka", "kafka-clients", "9.1")
    names = ["kafka-clients-9.1.jar", f"{CONNECTOR}-{SPARK.version}.jar"]
    assert [jar.name for jar in connector_jars(repository.settings)] == names
    repository.settings.unlink()
    assert [jar.name for jar in connector_jars()] == names
    assert [path.name for path in cache.iterdir()] == [f"{CONNECTOR}-{SPARK.version}"]


@pytest.mark.jvm
def test_newest_published_connector_replaces_an_unpublished_one(
    cache: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its parts are the newest published ones, too: repositories lack some of a release."""
    repository = Repository(tmp_path / "repository")
    provider = f"spark-token-provider-kafka-0-10_{SPARK.scala}"
    for version in ("3.5.9", "4.0.0", "4.1.9", "4.1.10", "4.1.10-preview1", "99.0.0"):
        part = needs("org.apache.spark", provider, version)
        repository.add("org.apache.spark", CONNECTOR, version, part)
    repository.add("org.apache.spark", provider, "4.0.0")
    names = [f"{CONNECTOR}-4.1.10.jar", f"{provider}-4.0.0.jar"]
    assert [jar.name for jar in connector_jars(repository.settings)] == names
    assert f"{SPARK.version} is not published: {names[0]} is used" in caplog.text
    assert [jar.name for jar in connector_jars()] == names


@pytest.mark.jvm
@pytest.mark.usefixtures("cache")
def test_a_fresh_install_gets_a_connector_from_maven_central() -> None:
    parts = [jar.name.rpartition("-")[0] for jar in connector_jars()]
    assert {CONNECTOR, "kafka-clients"} <= set(parts)


@pytest.mark.jvm
def test_the_jars_are_printed_for_spark_submit() -> None:
    command = [sys.executable, "-m", "spark_udfs.connector"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == ",".join(str(jar) for jar in connector_jars())


@pytest.mark.jvm
def test_unpublished_connector_is_reported_with_the_remedies(cache: Path, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    with pytest.raises(ConnectorMissing) as caught:
        connector_jars(repository.settings)
    said = str(caught.value)
    assert f"org.apache.spark:{CONNECTOR}:{SPARK.version}, or an older one" in said
    assert "not found" in said
    for remedy in (
        "PYKAFKA_CONNECTOR_JARS=",
        "spark.jars.ivySettings",
        "whose connector is published",
    ):
        assert remedy in said
    assert list(cache.iterdir()) == []


@pytest.mark.jvm
def test_missing_dependency_leaves_no_files(cache: Path, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    clients = needs("org.apache.kafka", "kafka-clients", "9.1")
    repository.add("org.apache.spark", CONNECTOR, SPARK.version, clients)
    with pytest.raises(ConnectorMissing, match=r"kafka-clients;9\.1: not found"):
        connector_jars(repository.settings)
    assert list(cache.iterdir()) == []


def test_missing_java_is_reported_before_anything_is_fetched(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkSetupError, match="Spark needs Java"):
        connector_jars()
    assert not cache.exists()


@pytest.mark.jvm
def test_repository_without_a_reply_is_reported_with_the_remedies(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(connector, "FETCH_TIMEOUT_SECONDS", 0.01)  # less than the start of Java
    with pytest.raises(ConnectorMissing, match=r"\(no response in 0.01 s\)\. Give its jars by"):
        connector_jars(Repository(tmp_path / "repository").settings)
    assert list(cache.iterdir()) == []


@pytest.mark.jvm
def test_a_cache_that_cannot_be_written_is_named(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.parent.write_text("no folder")
    with pytest.raises(ConnectorMissing, match=r"\(.*Errno.*\)\. Give its jars by"):
        connector_jars()


@pytest.mark.jvm
def test_missing_file_of_ivy_settings_is_named(cache: Path) -> None:
    with pytest.raises(ConnectorMissing, match="ivySettings=/nowhere is not a file"):
        connector_jars("/nowhere")
