"""The table of what fits cost, from records made up for the purpose."""

from fcorr.reproduce.report.cost_tables import cost_tables


def record(model, *sensitive, seed=0, fit=2.0, parameters=1_234):
    return {
        "model": model,
        "seed": seed,
        "config": {"data": {"name": "adult"}, "sensitive": list(sensitive)},
        "data": {"name": "Adult", "n_train": 1_000},
        "parameters": parameters,
        "seconds": {"fit": fit, "epoch": None},
        "peak_megabytes": 100.0,
    }


def costs(*records):
    """Return the cells of each model by their columns."""
    (found,) = cost_tables({"adult": list(records)})
    rows = [dict(zip(found.table.header, row, strict=True)) for row in found.table.rows]
    return {row["Model"]: row for row in rows}


def test_fits_of_every_sensitive_column_count_whatever_their_order():
    fits = [
        record("FCorr + CAR", column, seed=seed, fit=fit)
        for column, fit in (("race", 4.0), ("sex", 2.0))
        for seed in (0, 1)
    ]
    row = costs(*fits)["FCorr + CAR"]
    assert (row["Fit, s"], row["Fits"]) == ("3.00 ± 1.00", "4")
    assert costs(*reversed(fits))["FCorr + CAR"] == row


def test_a_fit_that_was_run_twice_counts_once():
    row = costs(record("FCorr", "race", "sex", fit=9.0), record("FCorr", "race", "sex"))["FCorr"]
    assert (row["Fit, s"], row["Fits"]) == ("2.00", "1")


def test_unequal_numbers_of_parameters_are_a_range():
    fits = [
        record("FCorr + Rem", "race", parameters=18_885),
        record("FCorr + Rem", "sex", parameters=18_894),
        record("FCorr", "race", "sex"),
        record("LightGBM", "race", "sex", parameters=None),
    ]
    found = costs(*fits)
    assert list(found) == ["FCorr", "FCorr + Rem", "LightGBM"]  # the configuration's order
    parameters = {model: row["Parameters"] for model, row in found.items()}
    assert parameters == {"FCorr": "1,234", "FCorr + Rem": "18,885 to 18,894", "LightGBM": "–"}
