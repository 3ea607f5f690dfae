"""AlterConfigs (33): replaces all configs of a resource; contract/kafka.md#38."""

from pykafka_core.handlers.configs.changes import SET, Operation, plan_all, records_of
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite, Work, collect
from pykafka_core.protocol.messages import AlterConfigsRequest, AlterConfigsResponse


def handle(context: Context, request: AlterConfigsRequest) -> Work[MetadataWrite]:
    """Plan each resource separately; a config that the request leaves out is removed."""
    plans = yield from plan_all(context, request.resources, _operation, replace=True)

    def reply(code: int) -> Work[AlterConfigsResponse]:
        responses = yield from collect(
            AlterConfigsResponse.AlterConfigsResourceResponse(**plan.outcome(code)._asdict())
            for plan in plans
        )
        return AlterConfigsResponse(responses=responses)

    records = yield from records_of(context, plans)
    return MetadataWrite([] if request.validate_only else records, reply)


def _operation(config: AlterConfigsRequest.AlterableConfig) -> Operation:
    return Operation(config.name, SET, config.value)
