"""The paper's synthetic data: four models, a table and figures; ``python -m paper.demo``."""

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from fcorr._core import write_atomically
from fcorr._version import __version__
from fcorr.audit.displays import AttentionDisplay, SignificanceDisplay, save_figure
from fcorr.audit.page import TextTable
from fcorr.estimators import FCorrClassifier, FeatureMatrix
from paper.comparison import PLAIN, WITH_CAR, compare, tabulate_metrics
from paper.generators import make_indirect_bias

SENSITIVE = "X1"
SIDES = ("yes", "no")
N_TRAIN = 1_000  # few enough for chance to tie X1 to y, so that there is something to suppress
N_TEST = 10_000
# The paper's network: all that it knows of a feature goes through the attention that figures show.
PARAMETERS: dict[str, Any] = {
    "epochs": 50,
    "learning_rate": 0.005,
    "dropout": 0.0,
    "advanced": {"main_effects": False, "beta2": 0.95},
}


@dataclass(frozen=True)
class Demo:
    """Metrics of each model and seed, and the mean attention matrices.

    ``metrics[model][name]`` lists one value per seed. ``attention[model]`` is the mean over seeds
    of the mean pre-softmax matrix over the training rows, ``flip_change[model]`` the mean over
    seeds of how much that matrix moves, entry by entry, when X1 is set to "yes" instead of "no".
    """

    seeds: tuple[int, ...]
    metrics: dict[str, dict[str, list[float]]]
    attention: dict[str, FeatureMatrix]
    flip_change: dict[str, FeatureMatrix]

    def table(self) -> TextTable:
        """Return the table: a line per metric, a column per model."""
        return tabulate_metrics(self.metrics)


def run_demo(seeds: range, report: Callable[[int], None] = lambda seed: None) -> Demo:
    """Fit the four models once per seed, on data drawn anew each time.

    Parameters
    ----------
    seeds : range
        Seeds of data and models.
    report : callable, optional
        Told each seed when it is done.
    """
    metrics: dict[str, dict[str, list[float]]] = {}
    attention: dict[str, list[NDArray[np.float64]]] = {PLAIN: [], WITH_CAR: []}
    flip_change: dict[str, list[NDArray[np.float64]]] = {PLAIN: [], WITH_CAR: []}
    names: tuple[str, ...] = ()
    for seed in seeds:
        train = make_indirect_bias(N_TRAIN, random_state=seed)
        test = make_indirect_bias(N_TEST, random_state=2**31 + seed)
        exact = FCorrClassifier(sensitive=SENSITIVE, random_state=seed, **PARAMETERS)
        for model in compare(exact, train, test, also=["car"]):
            columns = metrics.setdefault(model.name, {})
            for name, value in model.metrics.items():
                columns.setdefault(name, []).append(value)
            if model.name in attention:
                matrix = model.estimator.attention(train[0])
                attention[model.name].append(matrix.values)
                yes, no = (model.estimator.attention(_set(train[0], s)).values for s in SIDES)
                flip_change[model.name].append(np.abs(yes - no))
                names = matrix.names
        report(seed)

    def means(matrices: dict[str, list[NDArray[np.float64]]]) -> dict[str, FeatureMatrix]:
        return {n: FeatureMatrix(names, np.mean(each, axis=0)) for n, each in matrices.items()}

    return Demo(tuple(seeds), metrics, means(attention), means(flip_change))


def _set(X: Any, category: str) -> Any:
    column = nw.lit(category).alias(SENSITIVE)
    return nw.from_native(X, eager_only=True).with_columns(column).to_native()


def write_demo(demo: Demo, folder: str | os.PathLike[str], *, figures: bool = True) -> list[Path]:
    """Write the results, the table and, unless told otherwise, figures; return the files."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    results = {
        "fcorr_version": __version__,
        "data": {"generator": "make_indirect_bias", "n_train": N_TRAIN, "n_test": N_TEST},
        "sensitive": SENSITIVE,
        "parameters": PARAMETERS,
        "seeds": demo.seeds,
        "metrics": demo.metrics,
        "attention": {name: m.values.tolist() for name, m in demo.attention.items()},
        "flip_change": {name: m.values.tolist() for name, m in demo.flip_change.items()},
        "feature_names": demo.attention[PLAIN].names,
    }
    texts = {
        "results.json": json.dumps(results, indent=1) + "\n",
        "table.md": demo.table().markdown(),
    }
    for name, text in texts.items():
        write_atomically(folder / name, text.encode())
    if not figures:
        return [folder / name for name in texts]
    fits = f"mean of {len(demo.seeds)} fit{'s' * (len(demo.seeds) > 1)}"
    change = f"Mean absolute change of the pre-softmax attention when {SENSITIVE} is flipped"
    significance = {name: matrix.diagonal() for name, matrix in demo.attention.items()}
    displays: dict[str, AttentionDisplay | SignificanceDisplay] = {
        "attention.svg": AttentionDisplay(
            demo.attention, [SENSITIVE], f"Mean pre-softmax attention, {fits}"
        ),
        "flip.svg": AttentionDisplay(demo.flip_change, [SENSITIVE], change),
        "significance.svg": SignificanceDisplay(
            significance, [SENSITIVE], f"Feature significance, {fits}"
        ),
    }
    for name, display in displays.items():
        save_figure(display.plot().figure_, folder / name)
    return [folder / name for name in (*texts, *displays)]


def main() -> None:
    """Fit the models and write what they show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("paper-demo"))
    parser.add_argument("--fits", type=int, default=6)
    options = parser.parse_args()
    found = run_demo(range(options.fits), report=lambda seed: print(f"seed {seed} done"))
    for file in write_demo(found, options.output):
        print(f"wrote {file}")


if __name__ == "__main__":
    main()
