"""Audit reports of Adult (race) and of motor claim frequency (beMTPL97, sex), LightGBM beside each.

Run with ``make example-reports``; the folder with the data is named by FCORR_DATA.
"""

import argparse
from pathlib import Path

from lightgbm import LGBMClassifier, LGBMRegressor

from fcorr import FCorrClassifier, FCorrRegressor, audit_model
from paper.datasets import load_adult, load_bemtpl97

LIMITS = {
    "largest_change": {"max": 0.0, "source": "the model is sold as invariant"},
    "adverse_impact_ratio": {"min": 0.8, "source": "29 CFR 1607.4 D, a rule of thumb for hiring"},
}


def with_categories(X):
    """Return a table as LightGBM reads it."""
    text = X.select_dtypes(exclude="number").columns
    return X.astype(dict.fromkeys(text, "category"))


def audit_adult(members):
    """Audit a model of income, with race as the sensitive column."""
    data = load_adult()
    X, y = data.train.X, data.train.y
    test, y_test = data.test.X, data.test.y
    model = FCorrClassifier(sensitive="race", n_members=members, random_state=0).fit(X, y)
    trees = LGBMClassifier(verbose=-1, random_state=0).fit(with_categories(X), y)
    dtypes = with_categories(X).dtypes

    def incumbent(table):
        return trees.predict_proba(table.astype(dtypes))

    incumbent.__name__ = "LightGBM"
    names = {"name": "Income, Adult", "target": "income above 50,000"}
    return audit_model(
        model, test, y_test, incumbent=incumbent, limits=LIMITS, verbose=True, **names
    )


def audit_motor(members):
    """Audit a model of claim frequency, with sex as the sensitive column."""
    data = load_bemtpl97()
    X, y, years = data.train.X, data.train.y, data.train.exposure
    test = data.test.X.assign(years=data.test.exposure)
    settings = {"objective": "poisson", "exposure": "years", "n_members": members}
    model = FCorrRegressor(sensitive="sex", random_state=0, **settings)
    model.fit(X.assign(years=years), y)
    trees = LGBMRegressor(objective="poisson", verbose=-1, random_state=0)
    trees.fit(with_categories(X), y / years, sample_weight=years)
    dtypes = with_categories(X).dtypes

    def incumbent(table):
        return trees.predict(table[list(dtypes.index)].astype(dtypes))

    incumbent.__name__ = "LightGBM"
    names = {"name": "Motor claim frequency, beMTPL97", "unit": "claims per year"}
    limits = {"largest_change": LIMITS["largest_change"]}
    return audit_model(
        model, test, data.test.y, incumbent=incumbent, limits=limits, verbose=True, **names
    )


def main():
    """Write all reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("example-reports"))
    parser.add_argument("--members", type=int, default=1, help="networks of a pack; 0 for all")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, audit in {"adult": audit_adult, "motor": audit_motor}.items():
        found = audit(arguments.members or "auto")
        found.to_html(arguments.output / f"{name}.html")
        found.to_json(arguments.output / f"{name}.json")
        found.to_model_card(arguments.output / f"{name}.md")
        print(f"wrote {arguments.output / name}.html, .json and .md")


if __name__ == "__main__":
    main()
