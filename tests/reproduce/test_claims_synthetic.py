"""Verdicts on the synthetic data, from matrices made up for both sides."""

import pytest

from fcorr.reproduce.report.claims import Verdict

FLIPS = ("AvgIF", "F1 gap", "AUROC gap", "AUPRC gap")
SHOWN = [[0.6, 0.4, -0.2], [0.4, 1.3, -0.3], [-0.2, -0.3, 2.5]]
HIDDEN = [[3.0, 0.1, 0.2], [0.1, 0.4, 0.3], [0.2, 0.3, 0.2]]
FADED = [[0.1, 0.01, -0.1], [0.01, 0.3, -0.1], [-0.1, -0.1, 0.5]]


@pytest.fixture
def make_matrices(make_fits):
    """Make the records of a model, one matrix for each of five seeds."""

    def make(model, matrices):
        records = make_fits("synthetic", {model: {}}, ["X1"])["synthetic"]
        for record, matrix in zip(records, matrices, strict=True):
            record["attention"] = {"first": matrix}
        return records

    return make


@pytest.mark.parametrize(
    ("n_shown", "expected"),
    [(5, Verdict.HOLDS), (4, Verdict.HOLDS), (3, Verdict.IN_PART), (2, Verdict.FAILS)],
)
def test_the_matrix_shows_the_data(make_matrices, judged, n_shown, expected):
    matrices = [SHOWN] * n_shown + [HIDDEN] * (5 - n_shown)
    records = {"synthetic": make_matrices("FCorr", matrices)}
    found = judged(records, "The pre-softmax matrix shows the data")
    assert found.verdict is expected
    assert f"all three in {n_shown}" in found.evidence


@pytest.mark.parametrize(
    "words", ["CAR suppresses the dependence", "the matrix has smaller entries"]
)
@pytest.mark.parametrize(
    ("n_faded", "expected"), [(4, Verdict.HOLDS), (3, Verdict.IN_PART), (1, Verdict.FAILS)]
)
def test_what_car_does_to_the_matrix(make_matrices, judged, words, n_faded, expected):
    matrices = [FADED] * n_faded + [SHOWN] * (5 - n_faded)
    plain, with_car = make_matrices("FCorr", [SHOWN] * 5), make_matrices("FCorr + CAR", matrices)
    assert judged({"synthetic": plain + with_car}, words).verdict is expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (1e-6, Verdict.HOLDS),
        ([1e-6, 1e-6, 1e-6, 1e-6, 9e-4], Verdict.IN_PART),
        (9e-4, Verdict.FAILS),
    ],
)
def test_flips(make_fits, judged, change, expected):
    models = {"FCorr": dict.fromkeys(FLIPS, 0.01), "FCorr + CAR": dict.fromkeys(FLIPS, change)}
    found = judged(make_fits("synthetic", models, ["X1"]), "With CAR all flip metrics")
    assert found.verdict is expected
