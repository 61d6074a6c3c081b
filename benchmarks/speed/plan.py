"""What is measured, and how often: the full benchmark, and a small one that only has to run."""

from dataclasses import dataclass

STEP_MODELS = (
    *("head", "fcorr", "fcorr_car", "fcorr_car_paper", "fcorr_car_cda"),
    *("fcorr_sdpa", "fcorr_exact", "tab_transformer", "ft_transformer"),
)
SCALING_MODELS = ("fcorr", "fcorr_car", "fcorr_sdpa", "fcorr_exact", "ft_transformer")


@dataclass(frozen=True)
class Setting:
    """One of the two tables: its generator, and how much of it each measurement takes."""

    name: str
    batch: int
    n_pool: int  # rows drawn for the steps; they give the schema, and the first ones the batches
    n_fit: int  # rows that the models fit before they score
    n_score: int
    n_epoch: int  # rows of an epoch
    epochs: int


@dataclass(frozen=True)
class Plan:
    """How often each measurement is taken, and the bounds it keeps to.

    ``most_entries`` bounds the numbers of a batch's attention matrices: a model that would hold
    more takes fewer rows in a step, and its cost is given per row. A model whose single step takes
    longer than ``longest_step`` seconds is left out, with the reason in the results.
    """

    settings: tuple[Setting, ...]
    step_models: tuple[str, ...]
    memory_models: tuple[str, ...]
    scaling_models: tuple[str, ...]
    scaling_p: tuple[int, ...]
    scaling_batch: int
    scaling_pool: int
    rounds: int
    slice_seconds: float  # each model's turn in a round lasts about as long, and one step at least
    n_warm_up: int
    most_entries: int
    longest_step: float


FULL = Plan(
    settings=(
        Setting("bank_fraud", 2_048, 100_000, 100_000, 200_000, 1_000_000, 4),
        Setting("claims", 512, 20_000, 20_000, 100_000, 235_636, 3),
    ),
    step_models=STEP_MODELS,
    memory_models=STEP_MODELS,
    scaling_models=SCALING_MODELS,
    scaling_p=(31, 64, 128, 256, 581, 1_162, 2_324),
    scaling_batch=512,
    scaling_pool=4_096,
    rounds=7,
    slice_seconds=0.3,
    n_warm_up=3,
    most_entries=2**27,
    longest_step=60.0,
)

QUICK = Plan(
    settings=(
        Setting("bank_fraud", 64, 5_000, 5_000, 500, 5_000, 2),
        Setting("claims", 8, 1_000, 500, 100, 500, 2),
    ),
    step_models=STEP_MODELS,
    memory_models=("fcorr", "ft_transformer"),
    scaling_models=SCALING_MODELS,
    scaling_p=(31, 64),
    scaling_batch=32,
    scaling_pool=1_000,
    rounds=1,
    slice_seconds=0.0,
    n_warm_up=1,
    most_entries=2**24,
    longest_step=15.0,
)
