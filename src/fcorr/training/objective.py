"""Objective: what a step minimises, a loss and λ times CAR beside it; the balance afterwards.

Losses are per row, so that rows can be weighted. Those with a log link are half the unit deviance,
but for terms without the expectation μ. Their target has two columns, y and an offset, and
``log μ = offset + output``: it is the logarithm that is computed with, so that neither a tiny nor a
huge μ is ever divided by.

At the end comes the balance: the constant shift of a model's outputs after which totals are what
was observed. Training stops near the optimum, not in it, and weights of classes move it on purpose;
an intercept can be put right afterwards. All its sums are numpy's own, whose order does not depend
on the number of threads; products by BLAS would.

NOTE[DIFF]: the balance is not in the paper, whose predictions are as training leaves them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.extmath import softmax
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss

from fcorr.nn.car import Exchange, car_sensitive, paper_weight
from fcorr.nn.fcorr import FCorrTransformer
from fcorr.training.proxies import Groups, ProxyDial
from fcorr.training.rows import Ranks, Rows, TrainingRows, Workers

CarWeight = float | Literal["paper"] | None
LinkName = Literal["identity", "sigmoid", "softmax", "exp"]
"""The function that makes predictions of outputs."""

Loss = Callable[[Tensor, Tensor], Tensor]
"""``(outputs (B, n_outputs), target (B,) or (B, 2)) -> loss of each row (B,)``."""

Floats = NDArray[np.float64]

_CHUNK_ROWS = 16_384  # embedded at a time
_BLOCK = 65_536  # rows whose probabilities are in memory at a time
_CLOSE = 1e-12
_MOST_STEPS = 100
_LONGEST_STEP = 4.0  # where probabilities are near 0 and 1, Newton's step overshoots


def binary_log_loss(outputs: Tensor, target: Tensor) -> Tensor:
    """Negative log-likelihood of labels 0 and 1 under one logit per row."""
    return binary_cross_entropy_with_logits(outputs.squeeze(1), target, reduction="none")


def log_loss(outputs: Tensor, target: Tensor) -> Tensor:
    """Negative log-likelihood of class codes under one logit per class and row."""
    return cross_entropy(outputs, target, reduction="none")


def squared_error(outputs: Tensor, target: Tensor) -> Tensor:
    """Squared difference between output and target."""
    return mse_loss(outputs.squeeze(1), target, reduction="none")


def poisson_loss(outputs: Tensor, target: Tensor) -> Tensor:
    """Poisson loss of counts y: ``μ − y·log μ``."""
    y, log_mean = _log_mean(outputs, target)
    return log_mean.exp() - y * log_mean


def gamma_loss(outputs: Tensor, target: Tensor) -> Tensor:
    """Gamma loss of positive amounts y: ``log μ + y/μ``."""
    y, log_mean = _log_mean(outputs, target)
    return log_mean + (y.log() - log_mean).exp()


def tweedie_loss(power: float) -> Loss:
    """Make the Tweedie loss of amounts y, none negative, for a power 1 < p < 2.

    ``y·μ^(1−p)/(p−1) + μ^(2−p)/(2−p)``: the loss of a Poisson number of gamma amounts.
    """

    def loss(outputs: Tensor, target: Tensor) -> Tensor:
        y, log_mean = _log_mean(outputs, target)
        # y goes in as a logarithm: 0 times an overflow would not be 0.
        claims = (y.log() + (1 - power) * log_mean).exp() / (power - 1)
        return claims + ((2 - power) * log_mean).exp() / (2 - power)

    return loss


def _log_mean(outputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    y, offset = target.unbind(1)
    return y, offset + outputs.squeeze(1)


@dataclass(frozen=True)
class Target:
    """What the networks of a fit learn: each row's target, and its weight in the loss, of mean 1.

    Training starts from the outputs ``start``, those of the mean; ``curvature`` is the second
    derivative of a row's loss by its output, about, there. ``rows_for_one`` rows say as much of an
    effect as one row of a table whose classes have the same size: more where events are rare.
    Every bag shall have its share of the ``strata``: classes, rows with a claim. With a ``dial``,
    ``groups`` are those that it compares.
    """

    values: Tensor
    weight: Floats
    loss: Loss
    start: Floats | float
    curvature: float
    rows_for_one: float
    strata: NDArray[np.int64]
    dial: ProxyDial | None = None
    groups: Groups | None = None

    def losses(self, outputs: Tensor, rows: Tensor) -> Tensor:
        """Return the weighted loss of each of some rows, with the dial's penalty."""
        wanted, weight = self.values[rows], torch.from_numpy(self.weight)[rows]
        exact = wanted.double() if wanted.is_floating_point() else wanted
        mean = max(float(weight.mean()), float(np.finfo(float).tiny))
        losses = self.loss(outputs, exact).double() * (weight / mean)
        if self.dial is not None and self.groups is not None:
            some = self.groups.each(lambda part: part[rows])
            losses += self.dial.penalty(outputs, wanted, some)
        return losses


class Objective:
    """Computes ``L_perf + λ L_CAR`` of a batch, and keeps the two apart for the record.

    ``sensitive`` are the positions of the sensitive features, to be collapsed, and ``exchanges`` is
    what CAR exchanges them for; ``car`` is λ, "paper" for its rule, settled on a first batch, or
    ``None``; CAR is explained in :mod:`fcorr.nn.car`. ``penalty`` is added to it in training,
    whatever the batch, and ``dial``, set after construction, of what groups differ in, always.
    ``collapsed`` says whether the sensitive features are embedded as one number each, and
    ``car_ratio`` is ``L_perf / L_CAR`` before the first step, if the paper's rule asked for it.

    Another network takes a subclass with its own :meth:`_outputs`; one that has CAR also
    :meth:`_outputs_and_car`.
    """

    def __init__(
        self,
        model: FCorrTransformer,
        loss: Loss,
        *,
        sensitive: Sequence[int] = (),
        exchanges: Sequence[Exchange] = (),
        car: CarWeight = None,
        penalty: Callable[[], Tensor] | None = None,
        signs: Mapping[int, int] | None = None,
    ) -> None:
        self.model = model
        self.loss = loss
        self.exchanges = tuple(exchanges)
        self.sensitive = list(sensitive)
        self.has_car = bool(self.exchanges and car)
        self.car_weight = float(car) if self.has_car and car and car != "paper" else None
        self.penalty = penalty
        self.dial: ProxyDial | None = None
        self.signs = dict(signs or {})
        self.car_ratio: float | None = None
        self.collapsed = False

    def __call__(self, batch: Rows) -> tuple[Tensor, Tensor, Tensor]:
        """Return the total, the performance loss and CAR, each a scalar."""
        if not self.has_car or self.collapsed:  # CAR of a collapsed embedding is 0
            outputs = self._outputs(batch)
            performance = self._performance(outputs, batch)
            car, total = torch.zeros_like(performance), performance
        else:
            if self.car_weight is None:
                raise RuntimeError("The paper's weight must be settled before the first step.")
            outputs, performance, car = self._losses(batch)
            total = performance + self.car_weight * car
        if self.dial is not None and batch.groups is not None:
            total = total + self.dial.penalty(outputs, batch.target, batch.groups)
        if self.penalty is not None and self.model.training:  # it is no part of how good a model is
            total = total + self.penalty()
        return total, performance, car

    def numbers_per_row(self, rows: TrainingRows) -> int:
        """Size of one row's step, in numbers of a table; it sets the size of slices."""
        return rows.n_features

    @torch.no_grad()
    def settle_weight(self, batch: Rows, n_rows: int | None = None) -> None:
        """Settle λ by the paper's rule, before the first step; ``n_rows`` at a time."""
        self.model.eval()
        parts = torch.arange(len(batch), device=batch.target.device).split(n_rows or len(batch))
        sums = sum(
            len(part) * torch.stack(self._losses(batch.take(part))[1:]).double() for part in parts
        )
        # Processes that have other rows must still agree.
        counted = torch.cat([torch.as_tensor(sums), torch.tensor([float(len(batch))]).double()])
        both = Ranks.current().add_up(counted)
        performance, car = (both[:2] / both[2]).tolist()
        self.car_ratio = performance / car if car > 0 else None
        self.car_weight = paper_weight(performance, car)

    @torch.no_grad()
    def collapse(self, rows: TrainingRows) -> None:
        """Embed each sensitive feature as one number, the mean over the rows, for good."""
        sums = [
            self.model.embed_located(part.x_cat, part.x_num)[:, 0, self.sensitive].double().sum(0)
            for part in rows.chunks(_CHUNK_ROWS)
        ]
        total_S = rows.add_up(torch.stack(sums).sum(0))
        for sigma, mean in zip(self.sensitive, (total_S / len(rows)).tolist(), strict=True):
            self.model.collapse(sigma, mean)
        self.collapsed = True

    def hold(self) -> None:
        """Keep what is collapsed so, and what is monotone, after a step; the dial follows it."""
        for sigma in self.sensitive if self.collapsed else ():
            self.model.hold_collapsed(sigma)
        for feature, sign in self.signs.items():
            self.model.hold_monotone(feature, sign)
        if self.dial is not None:
            self.dial.follow()

    def score(self, rows: TrainingRows, workers: Workers) -> Tensor:
        """Compute the outputs of rows in evaluation mode, without gradient: ``(N, n_outputs)``."""
        self.model.eval()

        def outputs(part: Rows) -> Tensor:
            with torch.no_grad():
                return self.model.outputs(self.model.embed_located(part.x_cat, part.x_num)).cpu()

        return torch.cat([*workers.map(outputs, rows.chunks(_CHUNK_ROWS))])

    def _losses(self, batch: Rows) -> tuple[Tensor, Tensor, Tensor]:
        outputs, losses = self._outputs_and_car(batch)
        car = (batch.weight[: len(losses)] * losses).mean()
        return outputs, self._performance(outputs, batch), car

    def _performance(self, outputs: Tensor, batch: Rows) -> Tensor:
        return (batch.weight * self.loss(outputs, batch.target)).mean()

    def _outputs(self, batch: Rows) -> Tensor:
        """Compute the model's outputs ``(B, n_outputs)``."""
        return self.model.outputs(self.model.embed_located(batch.x_cat, batch.x_num))

    def _outputs_and_car(self, batch: Rows) -> tuple[Tensor, Tensor]:
        """Compute the outputs, and CAR of each row, ``(B,)``."""
        e_BHF = self.model.embed_located(batch.x_cat, batch.x_num)
        return car_sensitive(self.model, e_BHF, self.exchanges)


# ------------------------------------------------------------------------------ balance


def log_shift(log_means: Floats, target: Floats, weight: Floats) -> float:
    """Return the shift of log-means after which the weighted sum of the means is the target's."""
    largest = log_means[weight > 0].max()
    total = np.sum(weight * np.exp(log_means - largest))
    return float(np.log(np.sum(weight * target)) - np.log(total) - largest)


def class_shift(logits: Floats, share: Floats, weight: Floats) -> Floats:
    """Return the shift of each class's logit after which its mean probability is its share.

    Newton's method for the optimum in the intercepts of a multinomial logit; the weighted shares
    are all positive, of sum 1. The shifts sum to 0: a common constant would change nothing.
    """
    n_classes = len(share)
    shift = np.zeros(n_classes)
    mean, slope = _mean_probabilities(logits, weight, shift)
    gap = share - mean
    for _ in range(_MOST_STEPS):
        if np.abs(gap).max() <= _CLOSE:
            break
        # The slope is singular along a common constant, and nearly so where no row is in doubt.
        step = np.linalg.solve(slope + 1 / n_classes + 1e-12 * np.eye(n_classes), gap)
        step *= min(1.0, _LONGEST_STEP / np.abs(step).max())
        for shorter in 0.5 ** np.arange(30):
            mean, slope = _mean_probabilities(logits, weight, shift + shorter * step)
            if np.abs(share - mean).max() < np.abs(gap).max():
                break
        else:
            break  # as close as rounding lets it come
        shift += shorter * step
        gap = share - mean
    return shift - shift.mean()


def _mean_probabilities(logits: Floats, weight: Floats, shift: Floats) -> tuple[Floats, Floats]:
    """Return the mean probability of each class, and its derivative in the shifts."""
    mean, square = np.zeros(len(shift)), np.zeros((len(shift), len(shift)))
    for first in range(0, len(logits), _BLOCK):
        rows = slice(first, first + _BLOCK)
        probability = softmax(logits[rows] + shift)
        weighted = weight[rows, None] * probability
        mean += weighted.sum(axis=0)
        square += np.einsum("nk,nl->kl", weighted, probability)
    total = np.sum(weight)
    return mean / total, (np.diag(mean) - square) / total
