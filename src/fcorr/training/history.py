"""What is kept of a training run."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class EpochRecord:
    """Mean losses of one epoch; ``None`` where there was nothing to measure."""

    epoch: int
    loss: float
    car: float | None = None
    validation_loss: float | None = None


@dataclass
class History:
    """The course of a training run; ``engine`` is the one that ran, "compiled" or "plain".

    ``car_weight`` is λ, ``car_ratio`` the ratio of the first losses that the paper's rule makes it
    of, where that was asked for.
    """

    engine: str = "plain"
    car_weight: float | None = None
    car_ratio: float | None = None
    best_epoch: int | None = None
    epochs: list[EpochRecord] = field(default_factory=list)
