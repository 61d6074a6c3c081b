"""Tables as text: columns of names and of numbers, and what LaTeX would misread."""

import re

import pytest

from fcorr.audit.tables import TextTable, escape_latex

TABLE = TextTable(
    ["Subset", "Model", "AUROC"],
    [["train", "FCorr", "0.7 ± 0.1"], ["test", "FCorr + CAR", "0.65"]],
)


def test_names_stand_left_and_numbers_right():
    assert TABLE.text(n_labels=2).splitlines() == [
        "Subset  Model            AUROC",
        "train   FCorr        0.7 ± 0.1",
        "test    FCorr + CAR       0.65",
    ]
    assert TABLE.markdown(n_labels=2).splitlines()[1] == "| --- | --- | ---: |"
    assert TABLE.latex(n_labels=2).startswith(
        "\\begin{tabular}{llr}\n\\toprule\nSubset & Model & AUROC \\\\\n"
    )


def test_a_table_has_one_column_of_names_unless_told():
    assert TextTable(["", "a", "b"], []).markdown().splitlines()[1] == "| --- | ---: | ---: |"
    assert "{lrr}" in TextTable(["", "a", "b"], []).latex()


@pytest.mark.parametrize("symbol", list("\\&%$#_{}~^<>[") + list("±λρ×−–…≈≤≥→∞÷§"))
def test_latex_gets_neither_commands_nor_symbols_it_lacks(symbol):
    escaped = escape_latex(f"a{symbol}b")
    assert escaped.startswith("a")
    assert escaped.endswith("b")
    assert escaped.isascii()
    assert escaped != f"a{symbol}b"


def test_latex_rows_have_a_cell_for_each_column():
    table = TextTable(["R&D", "100 %"], [["a & b_1", "#3 {x}"], ["c", "−1 [2 of 5]"]])
    for line in table.latex().splitlines():
        if line.endswith("\\\\"):
            assert len(re.findall(r"(?<!\\)&", line)) == 1
    assert r"R\&D & 100 \% \\" in table.latex()
    assert r"c & $-$1 {[}2 of 5] \\" in table.latex()
