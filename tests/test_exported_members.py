import pykafka_core


def test_all_is_sorted_and_every_name_can_be_loaded() -> None:
    assert pykafka_core.__all__ == sorted(set(pykafka_core.__all__))
    for name in pykafka_core.__all__:
        assert getattr(pykafka_core, name).__module__.startswith("pykafka_core.")
    assert set(pykafka_core.__all__) <= set(dir(pykafka_core))


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(pykafka_core, "Consumers")
