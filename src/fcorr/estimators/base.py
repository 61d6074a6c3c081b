"""What is FCorrTransformer's own: knots, exact invariance, readable attention, certificates."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from fcorr._core import RandomState
from fcorr.certify.certificate import Certificate
from fcorr.certify.exactness import is_exact
from fcorr.data.bins import Bins
from fcorr.data.describing import CategoricalMissing, NumericMissing
from fcorr.data.encoding import EncodedTable
from fcorr.data.inference import ConstantColumns, MinCategoryRows
from fcorr.data.kinds import Kinds
from fcorr.data.targets import Outcomes
from fcorr.estimators.invariance import Invariance, Portfolio
from fcorr.estimators.matrix import FeatureMatrix
from fcorr.estimators.network import Columns, NetworkEstimator, choose_batch_size
from fcorr.estimators.options import check_options
from fcorr.estimators.weights import check_sizes
from fcorr.nn.attention import mean_attention_scores
from fcorr.nn.counterfactuals import Exchange
from fcorr.nn.engine import EngineName
from fcorr.nn.fcorr import FCorrTransformer, NumericEmbeddingName
from fcorr.training.knots import choose_knots
from fcorr.training.loop import Pace, locate_rows
from fcorr.training.objective import CarForm, CarWeight, Objective
from fcorr.training.workers import start_workers

_FEW_FEATURES = 3  # LayerNorm takes away location and scale: of two numbers a sign is left
_COLLAPSED_SHARE = 0.25  # of the epochs, in which the model adapts to a collapsed embedding
_PORTFOLIO = "portfolio.values", "portfolio.shares"  # in a model file


class BaseFCorr(NetworkEstimator):
    """Base of :class:`FCorrClassifier` and :class:`FCorrRegressor`; not for direct use.

    NOTE[DIFF]: the residual round the attention is on by default; the paper's model has none.
    """

    model_: FCorrTransformer
    portfolio_: Portfolio | None

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
        beta2: float = 0.95,
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
        super().__init__(
            sensitive=sensitive,
            car=car,
            bins=bins,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            kinds=kinds,
            min_category_rows=min_category_rows,
            missing_categorical=missing_categorical,
            constant_columns=constant_columns,
            random_state=random_state,
            device=device,
            verbose=verbose,
        )
        self.car_form = car_form
        self.car_combinations = car_combinations
        self.invariance = invariance
        self.head = head
        self.n_layers = n_layers
        self.residual = residual
        self.numeric_embedding = numeric_embedding
        self.n_knots = n_knots
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.beta2 = beta2
        self.missing_numeric = missing_numeric
        self.engine = engine

    # The network

    def _choose_network(self) -> dict[str, Any]:
        n_features = len(self.schema_.feature_names)
        if n_features < _FEW_FEATURES:
            warnings.warn(
                f"X has {n_features} feature(s), and LayerNorm across so few leaves "
                "nearly nothing of them: expect poor predictions. Use at least "
                f"{_FEW_FEATURES} features, or a simpler model.",
                UserWarning,
                stacklevel=4,
            )
        return {
            "name": "fcorr",
            "head": [int(size) for size in self.head],
            "n_layers": int(self.n_layers),
            "residual": bool(self.residual),
            "numeric_embedding": self.numeric_embedding,
        }

    def _make_network(
        self, encoded: EncodedTable, generator: torch.Generator | None
    ) -> FCorrTransformer:
        return self._build(choose_knots(encoded.numbers, self.n_knots), generator)

    def _build(
        self, knots: Sequence[Tensor], generator: torch.Generator | None = None
    ) -> FCorrTransformer:
        return FCorrTransformer(
            self.schema_.cardinalities,
            len(self.schema_.numeric),
            head=tuple(self.network_["head"]),
            n_layers=self.network_["n_layers"],
            residual=self.network_["residual"],
            n_outputs=self._n_outputs(),
            numeric_embedding=self.network_["numeric_embedding"],
            knots=knots,
            dropout=self.dropout,
            learn_missing=any(column.keep_missing for column in self.schema_.numeric),
            generator=generator,
        )

    # Training

    def _prepare_numbers(self, numbers: Tensor) -> Tensor:
        with start_workers(numbers.numel()) as workers:
            return locate_rows(self.model_, numbers, workers)

    def _objective(self, exchanges: tuple[Exchange, ...]) -> Objective:
        return Objective(
            self.model_,
            self._loss(),
            exchanges=exchanges,
            # Averaging over the sensitive values takes a model that makes use of them.
            car=None if self.invariance == "marginal" else self.car,
            car_form=self.car_form,
        )

    def _pace(self, n_rows: int) -> Pace:
        return Pace(
            epochs=self.epochs,
            batch_size=choose_batch_size(self.batch_size, n_rows),
            learning_rate=self.learning_rate,
            beta2=self.beta2,
            patience=self._patience(),
            collapsed_epochs=self._collapsed_epochs(),
        )

    def _collapsed_epochs(self) -> int:
        if self.invariance != "adapt" or not self.schema_.sensitive:
            return 0
        return max(1, round(_COLLAPSED_SHARE * self.epochs))

    def _finish(self, encoded: EncodedTable, outcomes: Outcomes) -> None:
        sensitive = self.schema_.sensitive_positions
        self.exact_ = bool(sensitive) and self.invariance is not None
        self.portfolio_ = None
        if sensitive and self.invariance == "marginal":
            weight = outcomes.weight * outcomes.exposure
            self.portfolio_ = Portfolio.learn(encoded, sensitive, weight)

    # Prediction

    def _network_outputs(self) -> Callable[..., Tensor]:
        if self.portfolio_ is None:
            return self.model_
        return partial(self.portfolio_.outputs, self.model_, self._link_name())

    # What is read off the model

    def attention(self, X: Any, *, layer: int = 0) -> FeatureMatrix:
        """Mean pre-softmax attention matrix ``z zᵀ/√p`` of a layer over the rows of X.

        Off the diagonal it reads as dependence between features, on the diagonal as a feature's
        significance (paper, §4.1). Sensitive features come first. A model with
        ``invariance="marginal"`` needs the sensitive columns here, which ``predict`` does not.

        Parameters
        ----------
        X : dataframe or array of shape (n_rows, n_features)
            Rows to average over.
        layer : int, default=0
            Which layer, from 0 to ``n_layers`` − 1. Only the first one's matrix is about pairs of
            features: what deeper layers attend with is already a mixture of all.

        Returns
        -------
        FeatureMatrix
            The matrix, with the features' names.
        """
        check_is_fitted(self, "model_")
        self._check_layer(layer)
        is_collapsed = self.exact_ and self.portfolio_ is None
        table = self._read_known_table(X, read_sensitive=not is_collapsed)
        encoded = self._encode(table, read_sensitive=not is_collapsed)
        return self._feature_matrix(self._mean_attention(encoded, int(layer)))

    def _significance(self, encoded: EncodedTable) -> NDArray[np.float64]:
        return self._mean_attention(encoded).diagonal().copy()

    def _mean_attention(self, encoded: EncodedTable, layer: int = 0) -> NDArray[np.float64]:
        n_features = len(self.schema_.feature_names)
        total = torch.zeros(n_features, n_features, dtype=torch.float64)

        def normalized(x_cat: Tensor, x_num: Tensor) -> Tensor:
            return self.model_.normalized_embedding(x_cat, x_num, layer)

        for z in self._map(encoded, normalized):
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

    def _own_tensors(self) -> dict[str, Tensor]:
        if self.portfolio_ is None:
            return {}
        return dict(zip(_PORTFOLIO, (self.portfolio_.values, self.portfolio_.shares), strict=True))

    def _restore_own(self, tensors: dict[str, Tensor]) -> None:
        values, shares = (tensors.pop(name, None) for name in _PORTFOLIO)
        self.portfolio_ = None
        if values is not None and shares is not None:
            self.portfolio_ = Portfolio.restore(values, shares, self.schema_)

    def _restore_network(self, weights: dict[str, Tensor]) -> FCorrTransformer:
        sizes = {name: value for name, value in self.network_.items() if name != "name"}
        if self.network_["name"] != "fcorr":
            raise ValueError(f"{type(self).__name__} cannot be {self.network_['name']!r}")
        check_options(self.get_params(deep=False) | sizes)
        check_sizes(sizes, weights)
        padded = weights.get("numeric.knots", torch.empty(0, 0))
        model = self._build([row[row.isfinite()] for row in padded])
        model.load_state_dict(weights)
        self._check_exactness(model)
        return model

    def _check_exactness(self, model: FCorrTransformer) -> None:
        """Prove once more what a file says: that no flip can change a prediction."""
        positions = self.schema_.sensitive_positions
        if self.exact_ and not positions:
            raise ValueError("it is said to be exact, without sensitive features")
        if self.portfolio_ is not None:
            if not self.exact_:
                raise ValueError("a model that averages over a portfolio is exact, this one is not")
        elif self.exact_ and not is_exact(model, positions):
            raise ValueError(
                "it is said to be exactly invariant, but its weights tell sensitive values apart"
            )
