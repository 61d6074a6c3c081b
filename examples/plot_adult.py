"""Adult: who earns more than 50,000 dollars
=========================================

Race is the sensitive column; the published table is needed.

In a clone: ``python -m examples.plot_adult``, with Adult in the folder that ``FCORR_DATA`` names,
or after ``python -c "from paper.datasets import fetch_adult; fetch_adult()"``, which downloads it.

Default arguments but for the invariance: none, and exact in two ways. The flip metrics say what
changes when only the column `race` does; the gaps between groups say how the groups fare as they
are, and a flip-invariant model can keep them: other columns carry traces of race.
"""

from sklearn.metrics import accuracy_score, roc_auc_score

from examples._common import parse_arguments, save, show
from fcorr import FCorrClassifier
from fcorr.audit.insurance_displays import ActualExpectedDisplay
from fcorr.metrics import (
    actual_over_expected,
    average_individual_fairness,
    demographic_parity_difference,
    equalized_odds_difference,
    flip_changes,
    flip_scores,
)
from paper.datasets import load_adult

arguments = parse_arguments(__doc__)
adult = load_adult()
X, y = adult.train.X[: arguments.rows], adult.train.y[: arguments.rows]
X_test, y_test = adult.test.X, adult.test.y
race = X_test["race"].to_numpy()

rows = []
for name, options in {
    "race at work": {"sensitive": "race", "invariance": None, "car": None},
    "race, marginal": {"sensitive": "race", "invariance": "marginal"},
    "race, adapt (default)": {"sensitive": "race"},
}.items():
    # A single network, so that it takes seconds; leave n_members out for the default, a pack.
    model = FCorrClassifier(**options, n_members=1, random_state=0).fit(X, y)
    flips = flip_scores(model.predict_proba, X_test, "race")
    scores, decisions = flips.factual, model.predict(X_test)
    groups = {"sensitive_features": race}
    rows.append(
        [
            name,
            f"{roc_auc_score(y_test, scores):.4f}",
            f"{accuracy_score(y_test, decisions):.4f}",
            f"{average_individual_fairness(flips):.1e}",
            f"{flip_changes(flips)['max']:.1e}",
            f"{demographic_parity_difference(y_test, decisions, **groups):.3f}",
            f"{equalized_odds_difference(y_test, decisions, **groups):.3f}",
        ]
    )
head = ["", "AUROC", "accuracy", "AvgIF", "largest change", "parity gap", "equalized odds gap"]
show("adult", arguments.output, head, rows)

# The last model's probabilities, group by group: actual over expected, 1 is calibrated.
by_race = actual_over_expected(
    y_test, scores, sensitive_features=race, interval="bootstrap", random_state=0
)
title = "Incomes above 50,000: actual over expected, by race"
display = ActualExpectedDisplay(by_race, weight_label="people", title=title).plot()
save(display, arguments.output / "adult_actual_expected.svg")
# sphinx_gallery_thumbnail_path = "examples/adult_actual_expected.svg"
