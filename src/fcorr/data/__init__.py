"""Tables: what their columns are, how they become arrays, and a generator of test tables."""

from fcorr.data.encode import Difference, EncodedTable, SchemaDiff, encode
from fcorr.data.generators import make_proxy_bias
from fcorr.data.infer import infer_schema
from fcorr.data.schema import (
    CategoricalColumn,
    DatetimeColumn,
    NumericColumn,
    OrdinalColumn,
    RatedColumn,
    Schema,
)
from fcorr.data.stream import ParquetTable
from fcorr.data.tables import Table, read_table

__all__ = [
    "CategoricalColumn",
    "DatetimeColumn",
    "Difference",
    "EncodedTable",
    "NumericColumn",
    "OrdinalColumn",
    "ParquetTable",
    "RatedColumn",
    "Schema",
    "SchemaDiff",
    "Table",
    "encode",
    "infer_schema",
    "make_proxy_bias",
    "read_table",
]
