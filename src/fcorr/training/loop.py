"""The training loop: Adam, and a learning rate that rises once and falls to nothing."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from fcorr._core.errors import InvalidInputError
from fcorr.nn.dropout import dropout_from
from fcorr.nn.fcorr import FCorrTransformer
from fcorr.training.history import EpochRecord, History
from fcorr.training.objective import Objective, Rows
from fcorr.training.progress import SilentProgress
from fcorr.training.workers import Workers

_WARM_UP = 0.1  # share of the steps in which the learning rate rises to its full height
# A short memory for the squared gradient: CAR's is large at first and tiny once the categories have
# moved together, and Adam's usual 0.999 would still divide by the first when it meets the second.
_BETAS = (0.9, 0.95)
_CHUNK_NUMBERS = 2**18  # numbers of the table that are scored at a time by each thread
_ALIGNED = 16
# Numbers of the table in a batch that make a second slice worth its while, and any further one.
_TWO_SLICES, _MORE_SLICES = 2**15, 2**17
_MOST_SLICES = 8


@dataclass(frozen=True)
class Pace:
    """How long and how fast to train.

    ``patience`` counts epochs without a better validation. In the last ``collapsed_epochs`` the
    sensitive features are embedded as one number each, and the rest of the model adapts to it.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    patience: int | None = None
    collapsed_epochs: int = 0


def train(
    objective: Objective,
    rows: Rows,
    pace: Pace,
    *,
    generator: torch.Generator,
    workers: Workers,
    validation: Rows | None = None,
    progress: SilentProgress,
) -> History:
    """Train the objective's model in place.

    With ``pace.patience`` the weights of the epoch with the smallest loss plus λ times CAR on the
    validation rows are restored, and training ends when that many epochs brought no smaller one.
    If the sensitive features are yet to be collapsed, they are then, and training goes on from
    those weights until it is so again.

    Parameters
    ----------
    objective : Objective
        The model and what to minimise.
    rows : Rows
        Training rows, on the model's device.
    pace : Pace
        Length and speed.
    generator : torch.Generator
        Source of the row order and of dropout: the same state gives the same weights.
    workers : Workers
        Threads to compute on.
    validation : Rows, optional
        Rows to measure after every epoch.
    progress : SilentProgress
        Told of every epoch.
    """
    model = objective.model
    optimizer = torch.optim.Adam(
        model.parameters(), lr=pace.learning_rate, betas=_BETAS, fused=True
    )
    n_steps = pace.epochs * math.ceil(len(rows) / pace.batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, _one_cycle(n_steps))
    history = History()
    best = _BestWeights(model)
    if objective.needs_weight:
        some = torch.randperm(len(rows), generator=generator)[: pace.batch_size]
        objective.settle_weight(rows.take(some.to(rows.target.device)))
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
            objective.hold_collapsed()
            schedule.step()
        loss, car_loss = (sums / len(rows)).tolist()
        _refuse_divergence(loss, epoch, pace)
        validation_loss, validation_total = None, math.inf
        if validation is not None:
            validation_loss, validation_total = _evaluate(objective, validation, workers)
            _refuse_divergence(validation_loss, epoch, pace)
        record = EpochRecord(
            epoch,
            loss,
            car=car_loss if objective.has_car else None,
            validation_loss=validation_loss,
        )
        history.epochs.append(record)
        progress.report(record)
        if pace.patience is not None and best.stale_for(epoch, validation_total) >= pace.patience:
            if objective.collapsed or not pace.collapsed_epochs:
                break
            best.restore()
            collapse_after = epoch
    if pace.patience is not None:
        history.best_epoch = best.restore()
    history.car_weight = objective.car_weight
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
        numbers = batch_size * (rows.x_cat.shape[1] + rows.x_num.shape[1])
        on_cpu = rows.target.device.type == "cpu"
        n_slices = 1
        if on_cpu and numbers >= _TWO_SLICES:
            n_slices = min(_MOST_SLICES, max(2, numbers // _MORE_SLICES))
        self.slice_size = math.ceil(batch_size / n_slices)
        # Each slice draws its dropout from its own generator: threads take no fixed turns.
        seeds = torch.randint(2**62, (_MOST_SLICES,), generator=generator).tolist()
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds[:n_slices]]

    def compute(self, chosen: Tensor) -> Tensor:
        """Set every parameter's gradient; return the performance loss and CAR, both means."""
        slices = list(zip(chosen.split(self.slice_size), self.generators, strict=False))
        n_rows = len(chosen)
        losses = torch.zeros(2)
        gradients: list[Tensor] = []
        for values, parts in self.workers.map(lambda s: self._one(*s, n_rows), slices):
            losses += values
            # Not in place: autograd may hand out one tensor as the gradient of two parameters.
            gradients = list(torch._foreach_add(gradients, parts)) if gradients else parts
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


def locate_rows(model: FCorrTransformer, x_num: Tensor, workers: Workers) -> Tensor:
    """Locate the numbers of all rows among the model's knots, once for the whole training."""
    located = torch.empty_like(x_num)

    def locate(chunk: tuple[Tensor, Tensor]) -> None:
        with torch.no_grad():
            chunk[1].copy_(model.locate(chunk[0]))

    size = _chunk_rows(max(1, x_num.shape[1]))
    list(workers.map(locate, zip(x_num.split(size), located.split(size), strict=True)))
    return located


def map_rows(
    model: FCorrTransformer,
    x_cat: Tensor,
    x_num: Tensor,
    function: Callable[..., Tensor],
    workers: Workers,
) -> Iterator[Tensor]:
    """Apply ``function(x_cat, x_num)`` without gradient, in chunks that bound the memory.

    Chunks are filled up to a multiple of 16 rows. Matrix products take other ways for a handful of
    rows, with other rounding; so filled, a row's score does not depend on the rows beside it.
    """
    model.eval()

    def without_gradient(chunk: tuple[Tensor, Tensor]) -> Tensor:
        n_rows = len(chunk[0])
        if n_rows % _ALIGNED:
            fill = torch.arange(n_rows + _ALIGNED - n_rows % _ALIGNED).clamp(max=n_rows - 1)
            chunk = (chunk[0][fill.to(x_cat.device)], chunk[1][fill.to(x_cat.device)])
        with torch.no_grad():  # a setting of each thread
            return function(*chunk)[:n_rows]

    chunk = _chunk_rows(x_cat.shape[1] + x_num.shape[1])
    return workers.map(without_gradient, zip(x_cat.split(chunk), x_num.split(chunk), strict=True))


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
    chunk = _chunk_rows(rows.x_cat.shape[1] + rows.x_num.shape[1])
    sums = torch.zeros(2, dtype=torch.float64)
    for part in workers.map(losses, everything.split(chunk)):
        sums += part
    loss, total_loss = (sums / len(rows)).tolist()
    return loss, total_loss


def _chunk_rows(n_features: int) -> int:
    return max(1, _CHUNK_NUMBERS // n_features // _ALIGNED) * _ALIGNED


class _BestWeights:
    """The weights of the epoch that did best on the validation rows so far."""

    def __init__(self, model: FCorrTransformer) -> None:
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


def _one_cycle(n_steps: int) -> Callable[[int], float]:
    """Learning-rate factor per step: a linear rise, then half a cosine down to 0."""
    n_rising = max(1, round(_WARM_UP * n_steps))

    def factor(step: int) -> float:
        if step < n_rising:
            return (step + 1) / n_rising
        return 0.5 * (1 + math.cos(math.pi * (step - n_rising) / max(1, n_steps - n_rising)))

    return factor


def _refuse_divergence(loss: float, epoch: int, pace: Pace) -> None:
    if not math.isfinite(loss):
        raise InvalidInputError(
            f"Training must keep a finite loss, got {loss} in epoch {epoch}. Lower learning_rate "
            f"(now {pace.learning_rate}), or look for extreme values in y or sample_weight."
        )
