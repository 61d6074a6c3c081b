"""Motor claim frequency with exposure
===================================

beMTPL97, with sex as the sensitive column; the published table is needed.

In a clone: ``python -m examples.plot_motor_frequency``, with beMTPL97 in the folder that
``FCORR_DATA`` names, or after ``python -c "from paper.datasets import fetch_bemtpl97;
fetch_bemtpl97()"``, which downloads it.

Poisson deviance, Gini and lift beside LightGBM's, each with and without the policy-holder's sex.
"""

import numpy as np
from sklearn.metrics import mean_poisson_deviance

from examples._common import parse_arguments, save, show
from fcorr import FCorrRegressor
from fcorr.audit.insurance_displays import ActualExpectedDisplay, LiftDisplay, LorenzDisplay
from fcorr.metrics import (
    actual_over_expected,
    flip_changes,
    flip_scores,
    lift_table,
    lorenz_curve,
    normalized_gini_score,
)
from paper.datasets import load_bemtpl97

arguments = parse_arguments(__doc__)
data = load_bemtpl97()
train, test = data.train, data.test
X, y, years = (part[: arguments.rows] for part in (train.X, train.y, train.exposure))
X_test, y_test, years_test = test.X, test.y, test.exposure

# The exposure is a column of the table, but no feature: expectations are proportional to it.
X, X_test = X.assign(years=years), X_test.assign(years=years_test)
EXACT = "FCorr, exactly invariant to sex"
# A single network, so that it takes seconds; leave n_members out for the default, a pack.
settings = {"objective": "poisson", "exposure": "years", "n_members": 1, "random_state": 0}
without_sex = X.drop(columns="sex")
models = {
    EXACT: FCorrRegressor(sensitive="sex", **settings).fit(X, y),
    "FCorr, averaged over sex": FCorrRegressor(
        sensitive="sex", invariance="marginal", **settings
    ).fit(X, y),
    "FCorr, sex at work": FCorrRegressor(
        sensitive="sex", invariance=None, car=None, **settings
    ).fit(X, y),
    "FCorr, sex left out": FCorrRegressor(**settings).fit(without_sex, y),
}
predictors = {name: model.predict for name, model in models.items()}

try:
    from lightgbm import LGBMRegressor
except ImportError:
    print("LightGBM is left out: pip install lightgbm\n")
else:
    for name, left_out in (("LightGBM", ["years"]), ("LightGBM, sex left out", ["years", "sex"])):
        trees = LGBMRegressor(
            objective="poisson",
            n_estimators=300,
            learning_rate=0.02,
            num_leaves=15,
            min_child_samples=500,
            random_state=0,
            verbose=-1,
        )
        trees.fit(X.drop(columns=left_out), y / years, sample_weight=years)
        predictors[name] = lambda X, trees=trees, left_out=left_out: (
            X["years"].to_numpy() * trees.predict(X.drop(columns=left_out))
        )

base = np.sum(y) / np.sum(years)
rows = [["one frequency for all", f"{100 * mean_poisson_deviance(y_test, years_test * base):.3f}"]]
rows[0] += ["0", "0", ""]
rates = {}
for name, predict in predictors.items():
    expected = predict(X_test)
    rate = rates[name] = expected / years_test
    flips = flip_scores(predict, X_test, "sex")
    change = flip_changes(flips)["max"]
    gini = normalized_gini_score(y_test / years_test, rate, sample_weight=years_test)
    deviance = 100 * mean_poisson_deviance(y_test, expected)
    total = np.sum(expected) / np.sum(y_test)
    rows.append([name, f"{deviance:.3f}", f"{gini:.4f}", f"{change:.1e}", f"{total:.3f}"])
head = ["", "Poisson deviance, %", "normalised Gini", "largest change by sex", "expected ÷ actual"]
show("motor_frequency", arguments.output, head, rows)

observed, policies = y_test / years_test, {"sample_weight": years_test}
some = {name: rate for name, rate in rates.items() if "left out" not in name}
title = "Lorenz curves of claims, test data"
curves = {name: lorenz_curve(observed, rate, **policies) for name, rate in some.items()}
display = LorenzDisplay(curves, title=title).plot()
save(display, arguments.output / "motor_lorenz.svg")
labels = {"title": f"{EXACT}: lift on test data", "y_label": "claims per year"}
labels["weight_label"] = "policy years"
display = LiftDisplay(lift_table(observed, rates[EXACT], **policies), **labels).plot()
save(display, arguments.output / "motor_lift.svg")
by_sex = actual_over_expected(observed, rates[EXACT], sensitive_features=X_test["sex"], **policies)
labels = {"title": f"{EXACT}: actual over expected by sex", "weight_label": "policy years"}
display = ActualExpectedDisplay(by_sex, **labels).plot()
save(display, arguments.output / "motor_actual_expected.svg")
# sphinx_gallery_thumbnail_path = "examples/motor_lift.svg"
