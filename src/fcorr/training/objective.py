"""What a training step minimises: the performance loss, and λ times CAR beside it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor, nn

from fcorr.nn.car import (
    AttentiveModel,
    TokenwiseModel,
    augmented_forward,
    car_cda,
    car_columns,
    car_flips,
    car_sensitive,
    paper_weight,
)
from fcorr.nn.counterfactuals import Exchange, exchanged_features
from fcorr.nn.fcorr import FCorrTransformer
from fcorr.training.losses import Loss

CarForm = Literal["sensitive", "paper", "cda"]
CarWeight = float | Literal["paper"] | None

_CHUNK_ROWS = 65_536  # embedded at a time


@dataclass(frozen=True)
class Rows:
    """Rows as tensors: codes, numbers, target and weight (of mean 1).

    FCorrTransformer's numbers are located among its knots (``model.locate``), once and not in
    every step.
    """

    x_cat: Tensor
    x_num: Tensor
    target: Tensor
    weight: Tensor

    def __len__(self) -> int:
        return len(self.target)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.x_cat.shape[1] + self.x_num.shape[1]

    def take(self, rows: Tensor) -> "Rows":
        """Select rows by index."""
        return Rows(self.x_cat[rows], self.x_num[rows], self.target[rows], self.weight[rows])


class BaseObjective(ABC):
    """Computes ``L_perf + λ L_CAR`` of a batch, and keeps the two apart for the record.

    Parameters
    ----------
    model : nn.Module
        The model that is trained.
    loss : Loss
        Performance loss per row.
    exchanges : sequence of Exchange
        What the sensitive features are exchanged for.
    car : float, "paper" or None
        λ; the paper's rule, settled on a first batch; or no CAR.
    """

    model: nn.Module
    collapsed: bool = False
    car_ratio: float | None = None
    """``L_perf / L_CAR`` before the first step, if the paper's rule asked for it."""

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        *,
        exchanges: Sequence[Exchange] = (),
        car: CarWeight = None,
    ) -> None:
        self.model = model
        self.loss = loss
        self.exchanges = tuple(exchanges)
        self.sensitive = exchanged_features(self.exchanges)
        self.has_car = bool(self.sensitive) and car is not None and car != 0
        self.car_weight = float(car) if self.has_car and not isinstance(car, str) else None  # type: ignore[arg-type]

    @abstractmethod
    def _outputs(self, batch: Rows) -> Tensor:
        """Compute the model's outputs ``(B, n_outputs)``."""

    @abstractmethod
    def _outputs_and_car(self, batch: Rows) -> tuple[Tensor, Tensor]:
        """Compute the outputs, and CAR of each row, ``(B,)``, or of the first rows alone."""

    def numbers_per_row(self, rows: Rows) -> int:
        """Size of one row's step, in numbers of a table that FCorrTransformer would read."""
        return rows.n_features

    def __call__(self, batch: Rows) -> tuple[Tensor, Tensor, Tensor]:
        """Return the total, the performance loss and CAR, each a scalar."""
        if not self.has_car or self.collapsed:  # CAR of a collapsed embedding is 0
            performance = self._performance(self._outputs(batch), batch)
            return performance, performance, torch.zeros_like(performance)
        if self.car_weight is None:
            raise RuntimeError("The paper's weight must be settled before the first step.")
        performance, car = self._losses(batch)
        return performance + self.car_weight * car, performance, car

    def collapse(self, rows: Rows) -> None:
        """Take what the sensitive features say out of the model, for good."""
        raise NotImplementedError(f"{type(self.model).__name__} cannot be collapsed.")

    def hold_collapsed(self) -> None:
        """Keep it so after a step of the optimiser."""
        return

    @property
    def needs_weight(self) -> bool:
        """Whether λ is still to be settled by the paper's rule."""
        return self.has_car and self.car_weight is None

    @torch.no_grad()
    def settle_weight(self, batch: Rows, n_rows: int | None = None) -> None:
        """Settle λ by the paper's rule, before the first step; ``n_rows`` at a time."""
        self.model.eval()
        parts = torch.arange(len(batch), device=batch.target.device).split(n_rows or len(batch))
        sums = sum(
            len(part) * torch.stack(self._losses(batch.take(part))).double() for part in parts
        )
        performance, car = (torch.as_tensor(sums) / len(batch)).tolist()
        self.car_ratio = performance / car if car > 0 else None
        self.car_weight = paper_weight(performance, car)

    def _losses(self, batch: Rows) -> tuple[Tensor, Tensor]:
        outputs, losses = self._outputs_and_car(batch)
        car = (batch.weight[: len(losses)] * losses).mean()
        return self._performance(outputs, batch), car

    def _performance(self, outputs: Tensor, batch: Rows) -> Tensor:
        return (batch.weight * self.loss(outputs, batch.target)).mean()


class Objective(BaseObjective):
    """The objective of an FCorrTransformer, with CAR in any form; see :class:`BaseObjective`.

    Parameters
    ----------
    model : FCorrTransformer
        The model that is trained.
    loss, exchanges, car
        See :class:`BaseObjective`.
    car_form : {"sensitive", "paper", "cda"}
        Form of CAR, see :mod:`fcorr.nn.car`.
    """

    model: FCorrTransformer

    def __init__(
        self,
        model: FCorrTransformer,
        loss: Loss,
        *,
        exchanges: Sequence[Exchange] = (),
        car: CarWeight = None,
        car_form: CarForm = "sensitive",
    ) -> None:
        super().__init__(model, loss, exchanges=exchanges, car=car)
        self.car_form = car_form

    @torch.no_grad()
    def collapse(self, rows: Rows) -> None:
        """Embed each sensitive feature as one number, the mean over the rows."""
        chunks = zip(rows.x_cat.split(_CHUNK_ROWS), rows.x_num.split(_CHUNK_ROWS), strict=True)
        sums = [
            self.model.embed_located(*chunk)[:, self.sensitive].double().sum(0) for chunk in chunks
        ]
        total_S = torch.stack(sums).sum(0)
        for sigma, mean in zip(self.sensitive, (total_S / len(rows)).tolist(), strict=True):
            self.model.collapse(sigma, mean)
        self.collapsed = True

    def hold_collapsed(self) -> None:
        """Keep it so after a step of the optimiser."""
        for sigma in self.sensitive if self.collapsed else ():
            self.model.hold_collapsed(sigma)

    def _outputs(self, batch: Rows) -> Tensor:
        e_BF = self.model.embed_located(batch.x_cat, batch.x_num)
        return self.model.decode(self.model.encode(e_BF))

    def _outputs_and_car(self, batch: Rows) -> tuple[Tensor, Tensor]:
        model = self.model
        e_BF = model.embed_located(batch.x_cat, batch.x_num)
        if self.car_form == "paper":
            return augmented_forward(model, e_BF, self.exchanges)
        if self.car_form == "cda":
            return model.decode(model.encode(e_BF)), car_flips(model, e_BF, self.exchanges)
        h_BF, seen = model.encode_watching(e_BF, self.sensitive)
        return model.decode(h_BF), car_sensitive(model, e_BF, seen, self.exchanges)


class BaselineObjective(BaseObjective):
    """The objective of any other network, with CAR by its definition, :func:`car_cda`.

    Parameters
    ----------
    model : nn.Module
        ``model(x_cat, x_num)`` are its outputs; with CAR, ``model.attention_weights(x_cat, x_num)``
        its attention. One that has ``queries_and_keys`` is asked for them instead, and CAR is
        computed by :func:`car_columns`, which is the same but for rounding.
    loss, exchanges, car
        See :class:`BaseObjective`.
    car_rows : float
        Share of a batch's rows that CAR is computed of in training: the first, as batches are in no
        order. A validation and the paper's rule take all rows.
    numbers_per_row : int
        Size of one row's step, see :meth:`BaseObjective.numbers_per_row`.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        *,
        exchanges: Sequence[Exchange] = (),
        car: CarWeight = None,
        car_rows: float = 1.0,
        numbers_per_row: int,
    ) -> None:
        super().__init__(model, loss, exchanges=exchanges, car=car)
        self.car_rows = car_rows
        self._numbers_per_row = numbers_per_row

    def numbers_per_row(self, rows: Rows) -> int:
        """Size of one row's step, as the model's owner says."""
        return self._numbers_per_row

    def _outputs(self, batch: Rows) -> Tensor:
        return self.model(batch.x_cat, batch.x_num)

    def _outputs_and_car(self, batch: Rows) -> tuple[Tensor, Tensor]:
        outputs = self._outputs(batch)
        n_rows = math.ceil(self.car_rows * len(batch)) if self.model.training else len(batch)
        rows = batch.x_cat[:n_rows], batch.x_num[:n_rows], self.exchanges
        if isinstance(self.model, TokenwiseModel):
            return outputs, car_columns(self.model, *rows)
        return outputs, car_cda(cast(AttentiveModel, self.model), *rows)
