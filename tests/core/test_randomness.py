import numpy as np
import pytest

from fcorr._core import InvalidInputError, draw_seed


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1, np.int64(7), np.uint8(7)])
def test_integer_is_its_own_seed(seed):
    assert draw_seed(seed) == int(seed)
    assert type(draw_seed(seed)) is int


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generator_gives_its_next_draw(make):
    generator = make(3)
    first, second = draw_seed(generator), draw_seed(generator)
    assert first != second
    assert draw_seed(make(3)) == first
    assert 0 <= first < 2**32


def test_none_asks_the_operating_system():
    np.random.seed(0)  # noqa: NPY002
    first = draw_seed(None)
    np.random.seed(0)  # noqa: NPY002
    assert draw_seed(None) != first
    assert 0 <= first < 2**32


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_integer_out_of_range(seed):
    with pytest.raises(InvalidInputError, match=rf"random_state .*\[0, 2\*\*32\), got {seed}\."):
        draw_seed(seed)


@pytest.mark.parametrize("value", [1.0, True, "1", [1], np.random.SeedSequence(0)])
def test_other_kinds(value):
    kind = type(value).__name__
    with pytest.raises(InvalidInputError, match=rf"random_state must be an integer.*got {kind}"):
        draw_seed(value)
