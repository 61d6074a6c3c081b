"""The regressor: objectives and their links, units, exposures, rates."""

import warnings
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from torch import Tensor

from fcorr._core import InvalidInputError, refuse_rows
from fcorr.certify import Link
from fcorr.data.encode import Outcomes
from fcorr.estimators.reading import ReadableFCorr
from fcorr.training import objective as objectives
from fcorr.training.objective import Loss, Target

ObjectiveName = Literal["mse", "poisson", "gamma", "tweedie"]

_REMEDIES: dict[ObjectiveName, str] = {
    "poisson": "Counts are not negative: correct or drop these rows.",
    "gamma": "Leave out rows without an amount, or use objective='tweedie'.",
    "tweedie": "Check the sign, and claims that were recovered; set such rows to 0 or drop them.",
}
_FEW_ROWS = 1_000  # of which one may well have most of the variance


@dataclass(kw_only=True, eq=False, repr=False)
class FCorrRegressor(RegressorMixin, ReadableFCorr):
    """FCorrTransformer with CAR for a number: a mean, a count or an amount.

    See :class:`FCorrClassifier` for what the model is, what its invariance means, and for more on
    ``sensitive``, ``car``, ``invariance``, ``kinds`` and ``min_category_rows``.

    Parameters
    ----------
    objective : {"mse", "poisson", "gamma", "tweedie"}, default="mse"
        What is minimised. ``"mse"``: squared error. The others have a log link, so that effects
        multiply: ``"poisson"`` for counts (y is the count, not the rate), ``"gamma"`` for positive
        amounts such as claim severities, ``"tweedie"`` for amounts that are often 0, such as pure
        premiums.
    tweedie_power : float, default=1.5
        How the variance grows with the mean for ``"tweedie"``, in (1, 2).
    exposure : str, int or None, default=None
        Column of X with each row's exposure, such as years at risk, all positive; for an array
        without column names, its position. It is no feature but an offset: the expectation is
        proportional to it. Needs a log link.
    sensitive : str or list of str, optional
        Columns that predictions shall not depend on, or their positions.
    car : float, "paper" or None, default=1e6
        Weight λ of Counterfactual Attention Regularization; ``None`` or 0 switch it off.
    invariance : {"adapt", "marginal"} or None, default="adapt"
        How the model becomes exactly invariant: it adapts to the absence of the sensitive columns,
        or averages over their values in training; ``None``: not exact, ``car`` alone.
    proxy : float, default=0.0
        Weight of a penalty on how far the groups of the sensitive columns differ in what the model
        says, since other columns can stand in for these: see :mod:`fcorr.training.proxies`. Its
        measure lies between 0 and about 1; weights of 0.03 to 10 act. Needs ``sensitive`` in
        training only. A continuous sensitive column is cut into quarters of the rows; rows without
        a value are in no group.
    n_members : int or "auto", default="auto"
        Most networks in the pack whose mean is predicted; 1 for a single network. They differ in
        how they are regularised, each is trained on its own bag of rows, and the rows that it left
        out stop it and decide if it stays: see :mod:`fcorr.training.pack`; ``"auto"`` is 8 to 48.
    head : tuple of int or "auto", default="auto"
        Sizes of the hidden layers of the prediction head. Here and below ``"auto"`` leaves it to
        the members, which differ; a value holds for all.
    dropout : float or "auto", default="auto"
        Dropout in the prediction head.
    epochs : int or "auto", default="auto"
        Most passes over the training table.
    learning_rate : float or "auto", default="auto"
        Largest learning rate; it rises for a tenth of the steps and then falls to 0.
    monotone : dict or None, default=None
        Numbers and ordered categories in which predictions never fall or never rise, whatever the
        other columns hold: ``{"age": "increasing"}``. Such a feature has a main effect only.
    kinds : dict or None, default=None
        What columns are, where their types do not say it, such as
        ``{"zip": "categorical", "grade": ["A", "B", "C"]}``.
    min_category_rows : int or "auto", default="auto"
        Categories seen in fewer rows are pooled into one, "other".
    advanced : dict or None, default=None
        What few tables need, such as ``{"n_layers": 3}``: see :class:`fcorr.estimators.Advanced`.
    random_state : int, numpy generator or None, default=None
        The same integer gives the same weights, to the bit, on the same machine.
    verbose : bool or int, default=False
        Show progress: a bar on a terminal, plain lines elsewhere.

    Attributes
    ----------
    objective_ : str
        The objective of the fit.
    base_ : float
        Weighted mean of y in training or, with a log link, logarithm of the rate: of weighted y
        over weighted exposure.
    target_scale_ : float
        Unit in which the network learns y: its weighted deviation or, with a log link, mean.
    balance_ : ndarray of shape (1,)
        Constant added to the network's output η when training is over. The prediction is ``base_ +
        target_scale_·(η + balance_)`` or, with a log link, ``exposure·exp(base_ + η + balance_)``,
        and the balance is such that predictions, weighted, sum to the observed total over all rows
        passed to ``fit``, also those that early stopping set aside.
    history_ : History
        Losses of every epoch, and the λ that was used. With a log link the loss is half the unit
        deviance of y in units of its mean, up to a constant.
    exact_, portfolio_, schema_, model_, recipes_, oob_loss_, feature_names_in_, n_features_in_
        As in :class:`FCorrClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(1_000, 4))
    >>> y = np.abs(X[:, 0]) + X[:, 1] * X[:, 2]
    >>> model = FCorrRegressor(n_members=1, epochs=40, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True

    Claim counts of policies with different times at risk:

    >>> X[:, 3] = years = rng.uniform(0.1, 1, 1_000)
    >>> claims = rng.poisson(years * np.exp(X[:, 0] - 1))
    >>> model = FCorrRegressor(objective="poisson", exposure=3, n_members=1, random_state=0)
    >>> expected = model.fit(X, claims).predict(X)
    >>> bool(np.isclose(expected.sum(), claims.sum()))
    True
    >>> np.allclose(expected, years * model.predict_rate(X[:, :3]))
    True
    """

    objective: ObjectiveName = "mse"
    tweedie_power: float = 1.5
    exposure: str | int | None = None

    objective_: ObjectiveName = field(init=False)
    base_: float = field(init=False)
    target_scale_: float = field(init=False)

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
        """Predict the target of each row per unit of exposure; without one, as ``predict`` does.

        Parameters as in :meth:`predict`; the column of exposures may be left out of X.
        """
        return self._to_rate(self._outputs(self._read_known_table(X)))

    @property
    def _deviance_power(self) -> float:
        """The power of the Tweedie deviance that the objective stands for; 0 for ``"mse"``."""
        powers = {"mse": 0.0, "poisson": 1.0, "gamma": 2.0}
        return powers.get(self.objective_, float(self.tweedie_power))

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
        mean_exposure = float(np.average(outcomes.exposure, weights=weight))
        row = int(outcomes.exposure.argmax())
        if len(y) >= _FEW_ROWS and outcomes.exposure[row] > outcomes.exposure.sum() / 2:
            warnings.warn(
                f"One row has more than half of all exposure, {outcomes.exposure[row]:g} beside a "
                f"mean of {mean_exposure:g}, and most of what is expected. Is it in another unit?",
                stacklevel=5,  # where an estimator's fit was called
            )
        exposure = outcomes.exposure / mean_exposure
        squares = weight * (y - exposure * mean) ** 2 / exposure
        row = int(squares.argmax())
        is_large = len(y) >= _FEW_ROWS and self.objective_ != "poisson"  # of counts one may be all
        if is_large and squares[row] > squares.sum() / 2:
            warnings.warn(
                f"One row has more than half of the variance of {outcomes.label}: {y[row]:g}, "
                f"beside a mean of {mean:g}. What other rows say shrinks, or follows it. If it is "
                "no mistake, cap large amounts, and spread what is cut off over all rows.",
                stacklevel=5,  # where an estimator's fit was called
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
        self.base_, self.target_scale_ = float(np.log(mean) - np.log(mean_exposure)), mean

    def _read_numbers(self, outcomes: Outcomes) -> NDArray[np.float64]:
        """Return y as numbers; refuse those that the objective's distribution cannot take."""
        y = outcomes.numbers()
        if self.objective_ == "mse":
            return y
        rule, wrong = ("above 0", y <= 0) if self.objective_ == "gamma" else ("at least 0", y < 0)
        rule = f"{outcomes.label} must be {rule} for objective={self.objective_!r}"
        refuse_rows(wrong, y, rule, _REMEDIES[self.objective_])
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

    def _loss_weight(self, outcomes: Outcomes) -> NDArray[np.float64]:
        """Weigh the deviance of amounts as that of amounts per exposure, weighted by the exposure.

        What happens in e years is a sum of e independent years: its variance is e times that of
        one, and not ``e^p`` times, as the deviance of a mean of e·μ alone would have it.
        """
        if self._deviance_power <= 1:
            return outcomes.weight
        weight = outcomes.weight * outcomes.exposure ** (self._deviance_power - 1)
        return weight / weight.mean()

    def _make_target(self, outcomes: Outcomes) -> Target:
        values, weight = self._encode_target(outcomes), self._loss_weight(outcomes)
        return Target(
            values,
            weight,
            self._loss(),
            start=0.0,
            curvature=2.0 if self.objective_ == "mse" else 1.0,
            rows_for_one=self._rows_for_one(values.double().numpy(), weight),
            strata=(outcomes.numbers() > 0).astype(np.int64),
        )

    def _rows_for_one(self, values: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
        """Return how many rows say as much as one of two classes of the same size.

        From one row an effect is known with the variance of the loss's gradient over the square of
        its curvature. At the mean, in whose units y is, that is the variance of y over 1; of such
        classes it is 1/4 over 1/4², which is 4.
        """
        if self.objective_ == "mse":
            return 1.0  # y is in units of its deviation, most of which may be no noise
        y, mean = values[:, 0], np.exp(values[:, 1])
        return max(1.0, float(np.average((y - mean) ** 2, weights=weight)) / 4)

    def _balance(self, outputs: NDArray[np.float64], outcomes: Outcomes) -> NDArray[np.float64]:
        y, output = outcomes.numbers(), outputs[:, 0]
        if self.objective_ == "mse":
            standardised = (y - self.base_) / self.target_scale_
            return np.array([np.average(standardised - output, weights=outcomes.weight)])
        log_means = np.log(outcomes.exposure) + self.base_ + output
        return np.array([objectives.log_shift(log_means, y, outcomes.weight)])

    def _link(self) -> Link:
        if self.objective_ == "mse":
            return Link("identity", scale=self.target_scale_)
        return Link("exp", scale=float(np.exp(self.base_)))

    def _scale(self) -> tuple[float, float]:
        return self.base_, self.target_scale_ if self.objective_ == "mse" else 1.0

    def _loss(self) -> Loss:
        losses: dict[ObjectiveName, Loss] = {
            "mse": objectives.squared_error,
            "poisson": objectives.poisson_loss,
            "gamma": objectives.gamma_loss,
            "tweedie": objectives.tweedie_loss(float(self.tweedie_power)),
        }
        return losses[self.objective_]

    def _target_state(self) -> dict[str, Any]:
        return {"objective": self.objective_, "base": self.base_, "scale": self.target_scale_}

    def _restore_target(self, state: dict[str, Any]) -> None:
        if state["objective"] not in ("mse", *_REMEDIES):
            raise ValueError(f"objective is {state['objective']!r}")
        self.objective_ = state["objective"]
        self.base_ = float(state["base"])
        self.target_scale_ = float(state["scale"])
        if self.target_scale_ <= 0:
            raise ValueError(f"the target's scale is {self.target_scale_}")
