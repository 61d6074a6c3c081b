"""The models, each as a training step: forward, loss, backward, one step of Adam.

All get the same rows, the same loss and the same optimiser. :func:`make_step` is the one way in.
"""

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.speed.data import Data
from fcorr.nn import FCorrEncoderLayer, FCorrTransformer
from fcorr.nn.attention import attention_weights
from fcorr.nn.car import exchange_features
from fcorr.nn.engine import EngineName, use_engine
from fcorr.nn.layers import FeedForward
from fcorr.training.loop import SlicedGradients
from fcorr.training.objective import Objective
from fcorr.training.rows import Rows, Workers
from paper.augmentation import AugmentedObjective
from paper.baselines.tab_transformer import TabTransformer
from paper.closed_form import ClosedFormObjective

HEAD = (128, 128)
DROPOUT = 0.1  # in the head; these three are the estimators' defaults
CAR_WEIGHT = 1e6

Forward = Callable[[Rows], Tensor]


@dataclass(frozen=True)
class Step:
    """A model that is ready to take training steps of ``n_rows`` rows."""

    name: str
    n_rows: int
    n_parameters: int
    run: Callable[[], None]


def make_step(name: str, data: Data, n_rows: int) -> Step:
    """Build a model, and the function that trains it on the next batch."""
    if name in _FCORR:
        return make_fcorr_step(name, data, n_rows)
    if name == "head":
        head = BareHead(data)
        return _sliced_step(name, Objective(head, data.loss), data.rows, n_rows)
    model, forward = _BASELINES[name](data)
    return _torch_step(name, model, forward, data, n_rows)


def rows_per_step(name: str, data: Data, batch: int, most_entries: int) -> int:
    """Return how many rows a step may take so that no attention matrix outgrows the memory.

    The number is a power of two below the batch, the batch itself where it fits, or 0.
    """
    most = most_entries // _entries_per_row(name, data)
    if most >= batch:
        return batch
    return 2 ** (most.bit_length() - 1) if most else 0


# ------------------------------------------------------------------------------------- FCorr


def make_fcorr_step(name: str, data: Data, n_rows: int) -> Step:
    """Build FCorr, with or without CAR, and the step that ``fcorr.training.loop`` takes."""
    make, engine = _FCORR[name]
    model = FCorrTransformer(
        data.cardinalities,
        len(data.knots),
        head=HEAD,
        numeric_embedding="spline",
        knots=data.knots,
        dropout=DROPOUT,
        generator=_generator(),
    )
    if name == "fcorr_exact":
        for layer in model.layers:
            layer.forward = partial(run_layer_by_matrix, layer)
    objective = (make or Objective)(
        model,
        data.loss,
        exchanges=exchange_features(data.cardinalities, [0]),
        car=None if make is None else CAR_WEIGHT,
    )
    rows = replace(data.rows, x_num=model.locate(data.rows.x_num))
    step = _sliced_step(name, objective, rows, n_rows)

    def run() -> None:
        with use_engine(engine):
            step.run()

    return replace(step, run=run)


def run_layer_by_matrix(layer: FCorrEncoderLayer, h_BHF: Tensor) -> Tensor:
    """Run a layer as the paper writes it: its p × p matrix is made, and kept for the gradient."""
    z_BF = layer.attention_norm(h_BHF.squeeze(1))  # the paper's network has one view
    a_BF = torch.bmm(attention_weights(z_BF), z_BF.unsqueeze(2)).squeeze(2)
    return (a_BF + layer.transform(layer.stack_norm(a_BF))).unsqueeze(1)


# name: (what has CAR in some form, engine)
_FCORR: dict[str, tuple[type[Objective] | None, EngineName]] = {
    "fcorr": (None, "auto"),
    "fcorr_sdpa": (None, "plain"),
    "fcorr_exact": (None, "auto"),
    "fcorr_car": (Objective, "auto"),
    "fcorr_car_paper": (AugmentedObjective, "auto"),
    "fcorr_car_cda": (ClosedFormObjective, "auto"),
}


# --------------------------------------------------------------------------------- the others


class BareHead(nn.Module):
    """FCorr's head alone, on the numbers as they are; the parts of the model it is called by."""

    def __init__(self, data: Data) -> None:
        super().__init__()
        n_features = data.n_features
        self.norm = nn.LayerNorm(n_features)
        self.head = FeedForward(n_features, HEAD, 1, dropout=DROPOUT, generator=_generator())

    def embed_located(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        return torch.cat([x_cat.to(x_num.dtype), x_num], dim=1)

    def outputs(self, e_BF: Tensor) -> Tensor:
        return self.head(self.norm(e_BF))


def _make_ft_transformer(data: Data) -> tuple[nn.Module, Forward]:
    from rtdl_revisiting_models import FTTransformer

    with torch.random.fork_rng():
        torch.manual_seed(0)  # it has no generator of its own
        model = FTTransformer(
            n_cont_features=len(data.knots),
            cat_cardinalities=list(data.cardinalities),
            d_out=1,
            **FTTransformer.get_default_kwargs(),
        )
    return model, lambda batch: model(batch.x_num, batch.x_cat)


def _make_tab_transformer(data: Data) -> tuple[nn.Module, Forward]:
    # Not the paper's head, which at 581 features would have 1.9 billion parameters.
    model = TabTransformer(data.cardinalities, len(data.knots), HEAD, generator=_generator())
    return model, lambda batch: model(batch.x_cat, batch.x_num)


_BASELINES: dict[str, Callable[[Data], tuple[nn.Module, Forward]]] = {
    "ft_transformer": _make_ft_transformer,
    "tab_transformer": _make_tab_transformer,
}


# ------------------------------------------------------------------------------------- shared


def _sliced_step(name: str, objective: Objective, rows: Rows, n_rows: int) -> Step:
    """One step of ``fcorr.training.loop``: threads that each take some rows of the batch."""
    model, n_threads = objective.model, torch.get_num_threads()
    optimizer = _adam(model)
    pool = ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,))
    workers = Workers(pool if n_threads > 1 else None, n_threads)
    gradients = SlicedGradients(objective, rows, n_rows, workers, _generator())
    chosen = _order(len(rows), n_rows)
    model.train()

    def run() -> None:
        torch.set_num_threads(1)
        batch = next(chosen)
        gradients.compute(rows, batch, len(batch))
        optimizer.step()
        torch.set_num_threads(n_threads)

    return Step(name, n_rows, _n_parameters(model), run)


def _torch_step(name: str, model: nn.Module, forward: Forward, data: Data, n_rows: int) -> Step:
    """One step as torch takes it: its own threads share out every operation."""
    optimizer = _adam(model)
    chosen = _order(len(data.rows), n_rows)
    model.train()

    def run() -> None:
        batch = data.rows.take(next(chosen))
        total = (batch.weight * data.loss(forward(batch), batch.target)).mean()
        optimizer.zero_grad()
        total.backward()
        optimizer.step()

    return Step(name, n_rows, _n_parameters(model), run)


def _adam(model: nn.Module) -> torch.optim.Adam:
    """Make the optimiser of ``fcorr.training.loop``, for every model."""
    return torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.95), fused=True)


def _order(n: int, n_rows: int) -> Iterator[Tensor]:
    """Batches of row numbers in a random order, over and over."""
    batches = torch.randperm(n, generator=_generator()).split(n_rows)
    return itertools.cycle([batch for batch in batches if len(batch) == n_rows])


def _n_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def _entries_per_row(name: str, data: Data) -> int:
    """Count roughly the numbers that one row's attention takes, in a copy that backward needs."""
    p, n_categories, n_categorical = data.n_features, data.cardinalities[0], len(data.cardinalities)
    return {
        "fcorr_exact": p**2,
        "fcorr_car_cda": 8 * (n_categories + 1) * p,
        "ft_transformer": 3 * 8 * (p + 1) ** 2,  # its defaults: three blocks of eight heads
        "tab_transformer": 6 * 12 * 32 * n_categorical,  # six layers of vectors of 32; fused
    }.get(name, 32 * p)


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
