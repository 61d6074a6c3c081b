"""A tariff to read
================

Claim counts of a generated motor portfolio. Men drive more powerful cars and have more claims; the
model is exactly invariant to sex. What it says of each column by itself is read as relativities.

In a clone: ``python -m examples.plot_tariff``. No data is needed.
"""

import numpy as np
import pandas as pd
from sklearn.metrics import mean_poisson_deviance

from examples._common import parse_arguments, save, show
from fcorr import FCorrRegressor
from fcorr.audit.displays import MainEffectDisplay
from fcorr.audit.insurance_displays import LiftDisplay
from fcorr.metrics import flip_changes, flip_scores, lift_table

arguments = parse_arguments(__doc__)
n = 2 * (arguments.rows or 20_000)
rng = np.random.default_rng(0)
sex = rng.choice(["f", "m"], n)
policies = pd.DataFrame(
    {
        "sex": sex,
        "age": rng.integers(18, 90, n),
        "power": rng.normal(80 + 20 * (sex == "m"), 20).round(),
        "region": rng.choice(["north", "south", "west"], n, p=[0.5, 0.3, 0.2]),
        "years": rng.uniform(0.1, 1.0, n),
    }
)
risk = -2 + 0.8 * (policies["age"] < 25) + 0.01 * policies["power"] + 0.3 * (sex == "m")
risk += 0.4 * (policies["region"] == "south")
claims = rng.poisson(policies["years"] * np.exp(risk))
train, test = np.arange(n) < n // 2, np.arange(n) >= n // 2

# %%
# Three models: sex at work, the default, and averaged over sex.
settings = {
    "objective": "poisson",
    "exposure": "years",
    "sensitive": "sex",
    "monotone": {"power": "increasing"},
    "n_members": 2,  # takes seconds; leave it out for the default
    "epochs": 5,
    "random_state": 0,
}
models = {
    "sex at work": FCorrRegressor(invariance=None, car=None, **settings),
    "exactly invariant (adapt)": FCorrRegressor(**settings),
    "exactly invariant (marginal)": FCorrRegressor(invariance="marginal", **settings),
}
rows = []
for name, model in models.items():
    model.fit(policies[train], claims[train])
    deviance = mean_poisson_deviance(claims[test], model.predict(policies[test]))
    change = flip_changes(flip_scores(model.predict_rate, policies[test], "sex"))["max"]
    rates = model.predict_rate(policies[test])
    men, women = rates[sex[test] == "m"].mean(), rates[sex[test] == "f"].mean()
    rows.append([name, f"{deviance:.4f}", f"{change:.1e}", f"{men / women:.2f}"])
show("tariff", arguments.output, ["", "deviance", "largest change by sex", "men ÷ women"], rows)

# %%
# A flip of sex changes no price of the last two, and yet men pay more: their cars are more
# powerful. In the second, power also carries what sex did; in the third mostly its own
# effect, as far as the model could tell the two apart.
#
# What the second model says of each column, with intervals over its members:
display = MainEffectDisplay.from_estimator(models["exactly invariant (adapt)"])
save(display, arguments.output / "tariff_effects.svg")

# %%
# Does it order the risks? Policies that had no part in training, in tenths of the prediction:
model, years = models["exactly invariant (adapt)"], policies["years"][test]
lift = lift_table(
    claims[test] / years, model.predict_rate(policies[test]), sample_weight=years, n_bins=10
)
labels = {"y_label": "claims per year", "weight_label": "policy years"}
display = LiftDisplay(lift, title="Lift on test data", **labels).plot()
save(display, arguments.output / "tariff_lift.svg")
