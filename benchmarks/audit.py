"""How long an audit takes, and in how much memory: a million rows, 31 features, nine categories.

The model is a default pack, trained on fewer rows. Writes benchmarks/results/audit.jsonl; the page
is opened in Chromium, where it is installed. Run with ``python -m benchmarks.audit``.
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from fcorr import FCorrClassifier, audit_model
from paper.generators import make_bank_fraud

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--train-rows", type=int, default=20_000)
    parser.add_argument("--members", type=int, default=0, help="networks of the pack; 0 for auto")
    parser.add_argument("--invariance", choices=["adapt", "none"], default="adapt")
    arguments = parser.parse_args()
    X, y = make_bank_fraud(arguments.train_rows, random_state=0)
    X = X.to_pandas()
    invariance = None if arguments.invariance == "none" else arguments.invariance
    options = {"n_members": arguments.members or "auto", "invariance": invariance}
    model = FCorrClassifier(sensitive="customer_age", random_state=0, **options).fit(X, y)
    X, y = make_bank_fraud(arguments.rows, random_state=1)
    X = X.to_pandas()
    start, before = time.perf_counter(), time.process_time()
    found = audit_model(model, X, y, n_resamples=200, verbose=True)
    measured, cpu = time.perf_counter(), time.process_time() - before
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        found.to_html(page)
        written = time.perf_counter()
        record = {
            "rows": arguments.rows,
            "features": X.shape[1],
            "categories": len(found.summary["flips"]["categories"]),
            "flipped_rows": found.summary["flips"]["n"],
            "members": found.summary["model"]["members"],
            "invariance": arguments.invariance,
            "seconds": round(measured - start, 1),
            "cpu_seconds": round(cpu, 1),
            "seconds_page": round(written - measured, 1),
            "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
            "page_mb": page.stat().st_size / 1e6,
            "ready_ms": ready(page),
        }
    line = json.dumps(record)
    print(line)
    with (HERE / "results" / "audit.jsonl").open("a") as file:
        file.write(line + "\n")


def ready(page: Path) -> float | None:
    """Return how long the page takes to load, its script included, in milliseconds."""
    sys.path.insert(0, str(HERE.parent))
    from tests.audit.browser import CHROMIUM, Browser

    if CHROMIUM is None:
        return None
    with Browser() as browser:
        timing = "performance.timing.loadEventEnd - performance.timing.navigationStart"
        return browser.open(page).run(timing)


if __name__ == "__main__":
    main()
