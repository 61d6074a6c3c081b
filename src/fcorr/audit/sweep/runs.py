"""Carry out the runs of a sweep, one after the other or side by side."""

import platform
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
import torch
from sklearn.base import clone

from fcorr._core import InvalidInputError
from fcorr._version import __version__
from fcorr.audit.certified import certify
from fcorr.audit.hearing import Heard, listen
from fcorr.audit.measuring import AuditRows, Estimator, measure
from fcorr.audit.sweep.grid import Run, list_arguments, make_key
from fcorr.audit.sweep.records import Record


@dataclass(frozen=True)
class Plan:
    """What all runs of a sweep share.

    Attributes
    ----------
    estimator : FCorrClassifier or FCorrRegressor
        The model that the runs vary.
    train : tuple (X, y, sample_weight or None)
        Rows to fit to.
    rows : AuditRows
        Validation rows to measure on.
    data : str
        Fingerprint of both.
    effort : int
        How hard to try for small certified bounds.
    """

    estimator: Estimator
    train: tuple[Any, Any, Any]
    rows: AuditRows
    data: str
    effort: int

    @property
    def base(self) -> dict[str, Any]:
        """The estimator's own arguments."""
        arguments: dict[str, Any] = self.estimator.get_params(deep=False)
        return arguments

    def key(self, run: Run) -> str:
        """Name a run."""
        return make_key(run, self.base, data=self.data, effort=self.effort)

    def fit(self, run: Run, before: Estimator | None = None) -> Estimator:
        """Fit the model of a run, from the weights of another or from scratch."""
        model: Estimator = clone(self.estimator)
        model.set_params(**run.point, random_state=run.seed, verbose=False)
        try:
            return model.fit(*self.train, init_model=before)
        except InvalidInputError as error:
            raise InvalidInputError(f"The run {run.point}, seed {run.seed}: {error}") from error


def carry_out(
    plan: Plan, chains: Sequence[Sequence[Run]], done: Collection[str], n_jobs: int
) -> Iterator[tuple[Record, Heard]]:
    """Fit and measure, and yield each run's record when there is one.

    Side by side, a chain's records come when the whole chain is done.

    Parameters
    ----------
    plan : Plan
        What the runs share.
    chains : sequence of sequences of Run
        What to run; see :func:`chain_runs`.
    done : collection of str
        Keys of runs that have a record already.
    n_jobs : int
        Processes to use; see :class:`joblib.Parallel`.
    """
    to_do = [chain for chain in chains if any(plan.key(run) not in done for run in chain)]
    if n_jobs == 1 or len(to_do) < 2:
        for chain in to_do:
            yield from _run_chain(plan, chain, done)
        return
    jobs = [joblib.delayed(_run_alone)(plan, chain, done) for chain in to_do]
    for finished in joblib.Parallel(n_jobs, return_as="generator_unordered")(jobs):
        yield from finished


def _run_alone(
    plan: Plan, chain: Sequence[Run], done: Collection[str]
) -> list[tuple[Record, Heard]]:
    torch.set_num_threads(1)  # the other cores have chains of their own
    return list(_run_chain(plan, chain, done))


def _run_chain(
    plan: Plan, chain: Sequence[Run], done: Collection[str]
) -> Iterator[tuple[Record, Heard]]:
    model: Estimator | None = None
    keys = [plan.key(run) for run in chain]
    last = max(i for i, key in enumerate(keys) if key not in done)
    for run, key in zip(chain[: last + 1], keys, strict=False):
        with listen() as heard:
            start = time.perf_counter()
            model = plan.fit(run, model)
            fitted = time.perf_counter()
            if key in done:
                continue  # only its weights were asked for
            measured = measure(model, plan.rows)
            certified = certify(model, plan.rows.X, effort=plan.effort)
            finished = time.perf_counter()
        record = Record(
            key=key,
            estimator=type(model).__name__,
            data=plan.data,
            effort=plan.effort,
            arguments=list_arguments(plan.base, run.point),
            seed=run.seed,
            warm_path=run.warm_path,
            measured=measured,
            certified=certified,
            notes=tuple(heard.notes),
            seconds={"fit": fitted - start, "measure": finished - fitted},
            versions={
                "fcorr": __version__,
                "torch": torch.__version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
                "engine": model.history_.engine,
            },
        )
        yield record, heard
