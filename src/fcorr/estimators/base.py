"""What the classifier and the regressor share: from a table to a trained model and back."""

import math
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from fcorr._core.errors import InvalidInputError
from fcorr._core.randomness import RandomState, draw_seed
from fcorr.certify.certificate import Certificate
from fcorr.certify.links import Link, LinkName
from fcorr.data.bins import Bins
from fcorr.data.describing import CategoricalMissing, NumericMissing
from fcorr.data.differences import compare
from fcorr.data.encoding import EncodedTable, encode
from fcorr.data.exposures import read_exposure
from fcorr.data.inference import ConstantColumns, MinCategoryRows, infer_schema
from fcorr.data.kinds import Kinds
from fcorr.data.schema import Schema
from fcorr.data.tables import Table, read_table, resolve_columns
from fcorr.data.targets import Outcomes, column_name, read_outcomes
from fcorr.estimators.invariance import Invariance, Portfolio, number_grid
from fcorr.estimators.matrix import FeatureMatrix
from fcorr.estimators.options import check_device, check_options
from fcorr.nn.attention import mean_attention_scores
from fcorr.nn.counterfactuals import Exchange, exchange_features
from fcorr.nn.engine import EngineName, prepare_engine, resolve_engine, use_engine
from fcorr.nn.fcorr import FCorrTransformer, NumericEmbeddingName
from fcorr.training.history import History
from fcorr.training.knots import choose_knots
from fcorr.training.loop import Pace, locate_rows, map_rows, train
from fcorr.training.losses import Loss
from fcorr.training.objective import CarForm, CarWeight, Objective, Rows
from fcorr.training.progress import make_progress
from fcorr.training.workers import start_workers

Columns = str | int | Sequence[str | int] | None
EvalSet = tuple[Any, ArrayLike] | tuple[Any, ArrayLike, ArrayLike]

_FEW_FEATURES = 3  # LayerNorm takes away location and scale: of two numbers a sign is left
_COLLAPSED_SHARE = 0.25  # of the epochs, in which the model adapts to a collapsed embedding
_PATIENCE = 5  # epochs to wait for a better validation loss with early_stopping=True


class BaseFCorr(ABC, BaseEstimator):
    """Base of :class:`FCorrClassifier` and :class:`FCorrRegressor`; not for direct use.

    NOTE[DIFF]: the residual round the attention is on by default; the paper's model has none.
    """

    exposure: str | int | None = None
    """Column of exposures; an argument of the estimators that have a log link."""

    schema_: Schema
    model_: FCorrTransformer
    balance_: NDArray[np.float64]
    history_: History
    significance_: NDArray[np.float64]
    exact_: bool
    portfolio_: Portfolio | None
    seed_: int
    n_features_in_: int

    def __init__(
        self,
        *,
        sensitive: Columns = None,
        car: CarWeight = 1e6,
        car_form: CarForm = "sensitive",
        car_combinations: bool = False,
        invariance: Invariance = "adapt",
        bins: Bins | None = None,
        head: Sequence[int] = (128, 128),
        n_layers: int = 1,
        residual: bool = True,
        numeric_embedding: NumericEmbeddingName = "spline",
        n_knots: int = 64,
        dropout: float = 0.1,
        epochs: int = 20,
        batch_size: int | Literal["auto"] = "auto",
        learning_rate: float = 0.02,
        early_stopping: bool | int = False,
        validation_fraction: float = 0.1,
        kinds: Kinds | None = None,
        min_category_rows: MinCategoryRows = "auto",
        missing_categorical: CategoricalMissing = "category",
        missing_numeric: NumericMissing = "mean",
        constant_columns: ConstantColumns = "error",
        random_state: RandomState = None,
        device: str = "cpu",
        engine: EngineName = "auto",
        verbose: bool | int = False,
    ) -> None:
        self.sensitive = sensitive
        self.car = car
        self.car_form = car_form
        self.car_combinations = car_combinations
        self.invariance = invariance
        self.bins = bins
        self.head = head
        self.n_layers = n_layers
        self.residual = residual
        self.numeric_embedding = numeric_embedding
        self.n_knots = n_knots
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.kinds = kinds
        self.min_category_rows = min_category_rows
        self.missing_categorical = missing_categorical
        self.missing_numeric = missing_numeric
        self.constant_columns = constant_columns
        self.random_state = random_state
        self.device = device
        self.engine = engine
        self.verbose = verbose

    # What the two estimators differ in.

    @abstractmethod
    def _learn_target(self, outcomes: Outcomes) -> None:
        """Learn what maps y to the model's target, and set it as fitted attributes."""

    @abstractmethod
    def _encode_target(self, outcomes: Outcomes) -> Tensor:
        """Map y, and the exposure where it counts, to the model's target."""

    def _loss_weight(self, outcomes: Outcomes) -> NDArray[np.float64]:
        """Return the weight of each row in the loss, of mean 1."""
        return outcomes.weight

    @abstractmethod
    def _balance(self, outputs: NDArray[np.float64], outcomes: Outcomes) -> NDArray[np.float64]:
        """Return the shift of each output that makes predicted totals those of y."""

    def _learn_decision(self, outputs: NDArray[np.float64], outcomes: Outcomes) -> None:
        """Learn what maps balanced outputs to decisions, where there are decisions."""

    @abstractmethod
    def _link_name(self) -> LinkName:
        """Return the function that makes predictions of outputs."""

    @abstractmethod
    def _link(self) -> Link:
        """Return how a fitted model's predictions, per unit of exposure, come from raw outputs."""

    @abstractmethod
    def _to_predictions(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn balanced outputs into predictions per unit of exposure, a column for each."""

    @abstractmethod
    def _n_outputs(self) -> int:
        """Return the number of the model's outputs."""

    @abstractmethod
    def _loss(self) -> Loss:
        """Return the performance loss."""

    @abstractmethod
    def _target_state(self) -> dict[str, Any]:
        """Return what was learnt about y, as plain data for a model file."""

    @abstractmethod
    def _restore_target(self, state: dict[str, Any]) -> None:
        """Undo :meth:`_target_state`."""

    # Fit

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        eval_set: EvalSet | None = None,
        init_model: "BaseFCorr | None" = None,
    ) -> Self:
        """Fit the model.

        When training is over, a constant is added to the outputs so that the predictions for X,
        weighted, sum to what y does: see ``balance_``.

        Parameters
        ----------
        X : dataframe (pandas, polars, pyarrow) or array of shape (n_rows, n_features)
            Training table. Numbers are numeric features, text and booleans categorical ones, dates
            are taken apart into numbers; ``kinds`` says otherwise.
        y : array-like of shape (n_rows,)
            Target.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row: in the loss, and in every total and threshold that is learnt.
        eval_set : tuple (X, y) or (X, y, sample_weight), optional
            Rows to measure after every epoch; with ``early_stopping`` they decide when to stop.
        init_model : fitted estimator, optional
            Start from its weights instead of random ones. It must have been fitted to the same
            columns, with the same categories, and have a network of the same layout. The result
            differs from that of a fit without it.

        Returns
        -------
        Self
            The fitted estimator.
        """
        check_options(self.get_params(deep=False))
        before = dict(self.__dict__)
        try:
            with use_engine(self.engine):
                self._fit(X, y, sample_weight, eval_set, init_model)
        except BaseException:
            # A fit that fails leaves the estimator as it was, never half of one model and half
            # of another.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        eval_set: EvalSet | None,
        init_model: "BaseFCorr | None",
    ) -> None:
        device = check_device(self.device)
        table = read_table(X)
        exposure = None
        if self.exposure is not None:
            (exposure,) = resolve_columns(table, [self.exposure], "exposure")
        outcomes = read_outcomes(y, sample_weight, _exposures(table, exposure))
        self._learn_target(outcomes)
        self.schema_ = infer_schema(
            table,
            sensitive=_as_columns(self.sensitive),
            kinds=self.kinds,
            bins=self.bins,
            missing_categorical=self.missing_categorical,
            missing_numeric=self.missing_numeric,
            min_category_rows=self.min_category_rows,
            constant_columns=self.constant_columns,
            target=column_name(y),
            weight=column_name(sample_weight),
            exposure=exposure,
        )
        self._name_features(table)
        self._warn_of_few_features()
        self.seed_ = draw_seed(self.random_state)
        generator = torch.Generator().manual_seed(self.seed_)
        encoded = encode(table, self.schema_)
        knots = choose_knots(encoded.numbers, self.n_knots)
        self.model_ = self._build_model(knots, generator).to(device)
        if init_model is not None:
            self._start_from(init_model)
        rows = self._rows(encoded, outcomes, device)
        validation = self._validation_rows(eval_set, device)
        if self.early_stopping and validation is None:
            rows, validation = self._split(rows, generator)
        objective = Objective(
            self.model_,
            self._loss(),
            exchanges=self._exchanges(encoded, device),
            # Averaging over the sensitive values takes a model that makes use of them.
            car=None if self.invariance == "marginal" else self.car,
            car_form=self.car_form,
        )
        pace = Pace(
            epochs=self.epochs,
            batch_size=self._batch_size(len(rows)),
            learning_rate=self.learning_rate,
            patience=self._patience(),
            collapsed_epochs=self._collapsed_epochs(),
        )
        with (
            start_workers(min(pace.batch_size, len(rows)) * self._n_features()) as workers,
            make_progress(self.verbose, self.epochs) as progress,
        ):
            prepare_engine(progress.say)
            self.history_ = train(
                objective,
                rows,
                pace,
                generator=generator,
                workers=workers,
                validation=validation,
                progress=progress,
            )
        self.history_.engine = resolve_engine(self.engine)
        sensitive = self.schema_.sensitive_positions
        self.exact_ = bool(sensitive) and self.invariance is not None
        self.portfolio_ = None
        if sensitive and self.invariance == "marginal":
            weight = outcomes.weight * outcomes.exposure
            self.portfolio_ = Portfolio.learn(encoded, sensitive, weight)
        # On all rows of X, also on those that early stopping set aside: it is their totals that
        # must agree, and one constant per output is not overfitted.
        outputs = self._raw_outputs(encoded)
        self.balance_ = self._balance(outputs, outcomes)
        self._learn_decision(outputs + self.balance_, outcomes)
        self.significance_ = self._mean_attention(encoded).diagonal().copy()

    def _name_features(self, table: Table) -> None:
        self.n_features_in_ = len(table.names)
        if table.named:
            self.feature_names_in_ = np.asarray(table.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _warn_of_few_features(self) -> None:
        n_features = len(self.schema_.feature_names)
        if n_features < _FEW_FEATURES:
            warnings.warn(
                f"X has {n_features} feature(s), and LayerNorm across so few leaves "
                "nearly nothing of them: expect poor predictions. Use at least "
                f"{_FEW_FEATURES} features, or a simpler model.",
                UserWarning,
                stacklevel=4,
            )

    def _build_model(
        self, knots: Sequence[Tensor], generator: torch.Generator | None = None
    ) -> FCorrTransformer:
        return FCorrTransformer(
            self.schema_.cardinalities,
            len(self.schema_.numeric),
            head=tuple(self.head),
            n_layers=self.n_layers,
            residual=self.residual,
            n_outputs=self._n_outputs(),
            numeric_embedding=self.numeric_embedding,
            knots=knots,
            dropout=self.dropout,
            learn_missing=any(column.keep_missing for column in self.schema_.numeric),
            generator=generator,
        )

    def _start_from(self, other: "BaseFCorr") -> None:
        """Take over the weights of a fitted estimator."""
        check_is_fitted(other, "model_")
        weights, theirs = self.model_.state_dict(), other.model_.state_dict()
        sizes = {name: tuple(tensor.shape) for name, tensor in weights.items()}
        if other.schema_.to_dict() != self.schema_.to_dict() or sizes != {
            name: tuple(tensor.shape) for name, tensor in theirs.items()
        }:
            raise InvalidInputError(
                "init_model must have been fitted to the same table, with the same head, layers "
                "and embedding, got one of another layout. Fit without init_model."
            )
        self.model_.load_state_dict(theirs)

    def _rows(
        self,
        encoded: EncodedTable,
        outcomes: Outcomes,
        device: torch.device,
    ) -> Rows:
        codes, numbers = _tensors(encoded, device)
        with start_workers(numbers.numel()) as workers:
            located = locate_rows(self.model_, numbers, workers)
        return Rows(
            codes,
            located,
            self._encode_target(outcomes).to(device),
            torch.from_numpy(self._loss_weight(outcomes)).to(device, torch.float32),
        )

    def _validation_rows(self, eval_set: EvalSet | None, device: torch.device) -> Rows | None:
        if eval_set is None:
            return None
        if isinstance(eval_set, list) and len(eval_set) == 1:
            eval_set = eval_set[0]  # LightGBM takes a list of pairs; one of them is what we use
        if not isinstance(eval_set, tuple | list) or len(eval_set) not in (2, 3):
            raise InvalidInputError(
                f"eval_set must be (X, y) or (X, y, sample_weight), got {type(eval_set).__name__}. "
                "Pass eval_set=(X_validation, y_validation)."
            )
        X, y, *weights = eval_set
        table = self._read_known_table(X, read_sensitive=True)
        encoded = encode(table, self.schema_)
        outcomes = read_outcomes(y, weights[0] if weights else None, self._read_exposure(table))
        return self._rows(encoded, outcomes, device)

    def _split(self, rows: Rows, generator: torch.Generator) -> tuple[Rows, Rows]:
        """Set a share of the rows aside for validation."""
        n_validation = max(1, round(self.validation_fraction * len(rows)))
        if n_validation >= len(rows):
            raise InvalidInputError(
                f"early_stopping needs rows to train on beside those it validates on, got "
                f"{len(rows)} row(s) in all. Pass eval_set or early_stopping=False."
            )
        order = torch.randperm(len(rows), generator=generator).to(rows.target.device)
        return rows.take(order[n_validation:]), rows.take(order[:n_validation])

    def _exchanges(self, encoded: EncodedTable, device: torch.device) -> tuple[Exchange, ...]:
        """List what the sensitive features are exchanged for in training."""
        n_categorical = encoded.codes.shape[1]
        sensitive = self.schema_.sensitive_positions
        grids = {
            position: torch.from_numpy(number_grid(encoded.numbers[:, position - n_categorical]))
            for position in sensitive
            if position >= n_categorical
        }
        return exchange_features(
            self.schema_.cardinalities,
            encoded.numbers.shape[1],
            sensitive,
            grids=grids,
            combinations=bool(self.car_combinations),
            device=device,
        )

    def _batch_size(self, n_rows: int) -> int:
        """Choose about 64 steps an epoch: few rows need small batches to take enough steps."""
        if self.batch_size != "auto":
            return int(self.batch_size)
        return int(min(2048, max(32, 2 ** round(math.log2(n_rows / 64)))))

    def _collapsed_epochs(self) -> int:
        if self.invariance != "adapt" or not self.schema_.sensitive:
            return 0
        return max(1, round(_COLLAPSED_SHARE * self.epochs))

    def _patience(self) -> int | None:
        if not self.early_stopping:
            return None
        is_switch = isinstance(self.early_stopping, bool | np.bool_)
        return _PATIENCE if is_switch else int(self.early_stopping)

    # Predict

    def _read_known_table(self, X: Any, *, read_sensitive: bool | None = None) -> Table:
        """Read a table for a fitted model: by name where both have names, else by position."""
        check_is_fitted(self, "model_")
        if read_sensitive is None:
            read_sensitive = not self.exact_
        fitted_with_names = hasattr(self, "feature_names_in_")
        # Not even converted: what is not read may be anything.
        unread = () if read_sensitive or not fitted_with_names else self.schema_.sensitive
        table = read_table(X, unread=unread)
        if table.named and fitted_with_names:
            return table
        names = {len(columns): columns for columns in self._possible_inputs()}
        if len(table.names) not in names:
            raise InvalidInputError(
                f"X has {len(table.names)} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input. Pass the columns it was trained on."
            )
        if table.named != fitted_with_names:
            owner = (
                "X does not have valid feature names, but"
                if fitted_with_names
                else ("X has feature names, but")
            )
            with_out = "with" if fitted_with_names else "without"
            warnings.warn(
                f"{owner} {type(self).__name__} was fitted {with_out} feature names: "
                "the columns are taken in their order.",
                UserWarning,
                stacklevel=3,
            )
        return table.renamed(names[len(table.names)])

    def _possible_inputs(self) -> list[tuple[str, ...]]:
        """Columns that a table without names may have; where two are as many, the later counts."""
        every, exposure = self._input_names, self.schema_.exposure
        unread = self.schema_.sensitive if getattr(self, "exact_", False) else ()
        left_out: list[set[str | None]] = [{exposure, *unread}, {*unread}, {exposure}, set()]
        return [tuple(name for name in every if name not in names) for names in left_out]

    @property
    def _input_names(self) -> tuple[str, ...]:
        """Names of all columns of the training table, features or not."""
        if hasattr(self, "feature_names_in_"):
            return tuple(self.feature_names_in_.tolist())
        return tuple(f"x{i}" for i in range(self.n_features_in_))

    def _read_exposure(self, table: Table) -> NDArray[np.float64]:
        """Return the exposures of a table for a fitted model."""
        name = self.schema_.exposure
        if name is not None and name not in table.columns:
            raise compare(self.schema_, table).to_error()
        return _exposures(table, name)

    def _outputs(self, table: Table) -> NDArray[np.float64]:
        """Compute the model's balanced outputs, ``(n_rows, n_outputs)``."""
        encoded = encode(table, self.schema_, read_sensitive=not self.exact_)
        return self._raw_outputs(encoded) + self.balance_

    def _raw_outputs(self, encoded: EncodedTable) -> NDArray[np.float64]:
        function: Callable[..., Tensor] = self.model_
        if self.portfolio_ is not None:
            function = partial(self.portfolio_.outputs, self.model_, self._link_name())
        return torch.cat(list(self._map(encoded, function))).cpu().double().numpy()

    def _map(self, encoded: EncodedTable, function: Callable[..., Tensor]) -> Iterator[Tensor]:
        device = next(self.model_.parameters()).device
        n_numbers = len(encoded) * self._n_features()
        with use_engine(self.engine), start_workers(n_numbers) as workers:
            yield from map_rows(self.model_, *_tensors(encoded, device), function, workers)

    def _n_features(self) -> int:
        return len(self.schema_.feature_names)

    # What is read off the model

    def attention(self, X: Any) -> FeatureMatrix:
        """Mean pre-softmax attention matrix ``z zᵀ/√p`` of the first layer over the rows of X.

        Off the diagonal it reads as dependence between features, on the diagonal as a feature's
        significance (paper, §4.1). Sensitive features come first. A model with
        ``invariance="marginal"`` needs the sensitive columns here, which ``predict`` does not.

        Parameters
        ----------
        X : dataframe or array of shape (n_rows, n_features)
            Rows to average over.

        Returns
        -------
        FeatureMatrix
            The matrix, with the features' names.
        """
        is_collapsed = self.exact_ and self.portfolio_ is None
        table = self._read_known_table(X, read_sensitive=not is_collapsed)
        encoded = encode(table, self.schema_, read_sensitive=not is_collapsed)
        names = self.schema_.feature_names
        first = self.schema_.sensitive_positions
        order = [*first, *(i for i in range(len(names)) if i not in first)]
        values = self._mean_attention(encoded)[np.ix_(order, order)]
        return FeatureMatrix(tuple(names[i] for i in order), values)

    def feature_significance(self) -> dict[str, float]:
        """Significance of each feature on the training table, the largest first.

        It is the diagonal of the mean pre-softmax attention matrix (paper, §4.1).
        """
        check_is_fitted(self, "model_")
        order = np.argsort(-self.significance_, kind="stable")
        names = self.schema_.feature_names
        return {names[i]: float(self.significance_[i]) for i in order}

    def _mean_attention(self, encoded: EncodedTable) -> NDArray[np.float64]:
        n_features = self._n_features()
        total = torch.zeros(n_features, n_features, dtype=torch.float64)
        for z in self._map(encoded, self.model_.normalized_embedding):
            total += len(z) * mean_attention_scores(z.double()).cpu()
        return (total / len(encoded)).numpy()

    # What is certain

    def certificate(
        self,
        X: Any = None,
        *,
        epsilon: float | None = None,
        alpha: float | None = None,
        confidence: float = 0.95,
        effort: int = 2**17,
    ) -> Certificate:
        """State what is certain about flips of the sensitive columns.

        A model with ``invariance="adapt"`` or ``"marginal"`` is exact: no flip changes any
        prediction, proven from its structure and weights. For any other model there is a bound
        over all inputs, which may say nothing and then says that; and, given rows, a statement
        about the population that they are drawn from.

        Parameters
        ----------
        X : dataframe or array of shape (n_rows, n_features), optional
            An independent sample of the population, which had no part in training. Each row is
            scored for all its flips.
        epsilon, alpha : float, optional
            One of them, for a statement "with ``confidence`` at most a share ``alpha`` of the
            population would see a change above ``epsilon``"; the other is computed. By default
            ``alpha`` is 0.01. Changes are of the predictions per unit of exposure.
        confidence : float, default=0.95
            Confidence of that statement.
        effort : int, default=2**17
            How hard to try for a small bound over all inputs.

        Returns
        -------
        Certificate
            ``exact``, the bounds, what they rest on; ``print`` it.
        """
        from fcorr.estimators.certifying import certify_estimator

        check_is_fitted(self, "model_")
        return certify_estimator(
            self, X, epsilon=epsilon, alpha=alpha, confidence=confidence, effort=effort
        )

    # Model files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one safetensors file; read it back with :func:`fcorr.load`.

        The file holds the weights and, as JSON in its header, the schema, the arguments and the
        course of the training: no pickle, no code, no training rows. An existing file is
        replaced in one step.
        """
        from fcorr.estimators.model_file import save_model

        check_is_fitted(self, "model_")
        save_model(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _as_columns(columns: Columns) -> Sequence[str | int]:
    if columns is None:
        return ()
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        return [columns]
    return list(columns)


def _exposures(table: Table, name: str | None) -> NDArray[np.float64]:
    return np.ones(table.n_rows) if name is None else read_exposure(table, name)


def _tensors(encoded: EncodedTable, device: torch.device) -> tuple[Tensor, Tensor]:
    return (
        torch.from_numpy(encoded.codes).to(device),
        torch.from_numpy(encoded.numbers).to(device),
    )
