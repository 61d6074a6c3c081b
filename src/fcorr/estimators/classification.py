"""What estimators of classes share: labels, weights of classes, probabilities, decisions."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from fcorr._core import InvalidInputError, enumerate_some
from fcorr.certify.links import Link, LinkName
from fcorr.data.targets import Outcomes
from fcorr.estimators.balance import class_shift, softmax
from fcorr.estimators.network import NetworkEstimator
from fcorr.metrics.thresholds import ThresholdRule, choose_threshold
from fcorr.training.losses import Loss, binary_log_loss, log_loss

ClassWeight = Literal["balanced"] | Mapping[Any, float] | None

_NOBODY = float(np.nextafter(1, 2))  # above any probability


class NetworkClassifier(ClassifierMixin, NetworkEstimator):
    """Any network that predicts classes; not for direct use."""

    class_weight: ClassWeight
    threshold: float | ThresholdRule

    classes_: NDArray[Any]
    class_weight_: NDArray[np.float64]
    threshold_: float | None

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
        return self._to_probabilities(self._outputs(self._read_known_table(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row: by ``threshold_``, or the most probable of several."""
        return self._decide(self.predict_proba(X))

    def _decide(self, probabilities: NDArray[np.float64]) -> NDArray[Any]:
        if self.threshold_ is None:
            return self.classes_[probabilities.argmax(axis=1)]
        return self.classes_[(probabilities[:, 1] >= self.threshold_).astype(int)]

    def _to_probabilities(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        if len(self.classes_) > 2:
            return softmax(outputs)
        positive = 1 / (1 + np.exp(-outputs[:, 0]))
        return np.column_stack([1 - positive, positive])

    def _learn_target(self, outcomes: Outcomes) -> None:
        check_classification_targets(outcomes.y)
        classes, _ = outcomes.classes
        if len(classes) < 2:
            raise InvalidInputError(
                f"{outcomes.label} must hold at least two classes, got only one class: "
                f"{enumerate_some(classes)}. Check the filter that made the training table."
            )
        # Text as wide as the widest class, whatever room y had: a model file keeps no other width.
        self.classes_ = np.array(classes.tolist()) if classes.dtype.kind == "U" else classes
        self.class_weight_ = self._weigh_classes(outcomes)
        if len(self.classes_) > 2 and self.threshold != 0.5:
            raise InvalidInputError(
                f"threshold is for two classes, got {self.threshold!r} and {len(self.classes_)} "
                f"classes in {outcomes.label}. Leave it out: the most probable class is predicted."
            )

    def _weigh_classes(self, outcomes: Outcomes) -> NDArray[np.float64]:
        shares = self._class_shares(outcomes)
        labels: list[Any] = self.classes_.tolist()
        if not shares.all():
            raise InvalidInputError(
                f"Every class of {outcomes.label} must have a positive weight, got a weight of 0 "
                f"in all rows of class {enumerate_some(self.classes_[shares == 0])}. Leave these "
                "rows out, or weigh them."
            )
        if not isinstance(self.class_weight, Mapping):
            is_balanced = self.class_weight == "balanced"
            return 1 / (len(labels) * shares) if is_balanced else np.ones(len(labels))
        unknown = [label for label in self.class_weight if label not in labels]
        if unknown:
            raise InvalidInputError(
                f"class_weight must name classes of {outcomes.label} ({enumerate_some(labels)}), "
                f"got {enumerate_some(unknown)}. Correct it, in the type that y has."
            )
        return np.array([float(self.class_weight.get(label, 1.0)) for label in labels])

    def _class_shares(self, outcomes: Outcomes) -> NDArray[np.float64]:
        """Return the weighted share of each class."""
        codes = self._codes(outcomes)
        weights = np.bincount(codes, weights=outcomes.weight, minlength=len(self.classes_))
        return weights / weights.sum()

    def _codes(self, outcomes: Outcomes) -> NDArray[np.int64]:
        code_of = {label: code for code, label in enumerate(self.classes_.tolist())}
        labels, places = outcomes.classes
        unknown = [label for label in labels.tolist() if label not in code_of]
        if unknown:
            raise InvalidInputError(
                f"{outcomes.label} must hold classes of the training table "
                f"({enumerate_some(self.classes_)}), got {enumerate_some(unknown)}. "
                "Correct or drop these rows."
            )
        return np.array([code_of[label] for label in labels.tolist()], dtype=np.int64)[places]

    def _encode_target(self, outcomes: Outcomes) -> Tensor:
        codes = torch.from_numpy(self._codes(outcomes))
        return codes.float() if len(self.classes_) == 2 else codes

    def _loss_weight(self, outcomes: Outcomes) -> NDArray[np.float64]:
        weight = outcomes.weight * self.class_weight_[self._codes(outcomes)]
        return weight * (len(weight) / weight.sum())

    def _balance(self, outputs: NDArray[np.float64], outcomes: Outcomes) -> NDArray[np.float64]:
        shares = self._class_shares(outcomes)
        if len(self.classes_) > 2:
            return class_shift(outputs, shares, outcomes.weight)
        # One logit is the difference of two, of which the first is 0.
        logits = np.column_stack([np.zeros(len(outputs)), outputs[:, 0]])
        negative, positive = class_shift(logits, shares, outcomes.weight)
        return np.array([positive - negative])

    def _learn_decision(self, outputs: NDArray[np.float64], outcomes: Outcomes) -> None:
        if len(self.classes_) > 2:
            self.threshold_ = None
        elif isinstance(self.threshold, str | Mapping):
            scores = self._to_probabilities(outputs)[:, 1]
            chosen = choose_threshold(
                self._codes(outcomes), scores, rule=self.threshold, sample_weight=outcomes.weight
            )
            self.threshold_ = float(np.clip(chosen, 0.0, _NOBODY))
        else:
            self.threshold_ = float(self.threshold)

    def _to_predictions(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        probabilities = self._to_probabilities(outputs)
        return probabilities[:, 1:] if len(self.classes_) == 2 else probabilities

    def _link_name(self) -> LinkName:
        return "sigmoid" if len(self.classes_) == 2 else "softmax"

    def _link(self) -> Link:
        # A common constant changes no softmax; constants of its own for each class do not widen
        # what the bound on its change allows for.
        offset = float(self.balance_[0]) if len(self.classes_) == 2 else 0.0
        return Link(self._link_name(), offset=offset)

    def _n_outputs(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _loss(self) -> Loss:
        return binary_log_loss if len(self.classes_) == 2 else log_loss

    def _target_state(self) -> dict[str, Any]:
        return {
            "classes": self.classes_.tolist(),
            "dtype": self.classes_.dtype.str,
            "class_weight": self.class_weight_.tolist(),
            "threshold": self.threshold_,
        }

    def _restore_target(self, state: dict[str, Any]) -> None:
        dtype = np.dtype(state["dtype"])
        if dtype.kind == "U":  # its width follows from the labels; a file could ask for any
            dtype = np.dtype("U")
        self.classes_ = np.array(state["classes"], dtype=dtype)
        if self.classes_.ndim != 1 or len(self.classes_) < 2:
            raise ValueError(f"classes are {self.classes_}")
        self.class_weight_ = np.array(state["class_weight"], dtype=np.float64)
        is_binary = len(self.classes_) == 2
        self.threshold_ = float(state["threshold"]) if is_binary else None
        if self.threshold_ is not None and not 0 <= self.threshold_ <= _NOBODY:
            raise ValueError(f"threshold is {self.threshold_}")
