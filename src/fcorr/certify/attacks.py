"""The other side of a bound: the largest change that a search can find.

A worst case says that no flip changes an output by more than so much; an attack shows one that does
change it. The truth lies between the two. The search starts from random rows, from rows whose
features are nearly equal, where LayerNorm divides by little, and, if there are few enough, from all
rows of a grid. From there the gradient by the embeddings says which exchange of one feature's value
promises most, for categories and numbers alike; the best few are tried, and the best is taken.
"""

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from fcorr.certify.domain import Domain, embedded_divisors, values_of
from fcorr.certify.exactness import check_sensitive
from fcorr.certify.links import Link
from fcorr.nn.fcorr import FCorrEncoderLayer, FCorrTransformer

_N_TRIED = 8  # exchanges that are tried at each step, those that promise most
_N_RANDOM = 2  # others
_PATIENCE = 2
_MOST_GRID_ROWS = 4096
_FEW_FEATURES = 128  # up to here attention is computed exactly, p² numbers a row


@dataclass(frozen=True)
class Flip:
    """A row before and after: codes ``(2, n_categorical)`` and numbers ``(2, n_numeric)``."""

    x_cat: Tensor
    x_num: Tensor


@dataclass(frozen=True)
class Attack:
    """The largest changes that were found, and the rows that show them.

    Attributes
    ----------
    change : tuple of float
        Largest change of each output of the model.
    flips : tuple of Flip
        For each output the flip that makes it.
    prediction : float or None
        Largest change of a prediction, if a link was given.
    prediction_flip : Flip or None
        The flip that makes it.
    """

    change: tuple[float, ...]
    flips: tuple[Flip, ...]
    prediction: float | None = None
    prediction_flip: Flip | None = None


def attack(
    model: FCorrTransformer,
    feature: int,
    domain: Domain | None = None,
    *,
    link: Link | None = None,
    n_starts: int = 128,
    n_steps: int = 60,
    generator: torch.Generator | None = None,
) -> Attack:
    """Search for the flip of one feature that changes the outputs most, all others fixed.

    What is found is a lower bound on the worst case, in double precision as the upper one of
    :func:`fcorr.certify.worst_cases.worst_case`.

    Parameters
    ----------
    model : FCorrTransformer
        The model, on the CPU.
    feature : int
        Position of the feature; numeric ones follow the categorical ones.
    domain : Domain, optional
        Where to search; by default every category and every number. Numbers are taken from a grid.
    link : Link, optional
        How predictions come from scores; the largest change of a prediction is then sought too.
    n_starts : int, default=128
        Rows to start from, beside those of a grid.
    n_steps : int, default=60
        Exchanges of other features' values.
    generator : torch.Generator, optional
        Source of the random rows; by default always the same.

    Examples
    --------
    >>> model = FCorrTransformer([3, 2, 4], n_numeric=2, head=(4,))
    >>> found = attack(model, 0, n_starts=8, n_steps=4)
    >>> len(found.change), found.flips[0].x_cat.shape
    (1, torch.Size([2, 3]))
    """
    check_sensitive(model, [feature])
    search = _Search(model, feature, domain or Domain(), generator)
    starts_BF = search.starts(n_starts)
    n_outputs = model.head.output.out_features
    found = [search.climb(starts_BF, _Score(output), n_steps) for output in range(n_outputs)]
    changes, flips = zip(*found, strict=True)
    if link is None:
        return Attack(changes, flips)
    return Attack(changes, flips, *search.climb(starts_BF, _Prediction(link), n_steps))


class _Score:
    """Size of the change of one output."""

    def __init__(self, output: int) -> None:
        self.output = output

    def __call__(self, scores_BO: Tensor, others_BO: Tensor) -> Tensor:
        return (scores_BO[:, self.output] - others_BO[:, self.output]).abs()


class _Prediction:
    """Size of the change of the prediction; of several classes, the one that changes most."""

    def __init__(self, link: Link) -> None:
        self.link = link

    def __call__(self, scores_BO: Tensor, others_BO: Tensor) -> Tensor:
        return (self._predict(scores_BO) - self._predict(others_BO)).abs().amax(1)

    def _predict(self, scores_BO: Tensor) -> Tensor:
        functions = {"identity": lambda x: x, "sigmoid": torch.sigmoid, "exp": torch.exp}
        if self.link.name == "softmax":
            return self.link.scale * torch.softmax(scores_BO, 1)
        return self.link.scale * functions[self.link.name](scores_BO + self.link.offset)


class _Search:
    """Rows as places in tables of each feature's values: ``(B, F)``."""

    def __init__(
        self,
        model: FCorrTransformer,
        feature: int,
        domain: Domain,
        generator: torch.Generator | None,
    ) -> None:
        self.model, self.feature = model, feature
        self.generator = generator or torch.Generator().manual_seed(0)
        self.values_FC, self.embedded_FC, self.n_values_F = values_of(model, domain)
        self.floors = domain.floors(2 * len(model.layers) + 1)
        self.exact = copy.deepcopy(model).double().eval()
        if len(self.n_values_F) <= _FEW_FEATURES:
            for layer in self.exact.layers:
                assert isinstance(layer, FCorrEncoderLayer)
                layer.attention = "exact"

    def starts(self, n_rows: int) -> Tensor:
        """Random rows, rows with nearly equal embeddings, and all rows if they are few."""
        n_features = len(self.n_values_F)
        random_BF = self._random(n_rows, n_features) * self.n_values_F
        low, high = self._range()
        level_B11 = low + (high - low) * self._random(n_rows, 1, 1)
        spread_B11 = (high - low) * self._random(n_rows, 1, 1) ** 3
        noise_BFC = spread_B11 * (self._random(n_rows, *self.embedded_FC.shape) - 0.5)
        equal_BF = (self.embedded_FC - level_B11 + noise_BFC).abs().nan_to_num(torch.inf).argmin(2)
        starts = [random_BF.long(), equal_BF]
        others_F = self.n_values_F.clone()
        others_F[self.feature] = 1
        if float(others_F.double().prod()) <= _MOST_GRID_ROWS:
            starts.append(torch.cartesian_prod(*(torch.arange(int(n)) for n in others_F)))
        return torch.cat([rows.reshape(-1, n_features) for rows in starts])

    def _random(self, *shape: int) -> Tensor:
        return torch.rand(*shape, generator=self.generator, dtype=torch.float64)

    def _range(self) -> tuple[float, float]:
        known = self.embedded_FC[~self.embedded_FC.isnan()]
        return float(known.min()), float(known.max())

    def climb(
        self, starts_BF: Tensor, size: "_Score | _Prediction", n_steps: int
    ) -> tuple[float, Flip]:
        """Exchange one value after the other for as long as it helps; return the best flip."""
        own = self.embedded_FC[self.feature, : self.n_values_F[self.feature]]
        ends = (int(own.argmin()), int(own.argmax()))
        rows_BF = starts_BF.clone()
        best_B = self._change(rows_BF, size, ends)
        idle_B = torch.zeros_like(best_B)  # steps in a row that did not help
        for _ in range(n_steps):
            active = (idle_B < _PATIENCE).nonzero()[:, 0]
            if not len(active):
                break
            tried = self._promising(rows_BF[active], size, ends)
            sizes = torch.stack([self._change(rows, size, ends) for rows in tried])
            largest_A, which_A = sizes.max(0)
            better_A = largest_A > best_B[active]
            chosen_AF = torch.stack(tried)[which_A, torch.arange(len(active))]
            rows_BF[active[better_A]] = chosen_AF[better_A]
            best_B[active[better_A]] = largest_A[better_A]
            idle_B[active] = torch.where(better_A, 0.0, idle_B[active] + 1)
        # The best pair of values need not be the two with the most different embeddings.
        top_B = best_B.topk(min(16, len(best_B))).indices
        rows_BF = rows_BF[top_B]
        found, row, pair = float(best_B[top_B[0]]), rows_BF[0], ends
        for first in range(len(own)):
            for second in range(first):
                size_B = self._change(rows_BF, size, (first, second))
                if float(size_B.max()) > found:
                    found, row = float(size_B.max()), rows_BF[int(size_B.argmax())]
                    pair = (first, second)
        return found, self._flip(row, pair)

    def _embed(self, rows_BF: Tensor, end: int) -> Tensor:
        e_BF = self.embedded_FC.gather(1, rows_BF.T).T.clone()
        e_BF[:, self.feature] = self.embedded_FC[self.feature, end]
        return e_BF

    @torch.no_grad()
    def _change(
        self, rows_BF: Tensor, size: "_Score | _Prediction", ends: tuple[int, int]
    ) -> Tensor:
        sides = [self._embed(rows_BF, end) for end in ends]
        change_B = size(*(self._outputs(e_BF) for e_BF in sides))
        if bool((self.floors > 0).any()):  # rows that the domain leaves out
            divisors = torch.stack([embedded_divisors(self.exact, e_BF) for e_BF in sides])
            change_B = change_B * (divisors >= self.floors).all(2).all(0)
        return change_B

    def _outputs(self, e_BF: Tensor) -> Tensor:
        return self.exact.decode(self.exact.encode(e_BF))

    def _promising(
        self, rows_BF: Tensor, size: "_Score | _Prediction", ends: tuple[int, int]
    ) -> list[Tensor]:
        """Exchange the values that promise most, by the gradient, and some at random."""
        sides = [self._embed(rows_BF, end).requires_grad_() for end in ends]
        change_B = size(*(self._outputs(e_BF) for e_BF in sides))
        gradient_BF = torch.stack(torch.autograd.grad(change_B.sum(), sides)).sum(0)
        step_BFC = self.embedded_FC - sides[0].detach()[:, :, None]
        gain_BFC = (gradient_BF[:, :, None] * step_BFC).nan_to_num(-torch.inf)
        gain_BFC[:, self.feature] = -torch.inf
        n_rows, n_features, n_values = gain_BFC.shape
        n_tried = min(_N_TRIED, n_features * n_values)
        best_BT = gain_BFC.flatten(1).topk(n_tried).indices
        feature_BR = (self._random(n_rows, _N_RANDOM) * n_features).long()
        value_BR = (self._random(n_rows, _N_RANDOM) * self.n_values_F[feature_BR]).long()
        features = torch.cat([best_BT // n_values, feature_BR], 1)
        values = torch.cat([best_BT % n_values, value_BR], 1)
        # Places of values that a feature does not have promise nothing, but may fill up the list.
        values = torch.minimum(values, self.n_values_F[features] - 1)
        exchanged = []
        for feature_B, value_B in zip(features.T, values.T, strict=True):
            rows = rows_BF.clone()
            rows[torch.arange(n_rows), feature_B] = value_B
            exchanged.append(rows)
        return exchanged

    def _flip(self, row_F: Tensor, ends: tuple[int, int]) -> Flip:
        rows_2F = row_F.repeat(2, 1)
        rows_2F[:, self.feature] = torch.tensor(ends)
        numbers_2F = self.values_FC.gather(1, rows_2F.T).T
        n_categorical = len(self.model.cat_cardinalities)
        dtype = self.model.head_norm.weight.dtype
        return Flip(numbers_2F[:, :n_categorical].long(), numbers_2F[:, n_categorical:].to(dtype))
