"""One seed per run: an integer, drawn once, from which every generator is made."""

import numbers

import numpy as np

from fcorr._core.errors import InvalidInputError

RandomState = int | np.random.RandomState | np.random.Generator | None


def draw_seed(random_state: RandomState) -> int:
    """Turn scikit-learn's ``random_state`` into one integer seed.

    An integer is its own seed; a generator gives its next draw; ``None`` asks the operating system.
    """
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        if not 0 <= int(random_state) < 2**32:
            raise InvalidInputError(
                f"random_state must lie in [0, 2**32), got {random_state}. Choose another integer."
            )
        return int(random_state)
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**31 - 1))
    raise InvalidInputError(
        "random_state must be an integer, a numpy generator or None, "
        f"got {type(random_state).__name__} {random_state!r}. Pass an integer for a repeatable run."
    )
