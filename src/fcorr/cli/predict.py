"""`fcorr predict`: a model and a table in, a table of predictions out."""

from pathlib import Path
from typing import Annotated

import typer

from fcorr.cli._console import check_columns


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
    if not output.parent.is_dir():
        raise typer.BadParameter(
            f"the folder {str(output.parent)!r} does not exist.", param_hint="--output"
        )
    import pyarrow as pa

    from fcorr.data.files import read_file, write_file
    from fcorr.estimators import FCorrClassifier, load

    estimator = load(model)
    table = read_file(data)
    check_columns(keep or [], table.column_names, "--keep")
    columns = {name: table[name] for name in keep or []}
    if isinstance(estimator, FCorrClassifier):
        probabilities = estimator.predict_proba(table)
        columns["prediction"] = pa.array(estimator.classes_[probabilities.argmax(axis=1)])
        for label, values in zip(estimator.classes_, probabilities.T, strict=True):
            columns[f"probability_{label}"] = pa.array(values)
    else:
        columns["prediction"] = pa.array(estimator.predict(table))
    write_file(pa.table(columns), output)
    typer.echo(f"wrote {output}: {table.num_rows} rows")
