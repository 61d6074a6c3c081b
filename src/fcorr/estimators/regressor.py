"""The regressor: objectives and their links, units, exposures, rates."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from torch import Tensor

from fcorr._core import InvalidInputError, RandomState
from fcorr.certify import Link
from fcorr.data.encode import Outcomes
from fcorr.data.infer import Bins, MinCategoryRows
from fcorr.data.schema import Kinds
from fcorr.estimators.balance import log_shift, mean_shift
from fcorr.estimators.base import BaseFCorr, Columns
from fcorr.estimators.invariance import Invariance
from fcorr.estimators.options import Advanced
from fcorr.training.objective import (
    CarWeight,
    Loss,
    gamma_loss,
    poisson_loss,
    squared_error,
    tweedie_loss,
)

ObjectiveName = Literal["mse", "poisson", "gamma", "tweedie"]


class FCorrRegressor(RegressorMixin, BaseFCorr):
    """FCorrTransformer with CAR for a number: a mean, a count or an amount.

    See :class:`FCorrClassifier` for what the model is and what its invariance means.

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
        Columns that predictions shall not depend on, categorical or continuous (``bins``,
        ``kinds``). For an array without column names, positions.
    car : float, "paper" or None, default=1e6
        Weight λ of Counterfactual Attention Regularization. Once λ is large enough to act, what
        a flip of the sensitive column still changes falls roughly as 1/λ; in the default form a
        large λ costs the other features nothing. ``"paper"`` sets λ by the paper's rule from the
        first batch (:func:`fcorr.nn.car.paper_weight`); ``None`` or 0 switch it off. Without
        ``sensitive`` there is nothing to regularise.
    invariance : {"adapt", "marginal"} or None, default="adapt"
        How the model becomes exactly invariant: no flip of the sensitive columns then changes a
        prediction, not by one bit, whatever the row, and ``predict`` does not read them: they may
        be left out of X. ``"adapt"``: in the last quarter of the epochs the sensitive features
        are embedded as one number each, the mean over the training rows, and the rest of the
        model adapts to it, as if the columns had never been there. ``"marginal"``: the model is
        trained with the sensitive columns at work, without CAR, so that other columns are not
        asked to stand in for them; a prediction is the average over the values they take in the
        training table, weighted by how often they do (``sample_weight`` times exposure), which
        takes one pass for each of them. ``None``: not exact; ``car`` alone sets how close it
        comes.
    bins : int, sequence of float, dict or None, default=None
        Groups that continuous sensitive columns are cut into, which are then categories: a number
        of groups of about equal size, the edges between groups, or a dict of columns with one or
        the other. By default a sensitive column of more than 20 distinct numbers is continuous,
        and exchanged for a grid of training quantiles.
    head : tuple of int, default=(128, 128)
        Sizes of the hidden layers of the prediction head.
    dropout : float, default=0.1
        Dropout in the prediction head.
    epochs : int, default=20
        Passes over the training table.
    batch_size : int or "auto", default="auto"
        Rows per step; ``"auto"`` takes about 64 steps an epoch, with 32 to 2,048 rows each.
    learning_rate : float, default=0.02
        Largest learning rate; it rises for a tenth of the steps and then falls to 0.
    early_stopping : bool or int, default=False
        Stop when the validation loss (with λ times CAR, as in training) has not fallen for this
        many epochs (True: 5), and keep the best weights. Validates on ``eval_set`` or, without
        one, on ``validation_fraction``.
    validation_fraction : float, default=0.1
        Share of the rows set aside for early stopping where there is no ``eval_set``.
    kinds : dict or None, default=None
        What columns are, where their types do not say it: ``"numeric"``, ``"categorical"``,
        ``"ordinal"``, ``"boolean"``, ``"datetime"``, or a sequence of categories in order, as in
        ``kinds={"zip": "categorical", "grade": ["A", "B", "C"]}``. For an array without column
        names, the keys are positions. By default numbers are numeric; text and booleans
        categorical; an ordered Categorical of pandas ordinal; dates datetime.
        An ordinal column is a number to the model, the place in its order, so that neighbours
        share strength; a value outside the order is an error in ``fit`` and, with a warning, a
        missing value in ``predict``. A date column ``d`` gives the numbers ``d.year``,
        ``d.month``, ``d.day_of_week`` (0 is Monday), ``d.hour`` and ``d.days`` (since the first
        training date): those that vary in the training table.
    min_category_rows : int or "auto", default="auto"
        Categories seen in fewer rows are pooled with the other rare ones of their column into
        one, "other". So are, without a warning, categories that ``predict`` meets first; where
        nothing was pooled they are taken for the most frequent category, with an
        ``UnseenCategoryWarning``. ``"auto"`` is the smaller of 10 and a thousandth of the rows,
        so that tables of up to 1,000 rows pool nothing; 1 never does. Sensitive and boolean
        columns are never pooled.
    advanced : dict or None, default=None
        What few tables need, such as ``{"n_layers": 3}``: see :class:`fcorr.estimators.Advanced`.
    random_state : int, numpy generator or None, default=None
        The same integer gives the same weights, to the bit, on the same machine.
    device : str, default="cpu"
        Where torch computes.
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
    exact_ : bool
        Whether no flip of the sensitive columns can change a prediction; ``predict`` then does
        not read them.
    portfolio_ : Portfolio or None
        What predictions are averaged over with ``invariance="marginal"``.
    history_ : History
        Losses of every epoch, and the λ that was used. With a log link the loss is half the unit
        deviance of y in units of its mean, up to a constant.
    schema_ : Schema
        What the training table looked like.
    model_ : FCorrTransformer
        The trained network.
    network_ : dict
        Its sizes.
    feature_names_in_ : ndarray of str
        Column names of the training table, where it had names.
    n_features_in_ : int
        Number of its columns.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(1_000, 4))
    >>> y = np.abs(X[:, 0]) + X[:, 1] * X[:, 2]
    >>> model = FCorrRegressor(epochs=40, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True

    Claim counts of policies with different times at risk:

    >>> X[:, 3] = years = rng.uniform(0.1, 1, 1_000)
    >>> claims = rng.poisson(years * np.exp(X[:, 0] - 1))
    >>> model = FCorrRegressor(objective="poisson", exposure=3, epochs=5, random_state=0)
    >>> expected = model.fit(X, claims).predict(X)
    >>> bool(np.isclose(expected.sum(), claims.sum()))
    True
    >>> np.allclose(expected, years * model.predict_rate(X[:, :3]))
    True
    """

    objective_: ObjectiveName
    base_: float
    target_scale_: float

    def __init__(
        self,
        *,
        objective: ObjectiveName = "mse",
        tweedie_power: float = 1.5,
        exposure: str | int | None = None,
        sensitive: Columns = None,
        car: CarWeight = 1e6,
        invariance: Invariance = "adapt",
        bins: Bins | None = None,
        head: Sequence[int] = (128, 128),
        dropout: float = 0.1,
        epochs: int = 20,
        batch_size: int | Literal["auto"] = "auto",
        learning_rate: float = 0.02,
        early_stopping: bool | int = False,
        validation_fraction: float = 0.1,
        kinds: Kinds | None = None,
        min_category_rows: MinCategoryRows = "auto",
        advanced: Advanced | None = None,
        random_state: RandomState = None,
        device: str = "cpu",
        verbose: bool | int = False,
    ) -> None:
        super().__init__(
            sensitive=sensitive,
            car=car,
            invariance=invariance,
            bins=bins,
            head=head,
            dropout=dropout,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            kinds=kinds,
            min_category_rows=min_category_rows,
            advanced=advanced,
            random_state=random_state,
            device=device,
            verbose=verbose,
        )
        self.objective = objective
        self.tweedie_power = tweedie_power
        self.exposure = exposure

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

    def _link(self) -> Link:
        if self.objective_ == "mse":
            return Link("identity", scale=self.target_scale_)
        return Link("exp", scale=float(np.exp(self.base_)))

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
