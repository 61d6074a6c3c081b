"""What models cost at the sizes of the paper's two tables: parameters, memory, seconds an epoch."""

import functools
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from fcorr.data.encode import encode
from fcorr.data.infer import infer_schema
from fcorr.data.schema import Schema
from fcorr.data.tables import read_table
from fcorr.nn.car import Exchange, exchange_features
from fcorr.nn.fcorr import FCorrTransformer
from fcorr.training.objective import Objective, binary_log_loss, squared_error
from fcorr.training.rows import Rows
from paper.augmentation import AugmentedObjective
from paper.baselines.car import BaselineObjective
from paper.baselines.estimators import ARCHITECTURES
from paper.closed_form import ClosedFormObjective
from paper.experiments import CostRun
from paper.generators import make_bank_fraud, make_claims
from paper.models import expected_constants

AUGMENTED, BY_DEFINITION, CLOSED_FORM = "augmentation", "CDA by definition", "CDA in closed form"

_MAKERS: dict[str, Any] = {"bank_fraud": make_bank_fraud, "claims": make_claims}
_N_ROWS = 20_000  # in which every category occurs
_BATCH = 64
_LEARNING_RATE = 1e-3
_CAR_WEIGHT = 1.0
_MEGABYTE = 1e6
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


class Table(NamedTuple):
    """An encoded table, and what a network must know of it."""

    schema: Schema
    rows: Rows
    exchanges: tuple[Exchange, ...]


def measure_cost(run: CostRun) -> dict[str, Any]:
    """Measure what a run asks for."""
    table = encode_table(run.data, run.sensitive, run.task, max(_N_ROWS, run.n_rows), run.seed)
    rows = table.rows.take(torch.arange(run.n_rows))
    if run.measure == "epochs":
        return {"seconds_per_epoch": _time_epochs(run, table, rows), "n_rows": len(rows)}
    model = _make_model(run, table)
    shared = _shared(run, table, _CAR_WEIGHT if run.arguments.get("car") else None)
    objective = (
        AugmentedObjective(model, **shared)
        if isinstance(model, FCorrTransformer)
        else BaselineObjective(model, **shared)
    )
    with watch_kept() as kept:
        total, *_ = objective(rows)
    total.backward()
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    head = sum(p.numel() for name, p in model.named_parameters() if name.startswith("head."))
    return {
        "parameters": n_parameters,
        "head_parameters": head,
        "parameter_megabytes": 4e-6 * n_parameters,
        "kept_megabytes": kept.megabytes(without=list(model.parameters())),
        "n_rows": len(rows),
    }


@functools.lru_cache(maxsize=2)
def encode_table(name: str, sensitive: tuple[str, ...], task: str, n_rows: int, seed: int) -> Table:
    """Draw a table and encode it for networks."""
    X, y = _MAKERS[name](n_rows, random_state=seed)
    read = read_table(X)
    with expected_constants():
        schema = infer_schema(read, sensitive=sensitive, min_category_rows=1)
    encoded = encode(read, schema)
    target = torch.from_numpy(y.astype(np.float32))
    if task == "regression":
        target = (target - target.mean()) / target.std()
    codes, numbers = torch.from_numpy(encoded.codes), torch.from_numpy(encoded.numbers)
    exchanges = exchange_features(schema.cardinalities, schema.sensitive_positions)
    return Table(schema, Rows(codes, numbers, target, torch.ones(n_rows)), exchanges)


def _make_model(run: CostRun, table: Table) -> nn.Module:
    generator = torch.Generator().manual_seed(run.seed)
    schema, arguments = table.schema, run.arguments
    if run.kind != "printed":
        options = arguments.get("network_options")
        return ARCHITECTURES[run.kind].make(schema, options, generator=generator)
    return FCorrTransformer(
        schema.cardinalities,
        len(schema.numeric),
        head=arguments["head"],
        residual=arguments["residual"],
        numeric_embedding="paper",
        generator=generator,
    )


def _shared(run: CostRun, table: Table, car: float | None) -> dict[str, Any]:
    loss = binary_log_loss if run.task == "classification" else squared_error
    return {"loss": loss, "exchanges": table.exchanges, "car": car}


def make_objectives(run: CostRun, table: Table) -> dict[str, Objective]:
    """Make CAR in each form, with models of their own that start alike."""
    shared = _shared(run, table, _CAR_WEIGHT)
    models: list[Any] = [_make_model(run, table) for _ in range(3)]
    return {
        AUGMENTED: AugmentedObjective(models[0], **shared),
        CLOSED_FORM: ClosedFormObjective(models[1], **shared),
        BY_DEFINITION: BaselineObjective(models[2], **shared),
    }


def _time_epochs(run: CostRun, table: Table, rows: Rows) -> dict[str, float]:
    """Time an epoch in each form, step by step in turn: what slows the machine slows them all."""
    objectives = make_objectives(run, table)
    optimizers = {
        name: torch.optim.Adam(objective.model.parameters(), lr=_LEARNING_RATE)
        for name, objective in objectives.items()
    }
    seconds = dict.fromkeys(objectives, 0.0)
    batches = [rows.take(part) for part in torch.arange(len(rows)).split(_BATCH)]
    for is_warm_up, batch in [(True, batches[0]), *((False, batch) for batch in batches)]:
        for name, objective in objectives.items():
            start = time.perf_counter()
            optimizers[name].zero_grad()
            objective(batch)[0].backward()
            optimizers[name].step()
            seconds[name] += 0.0 if is_warm_up else time.perf_counter() - start
    return seconds


# ------------------------------------------------------------------------------ memory


class KeptTensors:
    """Tensors that a forward pass keeps for the backward pass."""

    def __init__(self) -> None:
        self._storages: dict[int, tuple[int, Any]] = {}

    def note(self, tensor: Tensor) -> Tensor:
        """Count a tensor's storage, once."""
        storage = tensor.untyped_storage()
        # The storage is held on to: else its address could be used again, and count as the same.
        self._storages[storage.data_ptr()] = storage.nbytes(), storage
        return tensor

    def megabytes(self, without: Sequence[Tensor] = ()) -> float:
        """Sum their memory, without that of some tensors, such as weights that are there anyway."""
        left_out = {tensor.untyped_storage().data_ptr() for tensor in without}
        kept = (size for place, (size, _) in self._storages.items() if place not in left_out)
        return sum(kept) / _MEGABYTE


@contextmanager
def watch_kept() -> Iterator[KeptTensors]:
    """Watch what a forward pass keeps for the gradient."""
    kept = KeptTensors()
    with torch.autograd.graph.saved_tensors_hooks(kept.note, lambda tensor: tensor):
        yield kept


class Peak:
    """Largest resident memory of the process while it was watched; None where nobody tells."""

    megabytes: float | None = None


@contextmanager
def watch_peak() -> Iterator[Peak]:
    """Watch the process's resident memory: it takes Linux, and the right to ask.

    The kernel's high-water mark is set back before.
    """
    peak = Peak()
    try:
        _CLEAR.write_text("5")
        can_tell = _STATUS.exists()
    except OSError:
        can_tell = False
    yield peak
    if can_tell:
        match = re.search(r"^VmHWM:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
        peak.megabytes = match and round(1024 * int(match[1]) / _MEGABYTE, 1)
