"""Shapley values by sampled orders: what a function changes by as features appear one by one."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcorr._core import check_argument, is_integer


def draw_orders(n_features: int, n_samples: int, seed: int) -> NDArray[np.intp]:
    """Draw orders of the features, in pairs: each is followed by its reverse."""
    way_out = "Orders come in pairs, and a standard error takes two of them; 20 is usual."
    fits = is_integer(n_samples, 4) and n_samples % 2 == 0
    check_argument("n_samples", n_samples, fits, "an even integer of at least 4", way_out)
    rng = np.random.default_rng(seed)
    drawn = [rng.permutation(n_features) for _ in range(n_samples // 2)]
    return np.array([order for one in drawn for order in (one, one[::-1])])


def share_out(
    appear: Callable[[list[int]], Iterator[NDArray[Any]]], orders: NDArray[np.intp]
) -> NDArray[Any]:
    """Share a function of rows out among features, by what it changes by as each appears.

    For an order of the features ``appear`` gives the function of the rows without any of them, and
    then with one more at a time: each ``(B, *)``. Of ``orders``, ``(n_orders, F)``, each second one
    is the reverse of the one before. Returns the mean of each pair: ``(n_orders / 2, B, F, *)``.
    """
    pairs = []
    for pair in orders.reshape(-1, 2, orders.shape[1]).tolist():
        parts: list[Any] = [0.0] * orders.shape[1]
        for order in pair:
            steps = appear(order)
            before = next(steps)
            for j, after in zip(order, steps, strict=True):
                parts[j] = parts[j] + (after - before) / 2
                before = after
        pairs.append(np.stack(parts, axis=1))
    return np.stack(pairs)
