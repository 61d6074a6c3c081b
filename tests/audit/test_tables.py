"""Tables as text: whatever is in a cell stays in it."""

import pytest

from fcorr._core import text_table
from fcorr.audit.page import TextTable


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("a|b", r"a\|b"),
        ("a\\|b", r"a\\\|b"),
        ("two\nlines", r"two\\nlines"),
        ("<script>", r"\<script>"),
        ("[here](http://x)", r"\[here](http://x)"),
        ("`x`", r"\`x\`"),
        ("naïve [km]", r"naïve \[km]"),
    ],
)
def test_markdown(name, cell):
    table = TextTable([name, "n"], [[name, "1"]])
    assert table.markdown() == f"| {cell} | n |\n| --- | ---: |\n| {cell} | 1 |\n"


def test_text():
    table = text_table("", ["", "n"], [["a\x1b[2J\nb", "1"], ["c", "10"]])
    assert table.splitlines() == [
        "                n",
        r"a\u001b[2J\nb   1",
        "c              10",
    ]
