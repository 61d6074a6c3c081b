"""`fcorr predict`: a model and a table in, a table of predictions out."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fcorr.cli._console import check_columns, check_output


def predict(
    model: Annotated[Path, typer.Argument(help="Model file.", exists=True, dir_okay=False)],
    data: Annotated[
        Path, typer.Argument(help="CSV or Parquet file to score.", exists=True, dir_okay=False)
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="CSV or Parquet file to write.", dir_okay=False),
    ],
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Column to copy to the output, such as a key; repeatable."),
    ] = None,
) -> None:
    """Score a file with a trained model.

    Writes the prediction of each row and, for classes, the probability of each class.
    """
    check_output(output, data, model)
    import pyarrow as pa

    from fcorr.data.files import WRITABLE, read_file, write_file
    from fcorr.estimators import FCorrClassifier, load

    if not output.name.lower().endswith(WRITABLE):
        raise typer.BadParameter(
            f"must end in .csv or .parquet, got {output.name!r}.", param_hint="--output"
        )
    estimator = load(model)
    table = read_file(data, text=estimator.schema_.text)
    check_columns(keep or [], table.column_names, "--keep")
    columns: dict[str, Any] = {}
    if isinstance(estimator, FCorrClassifier):
        probabilities = estimator.predict_proba(table)
        columns["prediction"] = pa.array(estimator.classes_[probabilities.argmax(axis=1)])
        for label, values in zip(estimator.classes_, probabilities.T, strict=True):
            columns[f"probability_{label}"] = pa.array(values)
    else:
        columns["prediction"] = pa.array(estimator.predict(table))
    for name in keep or []:
        if name in columns:
            raise typer.BadParameter(
                f"the output has a column {name!r} of its own. Rename the one in the file.",
                param_hint="--keep",
            )
    kept = {name: table[name] for name in keep or []}
    write_file(pa.table({**kept, **columns}), output)
    typer.echo(f"wrote {output}: {table.num_rows} rows")
