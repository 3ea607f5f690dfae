"""Values that Python accepts can be used by Rust: for every setting, in every layer.

A value that passed Python's checks but not those of Rust's ``LogConfig`` was committed and ended
the control thread, and the directory could never be opened again.
"""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka_core import _core
from pykafka_core.config import (
    BrokerConfigs,
    ConfigType,
    Scope,
    Setting,
    TopicConfigs,
    canonical_overrides,
)
from pykafka_core.config import settings as table
from pykafka_core.errors import ConfigurationError, InvalidConfigError

TOPICS = table(Scope.TOPIC)
BROKERS = table(Scope.BROKER)
EDGES = ["0", "1", "-1", "-2", "2", "", "text", " 7 ", "true", "delete", "1.5", "nan", "1e400"]
BOUNDS = {ConfigType.SHORT: 15, ConfigType.INT: 31, ConfigType.LONG: 63}


def texts(setting: Setting) -> st.SearchStrategy[str]:
    """Return valid and invalid values: near the limits of its type, and from its validator."""
    bits = BOUNDS.get(setting.type, 31)
    numbers = st.integers(-(2**bits) - 1, 2**bits).map(str)
    words = [word.strip("[](),") for word in str(setting.validator or "").split()]
    edges = [str(sign * 2**bits + step) for sign in (1, -1) for step in (-1, 0, 1)]
    return st.sampled_from([*EDGES, *edges, *words, setting.default or ""]) | numbers


def layer(rows: list[Setting]) -> st.SearchStrategy[dict[str, str]]:
    pairs = st.sampled_from(rows).flatmap(lambda row: st.tuples(st.just(row.name), texts(row)))
    return st.lists(pairs, max_size=4).map(dict)


@pytest.fixture(scope="module")
def core() -> Iterator[_core.Core]:
    core = _core.Core(
        _core.CoreOptions(
            data_dir=None,
            node_id=1,
            cluster_id="c",
            durability="memory",
            memory_max=2**28,
            clock_ms=None,
        )
    )
    yield core
    core.stop(0)


def refusals(core: _core.Core, configs: BrokerConfigs, overrides: dict[str, str]) -> list[str]:
    topic = _core.TopicImage(
        name="t", topic_id=bytes(15) + b"1", partitions=[], overrides=overrides
    )
    return core.check(
        _core.ImageDelta(
            metadata_offset=1,
            topics=[topic],
            log_defaults=configs.log_defaults(),
            broker_settings=configs.broker_settings(),
        )
    )


def started(static: dict[str, str]) -> BrokerConfigs | None:
    try:
        return BrokerConfigs(static)
    except ConfigurationError:
        return None


@pytest.mark.parametrize("name", BROKERS)
@settings(max_examples=8)
@given(data=st.data())
def test_accepted_broker_setting_is_usable(
    core: _core.Core, name: str, data: st.DataObject
) -> None:
    text = data.draw(texts(BROKERS[name]))
    given_at_start = started({name: text}) or BrokerConfigs()
    assert refusals(core, given_at_start, {}) == []
    for altered in ({"cluster_default": {name: text}, "broker": {}},
                    {"cluster_default": {}, "broker": {name: text}}):  # fmt: skip
        assert refusals(core, BrokerConfigs().with_dynamic(**altered), {}) == []


@settings(max_examples=300)
@given(layer(list(BROKERS.values())), layer(list(BROKERS.values())), layer(list(BROKERS.values())))
def test_stored_layers_always_give_usable_settings(
    core: _core.Core, static: dict[str, str], of_all: dict[str, str], of_one: dict[str, str]
) -> None:
    configs = (started(static) or BrokerConfigs()).with_dynamic(of_all, of_one)
    assert refusals(core, configs, {}) == []
    left = {**configs.cluster_default, **configs.broker}
    ignored = {name for problem in configs.ignored for name in problem.names}
    assert {*of_all, *of_one} <= {*left, *ignored}


@pytest.mark.parametrize("name", TOPICS)
@settings(max_examples=8)
@given(data=st.data())
def test_accepted_topic_setting_is_usable(core: _core.Core, name: str, data: st.DataObject) -> None:
    overrides = {name: data.draw(texts(TOPICS[name]))}
    canonical = canonical_overrides(overrides)
    assert refusals(core, BrokerConfigs(), canonical) == []
    try:
        TopicConfigs.validate(overrides, BrokerConfigs())
    except InvalidConfigError:
        return
    assert canonical.keys() == overrides.keys()
