"""Which lines and branches of the library the tests run, room by room.

Run with ``make coverage``; writes benchmarks/results/coverage.json and docs/tables/coverage.md, and
ends with an error below 90 % of the branches. The kernels are left out: numba compiles them, and
what is compiled is not seen.
"""

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
LEAST = 0.9  # share of the branches


def measure() -> dict[str, dict[str, int]]:
    """Run the tests; return counts of lines and branches, and of those that ran, by room."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        options = ["--cov=fcorr", "--cov-branch", f"--cov-report=json:{report}"]
        command = [sys.executable, "-m", "pytest", "--numprocesses", "2", *options]
        subprocess.run(command, cwd=ROOT, check=True)
        files = json.loads(report.read_text())["files"]
    rooms: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for name, file in files.items():
        parts = Path(name).parts
        within = parts[parts.index("fcorr") + 1 :]
        if "kernels" in within:
            continue
        for counts in (rooms[within[0].removesuffix(".py")], rooms["all"]):
            counts["lines"] += file["summary"]["num_statements"]
            counts["lines run"] += file["summary"]["covered_lines"]
            counts["branches"] += file["summary"]["num_branches"]
            counts["branches run"] += file["summary"]["covered_branches"]
    return rooms


def main() -> None:
    rooms = measure()
    (ROOT / "benchmarks" / "results" / "coverage.json").write_text(
        json.dumps(rooms, indent=1) + "\n"
    )
    lines = ["| room | lines | run | branches | run |", "|---|---|---|---|---|"]
    for name in [*sorted(set(rooms) - {"all"}), "all"]:
        counts = rooms[name]
        cells = []
        for kind in ("lines", "branches"):
            share = counts[f"{kind} run"] / counts[kind] if counts[kind] else 1.0
            cells += [f"{counts[kind]:,}", f"{share:.1%}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    (ROOT / "docs" / "tables" / "coverage.md").write_text("\n".join(lines) + "\n")
    share = rooms["all"]["branches run"] / rooms["all"]["branches"]
    if share < LEAST:
        sys.exit(f"error: the tests run {share:.1%} of the branches, fewer than {LEAST:.0%}")


if __name__ == "__main__":
    main()
