"""The demonstration: the paper's synthetic data, four models, one table and three figures."""

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
from fcorr.audit.compared import show_metric
from fcorr.audit.comparison import PLAIN, WITH_CAR, compare
from fcorr.audit.figures import BarPanel, HeatMapPanel, bar_chart_svg, heat_map_svg
from fcorr.audit.tables import TextTable
from fcorr.data import make_indirect_bias
from fcorr.estimators import FCorrClassifier

SENSITIVE = "X1"
SIDES = ("yes", "no")
N_TRAIN = 1_000  # few enough for chance to tie X1 to y, so that there is something to suppress
N_TEST = 10_000
PARAMETERS: dict[str, Any] = {"epochs": 50, "learning_rate": 0.005, "dropout": 0.0}
EFFORT = 2**12  # a second or two for each bound; the full effort takes half a minute


@dataclass(frozen=True)
class Demo:
    """Metrics of each model and seed, and the mean attention matrices.

    ``metrics[model][name]`` lists one value per seed. ``attention[model]`` is the mean over seeds
    of the mean pre-softmax matrix over the training rows, ``flip_change[model]`` the mean over
    seeds of how much that matrix moves, entry by entry, when X1 is set to "yes" instead of "no".
    """

    seeds: tuple[int, ...]
    feature_names: tuple[str, ...]
    metrics: dict[str, dict[str, list[float]]]
    attention: dict[str, NDArray[np.float64]]
    flip_change: dict[str, NDArray[np.float64]]


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
        for model in compare(exact, train, test, also=["car"], effort=EFFORT):
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
    return Demo(tuple(seeds), names, metrics, _means(attention), _means(flip_change))


def _means(matrices: dict[str, list[NDArray[np.float64]]]) -> dict[str, NDArray[np.float64]]:
    return {name: np.mean(of_seeds, axis=0) for name, of_seeds in matrices.items()}


def _set(X: Any, category: str) -> Any:
    column = nw.lit(category).alias(SENSITIVE)
    return nw.from_native(X, eager_only=True).with_columns(column).to_native()


def demo_table(demo: Demo) -> TextTable:
    """Return the table: a line per metric, a column per model."""
    rows = [
        [name, *(show_metric(name, of_model[name]) for of_model in demo.metrics.values())]
        for name in next(iter(demo.metrics.values()))
    ]
    return TextTable(["", *demo.metrics], rows)


def write_demo(demo: Demo, folder: str | os.PathLike[str]) -> list[Path]:
    """Write the results, the table and the figures; return the files."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "results.json": json.dumps(_results(demo), indent=1) + "\n",
        "table.md": demo_table(demo).markdown(),
        "attention.svg": heat_map_svg(
            [HeatMapPanel(name, demo.feature_names, m) for name, m in demo.attention.items()],
            title=f"Mean pre-softmax attention, mean of {len(demo.seeds)} fits",
            sensitive=[SENSITIVE],
        ),
        "flip.svg": heat_map_svg(
            [HeatMapPanel(name, demo.feature_names, m) for name, m in demo.flip_change.items()],
            title=f"Mean absolute change of the pre-softmax attention when {SENSITIVE} is flipped",
            sensitive=[SENSITIVE],
        ),
        "significance.svg": bar_chart_svg(
            [
                BarPanel(name, demo.feature_names, matrix.diagonal())
                for name, matrix in demo.attention.items()
            ],
            title=f"Feature significance, mean of {len(demo.seeds)} fits",
            x_label="diagonal of the pre-softmax attention matrix",
            sensitive=[SENSITIVE],
        ),
    }
    for name, text in files.items():
        write_atomically(folder / name, text.encode())
    return [folder / name for name in files]


def _results(demo: Demo) -> dict[str, Any]:
    return {
        "fcorr_version": __version__,
        "data": {"generator": "make_indirect_bias", "n_train": N_TRAIN, "n_test": N_TEST},
        "sensitive": SENSITIVE,
        "parameters": PARAMETERS,
        "certificate_effort": EFFORT,
        "seeds": demo.seeds,
        "metrics": demo.metrics,
        "attention": {name: matrix.tolist() for name, matrix in demo.attention.items()},
        "flip_change": {name: matrix.tolist() for name, matrix in demo.flip_change.items()},
        "feature_names": demo.feature_names,
    }
