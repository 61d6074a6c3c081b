"""What is left on disk when a command is killed, or the disk is full: the old file or the new one.

Kills `fcorr train`, `fcorr predict` and `fcorr sweep` at random moments: over the whole run, and,
every second time, right after a change in the folder that they write to. Then every output must be
the old file or the new one to the byte, the same command must end as if nothing had happened, and
leave no other file behind. On a full disk a command must fail in one line, and leave what was
there. Run with ``make faults``; writes benchmarks/results/faults.json, and exits with 1 if anything
was broken.
"""

import argparse
import contextlib
import itertools
import json
import math
import os
import platform
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib.figure  # noqa: F401 - children are spared the import
import numpy as np
import pyarrow as pa
import pyarrow.csv
import torch

from fcorr import FCorrClassifier, __version__
from fcorr.cli import main as run_command_line
from fcorr.data import make_proxy_bias

RESULTS = Path(__file__).parent / "results" / "faults.json"
TABLE = Path(__file__).parent.parent / "docs" / "tables" / "faults.md"
COLUMNS = ("--target", "y", "--sensitive", "S", "--n-members", "1", "--quiet")
DONE = "done before the kill"  # and so no kill
WRITING = "killed while it wrote"
SHARES = {"train": 0.4, "predict": 0.3, "sweep": 0.3}  # of all kills


@dataclass
class Command:
    """A command, the folder that it writes to, and what there is before and after it."""

    arguments: list[str]
    folder: Path
    before: dict[str, bytes]
    after: dict[str, bytes] = field(default_factory=dict)
    seconds: float = math.inf
    n_changes: int = 0

    def measure(self) -> None:
        """Let it run to its end, twice: what it leaves must be the same both times."""
        for _ in range(2):
            self.reset()
            state, start = look_at(self.folder), time.perf_counter()
            child = start_child(self.arguments)
            self.n_changes = watch(self.folder, state, child[0])
            self.seconds = min(self.seconds, time.perf_counter() - start)
            code, said = wait_for(child)
            assert code == 0, said
            found = read_folder(self.folder)
            assert self.after in ({}, found), f"{self.arguments[0]} does not repeat itself"
            self.after = found

    def reset(self) -> None:
        self.folder.mkdir(exist_ok=True)
        for path in self.folder.iterdir():
            path.unlink()
        for name, content in self.before.items():
            (self.folder / name).write_bytes(content)


# ------------------------------------------------------------------------------ processes


def start_child(arguments: list[str], limit: int | None = None) -> tuple[int, int]:
    """Run the command line in a copy of this process, which has imported everything already.

    Returns the child, and a pipe with what it says.
    """
    sys.stdout.flush()
    said, speaker = os.pipe()
    child = os.fork()
    if child:
        os.close(speaker)
        return child, said
    code = 70
    try:
        os.dup2(speaker, 1)
        os.dup2(speaker, 2)
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        sys.argv = ["fcorr", *arguments]
        run_command_line()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    finally:
        sys.stdout.flush()
        os._exit(code)


def wait_for(child: tuple[int, int]) -> tuple[int, str]:
    """Return the exit code, negative for a signal, and what the command said."""
    with os.fdopen(child[1]) as said:
        text = said.read()
    return os.waitstatus_to_exitcode(os.waitpid(child[0], 0)[1]), text


def watch(folder: Path, state: list[tuple[str, int]], child: int, most: int | None = None) -> int:
    """Count changes in a folder since a state, until there are so many or a child ends."""
    n_changes = 0
    ended = os.WEXITED | os.WNOHANG | os.WNOWAIT  # look, and leave it to be waited for
    while n_changes != most and os.waitid(os.P_PID, child, ended) is None:
        if look_at(folder) != state:
            n_changes, state = n_changes + 1, look_at(folder)
        else:
            time.sleep(0.0002)
    return n_changes


def look_at(folder: Path) -> list[tuple[str, int]]:
    """Return names and sizes of a folder's files."""
    found = []
    for name in sorted(os.listdir(folder)):
        with contextlib.suppress(FileNotFoundError):
            found.append((name, (folder / name).stat().st_size))
    return found


def kill_at_random(command: Command, draw: random.Random, *, when_it_writes: bool) -> bool:
    """Start a command and kill it; False if it was done before."""
    n_changes, delay = draw.randint(1, command.n_changes), draw.uniform(0, 0.002)
    moment = draw.uniform(0, command.seconds)
    state, child = look_at(command.folder), start_child(command.arguments)
    if when_it_writes:
        watch(command.folder, state, child[0], n_changes)
        time.sleep(delay)
    else:
        time.sleep(moment)
    os.kill(child[0], signal.SIGKILL)  # a child that is done is still there to be waited for
    return wait_for(child)[0] == -signal.SIGKILL


# ------------------------------------------------------------------------------ what must hold


def read_folder(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, those of a sweep without the times that differ every time."""
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    found.pop("table.md", None)
    if "sweep.jsonl" in found:
        lines = found["sweep.jsonl"].splitlines()
        records = [json.loads(line) | {"seconds": None} for line in lines]
        found["sweep.jsonl"] = json.dumps(sorted(records, key=lambda r: r["key"])).encode()
    return found


def judge_outputs(command: Command) -> list[str]:
    """Name the outputs that are neither the old file nor the new one."""
    broken = []
    for name in {*command.before, *command.after} - {"sweep.jsonl"}:
        path = command.folder / name
        content = path.read_bytes() if path.exists() else None
        if content not in (command.before.get(name), command.after.get(name)):
            broken.append(name)
    return broken


def find_litter(command: Command) -> set[str]:
    """Return the names of files that are no outputs."""
    return {*os.listdir(command.folder)} - {*command.before, *command.after, "table.md"}


def try_kill(
    command: Command, draw: random.Random, *, when_it_writes: bool
) -> tuple[str, list[str]]:
    """Kill a command once; return how far it had come, and what was broken then."""
    command.reset()
    was_killed = kill_at_random(command, draw, when_it_writes=when_it_writes)
    problems = [f"{name} is neither old nor new" for name in judge_outputs(command)]
    litter, journal = find_litter(command), command.folder / "sweep.jsonl"
    if not was_killed:
        outcome = DONE
    elif litter:
        outcome = WRITING
    elif "sweep.jsonl" in command.after:
        n_runs = journal.read_bytes().count(b"\n") if journal.exists() else 0
        outcome = f"killed with {n_runs} run(s)"
    else:
        is_new = read_folder(command.folder) == command.after
        outcome = f"killed {'after' if is_new else 'before'} the new file was there"
    # The same command again: the end of a sweep, and what clears away the litter of a writer.
    if litter or "sweep.jsonl" in command.after:
        code, said = wait_for(start_child(command.arguments))
        left = find_litter(command)
        if code != 0:
            problems.append(f"the next run failed: {said.strip()}")
        elif left:
            problems.append(f"the next run left {sorted(left)}")
        elif read_folder(command.folder) != command.after:
            problems.append("the next run ended with something else")
    return outcome, problems


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    """Put a file system of some bytes in the place of a folder; needs root."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "faults", str(folder)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def try_full_disk(command: Command, share: float, *, mounted: bool) -> list[str]:
    """Run a command with room for a part of its largest new file; return what was broken."""
    room = int(share * max(len(content) for content in command.after.values()))
    in_pages = sum(-(-len(content) // 4096) * 4096 for content in command.before.values())
    size = in_pages + max(4096, room)
    with small_disk(command.folder, size) if mounted else contextlib.nullcontext():
        command.reset()
        code, said = wait_for(start_child(command.arguments, None if mounted else room))
        problems = [f"{name} is neither old nor new" for name in judge_outputs(command)]
        if code != 1 or "Traceback" in said or "error: " not in said:
            problems.append(f"exit code {code}: {said.strip()[-300:]}")
        if find_litter(command):
            problems.append(f"it left {sorted(find_litter(command))}")
    return problems


# ------------------------------------------------------------------------------ the whole


def make_commands(folder: Path) -> dict[str, Command]:
    """Make the data, the old outputs, and the commands that replace them."""
    table, y = make_proxy_bias(400, task="classification", random_state=0)
    data = folder / "data.csv"
    pyarrow.csv.write_csv(table.append_column("y", pa.array(y)), data)
    models = []
    for seed in (1, 2):
        models.append(folder / f"{seed}.safetensors")
        estimator = FCorrClassifier(sensitive="S", n_members=1, epochs=2, random_state=seed)
        estimator.fit(table, y).save(models[-1])
    places = {name: folder / name for name in SHARES}
    model, scores = places["train"] / "model.safetensors", places["predict"] / "scores.csv"
    train = [
        "train",
        str(data),
        *COLUMNS,
        "--epochs",
        "4",
        "--random-state",
        "2",
        "--output",
        str(model),
    ]
    predict = ["predict", str(models[1]), str(data), "--output", str(scores)]
    sweep = ["sweep", str(data), *COLUMNS, "--epochs", "8", "--car", "0", "--seeds", "2"]
    commands = {
        "train": Command(train, places["train"], {model.name: models[0].read_bytes()}),
        "predict": Command(predict, places["predict"], {scores.name: b"prediction\n0\n"}),
        "sweep": Command([*sweep, "--output", str(places["sweep"])], places["sweep"], {}),
    }
    for command in commands.values():
        command.measure()
    return commands


def main(n_kills: int, seed: int, say: Callable[[str], None] = print) -> dict:
    """Kill commands and fill disks; return the counts, and all that was broken."""
    torch.set_num_threads(1)  # a copy of a process has none of its threads
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        commands = make_commands(Path(temporary))
        runs: dict[str, Counter[str]] = {name: Counter() for name in commands}
        for name, command in commands.items():
            draw, n_left = random.Random(f"{seed} {name}"), round(n_kills * SHARES[name])
            for i in itertools.count():
                outcome, problems = try_kill(command, draw, when_it_writes=bool(i % 2))
                runs[name][outcome] += 1
                broken += [f"{name}, run {i} ({outcome}): {problem}" for problem in problems]
                n_left -= outcome != DONE
                if not n_left:
                    break
            say(f"{name}: {dict(runs[name])}")
        full: dict[str, list[str]] = {}
        can_mount = os.geteuid() == 0 and shutil.which("mount") is not None
        for name, command in commands.items():
            full[name] = []
            for mounted in (False, True)[: 1 + can_mount]:
                for share in (0.0, 0.5):
                    kind = "file system of its own" if mounted else "limit of file size"
                    problems = try_full_disk(command, share, mounted=mounted)
                    full[name].append(f"{kind}, room for {share:.0%}")
                    broken += [f"{name}, {full[name][-1]}: {problem}" for problem in problems]
        say(f"full disk: {full}")
    return {
        "seed": seed,
        "n_kills": sum(sum(counts.values()) - counts[DONE] for counts in runs.values()),
        "runs": {name: dict(sorted(counts.items())) for name, counts in runs.items()},
        "full_disk": full,
        "broken": broken,
        "versions": {
            "fcorr": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
    }


def write_table(found: dict) -> None:
    """Write the table of the docs: kills, how many fell into writing, full disks, what broke."""
    lines = ["| command | killed | of these while it wrote | full disks | broken |"]
    lines.append("|---|---|---|---|---|")
    for name, counts in found["runs"].items():
        killed = sum(counts.values()) - counts.get(DONE, 0)
        broken = sum(problem.startswith(f"{name},") for problem in found["broken"])
        cells = killed, counts.get(WRITING, 0), len(found["full_disk"][name]), broken
        lines.append(f"| `fcorr {name}` | {' | '.join(map(str, cells))} |")
    TABLE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    found = main(options.kills, options.seed)
    options.output.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    if options.output == RESULTS:
        write_table(found)
    for problem in found["broken"]:
        print(f"broken: {problem}", file=sys.stderr)
    print(f"{found['n_kills']} kills, {len(found['broken'])} problem(s), wrote {options.output}")
    sys.exit(bool(found["broken"]))
