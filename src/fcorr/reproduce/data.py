"""The tables of the experiments: train and test rows as pandas frames."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcorr.data import (
    Dataset,
    load_adult,
    load_baf,
    load_bemtpl97,
    load_fremtpl2,
    make_bank_fraud,
    make_claims,
    make_indirect_bias,
)
from fcorr.reproduce.settings import DataSettings

TEST_SEED = 2**31  # added to a run's, so that no run learns from another's test rows
EXPOSURE = "years"
"""Column of exposures, where there are some."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a table; ``X`` has the column :data:`EXPOSURE` where ``exposed``."""

    X: Any
    y: NDArray[Any]
    exposed: bool = False

    def __len__(self) -> int:
        return len(self.y)

    @property
    def exposure(self) -> NDArray[np.float64] | None:
        """Exposure of each row, such as years at risk."""
        return self.X[EXPOSURE].to_numpy(np.float64) if self.exposed else None

    @property
    def features(self) -> Any:
        """The columns without the exposure."""
        return self.X.drop(columns=EXPOSURE) if self.exposed else self.X

    def first(self, n_rows: int | None) -> "Rows":
        """Return so many of the rows, or all."""
        if n_rows is None or n_rows >= len(self):
            return self
        return Rows(self.X.iloc[:n_rows], self.y[:n_rows], self.exposed)


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to learn from and rows to test on.

    Attributes
    ----------
    name : str
        What to call the table in a report.
    stands_in_for : str
        The paper's data, if this is not it; else "".
    train, test : Rows
        The rows.
    """

    name: str
    stands_in_for: str
    train: Rows
    test: Rows


@functools.lru_cache(maxsize=2)
def load_split(settings: DataSettings, seed: int) -> Split:
    """Load or draw the rows of a run; those of a published table do not depend on the seed."""
    return _TABLES[settings.name](settings, seed)


def _baf(settings: DataSettings, seed: int) -> Split:
    return _split(load_baf(frame="pandas"), settings, stands_in_for="")


def _bank_fraud(settings: DataSettings, seed: int) -> Split:
    return _draw(make_bank_fraud, "make_bank_fraud", "Bank Account Fraud", settings, seed)


def _indirect_bias(settings: DataSettings, seed: int) -> Split:
    return _draw(make_indirect_bias, "make_indirect_bias", "", settings, seed)


def _claims(settings: DataSettings, seed: int) -> Split:
    return _draw(make_claims, "make_claims", "InsurTech", settings, seed)


def _adult(settings: DataSettings, seed: int) -> Split:
    return _split(load_adult(frame="pandas"), settings, stands_in_for="")


def _bemtpl97(settings: DataSettings, seed: int) -> Split:
    return _split(load_bemtpl97(frame="pandas"), settings, stands_in_for="InsurTech")


def _fremtpl2(settings: DataSettings, seed: int) -> Split:
    return _split(load_fremtpl2(frame="pandas"), settings, stands_in_for="InsurTech")


_TABLES: dict[str, Callable[[DataSettings, int], Split]] = {
    "indirect_bias": _indirect_bias,
    "baf": _baf,
    "bank_fraud": _bank_fraud,
    "adult": _adult,
    "claims": _claims,
    "bemtpl97": _bemtpl97,
    "fremtpl2": _fremtpl2,
}


def _draw(
    make: Callable[..., Any], name: str, stands_in_for: str, settings: DataSettings, seed: int
) -> Split:
    train = make(settings.n_train, random_state=seed, frame="pandas")
    test = make(settings.n_test, random_state=TEST_SEED + seed, frame="pandas")
    return Split(name, stands_in_for, Rows(*train), Rows(*test))


def _split(dataset: Dataset, settings: DataSettings, *, stands_in_for: str) -> Split:
    parts = []
    for part, n_rows in ((dataset.train, settings.n_train), (dataset.test, settings.n_test)):
        exposed = part.exposure is not None
        X = part.X.assign(**{EXPOSURE: part.exposure}) if exposed else part.X
        parts.append(Rows(X, part.y, exposed).first(n_rows))
    return Split(dataset.name, stands_in_for, *parts)
