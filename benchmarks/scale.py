"""Past memory and past one machine: how fast, and in how much memory. One part for each question.

Tables are of the bank-fraud generator, 31 columns, written to a temporary folder chunk by chunk.
What is measured runs in a process of its own, so that its peak memory is its own. Each part
replaces its lines of benchmarks/results/scale.jsonl, and its table in docs/tables.

    python -m benchmarks.scale scoring training processes plan
"""

import argparse
import json
import math
import multiprocessing
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "scale.jsonl"
N_CHUNK = 250_000  # rows that are made, and written as a row group, at a time
N_TRAINED = 20_000
MEMORY = "1GB"
N_ROUNDS = 2  # in turn, of which the fastest counts: others use the machine too

Record = dict[str, Any]


# ------------------------------------------------------------------------------ shared


def write_table(path: Path, n_rows: int) -> None:
    """Write so many rows, in row groups that each have a seed of their own."""
    from paper.generators import make_bank_fraud

    writer = None
    for seed, first in enumerate(range(0, n_rows, N_CHUNK), start=1):
        X, y = make_bank_fraud(min(N_CHUNK, n_rows - first), random_state=seed)
        chunk = X.append_column("fraud", pa.array(y))
        writer = writer or pa_parquet.ParquetWriter(path, chunk.schema)
        writer.write_table(chunk)
    if writer is not None:
        writer.close()


def apart(function: Callable[..., Record], *arguments: Any) -> Record:
    """Run a function in a process of its own; add the peak of its resident memory."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_with_peak, function, arguments).result()


def _with_peak(function: Callable[..., Record], arguments: tuple[Any, ...]) -> Record:
    record = function(*arguments)
    status = Path("/proc/self/status").read_text()
    return record | {"peak_mb": int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) // 1024}


def timed(function: Callable[[], int]) -> Record:
    """Time a function that returns how many rows it worked on."""
    start, cpu = time.perf_counter(), time.process_time()
    n_rows = function()
    seconds = time.perf_counter() - start
    return {
        "rows": n_rows,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "rows_per_second": round(n_rows / seconds),
    }


# ------------------------------------------------------------------------------ scoring


def scoring(folder: Path, n_rows: int) -> Iterator[Record]:
    """Parquet to Parquet against scores of a table in memory, and on workers of Ray's."""
    data, tenth = folder / "data.parquet", folder / "tenth.parquet"
    write_table(data, n_rows)
    write_table(tenth, n_rows // 10)
    size = round(data.stat().st_size / 1e6)
    ways = {
        "a table in memory": (_score_in_memory, tenth),
        "Parquet to Parquet": (_score_parquet, tenth),
        "Parquet to Parquet, ten times the rows": (_score_parquet, data),
        "the same on workers of Ray's": (_score_on_ray, data),
    }
    for members in ("auto", 1):
        model = folder / "model.fcorr"
        n_networks = apart(_train, model, members)["networks"]
        for round_ in range(N_ROUNDS):
            for way, (score, file) in ways.items():
                where = {"part": "scoring", "networks": n_networks, "way": way, "round": round_}
                yield where | {"file_mb": size} | apart(score, model, file, folder)


def _train(path: Path, members: Any) -> Record:
    from fcorr import FCorrClassifier
    from paper.generators import make_bank_fraud

    X, y = make_bank_fraud(N_TRAINED, random_state=0)
    options = {"n_members": members, "sensitive": "customer_age", "random_state": 0}
    model = FCorrClassifier(**options).fit(X, y)
    model.save(path)
    return {"networks": len(model.model_.members)}


def _score_in_memory(model: Path, data: Path, folder: Path) -> Record:
    """Score rows that are in memory before the clock starts."""
    from fcorr import load

    estimator, table = load(model), pa_parquet.read_table(data)
    estimator.predict_proba(table.slice(0, 1000))  # loads the kernels
    return _threads() | timed(lambda: len(estimator.predict_proba(table)))


def _score_parquet(model: Path, data: Path, folder: Path) -> Record:
    from fcorr import score_parquet

    few = _few_rows(data, folder)
    score_parquet(model, few, folder / "warm.parquet")
    return _threads() | timed(lambda: score_parquet(model, data, folder / "scores.parquet"))


def _score_on_ray(model: Path, data: Path, folder: Path) -> Record:
    """Score on as many workers as there are cores; the time to start them is not counted."""
    from fcorr import score_parquet
    from fcorr._core import connect_ray

    few, n_workers = _few_rows(data, folder), os.cpu_count()
    options: Any = {"engine": "ray", "workers": n_workers}
    with connect_ray(workers=n_workers):
        score_parquet(model, few, folder / "warm.parquet", **options)
        found = timed(lambda: score_parquet(model, data, folder / "ray.parquet", **options))
    return {"workers": n_workers} | found


def _threads() -> Record:
    import torch

    return {"threads": torch.get_num_threads()}


def _few_rows(data: Path, folder: Path) -> Path:
    """Write a small folder of files, one for each core."""
    few = folder / "few"
    few.mkdir(exist_ok=True)
    table = pa_parquet.ParquetFile(data).read_row_group(0).slice(0, 1000)
    for i in range(os.cpu_count() or 1):
        pa_parquet.write_table(table, few / f"{i}.parquet")
    return few


def scoring_table(records: list[Record]) -> str:
    lines = [
        "| networks | what | rows | rows a second | of the rate in memory "
        "| CPU seconds a million rows | peak memory, MB |",
        "|--:|---|--:|--:|--:|--:|--:|",
    ]
    for networks in sorted({each["networks"] for each in records}, reverse=True):
        of_memory = None
        for way in dict.fromkeys(each["way"] for each in records):
            runs = [each for each in records if (each["networks"], each["way"]) == (networks, way)]
            run = max(runs, key=lambda each: each["rows_per_second"])
            rate = run["rows_per_second"]
            of_memory = of_memory or rate
            cpu = min(each["cpu_seconds"] for each in runs) / run["rows"] * 1e6
            peak = max(each["peak_mb"] for each in runs)
            # Of Ray this process is only the one that writes.
            seen = ["–", "–"] if "workers" in run else [f"{cpu:.1f}", f"{peak:,}"]
            cells = [
                networks,
                way,
                f"{run['rows']:,}",
                f"{rate:,}",
                f"{rate / of_memory:.0%}",
                *seen,
            ]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------ training


def training(folder: Path, n_rows: int) -> Iterator[Record]:
    """One network from Parquet within a stated memory, and a tenth of the rows both ways."""
    fewer = n_rows // 10
    for size, ways in ((n_rows, ("files",)), (fewer, ("files", "memory"))):
        data = folder / f"{size}.parquet"
        write_table(data, size)
        for way in ways:
            yield {"part": "training", "way": way} | apart(_fit, way, data, size)


def _fit(way: str, data: Path, n_rows: int) -> Record:
    from fcorr import FCorrClassifier

    ends, n_epochs = [], 2 if n_rows > 2_000_000 else 4
    options: Any = {"n_members": 1, "sensitive": "customer_age", "random_state": 0}
    model = FCorrClassifier(epochs=n_epochs, **options)

    def tell(record: Any) -> None:
        ends.append((time.perf_counter(), time.process_time()))

    start = time.perf_counter()
    if way == "files":
        model.fit(data, "fraud", memory=MEMORY, on_epoch_end=tell)
    else:
        table = pa_parquet.read_table(data)
        model.fit(table.drop_columns("fraud"), table["fraud"], on_epoch_end=tell)
    total = time.perf_counter() - start
    epoch, cpu = ((ends[-1][k] - ends[0][k]) / (len(ends) - 1) for k in (0, 1))
    return {
        "rows": n_rows,
        "epochs": n_epochs,
        "seconds": round(total, 1),
        "epoch_seconds": round(epoch, 1),
        "epoch_cpu_seconds": round(cpu, 1),
        "loss": model.history_.epochs[-1].loss,
    } | _threads()


def training_table(records: list[Record]) -> str:
    lines = [
        "| rows | from | epoch, µs a row | CPU, µs a row | whole fit, s | peak memory, MB |",
        "|--:|---|--:|--:|--:|--:|",
    ]
    names = {"files": f'Parquet, `memory="{MEMORY}"`', "memory": "a table in memory"}
    for each in records:
        wall, cpu = (1e6 * each[k] / each["rows"] for k in ("epoch_seconds", "epoch_cpu_seconds"))
        lines.append(
            f"| {each['rows']:,} | {names[each['way']]} | {wall:.1f} | {cpu:.1f} | "
            f"{each['seconds']:.0f} | {each['peak_mb']:,} |"
        )
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------ processes


def processes(folder: Path, n_rows: int) -> Iterator[Record]:
    """Fit a pack of 16 members, and one network, on one and on two workers of Ray's."""
    data = folder / "data.parquet"
    write_table(data, min(n_rows, 1_000_000))
    for what in ("pack", "network"):
        for workers in (1, 2):
            yield {"part": "processes", "what": what} | apart(_fit_on_ray, what, workers, data)


def _fit_on_ray(what: str, workers: int, data: Path) -> Record:
    """Time a fit, after one of few rows that starts the workers and loads the kernels."""
    from fcorr import FCorrClassifier
    from fcorr._core import connect_ray
    from fcorr.estimators import fit_on_ray

    # Above 100,000 rows there are four bags, and so sixteen members are four recipes.
    table = pa_parquet.read_table(data).slice(0, 110_000 if what == "pack" else None)
    options: Any = {"n_members": 16 if what == "pack" else 1, "random_state": 0}
    if what == "network":
        options |= {"epochs": 8, "advanced": {"batch_size": 4_096}}
    ends: list[float] = []

    def fit(rows: pa.Table) -> int:
        model = FCorrClassifier(**options)
        X, y = rows.drop_columns("fraud"), rows["fraud"]
        fit_on_ray(model, X, y, workers=workers)
        ends.append(model.history_.epochs[-1].loss)
        return rows.num_rows

    with connect_ray(workers=workers):
        fit(table.slice(0, 3_000))
        return {"workers": workers} | timed(lambda: fit(table)) | {"loss": ends[-1]}


def processes_table(records: list[Record]) -> str:
    names = {"pack": "a pack of 16 members", "network": "one network"}
    lines = ["| what | rows | workers | seconds | rate of one worker |", "|---|--:|--:|--:|--:|"]
    for each in records:
        alone = next(r for r in records if r["what"] == each["what"] and r["workers"] == 1)
        ratio = alone["seconds"] / each["seconds"]
        lines.append(
            f"| {names[each['what']]} | {each['rows']:,} | {each['workers']} | "
            f"{each['seconds']:.0f} | {ratio:.2f} × |"
        )
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------ plan


def plan(folder: Path, n_rows: int) -> Iterator[Record]:
    """Compute, from what the other parts measured, what a table past these machines would take."""
    lines = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    epoch = next(r for r in lines if r["part"] == "training" and r["way"] == "files")
    here = [r for r in lines if r["part"] == "scoring" and "workers" not in r]
    scores = [r for r in here if r["rows"] == epoch["rows"]]
    rows, columns, epochs = 10**9, 500, 15
    per_cell = epoch["epoch_cpu_seconds"] / epoch["rows"] / 31
    pack = max(scores, key=lambda r: r["networks"])
    per_score = pack["cpu_seconds"] / pack["rows"] / 31
    encoded = 4 * columns + 8
    for what, core_seconds in (
        ("one network, 15 epochs", per_cell * rows * columns * epochs),
        ("a default pack: 14 trainings of 12 epochs", per_cell * rows * columns * 14 * 12 * 0.75),
        (f"scores of a pack of {pack['networks']}", per_score * rows * columns),
    ):
        hours = core_seconds / 3600
        yield {
            "part": "plan",
            "what": what,
            "core_hours": round(hours),
            "machines_for_a_day": math.ceil(hours / 2 / 24),
            "encoded_tb": round(encoded * rows / 1e12, 1),
        }


def plan_table(records: list[Record]) -> str:
    lines = [
        "| 10⁹ rows × 500 columns | core hours | machines of two cores for a day |",
        "|---|--:|--:|",
    ]
    lines += [
        f"| {each['what']} | {each['core_hours']:,} | {each['machines_for_a_day']:,} |"
        for each in records
    ]
    return "\n".join(lines) + "\n"


PARTS = {
    "scoring": (scoring, scoring_table),
    "training": (training, training_table),
    "processes": (processes, processes_table),
    "plan": (plan, plan_table),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--dry", action="store_true", help="print, and write nothing")
    arguments = parser.parse_args()
    for part in arguments.parts:
        measure, make_table = PARTS[part]
        found = []
        with tempfile.TemporaryDirectory(prefix="fcorr-scale-") as folder:
            for record in measure(Path(folder), arguments.rows):
                print(json.dumps(record), flush=True)
                found.append(record)
        table = make_table(found)
        print(table)
        if not arguments.dry:
            old = RESULTS.read_text().splitlines() if RESULTS.exists() else []
            kept = [line for line in old if json.loads(line)["part"] != part]
            RESULTS.write_text("\n".join([*kept, *map(json.dumps, found)]) + "\n")
            (ROOT / "docs" / "tables" / f"scale_{part}.md").write_text(table)


if __name__ == "__main__":
    main()
