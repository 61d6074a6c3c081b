"""The models, each as a training step: forward, loss, backward, one step of Adam.

All get the same rows, the same loss and the same optimiser. :func:`make_step` is the one way in.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

import fcorr.nn.fcorr
from benchmarks.speed.data import Data
from fcorr.nn import FCorrTransformer
from fcorr.nn.attention import attend, attention_weights
from fcorr.nn.layers import FeedForward
from fcorr.nn.tab_transformer import TabTransformer
from fcorr.training.objective import Objective, Rows

HEAD = (128, 128)
CAR_WEIGHT = 1e6  # the estimators' default

BatchLoss = Callable[[Rows], Tensor]


@dataclass(frozen=True)
class Step:
    """A model that is ready to take training steps of ``n_rows`` rows."""

    name: str
    n_rows: int
    n_parameters: int
    run: Callable[[], None]


def make_step(name: str, data: Data, n_rows: int) -> Step:
    """Build a model, and the function that trains it on the next batch."""
    batches = data.batches(n_rows)
    if name.startswith("fcorr"):
        return make_fcorr_step(name, data, batches)
    model, forward = _BASELINES[name](data)

    def loss(batch: Rows) -> Tensor:
        return (batch.weight * data.loss(forward(batch), batch.target)).mean()

    return _training_step(name, model, loss, batches)


def rows_per_step(name: str, data: Data, batch: int, most_entries: int) -> int:
    """Return how many rows a step may take so that no attention matrix outgrows the memory.

    The number is a power of two below the batch, the batch itself where it fits, or 0.
    """
    most = most_entries // _entries_per_row(name, data)
    if most >= batch:
        return batch
    return 2 ** (most.bit_length() - 1) if most else 0


# ------------------------------------------------------------------------------------- FCorr


def make_fcorr_step(name: str, data: Data, batches: list[Rows]) -> Step:
    """Build FCorr, with or without CAR, and the step that ``fcorr.training.loop`` takes."""
    attention, car_form = _FCORR[name]
    model = FCorrTransformer(
        data.cardinalities,
        len(data.knots),
        head=HEAD,
        numeric_embedding="spline",
        knots=data.knots,
        generator=_generator(),
    )
    objective = Objective(
        model,
        data.loss,
        sensitive=[0],
        car=None if car_form is None else CAR_WEIGHT,
        car_form=car_form or "sensitive",
    )

    def loss(batch: Rows) -> Tensor:
        with attention_by(attention):
            return objective(batch)[0]

    return _training_step(name, model, loss, batches)


def attend_materialised(z_BF: Tensor) -> Tensor:
    """Compute ``softmax(z zᵀ/√p) z`` as the paper writes it: the p × p matrix is made and kept."""
    return torch.bmm(attention_weights(z_BF), z_BF.unsqueeze(2)).squeeze(2)


ATTENTION: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": partial(attend, method="linear"),
    "sdpa": partial(attend, method="exact"),
    "materialised": attend_materialised,
}


@contextmanager
def attention_by(method: str) -> Iterator[None]:
    """Let the encoder layers compute their attention in one of the three ways."""
    before = fcorr.nn.fcorr.attend
    fcorr.nn.fcorr.attend = ATTENTION[method]
    try:
        yield
    finally:
        fcorr.nn.fcorr.attend = before


# name: (attention, form of CAR)
_FCORR = {
    "fcorr": ("linear", None),
    "fcorr_sdpa": ("sdpa", None),
    "fcorr_exact": ("materialised", None),
    "fcorr_car": ("linear", "sensitive"),
    "fcorr_car_paper": ("linear", "paper"),
    "fcorr_car_cda": ("linear", "cda"),
}


# --------------------------------------------------------------------------------- the others


def _make_head(data: Data) -> tuple[nn.Module, BatchLoss]:
    n_features = data.n_features
    head = FeedForward(n_features, HEAD, 1, generator=_generator())
    model = nn.Sequential(nn.LayerNorm(n_features), head)

    def forward(batch: Rows) -> Tensor:
        return model(torch.cat([batch.x_cat.to(batch.x_num.dtype), batch.x_num], dim=1))

    return model, forward


def _make_ft_transformer(data: Data) -> tuple[nn.Module, BatchLoss]:
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


def _make_tab_transformer(data: Data) -> tuple[nn.Module, BatchLoss]:
    # Not the paper's head, which at 581 features would have 1.9 billion parameters.
    model = TabTransformer(data.cardinalities, len(data.knots), HEAD, generator=_generator())
    return model, lambda batch: model(batch.x_cat, batch.x_num)


_BASELINES: dict[str, Callable[[Data], tuple[nn.Module, BatchLoss]]] = {
    "head": _make_head,
    "ft_transformer": _make_ft_transformer,
    "tab_transformer": _make_tab_transformer,
}


# ------------------------------------------------------------------------------------- shared


def _training_step(name: str, model: nn.Module, loss: BatchLoss, batches: list[Rows]) -> Step:
    """One step: the same for every model, and with the optimiser of ``fcorr.training.loop``."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.95), fused=True)
    batch = itertools.cycle(batches)
    model.train()

    def run() -> None:
        total = loss(next(batch))
        optimizer.zero_grad()
        total.backward()
        optimizer.step()

    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    return Step(name, len(batches[0]), n_parameters, run)


def _entries_per_row(name: str, data: Data) -> int:
    """Count roughly the numbers that one row's attention takes, in a copy that backward needs."""
    p, n_categorical, n_categories = data.n_features, len(data.cardinalities), data.cardinalities[0]
    return {
        "fcorr_exact": p**2,
        "fcorr_car_paper": 2 * (p + n_categories) ** 2,
        "fcorr_car_cda": (n_categories + 1) * p**2,
        "ft_transformer": 3 * 8 * (p + 1) ** 2,  # its defaults: three blocks of eight heads
        "tab_transformer": 6 * 12 * 32 * n_categorical,  # six layers of vectors of 32; fused
    }.get(name, 32 * p)


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
