"""Scoring at scale: one function from tables to scores, for Parquet, Ray Data and Spark.

A row's scores depend on nothing but the row, so that they are the same to the bit whatever engine
cuts the rows into batches.
"""

import functools
import importlib
import logging
import os
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import pyarrow as pa
import pyarrow.parquet as pa_parquet
from sklearn.utils.validation import check_is_fitted

from fcorr._core import (
    InvalidInputError,
    check_argument,
    check_name,
    connect_ray,
    is_integer,
    renumber_rows,
    require,
    write_atomically,
)
from fcorr.data.encode import find_differences, parts_of_one_table
from fcorr.data.files import Piece, read_piece, split_parquet
from fcorr.data.tables import Table
from fcorr.estimators.classifier import FCorrClassifier
from fcorr.estimators.model_file import Estimator, load
from fcorr.training.rows import start_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BATCH_CELLS = 2**21  # of a table, that are read and scored at a time


class Scorer:
    """A model as a function from Arrow tables to Arrow tables of scores.

    It can be pickled, as the content of a model file, so that engines send it to their workers:
    ``dataset.map_batches(Scorer("model.fcorr"), batch_format="pyarrow")`` in Ray Data.

    Parameters
    ----------
    model : path-like, FCorrClassifier or FCorrRegressor
        The model file, or the fitted model.
    keep : list of str, optional
        Columns to copy to the output, before the scores; by default those of which the model knows
        no value, such as a key.
    rate : bool, default=False
        Score the rate per unit of exposure, which needs no exposure.

    Examples
    --------
    >>> from fcorr import FCorrRegressor
    >>> X = pa.table({"key": ["a", "b", "c"], "age": [20.0, 30.0, 50.0]})
    >>> model = FCorrRegressor(n_members=1, epochs=1, random_state=0)
    >>> scorer = Scorer(model.fit(X.select(["age"]), [1.0, 2.0, 3.0]))
    >>> scorer(X).column_names
    ['key', 'prediction']
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | Estimator,
        *,
        keep: Sequence[str] | None = None,
        rate: bool = False,
    ) -> None:
        self.model = load(model) if isinstance(model, str | os.PathLike) else model
        check_is_fitted(self.model, "model_")
        self.keep, self.rate = None if keep is None else tuple(dict.fromkeys(keep)), rate
        if rate and isinstance(self.model, FCorrClassifier):
            raise InvalidInputError(
                "rate is for models of numbers, and this one predicts classes. Leave it out.",
                argument="rate",
            )

    def __reduce__(self) -> tuple[Any, ...]:
        with tempfile.TemporaryDirectory(prefix="fcorr-") as folder:
            path = Path(folder, "model")
            self.model.save(path)
            return _restore, (path.read_bytes(), self.keep, self.rate)

    def __call__(self, table: pa.Table | pa.RecordBatch) -> pa.Table:
        """Score the rows of a table: kept columns, the prediction, the probability of each class.

        Of a model of numbers it is the prediction alone, or with ``rate`` the rate.
        """
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        schema = self.output_schema(table.schema)
        if table.num_rows == 0:
            return schema.empty_table()
        model = self.model
        if isinstance(model, FCorrClassifier):
            probabilities = model.predict_proba(table)
            scores = [model._decide(probabilities), *probabilities.T]
        else:
            scores = [model.predict_rate(table) if self.rate else model.predict(table)]
        kept = schema.names[: len(schema) - len(scores)]
        columns = [pa.array(each) for each in scores]
        return pa.table([*(table[name] for name in kept), *columns], schema.names).cast(schema)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns of the scores of a table that has these."""
        scores = {"rate" if self.rate else "prediction": pa.float64()}
        if isinstance(self.model, FCorrClassifier):
            classes = self.model.classes_.tolist()
            scores = {"prediction": pa.array(classes).type}
            scores |= {f"probability_{label}": pa.float64() for label in classes}
        kept = self.columns_kept(schema.names)
        for name in scores.keys() & kept:
            raise InvalidInputError(
                f"keep must name columns that the output has not of its own, got {name!r}. "
                "Rename the one in the table, or name columns to keep: by default all are that the "
                "model does not read.",
                argument="keep",
            )
        return pa.schema([*((name, schema.field(name).type) for name in kept), *scores.items()])

    def columns_kept(self, names: Sequence[str]) -> list[str]:
        """Return those columns of a table that are copied to the output."""
        schema = self.model.schema_
        read = [each.name for each in schema.columns if getattr(each, "is_known", True)]
        known = {*read, schema.target, schema.weight, schema.exposure}
        for name in self.keep or ():
            check_name(name, names, "keep must name columns of the table", argument="keep")
        return [n for n in names if n not in known] if self.keep is None else [*self.keep]

    def columns_read(self, names: Sequence[str]) -> list[str]:
        """Return those columns of a table that it needs; refuse one that has not all of them."""
        model, schema = self.model, self.model.schema_
        kept = self.columns_kept(names)
        if not hasattr(model, "feature_names_in_"):
            return [*names]  # the columns are taken in their order
        unread = {*schema.sensitive} if model.exact_ else set()
        needed = {*schema.names, *([schema.exposure] if schema.exposure and not self.rate else [])}
        if not needed - unread <= {*names}:
            nothing = {name: pa.chunked_array([], pa.null()) for name in names}
            table = Table(nothing, 0, named=True)
            raise find_differences(schema, table, read_sensitive=not model.exact_).to_error()
        return [name for name in names if name in (needed - unread) | {*kept}]


@functools.lru_cache(maxsize=4)
def _restore(content: bytes, keep: tuple[str, ...] | None, rate: bool) -> Scorer:
    """Load a model once in a process, however many tasks it works on."""
    with tempfile.TemporaryDirectory(prefix="fcorr-") as folder:
        path = Path(folder, "model")
        path.write_bytes(content)
        return Scorer(path, keep=keep, rate=rate)


# ------------------------------------------------------------------------------ Parquet


def score_parquet(
    model: str | os.PathLike[str] | Estimator,
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    keep: Sequence[str] | None = None,
    rate: bool = False,
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
    workers: int | None = None,
) -> int:
    """Score Parquet that need not fit into memory.

    Parameters
    ----------
    model : path-like, FCorrClassifier or FCorrRegressor
        The model file, or the fitted model.
    source : path-like
        A Parquet file, or a folder of them, which are read in the order of their names.
    output : path-like
        Parquet file to write, whole or not at all: the rows in the order of the source.
    keep, rate
        As in :class:`Scorer`.
    engine : {"local", "ray"}, default="local"
        This process, with as many threads as torch was given, or Ray Data.
    address : str, optional
        Ray's cluster, such as ``"10.0.0.1:6379"`` or ``"auto"``; its machines must see the source
        under the same name. By default what ``RAY_ADDRESS`` names, and else this machine.
    workers : int, optional
        Most of Ray's tasks at a time, of one processor each; by default as many as there are
        processors.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    InvalidInputError
        The data cannot be read, or differ from the training table; the error names file and row.
        Or no cluster answers at the address.
    """
    is_ray = engine == "ray"
    check_argument("engine", engine, engine in ("local", "ray"), "'local' or 'ray'")
    check_argument("address", address, address is None or is_ray, "left out without Ray")
    fits = workers is None or (is_ray and is_integer(workers, 1))
    rule = "an integer of at least 1, and left out without Ray"
    check_argument("workers", workers, fits, rule)
    scorer = Scorer(model, keep=keep, rate=rate)
    schema, pieces, n_rows = split_parquet(source)
    columns = scorer.columns_read(schema.names)
    if n_rows == 0:
        raise InvalidInputError(
            f"{os.fspath(source)!r} must have at least one row, got none. Check the filter that "
            "made it."
        )
    written = scorer.output_schema(pa.schema([schema.field(name) for name in columns]))
    if is_ray:
        tables = _map_on_ray(scorer, pieces, columns, address, workers)
    else:
        tables = _map_here(scorer, pieces, columns, n_rows)

    def write(file: BinaryIO) -> None:
        with pa_parquet.ParquetWriter(file, written) as writer:
            for group in _merge(tables):
                writer.write_table(group, group.num_rows)

    with parts_of_one_table(scorer.model.schema_), closing(tables):
        write_atomically(output, write)
    return n_rows


def _map_here(
    scorer: Scorer, pieces: Sequence[Piece], columns: Sequence[str], n_rows: int
) -> Generator[pa.Table, None, None]:
    """Score pieces, batch by batch on threads, and give the scores in order."""
    with start_workers(n_rows * len(columns)) as threads:
        yield from threads.map(lambda batch: _score(scorer, *batch), _read(pieces, columns))


def _read(pieces: Iterable[Piece], columns: Sequence[str]) -> Iterator[tuple[str, int, pa.Table]]:
    """Read pieces in batches, each with its file and its first row there."""
    n_rows = max(1, _BATCH_CELLS // len(columns))
    for piece in pieces:
        for first_row, table in read_piece(piece, columns, n_rows):
            yield piece.file, first_row, table


def _score(scorer: Scorer, file: str, first_row: int, table: pa.Table) -> pa.Table:
    """Score a batch; errors name the file, and count its rows."""
    try:
        return scorer(table)
    except InvalidInputError as error:
        rows = range(first_row, first_row + table.num_rows)
        raise InvalidInputError(f"{file!r}: {renumber_rows(error, rows)}") from error


def _merge(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Put tables together to those that are worth a row group."""
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        if sum(t.num_rows for t in held) >= 2**20 or sum(t.nbytes for t in held) >= 2**27:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


# ------------------------------------------------------------------------------ Ray


def _map_on_ray(
    scorer: Scorer,
    pieces: Sequence[Piece],
    columns: Sequence[str],
    address: str | None,
    workers: int | None,
) -> Generator[pa.Table, None, None]:
    """Score pieces by Ray Data, and give the scores in order."""
    with connect_ray(address, workers) as ray, ExitStack() as stack:
        data: Any = importlib.import_module("ray.data")
        context, log = data.DataContext.get_current(), logging.getLogger("ray.data")
        for where, name, value in (
            (context.execution_options, "preserve_order", True),
            (context, "enable_progress_bars", False),
        ):
            stack.callback(setattr, where, name, getattr(where, name))
            setattr(where, name, value)
        stack.callback(log.setLevel, log.level)
        log.setLevel(logging.CRITICAL)  # it would print the traceback of what is raised here
        dataset = data.from_items(
            [piece._asdict() for piece in pieces], override_num_blocks=len(pieces)
        ).map_batches(
            _score_pieces,
            batch_size=None,
            batch_format="pyarrow",
            fn_args=(scorer, columns),
            concurrency=workers and min(workers, len(pieces)),  # for more Ray warns
        )
        try:
            yield from dataset.iter_batches(batch_size=None, batch_format="pyarrow")
        except ray.exceptions.RayTaskError as error:
            if not isinstance(error.cause, InvalidInputError):
                raise
            message, *_ = str(error.cause).split("\n")  # after which there is advice of Ray's
            raise InvalidInputError(message) from None


def _score_pieces(pieces: pa.Table, scorer: Scorer, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Read and score pieces, in a process of Ray's."""
    for batch in _read([Piece(**piece) for piece in pieces.to_pylist()], columns):
        yield _score(scorer, *batch)


# ------------------------------------------------------------------------------ Spark


def score_spark(
    model: str | os.PathLike[str] | Estimator,
    frame: "DataFrame",
    *,
    keep: Sequence[str] | None = None,
    rate: bool = False,
) -> "DataFrame":
    """Score a data frame of Spark, by ``mapInArrow``; fcorr must be installed where it runs.

    Parameters
    ----------
    model : path-like, FCorrClassifier or FCorrRegressor
        The model file, on the machine that calls this, or the fitted model.
    frame : pyspark.sql.DataFrame
        The rows.
    keep, rate
        As in :class:`Scorer`.

    Returns
    -------
    pyspark.sql.DataFrame
        Kept columns and scores, which Spark computes when they are asked for.
    """
    require("pyspark", extra="spark", purpose="score_spark")
    types: Any = importlib.import_module("pyspark.sql.types")
    scorer = Scorer(model, keep=keep, rate=rate)
    names = scorer.columns_read(frame.columns)
    read = frame.select(*(f"`{name.replace('`', '``')}`" for name in names))
    kinds = {"double": "double", "int64": "long", "bool": "boolean", "string": "string"}
    kept = scorer.columns_kept(names)
    output = types.StructType([read.schema[name] for name in kept])
    for field in scorer.output_schema(pa.schema([(name, pa.null()) for name in names])):
        if field.name not in kept:
            output.add(field.name, kinds[str(field.type)])

    def score(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from scorer(pa.RecordBatch.from_arrays(batch.columns, names)).to_batches()

    # Under names of our own: mapInArrow cannot read a column with a dot in its name.
    renamed = read.toDF(*(f"c{i}" for i in range(len(names))))
    return renamed.mapInArrow(score, output)
