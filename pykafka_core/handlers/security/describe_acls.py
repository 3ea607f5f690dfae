"""DescribeAcls (29): the response without an authorizer; no authorizer is implemented.

``AclApis.handleDescribeAcls`` in Kafka.
"""

from pykafka_core.errors import SecurityDisabledError
from pykafka_core.handlers.context import Context
from pykafka_core.protocol.messages import DescribeAclsRequest, DescribeAclsResponse


def handle(_context: Context, _request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Return the error that there is no authorizer."""
    return DescribeAclsResponse(
        error_code=SecurityDisabledError.code,
        error_message="No Authorizer is configured on the broker",
        resources=[],
    )
