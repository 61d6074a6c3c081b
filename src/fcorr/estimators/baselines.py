"""Other networks behind the same surface: FT-Transformer, TabTransformer, feed-forward network.

They read the same tables, are trained by the same loop and predict by the same methods as FCorr's
estimators, so that an experiment can exchange one for the other. What they lack is what the paper
is about: their weights allow no statement on flips of a sensitive column.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Literal, NoReturn, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from fcorr._core import InvalidInputError, RandomState, enumerate_some
from fcorr.data.bins import Bins
from fcorr.data.describing import CategoricalMissing
from fcorr.data.encoding import EncodedTable, encode
from fcorr.data.inference import ConstantColumns, MinCategoryRows
from fcorr.data.kinds import Kinds
from fcorr.data.tables import Table
from fcorr.estimators._doc import documented
from fcorr.estimators.architectures import ARCHITECTURES, Architecture, NetworkName
from fcorr.estimators.classification import ClassWeight, NetworkClassifier
from fcorr.estimators.matrix import FeatureMatrix
from fcorr.estimators.network import Columns, NetworkEstimator, choose_batch_size
from fcorr.estimators.places import Places
from fcorr.estimators.regression import NetworkRegressor, ObjectiveName
from fcorr.estimators.weights import check_sizes
from fcorr.metrics.thresholds import ThresholdRule
from fcorr.nn.counterfactuals import Exchange
from fcorr.nn.ft_transformer import FTTransformer
from fcorr.nn.multihead_attention import attention_received
from fcorr.nn.tab_transformer import TabTransformer
from fcorr.training.loop import Pace
from fcorr.training.objective import BaselineObjective, CarForm, CarWeight

Auto = Literal["auto"]

_ATTENTION_ENTRIES = 2**32  # weights between features that significance is read off, at most


class BaseBaseline(NetworkEstimator):
    """Base of :class:`BaselineClassifier` and :class:`BaselineRegressor`; not for direct use."""

    car_form: ClassVar[CarForm] = "cda"
    """The form that CAR has in any network with attention."""

    places_: Places

    def __init__(
        self,
        *,
        network: NetworkName,
        network_options: Mapping[str, Any] | None,
        sensitive: Columns,
        car: CarWeight,
        car_rows: float,
        bins: Bins | None,
        dropout: float | Auto,
        epochs: int | Auto,
        batch_size: int | Auto,
        learning_rate: float | Auto,
        beta2: float,
        weight_decay: float | Auto,
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
        self.network = network
        self.network_options = network_options
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.beta2 = beta2
        self.weight_decay = weight_decay
        self.car_rows = car_rows

    # The network

    def _choose_network(self) -> dict[str, Any]:
        architecture = ARCHITECTURES[self.network]
        if architecture.name == "tab_transformer" and not self.schema_.categorical:
            raise InvalidInputError(
                "network='tab_transformer' needs a categorical column, between which alone it has "
                "attention, got numbers only. Use another network, or name categories in kinds=."
            )
        if self.car and self.schema_.sensitive:
            self._refuse_car(architecture)
        dropout = architecture.dropout if self.dropout == "auto" else self.dropout
        return {
            "name": architecture.name,
            **architecture.choose_sizes(self.network_options, dropout),
        }

    def _refuse_car(self, architecture: Architecture) -> None:
        """Refuse CAR where there is no attention to regularise."""
        n_attending = architecture.n_attending(self.schema_)
        if not n_attending:
            raise InvalidInputError(
                f"car needs attention to regularise, got {self.car!r} with network="
                f"{architecture.name!r}, which has none. Use a transformer, or car=None."
            )
        places = zip(self.schema_.sensitive_positions, self.schema_.sensitive_features, strict=True)
        outside = [name for position, name in places if position >= n_attending]
        if outside:
            raise InvalidInputError(
                f"car with network={architecture.name!r} needs categorical sensitive columns: it "
                f"has attention between these alone, got numbers in {enumerate_some(outside)}. Cut "
                "them into groups with bins=, use network='ft_transformer', or car=None."
            )

    def _architecture_and_sizes(self) -> tuple[Architecture, dict[str, Any]]:
        sizes = dict(self.network_)
        return ARCHITECTURES[sizes.pop("name")], sizes

    def _make_network(self, encoded: EncodedTable, generator: torch.Generator | None) -> nn.Module:
        architecture, sizes = self._architecture_and_sizes()
        return architecture.make(self.schema_, sizes, self._n_outputs(), generator)

    def _n_attending(self) -> int:
        return self._architecture_and_sizes()[0].n_attending(self.schema_)

    # Numbers

    def _learn_encoding(self, table: Table) -> EncodedTable:
        encoded = encode(table, self.schema_)
        self.places_ = Places.learn(encoded.numbers)
        return EncodedTable(encoded.codes, self.places_.apply(encoded.numbers))

    def _encode(self, table: Table, *, read_sensitive: bool = True) -> EncodedTable:
        encoded = encode(table, self.schema_, read_sensitive=read_sensitive)
        return EncodedTable(encoded.codes, self.places_.apply(encoded.numbers))

    # Training

    def _objective(self, exchanges: tuple[Exchange, ...]) -> BaselineObjective:
        architecture, sizes = self._architecture_and_sizes()
        n_exchanges = sum(len(exchange) for exchange in exchanges) if self.car else 0
        return BaselineObjective(
            self.model_,
            self._loss(),
            exchanges=exchanges,
            car=self.car,
            car_rows=self.car_rows,
            numbers_per_row=architecture.step_size(self.schema_, sizes, n_exchanges),
        )

    def _pace(self, n_rows: int) -> Pace:
        architecture, _ = self._architecture_and_sizes()

        def choose(name: str) -> Any:
            value = getattr(self, name)
            return getattr(architecture, name) if value == "auto" else value

        return Pace(
            epochs=choose("epochs"),
            batch_size=choose_batch_size(self.batch_size, n_rows),
            learning_rate=choose("learning_rate"),
            beta2=self.beta2,
            weight_decay=choose("weight_decay"),
            patience=self._patience(),
        )

    def _numbers_per_row(self) -> int:
        architecture, sizes = self._architecture_and_sizes()
        return architecture.scoring_size(self.schema_, sizes)

    # What is read off the model

    def attention(self, X: Any, *, layer: int = 0) -> FeatureMatrix:
        """Mean attention weights of a layer over the rows of X and over its heads.

        Row i says what feature i pays to the others. Sensitive features come first. The features
        are all of an FT-Transformer's, whose CLS is left out: rows sum to less than 1; and the
        categorical ones of a TabTransformer's.

        Parameters
        ----------
        X : dataframe or array of shape (n_rows, n_features)
            Rows to average over.
        layer : int, default=0
            Which layer, counted from 0.

        Returns
        -------
        FeatureMatrix
            The matrix, with the features' names.

        Raises
        ------
        InvalidInputError
            The network has no attention.
        """
        encoded = self._encode(self._read_known_table(X))
        self._check_attention()
        self._check_layer(layer)
        return self._feature_matrix(self._mean_attention(encoded, int(layer)))

    def feature_significance(self) -> dict[str, float]:
        """Attention that each feature receives on the training table, the largest first.

        It is the column sums of the mean attention weights, which the paper reads as significance
        in an FT-Transformer (§4.2). A table with very many rows and features gives every so many-th
        of its rows: as many as have four billion weights between features.

        Raises
        ------
        InvalidInputError
            The network has no attention.
        """
        check_is_fitted(self, "model_")
        self._check_attention()
        return super().feature_significance()

    def _check_attention(self) -> None:
        if not self._n_attending():
            raise InvalidInputError(
                f"Attention is read off a network that has some, got {self.network_['name']!r}, "
                "which has none. Use a transformer, or ask the predictions, as "
                "sklearn.inspection.permutation_importance does."
            )

    def _significance(self, encoded: EncodedTable) -> NDArray[np.float64]:
        if not self._n_attending():
            return np.empty(0)
        step = math.ceil(len(encoded) * self._n_attending() ** 2 / _ATTENTION_ENTRIES)
        some = EncodedTable(encoded.codes[::step], encoded.numbers[::step])
        mean_FF = torch.from_numpy(self._mean_attention(some))
        return attention_received(mean_FF.unsqueeze(0))[0].numpy()

    def _mean_attention(self, encoded: EncodedTable, layer: int = 0) -> NDArray[np.float64]:
        architecture, sizes = self._architecture_and_sizes()
        n_features, size = self._n_attending(), architecture.attention_size(self.schema_, sizes)
        total = torch.zeros(n_features, n_features, dtype=torch.float64)
        model = cast(FTTransformer | TabTransformer, self.model_)
        weights = partial(model.attention_weights, layer=layer)
        for weights_BFF in self._map(encoded, weights, numbers_per_row=size, aligned=False):
            total += weights_BFF.double().sum(0).cpu()
        return (total / len(encoded)).numpy()

    def certificate(self, X: Any = None, **options: Any) -> NoReturn:
        """Refuse: a baseline's weights allow no statement on all flips of a sensitive column.

        Raises
        ------
        InvalidInputError
            Always; the message names what there is instead.
        """
        raise InvalidInputError(
            f"A certificate rests on the weights of an FCorrTransformer, got a "
            f"{type(self).__name__}, whose weights allow no such statement. Fit FCorr with "
            "invariance='adapt' or 'marginal'; or, for a statement on the population from a sample "
            "of it, which any model allows, use fcorr.metrics.population_bound("
            "flip_scores(model.predict_proba, X, column).changes, alpha=0.01)."
        )

    # Model files

    def _own_tensors(self) -> dict[str, Tensor]:
        return self.places_.to_tensors()

    def _restore_own(self, tensors: dict[str, Tensor]) -> None:
        self.places_ = Places.take_from(tensors, len(self.schema_.numeric))

    def _restore_network(self, weights: dict[str, Tensor]) -> nn.Module:
        if self.exact_:
            raise ValueError(f"it is said to be exact, which {self.network_['name']!r} never is")
        architecture, sizes = self._architecture_and_sizes()
        architecture.check_sizes(sizes)
        check_sizes(sizes, weights)
        model = architecture.make(self.schema_, sizes, self._n_outputs(), None)
        model.load_state_dict(weights)
        return model


@documented("classes", "baselines")
class BaselineClassifier(NetworkClassifier, BaseBaseline):
    """Another network in the place of FCorrTransformer, for two or more classes.

    Everything around the network is as in :class:`FCorrClassifier`: what a table may hold, the
    training loop, the balance, thresholds, model files. There is no ``invariance``, and no
    certificate.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    FCorrClassifier : FCorrTransformer.

    Examples
    --------
    >>> from fcorr.data import make_indirect_bias
    >>> X, y = make_indirect_bias(1_000, random_state=0)
    >>> model = BaselineClassifier(network="ffn", epochs=5, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (1000, 2)
    """

    def __init__(
        self,
        *,
        network: NetworkName = "ft_transformer",
        network_options: Mapping[str, Any] | None = None,
        class_weight: ClassWeight = None,
        threshold: float | ThresholdRule = 0.5,
        sensitive: Columns = None,
        car: CarWeight = None,
        car_rows: float = 1.0,
        bins: Bins | None = None,
        dropout: float | Auto = "auto",
        epochs: int | Auto = "auto",
        batch_size: int | Auto = "auto",
        learning_rate: float | Auto = "auto",
        beta2: float = 0.95,
        weight_decay: float | Auto = "auto",
        early_stopping: bool | int = False,
        validation_fraction: float = 0.1,
        kinds: Kinds | None = None,
        min_category_rows: MinCategoryRows = "auto",
        missing_categorical: CategoricalMissing = "category",
        constant_columns: ConstantColumns = "error",
        random_state: RandomState = None,
        device: str = "cpu",
        verbose: bool | int = False,
    ) -> None:
        super().__init__(
            network=network,
            network_options=network_options,
            sensitive=sensitive,
            car=car,
            car_rows=car_rows,
            bins=bins,
            dropout=dropout,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            beta2=beta2,
            weight_decay=weight_decay,
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
        self.class_weight = class_weight
        self.threshold = threshold


@documented("number", "baselines")
class BaselineRegressor(NetworkRegressor, BaseBaseline):
    """Another network in the place of FCorrTransformer, for a mean, a count or an amount.

    See :class:`BaselineClassifier` for what it shares with FCorr's estimators.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    FCorrRegressor : FCorrTransformer.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(1_000, 3))
    >>> y = np.abs(X[:, 0]) + X[:, 1] * X[:, 2]
    >>> model = BaselineRegressor(network="ffn", epochs=40, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        *,
        network: NetworkName = "ft_transformer",
        network_options: Mapping[str, Any] | None = None,
        objective: ObjectiveName = "mse",
        tweedie_power: float = 1.5,
        exposure: str | int | None = None,
        sensitive: Columns = None,
        car: CarWeight = None,
        car_rows: float = 1.0,
        bins: Bins | None = None,
        dropout: float | Auto = "auto",
        epochs: int | Auto = "auto",
        batch_size: int | Auto = "auto",
        learning_rate: float | Auto = "auto",
        beta2: float = 0.95,
        weight_decay: float | Auto = "auto",
        early_stopping: bool | int = False,
        validation_fraction: float = 0.1,
        kinds: Kinds | None = None,
        min_category_rows: MinCategoryRows = "auto",
        missing_categorical: CategoricalMissing = "category",
        constant_columns: ConstantColumns = "error",
        random_state: RandomState = None,
        device: str = "cpu",
        verbose: bool | int = False,
    ) -> None:
        super().__init__(
            network=network,
            network_options=network_options,
            sensitive=sensitive,
            car=car,
            car_rows=car_rows,
            bins=bins,
            dropout=dropout,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            beta2=beta2,
            weight_decay=weight_decay,
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
        self.objective = objective
        self.tweedie_power = tweedie_power
        self.exposure = exposure
