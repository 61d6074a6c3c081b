"""What all estimators share: from a table to a trained network and back."""

import math
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from fcorr._core import InvalidInputError, RandomState, draw_seed
from fcorr.certify.links import Link, LinkName
from fcorr.data.bins import Bins
from fcorr.data.describing import CategoricalMissing, NumericMissing
from fcorr.data.encoding import EncodedTable, encode
from fcorr.data.inference import ConstantColumns, MinCategoryRows, infer_schema
from fcorr.data.kinds import Kinds
from fcorr.data.tables import Table, read_table, resolve_columns
from fcorr.data.targets import Outcomes, column_name, read_outcomes
from fcorr.estimators.invariance import number_grid
from fcorr.estimators.matrix import FeatureMatrix
from fcorr.estimators.options import check_device, check_options, is_integer
from fcorr.estimators.reading import TableReader, exposures
from fcorr.nn.counterfactuals import Exchange, exchange_features
from fcorr.nn.engine import EngineName, prepare_engine, resolve_engine, use_engine
from fcorr.training.history import History
from fcorr.training.loop import Pace, map_rows, train
from fcorr.training.losses import Loss
from fcorr.training.objective import BaseObjective, CarWeight, Rows
from fcorr.training.progress import make_progress
from fcorr.training.workers import start_workers

Columns = str | int | Sequence[str | int] | None
EvalSet = tuple[Any, ArrayLike] | tuple[Any, ArrayLike, ArrayLike]

EQUAL_PREDICTIONS = "Predictions must differ between rows to be of use"
"""How the warning of a network begins that predicts one value for all."""

_PATIENCE = 5  # epochs to wait for a better validation loss with early_stopping=True
_NO_SPREAD = 1e-3  # of outputs, to count as one value


class NetworkEstimator(ABC, TableReader):
    """Base of all estimators; not for direct use.

    A class with a target (:class:`NetworkClassifier`, :class:`NetworkRegressor`) says what y is to
    the network, a class with a network (:class:`BaseFCorr`, :class:`BaseBaseline`) what it is made
    of. An estimator inherits from one of each.
    """

    exposure: str | int | None = None
    """Column of exposures; an argument of the estimators that have a log link."""
    missing_numeric: NumericMissing = "mean"
    """What a missing number is; an argument where the network has an embedding for it."""
    engine: EngineName = "auto"
    """Which arithmetic runs; an argument where it matters."""
    car_combinations: bool = False
    """Whether sensitive features are exchanged together; an argument where it matters."""

    model_: nn.Module
    network_: dict[str, Any]
    balance_: NDArray[np.float64]
    history_: History
    significance_: NDArray[np.float64]
    seed_: int

    def __init__(
        self,
        *,
        sensitive: Columns,
        car: CarWeight,
        bins: Bins | None,
        early_stopping: bool | int,
        validation_fraction: float,
        kinds: Kinds | None,
        min_category_rows: MinCategoryRows,
        missing_categorical: CategoricalMissing,
        constant_columns: ConstantColumns,
        random_state: RandomState,
        device: str,
        verbose: bool | int,
    ) -> None:
        self.sensitive = sensitive
        self.car = car
        self.bins = bins
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.kinds = kinds
        self.min_category_rows = min_category_rows
        self.missing_categorical = missing_categorical
        self.constant_columns = constant_columns
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    # What estimators of different targets differ in.

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

    # What estimators of different networks differ in.

    @abstractmethod
    def _choose_network(self) -> dict[str, Any]:
        """Return the name and the sizes of the network, plain data; refuse what cannot be."""

    @abstractmethod
    def _make_network(self, encoded: EncodedTable, generator: torch.Generator | None) -> nn.Module:
        """Make the network that ``network_`` describes for the training table."""

    @abstractmethod
    def _restore_network(self, weights: dict[str, Tensor]) -> nn.Module:
        """Make the network that ``network_`` describes, with these weights, or refuse them."""

    @abstractmethod
    def _pace(self, n_rows: int) -> Pace:
        """Return how long and how fast to train."""

    @abstractmethod
    def _objective(self, exchanges: tuple[Exchange, ...]) -> BaseObjective:
        """Return what training minimises."""

    @abstractmethod
    def _significance(self, encoded: EncodedTable) -> NDArray[np.float64]:
        """Return what the trained network reveals of each attending feature's significance."""

    def _n_attending(self) -> int:
        """Return how many features attend to each other, the first of ``feature_names``."""
        return len(self.schema_.feature_names)

    def _prepare_numbers(self, numbers: Tensor) -> Tensor:
        """Do with numbers what need not be done in every step."""
        return numbers

    def _finish(self, encoded: EncodedTable, outcomes: Outcomes) -> None:
        """Learn what else predictions need, when training is over."""
        self.exact_ = False

    def _network_outputs(self) -> Callable[..., Tensor]:
        """Return what maps codes and numbers to outputs."""
        return self.model_

    def _numbers_per_row(self) -> int:
        """Return the size of scoring one row; see ``fcorr.training.loop``."""
        return len(self.schema_.feature_names)

    def _own_tensors(self) -> dict[str, Tensor]:
        """Return what a model file holds beside the network's weights."""
        return {}

    def _restore_own(self, tensors: dict[str, Tensor]) -> None:
        """Take out of the tensors what :meth:`_own_tensors` put there."""

    # Fit

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        eval_set: EvalSet | None = None,
        init_model: "NetworkEstimator | None" = None,
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
        init_model: "NetworkEstimator | None",
    ) -> None:
        device = check_device(self.device)
        table = read_table(X)
        exposure = None
        if self.exposure is not None:
            (exposure,) = resolve_columns(table, [self.exposure], "exposure")
        outcomes = read_outcomes(y, sample_weight, exposures(table, exposure))
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
        self.network_ = self._choose_network()
        self.seed_ = draw_seed(self.random_state)
        generator = torch.Generator().manual_seed(self.seed_)
        encoded = self._learn_encoding(table)
        self.model_ = self._make_network(encoded, generator).to(device)
        if init_model is not None:
            self._start_from(init_model)
        rows = self._rows(encoded, outcomes, device)
        validation = self._validation_rows(eval_set, device)
        if self.early_stopping and validation is None:
            rows, validation = self._split(rows, generator)
        objective = self._objective(self._exchanges(encoded, device))
        pace = self._pace(len(rows))
        n_numbers = min(pace.batch_size, len(rows)) * objective.numbers_per_row(rows)
        with (
            start_workers(n_numbers) as workers,
            make_progress(self.verbose, pace.epochs) as progress,
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
        self._finish(encoded, outcomes)
        # On all rows of X, also on those that early stopping set aside: it is their totals that
        # must agree, and one constant per output is not overfitted.
        outputs = self._raw_outputs(encoded)
        self._check_outputs_differ(outputs, outcomes)
        self.balance_ = self._balance(outputs, outcomes)
        self._learn_decision(outputs + self.balance_, outcomes)
        self.significance_ = self._significance(encoded)

    def _check_outputs_differ(self, outputs: NDArray[np.float64], outcomes: Outcomes) -> None:
        """Warn of a network that learnt next to nothing; its outputs have the scale of 1."""
        spread = outputs.std(0).max()
        if spread < _NO_SPREAD and (outcomes.y != outcomes.y[0]).any():
            warnings.warn(
                f"{EQUAL_PREDICTIONS}, got outputs with a standard deviation of {spread:.1g}. "
                "Either X says nothing of y, or training went astray: try a smaller learning_rate, "
                "a longer memory of the optimiser (beta2=0.999), less dropout or more epochs.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _encode(self, table: Table, *, read_sensitive: bool = True) -> EncodedTable:
        """Turn a table into what the network reads."""
        return encode(table, self.schema_, read_sensitive=read_sensitive)

    def _learn_encoding(self, table: Table) -> EncodedTable:
        """Learn what :meth:`_encode` needs beside the schema, and encode the training table."""
        return self._encode(table)

    def _start_from(self, other: "NetworkEstimator") -> None:
        """Take over the weights of a fitted estimator."""
        check_is_fitted(other, "model_")
        weights, theirs = self.model_.state_dict(), other.model_.state_dict()
        sizes = {name: tuple(tensor.shape) for name, tensor in weights.items()}
        if other.schema_.to_dict() != self.schema_.to_dict() or sizes != {
            name: tuple(tensor.shape) for name, tensor in theirs.items()
        }:
            raise InvalidInputError(
                "init_model must have been fitted to the same table, with a network of the same "
                "sizes, got one of another layout. Fit without init_model."
            )
        self.model_.load_state_dict(theirs)

    def _rows(self, encoded: EncodedTable, outcomes: Outcomes, device: torch.device) -> Rows:
        codes, numbers = _tensors(encoded, device)
        return Rows(
            codes,
            self._prepare_numbers(numbers),
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
        encoded = self._encode(table)
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

    def _patience(self) -> int | None:
        if not self.early_stopping:
            return None
        is_switch = isinstance(self.early_stopping, bool | np.bool_)
        return _PATIENCE if is_switch else int(self.early_stopping)

    # Predict

    def _outputs(self, table: Table) -> NDArray[np.float64]:
        """Compute the model's balanced outputs, ``(n_rows, n_outputs)``."""
        encoded = self._encode(table, read_sensitive=not self.exact_)
        return self._raw_outputs(encoded) + self.balance_

    def _raw_outputs(self, encoded: EncodedTable) -> NDArray[np.float64]:
        parts = list(self._map(encoded, self._network_outputs()))
        return torch.cat(parts).cpu().double().numpy()

    def _map(
        self,
        encoded: EncodedTable,
        function: Callable[..., Tensor],
        *,
        numbers_per_row: int | None = None,
        aligned: bool = True,
    ) -> Iterator[Tensor]:
        """Apply a function of codes and numbers to the rows, in chunks; see ``map_rows``."""
        device = next(self.model_.parameters()).device
        numbers_per_row = numbers_per_row or self._numbers_per_row()
        with use_engine(self.engine), start_workers(len(encoded) * numbers_per_row) as workers:
            yield from map_rows(
                self.model_,
                *_tensors(encoded, device),
                function,
                workers,
                numbers_per_row=numbers_per_row,
                aligned=aligned,
            )

    # What is read off the model

    @abstractmethod
    def attention(self, X: Any, *, layer: int = 0) -> FeatureMatrix:
        """Return the mean attention of a layer over the rows of X."""

    def _check_layer(self, layer: Any) -> None:
        n_layers = len(self.model_.layers)  # type: ignore[arg-type]
        if not is_integer(layer, 0) or layer >= n_layers:
            raise InvalidInputError(
                f"layer must be an integer from 0 to {n_layers - 1}, got {layer!r}. Leave it out "
                "for the first layer, whose matrix is about pairs of features."
            )

    def feature_significance(self) -> dict[str, float]:
        """Significance of each feature on the training table, the largest first.

        It is read off the attention: in FCorrTransformer the diagonal of the matrix before the
        softmax (paper, §4.1), in other transformers the attention that a feature receives, the
        column sums of the weights (§4.2).
        """
        check_is_fitted(self, "model_")
        order = np.argsort(-self.significance_, kind="stable")
        names = self.schema_.feature_names
        return {names[i]: float(self.significance_[i]) for i in order}

    def _feature_matrix(self, values: NDArray[np.float64]) -> FeatureMatrix:
        """Name a matrix between the attending features; sensitive ones come first."""
        names = self.schema_.feature_names[: self._n_attending()]
        first = [i for i in self.schema_.sensitive_positions if i < len(names)]
        order = [*first, *(i for i in range(len(names)) if i not in first)]
        return FeatureMatrix(tuple(names[i] for i in order), values[np.ix_(order, order)])

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


def choose_batch_size(batch_size: int | Literal["auto"], n_rows: int) -> int:
    """Choose about 64 steps an epoch: few rows need small batches to take enough steps."""
    if batch_size != "auto":
        return int(batch_size)
    return int(min(2048, max(32, 2 ** round(math.log2(n_rows / 64)))))


def _as_columns(columns: Columns) -> Sequence[str | int]:
    if columns is None:
        return ()
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        return [columns]
    return list(columns)


def _tensors(encoded: EncodedTable, device: torch.device) -> tuple[Tensor, Tensor]:
    return (
        torch.from_numpy(encoded.codes).to(device),
        torch.from_numpy(encoded.numbers).to(device),
    )
