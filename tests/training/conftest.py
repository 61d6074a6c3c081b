import pytest

from tests.tables import make_people, make_targets


@pytest.fixture(scope="session")
def table():
    """A small table with a sensitive column, and a target that goes with it in part."""
    X = make_people()
    return X, make_targets(X)["two classes"]
