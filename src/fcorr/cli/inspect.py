"""`fcorr inspect`: what is in a model file."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fcorr.cli._shared import echo, print_table

if TYPE_CHECKING:
    from fcorr.data.schema import Column
    from fcorr.estimators.model_file import Estimator


def inspect(
    model: Annotated[Path, typer.Argument(help="Model file.", exists=True, dir_okay=False)],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the file's whole header as JSON.")
    ] = False,
) -> None:
    """Show what is in a model file: kind, training, features, importance, significance."""
    from fcorr.estimators import load, read_header
    from fcorr.estimators.reading import rank_correlation

    header = read_header(model)
    if as_json:
        for line in json.dumps(header, indent=2, ensure_ascii=False).split("\n"):
            echo(line)
        return
    estimator = load(model)
    schema, history = estimator.schema_, estimator.history_
    last = history.epochs[-1]
    facts: dict[str, Any] = {
        "kind": header["estimator"],
        "made by": f"fcorr {header['fcorr_version']}, file format {header['format']}",
        "sha256": header["sha256"],
        "parameters": f"{estimator.model_.n_parameters:,}",
        **({"target": schema.target} if schema.target else {}),
        "trained on": (
            f"{schema.n_rows:,} rows, {len(history.epochs)} epochs, seed {estimator.seed_}"
        ),
        "last loss": f"{last.loss:.4f}",
        "sensitive": ", ".join(schema.sensitive) or "none",
        "CAR": (
            "none"
            if last.car is None
            else f"{last.car:.2e} at the end, weight {history.car_weight:g}, "
            f"form {estimator._options['car_form']!r}"
        ),
    }
    if schema.sensitive:
        if not estimator.exact_:  # which load has checked
            invariance = "not exact: model.certificate(X) tells what a flip can change"
        elif estimator.portfolio_ is None:
            invariance = "exact: every sensitive value is embedded as the same number"
        else:
            n = len(estimator.portfolio_.shares)
            invariance = (
                f"exact: predictions are averages over {n} combinations of sensitive values"
            )
        facts["invariance"] = invariance
    facts |= _target_facts(estimator)
    width = max(map(len, facts))
    for name, fact in facts.items():
        echo(f"{name:<{width}}  {fact}")
    columns: dict[str, Column] = {
        feature.name: column for column in schema.columns for feature in column.features
    }
    numbers = estimator.importance_, estimator.change_, estimator.significance_
    read = zip(schema.feature_names, *numbers, strict=True)
    print_table(
        "features, the most important first",
        ["feature", "kind", "importance", "change", "significance", "missing", "values"],
        [
            [
                name + (" (sensitive)" if name in schema.sensitive else ""),
                columns[name].kind,
                f"{importance:.3f}",
                f"{change:.3g}",
                f"{significance:.3f}",
                str(columns[name].n_missing),
                _describe(columns[name], name),
            ]
            for name, importance, change, significance in sorted(read, key=lambda row: -row[1])
        ],
    )
    echo(
        "importance: share of the variance of outputs that goes with the feature. change: of the "
        "prediction, in the mean, when the value is another row's. significance: diagonal of the "
        "attention matrix."
    )
    agreement = rank_correlation(estimator.change_, estimator.significance_)
    if not math.isnan(agreement):  # which takes features that differ
        echo(f"Rank correlation of change and significance: {agreement:.2f}.")


def _target_facts(estimator: "Estimator") -> dict[str, str]:
    """Tell what is particular to classes, or to a number."""
    from fcorr.estimators import FCorrClassifier

    schema = estimator.schema_
    roles = {"weight": schema.weight, "exposure": schema.exposure}
    facts = {role: name for role, name in roles.items() if name}
    if isinstance(estimator, FCorrClassifier):
        facts["classes"] = ", ".join(str(label) for label in estimator.classes_)
        if estimator.class_weight is not None:
            weights = ", ".join(f"{weight:.4g}" for weight in estimator.class_weight_)
            facts["class weights"] = weights
        if estimator.threshold_ is not None:
            is_rule = not isinstance(estimator.threshold, int | float)
            rule = f", chosen by {_rule(estimator.threshold)}" if is_rule else ""
            facts["threshold"] = f"{estimator.threshold_:.4g}{rule}"
        unit = "on the logit" + ("s" if len(estimator.balance_) > 1 else "")
    else:
        power = f", power {estimator.tweedie_power:g}"
        facts["objective"] = estimator.objective_ + power * (estimator.objective_ == "tweedie")
        is_log = estimator.objective_ != "mse"
        unit = "on the log scale" if is_log else f"times {estimator.target_scale_:.4g}"
    facts["balance"] = ", ".join(f"{shift:+.4g}" for shift in estimator.balance_) + f" {unit}"
    return facts


def _rule(threshold: Any) -> str:
    """Write a threshold's rule as the option of `fcorr train`."""
    if isinstance(threshold, str):
        return threshold
    ((name, setting),) = threshold.items()
    numbers = setting if isinstance(setting, Sequence) else [setting]
    return f"{name}={','.join(f'{number:g}' for number in numbers)}"


def _describe(column: "Column", feature: str) -> str:
    """Say what training learnt of a feature: its column's words or, of a date, the part's."""
    from fcorr.data.schema import DatetimeColumn, describe_column

    if isinstance(column, DatetimeColumn):
        (column,) = (part for part in column.features if part.name == feature)
    return describe_column(column)
