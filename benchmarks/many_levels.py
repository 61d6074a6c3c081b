"""Many levels: a category of thousands of texts, most of them rare, that matters."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtri

from fcorr._core import RandomState
from paper.generators import (
    begin,
    check_count,
    check_rate,
    codes_of,
    draw_categories,
    sigmoid,
    solve_intercept,
)

EMPLOYER_SD, EMPLOYER_SLOPE_SD = 1.0, 0.5
"""Standard deviations over the employers: of their effect, and of their part in that of income."""

_CATEGORIES = {
    "sex": (("female", "male"), (0.5, 0.5)),
    "channel": (("branch", "broker", "online", "phone"), (0.30, 0.20, 0.40, 0.10)),
    "purpose": (("car", "furniture", "renovation", "debt", "travel"), (0.3, 0.2, 0.2, 0.2, 0.1)),
}
# Effects on the log-odds of a default, in the order of the categories above.
_EFFECTS = {
    "sex": (0.0, 0.4),
    "channel": (0.0, 0.5, 0.2, 0.0),
    "purpose": (-0.3, 0.0, -0.2, 0.6, 0.3),
}


def make_many_levels(
    n_rows: int = 50_000,
    *,
    n_levels: int = 5_000,
    default_rate: float = 0.2,
    random_state: RandomState = None,
) -> tuple[pa.Table, NDArray[np.int64]]:
    """Draw loans to employees of thousands of employers, which matter for who pays back.

    Half of the rows belong to a few hundred employers, and most employers have a few rows or none:
    a model that takes each employer's own share of defaults at face value learns noise, one that
    leaves the column out misses the strongest feature. ``sex`` is the sensitive feature.

    Parameters
    ----------
    n_rows : int, default=50_000
        The number of loans.
    n_levels : int, default=5_000
        The number of employers, at least 2.
    default_rate : float, default=0.2
        The expected share of defaults. It moves the intercept only.
    random_state
        As in :func:`~paper.generators.make_bank_fraud`.

    Returns
    -------
    X : pyarrow.Table
        ``employer`` (``"E0001"``, the most frequent, and so on), ``sex``, ``channel`` and
        ``purpose`` are categorical, ``income``, ``debt`` and ``age`` numbers.
    y : ndarray of int64, shape (n_rows,)
        1 for a default.

    Notes
    -----
    **What is planted.** Employer number k has a share of the rows proportional to 1 / (k + 10), as
    in Zipf's law but for the first few. With x the standardised logarithm of income, whose mean is
    higher by half a standard deviation where ``sex`` is ``"male"``, the log-odds of a default are
    the sum of

    - the employer's effect: standard normal over the employers;
    - -0.6 x, and x times the employer's slope: normal over them, with standard deviation 0.5 and
      independent of the effect;
    - 0.5 ln(``debt``), and 0.4 where ``age`` is below 25 (a step);
    - ``channel`` broker 0.5, online 0.2; ``purpose`` car -0.3, renovation -0.2, travel 0.3, debt
      0.6;
    - the direct effect of the sensitive feature: 0.4 for ``"male"``.

    Employers are independent of all else. Their effects and slopes are the same for every
    `random_state`: two draws are samples of one population.

    Examples
    --------
    >>> X, y = make_many_levels(1_000, random_state=0)
    >>> X.column_names
    ['employer', 'sex', 'channel', 'purpose', 'income', 'debt', 'age']
    >>> len(X["employer"].unique())
    649
    """
    n_levels = check_count(n_levels, name="n_levels", at_least=2)
    default_rate = check_rate(default_rate, name="default_rate")
    n_rows, rng = begin(n_rows, random_state)
    names = [f"E{number:0{len(str(n_levels))}d}" for number in range(1, n_levels + 1)]
    shares = 1 / (np.arange(1, n_levels + 1) + 10)
    categories = {"employer": draw_categories(rng, names, shares, size=n_rows)}
    for name, (values, weights) in _CATEGORIES.items():
        categories[name] = draw_categories(rng, values, weights, size=n_rows)
    x = rng.standard_normal(n_rows) + 0.5 * codes_of(categories["sex"])
    debt = np.exp(0.8 * rng.standard_normal(n_rows))
    age = rng.integers(18, 70, size=n_rows)

    effect, slope = employer_effects(n_levels)
    employer = codes_of(categories["employer"])
    log_odds = effect[employer] + (slope[employer] - 0.6) * x
    log_odds += 0.5 * np.log(debt) + 0.4 * (age < 25)
    for name, effects in _EFFECTS.items():
        log_odds += np.array(effects)[codes_of(categories[name])]
    log_odds += solve_intercept(log_odds, default_rate)
    y = rng.random(n_rows) < sigmoid(log_odds)

    X = pa.table({**categories, "income": np.exp(10.3 + 0.4 * x), "debt": debt, "age": age})
    return X, y.astype(np.int64)


def employer_effects(n_levels: int) -> NDArray[np.float64]:
    """Return each employer's effect and, in a second row, its slope of income."""
    # Fixed, not drawn: every seed samples the same population. Multiples of two roots scatter
    # evenly between 0 and 1, over frequent and over rare employers alike.
    roots = np.sqrt([[5.0], [2.0]])
    evenly = (np.arange(1, n_levels + 1) * roots + 0.5) % 1
    effects: NDArray[np.float64] = ndtri(evenly) * [[EMPLOYER_SD], [EMPLOYER_SLOPE_SD]]
    return effects
