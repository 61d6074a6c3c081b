"""The page in a real browser: the model in it, what it asks for, how it is read."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fcorr import FCorrClassifier, FCorrRegressor
from fcorr.audit.page import show_metric, show_small
from fcorr.audit.report import audit_model
from tests.audit.browser import CHROMIUM, Browser

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::fcorr.UnseenCategoryWarning"),
]
HOSTILE = "<script>alert('x')</script> \" ' & ‮ 😀 " + 300 * "long "


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


def draw(n, seed):
    """Draw a table with every kind of column, and holes in all of them."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2020-01-01 05:00") + pd.to_timedelta(rng.integers(0, 20_000, n), unit="h")
    table = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "age": rng.normal(40, 10, n),
            "job": rng.choice(["a", HOSTILE, "c", "d"], n, p=[0.5, 0.3, 0.19, 0.01]),
            "town": [f"t{i}" for i in rng.integers(10, 80, n)],
            "member": rng.choice([True, False], n),
            "grade": rng.choice(["low", "mid", "high"], n),
            "day": days,
            "few": rng.choice([0.0, 1.5, 7.0], n),
        }
    )
    y = (table.age - 40) / 10 + (table.job == "a") + (table.town < "t40") + rng.normal(size=n)
    for column in table.columns[1:]:
        table[column] = table[column].astype(object).where(rng.random(n) > 0.1, None)
    table["full"] = np.where(np.arange(n) % 200 == 7, None, table["sex"])
    table = table.astype({"age": float, "few": float})
    table["day"] = pd.to_datetime(table["day"])
    return table, y.to_numpy()


def spoil(table, seed):
    """Put values into a table that training did not see."""
    rng = np.random.default_rng(seed)
    unseen = {"age": 500.0, "job": "new", "town": "nowhere", "grade": "top", "few": -3.0}
    return table.assign(
        **{
            name: table[name].where(rng.random(len(table)) > 0.1, value)
            for name, value in unseen.items()
        }
    )


def write_page(model, X, y, path=None, **options):
    """Write a page without charts, which take longest and are looked at elsewhere."""
    found = audit_model(model, X, y, n_resamples=5, **options)
    found.displays.clear()
    return found.to_html(path)


QUICK = {"epochs": 2, "head": (8, 4), "random_state": 0, "sensitive": "sex"}
QUICK["kinds"] = {"grade": ["low", "mid", "high"], "member": "boolean"}
MODELS = {
    "pack": (FCorrClassifier, {"n_members": 2}, lambda y: y > 0.5),
    "not exact": (FCorrClassifier, {"n_members": 1, "invariance": None}, lambda y: y > 0.5),
    "averaged": (FCorrClassifier, {"n_members": 1, "invariance": "marginal"}, lambda y: y > 0.5),
    "layers": (
        FCorrRegressor,
        {"n_members": 1, "advanced": {"n_layers": 2, "residual": False}, "sensitive": "age"},
        lambda y: 100 * y,
    ),
    "counts": (
        FCorrRegressor,
        {"n_members": 1, "objective": "poisson", "invariance": "marginal"},
        lambda y: np.maximum(y, 0).round(),
    ),
    "classes": (FCorrClassifier, {"n_members": 1}, lambda y: np.digitize(y, [0, 1])),
    "the paper's": (
        FCorrClassifier,
        {"n_members": 1, "advanced": {"main_effects": False}},
        lambda y: y > 0.5,
    ),
    "no stack": (
        FCorrClassifier,
        {"n_members": 1, "head": (), "advanced": {"n_layers": 2}},
        lambda y: y > 0.5,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_page_computes_what_python_does(browser, tmp_path, name):
    make, options, target = MODELS[name]
    (X, y), (test_X, test_y) = draw(1_000, 0), draw(250, 1)
    if name == "classes":  # rated columns are for two classes and numbers
        X = X.drop(columns="town")
    model = make(**QUICK | options).fit(X, target(y))
    test_X = spoil(test_X, 2)[X.columns]
    for column in {"job", "town"} & {*X.columns}:  # of rare categories the page knows no name
        rows = X[column].value_counts()
        is_rare = test_X[column].isin(rows.index[rows < 10])
        assert 0 < is_rare.sum() < 100
        test_X[column] = test_X[column].where(~is_rare, None)
    assert 0 < X["full"].isna().sum() < 10  # "missing" is no name
    write_page(model, test_X[:60], target(test_y)[:60], tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    rows = json.loads(test_X.to_json(orient="records", date_format="iso", date_unit="s"))
    for row in rows:
        row["day"] = row["day"] and row["day"].removesuffix("Z").split(".")[0]
    found = np.array(browser.run(f"{json.dumps(rows)}.map(fcorr.predict)"))
    is_number = make is FCorrRegressor
    expected = model.predict_rate(test_X)[:, None] if is_number else model.predict_proba(test_X)
    expected = expected[:, 1:] if expected.shape[1] == 2 else expected
    scale = 1 + np.abs(expected) if is_number else 1
    assert (np.abs(found - expected) / scale).max() < 1e-5
    if name == "the paper's":
        return
    explained = browser.run(f"{json.dumps(rows[:20])}.map((row) => fcorr.explain(row, 0))")
    wanted = model.explain(test_X[:20])
    main = wanted.main if wanted.classes is None else wanted.main[..., 0]
    size = np.abs(main).max() + 1
    assert np.abs(np.array([each["effects"] for each in explained]) - main).max() < 1e-5 * size
    orders = browser.run("fcorr.model.orders")
    assert len(orders) >= 4
    shared = model.explain(test_X[:5], n_samples=len(orders), random_state=0).contribution
    shared = shared if wanted.classes is None else shared[..., 0]
    found = browser.run(f"{json.dumps(rows[:5])}.map((row) => fcorr.contributions(row, 0))")
    assert np.abs(np.array(found) - shared).max() < 1e-5 * size
    output = wanted.output if wanted.classes is None else wanted.output[:, 0]
    assert [each["end"] for each in explained] == pytest.approx(output, rel=1e-5, abs=1e-5)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Write a page of which every name is hostile."""
    X, y = draw(300, 0)
    X = X[["sex", "age", "job"]].rename(columns={"age": f"age {HOSTILE}"})
    X["sex"] = X["sex"].replace("m", HOSTILE)
    options = {"n_members": 1, "kinds": None, "invariance": None}
    model = FCorrClassifier(**QUICK | options).fit(X, np.where(y > 0, "no", HOSTILE))
    limits = {"adverse_impact_ratio": {"min": 0.99, "source": HOSTILE}}
    names = {"name": HOSTILE, "target": HOSTILE, "unit": HOSTILE}
    found = audit_model(model, X, np.where(y > 0, "no", HOSTILE), limits=limits, **names)
    path = tmp_path_factory.mktemp("page") / "page.html"
    found.to_html(path)
    return path


def test_it_asks_for_nothing_and_runs_its_own_script_only(browser, page):
    browser.open(page)
    asked = [e["params"]["request"]["url"] for e in browser.events if "WillBeSent" in e["method"]]
    assert [url for url in asked if not url.startswith("data:image/svg+xml")] == [f"file://{page}"]
    wrong = ("Log.entryAdded", "Runtime.exceptionThrown", "Page.javascriptDialogOpening")
    assert not [event for event in browser.events if event["method"] in wrong]
    policy = re.search(r'Security-Policy" content="([^"]*)"', page.read_text())[1]
    assert "default-src &#39;none&#39;" in policy
    assert "unsafe" not in policy
    # What somebody else puts in does not run.
    browser.run(
        "document.body.append(Object.assign(document.createElement('script'),"
        " {textContent: 'window.broken = 1'})); 0"
    )
    assert browser.run("window.broken") is None
    assert browser.run("document.querySelectorAll('script').length") == 3
    assert page.stat().st_size < 1_500_000


def test_names_are_text(browser, page):
    browser.open(page)
    title = browser.run("document.querySelector('h1').textContent")
    assert title.startswith("Audit of <script>alert('x')</script> \" ' & \\u202e 😀")
    labels = browser.run(
        "[...document.querySelectorAll('#whatif-inputs label')].map(l => l.textContent)"
    )
    assert labels[1] == f"age {HOSTILE}"
    assert "\u202e" not in page.read_text().split('id="model"')[0]


def test_the_controls_move_the_score(browser, page):
    browser.open(page)
    read = "document.getElementById('{}').textContent"
    before, drawn = browser.run(read.format("whatif-score")), "#whatif-{} svg"
    browser.run(
        "(box => { box.value = 60; box.dispatchEvent(new Event('input')); })"
        "(document.querySelector('#whatif-inputs input[type=number]'))"
    )
    assert browser.run(read.format("whatif-score")) != before
    cells = "document.querySelectorAll('#whatif-flips td:last-child')"
    flips = browser.run(f"[...{cells}].map(cell => cell.textContent)")
    assert flips.count("0") == 1  # of two values, its own
    for name in ("parts", "curve", "attention"):
        assert browser.run(f"document.querySelectorAll('{drawn.format(name)}').length") == 1
    assert "compliant" not in page.read_text().lower()
    assert "causally" not in page.read_text().lower()


@pytest.mark.parametrize(("width", "dark"), [(390, True), (1200, False)])
def test_it_can_be_read_by_everybody(browser, page, width, dark):
    axe = pytest.importorskip("axe_core_python", reason="needs axe-core-python, as in fcorr[dev]")
    browser.open(page)
    picture = browser.look(width, dark=dark)
    assert picture.startswith(b"\x89PNG")
    assert browser.run("document.documentElement.scrollWidth") <= width  # nothing sticks out
    browser.run((Path(axe.__file__).parent / "axe.min.js").read_text() + "; 0")
    found = browser.run("axe.run().then(r => r.violations.map(v => [v.id, v.impact]))")
    assert not [name for name, impact in found if impact in ("serious", "critical")]


def test_it_prints_black_on_white_also_where_the_screen_is_dark(browser, page):
    browser.open(page)
    browser.look(1200, dark=True)
    assert browser.print().startswith(b"%PDF")
    filters = {}
    for media in ("screen", "print"):
        scheme = {"name": "prefers-color-scheme", "value": "dark"}
        browser.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        filters[media] = browser.run("getComputedStyle(document.querySelector('img')).filter")
    browser.call("Emulation.setEmulatedMedia", media="", features=[])
    assert "invert" in filters["screen"]
    assert filters["print"] == "none"


def test_rows_stay_where_they_are(people, classifier):
    X, y = people[1]
    X = X.assign(job=[f"secret {i}" for i in range(len(X))])
    model = classifier(invariance=None, min_category_rows=1).fit(*people[0])
    assert "secret" not in audit_model(model, X[:50], y[:50], n_resamples=5).to_html()
    assert "secret" in write_page(model, X[:50], y[:50], include_rows=True)


def test_a_model_that_the_page_cannot_compute_is_left_out(people, classifier):
    options = {"advanced": {"main_effects": False, "numeric_embedding": "paper"}}
    model = classifier(**options).fit(*people[0])
    X, y = people[1]
    assert "The model is not in this page" in write_page(model, X[:60], y[:60])


def test_numbers_that_may_be_tiny():
    shown = [show_small(value) for value in (0.0, 3.21e-8, 0.25, None, float("inf"))]
    assert shown == ["0", "3.2e-08", "0.25", "n/a", "inf"]
    assert show_metric("AUROC", [0.75, 0.77]) == "0.760 ± 0.010"
    assert show_metric("AvgIF", [1e-7, 3e-7]) == "2.0e-07"
