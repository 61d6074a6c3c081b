"""The proxy dial: what groups of a sensitive column differ in has a price in training.

A model that does not read a sensitive column can still tell groups apart by columns that go with
it.

**Scores** (``ScoreDial``). How far groups differ is measured as a share: that part of the
spread of all rows that lies between groups, and not within them. The spread is the mean distance
``|a − b|`` of two rows drawn at random, which a batch estimates without bias, however few rows of a
group it holds: a row is never paired with itself. The share is 0 only if all groups have the same
distribution: the numerator is the mean energy distance of two groups, twice the integral of the
squared difference of their distribution functions (Székely and Rizzo, 2013).

**Decisions** (``DecisionDial``). Of all rules that do not read the column, the one that errs
least for the share ``r_s`` of each group s that it decides positive has a threshold on a corrected
probability: ``p(x) − t > Σ_s P(s | x) μ_s``, with multipliers ``μ_s`` such that
``Σ_s P(s) μ_s = 0``. A log loss in which each row has the label and the weight of its own cost,
``t − y + μ_s``, is least for just that rule (the reduction of Agarwal et al., 2018), and needs no
estimate of ``P(s | x)``. Its scores are log-odds, moved by as much as the groups that a row may be
of. For a penalty ``weight/2 · Σ_s (r_s − r)²``, r the mean of the groups' shares, ``μ_s`` is
``weight · (r_s − r) / P(s)``: training follows it as the shares change.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from fcorr._core import InvalidInputError, show_text
from fcorr.data.encode import EncodedTable
from fcorr.data.schema import Schema
from fcorr.data.tables import Table

ProxyTarget = Literal["score", "decision", "odds"]

UNKNOWN = -1  # the group of a row whose sensitive value is not known; it has no part in this
FEW_ROWS = 10.0  # of a group, whose share of decisions is believed by half

_NO_SPREAD = 1e-4  # of scores
_QUANTILES = (0.25, 0.5, 0.75)  # at which a continuous sensitive column is cut
_FEW_IN_BATCH = 2  # rows of a group, below which a batch says nothing of its scores
_LARGEST = 10.0  # multiplier; a decision's own cost is 1 at most
_WINDOW = 0.2  # passes over the rows, whose decisions tell a price
_PACE = 2.0  # of multipliers, in a pass over the rows


@dataclass(frozen=True)
class Groups:
    """Each row's group of each sensitive feature, ``(B, S)``, and its weight.

    ``sizes`` are the weights of the groups in the whole training table, whatever rows are here.
    """

    codes: Tensor
    weight: Tensor
    sizes: tuple[Tensor, ...]

    def each(self, change: Callable[[Tensor], Tensor]) -> "Groups":
        """Change what there is of each row."""
        return Groups(change(self.codes), change(self.weight), self.sizes)


def find_groups(
    table: Table,
    encoded: EncodedTable,
    schema: Schema,
    weight: NDArray[np.float64],
    batch_size: int | None,
) -> Groups:
    """Find the group of each row and sensitive feature; warn of groups that have too few rows.

    That is in a batch, where groups are compared within batches, or in the table. Rows whose
    sensitive value is missing are in no group.
    """
    if not schema.sensitive:
        raise InvalidInputError(
            "proxy needs the column whose groups shall not differ, got no sensitive column. Name "
            "it with sensitive=..., or leave proxy out.",
            argument="proxy",
        )
    seen_share, least, where = 1.0, FEW_ROWS, f"of which {FEW_ROWS:g} are believed by half"
    if batch_size is not None:
        seen_share, least = min(1.0, batch_size / len(encoded)), _FEW_IN_BATCH
    found, shares = [], []
    for name in schema.sensitive:
        missing = pc.is_null(table.columns[name], nan_is_null=True).to_numpy()
        for feature in schema[name].features:
            position = schema.feature_names.index(feature.name)
            number = position - len(schema.categorical)
            if number < 0:
                groups = encoded.codes[:, position].astype(np.int64)
            else:
                numbers = encoded.numbers[:, number]
                edges = np.unique(np.quantile(numbers[~missing], _QUANTILES))
                groups = np.searchsorted(edges, numbers, side="right")
            groups[missing] = UNKNOWN
            sizes = np.bincount(groups[~missing])
            seen = seen_share * sizes
            few = np.flatnonzero((sizes > 0) & (seen < least))
            if len(few):
                smallest = few[sizes[few].argmin()]
                label = f"quarter {smallest + 1}"
                if number < 0:
                    label = schema.categorical[position].labels[smallest]
                if batch_size is not None:
                    where = f"{seen[smallest]:.1f} in a batch of {batch_size}"
                warnings.warn(
                    f"proxy compares groups, and {len(few)} of {show_text(feature.name)} have too "
                    f"few rows to have a say: {show_text(label)} has {sizes[smallest]}, {where}. "
                    "Pool the groups"
                    + (", or raise advanced['batch_size']." if batch_size else "."),
                    stacklevel=5,
                )
            found.append(torch.from_numpy(groups))
            shares.append(torch.from_numpy(np.bincount(groups[~missing], weight[~missing])))
    return Groups(torch.stack(found, 1), torch.from_numpy(weight).float(), tuple(shares))


@dataclass(frozen=True)
class ScoreDial:
    """A penalty on the share of the spread of scores that lies between groups.

    ``is_log_odds`` says whether scores are the sigmoid of outputs, or outputs themselves.
    """

    weight: float
    is_log_odds: bool = False

    def penalty(self, outputs_BO: Tensor, outcomes: Tensor, groups: Groups) -> Tensor:
        """Return the weighted mean, over sensitive columns and classes, of the share."""
        values_BO = outputs_BO
        if outputs_BO.shape[1] > 1:
            values_BO = outputs_BO.softmax(1)
        elif self.is_log_odds:
            values_BO = outputs_BO.sigmoid()
        found = [
            share_between(values_B, groups.weight, codes_B, sizes)
            for sizes, codes_B in zip(groups.sizes, groups.codes.T, strict=True)
            for values_B in values_BO.T
        ]
        return self.weight * torch.stack(found).mean()

    def follow(self) -> None:
        """Take note of a step: there is nothing that it could change."""


class DecisionDial:
    """Costs of decisions, by group and, for ``"odds"``, by outcome.

    While it ``follows`` a training, ``multipliers`` move to the price of the latest decisions; once
    they have settled they stay, for what is to be trained and judged at one price. There is one
    tensor ``(n_outcomes, n_groups)`` for each sensitive column.

    Decisions answer a price with delay, and a high one would set the two swinging. So multipliers
    move by the gradient of the dual problem, ``r_s − r − μ_s P(s) / weight``: 0 at the price, and
    no larger for a higher weight. Its step is longer for small groups, whose decisions answer less.
    A training of few epochs may end before a high price is reached.
    """

    def __init__(self, weight: float, target: ProxyTarget, threshold: float) -> None:
        self.weight = weight
        self.threshold = threshold
        self.n_outcomes = 2 if target == "odds" else 1
        self.follows = True
        self.multipliers: list[Tensor] = []
        self._totals: list[Tensor] = []  # (2, n_outcomes, n_groups): rows, those decided positive
        self._seen: list[list[Tensor]] = []  # the same of slices of a batch
        self._n_rows: list[float] = []  # of the whole table, by sensitive column
        self._passes = 0.0  # over the rows so far
        self._means: list[Tensor] = []

    def penalty(self, outputs_BO: Tensor, outcomes: Tensor, groups: Groups) -> Tensor:
        """Return by how much the loss at the present costs is above that without any."""
        f_B, y_B = outputs_BO[:, 0], outcomes.to(outputs_BO)
        if self.follows and f_B.requires_grad:
            self._n_rows = [float(sizes.sum()) for sizes in groups.sizes]
            self._seen.append(self._count(f_B.detach(), outcomes, groups))
        cost_B = self.threshold - y_B
        for mu_YG, codes_B in zip(self.multipliers, groups.codes.T, strict=False):
            known_B, stratum_B = codes_B != UNKNOWN, outcomes.long() % self.n_outcomes
            mu_B = mu_YG.to(cost_B)[stratum_B, codes_B.clamp_min(0)]
            cost_B = cost_B + torch.where(known_B, mu_B, 0.0)
        label_B = (cost_B < 0).to(y_B)
        # A weight of 1 where a multiplier is 0: the threshold stays where it is.
        scale_B = cost_B.abs() / torch.where(cost_B < 0, 1 - self.threshold, self.threshold)
        costly_B = scale_B * binary_cross_entropy_with_logits(f_B, label_B, reduction="none")
        plain_B = binary_cross_entropy_with_logits(f_B, y_B, reduction="none")
        return (groups.weight.to(f_B) * (costly_B - plain_B)).mean()

    def follow(self) -> None:
        """Move the multipliers, after a step, to where the groups' shares are now."""
        if not self._seen:
            return
        seen = [_exact_sum(parts) for parts in zip(*self._seen, strict=True)]
        self._seen = []
        # Columns have values for more or fewer rows, of which a batch has about the same share.
        passes = max(float(s[0].sum()) / n for s, n in zip(seen, self._n_rows, strict=True))
        if passes == 0:  # it says nothing of any group
            return
        self._passes += passes
        kept = math.exp(-passes / _WINDOW)
        before = self._totals or [torch.zeros(()) for _ in seen]
        self._totals = [kept * b + n for b, n in zip(before, seen, strict=True)]
        now = self.multipliers or [torch.zeros(()) for _ in seen]
        self.multipliers = [
            self._move(mu, rows, decided, n_rows, passes)
            for mu, (rows, decided), n_rows in zip(now, self._totals, self._n_rows, strict=True)
        ]
        recent = 1 - math.exp(-3 * passes / self._passes)
        means = self._means or self.multipliers
        self._means = [m + recent * (mu - m) for m, mu in zip(means, self.multipliers, strict=True)]

    def settle(self) -> None:
        """Stop following, at the mean multipliers of about the last third of the training.

        The price of a small group, whose decisions are few, moves to and fro to the end.
        """
        self.follows = False
        self.multipliers = self._means

    def _move(
        self, mu_YG: Tensor, rows_YG: Tensor, decided_YG: Tensor, n_rows: float, passes: float
    ) -> Tensor:
        """Return multipliers a step nearer to the price of rows and decisions that were counted.

        The table has ``n_rows`` rows with a group.
        """
        share_YG = rows_YG / rows_YG.sum()
        present_YG, n_YG = rows_YG > 0, share_YG * n_rows
        rate_YG = torch.where(present_YG, decided_YG / rows_YG, 0.0)
        mean_Y1 = _mean(rate_YG, share_YG)
        rate_YG = (n_YG * rate_YG + FEW_ROWS * mean_Y1) / (n_YG + FEW_ROWS)
        from_middle_YG = rate_YG - _mean(rate_YG, present_YG.double())
        share_YG = share_YG + FEW_ROWS / n_rows
        price_YG = self.weight * from_middle_YG / share_YG
        pace_YG = (_PACE * share_YG.sqrt() / self.weight).clamp_max(0.5) * min(passes, 1.0)
        mu_YG = (mu_YG + pace_YG * (price_YG - mu_YG)).clamp(-_LARGEST, _LARGEST)
        # They move decisions between groups, and not all of them to one side.
        return torch.where(present_YG, mu_YG - _mean(mu_YG, rows_YG), 0.0)

    def _count(self, f_B: Tensor, outcomes: Tensor, groups: Groups) -> list[Tensor]:
        is_positive_B, found = f_B.sigmoid() >= self.threshold, []
        for sizes, codes_B in zip(groups.sizes, groups.codes.T, strict=True):
            known_B, shape = codes_B != UNKNOWN, (self.n_outcomes, len(sizes))
            place_B = (outcomes.long() % self.n_outcomes * len(sizes) + codes_B)[known_B]
            weight_B = groups.weight[known_B].double()
            counts = [
                torch.bincount(place_B, weights, minlength=math.prod(shape)).view(shape)
                for weights in (weight_B, weight_B * is_positive_B[known_B])
            ]
            found.append(torch.stack(counts).cpu())
        return found


def _mean(values_YG: Tensor, weight_YG: Tensor) -> Tensor:
    """Return the weighted mean over groups, 0 where there are none; ``(n_outcomes, 1)``."""
    total_Y1 = weight_YG.sum(1, keepdim=True)
    return (values_YG * weight_YG).sum(1, keepdim=True) / total_Y1.clamp_min(1e-9)


def _exact_sum(parts: Sequence[Tensor]) -> Tensor:
    """Add tensors up, rounded once: slices come from several threads, in any order."""
    values = zip(*(part.flatten().tolist() for part in parts), strict=True)
    return torch.tensor([math.fsum(v) for v in values], dtype=torch.float64).view_as(parts[0])


ProxyDial = ScoreDial | DecisionDial


def share_between(values_B: Tensor, weight_B: Tensor, groups_B: Tensor, sizes_G: Tensor) -> Tensor:
    """Return the share of the spread of all rows that lies between groups; a scalar.

    ``sizes_G`` are the groups' sizes in the population, in any unit. Groups with fewer than two
    rows here are left out; 0 where fewer than two are left, or all values are the same.
    """
    member_GB = groups_B == torch.arange(len(sizes_G), device=groups_B.device)[:, None]
    seen = member_GB.sum(1) >= 2
    if int(seen.sum()) < 2:
        return values_B.sum() * 0
    weight_GB = weight_B.to(values_B) * member_GB[seen]
    shares_G = sizes_G.to(values_B)[seen]
    distance_GG = mean_distances(values_B, weight_GB)
    pair_GG = torch.outer(shares_G, shares_G) / shares_G.sum() ** 2
    within_G = distance_GG.diagonal()
    total = (pair_GG * distance_GG).sum()
    between = (pair_GG * (distance_GG - (within_G[:, None] + within_G) / 2)).sum()
    # Where all say the same, as main effects do before the first step, a share of the spread would
    # have a gradient without bound.
    differ = total > _NO_SPREAD
    return torch.where(differ, between, 0.0) / torch.where(differ, total, 1.0)


def mean_distances(values_B: Tensor, weight_GB: Tensor) -> Tensor:
    """Return the mean distance of two rows of each pair of groups, never a row and itself."""
    total_G = weight_GB.sum(1)
    # In order of size, the distances to all rows before and after one are two sums.
    values_B, order = values_B.sort()
    weight_GB = weight_GB[:, order]
    moment_GB = weight_GB * values_B
    before_GB, low_GB = weight_GB.cumsum(1), moment_GB.cumsum(1)
    to_row_GB = values_B * (2 * before_GB - total_G[:, None])
    to_row_GB = to_row_GB + moment_GB.sum(1, keepdim=True) - 2 * low_GB
    distance_GG = to_row_GB @ weight_GB.T / torch.outer(total_G, total_G)
    # The pairs of a row and itself, at distance 0, are taken out of the mean.
    pairs_G = total_G.square() / (total_G.square() - weight_GB.square().sum(1))
    return distance_GG * torch.where(
        torch.eye(len(total_G), device=total_G.device) == 1, pairs_G, 1.0
    )
