"""What a training step minimises: the performance loss, and λ times CAR beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fcorr.nn.car import augmented_forward, car_flips, car_sensitive, paper_weight
from fcorr.nn.counterfactuals import Exchange, exchanged_features
from fcorr.nn.fcorr import FCorrTransformer
from fcorr.training.losses import Loss

CarForm = Literal["sensitive", "paper", "cda"]
CarWeight = float | Literal["paper"] | None

_CHUNK_ROWS = 65_536  # embedded at a time


@dataclass(frozen=True)
class Rows:
    """Rows as tensors: codes, located numbers, target and weight (of mean 1).

    Numbers are located among the knots (``model.locate``) once, not in every step.
    """

    x_cat: Tensor
    x_num: Tensor
    target: Tensor
    weight: Tensor

    def __len__(self) -> int:
        return len(self.target)

    def take(self, rows: Tensor) -> "Rows":
        """Select rows by index."""
        return Rows(self.x_cat[rows], self.x_num[rows], self.target[rows], self.weight[rows])


class Objective:
    """Computes ``L_perf + λ L_CAR`` of a batch, and keeps the two apart for the record.

    Parameters
    ----------
    model : FCorrTransformer
        The model that is trained.
    loss : Loss
        Performance loss per row.
    exchanges : sequence of Exchange
        What the sensitive features are exchanged for.
    car : float, "paper" or None
        λ; the paper's rule, settled on a first batch; or no CAR.
    car_form : {"sensitive", "paper", "cda"}
        Form of CAR, see :mod:`fcorr.nn.car`.
    """

    def __init__(
        self,
        model: FCorrTransformer,
        loss: Loss,
        *,
        exchanges: Sequence[Exchange] = (),
        car: CarWeight = None,
        car_form: CarForm = "sensitive",
    ) -> None:
        self.model = model
        self.loss = loss
        self.exchanges = tuple(exchanges)
        self.sensitive = exchanged_features(self.exchanges)
        self.car_form = car_form
        self.collapsed = False
        self.has_car = bool(self.sensitive) and car is not None and car != 0
        self.car_weight = float(car) if self.has_car and not isinstance(car, str) else None  # type: ignore[arg-type]

    def __call__(self, batch: Rows) -> tuple[Tensor, Tensor, Tensor]:
        """Return the total, the performance loss and CAR, each a scalar."""
        e_BF = self.model.embed_located(batch.x_cat, batch.x_num)
        if not self.has_car or self.collapsed:  # CAR of a collapsed embedding is 0
            performance = self._performance(self.model.decode(self.model.encode(e_BF)), batch)
            return performance, performance, torch.zeros_like(performance)
        if self.car_weight is None:
            raise RuntimeError("The paper's weight must be settled before the first step.")
        performance, car = self._losses(e_BF, batch)
        return performance + self.car_weight * car, performance, car

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

    @property
    def needs_weight(self) -> bool:
        """Whether λ is still to be settled by the paper's rule."""
        return self.has_car and self.car_weight is None

    @torch.no_grad()
    def settle_weight(self, batch: Rows) -> None:
        """Settle λ by the paper's rule, before the first step."""
        e_BF = self.model.embed_located(batch.x_cat, batch.x_num)
        performance, car = self._losses(e_BF, batch)
        self.car_weight = paper_weight(performance.item(), car.item())

    def _losses(self, e_BF: Tensor, batch: Rows) -> tuple[Tensor, Tensor]:
        outputs, losses = self._outputs_and_car(e_BF)
        return self._performance(outputs, batch), (batch.weight * losses).mean()

    def _performance(self, outputs: Tensor, batch: Rows) -> Tensor:
        return (batch.weight * self.loss(outputs, batch.target)).mean()

    def _outputs_and_car(self, e_BF: Tensor) -> tuple[Tensor, Tensor]:
        model = self.model
        if self.car_form == "paper":
            return augmented_forward(model, e_BF, self.exchanges)
        if self.car_form == "cda":
            return model.decode(model.encode(e_BF)), car_flips(model, e_BF, self.exchanges)
        h_BF, seen = model.encode_watching(e_BF, self.sensitive)
        return model.decode(h_BF), car_sensitive(model, e_BF, seen, self.exchanges)
