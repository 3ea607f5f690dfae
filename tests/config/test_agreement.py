"""Values that Python accepts can be used by Rust: for every setting, in every layer.

A value that passed Python's checks but not those of Rust's ``LogConfig`` was committed and ended
the control thread, and the directory could never be opened again.
"""

from collections import ChainMap
from collections.abc import Iterator
from itertools import zip_longest

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


def edges(setting: Setting) -> list[str]:
    """Return valid and invalid values: limits of its type, and words of its validator."""
    bits = BOUNDS.get(setting.type, 31)
    words = [word.strip("[](),") for word in str(setting.validator or "").split()]
    limits = [str(sign * 2**bits + step) for sign in (1, -1) for step in (-1, 0, 1)]
    return [*EDGES, *limits, *words, setting.default or ""]


def texts(setting: Setting) -> st.SearchStrategy[str]:
    bits = BOUNDS.get(setting.type, 31)
    return st.sampled_from(edges(setting)) | st.integers(-(2**bits) - 1, 2**bits).map(str)


def layer(rows: list[Setting]) -> st.SearchStrategy[dict[str, str]]:
    pairs = st.sampled_from(rows).flatmap(one_setting)
    return st.lists(pairs, max_size=4).map(lambda chosen: dict(ChainMap(*chosen)))


def one_setting(setting: Setting) -> st.SearchStrategy[dict[str, str]]:
    return texts(setting).map(lambda text: {setting.name: text})


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


def accepted(static: dict[str, str]) -> Iterator[BrokerConfigs]:
    """Yield configurations that together have every value that is accepted at a start."""
    configs = started(static)
    if configs is not None:
        yield configs
    elif len(static) > 1:
        items = list(static.items())
        for half in (items[::2], items[1::2]):
            yield from accepted(dict(half))


def test_accepted_broker_settings_are_usable(core: _core.Core) -> None:
    for column in zip_longest(*map(edges, BROKERS.values()), fillvalue=""):
        values = dict(zip(BROKERS, column, strict=True))
        for configs in (
            *accepted(values),
            BrokerConfigs().with_dynamic(values, {}),
            BrokerConfigs().with_dynamic({}, values),
        ):
            assert refusals(core, configs, {}) == []


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


def test_accepted_topic_settings_are_usable(core: _core.Core) -> None:
    for name, setting in TOPICS.items():
        for text in edges(setting):
            canonical = canonical_overrides({name: text})
            assert refusals(core, BrokerConfigs(), canonical) == [], (name, text)
            assert (name in canonical) or is_rejected(name, text)


@settings(max_examples=300)
@given(layer(list(TOPICS.values())))
def test_stored_overrides_of_a_topic_are_usable(
    core: _core.Core, overrides: dict[str, str]
) -> None:
    assert refusals(core, BrokerConfigs(), canonical_overrides(overrides)) == []


def is_rejected(name: str, text: str) -> bool:
    try:
        TopicConfigs.validate({name: text}, BrokerConfigs())
    except InvalidConfigError:
        return True
    return False
