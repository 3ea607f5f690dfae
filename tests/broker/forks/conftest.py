import gc

import pytest


@pytest.fixture(autouse=True)
def _no_garbage() -> None:
    """Collect clients that other tests have left.

    A child that collects a librdkafka client joins a thread that it does not have, and crashes.
    """
    gc.collect()
