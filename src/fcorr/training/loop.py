"""The training loop: AdamW, and a learning rate that rises once and falls to nothing."""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from fcorr._core import InvalidInputError, Progress, Tabled
from fcorr.nn.layers import dropout_from
from fcorr.training.objective import Objective
from fcorr.training.rows import Ranks, Rows, TrainingRows, Workers, chunk_rows

if TYPE_CHECKING:
    from fcorr.training.checkpoint import StateKeeper

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
class History(Tabled):
    """The course of a training run; ``engine`` is the one that ran, "compiled" or "plain".

    ``car_weight`` is λ, ``car_ratio`` the ratio of the first losses that the paper's rule makes it
    of, where that was asked for.
    """

    engine: str = "plain"
    car_weight: float | None = None
    car_ratio: float | None = None
    best_epoch: int | None = None
    epochs: list[EpochRecord] = field(default_factory=list)

    def _tables(self) -> Iterator[Any]:
        def cell(value: float | None, style: str) -> str:
            return "" if value is None else format(value, style)

        rows = [
            (e.epoch, cell(e.loss, ".4f"), cell(e.car, ".2e"), cell(e.validation_loss, ".4f"))
            for e in self.epochs
        ]
        weight = "" if self.car_weight is None else f"λ = {self.car_weight:g}. "
        best = "" if self.best_epoch is None else f"Weights of epoch {self.best_epoch}."
        header = ("epoch", "loss", "CAR", "validation loss")
        yield "Training", header, rows, weight + best


def train(
    objective: Objective,
    rows: TrainingRows,
    pace: Pace,
    *,
    generator: torch.Generator,
    workers: Workers,
    validation: TrainingRows | None = None,
    progress: Progress,
    keeper: "StateKeeper | None" = None,
    on_epoch_end: Callable[[EpochRecord], object] | None = None,
) -> History:
    """Train the objective's model in place on rows on its device; ``progress`` hears of epochs.

    The row order and dropout come from ``generator``: the same state gives the same weights.

    With ``pace.patience`` the weights of the epoch with the smallest loss plus λ times CAR on the
    validation rows are restored, and training ends when that many epochs brought no smaller one.
    If the sensitive features are yet to be collapsed, they are then, and training goes on from
    those weights until it is so again.

    A ``keeper`` is given the state of the training from time to time; where it has one already,
    training goes on from there, to the same weights as if it had never stopped. Where
    ``on_epoch_end`` returns something true, training ends.
    """
    _keep_freed_memory()
    run = _Run(objective, rows, pace, generator, workers, keeper)
    while run.epoch <= pace.epochs and not run.is_over:
        if run.epoch > run.collapse_after and not objective.collapsed:
            objective.collapse(rows)
            run.best = BestWeights(objective.model)
        run.train_epoch(keeper)
        loss, car_loss = (run.sums / len(rows)).tolist()
        _refuse_divergence(loss, run.epoch, pace)
        validation_loss, validation_total = None, math.inf
        if validation is not None:
            validation_loss, validation_total = _evaluate(objective, validation, workers)
            _refuse_divergence(validation_loss, run.epoch, pace)
        car = car_loss if objective.has_car else None
        record = EpochRecord(run.epoch, loss, car, validation_loss)
        run.history.epochs.append(record)
        run.end_epoch(validation_total)
        progress.advance(str(record))
        if on_epoch_end is not None and on_epoch_end(record):
            run.is_over = True
        if keeper is not None:
            keeper.keep(run.state, epoch_ended=True)
    if pace.patience is not None:
        run.history.best_epoch = run.best.restore()
    run.history.car_weight, run.history.car_ratio = objective.car_weight, objective.car_ratio
    objective.model.eval()
    return run.history


@cache  # once in a process, whose memory it is from then on
def _keep_freed_memory() -> None:
    """Let memory that a step frees stay with the process, for the next step.

    Linux' C library gives freed memory back, and a step that asks for it again waits for each of
    its pages, an eighth of its time. How much is kept grows with the largest block that it has
    seen freed, up to a little less than 32 MiB: see "dynamic mmap threshold" in mallopt(3).
    """
    torch.UntypedStorage(2**25 - 2**16)


class _Run:
    """A training under way: all that the next step depends on."""

    def __init__(
        self,
        objective: Objective,
        rows: TrainingRows,
        pace: Pace,
        generator: torch.Generator,
        workers: Workers,
        keeper: "StateKeeper | None",
    ) -> None:
        self.objective, self.rows, self.pace, self.generator = objective, rows, pace, generator
        model = objective.model
        # Weights of linear layers alone are to decay.
        linear = {id(layer.weight) for layer in model.modules() if isinstance(layer, nn.Linear)}
        groups: Any = [
            {"params": [p for p in model.parameters() if (id(p) in linear) is decays]}
            | {"weight_decay": pace.weight_decay if decays else 0.0}
            for decays in (True, False)
        ]
        betas = (0.9, pace.beta2)
        self.optimizer = torch.optim.AdamW(groups, lr=pace.learning_rate, betas=betas, fused=True)
        self.n_steps = pace.epochs * math.ceil(len(rows) / pace.batch_size)
        self.history, self.best = History(), BestWeights(model)
        self.collapse_after = pace.epochs - pace.collapsed_epochs
        self.epoch, self.n_done, self.is_over = 1, 0, False
        self.step, self.sums = 0, torch.zeros(2)
        self.ranks = Ranks.current()
        kept = None if keeper is None else keeper.recall()
        if kept is None and objective.has_car and objective.car_weight is None:
            # the paper's rule settles it
            n_rows = chunk_rows(objective.numbers_per_row(rows))
            objective.settle_weight(rows.some(pace.batch_size, generator), n_rows)
        self.gradients = SlicedGradients(objective, rows, pace.batch_size, workers, generator)
        self.before_epoch = generator.get_state()
        if kept is not None:
            self._restore(*kept)

    def train_epoch(self, keeper: "StateKeeper | None") -> None:
        """Take the steps of an epoch, or those that are left of it."""
        self.objective.model.train()
        self.before_epoch = self.generator.get_state()
        batches = self.rows.batches(self.pace.batch_size, self.generator)
        for rows, chosen, n_rows in islice(batches, self.n_done, None):
            self.sums += n_rows * self.gradients.compute(rows, chosen, n_rows)
            for group in self.optimizer.param_groups:
                group["lr"] = self.pace.learning_rate * _one_cycle(self.n_steps, self.step)
            self.optimizer.step()
            self.objective.hold()
            self.step, self.n_done = self.step + 1, self.n_done + 1
            # Clocks differ: processes would not agree on when to keep a state.
            if keeper is not None and self.ranks.n == 1:
                keeper.keep(self.state, epoch_ended=False)

    def end_epoch(self, validation_total: float) -> None:
        """Decide whether training goes on, and how."""
        patience = self.pace.patience
        if patience is not None and self.best.stale_for(self.epoch, validation_total) >= patience:
            if self.objective.collapsed or not self.pace.collapsed_epochs:
                self.is_over = True
            else:
                self.best.restore()
                self.collapse_after = self.epoch
        self.epoch, self.n_done, self.sums = self.epoch + 1, 0, torch.zeros(2)
        self.before_epoch = self.generator.get_state()

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return all that the next step depends on, as tensors and plain data."""
        tensors = {f"model.{k}": v for k, v in self.objective.model.state_dict().items()}
        tensors |= {f"best.{k}": v for k, v in self.best.state.items()}
        for i, of_parameter in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{i}.{k}": v for k, v in of_parameter.items()}
        tensors |= {
            "dropout": self.gradients.generator_states(),
            "order": self.before_epoch,
            "sums": self.sums,
        }
        objective, best = self.objective, self.best
        plain = {
            "epoch": self.epoch,
            "n_done": self.n_done,
            "is_over": self.is_over,
            "step": self.step,
            "collapse_after": self.collapse_after,
            "collapsed": objective.collapsed,
            "car": [objective.car_weight, objective.car_ratio],
            "best": [best.epoch, best.loss if math.isfinite(best.loss) else None],
            "history": [asdict(record) for record in self.history.epochs],
        }
        return tensors, plain

    def _restore(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        def below(name: str) -> dict[str, Tensor]:
            start = f"{name}."
            return {k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)}

        objective = self.objective
        objective.model.load_state_dict(below("model"))
        objective.collapsed = plain["collapsed"]
        objective.car_weight, objective.car_ratio = plain["car"]
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in below("optimizer").items():
            i, _, key = name.partition(".")
            state.setdefault(int(i), {})[key] = value
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})
        self.gradients.restore_generators(tensors["dropout"])
        self.generator.set_state(tensors["order"])
        self.step, self.sums = plain["step"], tensors["sums"]
        self.epoch, self.n_done, self.is_over = plain["epoch"], plain["n_done"], plain["is_over"]
        self.collapse_after = plain["collapse_after"]
        self.best.epoch, loss = plain["best"]
        self.best.loss, self.best.state = math.inf if loss is None else loss, below("best")
        self.history.epochs = [EpochRecord(**record) for record in plain["history"]]


class SlicedGradients:
    """Computes the gradient of a batch in slices, each by one thread.

    The number of slices depends on the batch alone, and their gradients are added up in their
    order: the same weights come out whatever the number of threads. Processes that all have the
    batch share out its slices; others have slices of their own. Their gradients are added up last.
    """

    def __init__(
        self,
        objective: Objective,
        rows: TrainingRows,
        batch_size: int,
        workers: Workers,
        generator: torch.Generator,
    ) -> None:
        self.objective = objective
        self.ranks = Ranks.current()
        self.is_shared = isinstance(rows, Rows)
        self.workers = workers
        self.parameters = list(objective.model.parameters())
        numbers = batch_size * objective.numbers_per_row(rows)
        on_cpu = rows.device.type == "cpu"
        n_slices = math.ceil(numbers / _LARGEST_SLICE)
        if on_cpu and numbers >= _TWO_SLICES:
            n_slices = max(n_slices, min(_MOST_SLICES, max(2, numbers // _MORE_SLICES)))
        self.slice_size = math.ceil(batch_size / n_slices)
        # Each slice draws its dropout from its own generator: threads take no fixed turns.
        # As many seeds whatever the slices: what is drawn next does not depend on them.
        seeds = torch.randint(2**62, (_MOST_SLICES,), generator=generator).tolist()
        apart = 0 if self.is_shared else 10**6 * self.ranks.own
        self.generators = [
            torch.Generator().manual_seed(seeds[i % _MOST_SLICES] + i // _MOST_SLICES + apart)
            for i in range(min(n_slices, batch_size))
        ]

    def compute(self, rows: Rows, chosen: Tensor, n_rows: int) -> Tensor:
        """Set every parameter's gradient; return the performance loss and CAR, both means.

        ``n_rows`` are those of the batch, of which other processes may have some.
        """
        parts_of = chosen.split(self.slice_size) if len(chosen) else ()
        slices = list(zip(parts_of, self.generators, strict=False))
        if self.is_shared:
            slices = slices[self.ranks.own :: self.ranks.n]
        losses = torch.zeros(2)
        gradients: list[Tensor] = []
        for values, parts in self.workers.map(lambda s: self._one(rows, *s, n_rows), slices):
            losses += values
            # Not in place: autograd may hand out one tensor as the gradient of two parameters.
            gradients = (
                [a + b for a, b in zip(gradients, parts, strict=True)] if gradients else parts
            )
        if self.ranks.n > 1:
            parts = gradients or [torch.zeros_like(parameter) for parameter in self.parameters]
            total = self.ranks.add_up(torch.cat([losses, *(part.flatten() for part in parts)]))
            losses, *flat = total.split([len(losses), *(part.numel() for part in parts)])
            gradients = [each.view_as(part) for each, part in zip(flat, parts, strict=True)]
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        return losses

    def generator_states(self) -> Tensor:
        """Return the states of all generators, those of every process: ``(n, slices, bytes)``."""
        own = torch.stack([generator.get_state() for generator in self.generators])
        states = torch.zeros(self.ranks.n, *own.shape, dtype=own.dtype)
        states[self.ranks.own] = own
        return self.ranks.add_up(states)

    def restore_generators(self, states: Tensor) -> None:
        """Undo :meth:`generator_states`; of slices that are shared out, each state by its owner."""
        n_processes = len(states)
        for i, generator in enumerate(self.generators):
            owner = i % n_processes if self.is_shared else self.ranks.own
            generator.set_state(states[owner, i].clone())  # torch would read from the start

    def _one(
        self, rows: Rows, chosen: Tensor, generator: torch.Generator, n_rows: int
    ) -> tuple[Tensor, list[Tensor]]:
        share = len(chosen) / n_rows
        with dropout_from(generator):
            total, performance, car = self.objective(rows.take(chosen))
        gradients = torch.autograd.grad(total * share, self.parameters, materialize_grads=True)
        return torch.stack([performance.detach(), car.detach()]).cpu() * share, list(gradients)


def _evaluate(objective: Objective, rows: TrainingRows, workers: Workers) -> tuple[float, float]:
    """Return the mean performance loss over rows, and the mean of what training minimises.

    The second decides when to stop: by the first alone, the best epoch would be an early one, in
    which the model still leans on the sensitive column.
    """
    objective.model.eval()

    def losses(part: Rows) -> Tensor:
        with torch.no_grad():
            total, performance, _ = objective(part)
        return len(part) * torch.stack([performance, total]).double().cpu()

    chunk = chunk_rows(objective.numbers_per_row(rows))
    sums = torch.zeros(2, dtype=torch.float64)
    for found in workers.map(losses, rows.chunks(chunk)):
        sums += found
    loss, total_loss = (rows.add_up(sums) / len(rows)).tolist()
    return loss, total_loss


class BestWeights:
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
        """Give the model those weights; return their epoch."""
        self.model.load_state_dict(self.state)
        return self.epoch


def _one_cycle(n_steps: int, step: int) -> float:
    """Learning-rate factor of a step: a linear rise, then half a cosine down to 0."""
    step = min(step, n_steps)  # processes of unequal parts may take a few more
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
