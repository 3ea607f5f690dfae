"""The exports of `spark_udfs`, and its error without Spark."""

import subprocess
import sys

import pytest

import spark_udfs


def test_all_is_sorted_and_every_name_can_be_loaded() -> None:
    assert spark_udfs.__all__ == sorted(set(spark_udfs.__all__))
    for name in spark_udfs.__all__:
        assert getattr(spark_udfs, name).__module__.startswith("spark_udfs.")
    assert set(spark_udfs.__all__) <= set(dir(spark_udfs))


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(spark_udfs, "kafka_partitions")


@pytest.mark.parametrize("missing", ["pyspark", "pandas", "pyarrow"])
def test_import_without_spark_names_the_extra_to_install(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; import spark_udfs"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"spark_udfs needs {missing}: pip install 'pykafka_core[spark]'" in done.stderr


def test_import_alone_loads_neither_spark_nor_pandas() -> None:
    code = "import sys, spark_udfs; print({'pyspark', 'pandas', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_topic_ids_without_a_client_name_the_extra_to_install() -> None:
    code = (
        "import sys; sys.modules['confluent_kafka'] = None; from spark_udfs import KafkaBrokers; "
        "KafkaBrokers({'bootstrap.servers': '127.0.0.1:1'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "topic ids need confluent-kafka: pip install 'pykafka_core[spark]'" in done.stderr
