"""ListConfigResources, with the responses of Apache Kafka 4.2.1."""

from pykafka_core.handlers.configs import list_config_resources
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import run_to_end
from pykafka_core.protocol.messages import ListConfigResourcesRequest
from tests.handlers.configs.config_world import new_context

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


def listed(context: Context, kinds: list[int]) -> tuple[int, list[tuple[int, str]]]:
    response = run_to_end(
        list_config_resources.handle(context, ListConfigResourcesRequest(resource_types=kinds))
    )
    return response.error_code, [
        (r.resource_type, r.resource_name) for r in response.config_resources
    ]


def test_resources_that_may_have_settings_are_listed() -> None:
    configs = {(GROUP, "g"): {"x": "1"}, (METRICS, "m"): {"interval.ms": "5000"}}
    context = new_context(configs)
    everything = [(GROUP, "g"), (METRICS, "m"), (LOGGER, "1"), (BROKER, "1"), (TOPIC, "t")]
    assert listed(context, []) == (0, everything)
    assert listed(context, [TOPIC, BROKER]) == (0, [(BROKER, "1"), (TOPIC, "t")])
    assert listed(context, [77]) == (35, [])
    assert listed(new_context(configs, api_version=0), []) == (0, [(METRICS, "m")])
