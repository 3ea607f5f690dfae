import gc

import pytest


@pytest.fixture(autouse=True)
def _no_garbage() -> None:
    """Collect clients that other tests have left behind.

    A child that collects a librdkafka client would join a thread that it does not have, and crash.
    """
    gc.collect()
