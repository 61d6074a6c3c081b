"""The classifier: labels, weights of classes, probabilities and decisions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.extmath import softmax
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from fcorr._core import InvalidInputError, enumerate_some
from fcorr.certify import Link
from fcorr.data.encode import Outcomes
from fcorr.estimators.reading import ReadableFCorr
from fcorr.metrics.thresholds import ThresholdRule, choose_threshold
from fcorr.training.objective import Loss, Target, binary_log_loss, class_shift, log_loss
from fcorr.training.proxies import DecisionDial, ProxyDial, ProxyTarget, ScoreDial

ClassWeight = Literal["balanced"] | Mapping[Any, float] | None

_NOBODY = float(np.nextafter(1, 2))  # above any probability
_LEAST_CURVATURE = 1e-6  # where nearly all weight is on one class, rows still say something


@dataclass(kw_only=True, eq=False, repr=False)
class FCorrClassifier(ClassifierMixin, ReadableFCorr):
    """FCorrTransformer with CAR for two or more classes.

    Every feature is embedded as a few numbers, of which one is its main effect, and attention lets
    features depend on each other. ``invariance`` makes the change of a prediction under a flip of
    the sensitive column exactly 0; the paper's Counterfactual Attention Regularization drives it
    towards 0. That is invariance to a flip of the column, no more: other columns can still act as
    proxies for it.

    Parameters
    ----------
    class_weight : "balanced", dict or None, default=None
        Weight of each class in the loss, beside ``sample_weight``: ``{label: weight}``, 1 for
        classes it leaves out, or ``"balanced"`` for weights that make all classes weigh the same.
        Probabilities stay those of the data: the balance below takes the distortion away.
    threshold : float, "f1", {"fpr": rate} or {"cost": (c_fp, c_fn)}, default=0.5
        Probability of the second class from which on ``predict`` chooses it; for two classes only.
        A rule chooses it on the training rows, each as members predict it that left it out,
        weighted by ``sample_weight``: ``"f1"`` by the best
        F1; ``{"fpr": 0.05}`` the lowest with a false-positive rate of at most 0.05;
        ``{"cost": (1, 20)}`` by the least cost, where a false positive costs 1 and a false
        negative 20. See :func:`fcorr.metrics.choose_threshold`.
    sensitive : str or list of str, optional
        Columns that predictions shall not depend on, categorical or continuous; for an array
        without column names, positions. One of more than 20 distinct numbers is continuous, unless
        ``kinds`` says otherwise, and exchanged for a grid of training quantiles.
    car : float, "paper" or None, default=1e6
        Weight λ of Counterfactual Attention Regularization, which acts with ``invariance=None``.
        Once λ is large enough to act, what a flip of the sensitive column still changes falls
        roughly as 1/λ; in the default form a large λ costs the other features nothing.
        ``"paper"`` sets λ by the paper's rule from the first batch
        (:func:`fcorr.nn.car.paper_weight`); ``None`` or 0 switch it off.
    invariance : {"adapt", "marginal"} or None, default="adapt"
        How the model becomes exactly invariant: no flip of the sensitive columns changes a
        prediction by one bit, whatever the row, and ``predict`` does not read them: they may be
        left out of X. ``"adapt"``: each sensitive feature is embedded as 0, whatever it holds, and
        the rest of the model adapts, as if the columns had never been there. ``"marginal"``:
        trained with the sensitive columns at work, without CAR, so that other columns are not asked
        to stand in for them; a prediction is the average over their values in the training table,
        weighted by ``sample_weight`` times exposure, one pass for each. ``None``: not exact;
        ``car`` alone sets how close it comes.
    proxy : float, default=0.0
        Weight of a penalty on how far the groups of the sensitive columns differ in what the model
        says, since other columns can stand in for these: see :mod:`fcorr.training.proxies`.
        Weights of 0.1 to 10 act on scores, 0.2 to 20 on decisions. Needs ``sensitive`` in
        training only. A continuous sensitive column is cut into quarters of the rows; rows without
        a value are in no group.
    proxy_target : {"score", "decision", "odds"}, default="score"
        What shall not differ. ``"score"``: the whole distribution of scores. ``"decision"``: the
        share that is decided positive at ``threshold``, where one cut-off is all that counts: it
        leaves more of the order of scores. ``"odds"``: the same among rows of each class by itself.
        The last two are for two classes, a ``threshold`` that is a number, and no
        ``class_weight``: they set the cost of decisions in training, so that probabilities are
        right for that threshold, and no longer balanced (``balance_`` is 0).
    n_members : int or "auto", default="auto"
        Most networks in the pack whose mean is predicted; 1 for a single network. They differ in
        how they are regularised, each is trained on its own bag of rows, and the rows that it left
        out stop it and decide whether it stays: see :mod:`fcorr.training.pack`. More are trained
        than kept, since several settings are tried. ``"auto"`` is 48, and 8 for many rows.
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
        What columns are, where their types do not say it: ``"numeric"``, ``"categorical"``,
        ``"ordinal"``, ``"boolean"``, ``"datetime"``, or a sequence of categories in order, as in
        ``kinds={"zip": "categorical", "grade": ["A", "B", "C"]}``; the keys are positions for an
        array without column names. By default numbers are numeric, text and booleans categorical,
        an ordered Categorical of pandas ordinal, dates datetime.
        An ordinal column is a number to the model, the place in its order, so that neighbours
        share strength; a value outside the order is an error in ``fit`` and, with a warning,
        missing in ``predict``. A date column ``d`` gives those of the numbers ``d.year``,
        ``d.month``, ``d.day_of_week`` (0 is Monday), ``d.hour`` and ``d.days`` (since the first
        training date) that vary in the training table.
    min_category_rows : int or "auto", default="auto"
        Categories seen in fewer rows are pooled into one, "other", as are, without a warning,
        categories that ``predict`` meets first; where nothing was pooled these are taken for the
        most frequent one, with an ``UnseenCategoryWarning``. ``"auto"`` is the smaller of 10 and a
        thousandth of the rows, so that up to 1,000 rows pool nothing; 1 never does. Sensitive and
        boolean columns are never pooled.
    advanced : dict or None, default=None
        What few tables need, such as ``{"n_layers": 3}``: see :class:`fcorr.estimators.Advanced`.
    random_state : int, numpy generator or None, default=None
        The same integer gives the same weights, to the bit, on the same machine.
    verbose : bool or int, default=False
        Show progress: a bar on a terminal, plain lines elsewhere.

    Attributes
    ----------
    classes_ : ndarray
        Class labels, sorted; the order of the columns of ``predict_proba``.
    class_weight_ : ndarray of shape (n_classes,)
        Weight of each class in the loss.
    threshold_ : float or None
        The threshold ``predict`` uses; None with more than two classes, where it chooses the most
        probable one.
    balance_ : ndarray of shape (n_outputs,)
        Constant added to each logit when training is over, such that the mean probability of each
        class is its share, both weighted by ``sample_weight``, over all rows passed to ``fit``,
        also those that early stopping set aside. Two classes have one logit, more one each.
    exact_ : bool
        Whether no flip of the sensitive columns can change a prediction.
    portfolio_ : Portfolio or None
        What predictions are averaged over with ``invariance="marginal"``.
    recipes_ : list of dict
        The recipes that were tried: their settings, whether they were chosen, and the loss of each
        by itself, on the bags that it was trained on: of those given up early these are few.
    oob_loss_ : float or None
        Loss of the chosen members' mean, every row by those that left it out; None of a single
        network.
    history_ : History
        Losses of every epoch of the first member, and the λ that was used.
    schema_ : Schema
        What the training table looked like.
    model_ : FCorrTransformer or Pack
        The trained network, or the pack of them.
    feature_names_in_ : ndarray of str
        Column names of the training table, where it had names.
    n_features_in_ : int
        Number of its columns.

    Examples
    --------
    >>> from fcorr.data import make_proxy_bias
    >>> X, y = make_proxy_bias(2_000, task="classification", random_state=0)
    >>> model = FCorrClassifier(sensitive="S", n_members=1, epochs=5, random_state=0).fit(X, y)
    >>> model.attention(X).names
    ('S', 'X3', 'Z', 'X1', 'X2')
    """

    class_weight: ClassWeight = None
    threshold: float | ThresholdRule = 0.5
    proxy_target: ProxyTarget = "score"

    classes_: NDArray[Any] = field(init=False)
    class_weight_: NDArray[np.float64] = field(init=False)
    threshold_: float | None = field(init=False)

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

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the logarithm of each probability; parameters as in :meth:`predict_proba`."""
        outputs = self._outputs(self._read_known_table(X))
        if len(self.classes_) == 2:
            outputs = np.column_stack([np.zeros(len(outputs)), outputs[:, 0]])
        return outputs - np.logaddexp.reduce(outputs, axis=1, keepdims=True)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Compute the log-odds of the second class, or with more classes a score of each.

        Parameters as in :meth:`predict_proba`. Of several classes, ``(n_rows, n_classes)``, the
        softmax makes probabilities of them.
        """
        outputs = self._outputs(self._read_known_table(X))
        return outputs[:, 0] if len(self.classes_) == 2 else outputs

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
        try:
            check_classification_targets(outcomes.y)
        except ValueError as error:
            raise InvalidInputError(
                f"{outcomes.label} must hold classes. Use FCorrRegressor for numbers. ({error})"
            ) from error
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

    def _dial(self) -> ProxyDial:
        if self.proxy_target == "score":
            return ScoreDial(float(self.proxy), is_log_odds=True)
        if not isinstance(self.threshold, Real) or not 0 < self.threshold < 1:
            needed, got = "a threshold that is a number within (0, 1)", f"{self.threshold!r}"
        elif len(self.classes_) > 2:
            needed, got = "two classes", f"{len(self.classes_)}"
        elif self.class_weight is not None:
            # Both say what errors cost.
            needed, got = "class_weight=None", f"{self.class_weight!r}"
        else:
            return DecisionDial(float(self.proxy), self.proxy_target, float(self.threshold))
        raise InvalidInputError(
            f"proxy_target={self.proxy_target!r} sets the cost of decisions in training: it needs "
            f"{needed}, got {got}. Correct it, or use proxy_target='score'.",
            argument="proxy_target",
        )

    def _weigh_classes(self, outcomes: Outcomes) -> NDArray[np.float64]:
        shares = self._class_shares(outcomes)
        labels: list[Any] = self.classes_.tolist()
        if not isinstance(self.class_weight, Mapping):
            is_balanced = self.class_weight == "balanced"
            return 1 / (len(labels) * shares) if is_balanced else np.ones(len(labels))
        if unknown := [label for label in self.class_weight if label not in labels]:
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
        if unknown := [label for label in labels.tolist() if label not in code_of]:
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

    def _make_target(self, outcomes: Outcomes) -> Target:
        codes, weight = self._codes(outcomes), self._loss_weight(outcomes)
        shares, weights = self._class_shares(outcomes), np.bincount(codes, weights=weight)
        weighted = weights / weights.sum()
        log_shares = np.log(weighted)
        # Class weights change the loss, and so its curvature, but not what rows can tell.
        curvature, of_rows, of_equal = (
            float(np.mean(p * (1 - p))) for p in (weighted, shares, 1 / len(shares))
        )
        return Target(
            self._encode_target(outcomes),
            weight,
            self._loss(),
            start=log_shares - log_shares.mean() if len(weights) > 2 else np.diff(log_shares),
            curvature=curvature,
            rows_for_one=of_equal / max(of_rows, _LEAST_CURVATURE),
            strata=codes,
        )

    def _balance(self, outputs: NDArray[np.float64], outcomes: Outcomes) -> NDArray[np.float64]:
        if self.proxy and self.proxy_target != "score":
            return np.zeros(1)  # decisions are trained for the threshold as it is
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

    def _link(self) -> Link:
        return Link("sigmoid" if len(self.classes_) == 2 else "softmax")

    def _class_labels(self) -> tuple[Any, ...] | None:
        return None if len(self.classes_) == 2 else tuple(self.classes_.tolist())

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
        if dtype.kind not in "biufUO":
            raise ValueError(f"classes are of type {dtype}")
        labels = state["classes"]
        self.classes_ = np.array(labels, dtype=dtype)
        if len(labels) < 2 or not labels == self.classes_.tolist() == sorted(set(labels)):
            raise ValueError(f"classes are {labels}")
        self.class_weight_ = np.array(state["class_weight"], dtype=np.float64)
        if self.class_weight_.shape != self.classes_.shape or not (self.class_weight_ > 0).all():
            raise ValueError(f"class weights are {self.class_weight_}")
        is_binary = len(self.classes_) == 2
        self.threshold_ = float(state["threshold"]) if is_binary else None
        if self.threshold_ is not None and not 0 <= self.threshold_ <= _NOBODY:
            raise ValueError(f"threshold is {self.threshold_}")
