"""All errors of the package, as one tree.

::

    Exception
    ├── KafkaError                 the error of a response: one class per Kafka error code
    │   ├── OffsetOutOfRangeError  (code 1)
    │   └── …                      named after Kafka's code: INVALID_CONFIG → InvalidConfigError
    ├── LocalError                 an error in this process
    │   ├── ConfigurationError     invalid settings; lists every problem
    │   ├── StorageError           the data directory or a log in it
    │   │   └── StorageLockedError another process has the directory open
    │   ├── MetadataError          metadata records that cannot be read
    │   ├── ClusterError           a node that cannot join its cluster
    │   │   └── StartGivenUpError  the caller cancelled its start
    │   ├── LedgerError            the database that an idempotent consumer writes to
    │   │   ├── LedgerUnavailableError  it is unreachable, locked or full: try again
    │   │   └── LedgerSchemaError  its tables are of another kind or version
    │   ├── MessageIdError         a record without an id that a ledger can claim
    │   ├── ConsumerError          of the client or the source broker: try again
    │   ├── DataLossError          records were deleted before they were processed
    │   └── ClosedError            used after ``close``
    │       └── ForkedError        used in a child process that inherited it
    └── UsageError                 a bug in the caller: arguments that contradict each other

A class has the values of its row: ``code``, Kafka's ``name``, ``retriable``, ``refresh_metadata``
(a client should fetch metadata before it retries). Source of codes and
flags: Kafka 4.4, ``org.apache.kafka.common.protocol.Errors``.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

NONE = 0
"""The error code of success."""

_BY_CODE: "dict[int, type[KafkaError]]" = {}


class KafkaError(Exception):
    """An error with a Kafka code.

    ``str()`` is the message for people; programs should not parse it.

    Args:
        message: The specific problem; by default the general text of the code. Truncated to
            `MESSAGE_LENGTH_MAX` characters: it may contain text of a client, and a response can
            hold 32,767 bytes of UTF-8.
    """

    MESSAGE_LENGTH_MAX: Final = 8_000

    code: ClassVar[int]
    name: ClassVar[str]
    text: ClassVar[str]
    retriable: ClassVar[bool] = False
    refresh_metadata: ClassVar[bool] = False

    def __init__(self, message: str = "") -> None:
        super().__init__((message or self.text)[: self.MESSAGE_LENGTH_MAX])

    def __init_subclass__(
        cls,
        *,
        code: int | None = None,
        name: str = "",
        retriable: bool = False,
        refresh_metadata: bool = False,
    ) -> None:
        """Register a code of Kafka's table.

        A class without a code is a special case of its parent's error.
        """
        super().__init_subclass__()
        if code is None:
            return
        cls.code, cls.name = code, name
        cls.text = cls.__doc__ or name
        cls.retriable, cls.refresh_metadata = retriable, refresh_metadata
        _BY_CODE[code] = cls


def error_of(code: int) -> type[KafkaError]:
    """Return the class of a code; `UnknownServerError` for an unknown code of a newer broker."""
    return _BY_CODE.get(code, UnknownServerError)


def codes() -> list[int]:
    """Return all codes of the table, ascending; 0 (no error) has no class."""
    return sorted(_BY_CODE)


class LocalError(Exception):
    """An error in this process, not in a response of a broker."""


class ConfigurationError(LocalError):
    """Invalid settings. ``problems`` lists all of them, one sentence each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


class StorageError(LocalError):
    """The data directory or a log in it cannot be used; nothing was changed."""


class DamagedLogError(StorageError):
    """A log was read up to damaged or missing records.

    Attributes:
        offset: The first offset that cannot be read.
    """

    def __init__(self, text: str, offset: int) -> None:
        super().__init__(text)
        self.offset = offset


class StorageLockedError(StorageError):
    """Another broker or process has the data directory open."""


class MetadataError(LocalError):
    """A metadata record is unknown, or contradicts earlier ones."""


class ClusterError(LocalError):
    """A node cannot join its cluster, or its controller rejected it."""


class StartGivenUpError(ClusterError):
    """The caller cancelled the start of a node while it waited for the others; no part of it runs
    any more.
    """


class LedgerError(LocalError):
    """An error of a ledger's database; the transaction was rolled back."""


class LedgerUnavailableError(LedgerError):
    """A ledger's database is unreachable, locked or full; the same work can be retried later."""


class LedgerSchemaError(LedgerError):
    """The tables of the database are not those of a ledger, or of another version; they were not
    changed.
    """


class MessageIdError(LocalError):
    """A record's message id is missing, too long or of a wrong type; its batch was not
    processed.
    """


class ConsumerError(LocalError):
    """The records could not be read, and no record was processed.

    The next call continues at the positions in the ledger.
    """


class DataLossError(LocalError):
    """The log no longer has records that were not processed; the positions in the ledger were not
    changed.
    """


class ClosedError(LocalError):
    """The object was closed."""


class ForkedError(ClosedError):
    """The object belongs to the parent process; a forked child must create its own."""


class UsageError(Exception):
    """A bug in the caller: arguments or an order of calls that make no sense."""


class UnknownServerError(KafkaError, code=-1, name="UNKNOWN_SERVER_ERROR"):
    """The broker met an unexpected error."""


class OffsetOutOfRangeError(KafkaError, code=1, name="OFFSET_OUT_OF_RANGE"):
    """The offset lies outside the log."""


class CorruptMessageError(KafkaError, code=2, name="CORRUPT_MESSAGE", retriable=True):
    """A record batch is damaged: its checksum, size or format is wrong."""


class UnknownTopicOrPartitionError(
    KafkaError, code=3, name="UNKNOWN_TOPIC_OR_PARTITION", retriable=True, refresh_metadata=True
):
    """This broker does not host the topic or partition."""


class InvalidFetchSizeError(KafkaError, code=4, name="INVALID_FETCH_SIZE"):
    """The fetch size is not valid."""


class LeaderNotAvailableError(
    KafkaError, code=5, name="LEADER_NOT_AVAILABLE", retriable=True, refresh_metadata=True
):
    """The partition has no leader at present."""


class NotLeaderOrFollowerError(
    KafkaError, code=6, name="NOT_LEADER_OR_FOLLOWER", retriable=True, refresh_metadata=True
):
    """This broker is not the leader, or not a replica, of the partition."""


class RequestTimedOutError(KafkaError, code=7, name="REQUEST_TIMED_OUT", retriable=True):
    """The time allowed for the request ran out."""


class BrokerNotAvailableError(KafkaError, code=8, name="BROKER_NOT_AVAILABLE"):
    """The broker is stopping, or another node has no live connection to it."""


class ReplicaNotAvailableError(
    KafkaError, code=9, name="REPLICA_NOT_AVAILABLE", retriable=True, refresh_metadata=True
):
    """The requested replica does not exist, or is offline."""


class MessageTooLargeError(KafkaError, code=10, name="MESSAGE_TOO_LARGE"):
    """A record batch is larger than the broker or topic accepts."""


class StaleControllerEpochError(KafkaError, code=11, name="STALE_CONTROLLER_EPOCH"):
    """The controller epoch of the request is old."""


class OffsetMetadataTooLargeError(KafkaError, code=12, name="OFFSET_METADATA_TOO_LARGE"):
    """The metadata stored with an offset is too long."""


class NetworkError(
    KafkaError, code=13, name="NETWORK_EXCEPTION", retriable=True, refresh_metadata=True
):
    """The connection broke before the response came."""


class CoordinatorLoadInProgressError(
    KafkaError, code=14, name="COORDINATOR_LOAD_IN_PROGRESS", retriable=True
):
    """The coordinator is still loading its state."""


class CoordinatorNotAvailableError(
    KafkaError, code=15, name="COORDINATOR_NOT_AVAILABLE", retriable=True
):
    """No coordinator is available."""


class NotCoordinatorError(KafkaError, code=16, name="NOT_COORDINATOR", retriable=True):
    """This broker is not the coordinator."""


class InvalidTopicError(KafkaError, code=17, name="INVALID_TOPIC_EXCEPTION"):
    """The topic's name is illegal, or the topic does not allow the operation."""


class RecordListTooLargeError(KafkaError, code=18, name="RECORD_LIST_TOO_LARGE"):
    """The record batch is larger than a segment may be."""


class NotEnoughReplicasError(KafkaError, code=19, name="NOT_ENOUGH_REPLICAS", retriable=True):
    """Fewer replicas are in sync than min.insync.replicas asks; nothing was appended."""


class NotEnoughReplicasAfterAppendError(
    KafkaError, code=20, name="NOT_ENOUGH_REPLICAS_AFTER_APPEND", retriable=True
):
    """The records were appended, but then fewer replicas were in sync than asked."""


class InvalidRequiredAcksError(KafkaError, code=21, name="INVALID_REQUIRED_ACKS"):
    """acks must be -1, 0 or 1."""


class IllegalGenerationError(KafkaError, code=22, name="ILLEGAL_GENERATION"):
    """The generation is not the group's current one."""


class InconsistentGroupProtocolError(KafkaError, code=23, name="INCONSISTENT_GROUP_PROTOCOL"):
    """The member shares no protocol with the group."""


class InvalidGroupIdError(KafkaError, code=24, name="INVALID_GROUP_ID"):
    """The group id is not valid."""


class UnknownMemberIdError(KafkaError, code=25, name="UNKNOWN_MEMBER_ID"):
    """The group does not know this member."""


class InvalidSessionTimeoutError(KafkaError, code=26, name="INVALID_SESSION_TIMEOUT"):
    """The session timeout lies outside the bounds that the broker allows."""


class RebalanceInProgressError(KafkaError, code=27, name="REBALANCE_IN_PROGRESS"):
    """The group rebalances; the member has to join again."""


class InvalidCommitOffsetSizeError(KafkaError, code=28, name="INVALID_COMMIT_OFFSET_SIZE"):
    """The offsets to commit are too large."""


class TopicAuthorizationFailedError(KafkaError, code=29, name="TOPIC_AUTHORIZATION_FAILED"):
    """Not authorized for the topic."""


class GroupAuthorizationFailedError(KafkaError, code=30, name="GROUP_AUTHORIZATION_FAILED"):
    """Not authorized for the group."""


class ClusterAuthorizationFailedError(KafkaError, code=31, name="CLUSTER_AUTHORIZATION_FAILED"):
    """Not authorized for the cluster."""


class InvalidTimestampError(KafkaError, code=32, name="INVALID_TIMESTAMP"):
    """The timestamp of a record is outside what the topic accepts."""


class UnsupportedSaslMechanismError(KafkaError, code=33, name="UNSUPPORTED_SASL_MECHANISM"):
    """The broker does not offer this SASL mechanism."""


class IllegalSaslStateError(KafkaError, code=34, name="ILLEGAL_SASL_STATE"):
    """The request does not fit the state of the SASL conversation."""


class UnsupportedVersionError(KafkaError, code=35, name="UNSUPPORTED_VERSION"):
    """The broker does not support this version of the API."""


class TopicAlreadyExistsError(KafkaError, code=36, name="TOPIC_ALREADY_EXISTS"):
    """A topic with this name exists."""


class InvalidPartitionsError(KafkaError, code=37, name="INVALID_PARTITIONS"):
    """The number of partitions is not valid."""


class InvalidReplicationFactorError(KafkaError, code=38, name="INVALID_REPLICATION_FACTOR"):
    """The replication factor is below 1 or above the number of brokers."""


class InvalidReplicaAssignmentError(KafkaError, code=39, name="INVALID_REPLICA_ASSIGNMENT"):
    """The replica assignment is not valid."""


class InvalidConfigError(KafkaError, code=40, name="INVALID_CONFIG"):
    """A setting is not valid."""


class NotControllerError(KafkaError, code=41, name="NOT_CONTROLLER", retriable=True):
    """This node is not the active controller."""


class InvalidRequestError(KafkaError, code=42, name="INVALID_REQUEST"):
    """The request contradicts itself or the protocol."""


class UnsupportedForMessageFormatError(KafkaError, code=43, name="UNSUPPORTED_FOR_MESSAGE_FORMAT"):
    """The record format does not support the request."""


class PolicyViolationError(KafkaError, code=44, name="POLICY_VIOLATION"):
    """The request violates a policy of the cluster."""


class OutOfOrderSequenceNumberError(KafkaError, code=45, name="OUT_OF_ORDER_SEQUENCE_NUMBER"):
    """The sequence number does not follow the producer's last one."""


class DuplicateSequenceNumberError(KafkaError, code=46, name="DUPLICATE_SEQUENCE_NUMBER"):
    """The sequence number was used before."""


class InvalidProducerEpochError(KafkaError, code=47, name="INVALID_PRODUCER_EPOCH"):
    """The producer's epoch is older than the current one."""


class InvalidTxnStateError(KafkaError, code=48, name="INVALID_TXN_STATE"):
    """The transaction's state does not allow the operation."""


class InvalidProducerIdMappingError(KafkaError, code=49, name="INVALID_PRODUCER_ID_MAPPING"):
    """The producer id does not belong to the transactional id."""


class InvalidTransactionTimeoutError(KafkaError, code=50, name="INVALID_TRANSACTION_TIMEOUT"):
    """The transaction timeout is larger than the broker allows."""


class ConcurrentTransactionsError(
    KafkaError, code=51, name="CONCURRENT_TRANSACTIONS", retriable=True
):
    """Another operation on the same transaction is still running."""


class TransactionCoordinatorFencedError(KafkaError, code=52, name="TRANSACTION_COORDINATOR_FENCED"):
    """The sender of the transaction markers is no longer the coordinator."""


class TransactionalIdAuthorizationFailedError(
    KafkaError, code=53, name="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
):
    """Not authorized for the transactional id."""


class SecurityDisabledError(KafkaError, code=54, name="SECURITY_DISABLED"):
    """Security features are off."""


class OperationNotAttemptedError(KafkaError, code=55, name="OPERATION_NOT_ATTEMPTED"):
    """The operation was not tried because another one of the request failed."""


class KafkaStorageError(
    KafkaError, code=56, name="KAFKA_STORAGE_ERROR", retriable=True, refresh_metadata=True
):
    """The log cannot be read or written: an earlier disk error closed it."""


class LogDirNotFoundError(KafkaError, code=57, name="LOG_DIR_NOT_FOUND"):
    """The log directory is not one of the broker's."""


class SaslAuthenticationFailedError(KafkaError, code=58, name="SASL_AUTHENTICATION_FAILED"):
    """The credentials are wrong, or the SASL exchange broke its protocol."""


class UnknownProducerIdError(KafkaError, code=59, name="UNKNOWN_PRODUCER_ID"):
    """The broker knows nothing of this producer id."""


class ReassignmentInProgressError(KafkaError, code=60, name="REASSIGNMENT_IN_PROGRESS"):
    """A reassignment of the partition is in progress."""


class DelegationTokenAuthDisabledError(KafkaError, code=61, name="DELEGATION_TOKEN_AUTH_DISABLED"):
    """Delegation tokens are not enabled."""


class DelegationTokenNotFoundError(KafkaError, code=62, name="DELEGATION_TOKEN_NOT_FOUND"):
    """The delegation token does not exist."""


class DelegationTokenOwnerMismatchError(
    KafkaError, code=63, name="DELEGATION_TOKEN_OWNER_MISMATCH"
):
    """The principal neither owns nor may renew the delegation token."""


class DelegationTokenRequestNotAllowedError(
    KafkaError, code=64, name="DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
):
    """Delegation tokens cannot be requested over this kind of connection."""


class DelegationTokenAuthorizationFailedError(
    KafkaError, code=65, name="DELEGATION_TOKEN_AUTHORIZATION_FAILED"
):
    """Not authorized for the delegation token."""


class DelegationTokenExpiredError(KafkaError, code=66, name="DELEGATION_TOKEN_EXPIRED"):
    """The delegation token was not renewed before its expiry time."""


class InvalidPrincipalTypeError(KafkaError, code=67, name="INVALID_PRINCIPAL_TYPE"):
    """The principal type is not supported."""


class NonEmptyGroupError(KafkaError, code=68, name="NON_EMPTY_GROUP"):
    """The group still has members."""


class GroupIdNotFoundError(KafkaError, code=69, name="GROUP_ID_NOT_FOUND"):
    """The group does not exist."""


class FetchSessionIdNotFoundError(
    KafkaError, code=70, name="FETCH_SESSION_ID_NOT_FOUND", retriable=True
):
    """The fetch session does not exist."""


class InvalidFetchSessionEpochError(
    KafkaError, code=71, name="INVALID_FETCH_SESSION_EPOCH", retriable=True
):
    """The fetch session's epoch does not follow the last one."""


class ListenerNotFoundError(
    KafkaError, code=72, name="LISTENER_NOT_FOUND", retriable=True, refresh_metadata=True
):
    """The leader has no listener of the name this request came in by."""


class TopicDeletionDisabledError(KafkaError, code=73, name="TOPIC_DELETION_DISABLED"):
    """Deleting topics is disabled (delete.topic.enable)."""


class FencedLeaderEpochError(
    KafkaError, code=74, name="FENCED_LEADER_EPOCH", retriable=True, refresh_metadata=True
):
    """The leader epoch of the request is older than the broker's."""


class UnknownLeaderEpochError(KafkaError, code=75, name="UNKNOWN_LEADER_EPOCH", retriable=True):
    """The leader epoch of the request is newer than the broker's."""


class UnsupportedCompressionTypeError(KafkaError, code=76, name="UNSUPPORTED_COMPRESSION_TYPE"):
    """The compression codec is not supported in this version of the API."""


class StaleBrokerEpochError(KafkaError, code=77, name="STALE_BROKER_EPOCH"):
    """The broker epoch is not the current one."""


class OffsetNotAvailableError(KafkaError, code=78, name="OFFSET_NOT_AVAILABLE", retriable=True):
    """The high watermark has not caught up since the last election."""


class MemberIdRequiredError(KafkaError, code=79, name="MEMBER_ID_REQUIRED"):
    """The member has to join again with the member id it was given."""


class PreferredLeaderNotAvailableError(
    KafkaError,
    code=80,
    name="PREFERRED_LEADER_NOT_AVAILABLE",
    retriable=True,
    refresh_metadata=True,
):
    """The first replica of the assignment is offline or not in sync, so it cannot lead."""


class GroupMaxSizeReachedError(KafkaError, code=81, name="GROUP_MAX_SIZE_REACHED"):
    """The group is full."""


class FencedInstanceIdError(KafkaError, code=82, name="FENCED_INSTANCE_ID"):
    """Another member registered with the same group instance id."""


class EligibleLeadersNotAvailableError(
    KafkaError,
    code=83,
    name="ELIGIBLE_LEADERS_NOT_AVAILABLE",
    retriable=True,
    refresh_metadata=True,
):
    """No eligible leader is available."""


class ElectionNotNeededError(
    KafkaError, code=84, name="ELECTION_NOT_NEEDED", retriable=True, refresh_metadata=True
):
    """The partition needs no election."""


class NoReassignmentInProgressError(KafkaError, code=85, name="NO_REASSIGNMENT_IN_PROGRESS"):
    """No reassignment of the partition is in progress."""


class GroupSubscribedToTopicError(KafkaError, code=86, name="GROUP_SUBSCRIBED_TO_TOPIC"):
    """A member of the group uses the topic, so its offsets cannot be deleted."""


class InvalidRecordError(KafkaError, code=87, name="INVALID_RECORD"):
    """A record failed the broker's validation."""


class UnstableOffsetCommitError(KafkaError, code=88, name="UNSTABLE_OFFSET_COMMIT", retriable=True):
    """An offset is part of an open transaction."""


class ThrottlingQuotaExceededError(
    KafkaError, code=89, name="THROTTLING_QUOTA_EXCEEDED", retriable=True
):
    """The client exceeds its quota for changes of topics; retry after the throttle time."""


class ProducerFencedError(KafkaError, code=90, name="PRODUCER_FENCED"):
    """A newer producer with the same transactional id took over."""


class ResourceNotFoundError(KafkaError, code=91, name="RESOURCE_NOT_FOUND"):
    """The resource does not exist."""


class DuplicateResourceError(KafkaError, code=92, name="DUPLICATE_RESOURCE"):
    """The request names a resource twice."""


class UnacceptableCredentialError(KafkaError, code=93, name="UNACCEPTABLE_CREDENTIAL"):
    """The credential does not meet the criteria."""


class InconsistentVoterSetError(KafkaError, code=94, name="INCONSISTENT_VOTER_SET"):
    """The voter sets of sender and receiver differ."""


class InvalidUpdateVersionError(KafkaError, code=95, name="INVALID_UPDATE_VERSION"):
    """The feature level is not valid."""


class FeatureUpdateFailedError(KafkaError, code=96, name="FEATURE_UPDATE_FAILED"):
    """The finalized features could not be updated."""


class PrincipalDeserializationFailureError(
    KafkaError, code=97, name="PRINCIPAL_DESERIALIZATION_FAILURE"
):
    """The forwarded principal cannot be decoded."""


class SnapshotNotFoundError(KafkaError, code=98, name="SNAPSHOT_NOT_FOUND"):
    """The snapshot does not exist."""


class PositionOutOfRangeError(KafkaError, code=99, name="POSITION_OUT_OF_RANGE"):
    """The position lies outside the snapshot."""


class UnknownTopicIdError(
    KafkaError, code=100, name="UNKNOWN_TOPIC_ID", retriable=True, refresh_metadata=True
):
    """This broker does not host a topic of this id."""


class DuplicateBrokerRegistrationError(KafkaError, code=101, name="DUPLICATE_BROKER_REGISTRATION"):
    """Another broker uses this broker id."""


class BrokerIdNotRegisteredError(KafkaError, code=102, name="BROKER_ID_NOT_REGISTERED"):
    """The controller has no registration of this broker id."""


class InconsistentTopicIdError(
    KafkaError, code=103, name="INCONSISTENT_TOPIC_ID", retriable=True, refresh_metadata=True
):
    """The topic id differs from the one of the log."""


class InconsistentClusterIdError(KafkaError, code=104, name="INCONSISTENT_CLUSTER_ID"):
    """The cluster id is not this cluster's."""


class TransactionalIdNotFoundError(KafkaError, code=105, name="TRANSACTIONAL_ID_NOT_FOUND"):
    """The transactional id does not exist."""


class FetchSessionTopicIdError(
    KafkaError, code=106, name="FETCH_SESSION_TOPIC_ID_ERROR", retriable=True
):
    """The fetch session mixes topic names and topic ids."""


class IneligibleReplicaError(KafkaError, code=107, name="INELIGIBLE_REPLICA"):
    """The new ISR holds a replica that is not eligible."""


class NewLeaderElectedError(KafkaError, code=108, name="NEW_LEADER_ELECTED"):
    """The ISR was changed, and with it the leader."""


class OffsetMovedToTieredStorageError(KafkaError, code=109, name="OFFSET_MOVED_TO_TIERED_STORAGE"):
    """The records at the offset are only in tiered storage."""


class FencedMemberEpochError(KafkaError, code=110, name="FENCED_MEMBER_EPOCH"):
    """The member was fenced; it must release its partitions and join again."""


class UnreleasedInstanceIdError(KafkaError, code=111, name="UNRELEASED_INSTANCE_ID"):
    """Another member still uses the instance id."""


class UnsupportedAssignorError(KafkaError, code=112, name="UNSUPPORTED_ASSIGNOR"):
    """The group does not support the assignor."""


class StaleMemberEpochError(KafkaError, code=113, name="STALE_MEMBER_EPOCH"):
    """The member epoch is old."""


class MismatchedEndpointTypeError(KafkaError, code=114, name="MISMATCHED_ENDPOINT_TYPE"):
    """The request reached the wrong kind of endpoint."""


class UnsupportedEndpointTypeError(KafkaError, code=115, name="UNSUPPORTED_ENDPOINT_TYPE"):
    """This kind of endpoint is not supported."""


class UnknownControllerIdError(KafkaError, code=116, name="UNKNOWN_CONTROLLER_ID"):
    """The controller id is not known."""


class UnknownSubscriptionIdError(KafkaError, code=117, name="UNKNOWN_SUBSCRIPTION_ID"):
    """The telemetry subscription does not exist."""


class TelemetryTooLargeError(KafkaError, code=118, name="TELEMETRY_TOO_LARGE"):
    """The telemetry data is larger than the broker accepts."""


class InvalidRegistrationError(KafkaError, code=119, name="INVALID_REGISTRATION"):
    """The controller refused the registration."""


class TransactionAbortableError(KafkaError, code=120, name="TRANSACTION_ABORTABLE"):
    """The transaction failed; the producer may abort it and continue."""


class InvalidRecordStateError(KafkaError, code=121, name="INVALID_RECORD_STATE"):
    """The record's delivery state does not allow the acknowledgement."""


class ShareSessionNotFoundError(
    KafkaError, code=122, name="SHARE_SESSION_NOT_FOUND", retriable=True
):
    """The share session does not exist."""


class InvalidShareSessionEpochError(
    KafkaError, code=123, name="INVALID_SHARE_SESSION_EPOCH", retriable=True
):
    """The share session's epoch does not follow the last one."""


class FencedStateEpochError(KafkaError, code=124, name="FENCED_STATE_EPOCH"):
    """The state epoch of the share group is old."""


class InvalidVoterKeyError(KafkaError, code=125, name="INVALID_VOTER_KEY"):
    """The voter's key differs from the replica's."""


class DuplicateVoterError(KafkaError, code=126, name="DUPLICATE_VOTER"):
    """The voter is already in the voter set."""


class VoterNotFoundError(KafkaError, code=127, name="VOTER_NOT_FOUND"):
    """The voter is not in the voter set."""


class InvalidRegularExpressionError(KafkaError, code=128, name="INVALID_REGULAR_EXPRESSION"):
    """The regular expression is not valid."""


class RebootstrapRequiredError(KafkaError, code=129, name="REBOOTSTRAP_REQUIRED"):
    """The client's metadata is too old; it has to bootstrap again."""


class StreamsInvalidTopologyError(KafkaError, code=130, name="STREAMS_INVALID_TOPOLOGY"):
    """The topology is not valid."""


class StreamsInvalidTopologyEpochError(KafkaError, code=131, name="STREAMS_INVALID_TOPOLOGY_EPOCH"):
    """The epoch of the topology is not valid."""


class StreamsTopologyFencedError(KafkaError, code=132, name="STREAMS_TOPOLOGY_FENCED"):
    """The epoch of the topology is old."""


class ShareSessionLimitReachedError(
    KafkaError, code=133, name="SHARE_SESSION_LIMIT_REACHED", retriable=True
):
    """The broker has no room for another share session."""


class GroupDeletionFailedError(KafkaError, code=134, name="GROUP_DELETION_FAILED"):
    """The group was not deleted; the message of its result has the reason."""


class StreamsTopologyDescriptionUpdateFailedError(
    KafkaError, code=135, name="STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED"
):
    """The description of the topology was not stored; the message has the reason."""


class ControllerIdNotRegisteredError(KafkaError, code=136, name="CONTROLLER_ID_NOT_REGISTERED"):
    """No controller of this id is registered."""
