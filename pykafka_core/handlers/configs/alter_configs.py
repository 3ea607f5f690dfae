"""AlterConfigs (33): replaces all settings of a resource; contract/kafka.md#38."""

from collections.abc import Generator

from pykafka_core.handlers.configs.changes import SET, Asked, Operation, plan_all
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Propose
from pykafka_core.protocol.messages import AlterConfigsRequest, AlterConfigsResponse


def handle(context: Context, request: AlterConfigsRequest) -> Generator[None, None, Propose]:
    """Plan each resource by itself; what a resource has and the request leaves out is removed."""
    asked = [
        Asked(
            resource.resource_type,
            resource.resource_name,
            [Operation(config.name, SET, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    plans = yield from plan_all(context, asked, replace=True)

    def reply(code: int) -> AlterConfigsResponse:
        return AlterConfigsResponse(
            responses=[
                AlterConfigsResponse.AlterConfigsResourceResponse(**plan.outcome(code)._asdict())
                for plan in plans
            ]
        )

    records = [record for plan in plans for record in plan.records]
    return Propose([] if request.validate_only else records, reply)
