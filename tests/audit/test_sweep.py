"""Sweeps: what is run, what is kept, and that neither interruption nor processes change it."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest

import fcorr
from fcorr._core import InvalidInputError, UnseenCategoryWarning
from fcorr.audit.certified import find_largest_change
from fcorr.audit.sweep import Sweep
from fcorr.estimators.base import BaseFCorr
from fcorr.metrics import (
    auroc_gap,
    average_individual_fairness,
    demographic_parity_difference,
    flip_scores,
    roc_auc_score,
)

GRID = {"car": [0, 1e4], "invariance": [None, "adapt"]}


@pytest.fixture
def run(people, classifier):
    """Run a small sweep."""

    def run(grid=None, *, arguments=None, train=people[0], **options):
        settings = {"eval_set": people[1], "seeds": 2, "effort": 1, "progress": False}
        return fcorr.sweep(
            classifier(**(arguments or {})), *train, grid=grid or GRID, **{**settings, **options}
        )

    return run


@pytest.fixture
def fits(monkeypatch):
    """Count fits, by λ, form and seed."""
    made = []
    fit = BaseFCorr.fit

    def counted(self, *args, **kwargs):
        made.append((self.car, self.invariance, self.random_state))
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(BaseFCorr, "fit", counted)
    return made


def contents(sweep):
    """Return all that a sweep must repeat: everything but the time it took."""
    return [{**record.to_dict(), "seconds": None} for record in sweep.records]


# ------------------------------------------------------------ what is measured


def test_one_record_for_each_point_and_seed(run):
    found = run()
    points = [(r.arguments["car"], r.arguments["invariance"], r.seed) for r in found.records]
    assert points == [
        (car, form, seed) for car in (0, 1e4) for form in (None, "adapt") for seed in (0, 1)
    ]
    assert isinstance(found, Sweep)


def test_records_hold_what_an_independent_computation_gives(run, people, classifier):
    found = run({"car": [100.0], "invariance": [None]}, seeds=[7], arguments={"random_state": 5})
    (record,) = found.records
    X, y = people[1]
    model = classifier(car=100.0, invariance=None, random_state=7).fit(*people[0])
    scores = model.predict_proba(X)[:, 1]
    flips = flip_scores(model.predict_proba, X, "sex")
    measured = record.measured
    assert measured.performance["AUROC"] == pytest.approx(roc_auc_score(y, scores))
    assert measured.flip["AvgIF"] == average_individual_fairness(flips)
    assert measured.flip["AUROC gap"] == auroc_gap(y, flips)
    assert measured.flip["largest change"] == flips.changes.max() > 0
    difference = demographic_parity_difference(None, scores >= 0.5, sensitive_features=X.sex)
    assert measured.groups == {"sex": measured.groups["sex"]}
    assert measured.groups["sex"]["DPD"] == difference
    certificate = model.certificate(X, effort=1)
    assert record.certified.bound == certificate.bound > 0
    assert record.certified.vacuous == certificate.joint.prediction.vacuous
    assert record.certified.exact is False
    assert record.certified.population == certificate.population.epsilon > 0
    assert (record.certified.alpha, record.certified.confidence) == (0.01, 0.95)
    assert record.arguments["epochs"] == 2
    assert "random_state" not in record.arguments
    assert (record.seed, record.warm) == (7, False)
    assert record.seconds["fit"] > 0
    assert record.versions["fcorr"] == fcorr.__version__
    assert record.versions["engine"] == model.history_.engine


def test_what_an_attack_finds_lies_between_the_rows_and_the_bound(run):
    # Predictions are in single precision, the bound is not: hence the last digits.
    for record in run().records:
        found = record.certified.attack
        assert record.measured.flip["largest change"] <= found + 1e-6
        assert found <= record.certified.bound + 1e-6
        assert (found == 0) == record.certified.exact


def test_an_attack_on_several_classes_and_columns_is_put_to_the_model_itself(people, classifier):
    (X, y), (eval_X, _) = people
    label = np.array(["no", "yes", "maybe"])[y + (X.children == 0)]
    model = classifier(sensitive=["sex", "race"], invariance=None, car=None).fit(X, label)
    found = find_largest_change(model)
    assert 0 < found <= model.certificate(effort=1).bound + 1e-6
    # Rows of this table are among all inputs that the search goes over, one column at a time.
    for column in ("sex", "race"):
        both = [model.predict_proba(eval_X.assign(**{column: v})) for v in sorted(set(X[column]))]
        assert np.ptp(np.stack(both), axis=0).max() <= found + 1e-6


def test_the_default_grid_is_every_power_of_ten_and_both_exact_forms(people, classifier, fits):
    found = fcorr.sweep(
        classifier(epochs=1),
        *people[0],
        eval_set=people[1],
        seeds=1,
        effort=1,
        progress=False,
    )
    powers = [0.0] + [10.0**power for power in range(9)]
    assert fits == [(car, None, 0) for car in powers] + [(1e6, f, 0) for f in ("adapt", "marginal")]
    names = [summary.name for summary in found.summaries()]
    assert names[:3] + names[-2:] == ["λ = 0", "λ = 1", "λ = 10", "adapt", "marginal"]


def test_regression_with_weights_and_exposure(policies, regressor):
    (X, y), (eval_X, eval_y) = policies
    found = fcorr.sweep(
        regressor(objective="poisson", exposure="years", sensitive=["sex", "race"]),
        X,
        y,
        grid={"invariance": ["adapt"]},
        eval_set=(eval_X, eval_y, np.linspace(1, 2, len(eval_X))),
        sample_weight=np.linspace(1, 3, len(X)),
        seeds=1,
        effort=1,
        progress=False,
    )
    (record,) = found.records
    assert set(record.measured.groups) == {"sex", "race", "sex × race"}
    choice = found.choose()
    assert (choice.metric, choice.performance) == (
        "deviance",
        record.measured.performance["deviance"],
    )
    model = regressor(
        objective="poisson", exposure="years", sensitive=["sex", "race"], random_state=0
    ).fit(X, y, np.linspace(1, 3, len(X)))
    np.testing.assert_array_equal(found.best_estimator().predict(eval_X), model.predict(eval_X))


def test_warnings_are_told_once(run, people):
    X, y = people[1]
    unseen = X.assign(job=["astronaut", *X.job[1:]])
    with pytest.warns(UnseenCategoryWarning) as warned:
        run(eval_set=(unseen, y))
    assert len({str(w.message) for w in warned}) == len(warned) == 1


# ------------------------------------------------------------ what is kept


def test_a_second_sweep_repeats_nothing(run, tmp_path, fits):
    path = tmp_path / "sweep.jsonl"
    first = run(path=path)
    assert len(fits) == len(path.read_text().splitlines()) == 8
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {line["key"] for line in lines} == {record.key for record in first.records}
    assert run(path=path).records == first.records
    assert len(fits) == 8


def test_an_interrupted_sweep_goes_on_where_it_stopped(run, tmp_path, monkeypatch, fits):
    path = tmp_path / "sweep.jsonl"
    fit = BaseFCorr.fit

    def interrupted(self, *args, **kwargs):
        if len(fits) == 3:
            raise KeyboardInterrupt
        return fit(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(BaseFCorr, "fit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(path=path)
    assert len(path.read_text().splitlines()) == 3
    fits.clear()
    resumed = run(path=path)
    assert len(fits) == 5
    assert contents(resumed) == contents(run())


@pytest.mark.parametrize("n_left", [1, 7, 40, -5])
def test_a_line_that_was_cut_off_is_run_again(run, tmp_path, fits, n_left):
    path = tmp_path / "sweep.jsonl"
    whole = run(path=path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:n_left])
    fits.clear()
    assert contents(run(path=path)) == contents(whole)
    assert len(fits) == 1
    assert len(path.read_bytes().splitlines()) == 8
    fits.clear()
    run(path=path)
    assert fits == []


def test_a_larger_grid_runs_only_what_is_new(run, tmp_path, fits):
    path = tmp_path / "sweep.jsonl"
    run({"car": [100], "invariance": [None]}, path=path)
    fits.clear()
    larger = {"car": [100.0, 1e3], "invariance": [None], "dropout": [0.1, 0.2]}
    found = run(larger, path=path)
    assert len(found.records) == 8
    assert len(fits) == 6  # 100 and 100.0 are one value, and dropout was 0.1 before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arguments": {"epochs": 1}}, "got one with epochs = 2 where this one has 1"),
        ({"arguments": {"sensitive": "race"}}, "got one with sensitive = 'sex'"),
        ({"effort": 2}, "got one with effort = 1 where this one has 2"),
        ({"train": "other"}, "got one with data = "),
    ],
)
def test_another_experiments_file(run, people, tmp_path, fits, change, message):
    path = tmp_path / "sweep.jsonl"
    run({"car": [0], "invariance": [None]}, path=path)
    before = path.read_bytes()
    fits.clear()
    if change.get("train"):
        X, y = people[0]
        change = {"train": (X, 1 - y)}
    with pytest.raises(InvalidInputError) as caught:
        run({"car": [0], "invariance": [None]}, path=path, **change)
    assert message in str(caught.value)
    assert "Choose another path" in str(caught.value)
    assert fits == []
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "one line", '{"key": 1}\n', "\n", "[1]\n"])
def test_a_file_of_something_else_is_left_alone(run, tmp_path, content):
    path = tmp_path / "data.csv"
    path.write_text(content)
    with pytest.raises(InvalidInputError, match="must be a file of a sweep's records"):
        run(path=path)
    assert path.read_text() == content


def test_no_folder(run, tmp_path):
    for path in (tmp_path, tmp_path / "no" / "sweep.jsonl"):
        with pytest.raises(InvalidInputError, match="must be a file in a folder that exists"):
            run(path=path)


# ------------------------------------------------------------ side by side


def test_processes_change_nothing(run, tmp_path):
    grid = {"car": [100], "invariance": [None, "adapt"]}
    alone = run(grid, path=tmp_path / "alone.jsonl")
    together = run(grid, path=tmp_path / "together.jsonl", n_jobs=2)
    assert contents(together) == contents(alone)
    keys = [
        {json.loads(line)["key"] for line in (tmp_path / name).read_text().splitlines()}
        for name in ("alone.jsonl", "together.jsonl")
    ]
    assert keys[0] == keys[1]
    assert len(keys[0]) == 4


def test_progress_is_told_in_lines(run, capsys):
    run({"car": [1e4], "invariance": [None]}, progress=True)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("run 1/2  λ = 1e4, seed 0: AUROC 0.")
    assert second.startswith("run 2/2  λ = 1e4, seed 1: ")
    run({"car": [1e4], "invariance": [None]})
    assert capsys.readouterr().err == ""


# ------------------------------------------------------------ warm start

WARM = {"car": [1e4, 0, 100], "invariance": [None]}


def test_warm_runs_go_from_small_to_large(run, people, classifier, fits):
    found = run({**WARM, "invariance": [None, "adapt"]}, seeds=1, warm_start=True)
    chained = [(car, form) for car, form, _ in fits if form is None]
    assert chained == [(0, None), (100, None), (1e4, None)]
    warm = {r.arguments["car"]: r.warm_path for r in found.records if not r.certified.exact}
    assert warm == {0: (), 100: (0.0,), 1e4: (0.0, 100.0)}
    assert all(not r.warm for r in found.records if r.arguments["invariance"] == "adapt")

    first = classifier(car=0, invariance=None).fit(*people[0])
    second = classifier(car=100, invariance=None).fit(*people[0], init_model=first)
    X, y = people[1]
    (record,) = [r for r in found.records if r.warm_path == (0.0,)]
    expected = roc_auc_score(y, second.predict_proba(X)[:, 1])
    assert record.measured.performance["AUROC"] == pytest.approx(expected)


def test_the_chosen_point_is_fitted_afresh(run, people, classifier, tmp_path, fits):
    path = tmp_path / "sweep.jsonl"
    found = run(WARM, warm_start=True, path=path, budget=math.inf)
    cold = {summary.name: summary for summary in run(WARM).summaries()}
    choice = found.choose()
    (chosen,) = [s for s in found.summaries() if s.name == choice.name]
    assert not chosen.warm
    assert choice.performance == cold[choice.name].mean("AUROC")
    assert [asdict(r.measured) for r in chosen.runs] == [
        asdict(r.measured) for r in cold[choice.name].runs
    ]
    fresh = [r for r in found.records if not r.warm and r.arguments["car"]]
    assert len(path.read_text().splitlines()) == 6 + len(fresh)
    # What was chosen is better than what any other point has, warm or not.
    assert choice.performance == max(s.mean("AUROC") for s in found.summaries())
    fits.clear()
    again = run(WARM, warm_start=True, path=path)
    assert again.choose().to_dict() == choice.to_dict() | {
        "budget": None,
        "reason": str(again.choose()),
    }
    assert fits == []


def test_a_warm_chain_is_taken_up_again(run, tmp_path, fits):
    path = tmp_path / "sweep.jsonl"
    whole = run(WARM, seeds=1, warm_start=True, path=path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], lines[2]]))
    fits.clear()
    assert contents(run(WARM, seeds=1, warm_start=True, path=path)) == contents(whole)
    assert [car for car, _, _ in fits] == [0, 100]  # the weights of 0 are needed, those of 1e4 not


# ------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"car": [0, -1.0]}, "car must be a number of at least 0, 'paper' or None, got -1.0"),
        ({"car": [math.nan]}, "car must be a number of at least 0, 'paper' or None, got nan"),
        ({"cra": [0]}, "got 'cra'. Did you mean 'car'?"),
        ({"car": []}, "grid must list at least one value of 'car', got []"),
        ({"car": 100}, "grid must list at least one value of 'car', got 100"),
        ({"invariance": "adapt"}, "grid must list at least one value of 'invariance'"),
        ({"random_state": [0]}, "grid must not vary 'random_state'. Use seeds"),
        ({"sensitive": ["sex"]}, "grid must not vary 'sensitive'"),
        ([{}], "grid must map arguments to lists of values, got {}"),
        ([], "grid must hold at least one argument"),
        ([["car", 0]], "grid must map arguments to lists of values"),
    ],
)
def test_bad_grids_before_anything_is_fitted(people, classifier, fits, tmp_path, grid, message):
    path = tmp_path / "sweep.jsonl"
    with pytest.raises(InvalidInputError) as caught:
        fcorr.sweep(classifier(), *people[0], grid=grid, eval_set=people[1], path=path)
    assert message in str(caught.value)
    assert fits == []
    assert not path.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": -0.1}, "budget must be a number of at least 0, or None, got -0.1"),
        ({"budget": math.nan}, "budget must be a number of at least 0, or None, got nan"),
        ({"budget": "small"}, "got 'small'"),
        ({"seeds": 0}, "seeds must be a number of at least 1"),
        ({"seeds": []}, "seeds must be a number of at least 1"),
        ({"seeds": [1, 1]}, "different integers"),
        ({"seeds": [-1]}, "different integers"),
        ({"seeds": True}, "got True"),
        ({"n_jobs": 0}, "n_jobs must be an integer that is not 0, got 0"),
        ({"eval_set": None}, "eval_set must be (X, y) or (X, y, sample_weight), got NoneType"),
        ({"arguments": {"sensitive": None}}, "The estimator must name sensitive columns"),
    ],
)
def test_bad_options_before_anything_is_fitted(run, fits, options, message):
    with pytest.raises(InvalidInputError) as caught:
        run(**options)
    assert message in str(caught.value)
    assert fits == []


def test_validation_rows_must_not_be_the_training_rows(run, people, fits):
    X, y = people[0]
    with pytest.raises(InvalidInputError, match="eval_set must be other rows than X"):
        run(eval_set=(X.copy(), list(y)))
    assert fits == []


def test_other_estimators(people):
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(InvalidInputError, match="got LogisticRegression"):
        fcorr.sweep(LogisticRegression(), *people[0], eval_set=people[1])


def test_a_failing_run_is_named(run):
    with pytest.raises(InvalidInputError, match=r"The run .*'car': 0.*seed 0: kinds must"):
        run({"car": [0], "invariance": [None]}, arguments={"kinds": {"nothing": "numeric"}})


def test_a_grid_of_exact_models_over_weights_is_warned_of(run):
    with pytest.warns(UserWarning, match="all its models are exact"):
        run({"car": [0, 1e4]}, seeds=1)


def test_equal_models_are_fitted_once(run, fits):
    run({"car": [None, 0, 0.0, 5], "invariance": [None]}, seeds=1)
    assert [car for car, _, _ in fits] == [None, 5]
    fits.clear()
    run({"car": [0, 5], "invariance": [None, "marginal"]}, seeds=1)
    assert [(car, form) for car, form, _ in fits] == [(0, None), (0, "marginal"), (5, None)]


def test_the_estimator_is_not_changed(people, classifier):
    model = classifier()
    before = model.get_params()
    fcorr.sweep(
        model,
        *people[0],
        grid={"epochs": [1]},
        eval_set=people[1],
        seeds=1,
        effort=1,
        progress=False,
    )
    assert model.get_params() == before
    assert not hasattr(model, "model_")
