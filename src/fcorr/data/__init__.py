"""Tables: what their columns are, how they become arrays, and generators of test tables."""

from fcorr.data.datasets import (
    Dataset,
    Part,
    fetch_adult,
    fetch_bemtpl97,
    fetch_fremtpl2,
    load_adult,
    load_bemtpl97,
    load_fremtpl2,
)
from fcorr.data.encode import Difference, EncodedTable, SchemaDiff, encode
from fcorr.data.generators import (
    make_bank_fraud,
    make_indirect_bias,
    make_proxy_bias,
)
from fcorr.data.infer import infer_schema
from fcorr.data.schema import (
    BinnedColumn,
    CategoricalColumn,
    DatetimeColumn,
    NumericColumn,
    OrdinalColumn,
    RatedColumn,
    Schema,
)
from fcorr.data.tables import Table, read_table

__all__ = [
    "BinnedColumn",
    "CategoricalColumn",
    "Dataset",
    "DatetimeColumn",
    "Difference",
    "EncodedTable",
    "NumericColumn",
    "OrdinalColumn",
    "Part",
    "RatedColumn",
    "Schema",
    "SchemaDiff",
    "Table",
    "encode",
    "fetch_adult",
    "fetch_bemtpl97",
    "fetch_fremtpl2",
    "infer_schema",
    "load_adult",
    "load_bemtpl97",
    "load_fremtpl2",
    "make_bank_fraud",
    "make_indirect_bias",
    "make_proxy_bias",
    "read_table",
]
