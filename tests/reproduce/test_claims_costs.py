"""Verdicts on what models cost, from measurements made up for both sides."""

import pytest

from fcorr.reproduce.costs import AUGMENTED, BY_DEFINITION, CLOSED_FORM
from fcorr.reproduce.report.claims import Verdict


def measured(model, table, measure, **cost):
    config = {"measure": measure, "data": table, "point": {}}
    return {"model": model, "seed": 0, "config": config, "cost": cost}


def epochs(few, many):
    """Make measurements of epochs: by definition and in closed form, in augmented ones."""
    return {
        "complexity": [
            measured(
                "FCorr + CAR",
                table,
                "epochs",
                seconds_per_epoch={AUGMENTED: 2.0, BY_DEFINITION: 2 * slow, CLOSED_FORM: 2 * fast},
            )
            for table, passes in (("bank_fraud", few), ("claims", many))
            for slow, fast in passes
        ]
    }


def sizes(own, ft, ft_head=10):
    models = {"FCorr": (own, own // 2), "FT-Transformer": (ft, ft_head)}
    return {
        "complexity": [
            measured(model, table, "size", parameters=count, head_parameters=head)
            for table in ("bank_fraud", "claims")
            for model, (count, head) in models.items()
        ]
    }


@pytest.mark.parametrize(
    ("slow", "fast", "expected"),
    [(2.5, 1.5, Verdict.HOLDS), (2.5, 0.9, Verdict.IN_PART), (0.8, 0.9, Verdict.FAILS)],
)
def test_augmentation_is_faster(judged, slow, fast, expected):
    records = epochs([(slow, fast)], [(slow, fast)])
    found = judged(records, "Input augmentation makes an epoch")
    assert found.verdict is expected
    assert f"{slow:.2f} times by definition, {fast:.2f} times in closed form" in found.evidence


@pytest.mark.parametrize(
    ("many", "expected"),
    [
        ([(180, 4), (181, 4)], Verdict.HOLDS),
        ([(180, 2.1), (181, 1.9)], Verdict.IN_PART),  # in closed form within the noise
        ([(2, 1), (2, 1)], Verdict.FAILS),
    ],
)
def test_augmentation_gains_with_features(judged, many, expected):
    records = epochs([(2.5, 2.0), (2.6, 2.2)], many)
    assert judged(records, "the more features there are").verdict is expected


@pytest.mark.parametrize(
    ("own", "expected"),
    [(9_000, Verdict.HOLDS), (11_000, Verdict.IN_PART), (19_000, Verdict.FAILS)],
)
def test_fewer_parameters(judged, own, expected):
    found = judged(sizes(own, 20_000), "far fewer parameters")
    assert found.verdict is expected
    assert f"{own:,} of 20,000" in found.evidence


@pytest.mark.parametrize(("head", "expected"), [(20, Verdict.HOLDS), (33, Verdict.FAILS)])
def test_parameters_outside_the_head_of_ft_transformer(judged, head, expected):
    records = sizes(11_000, 20_000, ft_head=head)
    assert judged(records, "99.9% are in the attention").verdict is expected


@pytest.mark.parametrize(
    ("count", "head", "expected"),
    [
        (11_064, 10_433, Verdict.HOLDS),
        (11_064, 10_000, Verdict.IN_PART),
        (11_000, 10_000, Verdict.FAILS),
    ],
)
def test_number_of_parameters(judged, count, head, expected):
    cost = {"parameters": count, "head_parameters": head}
    records = {"complexity": [measured("FCorr", "bank_fraud", "size", **cost)]}
    assert judged(records, "FCorr has 11,064 parameters").verdict is expected


@pytest.mark.parametrize(
    ("with_car", "expected"), [(11_064, Verdict.HOLDS), (11_100, Verdict.FAILS)]
)
def test_car_adds_no_parameters(judged, with_car, expected):
    records = [
        measured(model, table, "size", parameters=count)
        for table in ("bank_fraud", "claims")
        for model, count in (("FCorr", 11_064), ("FCorr + CAR", with_car))
    ]
    found = judged({"complexity": records}, "adds no parameters")
    assert found.verdict is expected
    assert f"11,064 without, {with_car:,} with CAR" in found.evidence


@pytest.mark.parametrize(
    ("own", "with_car", "expected"),
    [(0.2, 0.4, Verdict.HOLDS), (0.2, 2.0, Verdict.IN_PART), (1.0, 2.0, Verdict.FAILS)],
)
def test_memory_of_a_step(judged, own, with_car, expected):
    kept = {"FCorr": own, "FCorr + CAR": with_car, "FT-Transformer": 5.0}
    records = [
        measured(model, "claims", "size", kept_megabytes=value) for model, value in kept.items()
    ]
    assert judged({"complexity": records}, "memory (581").verdict is expected
