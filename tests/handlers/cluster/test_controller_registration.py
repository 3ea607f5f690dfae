"""ControllerRegistration: KIP-919."""

import pytest

from pykafka_core.metadata.image.image import Controller, Endpoint
from pykafka_core.protocol.messages import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from tests.handlers.cluster_world import NOT_CONTROLLER, ClusterWorld

INVALID_REQUEST = 42


def register(world: ClusterWorld, incarnation: int, code: int = 0) -> tuple[int, str | None]:
    listener = ControllerRegistrationRequest.Listener(name="CONTROLLER", host="c1", port=9093)
    feature = ControllerRegistrationRequest.Feature(
        name="metadata.version", min_supported_version=7, max_supported_version=29
    )
    request = ControllerRegistrationRequest(
        controller_id=1,
        incarnation_id=incarnation.to_bytes(16, "big"),
        listeners=[listener],
        features=[feature],
    )
    response = world.ask(request, code=code)
    assert isinstance(response, ControllerRegistrationResponse)
    return response.error_code, response.error_message


def test_new_process_replaces_the_previous_one() -> None:
    world = ClusterWorld()
    for incarnation in (7, 8):
        assert register(world, incarnation) == (0, None)
        assert world.image.controllers == {
            1: Controller(
                1,
                incarnation.to_bytes(16, "big"),
                (Endpoint("CONTROLLER", "c1", 9093),),
                {"metadata.version": (7, 29)},
            )
        }


def test_uncommitted_registration_returns_an_error() -> None:
    world = ClusterWorld()
    code, text = register(world, 7, code=NOT_CONTROLLER)
    assert (code, bool(text), world.image.controllers) == (NOT_CONTROLLER, True, {})


@pytest.mark.parametrize(
    ("controller_id", "hosts"),
    [(-1, ["h"]), (1, [""]), (1, ["a\nb"]), (1, ["h"] * 10_000)],
    ids=["id", "no host", "host", "listeners"],
)
def test_invalid_controller_id_or_host_is_rejected(controller_id: int, hosts: list[str]) -> None:
    world = ClusterWorld()
    of = ControllerRegistrationRequest
    listeners = [of.Listener(name=f"L{at}", host=host, port=1) for at, host in enumerate(hosts)]
    response = world.ask(
        of(controller_id=controller_id, incarnation_id=bytes(16), listeners=listeners, features=[])
    )
    assert isinstance(response, ControllerRegistrationResponse)
    assert response.error_code == INVALID_REQUEST
    assert world.image.controllers == {}
