"""What a training step minimises: the performance loss, and λ times CAR beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fcorr.nn.car import augmented_forward, car_cda, car_sensitive, paper_weight
from fcorr.nn.fcorr import FCorrTransformer
from fcorr.training.losses import Loss

CarForm = Literal["sensitive", "paper", "cda"]
CarWeight = float | Literal["paper"] | None


@dataclass(frozen=True)
class Rows:
    """Rows as tensors: codes, numbers, target and weight (of mean 1)."""

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
    sensitive : sequence of int
        Positions of the sensitive features among the categorical ones.
    car : float, "paper" or None
        λ; the paper's rule, settled on the first batch; or no CAR.
    car_form : {"sensitive", "paper", "cda"}
        Form of CAR, see :mod:`fcorr.nn.car`.
    """

    def __init__(
        self,
        model: FCorrTransformer,
        loss: Loss,
        *,
        sensitive: Sequence[int] = (),
        car: CarWeight = None,
        car_form: CarForm = "sensitive",
    ) -> None:
        self.model = model
        self.loss = loss
        self.sensitive = tuple(sensitive)
        self.car_form = car_form
        self.has_car = bool(self.sensitive) and car is not None and car != 0
        self.car_weight = float(car) if self.has_car and not isinstance(car, str) else None  # type: ignore[arg-type]

    def __call__(self, batch: Rows) -> tuple[Tensor, Tensor, Tensor]:
        """Return the total, the performance loss and CAR, each a scalar."""
        if not self.has_car:
            performance = self._performance(self.model(batch.x_cat, batch.x_num), batch)
            return performance, performance, torch.zeros_like(performance)
        outputs, losses = self._outputs_and_car(batch)
        performance = self._performance(outputs, batch)
        car = (batch.weight * losses).mean()
        if self.car_weight is None:
            self.car_weight = paper_weight(performance.item(), car.item())
        return performance + self.car_weight * car, performance, car

    def _performance(self, outputs: Tensor, batch: Rows) -> Tensor:
        return (batch.weight * self.loss(outputs, batch.target)).mean()

    def _outputs_and_car(self, batch: Rows) -> tuple[Tensor, Tensor]:
        if self.car_form == "paper":
            return augmented_forward(self.model, batch.x_cat, batch.x_num, self.sensitive)
        e_BF = self.model.embed(batch.x_cat, batch.x_num)
        outputs = self.model.decode(self.model.encode(e_BF))
        if self.car_form == "cda":
            return outputs, car_cda(self.model, batch.x_cat, batch.x_num, self.sensitive)
        return outputs, car_sensitive(self.model, e_BF, self.sensitive)
