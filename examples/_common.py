"""What the example scripts share: their two options, and writing a table and figures."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from fcorr.audit.displays import Display, save_figure


def parse_arguments(description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--output", type=Path, default=Path("figures"), help="folder for figures")
    parser.add_argument("--rows", type=int, help="use the first rows only, for a quick run")
    return parser.parse_args()


def show(name: str, output: Path, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table, and write it to the output folder."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    text = "".join(f"| {' | '.join(str(cell) for cell in line)} |\n" for line in lines)
    print(text)
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{name}.md").write_text(text, encoding="utf-8")
    print(f"wrote {output / name}.md")


def save(display: Display, path: Path) -> None:
    save_figure(display.figure_, path)
    print(f"wrote {path}")
