"""What models cost at the sizes of the paper's two tables: parameters, memory, seconds an epoch."""

import functools
import time
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from fcorr.data import make_bank_fraud, make_claims
from fcorr.data.encode import encode
from fcorr.data.infer import infer_schema
from fcorr.data.schema import Schema
from fcorr.data.tables import read_table
from fcorr.estimators.architectures import ARCHITECTURES
from fcorr.nn.car import Exchange, exchange_features
from fcorr.nn.fcorr import FCorrTransformer
from fcorr.reproduce.memory import watch_kept
from fcorr.reproduce.settings import CostRun
from fcorr.training.losses import binary_log_loss, squared_error
from fcorr.training.objective import BaselineObjective, BaseObjective, Objective, Rows

_MAKERS: dict[str, Any] = {"bank_fraud": make_bank_fraud, "claims": make_claims}
_N_ROWS = 20_000  # in which every category occurs
_BATCH = 64
_LEARNING_RATE = 1e-3
_CAR_WEIGHT = 1.0

AUGMENTED, BY_DEFINITION, CLOSED_FORM = "augmentation", "CDA by definition", "CDA in closed form"


class Table(NamedTuple):
    """An encoded table, and what a network must know of it."""

    schema: Schema
    rows: Rows
    exchanges: tuple[Exchange, ...]


def measure_cost(run: CostRun) -> dict[str, Any]:
    """Measure what a run asks for."""
    table = _encode(run.data, run.sensitive, run.task, max(_N_ROWS, run.n_rows), run.seed)
    rows = table.rows.take(torch.arange(run.n_rows))
    if run.measure == "epochs":
        return {"seconds_per_epoch": _time_epochs(run, table, rows), "n_rows": len(rows)}
    model = _make_model(run, table)
    objective = _make_objective(run, table, model)
    with watch_kept() as kept:
        total = objective(rows)[0]
    total.backward()
    parameters = list(model.parameters())
    n_parameters = sum(parameter.numel() for parameter in parameters)
    head = sum(p.numel() for name, p in model.named_parameters() if name.startswith("head."))
    return {
        "parameters": n_parameters,
        "head_parameters": head,
        "parameter_megabytes": 4e-6 * n_parameters,
        "kept_megabytes": kept.without(parameters).megabytes,
        "n_rows": len(rows),
    }


@functools.lru_cache(maxsize=2)
def _encode(name: str, sensitive: tuple[str, ...], task: str, n_rows: int, seed: int) -> Table:
    X, y = _MAKERS[name](n_rows, random_state=seed)
    read = read_table(X)
    schema = infer_schema(read, sensitive=sensitive, constant_columns="keep", min_category_rows=1)
    encoded = encode(read, schema)
    target = torch.from_numpy(y.astype(np.float32))
    if task == "regression":
        target = (target - target.mean()) / target.std()
    rows = Rows(
        torch.from_numpy(encoded.codes),
        torch.from_numpy(encoded.numbers),
        target,
        torch.ones(n_rows),
    )
    exchanges = exchange_features(
        schema.cardinalities, encoded.numbers.shape[1], schema.sensitive_positions
    )
    return Table(schema, rows, exchanges)


def _make_model(run: CostRun, table: Table) -> nn.Module:
    generator = torch.Generator().manual_seed(run.seed)
    schema, arguments = table.schema, run.arguments
    if run.kind != "printed":
        architecture = ARCHITECTURES[run.kind]
        sizes = architecture.choose_sizes(arguments.get("network_options"), architecture.dropout)
        return architecture.make(schema, sizes, 1, generator)
    return FCorrTransformer(
        schema.cardinalities,
        len(schema.numeric),
        head=arguments["head"],
        residual=arguments["residual"],
        numeric_embedding="paper",
        generator=generator,
    )


def _make_objective(run: CostRun, table: Table, model: nn.Module) -> BaseObjective:
    loss = binary_log_loss if run.task == "classification" else squared_error
    car = _CAR_WEIGHT if run.arguments.get("car") else None
    if isinstance(model, FCorrTransformer):
        return Objective(model, loss, exchanges=table.exchanges, car=car, car_form="paper")
    return BaselineObjective(model, loss, exchanges=table.exchanges, car=car, numbers_per_row=1)


def _time_epochs(run: CostRun, table: Table, rows: Rows) -> dict[str, float]:
    """Time an epoch in each form, step by step in turn: what slows the machine slows them all."""
    loss = binary_log_loss if run.task == "classification" else squared_error
    shared: dict[str, Any] = {"exchanges": table.exchanges, "car": _CAR_WEIGHT}
    models = [_make_model(run, table) for _ in range(3)]
    objectives: dict[str, BaseObjective] = {
        AUGMENTED: Objective(models[0], loss, car_form="paper", **shared),  # type: ignore[arg-type]
        CLOSED_FORM: Objective(models[1], loss, car_form="cda", **shared),  # type: ignore[arg-type]
        BY_DEFINITION: BaselineObjective(models[2], loss, numbers_per_row=1, **shared),
    }
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
