"""Would a test notice? A sample of small changes to the code, each against the tests of its room.

cosmic-ray makes the changes (an operator exchanged, a number moved by one, a condition turned
round), one at a time, in copies of the sources. The score is the share that some test notices. Run
with ``make mutation``; writes benchmarks/results/mutation.jsonl, with the changes that nothing
noticed, and docs/tables/mutation.md. Of the rooms that are not asked for the records are kept.

    python benchmarks/mutation.py [--mutants 25] [--room CAR] [--seed 0]
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db

HERE = Path(__file__).parent
ROOT = HERE.parent
TIMEOUT = 600.0  # seconds: a change that makes the tests run for ever has been noticed

# Files of each room, and the tests that each is held against, by the first entry that it is in;
# {} is the file's name.
ROOMS = {
    "metrics": {
        "src/fcorr/metrics/insurance.py": "tests/metrics/test_insurance.py",
        "src/fcorr/metrics/sharing.py": "tests/estimators/test_reading.py",
        "src/fcorr/metrics/[!_]*.py": "tests/metrics/test_{}.py tests/metrics/test_invariants.py",
        "src/fcorr/metrics/_checks.py": "tests/metrics/test_checks.py",
    },
    "CAR": {"src/fcorr/nn/car.py": "tests/nn/test_car.py"},
    "exactness": {
        "src/fcorr/certify.py": "tests/certify",
        "src/fcorr/estimators/invariance.py": "tests/estimators/test_invariance.py",
    },
    "objective, balance": {
        "src/fcorr/training/objective.py": "tests/training/test_objective.py",
    },
    "encoding": {
        "src/fcorr/data/encode.py": (
            "tests/data/test_schema.py tests/data/test_encode.py tests/data/test_ratings.py"
        ),
    },
}
# Exchanged in the annotation ``int | None`` it is no change of what the code does.
LEFT_OUT = ("core/ReplaceBinaryOperator_BitOr", "core/RemoveDecorator")


def list_changes(files: dict[str, str]) -> list[tuple[Any, str]]:
    """List every change that could be made to some files, each with its tests."""
    changes: list[tuple[Any, str]] = []
    known: set[Path] = set()
    for pattern, tests in files.items():
        for path in sorted(set(ROOT.glob(pattern)) - known):
            known.add(path)
            with (
                tempfile.TemporaryDirectory() as folder,
                use_db(f"{folder}/work", WorkDB.Mode.create) as db,
            ):
                init([path.relative_to(ROOT)], db, {})
                mutations = sorted((item.mutations for item in db.work_items), key=str)
            changes += [(each, tests.format(path.stem)) for each in mutations]
    return [each for each in changes if not each[0][0].operator_name.startswith(LEFT_OUT)]


def prepare(parent: str) -> None:
    """Give a process a copy of the sources of its own, which it changes."""
    folder = Path(tempfile.mkdtemp(dir=parent))
    for name in ("src", "tests", "benchmarks", "paper", "pyproject.toml", "README.md"):
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, folder / name)
    os.chdir(folder)
    os.environ |= {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}


def command(tests: str) -> str:
    return f"{sys.executable} -m pytest -x -q -p no:cacheprovider {tests}"


def passes(tests: str) -> bool:
    """Whether the tests pass as the sources are: else every change would count as noticed."""
    return subprocess.run(command(tests), shell=True, stdout=subprocess.DEVNULL).returncode == 0


def try_change(mutations: Any, tests: str) -> dict[str, str]:
    """Run the tests with a change made."""
    result = mutate_and_test(mutations, command(tests), TIMEOUT)
    outcome = "unchanged" if result.test_outcome is None else result.test_outcome.value
    return {"outcome": outcome, "change": result.diff or "", "operator": mutations[0].operator_name}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutants", type=int, default=25, help="for each room")
    parser.add_argument("--room", action="append", choices=ROOMS, help="by default all")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    os.chdir(ROOT)
    results = HERE / "results" / "mutation.jsonl"
    records = {each["room"]: each for each in map(json.loads, results.read_text().splitlines())}
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(os.cpu_count(), initializer=prepare, initargs=(folder,)) as pool,
    ):
        for room in arguments.room or ROOMS:
            possible = list_changes(ROOMS[room])
            size = min(arguments.mutants, len(possible))
            sample = random.Random(f"{arguments.seed} {room}").sample(possible, size)
            for tests in sorted({tests for _, tests in sample}):
                if not pool.submit(passes, tests).result():
                    sys.exit(f"error: {tests} must pass before changes are made")
            found = list(pool.map(try_change, *zip(*sample, strict=True)))
            noticed = sum(each["outcome"] != "survived" for each in found)
            survivors = [each["change"] for each in found if each["outcome"] == "survived"]
            records[room] = {"room": room, "possible": len(possible), "tried": size}
            records[room] |= {"noticed": noticed, "seed": arguments.seed, "unnoticed": survivors}
            print(f"{room}: {noticed} of {size} noticed, of {len(possible)} possible", flush=True)
            for change in survivors if arguments.room else ():
                print(change)
    known = [records[room] for room in ROOMS if room in records]
    results.write_text("".join(json.dumps(record) + "\n" for record in known))
    lines = ["| room | changes possible | tried | noticed |", "|---|---|---|---|"]
    for r in known:
        share = f"{r['noticed']} ({r['noticed'] / r['tried']:.0%})"
        lines.append(f"| {r['room']} | {r['possible']:,} | {r['tried']} | {share} |")
    (ROOT / "docs" / "tables" / "mutation.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
