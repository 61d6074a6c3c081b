"""Certificates: what is certain about a flip of the sensitive columns, and what a search found.

Three statements, from the strongest to the weakest:

- *Exactness*, read off the weights alone (:func:`is_exact`): no flip changes any prediction.
- *The population*, from a sample of rows (:mod:`fcorr.metrics.population`): with a stated
  confidence at most a stated share of people would see a change above a stated size.
- *The largest change that a search found* (:func:`search_rows`): a flip of some input does change
  a prediction by so much. The worst case may be larger.

An upper bound over all inputs is not among them. LayerNorm divides by the spread of a row, which
can be tiny for rows that no population holds, so that what can be proven of a model that is not
exact is hardly ever less than the range of its outputs.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from fcorr._core import InvalidInputError, html_table, to_plain
from fcorr.metrics.population import PopulationBound, population_bound
from fcorr.nn.car import Exchange
from fcorr.nn.embeddings import NumericEmbedding, SplineEmbedding
from fcorr.nn.fcorr import FCorrTransformer
from fcorr.training.objective import LinkName

ALL_TOGETHER = "all together"
"""How flips of several features at once are called."""

MAX_FLIPS = 4_096
"""Most combinations of sensitive values that a row is scored for."""

_MOST_NUMBERS = 32  # that a continuous feature is flipped to
_MOST_STARTS = 128  # rows that a search starts from
_MOST_STEPS = 40  # values that it exchanges in each
_N_TRIED = 8  # exchanges that are tried at each step, those that promise most
_N_FOUND = 16  # rows that it ends with
_MOST_NUMBERS_AT_ONCE = 2**22  # in memory, where there are many features or values

_SCOPE = (
    "This is about flips of the sensitive columns, all other columns left as they are. It is no "
    "statement about causes, about other columns that stand in for the sensitive ones, about "
    "differences between groups, or about compliance with any law."
)

# ------------------------------------------------------------------------------ exactness


@torch.no_grad()
def is_exact(model: FCorrTransformer, sensitive: Sequence[int]) -> bool:
    """Whether no flip of the sensitive features can change a prediction, not by one bit.

    A feature enters FCorrTransformer through its embedding, one number, and through nothing else:
    whatever follows (any number of encoder layers, with or without residual, the head) is a
    function of the embeddings. If all categories of a feature, or all numbers and the lack of one,
    are embedded as the same number, bit for bit, the input of that function does not change under
    a flip, and neither does its output: the same instructions run on the same bits. No other weight
    matters. :meth:`fcorr.nn.fcorr.FCorrTransformer.collapse` makes it so.

    "Only if" holds too, but for weights that happen to ignore the difference. Equality is that of
    bits, in the precision that the model computes in: 0.0 and −0.0 are told apart. For a numeric
    feature the values are all finite numbers, and NaN where the model has an embedding for it.

    Parameters
    ----------
    model : FCorrTransformer
        The model.
    sensitive : sequence of int
        Positions of the sensitive features; numeric ones follow the categorical ones.

    Examples
    --------
    >>> model = FCorrTransformer([3, 2], n_numeric=1, head=(4,))
    >>> is_exact(model, [0])
    False
    >>> model.collapse(0, 0.5)
    >>> is_exact(model, [0])
    True
    """
    n_categorical, n_features = len(model.cat_cardinalities), model.head_norm.normalized_shape[0]
    for position in sensitive:
        if not 0 <= position < n_features:
            raise InvalidInputError(
                f"sensitive must hold positions of the model's features, 0 to {n_features - 1}, "
                f"got {position!r}. Categorical features come first, numeric ones follow."
            )
    if len(set(sensitive)) != len(sensitive):
        raise InvalidInputError(
            f"sensitive must name each feature once, got {list(sensitive)!r}. Drop the repeats."
        )
    table = model.categorical.table()
    return all(
        _same_bits(model.categorical.categories(position, table))
        if position < n_categorical
        else _is_one_number(model, position - n_categorical)
        for position in sensitive
    )


def _is_one_number(model: FCorrTransformer, j: int) -> bool:
    """Whether a numeric feature is embedded as its constant alone, by the stored weights.

    What is added to the constant is then a zero of either sign. That keeps all its bits but for
    one case: −0.0 + 0.0 is 0.0.
    """
    constant = model.numeric.constant(j)
    one = _later_weights_are_zero(model.numeric, j)
    one &= not (bool(constant == 0) and bool(constant.signbit()))
    if model.missing is None:
        return one and bool(constant.isfinite())
    return one and _same_bits(torch.stack([constant, model.missing[j]]))


def _later_weights_are_zero(numeric: NumericEmbedding | SplineEmbedding, j: int) -> bool:
    if isinstance(numeric, NumericEmbedding):
        return bool(numeric.second.weight[j] == 0)
    steps = numeric.steps[numeric.starts[j] + 1 : numeric.starts[j + 1]]
    # A number beyond the last knot takes a share of 0 of what is stored next: it must be finite.
    return bool((steps == 0).all() and numeric.steps.isfinite().all())


def _same_bits(embeddings: Tensor) -> bool:
    bits = embeddings.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[embeddings.itemsize])
    return bool((bits == bits[:1]).all() and embeddings.isfinite().all())


# ------------------------------------------------------------------------------ flips


@dataclass(frozen=True)
class Link:
    """How predictions come from a model's outputs: ``scale · function(outputs + shift)``.

    Attributes
    ----------
    name : {"identity", "sigmoid", "softmax", "exp"}
        The function. ``"softmax"`` is for several outputs, the others for one.
    shift : sequence of float, default=(0.0,)
        Constant added to each output, or one for all.
    scale : float, default=1.0
        Unit of the prediction; 1 for probabilities.
    """

    name: LinkName
    shift: Sequence[float] = (0.0,)
    scale: float = 1.0

    def __call__(self, outputs_BO: Tensor) -> Tensor:
        """Compute predictions, in float64 and with a gradient; constants may be left out."""
        shifted_BO = outputs_BO.double() + torch.tensor(self.shift).to(outputs_BO.device).double()
        if self.name == "softmax":
            return torch.softmax(shifted_BO, dim=1)
        if self.name == "sigmoid":
            return torch.sigmoid(shifted_BO)
        return self.scale * (shifted_BO.exp() if self.name == "exp" else shifted_BO)


@torch.no_grad()
def list_flips(
    model: FCorrTransformer,
    sensitive: Sequence[int],
    names: Sequence[str],
    values: Sequence[Tensor],
) -> dict[str, Exchange]:
    """List the flips that are tried: of each sensitive feature by name, and all together.

    Categories are all tried; of numbers at most 32, among them those with the smallest and the
    largest embedding. All together are every combination of these or, where they are more than
    :data:`MAX_FLIPS`, so many of them, drawn at random and always the same.

    Parameters
    ----------
    model : FCorrTransformer
        The model.
    sensitive : sequence of int
        Positions of the sensitive features.
    names : sequence of str
        Their names.
    values : sequence of Tensor
        Values of each feature of the model, sensitive or not: codes of categories, numbers.
    """
    chosen = []
    for position in sensitive:
        values_C = values[position]
        if position >= len(model.cat_cardinalities) and len(values_C) > _MOST_NUMBERS:
            embedded_C = _exchange(model, [position], values_C[:, None]).embed(model)[:, 0].cpu()
            spaced = torch.linspace(0, len(values_C) - 1, _MOST_NUMBERS).round().long()
            values_C = values_C[embedded_C.argsort()[spaced]]
        chosen.append(values_C)
    flips = {
        name: _exchange(model, [position], values_C[:, None])
        for name, position, values_C in zip(names, sensitive, chosen, strict=True)
    }
    if len(chosen) > 1:
        sizes = [len(values_C) for values_C in chosen]
        if math.prod(sizes) <= MAX_FLIPS:
            places = [*torch.cartesian_prod(*map(torch.arange, sizes)).T]
        else:
            generator = torch.Generator().manual_seed(0)
            places = [torch.randint(size, (MAX_FLIPS,), generator=generator) for size in sizes]
        columns = [values_C[place] for values_C, place in zip(chosen, places, strict=True)]
        flips[ALL_TOGETHER] = _exchange(model, sensitive, torch.stack(columns, dim=1))
    return flips


def _exchange(model: FCorrTransformer, features: Sequence[int], values_CS: Tensor) -> Exchange:
    weight, n_categorical = model.head_norm.weight, len(model.cat_cardinalities)
    sizes = n_categorical, len(weight) - n_categorical
    return Exchange.to_values(features, values_CS, *sizes, weight.device)


def largest_change(
    model: FCorrTransformer, exchange: Exchange, link: Link, x_cat: Tensor, x_num: Tensor
) -> Tensor:
    """Largest change of each row's prediction between two of the flips, or none: ``(B,)``."""
    flipped_CS = exchange.embed(model)
    return _spread(model, link, exchange.features, flipped_CS, model.embed(x_cat, x_num))


def _spread(
    model: FCorrTransformer, link: Link, features: Sequence[int], flipped_CS: Tensor, e_BF: Tensor
) -> Tensor:
    own = torch.tensor(features, device=e_BF.device)
    low_BO = high_BO = link(model.decode(model.encode(e_BF)))
    for values_S in flipped_CS:
        flipped_BF = e_BF.index_copy(1, own, values_S.expand(len(e_BF), -1))
        found_BO = link(model.decode(model.encode(flipped_BF)))
        low_BO, high_BO = torch.minimum(low_BO, found_BO), torch.maximum(high_BO, found_BO)
    return (high_BO - low_BO).amax(1)


# ------------------------------------------------------------------------------ search


@torch.no_grad()
def search_rows(
    model: FCorrTransformer, feature: int, link: Link, values: Sequence[Tensor]
) -> Tensor:
    """Search all inputs for rows whose prediction changes most if one feature's value does.

    The search starts from random rows, and from rows whose features are nearly equal, where
    LayerNorm divides by little. From there the gradient by the embeddings says which exchange of
    one other feature's value promises most, for categories and numbers alike; the best few are
    tried, and the best is taken. The random rows are always the same.

    Parameters
    ----------
    model : FCorrTransformer
        The model, on the CPU and in evaluation mode.
    feature : int
        Position of the feature that is flipped.
    link : Link
        How predictions come from outputs.
    values : sequence of Tensor
        Values of each feature of the model to search through: codes of categories, numbers.

    Returns
    -------
    Tensor
        Up to 16 rows, embedded: ``(B, F)``.
    """
    n_values_F = torch.tensor([len(v) for v in values])
    places_CF = torch.arange(int(n_values_F.max()))[:, None].clamp(max=n_values_F - 1)
    values_CF = torch.stack([v[place_C] for v, place_C in zip(values, places_CF.T, strict=True)], 1)
    embedded_CF = _exchange(model, range(len(values)), values_CF).embed(model).double()
    ends_21 = torch.stack([embedded_CF[:, [feature]].amin(0), embedded_CF[:, [feature]].amax(0)])
    # In double precision: of nearly equal predictions single precision would see rounding alone.
    change = partial(_spread, copy.deepcopy(model).double(), link, [feature], ends_21)
    e_BF = embedded_CF.gather(0, _starts(embedded_CF, n_values_F))
    best_B, every_row = change(e_BF), torch.arange(len(e_BF))
    for _ in range(_MOST_STEPS):
        with torch.enable_grad():
            e_BF.requires_grad_()
            (gradient_BF,) = torch.autograd.grad(change(e_BF).sum(), e_BF)
        e_BF = e_BF.detach()
        gain_BCF = gradient_BF[:, None] * (embedded_CF - e_BF[:, None])
        gain_BCF[:, :, feature] = -torch.inf
        tried = []
        for place_B in gain_BCF.flatten(1).topk(min(_N_TRIED, gain_BCF[0].numel())).indices.T:
            tried.append(e_BF.clone())
            tried[-1][every_row, place_B % len(values)] = embedded_CF.flatten()[place_B]
        largest_B, which_B = torch.stack([change(tried_BF) for tried_BF in tried]).max(0)
        better_B = largest_B > best_B
        if not better_B.any():
            break
        chosen_BF = torch.stack(tried)[which_B, every_row]
        e_BF = torch.where(better_B[:, None], chosen_BF, e_BF)
        best_B = torch.maximum(best_B, largest_B)
    return e_BF[best_B.topk(min(_N_FOUND, len(best_B))).indices].to(model.head_norm.weight.dtype)


def _starts(embedded_CF: Tensor, n_values_F: Tensor) -> Tensor:
    """Places among their features' values of random rows, and of rows that embed nearly equal."""
    n_values, n_features = embedded_CF.shape
    affordable = _MOST_NUMBERS_AT_ONCE // (n_features * max(n_features, n_values))
    n_rows = min(_MOST_STARTS, max(_N_FOUND, affordable)) // 2
    random = partial(torch.rand, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    places = [*(random(n_rows, n_features) * n_values_F).long()]
    low, high = embedded_CF.min(), embedded_CF.max()
    for level, spread in zip(random(n_rows), random(n_rows) ** 3, strict=True):
        wanted_CF = level + spread * (random(n_values, n_features) - 0.5)
        places.append((embedded_CF - low - (high - low) * wanted_CF).abs().argmin(0))
    return torch.stack(places)


# ------------------------------------------------------------------------------ certificate


@dataclass(frozen=True)
class FlipStatement:
    """What is known about a flip of one sensitive feature, or of any number of them.

    Attributes
    ----------
    name : str
        The feature, or "all together".
    exact : bool
        Whether no flip can change any prediction, not by one bit.
    search : float
        The largest change of a prediction that a search found; 0 if exact. A lower bound of the
        worst case.
    population : PopulationBound or None
        The statement about the population, where a sample was given.
    """

    name: str
    exact: bool
    search: float
    population: PopulationBound | None = None


@dataclass(frozen=True)
class Certificate:
    """What is known about flips of the sensitive columns. ``print`` it for a report.

    Attributes
    ----------
    exact : bool
        Whether no flip can change any prediction, not by one bit.
    averaged : bool
        Whether that is because the sensitive columns are not read at all.
    features : tuple of FlipStatement
        One for each sensitive feature, the others fixed.
    joint : FlipStatement
        For any combination of flips; that of the feature where there is one only.
    assumptions : tuple of str
        What the statements rest on.
    """

    exact: bool
    averaged: bool
    features: tuple[FlipStatement, ...]
    joint: FlipStatement
    assumptions: tuple[str, ...]

    @property
    def search(self) -> float:
        """The largest change that a search found for any combination of flips; 0 if exact."""
        return self.joint.search

    @property
    def population(self) -> PopulationBound | None:
        """The statement about the population for any combination of flips."""
        return self.joint.population

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return to_plain({"search": self.search, **asdict(self), "scope": _SCOPE})

    def __str__(self) -> str:
        lines = ["Invariance to a flip of the sensitive columns", self._verdict]
        if not self.exact:  # neither a search nor a sample adds anything to a proof
            lines.append(
                "The largest change of a prediction that a search over all inputs found; the worst "
                "case may be larger:"
            )
            lines += [f"- {flip.name}: {_size(flip)}" for flip in self._shown]
            if self.population is None:
                lines.append("No rows were given: nothing is said about the population.")
            else:
                lines.append("For the population, judged by a sample:")
                lines += [f"- {flip.name}: {flip.population}" for flip in self._shown]
        lines.append("This rests on:")
        lines += [f"- {assumption}" for assumption in self.assumptions]
        lines.append(_SCOPE)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(flip.name, _size(flip), flip.population or "–") for flip in self._shown]
        header = ("flip of", "largest change that a search found", "population")
        return html_table(self._verdict, header, rows, " ".join([*self.assumptions, _SCOPE]))

    @property
    def _shown(self) -> tuple[FlipStatement, ...]:
        return self.features if len(self.features) == 1 else (*self.features, self.joint)

    @property
    def _verdict(self) -> str:
        if self.averaged:
            return (
                "Exact: the sensitive columns are not read; predictions are averages over a fixed "
                "list of values. No flip changes any prediction, for any input."
            )
        if self.exact:
            return (
                "Exact: every value of the sensitive columns is embedded as the same number, bit "
                "for bit. No flip changes any prediction, for any input."
            )
        return "Not exact: a flip of the sensitive columns can change a prediction."


def _size(flip: FlipStatement) -> str:
    return "none, not by one bit" if flip.exact else f"{flip.search:.3g}"


def certify_model(
    model: FCorrTransformer,
    sensitive: Sequence[int],
    names: Sequence[str],
    *,
    link: Link | None = None,
    values: Sequence[Tensor] = (),
    averaged: bool = False,
    changes: Mapping[str, ArrayLike] | None = None,
    confidence: float = 0.95,
    alpha: float | None = None,
    epsilon: float | None = None,
) -> Certificate:
    """State what is known about flips of a model's sensitive features.

    Parameters
    ----------
    model : FCorrTransformer
        The model.
    sensitive : sequence of int
        Positions of the sensitive features; numeric ones follow the categorical ones.
    names : sequence of str
        Their names.
    link : Link, optional
        How predictions come from outputs; not needed for an exact model.
    values : sequence of Tensor, optional
        Values of each feature that a search goes through: codes of categories, numbers. Not needed
        for an exact model either.
    averaged : bool, default=False
        Whether predictions are averages over a fixed list of values of the sensitive features, so
        that the columns are not read. No flip can change anything then, whatever the weights are.
    changes : mapping of str to array-like of shape (n_rows,), optional
        For a sample of the population, the largest change of each row's prediction over the flips
        of :func:`list_flips`, by their names.
    confidence : float, default=0.95
        Confidence of each statement about the population.
    alpha, epsilon : float, optional
        Share or change that it is about, one of them; see
        :func:`fcorr.metrics.population.population_bound`. By default a share of 1 %. An epsilon of
        0 stands for any change at all.

    Returns
    -------
    Certificate
        The statements.

    Examples
    --------
    >>> model = FCorrTransformer([3, 2, 4], n_numeric=0, head=(4,))
    >>> values = [torch.arange(3), torch.arange(2), torch.arange(4)]
    >>> certify_model(model, [0], ["race"], link=Link("sigmoid"), values=values).search > 0
    True
    >>> model.collapse(0, 0.5)
    >>> certify_model(model, [0], ["race"], link=Link("sigmoid"), values=values).exact
    True
    """
    if len(names) != len(sensitive) or not names or len(set(names)) != len(names):
        raise InvalidInputError(
            "names must hold one name for each sensitive feature, at least one, all different, "
            f"got {list(names)!r} for {len(sensitive)}."
        )
    if epsilon is None and alpha is None:
        alpha = 0.01
    state = partial(population_bound, epsilon=epsilon, alpha=alpha, confidence=confidence)
    state([0.0])  # it has the rules for what was asked, also where no rows are given
    proven = [averaged or is_exact(model, [position]) for position in sensitive]
    flips, found = {}, dict.fromkeys([*names, ALL_TOGETHER], 0.0)
    if not all(proven):
        if link is None or not values:
            raise InvalidInputError("A model that is not exact needs link and values, got none.")
        model = copy.deepcopy(model).cpu().eval()
        flips = list_flips(model, sensitive, names, values)
        found = _search(model, flips, link, values)
    sizes = {name: np.asarray(each) for name, each in (changes or {}).items()}
    if sizes:
        # A flip of one feature is one of all together, also where the others hold a value that is
        # in none of the combinations.
        sizes[ALL_TOGETHER] = np.max([*sizes.values()], axis=0)
        found = {name: max(change, float(sizes[name].max())) for name, change in found.items()}

    def statement(name: str, exact: bool) -> FlipStatement:
        return FlipStatement(name, exact, found[name], state(sizes[name]) if sizes else None)

    features = tuple(map(statement, names, proven))
    return Certificate(
        exact=all(proven),
        averaged=averaged,
        features=features,
        joint=features[0] if len(names) == 1 else statement(ALL_TOGETHER, all(proven)),
        assumptions=_assumptions(model, averaged, flips, has_sample=bool(sizes)),
    )


@torch.no_grad()
def _search(
    model: FCorrTransformer, flips: Mapping[str, Exchange], link: Link, values: Sequence[Tensor]
) -> dict[str, float]:
    """Largest change that each flip was found to make; all together in the rows found for one."""
    rows = {
        name: search_rows(model, exchange.features[0], link, values)
        for name, exchange in flips.items()
        if name != ALL_TOGETHER
    }
    rows[ALL_TOGETHER] = torch.cat([*rows.values()])
    # The most different predictions need not be those of the most different embeddings.
    found = {
        name: float(_spread(model, link, each.features, each.embed(model), rows[name]).max())
        for name, each in flips.items()
    }
    return found | {ALL_TOGETHER: max(found.values())}


def _assumptions(
    model: FCorrTransformer, averaged: bool, flips: Mapping[str, Exchange], *, has_sample: bool
) -> tuple[str, ...]:
    texts = ["The model computes what its weights say, and they are not changed afterwards."]
    if averaged:
        texts.append(
            "The sensitive columns are not read; predictions are averages over a fixed list of "
            "values."
        )
    elif not flips:
        texts.append(
            "A sensitive column reaches the model through its embedding alone, which is the same "
            "number for all its values; equal inputs give equal outputs."
        )
    else:
        texts.append(
            "A search is no proof: a change of that size occurs for some input, which need not be "
            "a likely one, and a larger one may."
        )
        if isinstance(model.numeric, NumericEmbedding) and len(model.numeric.second.weight):
            texts.append("Only numbers in the range of the training table were tried.")
        texts += [
            f"{name!r} was flipped between {len(exchange)} numbers."
            for name, exchange in flips.items()
            if name != ALL_TOGETHER and exchange.features[0] >= len(model.cat_cardinalities)
        ]
        if ALL_TOGETHER in flips:
            n_tried = len(flips[ALL_TOGETHER])
            n_all = math.prod(len(e) for name, e in flips.items() if name != ALL_TOGETHER)
            which = "all" if n_tried == n_all else f"{n_tried:,}, drawn at random, of the"
            texts.append(
                f"Together they were flipped to {which} {n_all:,} combinations of these values, "
                "and each by itself to all of its own."
            )
        if has_sample:
            texts.append(
                "The sampled rows are an independent sample of the population and had no part in "
                "training; the population does not drift."
            )
    return tuple(texts)
