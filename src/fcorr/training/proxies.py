"""The proxy dial: a penalty on how far the groups of a sensitive column differ in what is said.

A model that does not read a sensitive column can still tell groups apart by columns that go with
it. How far, is measured as a share: that part of the spread of all rows that lies between groups,
and not within them. The spread is the mean distance of two rows drawn at random, which a batch
estimates without bias, however few rows of a group it holds: a row is never paired with itself.

With the distance ``|a − b|`` of scores the share is 0 only if all groups have the same
distribution: the numerator is the mean energy distance of two groups, twice the integral of the
squared difference of their distribution functions (Székely and Rizzo, 2013). With ``(a − b)²`` of
decisions, 0 or 1, it is the share of their variance that groups explain.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

ProxyTarget = Literal["score", "decision", "odds"]

_NO_SPREAD = 1e-4  # of scores

UNKNOWN = -1  # the group of a row whose sensitive value is not known; it has no part in this


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


@dataclass(frozen=True)
class ProxyDial:
    """Weight of the penalty, and what it is about.

    ``cut`` is the output above which a row is decided positive; None where outputs are no log-odds.

    A decision is a step, which has no gradient. It is given that of a sigmoid at the cut: the row
    to change its side is then that for which it costs least for what it does to the groups. The
    gradient of a steeper one would move only rows that are at the cut already.
    """

    weight: float
    target: ProxyTarget = "score"
    cut: float | None = None

    def penalty(self, outputs_BO: Tensor, outcomes: Tensor, groups: Groups) -> Tensor:
        """Return the weighted mean, over sensitive columns, of the share between groups.

        ``outcomes`` are the classes, which only ``"odds"`` looks at: the mean over them, each by
        itself.
        """
        values_BO, squared = outputs_BO, self.target != "score"
        if outputs_BO.shape[1] > 1:
            values_BO = outputs_BO.softmax(1)
        elif squared:
            smooth_BO = (outputs_BO - (self.cut or 0.0)).sigmoid()
            values_BO = (smooth_BO > 0.5).to(smooth_BO) + smooth_BO - smooth_BO.detach()
        elif self.cut is not None:
            values_BO = outputs_BO.sigmoid()
        strata: list[Any] = [slice(None)]
        if self.target == "odds":
            strata = [outcomes == outcome for outcome in outcomes.unique()]
        found = [
            share_between(
                values_B[some], groups.weight[some], codes_B[some], sizes, squared=squared
            )
            for sizes, codes_B in zip(groups.sizes, groups.codes.T, strict=True)
            for values_B in values_BO.T
            for some in strata
        ]
        return self.weight * torch.stack(found).mean()


def share_between(
    values_B: Tensor, weight_B: Tensor, groups_B: Tensor, sizes_G: Tensor, *, squared: bool
) -> Tensor:
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
    distance_GG = mean_distances(values_B, weight_GB, squared=squared)
    pair_GG = torch.outer(shares_G, shares_G) / shares_G.sum() ** 2
    within_G = distance_GG.diagonal()
    total = (pair_GG * distance_GG).sum()
    between = (pair_GG * (distance_GG - (within_G[:, None] + within_G) / 2)).sum()
    # Where all say the same, as main effects do before the first step, a share of the spread would
    # have a gradient without bound.
    differ = total > (_NO_SPREAD**2 if squared else _NO_SPREAD)
    return torch.where(differ, between, 0.0) / torch.where(differ, total, 1.0)


def mean_distances(values_B: Tensor, weight_GB: Tensor, *, squared: bool) -> Tensor:
    """Return the mean distance of two rows of each pair of groups, never a row and itself."""
    total_G = weight_GB.sum(1)
    if squared:
        mean_G, square_G = (weight_GB @ v / total_G for v in (values_B, values_B.square()))
        distance_GG = square_G[:, None] + square_G - 2 * torch.outer(mean_G, mean_G)
    else:
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


def decision_cut(threshold: float) -> float:
    """Return the log-odds of a threshold; of 0 and 1 those of the nearest that has some."""
    share = min(max(threshold, 1e-6), 1 - 1e-6)
    return math.log(share / (1 - share))
