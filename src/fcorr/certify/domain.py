"""Every input that a statement covers, as the numbers that each feature can be embedded as."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from fcorr._core import InvalidInputError
from fcorr.certify.exactness import check_sensitive, is_continuous, is_exact
from fcorr.certify.gelu_ranges import gelu_span
from fcorr.certify.intervals import Span
from fcorr.nn.attention import attend
from fcorr.nn.fcorr import FCorrEncoderLayer, FCorrTransformer
from fcorr.nn.layers import NumericEmbedding, SplineEmbedding

_N_GRID = 33  # numbers that stand for a range of them in a search


@dataclass(frozen=True)
class Domain:
    """The inputs that a worst case is taken over: all categories, and numbers in a range.

    Attributes
    ----------
    low, high : array-like of shape (n_numeric,), optional
        Range of each numeric feature, in the unit that the model takes (standardised). Without
        them every number counts. The paper's numeric embedding grows without limit and needs them;
        a spline is constant beyond its outer knots and does not.
    missing : bool, default=True
        Whether NaN counts as a value too, where the model has an embedding for it.
    min_divisors : sequence of float, optional
        Leaves out rows for which a LayerNorm divides by less than this, one number per LayerNorm
        in the order in which they are run (:func:`layer_norm_divisors` gives those of rows). Such
        rows, whose features are nearly equal, are where the worst case is; a bound without them is
        much smaller. It then holds for a row if the divisors stay at or above these numbers for
        every value of the moving embedding between two of the feature's.

    Examples
    --------
    >>> Domain(low=[-3.0], high=[3.0]).describe()
    'every category; numbers in the stated ranges; missing numbers where the model takes them'
    """

    low: ArrayLike | None = None
    high: ArrayLike | None = None
    missing: bool = True
    min_divisors: Sequence[float] | None = None

    def describe(self) -> str:
        """Say what is covered."""
        bounded = self.low is not None
        numbers = "numbers in the stated ranges" if bounded else "every number"
        missing = "; missing numbers where the model takes them" if self.missing else ""
        regular = "; only rows whose LayerNorm divisors are not below stated values"
        return f"every category; {numbers}{missing}{regular if self.min_divisors else ''}"

    def floors(self, n_norms: int) -> Tensor:
        """Smallest divisor of each LayerNorm; 0 where nothing is left out."""
        if self.min_divisors is None:
            return torch.zeros(n_norms, dtype=torch.float64)
        floors = torch.tensor([float(floor) for floor in self.min_divisors], dtype=torch.float64)
        if len(floors) != n_norms or not bool((floors >= 0).all()):
            raise InvalidInputError(
                f"min_divisors must hold {n_norms} numbers that are not negative, one per "
                f"LayerNorm of the model, got {floors.tolist()!r}."
            )
        return floors


class Pieces(NamedTuple):
    """What each feature can be embedded as: a union of n_pieces intervals; some may repeat.

    The first ``n_cut_F`` pieces of a feature are one interval cut evenly, and may be cut anew.
    """

    low_FP: Tensor
    high_FP: Tensor
    n_cut_F: Tensor


@torch.no_grad()
def embedding_pieces(
    model: FCorrTransformer, domain: Domain, moving: int, n_pieces: int = 8
) -> Pieces:
    """Cut the values of each feature's embedding into pieces, in float64.

    Categories are points, the values of a shape function an interval, and a missing number one
    more point. The feature ``moving`` is on its way from any of its values to any other one, so all
    numbers between its smallest and largest embedding count.

    Parameters
    ----------
    model : FCorrTransformer
        The model.
    domain : Domain
        The inputs.
    moving : int
        Position of the feature that changes.
    n_pieces : int, default=8
        Pieces per feature. More make bounds tighter and slower.
    """
    n_categorical = len(model.cat_cardinalities)
    table = model.categorical.table()
    rows, n_cut = [], []
    for feature in range(n_categorical):
        values = model.categorical.categories(feature, table).double()
        if feature == moving:
            rows.append(_cut(float(values.min()), float(values.max()), n_pieces))
        else:
            rows.append(_group(values, n_pieces))
        n_cut.append(n_pieces if feature == moving else 0)
    shapes = _numeric_ranges(model, domain)
    missing_M = _missing_numbers(model, domain)
    for j, (low, high) in enumerate(zip(shapes.low.tolist(), shapes.high.tolist(), strict=True)):
        points = [] if missing_M is None else [float(missing_M[j])]
        if n_categorical + j == moving:  # it passes everything on its way from or to NaN
            low, high, points = min(low, *points, high), max(low, *points, high), []
        cut, more = (
            _cut(low, high, n_pieces - len(points)),
            torch.tensor(points, dtype=torch.float64),
        )
        rows.append(Span(torch.cat([cut.low, more]), torch.cat([cut.high, more])))
        n_cut.append(len(cut.low))
    pieces = Pieces(
        torch.stack([r.low for r in rows]),
        torch.stack([r.high for r in rows]),
        torch.tensor(n_cut),
    )
    if not (pieces.low_FP.isfinite().all() and pieces.high_FP.isfinite().all()):
        raise InvalidInputError(
            "model must have finite embeddings, got infinite or missing ones. Train it again."
        )
    return pieces


@torch.no_grad()
def embedding_gap(model: FCorrTransformer, feature: int, domain: Domain | None = None) -> float:
    """Largest difference between the embeddings of two values of a feature.

    Parameters
    ----------
    model : FCorrTransformer
        The model.
    feature : int
        Position of the feature. For a numeric one the values are the numbers of the domain, and
        NaN where the model has an embedding for it.
    domain : Domain, optional
        By default every number; a model with the paper's numeric embedding needs ranges.

    Examples
    --------
    >>> model = FCorrTransformer([2], n_numeric=1, knots=[torch.tensor([0.0, 1.0])], head=(4,))
    >>> _ = model.numeric.steps.data.copy_(torch.tensor([0.5, -2.0]))
    >>> embedding_gap(model, 1), embedding_gap(model, 1, Domain([0.0], [0.5]))
    (2.0, 1.0)
    """
    check_sensitive(model, [feature])
    if not is_continuous(model, feature):
        embeddings = model.categorical.categories(feature).double()
        return float(embeddings.max() - embeddings.min()) if len(embeddings) else 0.0
    if is_exact(model, [feature]):
        return 0.0
    j = feature - len(model.cat_cardinalities)
    domain = domain or Domain()
    shapes, missing_M = _numeric_ranges(model, domain), _missing_numbers(model, domain)
    values = [shapes.low[j], shapes.high[j], *([] if missing_M is None else [missing_M[j]])]
    return float(max(values) - min(values))


class Values(NamedTuple):
    """Some values of each feature, and their embeddings; padded with NaN behind ``n_values_F``.

    A missing number is NaN among the values as well, with an embedding that is not.
    """

    values_FC: Tensor
    embedded_FC: Tensor
    n_values_F: Tensor


@torch.no_grad()
def values_of(model: FCorrTransformer, domain: Domain) -> Values:
    """List all categories of each feature, or numbers that its embedding is known by, in float64.

    They are the knots of a spline, and a grid; a missing number, where it counts, comes last.
    """
    table = model.categorical.table()
    n_categorical = len(model.cat_cardinalities)
    values = [torch.arange(c).double() for c in model.cat_cardinalities]
    embedded = [model.categorical.categories(i, table).double() for i in range(n_categorical)]
    missing_M = _missing_numbers(model, domain)
    numbers = _grid_numbers(model, domain)
    for j, numbers_C in enumerate(numbers):
        x_num = torch.zeros(len(numbers_C), len(numbers), dtype=model.head_norm.weight.dtype)
        x_num[:, j] = numbers_C
        codes = torch.zeros(len(numbers_C), n_categorical, dtype=torch.long)
        e_C = model.embed(codes, x_num)[:, n_categorical + j].double()
        if missing_M is not None:
            e_C = torch.cat([e_C, missing_M[j : j + 1]])
            numbers_C = torch.cat([numbers_C, numbers_C.new_full((1,), torch.nan)])
        values.append(numbers_C)
        embedded.append(e_C)
    n_values_F = torch.tensor([len(v) for v in values])
    padded = [
        torch.nn.utils.rnn.pad_sequence(lists, batch_first=True, padding_value=torch.nan)
        for lists in (values, embedded)
    ]
    return Values(padded[0], padded[1], n_values_F)


def _grid_numbers(model: FCorrTransformer, domain: Domain) -> list[Tensor]:
    _numeric_ranges(model, domain)  # says so if numbers have no limits and need some
    numeric, (low, high) = model.numeric, _number_range(model, domain)
    grids = []
    for j in range(_n_numeric(model)):
        first, last = low[j], high[j]
        knots = torch.zeros(0, dtype=torch.float64)
        if isinstance(numeric, SplineEmbedding):
            knots = numeric.knots[j, numeric.used[j]].double()
            first, last = first.clamp(knots[0], knots[-1]), last.clamp(knots[0], knots[-1])
            knots = knots[(knots >= first) & (knots <= last)]
        steps = torch.linspace(0, 1, _N_GRID, dtype=torch.float64)
        grids.append(torch.cat([knots, first + (last - first) * steps]).unique())
    return grids


@torch.no_grad()
def layer_norm_divisors(model: FCorrTransformer, x_cat: Tensor, x_num: Tensor) -> Tensor:
    """Compute the divisors ``√(var + eps)`` of all LayerNorms, in order: ``(B, n_norms)``."""
    return embedded_divisors(model, model.embed(x_cat, x_num))


@torch.no_grad()
def embedded_divisors(model: FCorrTransformer, h_BF: Tensor) -> Tensor:
    """Compute the divisors for rows that are embedded already."""
    divisors = []
    for layer in (cast(FCorrEncoderLayer, module) for module in model.layers):
        divisors.append(_divisor(h_BF, layer.attention_norm.eps))
        attended_BF = attend(layer.attention_norm(h_BF), layer.attention)
        if layer.residual:
            attended_BF = h_BF + attended_BF
        divisors.append(_divisor(attended_BF, layer.stack_norm.eps))
        h_BF = attended_BF + layer.transform(layer.stack_norm(attended_BF))
    divisors.append(_divisor(h_BF, model.head_norm.eps))
    return torch.stack(divisors, 1)


def _divisor(h_BF: Tensor, eps: float) -> Tensor:
    return (h_BF.double().var(1, correction=0) + eps).sqrt()


def _cut(low: float, high: float, n_pieces: int) -> Span:
    edges = torch.linspace(low, high, n_pieces + 1, dtype=torch.float64)
    edges[-1] = high
    return Span(edges[:-1], edges[1:])


def _group(values: Tensor, n_pieces: int) -> Span:
    """Make points of few values, and of many the intervals between their widest gaps."""
    values = values.sort().values
    if len(values) <= n_pieces:
        padded = torch.cat([values, values[-1:].expand(n_pieces - len(values))])
        return Span(padded, padded)
    widest = values.diff().topk(n_pieces - 1).indices.sort().values
    return Span(
        torch.cat([values[:1], values[widest + 1]]), torch.cat([values[widest], values[-1:]])
    )


def _missing_numbers(model: FCorrTransformer, domain: Domain) -> Tensor | None:
    """Embedding of a missing number of each numeric feature, where it counts."""
    return model.missing.double() if model.missing is not None and domain.missing else None


def _numeric_ranges(model: FCorrTransformer, domain: Domain) -> Span:
    """Range of each numeric feature's embedding; exact, since the shape functions are."""
    numeric = model.numeric
    low, high = _number_range(model, domain)
    if isinstance(numeric, NumericEmbedding):
        if not bool((low.isfinite() & high.isfinite()).all()):
            raise InvalidInputError(
                "domain must have low and high for every numeric feature of a model with the "
                "paper's numeric embedding, which grows without limit; got none or infinite ones. "
                "Pass Domain(low=..., high=...) in standardised units."
            )
        first, second = numeric.first, numeric.second
        inner = Span(low, high).scaled(first.weight.double()).shifted(first.bias.double())
        return gelu_span(inner).scaled(second.weight.double()).shifted(second.bias.double())
    return _spline_ranges(numeric, low, high)


def _spline_ranges(spline: SplineEmbedding, low: Tensor, high: Tensor) -> Span:
    """Smallest and largest value at the knots in range and at the ends of the range."""
    table_MK, knots_MK = spline.table().double(), spline.knots.double()
    in_range_MK = spline.used & (knots_MK >= low[:, None]) & (knots_MK <= high[:, None])
    ends = torch.stack([low, high]).nan_to_num(posinf=3e38, neginf=-3e38)
    at_ends_M2 = spline(ends.to(spline.steps.dtype)).double().T
    lowest = table_MK.masked_fill(~in_range_MK, torch.inf)
    highest = table_MK.masked_fill(~in_range_MK, -torch.inf)
    return Span(
        torch.cat([lowest, at_ends_M2], dim=1).amin(1),
        torch.cat([highest, at_ends_M2], dim=1).amax(1),
    )


def _number_range(model: FCorrTransformer, domain: Domain) -> tuple[Tensor, Tensor]:
    n_numeric = _n_numeric(model)
    low = np.full(n_numeric, -np.inf) if domain.low is None else np.asarray(domain.low, float)
    high = np.full(n_numeric, np.inf) if domain.high is None else np.asarray(domain.high, float)
    if low.shape != (n_numeric,) or high.shape != (n_numeric,) or not (low <= high).all():
        raise InvalidInputError(
            f"domain must have one low and one high for each of the {n_numeric} numeric "
            f"feature(s), low not above high, got {low.tolist()!r} and {high.tolist()!r}."
        )
    return torch.from_numpy(low), torch.from_numpy(high)


def _n_numeric(model: FCorrTransformer) -> int:
    return model.head_norm.normalized_shape[0] - len(model.cat_cardinalities)
