"""Peak memory of a training step, each model in a process of its own.

What counts is what the operating system had to provide: the largest resident memory (VmHWM) in
three steps, above the resident memory (VmRSS) just before the first. The kernel's high-water mark
is set back between the two. Counting torch's allocations instead would miss what other libraries
and compiled kernels allocate, and what the allocator cannot reuse.

Before, a throwaway copy of the model takes two steps on a few rows, so that code, thread pools and
compiled kernels are loaded; then it is dropped and free heap pages are given back, so that the
steps cannot hide in memory that was already resident. The model's weights and the batches are not
counted (they are there before); gradients, the optimiser's state and what backward needs are.

Needs Linux. ``python -m benchmarks.speed.memory DATA MODEL ROWS`` prints the bytes as JSON.
"""

import ctypes
import gc
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_N_STEPS = 3
_N_WARM_UP_ROWS = 2


def peak_of(data_file: Path, model: str, n_rows: int) -> int:
    """Measure in a new process; return bytes.

    Raises
    ------
    MemoryError
        If the process did not survive.
    """
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.speed.memory", data_file, model, str(n_rows)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode < 0:
        raise MemoryError(f"the process was ended by signal {-run.returncode}")
    if run.returncode:
        raise RuntimeError(run.stderr)
    return json.loads(run.stdout)["peak_bytes"]


def measure_here(data_file: Path, model: str, n_rows: int) -> int:
    """Measure in this process, which should have done nothing else."""
    from benchmarks.speed.data import Data
    from benchmarks.speed.models import make_step

    data = Data.load(data_file)
    warm_up = make_step(model, data, _N_WARM_UP_ROWS)
    for _ in range(2):
        warm_up.run()
    step = make_step(model, data, n_rows)
    del warm_up
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts again at VmRSS
    before = _status("VmRSS")
    for _ in range(_N_STEPS):
        step.run()
    return _status("VmHWM") - before


def _status(field: str) -> int:
    text = Path("/proc/self/status").read_text()
    match = re.search(rf"^{field}:\s+(\d+) kB", text, re.MULTILINE)
    if match is None:
        raise RuntimeError(f"/proc/self/status has no {field}: peak memory needs Linux")
    return 1024 * int(match[1])


if __name__ == "__main__":
    peak = measure_here(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    print(json.dumps({"peak_bytes": peak}))
