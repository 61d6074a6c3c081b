"""The networks that can stand in for FCorrTransformer: their sizes, defaults and memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from fcorr._core import InvalidInputError, enumerate_some, near_match
from fcorr.data.schema import Schema
from fcorr.estimators.options import is_boolean, is_integer, is_number, is_sizes
from fcorr.nn.feed_forward_network import FeedForwardNetwork
from fcorr.nn.ft_transformer import FTTransformer
from fcorr.nn.tab_transformer import TabTransformer

NetworkName = Literal["ft_transformer", "tab_transformer", "ffn"]
Sizes = Mapping[str, Any]

_FLOATS_PER_NUMBER = 16  # that FCorrTransformer makes of a number of the table, roughly


@dataclass(frozen=True)
class Architecture:
    """How a network is made for a table, how it is trained by default, and how large its work is.

    The defaults were chosen on Adult's training file, with 26,049 and with 1,000 of its rows.

    Attributes
    ----------
    name : str
        What the estimators call it.
    build : callable
        The class: ``build(cardinalities, n_numeric, **sizes, n_outputs=…, generator=…)``.
    sizes : mapping
        Default sizes, those that ``network_options`` can change.
    dropouts : tuple of str
        Arguments that the estimators' ``dropout`` is the default of.
    dropout, epochs, learning_rate, weight_decay : float
        Defaults of the estimators' arguments.
    n_attending : callable
        How many features of a schema attend to each other; the categorical ones come first.
    count_floats : callable
        What one row's outputs leave behind for the gradient, in floats, at most.
    """

    name: str
    build: Callable[..., nn.Module]
    sizes: Sizes
    dropouts: tuple[str, ...]
    dropout: float
    epochs: int
    learning_rate: float
    weight_decay: float
    n_attending: Callable[[Schema], int]
    count_floats: Callable[[Schema, Sizes], int]

    def choose_sizes(self, options: Sizes | None, dropout: float) -> dict[str, Any]:
        """Check the sizes that are asked for, and fill them up with the defaults; plain data."""
        possible = [*self.sizes, *(rate for rate in self.dropouts if rate != "dropout")]
        for option, value in (options or {}).items():
            if option not in possible:
                raise InvalidInputError(
                    f"network_options must name sizes of {self.name!r} "
                    f"({enumerate_some(possible, limit=10)}), got {option!r}."
                    f"{near_match(option, possible)} Correct or drop it."
                )
            rule, holds = _rule(option)
            if not holds(value):
                raise InvalidInputError(
                    f"network_options[{option!r}] must be {rule}, got {value!r}."
                )
        sizes = {**self.sizes, **dict.fromkeys(self.dropouts, dropout), **(options or {})}
        d_embedding, n_heads = sizes.get("d_embedding", 0), sizes.get("n_heads", 1)
        if d_embedding % n_heads:
            raise InvalidInputError(
                "network_options must have a d_embedding that is a multiple of n_heads, got "
                f"{d_embedding} and {n_heads}. Change one of them."
            )
        return {option: _plain(value) for option, value in sizes.items()}

    def check_sizes(self, sizes: Sizes) -> None:
        """Refuse what :meth:`choose_sizes` would not have returned."""
        options = {name: value for name, value in sizes.items() if name != "dropout"}
        if self.choose_sizes(options, sizes.get("dropout", 0.0)) != sizes:
            raise ValueError(f"sizes of {self.name!r} are {sizes}")

    def make(
        self, schema: Schema, sizes: Sizes, n_outputs: int, generator: torch.Generator | None
    ) -> nn.Module:
        """Make the network for a table."""
        shape = schema.cardinalities, len(schema.numeric)
        return self.build(*shape, **sizes, n_outputs=n_outputs, generator=generator)

    # Sizes of a row's work, in numbers of the table as fcorr.training.loop counts them.

    def step_size(self, schema: Schema, sizes: Sizes, n_exchanges: int) -> int:
        """Return the size of a training step, with CAR for so many exchanges.

        CAR keeps queries and keys, and for each sensitive feature copies of them; and for each
        exchange a row and a column of the attention matrix, which itself is never made.
        """
        floats = self.count_floats(schema, sizes)
        if n_exchanges:
            n_tokens, n_sensitive = self.n_attending(schema) + 1, len(schema.sensitive_positions)
            floats += (8 + 4 * n_sensitive) * n_tokens * sizes["d_embedding"]
            floats += n_exchanges * 6 * n_tokens * sizes["n_heads"]
        return _numbers(floats)

    def scoring_size(self, schema: Schema, sizes: Sizes) -> int:
        """Return the size of scoring, which keeps one layer at a time."""
        return _numbers(self.count_floats(schema, sizes) // sizes.get("n_layers", 1))

    def attention_size(self, schema: Schema, sizes: Sizes) -> int:
        """Return the size of the first attention matrix."""
        return _numbers(self._attention_floats(schema, sizes))

    def _attention_floats(self, schema: Schema, sizes: Sizes) -> int:
        n_tokens = self.n_attending(schema) + 1
        return 3 * n_tokens * (sizes["n_heads"] * n_tokens + sizes["d_embedding"])


def _numbers(floats: int) -> int:
    return max(1, floats // _FLOATS_PER_NUMBER)


def _rule(option: str) -> tuple[str, Callable[[Any], bool]]:
    if option == "head":
        return "a tuple of hidden-layer sizes of at least 1, such as (128, 128)", is_sizes
    if option == "numeric_norm":
        return "True or False", is_boolean
    if option.endswith("dropout"):
        return "a number in [0, 1)", lambda v: is_number(v) and 0 <= v < 1
    return "an integer of at least 1", lambda v: is_integer(v, 1)


def _plain(value: Any) -> Any:
    if is_boolean(value):
        return bool(value)
    if isinstance(value, tuple | list):
        return [int(size) for size in value]
    return int(value) if is_integer(value, 0) else float(value)


# ------------------------------------------------------------------------------ the three of them


def _ft_floats(schema: Schema, sizes: Sizes) -> int:
    n_tokens = len(schema.feature_names) + 1
    weights = 3 * sizes["n_heads"] * n_tokens if sizes["attention_dropout"] else 0
    return sizes["n_layers"] * n_tokens * (16 * sizes["d_embedding"] + weights)


def _build_tab_transformer(*shape: Any, numeric_norm: bool, **options: Any) -> TabTransformer:
    """Make a TabTransformer, by default without the LayerNorm across its numbers.

    Unlike the authors, who have it: of two numbers it leaves a sign, of one nothing.
    """
    model = TabTransformer(*shape, **options)
    if not numeric_norm:
        model.numeric_norm = nn.Identity()  # type: ignore[assignment]
    return model


def _tab_floats(schema: Schema, sizes: Sizes) -> int:
    n_inputs = len(schema.categorical) * sizes["d_embedding"] + len(schema.numeric)
    return sizes["n_layers"] * (20 * n_inputs + 4 * sum(sizes["head"]))


def _ffn_floats(schema: Schema, sizes: Sizes) -> int:
    n_inputs = sum(schema.cardinalities) + len(schema.numeric)
    return 2 * n_inputs + 4 * sum(sizes["head"])


FT_TRANSFORMER = Architecture(
    name="ft_transformer",
    build=FTTransformer,
    # The authors have three layers with vectors of 192, and drop attention weights as well. If not,
    # the matrices need not be kept, which with many features are most of the memory.
    sizes={
        "d_embedding": 64,
        "n_layers": 2,
        "n_heads": 8,
        "head": (),
        "attention_dropout": 0.0,
        "residual_dropout": 0.0,
    },
    dropouts=("feed_forward_dropout",),
    dropout=0.1,
    epochs=10,
    learning_rate=1e-3,
    weight_decay=1e-5,
    n_attending=lambda schema: len(schema.feature_names),
    count_floats=_ft_floats,
)
TAB_TRANSFORMER = Architecture(
    name="tab_transformer",
    build=_build_tab_transformer,
    # The authors have six layers, and a head that grows with the square of the table.
    sizes={
        "d_embedding": 32,
        "n_layers": 2,
        "n_heads": 8,
        "head": (256, 128),
        "numeric_norm": False,
    },
    dropouts=("dropout",),
    dropout=0.2,
    epochs=10,
    learning_rate=2e-3,
    weight_decay=1e-5,
    n_attending=lambda schema: len(schema.categorical),
    count_floats=_tab_floats,
)
FFN = Architecture(
    name="ffn",
    build=FeedForwardNetwork,
    sizes={"head": (256, 256)},
    dropouts=("dropout",),
    dropout=0.3,
    epochs=20,
    learning_rate=2e-3,
    weight_decay=1e-5,
    n_attending=lambda schema: 0,
    count_floats=_ffn_floats,
)
ARCHITECTURES = {each.name: each for each in (FT_TRANSFORMER, TAB_TRANSFORMER, FFN)}
