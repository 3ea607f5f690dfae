"""IncrementalAlterConfigs (44): contract/kafka.md#38, #68; ``ConfigurationControlManager`` in Kafka."""

from pykafka_core.handlers.configs.changes import Asked, Operation, plan_all
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Propose, Slices, collect
from pykafka_core.protocol.messages import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def handle(context: Context, request: IncrementalAlterConfigsRequest) -> Slices[Propose]:
    """Plan each resource by itself; those that cannot be altered do not hinder the others."""
    asked = []
    for resource in request.resources:
        yield
        operations = yield from collect(
            Operation(config.name, config.config_operation, config.value)
            for config in resource.configs
        )
        asked.append(Asked(resource.resource_type, resource.resource_name, operations))
    plans = yield from plan_all(context, asked, replace=False)

    def reply(code: int) -> Slices[IncrementalAlterConfigsResponse]:
        responses = yield from collect(
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                **plan.outcome(code)._asdict()
            )
            for plan in plans
        )
        return IncrementalAlterConfigsResponse(responses=responses)

    records = [record for plan in plans for record in plan.records]
    return Propose([] if request.validate_only else records, reply)
