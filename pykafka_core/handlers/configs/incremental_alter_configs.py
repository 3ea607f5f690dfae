"""IncrementalAlterConfigs (44): contract/kafka.md#38, #68; ``ConfigurationControlManager`` in Kafka."""

from collections.abc import Generator

from pykafka_core.handlers.configs.changes import Asked, Operation, plan_all
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Propose
from pykafka_core.protocol.messages import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def handle(
    context: Context, request: IncrementalAlterConfigsRequest
) -> Generator[None, None, Propose]:
    """Plan each resource by itself; those that cannot be altered do not hinder the others."""
    asked = [
        Asked(
            resource.resource_type,
            resource.resource_name,
            [
                Operation(config.name, config.config_operation, config.value)
                for config in resource.configs
            ],
        )
        for resource in request.resources
    ]
    plans = yield from plan_all(context, asked, replace=False)

    def reply(code: int) -> IncrementalAlterConfigsResponse:
        return IncrementalAlterConfigsResponse(
            responses=[
                IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                    **plan.outcome(code)._asdict()
                )
                for plan in plans
            ]
        )

    records = [record for plan in plans for record in plan.records]
    return Propose([] if request.validate_only else records, reply)
