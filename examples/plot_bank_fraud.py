"""Bank fraud: one application in a hundred
========================================

An alarm for 5 % of the honest ones, and age.

In a clone: ``python -m examples.plot_bank_fraud``. No data is needed.

The table is generated, with the columns of the Bank Account Fraud data. Three models: exactly
invariant to the customer's age, with age at work, and with the column left out.
"""

from sklearn.metrics import roc_auc_score

from examples._common import parse_arguments, save, show
from fcorr import FCorrClassifier
from fcorr.audit.displays import AttentionDisplay, SignificanceDisplay
from fcorr.metrics import average_individual_fairness, flip_changes, flip_scores
from paper.generators import make_bank_fraud

arguments = parse_arguments(__doc__)
n_rows = arguments.rows or 100_000
X, y = make_bank_fraud(n_rows, random_state=0)
X = X.to_pandas()
X_test, y_test = make_bank_fraud(n_rows, random_state=1)
X_test = X_test.to_pandas()

AGE = "customer_age"
EXACT = "exactly invariant to age"
UNCONSTRAINED = {"invariance": None, "car": None}
settings = {
    "n_members": 1,  # takes seconds; leave it out for the default, a pack
    "threshold": {"fpr": 0.05},  # predict raises an alarm for 5 % of the honest training rows
    "random_state": 0,
}
models = {
    EXACT: FCorrClassifier(sensitive=AGE, **settings).fit(X, y),
    "age at work": FCorrClassifier(sensitive=AGE, **UNCONSTRAINED, **settings).fit(X, y),
    "age left out": FCorrClassifier(**settings).fit(X.drop(columns=AGE), y),
}

# %%
# What each finds, and what a flip of age changes.
rows = []
for name, model in models.items():
    scores, alarms = model.predict_proba(X_test)[:, 1], model.predict(X_test)
    row = [name, f"{roc_auc_score(y_test, scores):.4f}"]
    row += [f"{alarms[y_test == 1].mean():.1%}", f"{alarms[y_test == 0].mean():.1%}"]
    if AGE in model.schema_.names:
        flips = flip_scores(model.predict_proba, X_test, AGE)  # every row with every age
        row += [f"{average_individual_fairness(flips):.1e}", f"{flip_changes(flips)['max']:.1e}"]
    else:
        row += ["0", "0"]
    rows.append(row)
head = ["", "AUROC", "fraud found", "false alarms", "AvgIF", "largest change"]
show("bank_fraud", arguments.output, head, rows)

# %%
# Which features depend on each other: the attention matrix.
model = models[EXACT]
display = AttentionDisplay.from_estimator(model, X_test, k=12)
save(display, arguments.output / "bank_fraud_attention.svg")

# %%
# Which ones matter.
largest = dict([*model.feature_significance().items()][:12])
display = SignificanceDisplay(largest, model.schema_.sensitive_features).plot()
save(display, arguments.output / "bank_fraud_significance.svg")
