"""ConfigRecord: its effect on an image."""

from typing import TYPE_CHECKING

from pykafka_core.metadata.image.draft import Draft
from pykafka_core.types import ConfigResource

if TYPE_CHECKING:
    from pykafka_core.protocol.messages import ConfigRecord


def apply_config(draft: Draft, record: "ConfigRecord") -> None:
    """Set one setting of one resource; a null value removes it."""
    resource = ConfigResource(record.resource_type, record.resource_name)
    settings = draft.own_config(resource)
    if record.value is None:
        settings.pop(record.name, None)
    else:
        settings[record.name] = record.value
    if not settings:
        draft.forget_config(resource)
