"""IncrementalAlterConfigs (44): contract/kafka.md#38, #68.

``ConfigurationControlManager`` in Kafka.
"""

from pykafka_core.handlers.configs.changes import Operation, plan_all, records_of
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite, Work, collect
from pykafka_core.protocol.messages import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def handle(context: Context, request: IncrementalAlterConfigsRequest) -> Work[MetadataWrite]:
    """Plan each resource separately; an error of one does not affect the others."""
    plans = yield from plan_all(context, request.resources, _operation, replace=False)

    def reply(code: int) -> Work[IncrementalAlterConfigsResponse]:
        responses = yield from collect(
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                **plan.outcome(code)._asdict()
            )
            for plan in plans
        )
        return IncrementalAlterConfigsResponse(responses=responses)

    records = yield from records_of(context, plans)
    return MetadataWrite([] if request.validate_only else records, reply)


def _operation(config: IncrementalAlterConfigsRequest.AlterableConfig) -> Operation:
    return Operation(config.name, config.config_operation, config.value)
