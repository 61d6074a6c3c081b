"""The training loop: AdamW, and a learning rate that rises once and falls to nothing."""

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from fcorr._core import InvalidInputError, Progress, html_table
from fcorr.nn.layers import dropout_from
from fcorr.training.objective import Objective, Rows
from fcorr.training.threads import Workers, chunk_rows

_WARM_UP = 0.1  # share of the steps in which the learning rate rises to its full height
# Numbers in a batch that make a second slice worth its while, and any further one.
_TWO_SLICES, _MORE_SLICES = 2**15, 2**17
_MOST_SLICES = 8
_LARGEST_SLICE = 2**21  # numbers; where a batch has more of them, there are more slices


@dataclass(frozen=True)
class Pace:
    """How long and how fast to train.

    ``weight_decay`` pulls the weights of linear layers towards 0, as AdamW does; biases, norms and
    embeddings are left alone. ``patience`` counts epochs without a better validation. In the last
    ``collapsed_epochs`` the sensitive features are embedded as one number each, and the rest of the
    model adapts to it.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    # A short memory for the squared gradient: CAR's is large at first and tiny once the categories
    # have moved together, and Adam's usual 0.999 would still divide by the first when it meets the
    # second.
    beta2: float = 0.95
    weight_decay: float = 0.0
    patience: int | None = None
    collapsed_epochs: int = 0


@dataclass(frozen=True)
class EpochRecord:
    """Mean losses of one epoch; ``None`` where there was nothing to measure."""

    epoch: int
    loss: float
    car: float | None = None
    validation_loss: float | None = None

    def __str__(self) -> str:
        parts = [f"loss {self.loss:.4f}"]
        if self.car is not None:
            parts.append(f"CAR {self.car:.2e}")
        if self.validation_loss is not None:
            parts.append(f"validation loss {self.validation_loss:.4f}")
        return "  ".join(parts)


@dataclass
class History:
    """The course of a training run; ``engine`` is the one that ran, "compiled" or "plain".

    ``car_weight`` is λ, ``car_ratio`` the ratio of the first losses that the paper's rule makes it
    of, where that was asked for.
    """

    engine: str = "plain"
    car_weight: float | None = None
    car_ratio: float | None = None
    best_epoch: int | None = None
    epochs: list[EpochRecord] = field(default_factory=list)

    def _repr_html_(self) -> str:
        def cell(value: float | None, style: str) -> str:
            return "" if value is None else format(value, style)

        rows = [
            (e.epoch, cell(e.loss, ".4f"), cell(e.car, ".2e"), cell(e.validation_loss, ".4f"))
            for e in self.epochs
        ]
        weight = "" if self.car_weight is None else f"λ = {self.car_weight:g}. "
        best = "" if self.best_epoch is None else f"Weights of epoch {self.best_epoch}."
        header = ("epoch", "loss", "CAR", "validation loss")
        return html_table("Training", header, rows, note=weight + best)


def train(
    objective: Objective,
    rows: Rows,
    pace: Pace,
    *,
    generator: torch.Generator,
    workers: Workers,
    validation: Rows | None = None,
    progress: Progress,
) -> History:
    """Train the objective's model in place on rows on its device; ``progress`` hears of epochs.

    The row order and dropout come from ``generator``: the same state gives the same weights.

    With ``pace.patience`` the weights of the epoch with the smallest loss plus λ times CAR on the
    validation rows are restored, and training ends when that many epochs brought no smaller one.
    If the sensitive features are yet to be collapsed, they are then, and training goes on from
    those weights until it is so again.
    """
    model = objective.model
    betas = (0.9, pace.beta2)
    optimizer = torch.optim.AdamW(
        _parameter_groups(model, pace.weight_decay), lr=pace.learning_rate, betas=betas, fused=True
    )
    n_steps = pace.epochs * math.ceil(len(rows) / pace.batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, partial(_one_cycle, n_steps))
    history = History()
    best = _BestWeights(model)
    if objective.has_car and objective.car_weight is None:  # the paper's rule settles it
        some = torch.randperm(len(rows), generator=generator)[: pace.batch_size]
        n_rows = chunk_rows(objective.numbers_per_row(rows))
        objective.settle_weight(rows.take(some.to(rows.target.device)), n_rows)
    gradients = SlicedGradients(objective, rows, pace.batch_size, workers, generator)
    collapse_after = pace.epochs - pace.collapsed_epochs
    for epoch in range(1, pace.epochs + 1):
        if epoch > collapse_after and not objective.collapsed:
            objective.collapse(rows)
            best = _BestWeights(model)
        model.train()
        sums = torch.zeros(2)
        order = torch.randperm(len(rows), generator=generator).to(rows.target.device)
        for chosen in order.split(pace.batch_size):
            sums += len(chosen) * gradients.compute(chosen)
            optimizer.step()
            objective.hold()
            schedule.step()
        loss, car_loss = (sums / len(rows)).tolist()
        _refuse_divergence(loss, epoch, pace)
        validation_loss, validation_total = None, math.inf
        if validation is not None:
            validation_loss, validation_total = _evaluate(objective, validation, workers)
            _refuse_divergence(validation_loss, epoch, pace)
        record = EpochRecord(epoch, loss, car_loss if objective.has_car else None, validation_loss)
        history.epochs.append(record)
        progress.advance(str(record))
        if pace.patience is not None and best.stale_for(epoch, validation_total) >= pace.patience:
            if objective.collapsed or not pace.collapsed_epochs:
                break
            best.restore()
            collapse_after = epoch
    if pace.patience is not None:
        history.best_epoch = best.restore()
    history.car_weight, history.car_ratio = objective.car_weight, objective.car_ratio
    model.eval()
    return history


class SlicedGradients:
    """Computes the gradient of a batch in slices, each by one thread.

    The number of slices depends on the batch alone, and their gradients are added up in their
    order: the same weights come out whatever the number of threads.
    """

    def __init__(
        self,
        objective: Objective,
        rows: Rows,
        batch_size: int,
        workers: Workers,
        generator: torch.Generator,
    ) -> None:
        self.objective = objective
        self.rows = rows
        self.workers = workers
        self.parameters = list(objective.model.parameters())
        numbers = batch_size * objective.numbers_per_row(rows)
        on_cpu = rows.target.device.type == "cpu"
        n_slices = math.ceil(numbers / _LARGEST_SLICE)
        if on_cpu and numbers >= _TWO_SLICES:
            n_slices = max(n_slices, min(_MOST_SLICES, max(2, numbers // _MORE_SLICES)))
        self.slice_size = math.ceil(batch_size / n_slices)
        # Each slice draws its dropout from its own generator: threads take no fixed turns.
        # As many seeds whatever the slices: what is drawn next does not depend on them.
        seeds = torch.randint(2**62, (_MOST_SLICES,), generator=generator).tolist()
        self.generators = [
            torch.Generator().manual_seed(seeds[i % _MOST_SLICES] + i // _MOST_SLICES)
            for i in range(min(n_slices, batch_size))
        ]

    def compute(self, chosen: Tensor) -> Tensor:
        """Set every parameter's gradient; return the performance loss and CAR, both means."""
        slices = list(zip(chosen.split(self.slice_size), self.generators, strict=False))
        n_rows = len(chosen)
        losses = torch.zeros(2)
        gradients: list[Tensor] = []
        for values, parts in self.workers.map(lambda s: self._one(*s, n_rows), slices):
            losses += values
            # Not in place: autograd may hand out one tensor as the gradient of two parameters.
            gradients = (
                [a + b for a, b in zip(gradients, parts, strict=True)] if gradients else parts
            )
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        return losses

    def _one(
        self, chosen: Tensor, generator: torch.Generator, n_rows: int
    ) -> tuple[Tensor, list[Tensor]]:
        share = len(chosen) / n_rows
        with dropout_from(generator):
            total, performance, car = self.objective(self.rows.take(chosen))
        gradients = torch.autograd.grad(total * share, self.parameters, materialize_grads=True)
        return torch.stack([performance.detach(), car.detach()]).cpu() * share, list(gradients)


def _evaluate(objective: Objective, rows: Rows, workers: Workers) -> tuple[float, float]:
    """Return the mean performance loss over rows, and the mean of what training minimises.

    The second decides when to stop: by the first alone, the best epoch would be an early one, in
    which the model still leans on the sensitive column.
    """
    objective.model.eval()

    def losses(chosen: Tensor) -> Tensor:
        with torch.no_grad():
            total, performance, _ = objective(rows.take(chosen))
        return len(chosen) * torch.stack([performance, total]).double().cpu()

    everything = torch.arange(len(rows), device=rows.target.device)
    chunk = chunk_rows(objective.numbers_per_row(rows))
    sums = torch.zeros(2, dtype=torch.float64)
    for part in workers.map(losses, everything.split(chunk)):
        sums += part
    loss, total_loss = (sums / len(rows)).tolist()
    return loss, total_loss


def _parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Set the weights of linear layers apart, which alone are to decay."""
    weights = {id(layer.weight) for layer in model.modules() if isinstance(layer, nn.Linear)}
    return [
        {
            "params": [p for p in model.parameters() if (id(p) in weights) is decays],
            "weight_decay": weight_decay if decays else 0.0,
        }
        for decays in (True, False)
    ]


class _BestWeights:
    """The weights of the epoch that did best on the validation rows so far."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.epoch = 0
        self.loss = math.inf
        self.state: dict[str, Tensor] = {}

    def stale_for(self, epoch: int, loss: float) -> int:
        """Take note of an epoch; return how many have passed since the best one."""
        if loss < self.loss:
            self.loss, self.epoch = loss, epoch
            self.state = {name: v.clone() for name, v in self.model.state_dict().items()}
        return epoch - self.epoch

    def restore(self) -> int:
        self.model.load_state_dict(self.state)
        return self.epoch


def _one_cycle(n_steps: int, step: int) -> float:
    """Learning-rate factor of a step: a linear rise, then half a cosine down to 0."""
    n_rising = max(1, round(_WARM_UP * n_steps))
    if step < n_rising:
        return (step + 1) / n_rising
    return 0.5 * (1 + math.cos(math.pi * (step - n_rising) / max(1, n_steps - n_rising)))


def _refuse_divergence(loss: float, epoch: int, pace: Pace) -> None:
    if not math.isfinite(loss):
        raise InvalidInputError(
            f"Training must keep a finite loss, got {loss} in epoch {epoch}. Lower learning_rate "
            f"(now {pace.learning_rate}), or look for extreme values in y or sample_weight."
        )
