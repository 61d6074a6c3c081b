"""The regressor."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from torch import Tensor

from fcorr._core.errors import InvalidInputError, enumerate_some
from fcorr.estimators._doc import with_shared_parameters
from fcorr.estimators.base import BaseFCorr
from fcorr.training.losses import Loss, squared_error


@with_shared_parameters
class FCorrRegressor(RegressorMixin, BaseFCorr):
    """FCorrTransformer with CAR for a number, trained on squared error.

    See :class:`FCorrClassifier` for what the model is and what its invariance means.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    target_mean_, target_scale_ : float
        Mean and deviation of the training target, which the network learns in these units.
    history_ : History
        Losses of every epoch, and the λ that was used.
    schema_ : Schema
        What the training table looked like.
    model_ : FCorrTransformer
        The trained network.
    feature_names_in_ : ndarray of str
        Column names of the training table, where it had names.
    n_features_in_ : int
        Number of its columns.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(1_000, 4))
    >>> y = np.abs(X[:, 0]) + X[:, 1] * X[:, 2]
    >>> model = FCorrRegressor(epochs=40, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    target_mean_: float
    target_scale_: float

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the target of each row.

        Parameters
        ----------
        X : dataframe or array of shape (n_rows, n_features)
            Rows to score; columns are found by name, in any order.

        Returns
        -------
        ndarray of shape (n_rows,)
            Predictions, in the unit of y.
        """
        return self._outputs(X)[:, 0] * self.target_scale_ + self.target_mean_

    def _learn_target(self, y: NDArray[Any]) -> None:
        numbers = _to_float(y)
        self.target_mean_ = float(numbers.mean())
        with np.errstate(over="ignore", invalid="ignore"):
            self.target_scale_ = float(numbers.std()) or 1.0
        if not np.isfinite(self.target_scale_):
            raise InvalidInputError(
                "y must have a finite standard deviation, got values up to "
                f"{np.abs(numbers).max():.1e}. Rescale y, for example to millions."
            )

    def _encode_target(self, y: NDArray[Any]) -> Tensor:
        # The network learns a target of mean 0 and deviation 1, whatever the currency.
        standardised = (_to_float(y) - self.target_mean_) / self.target_scale_
        return torch.from_numpy(standardised.astype(np.float32))

    def _n_outputs(self) -> int:
        return 1

    def _loss(self) -> Loss:
        return squared_error

    def _target_state(self) -> dict[str, Any]:
        return {"mean": self.target_mean_, "scale": self.target_scale_}

    def _restore_target(self, state: dict[str, Any]) -> None:
        self.target_mean_ = float(state["mean"])
        self.target_scale_ = float(state["scale"])


def _to_float(y: NDArray[Any]) -> NDArray[np.float64]:
    try:
        return y.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(
            f"y must hold numbers, got {y.dtype} such as {enumerate_some(y[:1])}. "
            "Convert it, or use FCorrClassifier for classes."
        ) from error
