"""Copy the tables that commands made into documents, between the comments that name their files."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = re.compile(r"(<!-- \w+ table: (\S+) -->\n)(.*?)(<!-- end of \w+ table -->)", re.DOTALL)


def with_tables(text: str) -> str:
    return TABLE.sub(lambda m: f"{m[1]}\n{(ROOT / m[2]).read_text()}\n{m[4]}", text)


if __name__ == "__main__":
    for document in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        document.write_text(with_tables(document.read_text()))
