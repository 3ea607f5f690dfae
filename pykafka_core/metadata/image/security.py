"""Records of credentials and ACLs, which are stored unchanged by their identity."""

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
    """Add an ACL."""
    draft.image.acls = table = draft.own("acls", draft.image.acls)
    table[record.id] = record


def apply_remove_access_control_entry(
    draft: Draft, record: "RemoveAccessControlEntryRecord"
) -> None:
    """Remove an ACL."""
    draft.image.acls = table = draft.own("acls", draft.image.acls)
    table.pop(record.id, None)


def apply_user_scram_credential(draft: Draft, record: "UserScramCredentialRecord") -> None:
    """Add or replace a user's credential for one mechanism."""
    image = draft.image
    image.scram_credentials = table = draft.own("scram_credentials", image.scram_credentials)
    table[record.name, record.mechanism] = record


def apply_remove_user_scram_credential(
    draft: Draft, record: "RemoveUserScramCredentialRecord"
) -> None:
    """Remove a user's credential for one mechanism."""
    image = draft.image
    image.scram_credentials = table = draft.own("scram_credentials", image.scram_credentials)
    table.pop((record.name, record.mechanism), None)


def apply_delegation_token(draft: Draft, record: "DelegationTokenRecord") -> None:
    """Add or renew a delegation token."""
    image = draft.image
    image.delegation_tokens = table = draft.own("delegation_tokens", image.delegation_tokens)
    table[record.token_id] = record


def apply_remove_delegation_token(draft: Draft, record: "RemoveDelegationTokenRecord") -> None:
    """Remove a token by its id; an unknown id is ignored."""
    image = draft.image
    image.delegation_tokens = table = draft.own("delegation_tokens", image.delegation_tokens)
    table.pop(record.token_id, None)
