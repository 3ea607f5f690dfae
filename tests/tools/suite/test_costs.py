"""A test that starts something expensive fails without the marker of its cost."""

import pytest

pytest_plugins = ["pytester"]

FUNCTIONS = """
import pytest
from tests.support.costs import charge

def test_unmarked():
    charge("jvm")

@pytest.mark.jvm
def test_marked():
    charge("jvm")

@pytest.mark.spark
def test_marked_with_another_cost():
    charge("jvm")
"""

SHARED = """
import pytest
from tests.support.costs import charge

@pytest.fixture(scope="module", params=["cheap", "expensive"])
def client(request):
    if request.param == "expensive":
        charge("jvm")
    return request.param

@pytest.fixture(scope="module")
def server(request):
    charge("cluster")

@pytest.mark.jvm
def test_marked(client):
    pass

def test_unmarked(client):
    pass

@pytest.mark.cluster
def test_that_pays(server):
    pass

def test_that_requests_it_later(server):
    pass
"""

BY_FIXTURE = """
import pytest

@pytest.fixture(scope="session")
def postgres_server():
    return 1

@pytest.fixture
def postgres_dsn(postgres_server):
    return 2

def test_of_the_database(postgres_dsn):
    pass

def test_of_nothing():
    pass
"""


@pytest.fixture
def inner(pytester: pytest.Pytester) -> pytest.Pytester:
    """A separate project whose tests are checked."""
    markers = "\n".join(f"  {name}" for name in ("spark", "jvm", "postgres", "cluster"))
    pytester.makeini(f"[pytest]\naddopts = --strict-markers\nmarkers =\n{markers}\n")
    return pytester


def run(inner: pytest.Pytester, code: str, *options: str) -> pytest.RunResult:
    inner.makepyfile(test_it=code)
    quick = ("-p", "no:xdist", "-p", "no:cacheprovider", "-p", "tests.support.costs", "-v")
    return inner.runpytest_inprocess(*quick, *options)


def test_a_charge_needs_its_own_marker(inner: pytest.Pytester) -> None:
    result = run(inner, FUNCTIONS)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "E * test_it.py::test_unmarked starts a JVM: mark it with pytest.mark.jvm",
            "E * test_it.py::test_marked_with_another_cost starts a JVM: mark it with *.jvm",
        ]
    )


def test_every_test_that_requests_an_expensive_fixture_needs_the_marker(
    inner: pytest.Pytester,
) -> None:
    result = run(inner, SHARED)
    result.assert_outcomes(passed=4, errors=2)
    result.stdout.fnmatch_lines(
        [
            "E * test_it.py::test_unmarked[[]expensive[]] starts a JVM: *",
            "E * test_it.py::test_that_requests_it_later starts several broker processes: *",
        ]
    )


def test_fixtures_of_a_known_cost_add_the_marker(inner: pytest.Pytester) -> None:
    result = run(inner, BY_FIXTURE, "-m", "postgres")
    result.assert_outcomes(passed=1, deselected=1)


def test_a_test_that_runs_pytest_still_pays_for_itself(
    inner: pytest.Pytester, request: pytest.FixtureRequest
) -> None:
    from tests.support import costs

    run(inner, FUNCTIONS)
    with pytest.raises(AssertionError, match=r"test_costs\.py::test_a_test_that_runs_pytest"):
        costs.charge("wheel")
    assert request.node.get_closest_marker("wheel") is None
