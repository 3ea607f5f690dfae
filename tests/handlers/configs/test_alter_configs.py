"""AlterConfigs, with the responses of Apache Kafka 4.2.1."""

from pykafka_core.handlers.configs import alter_configs
from pykafka_core.handlers.outcome import run_to_end
from pykafka_core.protocol.messages import AlterConfigsRequest, AlterConfigsResponse, ConfigRecord
from tests.handlers.configs.config_world import new_context

TOPIC, LOGGER = 2, 8


def test_failed_append_fails_only_the_resources_in_it() -> None:
    asked = [("t", "5"), ("none", "5")]
    request = AlterConfigsRequest(
        resources=[
            AlterConfigsRequest.AlterConfigsResource(
                resource_type=TOPIC,
                resource_name=name,
                configs=[AlterConfigsRequest.AlterableConfig(name="retention.ms", value=value)],
            )
            for name, value in asked
        ]
    )
    reply = run_to_end(run_to_end(alter_configs.handle(new_context(), request)).reply(56))
    assert isinstance(reply, AlterConfigsResponse)
    assert [response.error_code for response in reply.responses] == [56, 3]


def test_alter_configs_replaces_all_settings_of_a_resource() -> None:
    context = new_context({(TOPIC, "t"): {"retention.ms": "1", "segment.ms": "100000"}})
    request = AlterConfigsRequest(
        resources=[
            AlterConfigsRequest.AlterConfigsResource(
                resource_type=TOPIC,
                resource_name="t",
                configs=[AlterConfigsRequest.AlterableConfig(name="retention.ms", value="25")],
            )
        ]
    )
    records = run_to_end(alter_configs.handle(context, request)).records
    changes = {r.name: r.value for r in records if isinstance(r, ConfigRecord)}
    assert changes == {"retention.ms": "25", "segment.ms": None}


def test_alter_configs_rejects_loggers() -> None:
    request = AlterConfigsRequest(
        resources=[
            AlterConfigsRequest.AlterConfigsResource(resource_type=LOGGER, resource_name="1")
        ]
    )
    reply = run_to_end(run_to_end(alter_configs.handle(new_context(), request)).reply(0))
    assert isinstance(reply, AlterConfigsResponse)
    assert reply.responses[0].error_message == "Unknown resource type 8"
