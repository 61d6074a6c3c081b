"""The rows that all models are given: the two generators' tables, encoded once."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.speed.plan import Setting
from fcorr.data import EncodedTable, Schema, encode, infer_schema, read_table
from fcorr.nn.layers import choose_knots
from fcorr.training.objective import Loss, binary_log_loss, squared_error
from fcorr.training.rows import Rows
from paper.generators import make_bank_fraud, make_claims

SENSITIVE = {"bank_fraud": "customer_age", "claims": "credit_score"}
LOSSES: dict[str, Loss] = {"binary_log_loss": binary_log_loss, "squared_error": squared_error}
N_KNOTS = 64  # the estimators' default


@dataclass(frozen=True)
class Data:
    """Encoded rows, and what a model must know to be built for them. Feature 0 is sensitive."""

    cardinalities: tuple[int, ...]
    knots: list[Tensor]
    rows: Rows
    loss_name: str

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.cardinalities) + len(self.knots)

    @property
    def loss(self) -> Loss:
        """Loss per row, the same for every model."""
        return LOSSES[self.loss_name]

    def save(self, path: Path) -> None:
        """Write the rows to a file, for a process of its own."""
        rows = [self.rows.x_cat, self.rows.x_num, self.rows.target, self.rows.weight]
        torch.save([list(self.cardinalities), self.knots, rows, self.loss_name], path)

    @classmethod
    def load(cls, path: Path) -> "Data":
        """Read what :meth:`save` wrote."""
        cardinalities, knots, rows, loss_name = torch.load(path)
        return cls(tuple(cardinalities), knots, Rows(*rows), loss_name)


def make_frame(setting: str, n_rows: int, seed: int = 0) -> tuple[Any, NDArray[Any]]:
    """Draw the setting's table as a pandas frame, and its target."""
    make = {"bank_fraud": make_bank_fraud, "claims": make_claims}[setting]
    X, y = make(n_rows, random_state=seed)
    return X.to_pandas(), y


def encode_frame(X: Any, setting: str) -> tuple[Schema, EncodedTable]:
    table = read_table(X)
    # A constant column is part of the public table, and a small draw may add to it.
    schema = infer_schema(table, sensitive=[SENSITIVE[setting]])
    return schema, encode(table, schema)


def make_data(setting: Setting) -> Data:
    """Encode the rows of a setting's steps."""
    X, y = make_frame(setting.name, setting.n_pool)
    schema, encoded = encode_frame(X, setting.name)
    loss_name = "binary_log_loss" if setting.name == "bank_fraud" else "squared_error"
    keep = min(8 * setting.batch, setting.n_pool)
    return _as_data(schema.cardinalities, encoded, y, loss_name, keep)


def make_wide_data(n_features: int, n_pool: int) -> Data:
    """Encode columns like those of ``make_claims``, more or fewer, in the same proportions.

    Wider tables lay several draws side by side; narrower ones take columns at equal distances.
    At 581 features it is ``make_claims`` itself.
    """
    draws, n_claims = [], 581
    for seed in range(math.ceil(n_features / n_claims)):
        X, y = make_frame("claims", n_pool, seed)
        draws.append((*encode_frame(X, "claims"), y))
    codes = np.hstack([encoded.codes for _, encoded, _ in draws])
    numbers = np.hstack([encoded.numbers for _, encoded, _ in draws])
    cardinalities = [c for schema, _, _ in draws for c in schema.cardinalities]
    n_categorical = round(n_features * codes.shape[1] / (codes.shape[1] + numbers.shape[1]))
    cat = _spread(codes.shape[1], n_categorical)
    num = _spread(numbers.shape[1], n_features - n_categorical)
    encoded = EncodedTable(codes[:, cat], numbers[:, num])
    chosen = tuple(cardinalities[i] for i in cat)
    return _as_data(chosen, encoded, draws[0][2], "squared_error", n_pool)


def _spread(n: int, n_chosen: int) -> NDArray[np.int64]:
    return np.linspace(0, n - 1, n_chosen).round().astype(int)


def _as_data(
    cardinalities: tuple[int, ...],
    encoded: EncodedTable,
    y: NDArray[Any],
    loss_name: str,
    n_rows: int,
) -> Data:
    target = torch.from_numpy(y[:n_rows].astype(np.float32))
    if loss_name == "squared_error":  # in units of its deviation, as the regressor learns it
        target = (target - float(y.mean())) / float(y.std())
    rows = Rows(
        torch.from_numpy(encoded.codes[:n_rows].copy()),
        torch.from_numpy(encoded.numbers[:n_rows].copy()),
        target,
        torch.ones(n_rows),
    )
    return Data(cardinalities, choose_knots(encoded.numbers, N_KNOTS), rows, loss_name)
