"""Certificates: what is certain about a flip of the sensitive columns, and what a search found.

Three statements, from the strongest to the weakest:

- *Exactness*, read off the weights alone (:func:`is_exact`): no flip changes any prediction,
  because the embedding is stored as one number. One that merely rounds to it is not exact.
- *The population*, from a sample of rows (:mod:`fcorr.metrics.population`): with a stated
  confidence at most a stated share of people would see a change above a stated size.
- *The largest change that a search found* (:func:`search_change`): a flip of some input does change
  a prediction by so much. The worst case may be larger.

An upper bound over all inputs is not among them. LayerNorm divides by the spread of a row, which
can be tiny for rows that no population holds, so that what can be proven of a model that is not
exact is hardly ever less than the range of its outputs.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from fcorr._core import InvalidInputError, html_table, show_text, to_plain
from fcorr.metrics.population import PopulationBound, population_bound
from fcorr.nn.car import Exchange
from fcorr.nn.engine import use_engine
from fcorr.nn.fcorr import Network, same_bits
from fcorr.training.objective import LinkName

ALL_TOGETHER = "all together"
"""How flips of several features at once are called."""

MAX_FLIPS = 4_096
"""Most combinations of sensitive values that a row is scored for."""

_MOST_NUMBERS = 256  # that a feature is flipped to by itself; each costs one scoring of the rows
_MOST_NUMBERS_TOGETHER = 32  # that it is flipped to together with others, in all combinations
_MOST_STARTS = 128  # rows that a search starts from
_N_STEPS = 500  # exchanges of one value that it tries in each
_N_FOUND = 16  # rows that it ends with
_MOST_NUMBERS_AT_ONCE = 2**24  # in memory, where there are many features

_SCOPE = (
    "This is about flips of the sensitive columns, all other columns left as they are. It is no "
    "statement about causes, about other columns that stand in for the sensitive ones, about "
    "differences between groups, or about compliance with any law."
)

# ------------------------------------------------------------------------------ exactness


@torch.no_grad()
def is_exact(model: Network, sensitive: Sequence[int]) -> bool:
    """Whether the model was made such that no flip of the sensitive features changes a prediction.

    A feature enters FCorrTransformer through its embedding, one number or several views, and
    through nothing else: whatever follows is a function of the embeddings. If all categories of a
    feature, or all numbers and the lack of one, are embedded as the same number, bit for bit, the
    input of that function does not change under a flip, and neither does its output: the same
    instructions run on the same bits. No other weight matters.

    Equal bits are not enough: under a large λ the embeddings of two categories may round to the
    same number, which another training, precision or processor need not repeat. What must hold too
    is that the embedding is stored as one number, and all that could vary about it as zeros;
    :meth:`fcorr.nn.fcorr.FCorrTransformer.collapse` makes it so. Or there is one category only.

    Equality is that of bits, in the precision that the model computes in: 0.0 and −0.0 are told
    apart. For a numeric feature the values are all finite numbers, and NaN where the model has an
    embedding for it.

    ``sensitive`` are positions of features; numeric ones follow the categorical ones.
    """
    if not all(0 <= position < model.n_features for position in sensitive):
        raise InvalidInputError(
            f"sensitive must be positions of the model's features, 0 to {model.n_features - 1}, "
            f"got {list(sensitive)}."
        )
    return all(m.is_collapsed(position) for position in sensitive for m in model.members)


# ------------------------------------------------------------------------------ flips


@dataclass(frozen=True)
class Link:
    """How predictions come from a model's outputs: ``scale · function(outputs + shift)``.

    ``shift`` has a constant for each output, or one for all. Constants that are added to the
    prediction are left out: this is about changes.
    """

    name: LinkName
    shift: Sequence[float] = (0.0,)
    scale: float = 1.0

    def __call__(self, outputs_BO: Tensor) -> Tensor:
        """Compute predictions in float64."""
        shifted_BO = outputs_BO.double() + torch.tensor(self.shift).to(outputs_BO.device).double()
        if self.name == "softmax":
            return torch.softmax(shifted_BO, dim=-1)
        if self.name == "sigmoid":
            return torch.sigmoid(shifted_BO)
        return self.scale * (shifted_BO.exp() if self.name == "exp" else shifted_BO)


@torch.no_grad()
@use_engine("compiled")  # here and below: predictions are made with it, whatever trained the model
def list_flips(
    model: Network, sensitive: Sequence[int], names: Sequence[str], values: Sequence[Tensor]
) -> dict[str, Exchange]:
    """List the flips that are tried: of each sensitive feature by its name, and all together.

    ``values`` are those of each feature of the model, sensitive or not; the last of a numeric one
    is what stands for a missing number. Categories are all tried; of numbers at most 256 for each
    feature by itself, and at most 32 for all together, among them always the last and those with
    the smallest and the largest embedding. All together are every combination of these or, where
    they are more than :data:`MAX_FLIPS`, so many of them, drawn at random and always the same.
    """
    flips: dict[str, Exchange] = {}
    chosen: list[Tensor] = []
    for name, position in zip(names, sensitive, strict=True):
        alone_C = _thin(model, position, values[position], _MOST_NUMBERS)
        flips[name] = Exchange([position], alone_C[:, None])
        chosen.append(_thin(model, position, alone_C, _MOST_NUMBERS_TOGETHER))
    if len(chosen) > 1:
        sizes = [len(values_C) for values_C in chosen]
        if math.prod(sizes) <= MAX_FLIPS:
            places = [*torch.cartesian_prod(*map(torch.arange, sizes)).T]
        else:
            generator = torch.Generator().manual_seed(0)
            drawn = [torch.randint(size, (MAX_FLIPS,), generator=generator) for size in sizes]
            places = [*torch.stack(drawn, dim=1).unique(dim=0).T]  # each but once
        columns = [values_C[place] for values_C, place in zip(chosen, places, strict=True)]
        flips[ALL_TOGETHER] = Exchange(sensitive, torch.stack(columns, dim=1))
    return flips


def _thin(model: Network, feature: int, values_C: Tensor, n_most: int) -> Tensor:
    """Choose numbers by the rank of their embeddings; of several views, by the main effect."""
    if feature < len(model.cat_cardinalities) or len(values_C) <= n_most:
        return values_C
    embedded_CH = Exchange([feature], values_C[:-1, None]).embed(model)[:, :, 0].cpu()
    embedded_C = embedded_CH[:, model.main_views].mean(1)
    spaced = torch.linspace(0, len(embedded_C) - 1, n_most - 1).round().long()
    chosen_C = values_C[embedded_C.argsort(stable=True)[spaced]]
    return torch.cat([chosen_C, values_C[-1:]])


@use_engine("compiled")
def largest_change(
    model: Network, exchange: Exchange, link: Link, x_cat: Tensor, x_num: Tensor
) -> Tensor:
    """Largest change of each row's prediction between two of the flips, or none: ``(B,)``."""
    flipped_CHS = exchange.embed(model)
    return _spread(model, link, exchange.features, flipped_CHS, model.embed(x_cat, x_num))


def _spread(
    model: Network, link: Link, features: Sequence[int], flipped_CHS: Tensor, e_BHF: Tensor
) -> Tensor:
    low_BO = high_BO = link(model.score_embedded(e_BHF))
    flipped_BHF = e_BHF.clone()
    for values_HS in flipped_CHS:
        flipped_BHF[:, :, list(features)] = values_HS
        found_BO = link(model.score_embedded(flipped_BHF))
        low_BO, high_BO = torch.minimum(low_BO, found_BO), torch.maximum(high_BO, found_BO)
    return (high_BO - low_BO).amax(1)


# ------------------------------------------------------------------------------ search


@torch.no_grad()
@use_engine("compiled")
def search_change(
    model: Network, flips: Mapping[str, Exchange], link: Link, values: Sequence[Tensor]
) -> dict[str, float]:
    """Search all inputs for the largest change that each of the flips makes.

    What is found is a lower bound of the worst case: it does occur, in the arithmetic that the
    model (on the CPU, in evaluation mode) predicts with. All together are flipped in the rows that
    were found for each by itself.
    """
    rows = {
        name: _search_rows(model, exchange.features[0], link, values)
        for name, exchange in flips.items()
        if name != ALL_TOGETHER
    }
    rows[ALL_TOGETHER] = torch.cat([*rows.values()])
    found = {
        name: float(_spread(model, link, each.features, each.embed(model), rows[name]).max())
        for name, each in flips.items()
    }
    return found | {ALL_TOGETHER: max(found.values())}


def _search_rows(model: Network, feature: int, link: Link, values: Sequence[Tensor]) -> Tensor:
    """Find rows, embedded, whose prediction changes most between a feature's extreme embeddings.

    They start with embeddings about one level, from nearly equal ones to quite different ones:
    where they are nearly equal LayerNorm divides by little, and a flip changes most. From there one
    value after the other is exchanged at random, and kept where it helps.
    """
    n_values, n_features = max(map(len, values)), len(values)
    columns = [v[torch.arange(n_values).clamp(max=len(v) - 1)] for v in values]
    e_CHF = Exchange(range(n_features), torch.stack(columns, 1)).embed(model)
    main_CF = e_CHF[:, model.main_views].mean(1)
    ends = [int(main_CF[:, feature].argmin()), int(main_CF[:, feature].argmax())]
    ends_2H1 = e_CHF[ends][:, :, [feature]]

    def embed(chosen_BF: Tensor) -> Tensor:
        rows_BHF = chosen_BF.unsqueeze(1).expand(-1, e_CHF.shape[1], -1)
        return e_CHF.gather(0, rows_BHF)

    change = partial(_spread, model, link, [feature], ends_2H1)
    generator = torch.Generator().manual_seed(0)
    random = partial(torch.rand, generator=generator, dtype=e_CHF.dtype)
    draw = partial(torch.randint, generator=generator)
    n_rows = min(_MOST_STARTS, max(_N_FOUND, _MOST_NUMBERS_AT_ONCE // n_features**2))
    starts = []
    for level in main_CF.flatten()[draw(n_values * n_features, (n_rows,))]:
        noise_CF = random(1) ** 3 * (random(n_values, n_features) - 0.5)
        starts.append(
            (main_CF - level - noise_CF * (main_CF.max() - main_CF.min())).abs().argmin(0)
        )
    chosen_BF = torch.stack(starts)
    best_B, rows = change(embed(chosen_BF)), torch.arange(n_rows)
    for _ in range(_N_STEPS):
        place_B = draw(n_features, (n_rows,))
        tried_BF = chosen_BF.clone()
        tried_BF[rows, place_B] = draw(n_values, (n_rows,))
        change_B = change(embed(tried_BF))
        chosen_BF = torch.where((change_B > best_B)[:, None], tried_BF, chosen_BF)
        best_B = torch.maximum(best_B, change_B)
    return embed(chosen_BF[best_B.topk(_N_FOUND).indices])


# ------------------------------------------------------------------------------ certificate


@dataclass(frozen=True)
class FlipStatement:
    """What is known about a flip of one sensitive feature, or of any number of them.

    ``exact``: no flip can change any prediction, not by one bit. ``search``: the largest change of
    a prediction that a search, or the sample, showed, a lower bound of the worst case; 0 if exact.
    ``population``: the statement about the population, where a sample was given. ``rounded``: it is
    not exact, but its values are embedded as the same number, by rounding. ``values``: all that
    the feature was flipped to by itself, in the table's units; the last of a numeric feature is
    what stands for a missing number, None where that has an embedding of its own.
    """

    name: str
    exact: bool
    search: float
    population: PopulationBound | None = None
    rounded: bool = False
    values: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Certificate:
    """What is known about flips of the sensitive columns. ``print`` it for a report.

    Attributes
    ----------
    exact : bool
        Whether the model was made such that no flip can change any prediction, not by one bit.
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
            lines += [f"- {name}: {change}" for name, change, _ in self._rows]
            if self.population is None:
                lines.append("No rows were given: nothing is said about the population.")
            else:
                lines.append("For the population, judged by a sample, and flips as named below:")
                lines += [f"- {name}: {population}" for name, _, population in self._rows]
        lines.append("This rests on:")
        lines += [f"- {assumption}" for assumption in self.assumptions]
        lines.append(_SCOPE)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        header = ("flip of", "largest change that a search found", "population, flips as below")
        return html_table(self._verdict, header, self._rows, " ".join([*self.assumptions, _SCOPE]))

    @property
    def _rows(self) -> list[tuple[str, str, str]]:
        return [
            (
                show_text(flip.name),
                "none, not by one bit"
                if flip.exact
                else f"{flip.search:.3g}" + " (by rounding)" * flip.rounded,
                "–" if flip.population is None else str(flip.population),
            )
            for flip in dict.fromkeys((*self.features, self.joint))
        ]

    @property
    def _verdict(self) -> str:
        if self.joint.rounded:
            return (
                "Not exact: the weights tell no sensitive values apart, but only because they "
                "round to the same number. Retraining, or another processor, need not repeat it."
            )
        if not self.exact:
            return "Not exact: a flip of the sensitive columns can change a prediction."
        reason = (
            "every value of the sensitive columns is embedded as one stored number, bit for bit"
        )
        if self.averaged:
            reason = (
                "the sensitive columns are not read; predictions are averages over a fixed list "
                "of values"
            )
        return f"Exact: {reason}. No flip changes any prediction, for any input."


@torch.no_grad()
def certify_model(
    model: Network,
    sensitive: Sequence[int],
    names: Sequence[str],
    *,
    link: Link,
    values: Sequence[Tensor],
    label: Callable[[int, float], Any] = lambda feature, value: value,
    averaged: bool = False,
    changes: Mapping[str, ArrayLike] | None = None,
    confidence: float = 0.95,
    alpha: float | None = None,
    epsilon: float | None = None,
) -> Certificate:
    """State what is known about flips of a model's sensitive features.

    ``sensitive`` and ``names`` are positions and names of the sensitive features, ``link`` says how
    predictions come from outputs, ``values`` what each feature of the model can hold, to search
    through, and ``label(feature, value)`` what the table calls it. ``averaged`` predictions are
    averages over a fixed list of sensitive values: the columns are not read, and no flip can change
    anything, whatever the weights are. For a sample of the population, ``changes`` has the
    :func:`largest_change` of each row, for each of :func:`list_flips` by its name; for
    ``confidence``, ``alpha`` (by default 0.01) and ``epsilon`` see
    :func:`fcorr.metrics.population.population_bound`.
    """
    if epsilon is None and alpha is None:
        alpha = 0.01
    state = partial(population_bound, epsilon=epsilon, alpha=alpha, confidence=confidence)
    state([0.0])  # it has the rules for what was asked, also where no rows are given
    proven = [averaged or is_exact(model, [position]) for position in sensitive]
    flips, found = {}, dict.fromkeys([*names, ALL_TOGETHER], 0.0)
    if not all(proven):
        model = copy.deepcopy(model).cpu().eval()
        flips = list_flips(model, sensitive, names, values)
        found = search_change(model, flips, link, values)
    sizes = {name: np.asarray(each) for name, each in (changes or {}).items()}
    if sizes:
        # A flip of one feature is one of all together, also where the others hold a value that is
        # in none of the combinations.
        sizes[ALL_TOGETHER] = np.max([*sizes.values()], axis=0)
        found = {name: max(change, float(sizes[name].max())) for name, change in found.items()}
    bounds = {name: state(each) for name, each in sizes.items()}
    features = []
    for name, position, exact in zip(names, sensitive, proven, strict=True):
        feature = FlipStatement(name, exact, found[name], bounds.get(name))
        if not exact:
            labels = tuple(label(position, value) for value in flips[name].values[:, 0].tolist())
            rounded = same_bits(flips[name].embed(model))
            feature = replace(feature, rounded=rounded, values=labels)
        features.append(feature)
    joint = features[0]
    if len(features) > 1:
        rounded = not all(proven) and all(flip.exact or flip.rounded for flip in features)
        bound = bounds.get(ALL_TOGETHER)
        joint = FlipStatement(ALL_TOGETHER, all(proven), found[ALL_TOGETHER], bound, rounded)
    assumptions = _assumptions(model, averaged, flips, features, has_sample=bool(sizes))
    return Certificate(all(proven), averaged, tuple(features), joint, tuple(assumptions))


def _assumptions(
    model: Network,
    averaged: bool,
    flips: Mapping[str, Exchange],
    features: Sequence[FlipStatement],
    *,
    has_sample: bool,
) -> Iterator[str]:
    yield "The model computes what its weights say, and they are not changed afterwards."
    if not flips:
        if not averaged:
            yield (
                "A sensitive column reaches the model through its embedding alone, which is the "
                "same number for all its values; equal inputs give equal outputs."
            )
        return
    yield (
        "A search is no proof: a change of that size occurs for some input, which need not be a "
        "likely one, and a larger one may."
    )
    which = "knots of shape functions and evenly between them"
    has_numbers = model.n_features > len(model.cat_cardinalities)
    if has_numbers and any(member.knots is None for member in model.members):
        which = "evenly spaced"
        yield "Only numbers in the range of the training table were tried."
    sizes, has_numbers = [], False
    for flip in features:
        tried = flips[flip.name]
        sizes.append(len(tried))
        if tried.features[0] < len(model.cat_cardinalities):
            continue
        sizes[-1] = min(len(tried), _MOST_NUMBERS_TOGETHER)
        if not flip.exact:
            has_numbers, numbers = True, flip.values[:-1]
            yield (
                f"{flip.name!r} was flipped to {len(numbers)} numbers from {min(numbers):g} to "
                f"{max(numbers):g}, and to a missing one."
            )
    if has_numbers:
        yield (
            f"Numbers were {which}; to_dict() lists them. Nothing is said of other numbers: the "
            "prediction between two of these need not lie between theirs."
        )
    if ALL_TOGETHER in flips:
        n_tried, n_all = len(flips[ALL_TOGETHER]), math.prod(sizes)
        which = "all" if n_tried == n_all else f"{n_tried:,}, drawn at random, of the"
        yield (
            f"Together they were flipped to {which} {n_all:,} combinations of "
            f"{' × '.join(map(str, sizes))} of these values, and each by itself to all of its own."
        )
    if has_sample:
        yield (
            "The sampled rows are an independent sample of the population and had no part in "
            "training; the population does not drift."
        )
