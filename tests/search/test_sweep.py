"""Sweeps: what is run, what is kept, and that neither interruption nor processes change it."""

import json
import math
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

import fcorr
from fcorr._core import InvalidInputError, UnseenCategoryWarning, to_plain
from fcorr.audit.measure import measure, open_model, read_rows
from fcorr.estimators.base import BaseFCorr
from fcorr.search.sweep import append_record, read_records

GRID = {"car": [0, 1e4], "invariance": [None, "adapt"]}


@pytest.fixture
def run(people, classifier):
    """Run a small sweep."""

    def run(grid=GRID, *, arguments=None, train=people[0], **options):
        settings = {"eval_set": people[1], "seeds": 2, "progress": False}
        return fcorr.sweep(
            classifier(**(arguments or {})), *train, grid=grid, **{**settings, **options}
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
    return [{**record, "seconds": None} for record in sweep.records]


# ------------------------------------------------------------ what is measured


def test_a_record_holds_what_is_measured_of_the_model_that_fit_gives(run, people, classifier):
    found = run({"car": [100.0], "invariance": [None]}, seeds=[7], arguments={"random_state": 5})
    (record,) = found.records
    model = classifier(car=100.0, invariance=None, random_state=7).fit(*people[0])
    rows = read_rows(people[1], "sex", "eval_set")
    measured = measure(open_model(model, rows), rows)
    assert record["measured"] == to_plain(asdict(measured))
    assert not measured.exact
    assert measured.search > 0
    assert record["arguments"]["epochs"] == 2
    assert "random_state" not in record["arguments"]
    assert record["seed"] == 7
    assert record["seconds"]["fit"] > 0
    assert record["versions"]["fcorr"] == fcorr.__version__
    assert record["versions"]["engine"] == model.history_.engine


def test_the_default_grid_is_every_power_of_ten_and_both_exact_forms(people, classifier, fits):
    model = classifier(epochs=1)
    before = model.get_params()
    found = fcorr.sweep(model, *people[0], eval_set=people[1], seeds=1, progress=False)
    powers = [0.0] + [10.0**power for power in range(9)]
    assert fits == [(car, None, 0) for car in powers] + [(1e6, f, 0) for f in ("adapt", "marginal")]
    names = [summary.name for summary in found.summaries]
    assert names[:3] + names[-2:] == ["λ = 0", "λ = 1", "λ = 10", "adapt", "marginal"]
    assert model.get_params() == before  # the estimator itself is not changed
    assert not hasattr(model, "model_")


def test_regression_with_weights_and_exposure(policies, regressor):
    (X, y), (eval_X, eval_y) = policies
    weight, eval_weight = np.linspace(1, 3, len(X)), np.linspace(1, 2, len(eval_X))
    model = regressor(objective="poisson", exposure="years", sensitive=["sex", "race"])
    given = {"eval_set": (eval_X, eval_y, eval_weight), "sample_weight": weight}
    found = fcorr.sweep(
        model, X, y, grid={"invariance": ["adapt"]}, seeds=1, progress=False, **given
    )
    (record,) = found.records
    assert set(record["measured"]["groups"]) == {"sex", "race", "sex × race"}
    deviance = record["measured"]["performance"]["deviance"]
    words = f"lowest deviance on the validation rows among exact models ({deviance:.4g}"
    assert words in found.choose().reason
    model.fit(X, y, weight)  # of the same seed
    np.testing.assert_array_equal(found.best_estimator().predict(eval_X), model.predict(eval_X))


def with_uncounted_rows(X, y):
    """Add rows of weight 0 on top that nothing could be learnt from or measured on."""
    rows = X.iloc[:30].assign(sex="x", years=-1.0, age=np.inf)
    return pd.concat([rows, X]), np.append(np.full(30, np.nan), y), np.arange(len(X) + 30) >= 30


def test_rows_of_weight_0_are_not_there(policies, regressor):
    model = regressor(objective="poisson", exposure="years")
    (X, y), (eval_X, eval_y) = policies
    more_X, more_y, weight = with_uncounted_rows(X, y)
    given = {"grid": {"invariance": ["adapt", None]}, "seeds": 1, "progress": False}
    more, fewer = (
        fcorr.sweep(model, *train, eval_set=eval_set, sample_weight=weight, **given)
        for train, weight, eval_set in [
            ((more_X, more_y), weight, with_uncounted_rows(eval_X, eval_y)),
            ((X, 1.0 * y), np.ones(len(X)), (eval_X, 1.0 * eval_y, np.ones(len(eval_X)))),
        ]
    )
    for a, b in zip(more.records, fewer.records, strict=True):
        assert (a["key"], a["measured"]) == (b["key"], b["measured"])


def test_warnings_are_told_once(run, people):
    X, y = people[1]
    unseen = X.assign(job=["astronaut", *X.job[1:]])
    with pytest.warns(UnseenCategoryWarning) as warned:
        run(eval_set=(unseen, y))
    assert len({str(w.message) for w in warned}) == len(warned) == 1


# ------------------------------------------------------------ what is kept


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
    assert len(fits) == 3
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == sorted(resumed.records, key=lines.index)
    assert run(path=path).records == resumed.records
    assert len(fits) == 3  # nothing is repeated
    assert contents(resumed) == contents(run())


def test_a_larger_grid_runs_only_what_is_new(run, tmp_path, fits):
    path = tmp_path / "sweep.jsonl"
    dropout = {"dropout": 0.1}
    run({"car": [100], "invariance": [None]}, path=path, arguments=dropout)
    fits.clear()
    larger = {"car": [100.0, 1e3], "invariance": [None], "dropout": [0.1, 0.2]}
    found = run(larger, path=path, arguments=dropout)
    assert len(found.records) == 8
    assert len(fits) == 6  # 100 and 100.0 are one value, and dropout was 0.1 before


@pytest.mark.parametrize("arguments", [{"epochs": 1}, {"advanced": {"n_layers": 2}}, {}])
def test_runs_of_other_arguments_or_rows_are_left_alone(run, people, tmp_path, fits, arguments):
    path = tmp_path / "sweep.jsonl"
    run({"car": [0], "invariance": [None]}, path=path, seeds=1)
    before = path.read_bytes()
    X, y = people[0]
    train = (X, y if arguments else 1 - y)
    grid, given = {"car": [0], "invariance": [None]}, {"arguments": arguments, "train": train}
    found = run(grid, path=path, seeds=1, **given)
    assert len(fits) == 2
    assert path.read_bytes().startswith(before)
    assert contents(found) == contents(run(grid, seeds=1, **given))


RECORD = {
    "key": "k",
    "estimator": "FCorrClassifier",
    "data": "d",
    "arguments": {"car": 1e6, "invariance": None},
    "seed": 0,
    "measured": {"task": "two classes", "performance": {}, "flip": {}, "groups": {}},
    "notes": ["λ = ½\nand more"],
    "seconds": {"fit": 1.0, "measure": 1.0},
    "versions": {},
}


def test_a_line_that_was_cut_off_anywhere_is_taken_away(tmp_path):
    path = tmp_path / "sweep.jsonl"
    assert read_records(path) == []
    assert not path.exists()
    for seed in range(2):
        append_record(path, {**RECORD, "seed": seed})
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    assert whole.startswith(b'{"key": "k"')
    for end in range(first, len(whole)):
        path.write_bytes(whole[:end])
        assert read_records(path) == [RECORD], whole[first:end]
        assert path.read_bytes() == whole[:first]
    append_record(path, {**RECORD, "seed": 2})
    assert [record["seed"] for record in read_records(path)] == [0, 2]
    with pytest.raises(ValueError, match="JSON"):
        append_record(path, {**RECORD, "seed": math.nan})
    assert len(read_records(path)) == 2


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("a,b\n1,2\n", 1),
        (f"{json.dumps(RECORD)}\n\n", 2),
        (json.dumps({**RECORD, "measured": {"bound": 1.0}}) + "\n", 1),
        (json.dumps(RECORD) + '\n{"other": 1', 2),
        ("notes without an end of line", 1),
        ("\x89PNG\r\n\x1a\n", 1),
    ],
)
def test_a_file_of_something_else_is_left_alone(run, tmp_path, fits, content, line):
    path = tmp_path / "notes.txt"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(InvalidInputError) as caught:
        run(path=path)
    assert str(caught.value) == (
        f"path must be a file of a sweep's records, got {str(path)!r}, whose line {line} is none. "
        "Name a file that does not exist yet."
    )
    assert path.read_bytes() == content.encode("latin-1")
    assert fits == []


def test_folders(run, tmp_path):
    with pytest.raises(InvalidInputError, match="path must be a file, got the folder"):
        run(path=tmp_path)
    run({"car": [0], "invariance": [None]}, seeds=1, path=tmp_path / "new" / "sweep.jsonl")
    assert len((tmp_path / "new" / "sweep.jsonl").read_text().splitlines()) == 1


# ------------------------------------------------------------ side by side


def test_processes_change_nothing(run, whole_search, tmp_path):
    grid = {"car": [100], "invariance": [None, "adapt"]}
    alone = run(grid, path=tmp_path / "alone.jsonl", seeds=1)
    together = run(grid, path=tmp_path / "together.jsonl", seeds=1, n_jobs=2)
    assert contents(together) == contents(alone)
    keys = [
        {json.loads(line)["key"] for line in (tmp_path / name).read_text().splitlines()}
        for name in ("alone.jsonl", "together.jsonl")
    ]
    assert keys[0] == keys[1]
    assert len(keys[0]) == 2


# ------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"grid": {"car": [0, -1.0]}},
            "car must be a number of at least 0, 'paper' or None, got -1.0",
        ),
        ({"grid": {"cra": [0]}}, "got 'cra'. Did you mean 'car'?"),
        ({"grid": {"car": 100}}, "grid must map arguments to lists of values, got {'car': 100}"),
        ({"grid": {"invariance": "adapt"}}, "grid must map arguments to lists of values"),
        ({"grid": {"random_state": [0]}}, "grid must not vary 'random_state'. Use seeds"),
        ({"grid": {"sensitive": ["sex"]}}, "grid must not vary 'sensitive'. Models would answer"),
        (
            {"grid": {"advanced": [{"engine": "plain"}]}},
            "grid must not vary 'engine'. Set it in the",
        ),
        (
            {"grid": {"advanced": [{"n_layers": 0}]}},
            "advanced['n_layers'] must be an integer of at least 1",
        ),
        ({"grid": []}, "grid must hold at least one argument"),
        ({"budget": -0.1}, "budget must be a number of at least 0, or None, got -0.1"),
        ({"seeds": 0}, "seeds must be a number of at least 1"),
        ({"seeds": [1, 1]}, "different integers"),
        ({"seeds": True}, "got True"),
        ({"n_jobs": 0}, "n_jobs must be an integer that is not 0, got 0"),
        ({"eval_set": None}, "eval_set must be (X, y) or (X, y, sample_weight), got NoneType"),
        ({"arguments": {"sensitive": None}}, "sensitive must name columns of X, got None"),
    ],
)
def test_bad_input_before_anything_is_fitted(run, fits, tmp_path, options, message):
    path = tmp_path / "sweep.jsonl"
    with pytest.raises(InvalidInputError) as caught:
        run(path=path, **options)
    assert message in str(caught.value)
    assert fits == []
    assert not path.exists()


def test_validation_rows_must_not_be_the_training_rows(run, people, fits):
    X, y = people[0]
    with pytest.raises(InvalidInputError, match="eval_set must be other rows than X"):
        run(eval_set=(X.copy(), list(y)))
    with pytest.raises(InvalidInputError, match="eval_set: y must not hold missing values, got 1"):
        run(eval_set=(X, [math.nan, *y[1:]]))
    assert fits == []


def test_a_failing_run_is_named(run):
    with pytest.raises(InvalidInputError, match=r"The run .*'car': 0.*seed 0: kinds must"):
        run({"car": [0], "invariance": [None]}, arguments={"kinds": {"nothing": "numeric"}})


def test_a_grid_of_exact_models_over_weights_is_warned_of(run):
    with pytest.warns(UserWarning, match="all its models are exact"):
        found = run({"car": [0, 1e4]}, seeds=1)
    assert [summary.name for summary in found.summaries] == ["adapt"]


def test_equal_models_are_fitted_once(run, fits):
    run({"car": [None, 0, 0.0, 5], "invariance": [None]}, seeds=1)
    assert [car for car, _, _ in fits] == [None, 5]
    fits.clear()
    run({"car": [0, 5], "invariance": [None, "adapt", "marginal"]}, seeds=1)
    exact = [(0, "adapt"), (0, "marginal")]
    assert [(car, form) for car, form, _ in fits] == [(0, None), *exact, (5, None)]
    fits.clear()  # the paper's model adapts late: CAR has a part before
    papers = {"advanced": {"main_effects": False}}
    run({"car": [0, 5], "invariance": [None, "adapt"]}, seeds=1, arguments=papers)
    assert [(car, form) for car, form, _ in fits] == [
        (car, form) for car in (0, 5) for form in (None, "adapt")
    ]
    fits.clear()
    run({"advanced": [None, {}, {"n_layers": 1}]}, seeds=1)
    assert len(fits) == 1
