"""Sweeps: the same model over a grid of arguments and seeds, and the choice among them.

Read in this order: `grid` (which runs), `fingerprints` and `records` (what is kept of them),
`runs` and `work` (how they are made), `summaries` and `choosing` (what they say), `pictures`,
`result`.
"""

import os
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import clone

from fcorr._core import InvalidInputError
from fcorr.audit.journal import open_journal
from fcorr.audit.measuring import Estimator, name_columns, read_rows, unpack
from fcorr.audit.sweep.choosing import Choice, check_budget
from fcorr.audit.sweep.fingerprints import fingerprint
from fcorr.audit.sweep.grid import DEFAULT_GRID, Grid, chain_runs, expand_grid, list_arguments
from fcorr.audit.sweep.records import Record, check_experiment
from fcorr.audit.sweep.result import Sweep
from fcorr.audit.sweep.runs import Plan
from fcorr.audit.sweep.work import Workshop
from fcorr.estimators import FCorrClassifier, FCorrRegressor

__all__ = ["DEFAULT_GRID", "Choice", "Record", "Sweep", "sweep"]


def sweep(
    estimator: Estimator,
    X: Any,
    y: ArrayLike,
    *,
    grid: Grid | Sequence[Grid] | None = None,
    eval_set: Sequence[Any],
    seeds: int | Iterable[int] = 3,
    sample_weight: ArrayLike | None = None,
    n_jobs: int = 1,
    path: str | os.PathLike[str] | None = None,
    budget: float | None = None,
    warm_start: bool = False,
    effort: int = 2**17,
    progress: bool = True,
) -> Sweep:
    """Fit a model over a grid of arguments and seeds, and measure what each costs and brings.

    Of every run it is measured, on the rows of ``eval_set``, how well it predicts, what flips of
    the sensitive columns change, how groups differ, and what is certain about flips.

    Choosing among many models makes the chosen one look better than it is: ``eval_set`` must be
    validation rows. Keep the test rows away from the sweep, and look at them once, with the model
    that was chosen.

    Parameters
    ----------
    estimator : FCorrClassifier or FCorrRegressor
        The model, with sensitive columns. It is not changed.
    X, y
        Training rows; see :meth:`FCorrClassifier.fit`.
    grid : mapping, sequence of mappings or None, default=None
        Arguments and the values they take, in all combinations, as in ``{"car": [0, 1e2, 1e4],
        "invariance": [None]}``; of several grids, the points of each. Arguments that it leaves out
        are the estimator's: λ acts alone only with ``invariance=None``. By default λ = 0, 1, 10,
        …, 1e8 acting alone, and the two exact forms.
    eval_set : tuple (X, y) or (X, y, sample_weight)
        Validation rows, none of which may be a training row.
    seeds : int or iterable of int, default=3
        Seeds of each point; a number n stands for 0 to n − 1.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the training rows.
    n_jobs : int, default=1
        Processes that runs are shared out to; −1 for as many as there are cores. The results are
        the same for any number.
    path : path, optional
        File of JSON lines to which each run is added as it ends. A sweep with the same file does
        not repeat runs that are in it.
    budget : float, optional
        The largest certified bound that the chosen model may have; see :meth:`Sweep.choose`.
    warm_start : bool, default=False
        Let runs of one seed that differ only in a λ that acts alone start from each other's
        weights, from the smallest λ to the largest. Such runs need fewer epochs, but are not the
        models that ``fit`` would give: the chosen point is fitted afresh before it is reported.
        With several processes their records are added when the largest λ is done.
    effort : int, default=2**17
        How hard to try for small certified bounds, which takes most of the time where models are
        small; see :meth:`FCorrClassifier.certificate`.
    progress : bool, default=True
        Show progress: a bar on a terminal, plain lines elsewhere.

    Returns
    -------
    Sweep
        Records, tables, figures, and the choice.

    Raises
    ------
    InvalidInputError
        Among others, before anything is fitted: an argument of the grid that the estimator would
        refuse, a file that holds another experiment's runs, validation rows that are the training
        rows.

    Examples
    --------
    >>> from fcorr.data import make_indirect_bias
    >>> X, y = make_indirect_bias(500, random_state=0)
    >>> validation = make_indirect_bias(500, random_state=1)
    >>> found = sweep(
    ...     FCorrClassifier(sensitive="X1", epochs=2, head=(4,)),
    ...     X,
    ...     y,
    ...     grid={"car": [1e4], "invariance": [None, "adapt"]},
    ...     eval_set=validation,
    ...     seeds=1,
    ...     effort=1,
    ...     progress=False,
    ... )
    >>> found.choose(budget=0).point
    {'car': 10000.0, 'invariance': 'adapt'}
    """
    if not isinstance(estimator, FCorrClassifier | FCorrRegressor):
        raise InvalidInputError(
            "sweep is about FCorrClassifier and FCorrRegressor, got "
            f"{type(estimator).__name__}. Use scikit-learn's GridSearchCV for other models."
        )
    name_columns(estimator.sensitive)
    budget = check_budget(budget)
    seeds = _read_seeds(seeds)
    _check_jobs(n_jobs)
    base = estimator.get_params(deep=False)
    points, varied = expand_grid(grid, base)
    held_out = unpack(eval_set, "eval_set")
    train_print = fingerprint(X, y, sample_weight)
    if train_print == fingerprint(*held_out):
        raise InvalidInputError(
            "eval_set must be other rows than X: a model looks good on the rows it was fitted to. "
            "Set some aside, for example with sklearn.model_selection.train_test_split."
        )
    plan = Plan(
        clone(estimator),
        (X, y, sample_weight),
        read_rows(held_out, estimator.sensitive, "eval_set"),
        f"{train_print}-{fingerprint(*held_out)}",
        effort,
    )
    records = [] if path is None else open_journal(path, Record.from_dict, of="a sweep")
    expected = {"estimator": type(estimator).__name__, "data": plan.data, "effort": effort}
    fixed = {n: v for n, v in list_arguments(base, {}).items() if n not in varied}
    check_experiment(records, expected, fixed, path)
    known = {record.key: record for record in records}
    workshop = Workshop(plan, varied, known, path, n_jobs, progress)
    chains = chain_runs(points, base, seeds, warm_start=warm_start)
    workshop.carry_out(chains)
    return Sweep(workshop, points, chains, budget)


def _read_seeds(seeds: Any) -> list[int]:
    if isinstance(seeds, Integral) and not isinstance(seeds, bool) and int(seeds) >= 1:
        return list(range(int(seeds)))
    listed = list(seeds) if isinstance(seeds, Iterable) and not isinstance(seeds, str) else []
    are_seeds = all(
        isinstance(seed, Integral) and not isinstance(seed, bool) and 0 <= int(seed) < 2**32
        for seed in listed
    )
    if not listed or not are_seeds or len(set(listed)) < len(listed):
        raise InvalidInputError(
            "seeds must be a number of at least 1, or different integers in [0, 2**32), got "
            f"{seeds!r}. Write seeds=3 or seeds=[0, 1, 2]."
        )
    return [int(seed) for seed in listed]


def _check_jobs(n_jobs: Any) -> None:
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise InvalidInputError(
            f"n_jobs must be an integer that is not 0, got {n_jobs!r}. Write n_jobs=2 for two "
            "processes, n_jobs=-1 for as many as there are cores."
        )
