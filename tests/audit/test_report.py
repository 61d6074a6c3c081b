"""What an audit says of models of any make, against figures computed one by one."""

import json
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.metrics import mean_poisson_deviance, roc_auc_score

import fcorr
from fcorr import InvalidInputError, metrics
from fcorr.audit import measure, report
from fcorr.estimators import to_onnx

audit_model = partial(fcorr.audit_model, n_resamples=20)

RNG = np.random.default_rng(0)
N = 240
TABLE = pd.DataFrame(
    {
        "sex": RNG.integers(0, 2, N),
        "age": RNG.normal(40, 10, N).round(1),
        "years": RNG.uniform(0.2, 1, N).round(2),
    }
)
Y = (TABLE.age + 8 * TABLE.sex + RNG.normal(0, 8, N) > 42).astype(int).rename("bought")
CLAIMS = pd.Series(RNG.poisson(TABLE.years * TABLE.age / 20), name="claims")
FEATURES = ["sex", "age"]
SOURCE = {"source": "policy 4.2"}


def chance(X):
    """Score without any library."""
    sex, age = (X[:, 0], X[:, 1]) if isinstance(X, np.ndarray) else (X["sex"], X["age"])
    return 1 / (1 + np.exp(-(np.asarray(age) + 5 * np.asarray(sex) - 42) / 6))


@pytest.fixture(scope="module")
def logistic():
    return LogisticRegression().fit(TABLE[FEATURES], Y)


@pytest.fixture(scope="module")
def audited(logistic):
    return audit_model(logistic, TABLE, Y, sensitive="sex", unit="points").summary


def test_flips(audited, logistic):
    flips = metrics.flip_scores(lambda X: logistic.predict_proba(X[FEATURES]), TABLE, "sex")
    found = audited["flips"]
    assert found["change"] == pytest.approx(metrics.flip_changes(flips))
    share = metrics.decisions_flipped(flips)
    assert audited["figures"]["decisions_flipped"]["estimate"] == pytest.approx(share)
    is_f = (TABLE.sex == 0).to_numpy()
    moved = flips.scores[is_f, 1] - flips.scores[is_f, 0]
    (pair,) = (pair for pair in found["pairs"] if pair["from"] == "0")
    assert pair == {
        "from": "0",
        "to": "1",
        "n": int(is_f.sum()),
        "mean": pytest.approx(moved.mean()),
        "largest": pytest.approx(moved.max()),
    }
    rows = [row["row"] for row in found["most_affected"]]
    assert flips.changes[rows] == pytest.approx(np.sort(flips.changes)[::-1][:10])
    assert "values" not in found["most_affected"][0]
    assert found["certificate"] is None


def test_groups(audited, logistic):
    score = logistic.predict_proba(TABLE[FEATURES])[:, 1]
    decision = (score >= 0.5).astype(int)
    rates = metrics.group_rates(Y, decision, sensitive_features=TABLE.sex)
    (section,) = audited["groups"]
    for line, group in zip(rates, section["groups"], strict=True):
        figures = {name: cell["estimate"] for name, cell in group["figures"].items()}
        assert (group["group"], group["n"]) == (str(line.group), line.n)
        assert figures["selection rate"] == pytest.approx(line.mean_prediction)
        assert figures["true positive rate"] == pytest.approx(line.tpr)
        of = TABLE.sex == line.group
        assert figures["AUROC"] == pytest.approx(roc_auc_score(Y[of], score[of]))
        assert figures["actual / expected"] == pytest.approx(Y[of].sum() / score[of].sum())
    low, high = sorted(line.mean_prediction for line in rates)
    cell = audited["figures"]["adverse_impact_ratio"]
    assert cell["estimate"] == pytest.approx(low / high)
    assert cell["low"] < cell["estimate"] < cell["high"]
    assert cell["grouping"] == "sex"
    assert audited["performance"]["AUROC"]["estimate"] == pytest.approx(roc_auc_score(Y, score))


def test_regression_per_unit_of_exposure():
    model = PoissonRegressor().fit(TABLE[FEATURES], CLAIMS / TABLE.years, sample_weight=TABLE.years)
    options = {"sensitive": "sex", "exposure": "years", "power": 1}
    found = audit_model(model, TABLE, CLAIMS, **options).summary
    rate = model.predict(TABLE[FEATURES])
    given = CLAIMS / TABLE.years, rate
    expected = mean_poisson_deviance(*given, sample_weight=TABLE.years)
    assert found["performance"]["deviance"]["estimate"] == pytest.approx(expected)
    table = metrics.actual_over_expected(
        CLAIMS, rate * TABLE.years, sensitive_features=TABLE.sex
    ).rows
    for row, group in zip(table, found["groups"][0]["groups"], strict=True):
        assert group["weight"] == pytest.approx(TABLE.years[TABLE.sex == row.group].sum())
        assert group["figures"]["actual / expected"]["estimate"] == pytest.approx(row.ratio)
    assert found["rows"]["exposure"] == pytest.approx(TABLE.years.sum())
    lift = metrics.lift_table(*given, sample_weight=TABLE.years).rows
    assert found["plots"]["lift"]["rows"][0]["predicted"] == pytest.approx(lift[0].predicted)
    by_array = audit_model(model, TABLE, CLAIMS, **options | {"exposure": TABLE.years}).summary
    assert by_array["groups"] == found["groups"]


@pytest.mark.parametrize(
    ("model", "X", "sensitive"),
    [
        (chance, TABLE, "sex"),
        (chance, pl.from_pandas(TABLE), "sex"),
        (chance, TABLE[FEATURES].to_numpy(), 0),
        (lambda X: np.column_stack([1 - chance(X), chance(X)]), TABLE, ["sex"]),
    ],
)
def test_any_function_of_any_table(model, X, sensitive):
    found = audit_model(model, X, Y, sensitive=sensitive).summary
    expected = metrics.flip_changes(metrics.flip_scores(chance, TABLE, "sex"))
    assert found["flips"]["change"] == pytest.approx(expected)
    assert found["subject"]["task"] == "two classes"


@pytest.mark.parametrize("as_array", [False, True])
def test_what_any_model_reads(as_array):
    """Against the mean over all other rows, which one of them for each row comes close to."""
    X = TABLE[FEATURES].to_numpy() if as_array else TABLE
    found = audit_model(chance, X, Y, sensitive=0 if as_array else "sex").summary["model"]
    change = found["change"]
    p, column = chance(TABLE), "x1" if as_array else FEATURES[1]
    moved = [
        np.abs(chance(TABLE.assign(**{FEATURES[1]: np.roll(TABLE[FEATURES[1]], k)})) - p).mean()
        for k in range(1, len(TABLE))
    ]
    assert change[column] == pytest.approx(np.mean(moved), rel=0.2)
    assert list(change.values()) == sorted(change.values(), reverse=True)
    if not as_array:
        assert change["years"] == 0  # which it does not read


def test_models_of_ours(people, classifier, regressor, policies):
    model = classifier(sensitive=["sex", "race"]).fit(*people[0])
    found = audit_model(model, *people[1])
    summary = found.summary
    assert [section["grouping"] for section in summary["groups"]] == ["sex", "race", "sex × race"]
    assert summary["flips"]["certificate"]["exact"]
    assert summary["figures"]["exact"] == {"estimate": 1.0}
    assert summary["figures"]["largest_change"] == {"estimate": 0.0}
    assert set(found.displays) == {
        *("lift", "lorenz", "groups", "attention", "importance", "main effects"),
    }
    assert summary["model"]["significance"] == pytest.approx(model.feature_significance())
    effect = model.main_effects()["age"].effect.tolist()
    assert summary["model"]["main_effects"]["age"]["effect"] == effect
    # A column that it was not made invariant to has no certificate.
    assert audit_model(model, *people[1], sensitive="job").summary["flips"]["certificate"] is None
    options = {"objective": "poisson", "exposure": "years", "invariance": None}
    regression = regressor(**options).fit(*policies[0])
    found = audit_model(regression, *policies[1]).summary
    assert found["subject"]["deviance_power"] == 1
    assert not found["flips"]["certificate"]["exact"]
    assert found["flips"]["certificate"]["search"] >= found["flips"]["change"]["max"]


def test_several_classes(people, classifier):
    (X, y), (test_X, test_y) = people
    label = np.array(["no", "yes", "maybe"])
    model = classifier(invariance=None).fit(X, label[y + (X.children == 0)])
    y = label[test_y + (test_X.children == 0)]
    found = audit_model(model, test_X, y).summary
    assert [section["output"] for section in found["groups"]] == sorted(label)
    chosen = (model.predict(test_X) == "yes").astype(int)
    rates = metrics.group_rates((y == "yes").astype(int), chosen, sensitive_features=test_X.sex)
    for line, group in zip(rates, found["groups"][2]["groups"], strict=True):
        assert group["figures"]["false positive rate"]["estimate"] == pytest.approx(line.fpr)


def test_classes_may_be_in_any_order():
    y = np.array(["low", "mid", "high"])[np.arange(N) % 3]

    class Model:
        classes_ = np.array(["low", "mid", "high"])

        def predict_proba(self, X):
            right = y[:, None] == self.classes_
            return np.where(right, 0.5, 0.25)

    found = audit_model(Model(), TABLE, y, sensitive="sex").summary["performance"]
    assert found["log loss"]["estimate"] == pytest.approx(-np.log(0.5))
    assert found["accuracy"]["estimate"] == 1


def test_weights_count_where_models_are_compared(logistic):
    weight = np.where(TABLE.age > 40, 10.0, 0.1)
    options = {"sensitive": "sex", "incumbent": lambda X: np.full(len(X), 0.5)}
    found = audit_model(logistic, TABLE, Y, sample_weight=weight, **options).summary
    moved = logistic.predict_proba(TABLE[FEATURES])[:, 1] - 0.5
    for each in found["incumbent"]["who_changes"]:
        own = TABLE.sex.astype(str) == each["group"]
        assert each["mean_change"] == pytest.approx(np.average(moved[own], weights=weight[own]))


def test_deviances_of_two_models_are_of_one_kind(regressor, policies):
    model = regressor(objective="poisson", exposure="years").fit(*policies[0])
    summary = audit_model(model, *policies[1], incumbent=model.predict_rate).summary
    deviance = summary["performance"]["deviance"]["estimate"]
    assert summary["incumbent"]["performance"]["deviance"] == pytest.approx(deviance)
    given = audit_model(model, *policies[1], power=0).summary
    assert given["subject"]["deviance_power"] == 0
    assert given["performance"]["deviance"]["estimate"] != pytest.approx(deviance, rel=0.1)


def test_an_exported_model_says_what_it_is(regressor, policies, tmp_path):
    model = regressor(objective="poisson", exposure="years").fit(*policies[0])
    to_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    one, other = (audit_model(each, *policies[1]).summary for each in (model, session))
    assert other["rows"]["exposure"] == one["rows"]["exposure"]
    assert other["sensitive"] == one["sensitive"]
    assert other["subject"]["deviance_power"] == 1
    for name, each in one["performance"].items():
        assert other["performance"][name]["estimate"] == pytest.approx(each["estimate"])


def test_what_other_exports_say_of_themselves_is_not_read():
    told = SimpleNamespace(producer_name="other", custom_metadata_map={"target": "default"})
    session = SimpleNamespace(get_inputs=list, get_modelmeta=lambda: told)
    assert measure.read_facts(session) == {}


def test_another_model_beside_it(logistic):
    found = audit_model(logistic, TABLE, Y, sensitive="sex", incumbent=chance)
    part, decisions = found.summary["incumbent"], [logistic.predict(TABLE[FEATURES]), chance(TABLE)]
    right, other = decisions[0] == Y, (decisions[1] >= 0.5) == Y
    better, worse = int((right & ~other).sum()), int((other & ~right).sum())
    p_value = binomtest(better, better + worse).pvalue
    assert [*part["mcnemar"].values()] == [better, worse, pytest.approx(p_value)]
    of = (TABLE.sex == 1).to_numpy()
    changed = (decisions[0] != (decisions[1] >= 0.5))[of].mean()
    assert part["who_changes"][1]["decisions_changed"] == pytest.approx(changed)
    assert part["performance"]["AUROC"] == pytest.approx(roc_auc_score(Y, chance(TABLE)))
    assert "double lift" in found.displays
    with pytest.raises(InvalidInputError, match="incumbent must predict the same"):
        audit_model(logistic, TABLE, Y, sensitive="sex", incumbent=lambda X: X.age)


def test_the_frontier_of_a_sweep(people, classifier):
    from fcorr import sweep

    grid = {"car": [1e4], "invariance": [None, "adapt"]}
    searched = sweep(
        classifier(), *people[0], grid=grid, eval_set=people[1], seeds=1, progress=False
    )
    found = audit_model(searched.best_estimator(), *people[1], sweep=searched)
    assert found.summary["frontier"]["chosen"] == "adapt"
    assert found.summary["frontier"]["points"][0] == {"car": 1e4, "invariance": None}
    assert "frontier" in found.displays


# ------------------------------------------------------------------------------ what scores are of


@pytest.mark.parametrize("change", [lambda p: p.astype(object), lambda p: [*map(Decimal, p)]])
def test_scores_may_be_numbers_of_any_kind(change):
    found = audit_model(lambda X: change(chance(X)), TABLE, Y, sensitive="sex").summary
    assert found["subject"]["task"] == "two classes"
    assert found["figures"] == audit_model(chance, TABLE, Y, sensitive="sex").summary["figures"]


def test_columns_may_be_named_by_numbers_of_numpy():
    table = TABLE.set_axis(np.array([10, 20, 30]), axis=1)
    found = audit_model(lambda X: chance(X.to_numpy()), table, Y, sensitive=table.columns[0])
    assert [*found.summary["sensitive"]] == ["10"]


def test_a_function_may_change_its_table():
    def spoil(X):
        scores = chance(X)
        X["age"] = X["age"] / 100
        return scores

    table = TABLE.copy()
    found = audit_model(spoil, table, Y, sensitive="sex").summary
    assert found["flips"] == audit_model(chance, TABLE, Y, sensitive="sex").summary["flips"]
    pd.testing.assert_frame_equal(table, TABLE)


def test_labels_of_y_in_another_order_are_told_of():
    found = audit_model(chance, TABLE, Y.sample(frac=1, random_state=0), sensitive="sex")
    assert "X and y have the same index labels in another order" in found.summary["notes"][0]


def test_which_class_is_decided_for(logistic):
    """Decisions of the other class have its rates; a single score is the chance of that class."""
    names = Y.map({0: "good", 1: "bad"})  # in alphabetical order "good" is the second
    options = {"sensitive": "sex", "n_resamples": 5}
    usual = audit_model(chance, TABLE, Y, threshold=0.3, **options).summary
    turned = audit_model(chance, TABLE, names, positive="bad", threshold=0.3, **options)
    for name, figure in usual["figures"].items():
        assert turned.summary["figures"][name] | {"output": "1"} == figure | {"output": "1"}
    assert "decides bought = bad from a probability of 0.30 on" in str(turned)
    wrong = str(audit_model(chance, TABLE, names, **options))
    assert "Higher scores go with fewer rows of bought = good." in wrong
    assert "the probability of bad, name that as the positive class" in wrong
    model = LogisticRegression().fit(TABLE[FEATURES], names)
    both = [audit_model(model, TABLE, names, positive=p, **options) for p in ("bad", "good")]
    first, second = (each.summary["figures"] for each in both)
    assert first["auroc"]["estimate"] == pytest.approx(second["auroc"]["estimate"])
    assert first["adverse_impact_ratio"]["estimate"] < second["adverse_impact_ratio"]["estimate"]
    half = np.where(np.arange(N) % 2, 0.5, 0.2)  # one score is of that class, from 0.5 on
    for each in (0, 1):
        found = audit_model(lambda X: half[: len(X)], TABLE, Y, positive=each, **options).summary
        groups = found["groups"][0]["groups"]
        assert sum(g["figures"]["selection rate"]["estimate"] * g["n"] for g in groups) == N / 2
    rates = [
        sorted(
            g["figures"]["selection rate"]["estimate"] for g in each.summary["groups"][0]["groups"]
        )
        for each in both
    ]
    assert rates[0] == pytest.approx(1 - np.array(rates[1][::-1]))  # the same decisions
    assert "Selection rate: share decided bad, from a probability of 0.50 on." in both[0].to_html()


@pytest.mark.parametrize("labels", [(0, 1), (0.0, 1.0), (False, True), ("No", "Yes")])
def test_a_class_may_be_spelt_in_other_ways(labels):
    y = Y.map(dict(enumerate(labels)))
    spelt = ["yes", "Yes"] if labels[0] == "No" else [1, 1.0, "1", True, np.int64(1)]
    for given in spelt:
        found = audit_model(chance, TABLE, y, sensitive="sex", positive=given, n_resamples=5)
        assert found.summary["subject"]["classes"] == [str(label) for label in labels]


def test_perfectly_reversed_scores_are_remarked_upon():
    found = audit_model(lambda X: 1.0 - Y[: len(X)], TABLE, Y, sensitive="sex", n_resamples=5)
    assert "Higher scores go with fewer rows of bought = 1." in str(found)


def test_a_model_of_ours_decides_alike_for_either_class(people, classifier):
    X, y = people[1]
    model = classifier().fit(*people[0])
    options = {"n_resamples": 5, "positive": model.classes_[0]}
    found = audit_model(model, X, y, **options)
    share = np.average(model.predict(X) == model.classes_[0])
    table = found.summary["groups"][0]["groups"]
    selected = sum(g["figures"]["selection rate"]["estimate"] * g["n"] for g in table)
    assert selected == pytest.approx(share * len(X))
    text = found.to_html()
    threshold = json.loads(text.split('id="model">')[1].split("</script>")[0])["threshold"]
    assert threshold == pytest.approx(model.threshold_)
    own = audit_model(model, X, y, threshold=0.2, n_resamples=5).to_html()
    assert '"threshold": 0.2' in own


@pytest.mark.parametrize(
    ("score", "doubt"),
    [
        (lambda X: chance(X) > 0.5, "All scores are 0 or 1: pass probabilities"),
        (lambda X: 600 - 40 * chance(X), "scores lie outside [0, 1]: they are taken for amounts"),
    ],
)
def test_scores_that_are_no_probabilities(score, doubt):
    assert doubt in str(audit_model(score, TABLE, Y, sensitive="sex", n_resamples=5))


def test_rare_categories_are_not_named(people, classifier):
    """Whoever can be told by a category is not in the page, nor in its numbers."""
    (X, y), test = people
    X = X.assign(name=["Ann Rare"] * 3 + ["many"] * (len(X) - 3))
    found = audit_model(classifier().fit(X, y), test[0].assign(name="many"), test[1])
    assert "many" in found.to_json()
    assert "Ann Rare" not in found.to_json() + found.to_html()


# ------------------------------------------------------------------------------ few rows, odd rows


@pytest.mark.parametrize(
    ("change", "figure", "why"),
    [
        ({"sex": 0}, "largest_change", "nothing to flip to"),
        ({"sex": 0}, "adverse_impact_ratio", "fewer than two groups of 30 rows"),
        ({"y": 0}, "true_positive_rate_difference", "fewer than two groups of 30 rows"),
        ({"sex": [1] + [0] * (N - 1)}, "selection_rate_difference", "fewer than two groups"),
    ],
)
def test_what_is_not_estimable_says_why(change, figure, why):
    X, y = TABLE.copy(), Y.copy()
    if "sex" in change:
        X["sex"] = change["sex"]
    if "y" in change:
        y[X.sex == 0] = 0
    found = audit_model(chance, X, y, sensitive="sex", task="classification")
    cell = found.summary["figures"][figure]
    assert cell["estimate"] is None
    assert why in cell["why"]
    json.loads(found.to_json())
    assert "not estimable" in str(found)


@pytest.mark.parametrize(
    ("X", "y", "options"),
    [
        (TABLE[:1], Y[:1], {"task": "classification"}),
        (TABLE, 0 * Y, {}),
        (TABLE, Y - 0.5, {"task": "regression"}),
        (TABLE.assign(sex=[f"g{i % 99}" for i in range(N)], age=40), Y, {"task": "classification"}),
        (TABLE.assign(sex=np.where(TABLE.sex, 10_000 * "x", None)), Y, {"task": "classification"}),
    ],
)
def test_odd_tables_have_a_page(X, y, options):
    def score(X):
        return np.asarray(X["age"]) / 100

    found = audit_model(score, X, y, sensitive="sex", n_resamples=10, **options)
    assert found.to_html().startswith("<!doctype html>")
    assert json.loads(found.to_json())["rows"]["n"] == len(X)


def test_without_a_target_the_scores_are_audited(logistic):
    found = audit_model(logistic, TABLE, sensitive="sex")
    assert not found.summary["performance"]
    assert found.summary["figures"]["adverse_impact_ratio"]["estimate"] < 1
    assert "auroc" not in found.summary["figures"]
    assert "No outcomes were given" in str(found)


def test_rows_of_weight_0_and_samples_keep_their_numbers(monkeypatch, logistic):
    weight = (np.arange(N) >= 100).astype(float)
    monkeypatch.setattr(report, "_MOST_SCORES", 200)
    options = {"sensitive": "sex", "sample_weight": weight, "include_rows": True}
    found = audit_model(logistic, TABLE, Y, **options).summary
    assert (found["rows"]["n"], found["flips"]["n"]) == (N - 100, 100)
    for row in found["flips"]["most_affected"]:
        assert row["row"] >= 100
        assert row["values"]["age"] == str(TABLE.age[row["row"]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sensitive": None}, "sensitive must name columns of X, got None"),
        ({"sensitive": "sx"}, "got 'sx'. Did you mean 'sex'?"),
        ({"model": lambda X: chance(X) * 1.5}, "Pass a model with predict_proba"),
        ({"model": lambda X: chance(X) * np.nan}, "Predictions must be finite, got [nan] in row 0"),
        ({"model": lambda X: X["income"]}, "The model must score X as it is, got KeyError"),
        ({"model": "model.pkl"}, "The model must have predict_proba or predict"),
        ({"exposure": -TABLE.years}, "(exposure) must be positive in every row"),
        ({"exposure": [1.0]}, "must have the same number of rows, got X 240, exposure 1"),
        ({"model": lambda X: np.where(X.age > 40, "yes", "no")}, "return numbers, one per row or"),
        ({"model": lambda X: X.age - 40, "task": "classification"}, "put log-odds through 1 / ("),
        (
            {"model": lambda X: X.age - 40, "y": Y.map(str) + "!", "task": "auto"},
            "if scores are of classes, return probabilities, between 0 and 1.",
        ),
        ({"sensitive": TABLE.sex}, "sensitive must name columns of X, got 'Series'"),
        ({"model": lambda X: np.exp(1j * X.age)}, "must return numbers, one per row or one per"),
        ({"y": "bought"}, "y must hold a value for each row, got 'bought'. Pass X['bought']"),
        ({"confidence": 95}, "confidence must lie between 0 and 1, got 95"),
        ({"n_resamples": 0}, "n_resamples must be a positive integer, got 0"),
        ({"positive": "maybe"}, "positive must be one of two classes, got 'maybe' of 0, 1."),
        ({"positive": 1, "task": "regression"}, "got 1 of a model that predicts a number."),
        ({"y": Y[:5]}, "X and y must have the same number of rows"),
        ({"limits": {"largest_chnge": {"max": 1} | SOURCE}}, "Did you mean 'largest_change'?"),
        ({"limits": {"largest_change": {"max": 1}}}, "must have a min or a max, its source"),
        ({"limits": {"largest_change": {"most": 1} | SOURCE}}, "and nothing else, got"),
    ],
)
def test_bad_input(arguments, message):
    given = {"model": chance, "y": Y, "sensitive": "sex", "task": "classification"} | arguments
    with pytest.raises(InvalidInputError) as caught:
        audit_model(given.pop("model"), TABLE, given.pop("y"), **given)
    assert message in str(caught.value)


def test_limits(tmp_path):
    (tmp_path / "limits.toml").write_text(
        '[largest_change]\nmax = 0\nsource = "policy 4.2"\n[auroc]\nmin = 0.5\nsource = "board"\n'
    )
    found = audit_model(chance, TABLE, Y, sensitive="sex", limits=tmp_path / "limits.toml")
    assert [each["met"] for each in found.summary["limits"]] == [False, True]
    assert [each["figure"] for each in found.crossed] == ["largest_change"]
    assert "(max 0; source: policy 4.2) is crossed" in str(found)
    one = TABLE.assign(sex=0)
    limits = {"largest_change": {"max": 1} | SOURCE}
    assert audit_model(chance, one, Y, sensitive="sex", limits=limits).crossed
    (tmp_path / "limits.toml").write_text("max =")
    with pytest.raises(InvalidInputError, match="limits must be a TOML file"):
        audit_model(chance, TABLE, Y, sensitive="sex", limits=tmp_path / "limits.toml")


def test_differences_between_groups_are_split_into_features(people, classifier):
    """By main effects alone, what groups differ by in the mean output is the sum of its parts."""
    (X, y), (test_X, test_y) = people
    additive = {"epochs": 2, "advanced": {"n_views": 1}}
    plain, dialled = (classifier(sensitive="sex", proxy=p, **additive).fit(X, y) for p in (0, 10))
    found = audit_model(dialled, test_X, test_y, incumbent=plain, n_resamples=5)
    parts = found.summary["proxies"]["differences"]["features"]
    main = dialled.explain(test_X, n_samples=4).main
    for j, name in enumerate(dialled.schema_.feature_names):
        means = {g: main[(test_X["sex"] == g).to_numpy(), j].mean() for g in ("f", "m")}
        assert parts[name]["means"] == pytest.approx(means, rel=1e-4, abs=1e-6)
        assert parts[name]["spread"] == pytest.approx(
            abs(means["f"] - means["m"]), rel=1e-3, abs=1e-6
        )
    assert "attention of the other model" in found.displays
    other = found.summary["incumbent"]["differences"]["features"]
    assert parts.keys() == other.keys()
    assert "What the difference between groups is made of" in found.to_html(include_model=False)


# ------------------------------------------------------------------------------ what is written


def test_the_summary_is_the_golden_one(all_trees):
    found = audit_model(chance, TABLE, Y, sensitive="sex").summary
    for name in ("time", "versions"):
        del found["provenance"][name]
    golden = json.loads((Path(__file__).parent / "golden.json").read_text())
    assert_alike(found, golden, "summary")


def assert_alike(found, golden, where):
    """Compare plain data; numbers may differ in the last digits between machines."""
    assert type(found) is type(golden), where
    if isinstance(golden, dict):
        assert [*found] == [*golden], where
    if isinstance(golden, dict | list):
        assert len(found) == len(golden), where
        for key in golden if isinstance(golden, dict) else range(len(golden)):
            assert_alike(found[key], golden[key], f"{where}.{key}")
    else:
        assert found == (pytest.approx(golden) if isinstance(golden, float) else golden), where


def test_proxies_are_measured_on_the_page():
    found = audit_model(chance, TABLE, Y, sensitive="sex", n_resamples=5)
    lines = {row["source"]: row for row in found.summary["proxies"]["strength"]}
    assert lines["the score"]["value"] > lines["all other columns, labels permuted"]["value"]
    figures = found.summary["figures"]
    assert 0 < figures["demographic_unfairness"]["estimate"] < 1
    assert 0 < figures["proxy_discrimination"]["estimate"] < 1
    assert "How well sex can be told without it: from all other columns AUROC" in str(found)
    page = found.to_html()
    assert "<td>the score</td><td>AUROC</td>" in page
    alone = audit_model(lambda X: X["sex"] * 0.5, TABLE[["sex"]], sensitive="sex", n_resamples=5)
    assert "X must have columns beside the sensitive ones" in alone.summary["proxies"]["strength"]


def test_files(tmp_path):
    found = audit_model(chance, TABLE, Y, sensitive="sex", name="A | <b>", provenance={"by": "me"})
    assert found.to_json(tmp_path / "audit.json") is None
    assert json.loads((tmp_path / "audit.json").read_text()) == found.summary
    assert found.summary["provenance"]["by"] == "me"
    card = found.to_model_card()
    _, header, body = card.split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in header.splitlines())
    (index,) = json.loads(fields["model-index"])
    assert index["name"] == "A | <b>"
    assert index["results"][0]["metrics"][0]["type"] == "auroc"
    assert "# A \\| \\<b>" in body
    assert "What it does not say" in body
    shown = found._repr_html_()
    assert "A | &lt;b&gt;" in shown
    assert "adverse impact ratio" in shown
