"""The guard of attributes that are assigned on objects of other modules."""

from pathlib import Path

import pytest

from tests.tools.module_trees import write_tree
from tools.guards.figures import Measure
from tools.guards.foreign_attributes import measure

HOOKS = {  # an assignment that is found, and the same statement on an object of the file
    "jobs.propose = self.take": "job.used_ns = 0",
    "self._requests.reserve = begin": "self._job.used_ns = 0",
    "jobs.propose: object = self.take": "job.used_ns: int = 0",
    "jobs.count += 1": "job.used_ns += 1",
    "jobs.propose, x = self.take, 1": "job.used_ns, x = 0, 1",
    "for jobs.propose in (): pass": "for job.first in (): pass",
    "self._parts[0].membership = self": "self._parts[0].last = self",
    "contexts().active = None": "jobs.run()",
    "Jobs.propose = self.take": "_Job.used_ns = 0",
}

SOURCE = """\
class _Job:
    first: int
    last = None

    def __init__(self):
        self.used_ns = 0


class Component:
    def __init__(self, jobs, job):
        self._requests = jobs.requests
        {statement}
"""


def _measured(root: Path, path: str, statement: str) -> Measure:
    (found,) = measure(write_tree(root, {path: SOURCE.format(statement=statement)}))
    return found


@pytest.mark.parametrize("statement", HOOKS)
def test_an_attribute_of_another_module_is_found(tmp_path: Path, statement: str) -> None:
    path = "pykafka_core/broker/runtime/a.py"
    found = _measured(tmp_path, path, statement)
    assert found.counts == {"pykafka_core/broker": 1}
    assert [(one.path, one.line) for one in found.findings["pykafka_core/broker"]] == [(path, 12)]


@pytest.mark.parametrize("statement", HOOKS.values())
def test_an_attribute_of_the_same_file_is_accepted(tmp_path: Path, statement: str) -> None:
    assert _measured(tmp_path, "pykafka_core/broker/a.py", statement).counts == {}


def test_other_packages_are_not_measured(tmp_path: Path) -> None:
    assert _measured(tmp_path, "pykafka_core/cli/a.py", "jobs.propose = self").counts == {}
