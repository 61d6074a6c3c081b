"""Other networks behind FCorr's estimators: FT-Transformer, TabTransformer, feed-forward network.

They read the same tables, are trained by the same loop and predict by the same methods as FCorr, so
that an experiment can exchange one for the other. What they lack is what the paper is about: their
weights allow no statement on flips of a sensitive column.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fcorr import FCorrClassifier, FCorrRegressor, InvalidInputError
from fcorr._core import RandomState, enumerate_some
from fcorr.data.encode import EncodedTable, encode
from fcorr.data.schema import Kinds, Schema
from fcorr.estimators.options import Columns
from fcorr.estimators.reading import ReadableFCorr
from fcorr.nn.car import Exchange
from fcorr.nn.layers import choose_knots
from fcorr.training.loop import Pace
from fcorr.training.objective import CarWeight
from fcorr.training.pack import Recipe
from fcorr.training.rows import Workers
from paper.baselines.car import BaselineObjective
from paper.baselines.ffn import FeedForwardNetwork
from paper.baselines.ft_transformer import FTTransformer
from paper.baselines.tab_transformer import TabTransformer

Sizes = Mapping[str, Any]

_WEIGHT_DECAY = 1e-5
_N_KNOTS = 64  # of a column, as many as FCorr's shape functions have by default
_FLOATS_PER_NUMBER = 16  # that FCorrTransformer makes of a number of the table, roughly
_ATTENTION_ENTRIES = 2**32  # weights between features that significance is read off, at most


@dataclass(frozen=True)
class Architecture:
    """How a network is made for a table, how it is trained by default, and how large its work is.

    The defaults were chosen on Adult's training file, with 26,049 and with 1,000 of its rows.

    Attributes
    ----------
    build : callable
        The class: ``build(cardinalities, n_numeric, **sizes, n_outputs=…, generator=…)``.
    sizes : mapping
        Default sizes, which ``network_options`` changes.
    defaults : mapping
        Epochs and learning rate of the estimators.
    n_attending : callable
        How many features of a schema attend to each other; the categorical ones come first.
    count_floats : callable
        What one row's outputs leave behind for the gradient, in floats, at most.
    """

    build: Callable[..., nn.Module]
    sizes: Sizes
    defaults: Mapping[str, Any]
    n_attending: Callable[[Schema], int]
    count_floats: Callable[[Schema, Sizes], int]

    def make(
        self,
        schema: Schema,
        options: Sizes | None,
        n_outputs: int = 1,
        generator: torch.Generator | None = None,
    ) -> nn.Module:
        """Make the network for a table; ``options`` are sizes that differ from the defaults."""
        sizes = {**self.sizes, **(options or {}), "n_outputs": n_outputs, "generator": generator}
        return self.build(schema.cardinalities, len(schema.numeric), **sizes)


def _ft_floats(schema: Schema, sizes: Sizes) -> int:
    n_tokens = len(schema.feature_names) + 1
    weights = 3 * sizes["n_heads"] * n_tokens if sizes["attention_dropout"] else 0
    return sizes["n_layers"] * n_tokens * (16 * sizes["d_embedding"] + weights)


def _tab_floats(schema: Schema, sizes: Sizes) -> int:
    n_inputs = len(schema.categorical) * sizes["d_embedding"] + len(schema.numeric)
    return sizes["n_layers"] * (20 * n_inputs + 4 * sum(sizes["head"]))


def _ffn_floats(schema: Schema, sizes: Sizes) -> int:
    n_inputs = sum(schema.cardinalities) + len(schema.numeric)
    return 2 * n_inputs + 4 * sum(sizes["head"])


NetworkName = Literal["ft_transformer", "tab_transformer", "ffn"]
ARCHITECTURES: dict[str, Architecture] = {
    "ft_transformer": Architecture(
        build=FTTransformer,
        # The authors have three layers with vectors of 192, and drop attention weights as well. If
        # not, the matrices need not be kept, which with many features are most of the memory.
        sizes={
            "d_embedding": 64,
            "n_layers": 2,
            "n_heads": 8,
            "attention_dropout": 0.0,
            "feed_forward_dropout": 0.1,
        },
        defaults={"epochs": 10, "learning_rate": 1e-3},
        n_attending=lambda schema: len(schema.feature_names),
        count_floats=_ft_floats,
    ),
    "tab_transformer": Architecture(
        build=TabTransformer,
        # The authors have six layers, and a head that grows with the square of the table.
        sizes={
            "d_embedding": 32,
            "n_layers": 2,
            "n_heads": 8,
            "head": (256, 128),
            "dropout": 0.2,
            "numeric_norm": False,
        },
        defaults={"epochs": 10, "learning_rate": 2e-3},
        n_attending=lambda schema: len(schema.categorical),
        count_floats=_tab_floats,
    ),
    "ffn": Architecture(
        build=FeedForwardNetwork,
        sizes={"head": (256, 256), "dropout": 0.3},
        defaults={"epochs": 20, "learning_rate": 2e-3},
        n_attending=lambda schema: 0,
        count_floats=_ffn_floats,
    ),
}


def make_baseline(network: str, task: str, **arguments: Any) -> Any:
    """Make the estimator of a network, trained as long and as fast as is its default."""
    cls = BaselineClassifier if task == "classification" else BaselineRegressor
    return cls(
        network=cast(NetworkName, network), **{**ARCHITECTURES[network].defaults, **arguments}
    )


class PlacedNumbers(nn.Module):
    """A network that is given each number's place among knots, standardised.

    FCorrTransformer bends each numeric feature at knots that are spread over its training rows and
    its distinct values. Another network gets the same help here. Long tails are pulled in, as by
    the quantile transform that the authors of FT-Transformer use, but a rare value keeps its
    distance from the many zeros beside it. Beyond the outermost knots nothing changes.

    Parameters
    ----------
    network : nn.Module
        The network, which is called with codes and places.
    numbers : ndarray of shape (n_rows, n_numeric)
        Training rows.

    Examples
    --------
    >>> numbers = np.array([[0.0], [0.0], [0.0], [1e6]], dtype=np.float32)
    >>> PlacedNumbers(nn.Identity(), numbers).locate(torch.from_numpy(numbers)).T
    tensor([[-0.5774, -0.5774, -0.5774,  1.7321]])
    """

    knots: Tensor
    mean: Tensor
    scale: Tensor

    def __init__(self, network: nn.Module, numbers: NDArray[np.float32]) -> None:
        super().__init__()
        self.network = network
        knots = torch.full((numbers.shape[1], _N_KNOTS), math.inf, dtype=torch.float64)
        for row, values in zip(knots, choose_knots(numbers, _N_KNOTS), strict=True):
            row[: len(values)] = values
        self.register_buffer("knots", knots)
        places = self._places(torch.from_numpy(numbers)).numpy()
        scale = np.where(places.std(0) > 0, places.std(0), 1.0)
        self.register_buffer("mean", torch.from_numpy(places.mean(0)))
        self.register_buffer("scale", torch.from_numpy(scale))

    def forward(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Compute the network's outputs."""
        return self.network(x_cat, self.locate(x_num))

    def attention_weights(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """First attention matrix ``(B, F, F)``."""
        network: Any = self.network
        return network.attention_weights(x_cat, self.locate(x_num))

    def locate(self, x_num: Tensor) -> Tensor:
        """Find the standardised places of numbers."""
        return ((self._places(x_num) - self.mean) / self.scale).to(x_num.dtype)

    def _places(self, x_num: Tensor) -> Tensor:
        """Find each number's place: 0 at the first knot, between knots by proportion."""
        x_NB = x_num.double().T.contiguous()
        last_N1 = (self.knots.isfinite().sum(1, keepdim=True) - 1).clamp(min=1)
        right_NB = torch.searchsorted(self.knots, x_NB, right=True).clamp(min=1)
        right_NB = torch.minimum(right_NB, last_N1)
        below_NB, above_NB = self.knots.gather(1, right_NB - 1), self.knots.gather(1, right_NB)
        share_NB = ((x_NB - below_NB) / (above_NB - below_NB)).clamp(0, 1)
        return (right_NB - 1 + share_NB).T


class _Baseline(ReadableFCorr):
    """What the two estimators share: another network, and CAR by its definition."""

    def __init__(
        self,
        *,
        network: NetworkName = "ft_transformer",
        network_options: Sizes | None = None,
        sensitive: Columns = None,
        car: CarWeight = None,
        car_rows: float = 1.0,
        kinds: Kinds | None = None,
        epochs: int = 10,
        batch_size: int | Literal["auto"] = "auto",
        learning_rate: float = 1e-3,
        random_state: RandomState = None,
    ) -> None:
        cast(Any, super()).__init__(
            invariance=None,
            sensitive=sensitive,
            car=car,
            kinds=kinds,
            epochs=epochs,
            learning_rate=learning_rate,
            random_state=random_state,
            n_members=1,
            advanced={"main_effects": False, "beta2": 0.95, "batch_size": batch_size},
        )
        self.batch_size = batch_size
        self.network = network
        self.network_options = network_options
        self.car_rows = car_rows

    def _choose_network(self) -> dict[str, Any]:
        if self.network == "tab_transformer" and not self.schema_.categorical:
            raise InvalidInputError(
                "network='tab_transformer' needs a categorical column, between which alone it has "
                "attention, got numbers only. Use another network, or name categories in kinds=."
            )
        n_attending = self._architecture.n_attending(self.schema_)
        if self.car and self.schema_.sensitive and not n_attending:
            raise InvalidInputError(
                f"car needs attention to regularise, got {self.car!r} with network="
                f"{self.network!r}, which has none. Use a transformer, or car=None."
            )
        outside = self.schema_.feature_names[n_attending:]
        numbers = [name for name in self.schema_.sensitive_features if name in outside]
        if self.car and numbers:
            raise InvalidInputError(
                f"car with network={self.network!r} needs categorical sensitive columns: it has "
                f"attention between these alone, got numbers in {enumerate_some(numbers)}. Cut "
                "them into groups first, use network='ft_transformer', or car=None."
            )
        return {**self._architecture.sizes, **(self.network_options or {})}

    @property
    def _architecture(self) -> Architecture:
        return ARCHITECTURES[self.network]

    def _make_network(
        self, encoded: EncodedTable, recipe: Recipe, generator: torch.Generator | None
    ) -> Any:
        self.network_ = self._choose_network()
        make = self._architecture.make
        network = make(self.schema_, self.network_options, self._n_outputs(), generator)
        return PlacedNumbers(network, encoded.numbers)

    def _prepare_numbers(self, model: Any, numbers: Tensor, workers: Workers) -> Tensor:
        return cast(PlacedNumbers, model).locate(numbers)

    def _objective(
        self, model: Any, exchanges: tuple[Exchange, ...], recipe: Recipe, penalty_scale: float
    ) -> BaselineObjective:
        n_categorical, placed = len(self.schema_.categorical), []
        for each in exchanges:
            codes, numbers = each.rows(n_categorical, len(self.schema_.feature_names))
            rows = torch.cat([codes, model.locate(numbers)], dim=1)
            placed.append(replace(each, values=rows[:, list(each.features)]))
        return BaselineObjective(
            model.network,
            self._loss(),
            exchanges=placed,
            car=self.car,
            car_rows=self.car_rows,
            numbers_per_row=self._step_size(sum(map(len, exchanges)) if self.car else 0),
        )

    def _pace(self, recipe: Recipe, batch_size: int, *, waits: bool) -> Pace:
        pace = super()._pace(recipe, batch_size, waits=waits)
        return replace(pace, weight_decay=_WEIGHT_DECAY)

    # Sizes of a row's work, in numbers of a table that FCorrTransformer would read.

    def _step_size(self, n_exchanges: int) -> int:
        """Return the size of a training step, with CAR for so many exchanges.

        CAR keeps queries and keys, and for each sensitive feature copies of them; and for each
        exchange a row and a column of the attention matrix, which itself is never made.
        """
        sizes, floats = self.network_, self._architecture.count_floats(self.schema_, self.network_)
        if n_exchanges:
            n_tokens = self._architecture.n_attending(self.schema_) + 1
            n_sensitive = len(self.schema_.sensitive_positions)
            floats += (8 + 4 * n_sensitive) * n_tokens * sizes["d_embedding"]
            floats += n_exchanges * 6 * n_tokens * sizes["n_heads"]
        return max(1, floats // _FLOATS_PER_NUMBER)

    def _map(self, *args: Any, numbers_per_row: int | None = None, **options: Any) -> Any:
        if numbers_per_row is None:  # scoring, which keeps one layer at a time
            n_layers = self.network_.get("n_layers", 1)
            floats = self._architecture.count_floats(self.schema_, self.network_) // n_layers
            numbers_per_row = max(1, floats // _FLOATS_PER_NUMBER)
        return super()._map(*args, numbers_per_row=numbers_per_row, **options)

    def _score(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        return self.model_(x_cat, x_num)

    # What is read off the model

    def _significance(self, encoded: EncodedTable) -> NDArray[np.float64]:
        """Sum the attention that each feature receives, by the columns of the mean matrix.

        The paper reads it as significance in an FT-Transformer (§4.2), where the diagonal has no
        such meaning. Of very many rows and features, every so many-th row is looked at.
        """
        n_attending = self._architecture.n_attending(self.schema_)
        if not n_attending:
            return np.empty(0)
        step = math.ceil(len(encoded) * n_attending**2 / _ATTENTION_ENTRIES)
        some = EncodedTable(encoded.codes[::step], encoded.numbers[::step])
        return self._mean_attention(some).sum(0)

    def _mean_attention(self, encoded: EncodedTable, layer: int = 0) -> NDArray[np.float64]:
        """Average the first attention weights over rows and heads; row i is what feature i pays."""
        n_features = self._architecture.n_attending(self.schema_)
        n_tokens, sizes = n_features + 1, self.network_
        floats = 3 * n_tokens * (sizes["n_heads"] * n_tokens + sizes["d_embedding"])
        size = max(1, floats // _FLOATS_PER_NUMBER)
        total = torch.zeros(n_features, n_features, dtype=torch.float64)
        weights = cast(PlacedNumbers, self.model_).attention_weights
        for weights_BFF in self._map(encoded, weights, numbers_per_row=size):
            total += weights_BFF.double().sum(0).cpu()
        return (total / len(encoded)).numpy()

    def attention(self, X: Any, *, layer: int = 0) -> Any:
        """Mean attention weights of the first layer over the rows of X and over its heads.

        Row i says what feature i pays to the others. The features are all of an FT-Transformer's,
        whose CLS is left out: rows sum to less than 1; and the categorical ones of a
        TabTransformer's.
        """
        if layer or self.network == "ffn":
            raise InvalidInputError(
                f"Attention is read off the first layer of a transformer, got layer {layer} of "
                f"{self.network!r}."
            )
        table = self._read_known_table(X)
        return self._name_matrix(self._mean_attention(encode(table, self.schema_)))


class BaselineClassifier(_Baseline, FCorrClassifier):
    """Another network in the place of FCorrTransformer, for two or more classes.

    ``network_options`` are sizes and dropouts that differ from those in :data:`ARCHITECTURES`;
    ``car_rows`` is the share of a step's rows that CAR looks at. Everything else is as in
    :class:`fcorr.FCorrClassifier`; there is no ``invariance``.

    Examples
    --------
    >>> from paper.generators import make_indirect_bias
    >>> X, y = make_indirect_bias(1_000, random_state=0)
    >>> model = BaselineClassifier(network="ffn", epochs=5, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (1000, 2)
    """


class BaselineRegressor(_Baseline, FCorrRegressor):
    """Another network in the place of FCorrTransformer, for a mean.

    See :class:`BaselineClassifier` for its arguments.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(1_000, 3))
    >>> y = np.abs(X[:, 0]) + X[:, 1] * X[:, 2]
    >>> model = BaselineRegressor(network="ffn", epochs=40, learning_rate=2e-3, random_state=0)
    >>> bool(model.fit(X, y).score(X, y) > 0.9)
    True
    """
