"""Tables as text: columns of names and of numbers."""

from fcorr.audit.tables import TextTable

TABLE = TextTable(["Model", "AUROC"], [["FCorr", "0.7 ± 0.1"], ["a|b + CAR", "0.65"]])


def test_names_stand_left_and_numbers_right():
    assert TABLE.text().splitlines() == [
        "Model          AUROC",
        "FCorr      0.7 ± 0.1",
        "a|b + CAR       0.65",
    ]
    assert TextTable(["", "a", "b"], []).markdown().splitlines()[1] == "| --- | ---: | ---: |"


def test_a_bar_does_not_end_a_cell():
    assert TABLE.markdown().splitlines()[-1] == "| a\\|b + CAR | 0.65 |"
