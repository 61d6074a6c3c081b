"""What estimators of a number share: objectives and their links, units, exposures, rates."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from torch import Tensor

from fcorr._core import InvalidInputError
from fcorr.certify.links import Link, LinkName
from fcorr.data.targets import Outcomes
from fcorr.estimators.balance import log_shift, mean_shift
from fcorr.estimators.network import NetworkEstimator
from fcorr.training.losses import Loss, gamma_loss, poisson_loss, squared_error, tweedie_loss

ObjectiveName = Literal["mse", "poisson", "gamma", "tweedie"]


class NetworkRegressor(RegressorMixin, NetworkEstimator):
    """Any network that predicts a number; not for direct use."""

    objective: ObjectiveName
    tweedie_power: float

    objective_: ObjectiveName
    base_: float
    target_scale_: float

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the target of each row, for its exposure where the model knows one.

        Parameters
        ----------
        X : dataframe or array of shape (n_rows, n_features)
            Rows to score; columns are found by name, in any order.

        Returns
        -------
        ndarray of shape (n_rows,)
            Predictions, in the unit of y.
        """
        table = self._read_known_table(X)
        exposure = self._read_exposure(table)
        return exposure * self._to_rate(self._outputs(table))

    def predict_rate(self, X: Any) -> NDArray[np.float64]:
        """Predict the target of each row per unit of exposure.

        Parameters
        ----------
        X : dataframe or array of shape (n_rows, n_features)
            Rows to score; the column of exposures may be left out.

        Returns
        -------
        ndarray of shape (n_rows,)
            Rates; without an exposure they are the predictions.
        """
        return self._to_rate(self._outputs(self._read_known_table(X)))

    def _to_rate(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.objective_ == "mse":
            return self.base_ + self.target_scale_ * outputs[:, 0]
        return np.exp(self.base_ + outputs[:, 0])

    def _learn_target(self, outcomes: Outcomes) -> None:
        self.objective_ = self.objective
        y, weight = self._read_numbers(outcomes), outcomes.weight
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(np.average(y, weights=weight))
            deviation = float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
        if not np.isfinite(deviation):
            raise InvalidInputError(
                f"{outcomes.label} must have a finite standard deviation, got values up to "
                f"{np.abs(y).max():.1e}. Rescale y, for example to millions."
            )
        if self.objective_ == "mse":
            self.base_, self.target_scale_ = mean, deviation or 1.0
            return
        if mean == 0:
            raise InvalidInputError(
                f"{outcomes.label} must have a positive total for objective={self.objective_!r}, "
                "got 0 in every row that has a weight. Check the filter that made the training "
                "table."
            )
        mean_exposure = float(np.average(outcomes.exposure, weights=weight))
        self.base_, self.target_scale_ = float(np.log(mean) - np.log(mean_exposure)), mean

    def _read_numbers(self, outcomes: Outcomes) -> NDArray[np.float64]:
        """Return y as numbers that the objective can take."""
        y = outcomes.numbers()
        if self.objective_ != "mse":
            _check_range(y, outcomes.label, self.objective_)
        return y

    def _encode_target(self, outcomes: Outcomes) -> Tensor:
        # The network learns in units of the deviation or the mean, whatever the currency.
        y = self._read_numbers(outcomes)
        if self.objective_ == "mse":
            standardised = (y - self.base_) / self.target_scale_
            return torch.from_numpy(standardised.astype(np.float32))
        offset = np.log(outcomes.exposure) + self.base_ - np.log(self.target_scale_)
        columns = np.column_stack([y / self.target_scale_, offset])
        return torch.from_numpy(columns.astype(np.float32))

    def _balance(self, outputs: NDArray[np.float64], outcomes: Outcomes) -> NDArray[np.float64]:
        y, output = outcomes.numbers(), outputs[:, 0]
        if self.objective_ == "mse":
            standardised = (y - self.base_) / self.target_scale_
            return np.array([mean_shift(output, standardised, outcomes.weight)])
        log_means = np.log(outcomes.exposure) + self.base_ + output
        return np.array([log_shift(log_means, y, outcomes.weight)])

    def _to_predictions(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._to_rate(outputs)[:, None]

    def _link_name(self) -> LinkName:
        return "identity" if self.objective_ == "mse" else "exp"

    def _link(self) -> Link:
        if self.objective_ == "mse":
            return Link("identity", scale=self.target_scale_)
        return Link("exp", offset=self.base_ + float(self.balance_[0]))

    def _n_outputs(self) -> int:
        return 1

    def _loss(self) -> Loss:
        losses: dict[ObjectiveName, Loss] = {
            "mse": squared_error,
            "poisson": poisson_loss,
            "gamma": gamma_loss,
            "tweedie": tweedie_loss(float(self.tweedie_power)),
        }
        return losses[self.objective_]

    def _target_state(self) -> dict[str, Any]:
        return {"objective": self.objective_, "base": self.base_, "scale": self.target_scale_}

    def _restore_target(self, state: dict[str, Any]) -> None:
        if state["objective"] not in ("mse", *_RANGES):
            raise ValueError(f"objective is {state['objective']!r}")
        self.objective_ = state["objective"]
        self.base_ = float(state["base"])
        self.target_scale_ = float(state["scale"])


_RANGES: dict[ObjectiveName, tuple[str, Callable[[NDArray[np.float64]], NDArray[Any]], str]] = {
    "poisson": (
        "at least 0",
        lambda y: y >= 0,
        "Counts are not negative: correct or drop these rows.",
    ),
    "gamma": (
        "above 0",
        lambda y: y > 0,
        "Leave out rows without an amount, or use objective='tweedie'.",
    ),
    "tweedie": (
        "at least 0",
        lambda y: y >= 0,
        "Check the sign, and claims that were recovered; set such rows to 0 or drop them.",
    ),
}


def _check_range(y: NDArray[np.float64], label: str, objective: ObjectiveName) -> None:
    """Refuse values that an objective's distribution cannot take."""
    rule, holds, remedy = _RANGES[objective]
    wrong = ~holds(y)
    if wrong.any():
        row = int(np.argmax(wrong))
        more = f" and {wrong.sum() - 1} more" if wrong.sum() > 1 else ""
        raise InvalidInputError(
            f"{label} must be {rule} for objective={objective!r}, got {y[row]:g} in row {row}"
            f"{more}. {remedy}"
        )
