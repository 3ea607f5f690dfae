"""The header of an id is found by name, or refused before a query starts."""

from typing import Any

import pytest

from pykafka_core.errors import ConfigurationError
from spark_udfs import message_header


@pytest.mark.parametrize("name", [None, "", b"message-id", 5])
def test_header_without_a_name_is_rejected(name: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"needs the name of a header, not {name!r}"):
        message_header(name)
