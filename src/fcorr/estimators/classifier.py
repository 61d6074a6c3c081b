"""The classifier."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from fcorr._core.errors import InvalidInputError, enumerate_some
from fcorr.estimators._doc import with_shared_parameters
from fcorr.estimators.base import BaseFCorr
from fcorr.training.losses import Loss, binary_log_loss, log_loss


@with_shared_parameters
class FCorrClassifier(ClassifierMixin, BaseFCorr):
    """FCorrTransformer with CAR for two or more classes.

    Every feature is embedded as one number, one attention matrix lets features depend on each
    other, and Counterfactual Attention Regularization drives the change of a prediction under a
    flip of the sensitive column towards 0. That is invariance to a flip of the column, no more:
    other columns can still act as proxies for it.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray
        Class labels, sorted; the order of the columns of ``predict_proba``.
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
    >>> from fcorr.data import make_indirect_bias
    >>> X, y = make_indirect_bias(2_000, random_state=0)
    >>> model = FCorrClassifier(sensitive="X1", epochs=5, random_state=0).fit(X, y)
    >>> model.attention(X).names
    ('X1', 'X2', 'X3')
    """

    classes_: NDArray[Any]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probability of each class, in the order of ``classes_``.

        Parameters
        ----------
        X : dataframe or array of shape (n_rows, n_features)
            Rows to score; columns are found by name, in any order.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities; each row sums to 1.
        """
        outputs = self._outputs(X)
        if len(self.classes_) == 2:
            positive = 1 / (1 + np.exp(-outputs[:, 0]))
            return np.column_stack([1 - positive, positive])
        exponentials = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        return exponentials / exponentials.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class of each row."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def _learn_target(self, y: NDArray[Any]) -> None:
        check_classification_targets(y)
        classes = np.unique(y)
        if len(classes) < 2:
            raise InvalidInputError(
                f"y must hold at least two classes, got only one class: {enumerate_some(classes)}. "
                "Check the filter that made the training table."
            )
        # Text as wide as the widest class, whatever room y had: a model file keeps no other width.
        self.classes_ = np.array(classes.tolist()) if classes.dtype.kind == "U" else classes

    def _encode_target(self, y: NDArray[Any]) -> Tensor:
        code_of = {label: code for code, label in enumerate(self.classes_.tolist())}
        labels, inverse = np.unique(y, return_inverse=True)
        unknown = [label for label in labels.tolist() if label not in code_of]
        if unknown:
            raise InvalidInputError(
                f"y must hold classes of the training table ({enumerate_some(self.classes_)}), "
                f"got {enumerate_some(unknown)}. Correct or drop these rows."
            )
        codes = np.array([code_of[label] for label in labels.tolist()])[inverse]
        return torch.from_numpy(codes.astype(np.float32 if len(self.classes_) == 2 else np.int64))

    def _n_outputs(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _loss(self) -> Loss:
        return binary_log_loss if len(self.classes_) == 2 else log_loss

    def _target_state(self) -> dict[str, Any]:
        return {"classes": self.classes_.tolist(), "dtype": self.classes_.dtype.str}

    def _restore_target(self, state: dict[str, Any]) -> None:
        dtype = np.dtype(state["dtype"])
        if dtype.kind == "U":  # its width follows from the labels; a file could ask for any
            dtype = np.dtype("U")
        self.classes_ = np.array(state["classes"], dtype=dtype)
