"""Partitions of the coordinators move to another, invisible node, and return in a later epoch."""

from typing import TYPE_CHECKING, Any

from pykafka_core.broker.runtime.coordinators.topic_shards import TopicShards
from pykafka_core.errors import NotCoordinatorError

if TYPE_CHECKING:
    from tests.simulation.world import World


class Leadership:
    """Removes shards from the broker and returns them, like a change of leaders in the image."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._away: list[tuple[TopicShards[Any], Any]] = []

    def change(self) -> None:
        """Return or remove one partition."""
        random = self._world.random
        if self._away and random.random() < 0.7:
            self._regain(random.randrange(len(self._away)))
        else:
            self._lose()

    def regain_all(self) -> None:
        """Return all removed partitions."""
        while self._away:
            self._regain(0)

    def _lose(self) -> None:
        world = self._world
        coordinators = world.broker.dispatcher._coordinators
        led = [
            (shards, index)
            for shards in (coordinators._groups, coordinators._transactions)
            for index in sorted(shards._hosts)
        ]
        if not led:
            return
        shards, index = world.random.choice(led)
        host = shards._hosts.pop(index)
        partition = (host.place.topic_id, host.place.partition)
        world.core.cut(partition, lambda held: world.random.randrange(held + 1))
        host.close(NotCoordinatorError.code)
        self._away.append((shards, host.place))

    def _regain(self, number: int) -> None:
        shards, place = self._away.pop(number)
        log = self._world.core.logs[place.topic_id, place.partition]
        log.leader_epoch += 1
        place = place._replace(leader_epoch=log.leader_epoch)
        shards._begin(place)
