"""Run the benchmark, and write its records, tables and plot.

``make bench-speed`` runs all of it, in about a quarter of an hour. ``--quick`` runs everything once
on few rows, to see that it works, and writes beside the results, not over them. ``--parts steps``
measures some parts again and keeps the records of the others: every ratio is one of figures that
were measured in the same part. ``--tables`` makes the tables and the plot from the records.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks.speed.measure import PARTS, Record, describe_setup
from benchmarks.speed.plan import FULL, QUICK, Plan
from benchmarks.speed.plot import cost_figure
from benchmarks.speed.tables import TABLES, Results
from fcorr.audit.displays import save_figure

ROOT = Path(__file__).parents[2]
# The kinds of records that each part makes.
KINDS = {
    "steps": ("step",),
    "memory": ("memory",),
    "scoring": ("scoring",),
    "epochs": ("encoding", "epoch", "lightgbm"),
    "scaling": ("scaling",),
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows, a smoke run")
    parser.add_argument("--tables", action="store_true", help="only tables and plot")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--output", type=Path, help="folder to write to, as if it were the clone")
    options = parser.parse_args(arguments)
    output = options.output or (ROOT / "build" / "speed-quick" if options.quick else ROOT)
    records_file = output / "benchmarks" / "results" / "speed.jsonl"
    if options.tables:
        records = read_records(records_file)
    else:
        kept = [] if set(options.parts) == set(PARTS) else read_records(records_file)
        kinds = {kind for part in options.parts for kind in KINDS[part]}
        records = run(QUICK if options.quick else FULL, options.parts)
        records += [r for r in kept if r["kind"] not in kinds | {"setup"}]
        records_file.parent.mkdir(parents=True, exist_ok=True)
        records_file.write_text("".join(json.dumps(record) + "\n" for record in records))
    write_documents(records, output)
    print((output / "docs" / "tables" / "speed_reach.md").read_text())


def run(plan: Plan, parts: list[str]) -> list[Record]:
    start = time.perf_counter()
    records = [describe_setup()]
    for part in parts:
        for record in PARTS[part](plan):
            records.append(record)
            print(f"{time.perf_counter() - start:5.0f} s", json.dumps(record), file=sys.stderr)
    return records


def read_records(path: Path) -> list[Record]:
    """Read the records; there are none before the first run."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write_documents(records: list[Record], output: Path) -> None:
    tables, plots = output / "docs" / "tables", output / "docs" / "speed"
    for folder in (tables, plots):
        folder.mkdir(parents=True, exist_ok=True)
    results = Results(records)
    for name, make_table in TABLES.items():
        (tables / f"{name}.md").write_text(make_table(results))
    save_figure(cost_figure(results), plots / "cost.svg")


if __name__ == "__main__":
    main()
