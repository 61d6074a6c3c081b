"""Damaged files for everything that reads one: each is refused in plain words, or read as it was.

Every input is made from a good one by a few random changes (bits, bytes, pieces cut out, repeated
or exchanged, numbers replaced by extreme ones); a seed and a number name it. A model file is
changed in its bytes, and in header and weights before it is written, so that its digest is right.
Run with ``make fuzz``; writes benchmarks/results/fuzz.jsonl and docs/tables/fuzz.md, and ends with
an error if anything but a refusal was raised, a process died, or a prediction is not finite.

    python benchmarks/fuzz.py [--inputs 100000] [--reader CSV] [--seed 0] [--output FILE]
"""

import argparse
import copy
import gzip
import io
import json
import math
import os
import random
import re
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import torch

from fcorr import FCorrClassifier, load
from fcorr._core import InvalidInputError, ModelFileError, to_plain
from fcorr.audit.report import read_limits
from fcorr.data.files import read_file
from fcorr.data.schema import Schema
from fcorr.estimators import model_file
from fcorr.search.sweep import append_record, read_records
from fcorr.training.checkpoint import Checkpoint, write_tensors
from fcorr.training.pack import SINGLE, Trained

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS = HERE.resolve() / "results" / "fuzz.jsonl"
BATCH = 500  # inputs that one process takes: a crash costs the rest of them
EDITED = "model file, edited with its digest made right"
SLOW = 20.0  # seconds that one input may take

LIMITS = b"""[adverse_impact_ratio]
min = 0.8
source = "29 CFR 1607.4 D"

[largest_change]
max = 0
source = "policy 4.2"
"""
EXTREME = ["NaN", "1e999", "-1", "0", "9" * 40, "null", '""', "[]", "{}", "true", "-0.0", "1e-400"]
TOKEN = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null")


@dataclass
class Tally:
    """What became of the inputs of one reader."""

    reader: str
    inputs: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0


# ------------------------------------------------------------------------------ changes


def change_bytes(content: bytes, rng: random.Random) -> bytes:
    """Change a file in one to four places."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if not data:
            break
        at, size = rng.randrange(len(data)), rng.choice((1, 2, 8, 64, 512))
        piece = data[at : at + size]
        kind = rng.randrange(8)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at : at + len(piece)] = rng.randbytes(len(piece))
        elif kind == 2:
            del data[at : at + size]
        elif kind == 3:
            data[at:at] = piece * rng.choice((1, 2, 50))
        elif kind == 4:
            del data[at:]
        elif kind == 5:
            other = rng.randrange(len(data))
            data[other : other + len(piece)] = piece
        elif kind == 6:
            data[at:at] = rng.choice((b"\0", b"\xff\xfe", b"\r\n", b'"', b",", b";", b"\x1b[31m"))
        else:
            tokens = list(TOKEN.finditer(bytes(data)))
            if tokens:
                token = rng.choice(tokens)
                data[token.start() : token.end()] = rng.choice(EXTREME).encode()
    return bytes(data)


def change_plain(value: Any, rng: random.Random) -> Any:
    """Change plain data of dicts, lists, text and numbers in one place."""
    if isinstance(value, dict) and value and rng.random() < 0.95:
        key = rng.choice(list(value))
        changed = dict(value)
        if rng.random() < 0.1:
            del changed[key]
        else:
            changed[key] = change_plain(value[key], rng)
        return changed
    if isinstance(value, list) and value and rng.random() < 0.9:
        changed, at = list(value), rng.randrange(len(value))
        kind = rng.randrange(4)
        if kind == 0:
            del changed[at]
        elif kind == 1:
            changed.insert(at, changed[rng.randrange(len(changed))])
        elif kind == 2:
            rng.shuffle(changed)
        else:
            changed[at] = change_plain(changed[at], rng)
        return changed
    replacements = [None, True, -1, 0, 1, 2**70, 1e308, math.nan, math.inf, "", "x" * 300, [], {}]
    return rng.choice([*replacements, value])


def change_tensors(tensors: dict[str, torch.Tensor], rng: random.Random) -> dict[str, torch.Tensor]:
    """Change one tensor: an entry, its order, its shape, its precision, or leave it out."""
    changed, name = dict(tensors), rng.choice(list(tensors))
    tensor, kind = tensors[name].clone(), rng.randrange(6)
    if kind == 0:
        del changed[name]
        return changed
    if kind == 1 and tensor.numel():
        entry = rng.choice((math.nan, math.inf, -math.inf, 1e38, -1e38, 0.0, -1.0))
        tensor.view(-1)[rng.randrange(tensor.numel())] = entry
    elif kind == 2:
        tensor = tensor.flip(-1)
    elif kind == 3:
        tensor = tensor[:-1] if tensor.ndim else tensor[None]
    elif kind == 4:
        tensor = tensor.to(rng.choice((torch.float64, torch.float16, torch.int64)))
    else:
        tensor = torch.zeros_like(tensor)
    changed[name] = tensor.contiguous()
    return changed


# ------------------------------------------------------------------------------ readers


def make_table(n_rows: int = 60) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "sex": rng.choice(["f", "m"], n_rows),
            "job": rng.choice(["clerk", "nürse", "pilot"], n_rows),
            "age": rng.integers(18, 80, n_rows),
            "income": rng.lognormal(3, 1, n_rows).round(2),
            "since": pa.array(np.datetime64("2020-01-01") + rng.integers(0, 900, n_rows)),
        }
    )


def make_model(table: pa.Table, invariance: str) -> FCorrClassifier:
    y = np.arange(table.num_rows) % 2
    model = FCorrClassifier(
        sensitive="sex", invariance=invariance, n_members=2, head=(8,), epochs=1, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one epoch is no training
        return model.fit(table, y)


class Readers:
    """Good content of each kind of file, and what reads it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table = make_table()
        self.models = [make_model(self.table, how) for how in ("adapt", "marginal")]
        self.expected = [model.predict_proba(self.table) for model in self.models]
        self.parts = []
        for model in self.models:
            path = folder / "good.safetensors"
            model.save(path)
            self.parts.append((path.read_bytes(), *model_file._read(path)))
        csv, parquet = io.BytesIO(), io.BytesIO()
        pa_csv.write_csv(self.table, csv)
        pa_parquet.write_table(self.table, parquet)
        self.csv, self.parquet = csv.getvalue(), parquet.getvalue()
        self.schema = json.dumps(self.models[0].schema_.to_dict())
        self.journal = self._make_journal()
        self.checkpoint = Checkpoint(folder / f"members-{os.getpid()}", {})
        network = self.models[0].model_.members[0]
        self.member = Trained(network, self.models[0].history_, torch.zeros(3, 1))
        self.checkpoint.keep(SINGLE, 0, self.member)
        self.kept = self.checkpoint._path(SINGLE, 0).read_bytes()

    def _make_journal(self) -> bytes:
        example = (ROOT / "benchmarks" / "results" / "sweep.jsonl").read_bytes()
        return b"".join(example.splitlines(keepends=True)[:3])

    def names(self) -> dict[str, Callable[[random.Random, Path], str]]:
        return {
            "model file": self.read_model,
            EDITED: self.read_edited_model,
            "CSV": partial(self.read_table, self.csv, ".csv"),
            "CSV, gzipped": partial(self.read_table, gzip.compress(self.csv, 1), ".csv.gz"),
            "Parquet": partial(self.read_table, self.parquet, ".parquet"),
            "schema": self.read_schema,
            "sweep's journal": self.read_journal,
            "limits of an audit": self.read_limits,
            "member of a checkpoint": self.read_member,
        }

    def read_model(self, rng: random.Random, path: Path) -> str:
        which = rng.randrange(2)
        path.write_bytes(change_bytes(self.parts[which][0], rng))
        return self._load(path, which, same=True)

    def read_edited_model(self, rng: random.Random, path: Path) -> str:
        which = rng.randrange(2)
        _, header, tensors = self.parts[which]
        if rng.random() < 0.5:
            header = change_plain(header, rng)
        else:
            tensors = change_tensors(tensors, rng)
        if not isinstance(header, dict):
            return "not a header"
        write_tensors(path, header, tensors)
        return self._load(path, which, same=False)

    def _load(self, path: Path, which: int, *, same: bool) -> str:
        try:
            model = load(path)
        except ModelFileError:
            return "refused"
        try:
            found = model.predict_proba(self.table)
        except InvalidInputError:  # a schema that asks for other columns
            return "refused the table"
        if not np.isfinite(found).all():
            raise AssertionError("predictions are not finite")
        if same and not np.array_equal(found, self.expected[which]):
            raise AssertionError("a damaged file gives other predictions")
        return "read"

    def read_table(self, content: bytes, ending: str, rng: random.Random, path: Path) -> str:
        path = path.with_suffix(ending)
        path.write_bytes(change_bytes(content, rng))
        try:
            table = read_file(path)
        except InvalidInputError:
            return "refused"
        finally:
            path.unlink()
        if rng.random() < 0.1:
            try:
                found = self.models[0].predict_proba(table)
            except InvalidInputError:
                return "refused the table"
            if not np.isfinite(found).all():
                raise AssertionError("predictions are not finite")
        return "read"

    def read_schema(self, rng: random.Random, path: Path) -> str:
        if rng.random() < 0.5:
            text = json.dumps(change_plain(json.loads(self.schema), rng))
        else:
            text = change_bytes(self.schema.encode(), rng).decode(errors="replace")
        try:
            plain = json.loads(text)
        except (ValueError, RecursionError):
            return "refused"
        try:
            schema = Schema.from_dict(plain)
        except InvalidInputError:
            return "refused"
        if (
            Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) != schema
            and "NaN" not in text
        ):
            raise AssertionError("a schema does not survive being written")
        try:
            schema.diff(self.table)
        except InvalidInputError:
            return "refused the table"
        return "read"

    def read_journal(self, rng: random.Random, path: Path) -> str:
        path.write_bytes(change_bytes(self.journal, rng))
        try:
            records = read_records(path)
        except InvalidInputError:
            return "refused"
        for record in records:
            append_record(path, to_plain(record))
        return "read"

    def read_limits(self, rng: random.Random, path: Path) -> str:
        path.write_bytes(change_bytes(LIMITS, rng))
        try:
            limits = read_limits(path)
        except InvalidInputError:
            return "refused"
        if not all(each["source"] for each in limits.values()):
            raise AssertionError("a limit has no source")
        return "read"

    def read_member(self, rng: random.Random, path: Path) -> str:
        member = Checkpoint(self.folder / f"members-{os.getpid()}", {})
        member._path(SINGLE, 0).write_bytes(change_bytes(self.kept, rng))
        found = member.recall(SINGLE, 0, lambda: copy.deepcopy(self.models[0].model_.members[0]))
        if found is None:
            return "refused"
        before, after = (each.model.state_dict() for each in (self.member, found))
        if not all(torch.equal(before[name], after[name]) for name in before):
            raise AssertionError("a damaged file gives another network")
        return "read"


# ------------------------------------------------------------------------------ running


def run_batch(
    readers: Readers, reader: str, seed: int, first: int, last: int, connection: Any
) -> None:
    """Read some inputs and send what became of each: if the process dies, the number is known."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    read = readers.names()[reader]
    path = readers.folder / f"input-{os.getpid()}"
    for number in range(first, last):
        start = time.perf_counter()
        try:
            outcome, failure = read(random.Random(f"{seed} {reader} {number}"), path), None
        except Exception as error:
            outcome, failure = "failed", f"{type(error).__name__}: {str(error)[:200]}"
        if time.perf_counter() - start > SLOW:
            outcome, failure = "failed", "took too long"
        connection.send((number, outcome, failure))
    connection.close()


def run_reader(readers: Readers, reader: str, seed: int, n_inputs: int) -> Tally:
    """Spread the inputs over two processes at a time, forked so that nothing is imported again."""
    tally, context, start = Tally(reader), get_context("fork"), time.perf_counter()
    waiting = [(i, min(i + BATCH, n_inputs)) for i in range(0, n_inputs, BATCH)][::-1]
    running: dict[Any, tuple[Any, int, int]] = {}
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            first, last = waiting.pop()
            receiver, sender = context.Pipe(duplex=False)
            arguments = (readers, reader, seed, first, last, sender)
            process = context.Process(target=run_batch, args=arguments, daemon=True)
            process.start()
            sender.close()
            running[receiver] = (process, first, last)
        for receiver in list(running):
            process, next_, last = running[receiver]
            died = False
            try:
                while receiver.poll(0.02):
                    number, outcome, failure = receiver.recv()
                    next_ = number + 1
                    tally.inputs += 1
                    tally.outcomes[outcome] += 1
                    if failure:
                        tally.failures.append(f"{seed} {reader} {number}: {failure}")
            except EOFError:
                process.join()
                died = next_ < last
                del running[receiver]
            else:
                running[receiver] = (process, next_, last)
            if died:
                tally.inputs += 1
                tally.outcomes["failed"] += 1
                tally.failures.append(f"{seed} {reader} {next_}: process ended {process.exitcode}")
                if next_ + 1 < last:
                    waiting.append((next_ + 1, last))
    tally.seconds = round(time.perf_counter() - start, 1)
    return tally


def write_table(tallies: list[dict[str, Any]]) -> None:
    lines = ["| file | inputs | refused | read | failed |", "|---|---|---|---|---|"]
    for tally in tallies:
        outcomes = tally["outcomes"]
        refused = sum(n for name, n in outcomes.items() if name.startswith(("refused", "not")))
        counts = tally["inputs"], refused, outcomes.get("read", 0), outcomes.get("failed", 0)
        lines.append(f"| {tally['reader']} | {' | '.join(f'{n:,}' for n in counts)} |")
    (ROOT / "docs" / "tables" / "fuzz.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=100_000, help="for each kind of file")
    parser.add_argument("--reader", action="append", help="by default all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="file whose lines on these readers to replace")
    arguments = parser.parse_args()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    tallies = []
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        readers = Readers(Path(folder))
        for reader in arguments.reader or readers.names():
            # Edits with the right digest take long: the network is built and tried for each.
            n_inputs = arguments.inputs // (5 if reader == EDITED else 1)
            tally = run_reader(readers, reader, arguments.seed, n_inputs)
            tallies.append(vars(tally) | {"outcomes": dict(tally.outcomes)})
            print(f"{reader}: {tally.inputs} inputs in {tally.seconds} s, {dict(tally.outcomes)}")
            for failure in tally.failures[:10]:
                print(f"  {failure}")
    if arguments.output is not None:
        earlier = arguments.output.read_text().splitlines() if arguments.output.exists() else []
        known = {tally["reader"]: tally for tally in map(json.loads, earlier)}
        known |= {tally["reader"]: tally for tally in tallies}
        arguments.output.write_text("".join(json.dumps(tally) + "\n" for tally in known.values()))
        if arguments.output.resolve() == RESULTS:
            write_table(list(known.values()))
    if any(tally["failures"] for tally in tallies):
        sys.exit("error: some inputs were neither refused nor read; see above")


if __name__ == "__main__":
    main()
