"""What memories mean: written beside them, and compared by every query that goes on with them."""

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["agree", "written"]


def written(settings: Mapping[str, Any]) -> str:
    """``settings`` as they are kept; equal ones are equal texts."""
    return json.dumps(settings, sort_keys=True)


def agree(before: str, now: str) -> bool:
    """Whether what was remembered under ``before`` means the same ``now``; both are as `written`.

    Values of other types have other fingerprints, so types count. Memories from before these were kept do not tell
    them, and are believed.
    """
    if before == now:
        return True
    known, wanted = json.loads(before), json.loads(now)
    if "types" not in known:
        wanted.pop("types", None)
    return bool(known == wanted)
