"""What a comparison of models holds, and how it is shown."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fcorr._core import to_plain
from fcorr._version import __version__
from fcorr.audit.measuring import Estimator, Measured, View
from fcorr.audit.tables import TextTable, show_mean, show_small
from fcorr.certify import Certificate

PLAIN = "FCorr"
WITH_CAR = "FCorr + CAR"
EXACT = "FCorr, exact"
AVERAGED = "FCorr, averaged"
REMOVED = "FCorr, column removed"

SCOPE = (
    "Flip figures are about flips of the sensitive columns, all other columns left as they are; "
    "group figures come from all columns, and remain where other columns stand in for them."
)


@dataclass(frozen=True)
class ComparedModel:
    """One fitted model and what was measured of it on test rows.

    Attributes
    ----------
    name : str
        What tables call it.
    estimator : FCorrClassifier or FCorrRegressor
        The model.
    view : callable
        What it sees of a table: all of it, or all but the sensitive columns.
    measured : Measured
        Performance, change under flips, differences of groups.
    certificate : Certificate or None
        What is certain about flips; None for a model that never saw the columns, of which no flip
        can change anything.
    seconds : float or None
        Time of the fit; None for a model that came fitted.
    """

    name: str
    estimator: Estimator
    view: View
    measured: Measured
    certificate: Certificate | None
    seconds: float | None

    @property
    def exact(self) -> bool:
        """Whether no flip can change any prediction."""
        return self.certificate is None or self.certificate.exact

    @property
    def bound(self) -> float:
        """What no flip changes a prediction by more than."""
        return 0.0 if self.certificate is None else self.certificate.bound

    @property
    def vacuous(self) -> bool:
        """Whether that says next to nothing: the range of the predictions implies as much."""
        return self.certificate is not None and self.certificate.joint.prediction.vacuous

    @property
    def metrics(self) -> dict[str, float]:
        """All numbers, each under one name."""
        return {
            **self.measured.flat(),
            "certified bound": self.bound,
            "parameters": float(self.estimator.model_.n_parameters),
            "seconds": np.nan if self.seconds is None else self.seconds,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; what is not estimable or infinite becomes None."""
        certificate = None if self.certificate is None else self.certificate.to_dict()
        found: dict[str, Any] = to_plain(
            {
                "performance": self.measured.performance,
                "flip": self.measured.flip,
                "groups": self.measured.groups,
                "exact": self.exact,
                "bound": self.bound,
                "vacuous": self.vacuous,
                "certificate": certificate,
                "parameters": self.estimator.model_.n_parameters,
                "seconds": self.seconds,
            }
        )
        return found


@dataclass(frozen=True)
class Comparison:
    """Models fitted to the same rows with the same seed. ``print`` it for a table.

    Attributes
    ----------
    models : tuple of ComparedModel
        From no constraint to the column removed.
    given : str
        The name of the model that was asked about.
    sensitive : tuple of str or int
        The sensitive columns.
    notes : tuple of str
        What could not be estimated, or not for all groups.
    """

    models: tuple[ComparedModel, ...]
    given: str
    sensitive: tuple[str | int, ...]
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> ComparedModel:
        return {model.name: model for model in self.models}[name]

    def __iter__(self) -> Iterator[ComparedModel]:
        return iter(self.models)

    @property
    def metrics(self) -> dict[str, dict[str, float]]:
        """All numbers, by model and name."""
        return {model.name: model.metrics for model in self.models}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; what is not estimable or infinite becomes None."""
        return {
            "fcorr_version": __version__,
            "given": self.given,
            "sensitive": list(self.sensitive),
            "models": {model.name: model.to_dict() for model in self.models},
            "notes": list(self.notes),
            "scope": SCOPE,
        }

    def table(self) -> TextTable:
        """Return the table: a line per metric, a column per model."""

        def cell(name: str, model: ComparedModel) -> str:
            is_empty = name == "certified bound" and model.vacuous
            return show_metric(name, [model.metrics[name]]) + is_empty * " (vacuous)"

        names = self.models[0].metrics
        rows = [[name, *(cell(name, model) for model in self.models)] for name in names]
        return TextTable(["", *(model.name for model in self.models)], rows)

    def __str__(self) -> str:
        return "\n".join([self.table().text(), *self.notes, SCOPE])


def show_metric(name: str, values: list[float]) -> str:
    """Write a metric of one or several fits, in the digits that its kind needs.

    Examples
    --------
    >>> show_metric("AUROC", [0.75, 0.77]), show_metric("AUROC gap", [1e-7, 3e-7])
    ('0.760 ± 0.010', '2.0e-07')
    """
    mean = float(np.mean(values))
    if name == "parameters":
        return f"{mean:,.0f}"
    if name == "seconds":
        return "n/a" if np.isnan(mean) else f"{mean:.1f}"
    if name in ("AvgIF", "largest change", "decisions flipped", "certified bound"):
        return show_small(mean)
    if name.endswith(" gap") and name != "A/E gap":
        return show_small(mean)
    return show_mean([*values])
