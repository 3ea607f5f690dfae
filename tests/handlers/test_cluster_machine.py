"""The controller's rules together, in histories that nobody chose."""

from hypothesis import settings

from tests.handlers.cluster_machine import ClusterMachine

TestClusterMachine = ClusterMachine.TestCase
TestClusterMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
