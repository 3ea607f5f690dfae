"""docs/reference/error-codes.md: the table of `pykafka_core.errors`."""

from pykafka_core.errors import codes, error_of

from .tables import table

_INTRODUCTION = """# Error codes

The errors of responses, as in Apache Kafka 4.4. In Python each is a class of `pykafka_core.errors`. A client repeats a
request after a retriable error. After an error with "refresh" it fetches metadata before that. Code 0 is success.
Written by `python -m tools.reference`; do not edit.

"""


def render() -> str:
    """Return the page."""
    return _INTRODUCTION + table(
        ["Code", "Name", "Class", "Retriable", "Description"], map(_row, codes())
    )


def _row(code: int) -> list[str]:
    error = error_of(code)
    retry = "yes, refresh" if error.refresh_metadata else "yes" if error.retriable else "no"
    return [str(code), f"`{error.name}`", f"`{error.__name__}`", retry, error.text]
