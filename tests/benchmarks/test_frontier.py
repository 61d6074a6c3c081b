"""The frontier: what points dominate, and what a family has at another one's gap."""

import pytest

from benchmarks.frontier import ahead_in_volume, at_gap, compare, hypervolume


def point(gap, good, auroc=0.9):
    return {"gap": gap, "good": good, "auroc": auroc}


def test_the_area_that_points_dominate():
    assert hypervolume([(0.9, 0.1), (0.8, 0.0)], (0.5, 0.2)) == pytest.approx(0.7)
    assert hypervolume([(0.9, 0.1), (0.8, 0.0), (0.7, 0.05)], (0.5, 0.2)) == pytest.approx(0.7)
    assert hypervolume([(0.4, 0.0), (0.9, 0.3)], (0.5, 0.2)) == 0


def test_between_two_points_that_no_other_dominates():
    points = [point(0.2, 0.9, 0.8), point(0.0, 0.8, 0.6), point(0.1, 0.7), point(0.3, 0.85)]
    assert at_gap(points, 0.1) == pytest.approx((0.85, 0.7))
    assert at_gap(points, 0.5) == pytest.approx((0.9, 0.8))
    assert at_gap(points[2:], 0.05) is None


def test_beside_each_point_of_the_other():
    def record(family, *points, seed=2):
        key = {"table": "law, race", "seed": seed, "members": "auto", "family": family}
        return {**key, "points": [{"setting": "", **each} for each in points]}

    rows = compare(
        [
            record("LightGBM, ExponentiatedGradient", point(0.01, 0.7, 0.6), point(0.1, 0.8, 0.7)),
            record("fcorr, decisions", point(0.05, 0.75), point(0.15, 0.85)),
            record("LightGBM, ExponentiatedGradient", point(0, 0.5), point(0.1, 0.7), seed=3),
            record("fcorr, decisions", point(0.05, 0.74, 0.8), seed=3),
            record("fcorr, decisions", point(0.05, 0.75), seed=4),
        ],
        "fcorr, decisions",
    )
    assert rows == [
        [
            *["law, race", "auto", "", "2 of 2", "0.100", "0.7500", "0.7700", "+0.0200 ± 0.0200"],
            *["0.800", "0.850"],
        ],
        ["law, race", "auto", "", "0 of 2", "0.005", "–", "–", "–", "–", "–"],
    ]


def test_hypervolumes_are_compared_by_the_same_resamples():
    def record(family, seed, volume, *resampled):
        return {"family": family, "seed": seed, "hypervolume": volume, "resampled": resampled}

    ours = [record("fcorr, scores", 0, 0.5, 0.4, 0.6), record("fcorr, scores", 1, 0.9, 0.0, 0.0)]
    theirs = [record("LightGBM, quantile repair", 0, 0.4, 0.3, 0.5)]
    assert ahead_in_volume(ours, ours + theirs) == "+0.100 (+0.100 to +0.100)"
    assert ahead_in_volume(theirs, ours + theirs) == "–"
