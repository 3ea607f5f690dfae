"""Records of credentials and rights: kept as they are, by their identity."""

from typing import TYPE_CHECKING

from pykafka_core.metadata.image.draft import Draft

if TYPE_CHECKING:
    from pykafka_core.protocol.messages import (
        AccessControlEntryRecord,
        DelegationTokenRecord,
        RemoveAccessControlEntryRecord,
        RemoveDelegationTokenRecord,
        RemoveUserScramCredentialRecord,
        UserScramCredentialRecord,
    )


def apply_access_control_entry(draft: Draft, record: "AccessControlEntryRecord") -> None:
    """An ACL begins."""
    draft.image.acls = table = draft.own("acls", draft.image.acls)
    table[record.id] = record


def apply_remove_access_control_entry(
    draft: Draft, record: "RemoveAccessControlEntryRecord"
) -> None:
    """An ACL ends."""
    draft.image.acls = table = draft.own("acls", draft.image.acls)
    table.pop(record.id, None)


def apply_user_scram_credential(draft: Draft, record: "UserScramCredentialRecord") -> None:
    """A user's credential for one mechanism, new or replaced."""
    image = draft.image
    image.scram_credentials = table = draft.own("scram_credentials", image.scram_credentials)
    table[record.name, record.mechanism] = record


def apply_remove_user_scram_credential(
    draft: Draft, record: "RemoveUserScramCredentialRecord"
) -> None:
    """A user's credential for one mechanism ends."""
    image = draft.image
    image.scram_credentials = table = draft.own("scram_credentials", image.scram_credentials)
    table.pop((record.name, record.mechanism), None)


def apply_delegation_token(draft: Draft, record: "DelegationTokenRecord") -> None:
    """A delegation token, new or renewed."""
    image = draft.image
    image.delegation_tokens = table = draft.own("delegation_tokens", image.delegation_tokens)
    table[record.token_id] = record


def apply_remove_delegation_token(draft: Draft, record: "RemoveDelegationTokenRecord") -> None:
    """A delegation token ends."""
    image = draft.image
    image.delegation_tokens = table = draft.own("delegation_tokens", image.delegation_tokens)
    table.pop(record.token_id, None)
