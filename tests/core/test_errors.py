import numpy as np
import pytest

from fcorr._core import (
    InvalidInputError,
    ModelFileError,
    NotEstimableWarning,
    UnseenCategoryWarning,
    enumerate_some,
    near_match,
)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("agee", ["sex", "age"], " Did you mean 'age'?"),
        ("Age", ["sex", "age"], " Did you mean 'age'?"),
        ("income", ["age", "sex"], ""),
        ("age", [], ""),
        ("12", [1, 12, 123], " Did you mean '12'?"),
    ],
)
def test_near_match(name, options, expected):
    assert near_match(name, options) == expected


def test_near_match_names_the_nearest_of_several():
    assert near_match("incom", ["income_2019", "income", "outcome"]) == " Did you mean 'income'?"


@pytest.mark.parametrize(
    ("items", "limit", "expected"),
    [
        ([], 5, ""),
        (["a"], 5, "'a'"),
        (["a", "b"], 2, "'a', 'b'"),
        (["a", "b", "c", "d"], 2, "'a', 'b' and 2 more"),
        ((i for i in range(3)), 2, "0, 1 and 1 more"),
        (np.array(["x", "y"]), 5, "'x', 'y'"),
        (np.array([1, 2]), 5, "1, 2"),
    ],
)
def test_enumerate_some(items, limit, expected):
    assert enumerate_some(items, limit) == expected


@pytest.mark.parametrize("error", [InvalidInputError, ModelFileError])
def test_errors_are_value_errors(error):
    assert issubclass(error, ValueError)


@pytest.mark.parametrize("warning", [UnseenCategoryWarning, NotEstimableWarning])
def test_warnings_are_user_warnings(warning):
    assert issubclass(warning, UserWarning)
