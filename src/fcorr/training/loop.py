"""The training loop: Adam, and a learning rate that rises once and falls to nothing."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from fcorr._core.errors import InvalidInputError
from fcorr.nn.fcorr import FCorrTransformer
from fcorr.training.history import EpochRecord, History
from fcorr.training.objective import Objective, Rows
from fcorr.training.progress import SilentProgress

_WARM_UP = 0.1  # share of the steps in which the learning rate rises to its full height
# A short memory for the squared gradient: CAR's is large at first and tiny once the categories have
# moved together, and Adam's usual 0.999 would still divide by the first when it meets the second.
_BETAS = (0.9, 0.95)
_CHUNK_NUMBERS = 2**24  # numbers that an attention matrix may hold while rows are scored


@dataclass(frozen=True)
class Pace:
    """How long and how fast to train; ``patience`` counts epochs without a better validation."""

    epochs: int
    batch_size: int
    learning_rate: float
    patience: int | None = None


def train(
    objective: Objective,
    rows: Rows,
    pace: Pace,
    *,
    generator: torch.Generator,
    validation: Rows | None = None,
    progress: SilentProgress,
) -> History:
    """Train the objective's model in place.

    With ``pace.patience`` the weights of the epoch with the smallest loss plus λ times CAR on the
    validation rows are restored, and training ends when that many epochs brought no smaller one.

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
    model.seed_dropout(generator)
    for epoch in range(1, pace.epochs + 1):
        model.train()
        sums = torch.zeros(2)
        for batch in _batches(rows, pace.batch_size, generator):
            total, performance, car = objective(batch)
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
            schedule.step()
            sums += len(batch) * torch.stack([performance.detach(), car.detach()]).cpu()
        loss, car_loss = (sums / len(rows)).tolist()
        _refuse_divergence(loss, epoch, pace)
        validation_loss, validation_total = None, math.inf
        if validation is not None:
            validation_loss, validation_total = _evaluate(objective, validation)
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
            break
    if pace.patience is not None:
        history.best_epoch = best.restore()
    history.car_weight = objective.car_weight
    model.seed_dropout(None)
    model.eval()
    return history


def map_rows(
    model: FCorrTransformer, x_cat: Tensor, x_num: Tensor, function: Callable[..., Tensor]
) -> Iterator[Tensor]:
    """Apply ``function(x_cat, x_num)`` without gradient, in chunks that bound the memory."""
    n_features = x_cat.shape[1] + x_num.shape[1]
    chunk = max(1, _CHUNK_NUMBERS // n_features**2)
    model.eval()
    with torch.no_grad():
        for codes, numbers in zip(x_cat.split(chunk), x_num.split(chunk), strict=True):
            yield function(codes, numbers)


def _evaluate(objective: Objective, rows: Rows) -> tuple[float, float]:
    """Return the mean performance loss over rows, and the mean of what training minimises.

    The second decides when to stop: by the first alone, the best epoch would be an early one, in
    which the model still leans on the sensitive column.
    """
    n_features = rows.x_cat.shape[1] + rows.x_num.shape[1]
    objective.model.eval()
    sums = torch.zeros(2, dtype=torch.float64)
    with torch.no_grad():
        for chosen in torch.arange(len(rows)).split(max(1, _CHUNK_NUMBERS // n_features**2)):
            total, performance, _ = objective(rows.take(chosen.to(rows.target.device)))
            sums += len(chosen) * torch.stack([performance, total]).double().cpu()
    loss, total_loss = (sums / len(rows)).tolist()
    return loss, total_loss


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


def _batches(rows: Rows, batch_size: int, generator: torch.Generator) -> Iterator[Rows]:
    order = torch.randperm(len(rows), generator=generator).to(rows.target.device)
    for chosen in order.split(batch_size):
        yield rows.take(chosen)


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
