"""UnregisterController, with the responses of Apache Kafka 4.4.0."""

import pytest

from pykafka_core.protocol.messages import (
    FeatureLevelRecord,
    RegisterControllerRecord,
    UnregisterControllerRequest,
    UnregisterControllerResponse,
)
from tests.handlers.cluster_world import CONTROLLER, NOT_CONTROLLER, ClusterWorld

GONE = 2


def unregister(world: ClusterWorld, controller_id: int, code: int = 0) -> tuple[int, str | None]:
    response = world.ask(UnregisterControllerRequest(controller_id=controller_id), code=code)
    assert isinstance(response, UnregisterControllerResponse)
    return response.error_code, response.error_message


@pytest.fixture
def world() -> ClusterWorld:
    world = ClusterWorld()
    world.commit(
        FeatureLevelRecord(name="metadata.version", feature_level=33),
        *(RegisterControllerRecord(controller_id=node) for node in (CONTROLLER, GONE)),
    )
    return world


def test_stopped_controller_is_unregistered(world: ClusterWorld) -> None:
    assert unregister(world, GONE) == (0, None)
    assert world.image.controllers.keys() == {CONTROLLER}
    text = "Controller ID 2 is not currently registered."
    assert unregister(world, GONE) == (136, text)


def test_active_controller_cannot_be_unregistered(world: ClusterWorld) -> None:
    text = "Controller cannot unregister itself while it is active."
    assert unregister(world, CONTROLLER) == (42, text)
    assert CONTROLLER in world.image.controllers


def test_unregistration_fails_at_an_older_metadata_version(world: ClusterWorld) -> None:
    world.commit(FeatureLevelRecord(name="metadata.version", feature_level=32))
    text = "The current MetadataVersion is too old to support controller unregistration."
    assert unregister(world, GONE) == (35, text)
    assert GONE in world.image.controllers


def test_uncommitted_unregistration_returns_an_error(world: ClusterWorld) -> None:
    code, text = unregister(world, GONE, code=NOT_CONTROLLER)
    assert (code, bool(text)) == (NOT_CONTROLLER, True)
    assert GONE in world.image.controllers
