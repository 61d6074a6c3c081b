"""The first minute: the import, README's first snippet, cold and warm, and a longer fit.

Run with ``make bench-first``, on a machine that has nothing else to do: wall time is what counts,
CPU seconds are beside it. Cold is an empty folder of compiled kernels, as after an install. Every
part is a process of its own. The snippet's model file has to be the same to the byte, cold and
warm. Writes benchmarks/results/first_fit.jsonl and docs/tables/first_fit.md.
"""

import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.tables import HERE, to_markdown

ROOT = HERE.parent
# What Python takes to end, half a second with torch, is no part of an import.
END = "; import os; os._exit(0)"
IMPORT = "from fcorr import FCorrClassifier" + END
PACKAGES = "import torch, sklearn.base" + END  # without which there is no estimator
LONG = """
import numpy as np, pandas as pd
from fcorr import FCorrClassifier
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(30_000, 8))).add_prefix("number")
for k in range(6):
    X[f"category{k}"] = rng.choice([f"level{c}" for c in range(3 * k + 2)], len(X))
outcome = np.sin(2 * X["number0"]) + X["number1"] * (X["category0"] == "level1") + X["number2"]
y = (outcome + rng.logistic(size=len(X)) > 1).astype(int)
FCorrClassifier(sensitive="category1", random_state=0).fit(X, y)
"""


def first_snippet() -> str:
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]


def measure(program: str, folder: Path, kernels: Path) -> dict[str, float]:
    """Run a program; return seconds by the clock, and of all its threads."""
    # As after an install: all cores, and Python keeps the bytecode of what it has compiled.
    left_out = ("OMP_NUM_THREADS", "PYTHONDONTWRITEBYTECODE")
    environment = {name: v for name, v in os.environ.items() if name not in left_out}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment | {"NUMBA_CACHE_DIR": str(kernels)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "cpu_seconds": used}


def main() -> None:
    snippet, digests = first_snippet(), set()
    records = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        measure(IMPORT, folder, folder / "kernels")  # files into memory, bytecode made
        for part, program in {
            "import of the estimators": IMPORT,
            "of torch and scikit-learn alone": PACKAGES,
            "first snippet, cold": snippet,
            "first snippet, warm": snippet,
            "default fit of 30,000 rows, 14 columns": LONG,
        }.items():
            records.append({"part": part, **measure(program, folder, folder / "kernels")})
            model = folder / "model.safetensors"
            if model.exists():
                digests.add(hashlib.sha256(model.read_bytes()).hexdigest())
                model.unlink()
    assert len(digests) == 1, "the model depends on whether kernels had been compiled"
    settings = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 2)}
    results = HERE / "results" / "first_fit.jsonl"
    results.write_text("".join(json.dumps(r | settings) + "\n" for r in records))
    rows = [[r["part"], f"{r['seconds']:.1f}", f"{r['cpu_seconds']:.1f}"] for r in records]
    head = [f"{settings['cores']} cores", "seconds", "CPU seconds"]
    text = to_markdown(head, rows)
    (ROOT / "docs" / "tables" / "first_fit.md").write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
