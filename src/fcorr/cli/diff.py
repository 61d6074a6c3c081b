"""`fcorr diff`: what differs between a table and the one that a model was trained on."""

import functools
from dataclasses import asdict, replace

import typer

from fcorr._core import InvalidInputError, renumber_rows
from fcorr.cli import _shared as shared


def diff(
    model: shared.ModelFile,
    data: shared.DataFile,
    delimiter: shared.Delimiter = None,
    decimal: shared.Decimal = None,
    dates: shared.Dates = None,
    as_json: shared.AsJson = False,
) -> None:
    """List how data differs from the training table of a model.

    Exit code 3 where the model cannot predict for such data; 0 where nothing differs, or only what
    it can do with: rows out of range, unseen categories, missing values, further columns. What the
    model does not read, a sensitive column it is exactly invariant to, may differ in any way.
    """
    from fcorr.data.encode import SchemaDiff
    from fcorr.estimators import load

    estimator = load(model)
    schema = estimator.schema_
    table, dialect = shared.read_known(data, schema, shared.make_dialect(delimiter, decimal, dates))
    outcomes = {schema.target, schema.weight}.intersection(table.column_names)
    found = schema.diff(table.drop_columns([*outcomes]), read_sensitive=not estimator.exact_)
    name = functools.partial(shared.name_line, data, dialect)
    texts = [str(renumber_rows(InvalidInputError(one.text), None, name)) for one in found]
    found = SchemaDiff(replace(one, text=text) for one, text in zip(found, texts, strict=True))
    if as_json:
        each = [{**asdict(one), "is_fatal": one.is_fatal} for one in found]
        shared.print_json({"fits": not found.fatal, "differences": each})
    else:
        for line in str(found).splitlines():
            shared.echo(line)
    if found.fatal:
        raise typer.Exit(shared.CHECK_FAILED)
