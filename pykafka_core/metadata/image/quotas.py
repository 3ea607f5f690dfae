"""ClientQuotaRecord: its effect on an image."""

from typing import TYPE_CHECKING

from pykafka_core.metadata.image.draft import Draft
from pykafka_core.metadata.image.image import QuotaKey

if TYPE_CHECKING:
    from pykafka_core.protocol.messages import ClientQuotaRecord


def apply_client_quota(draft: Draft, record: "ClientQuotaRecord") -> None:
    """Set or remove one limit of one entity."""
    image = draft.image
    image.client_quotas = table = draft.own("client_quotas", image.client_quotas)
    draft.changes.client_quotas = True
    entity = tuple(
        sorted(
            ((part.entity_type, part.entity_name) for part in record.entity),
            key=lambda part: part[0],
        )
    )
    key = QuotaKey(entity, record.key)
    if record.remove:
        table.pop(key, None)
    else:
        table[key] = record.value
