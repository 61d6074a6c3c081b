"""Tables: what their columns are, how they become arrays, and generators of test tables."""

from fcorr.data.encoding import EncodedTable, encode
from fcorr.data.generators import make_bank_fraud, make_claims, make_indirect_bias
from fcorr.data.schema import CategoricalColumn, NumericColumn, Schema, infer_schema
from fcorr.data.tables import Table, read_table

__all__ = [
    "CategoricalColumn",
    "EncodedTable",
    "NumericColumn",
    "Schema",
    "Table",
    "encode",
    "infer_schema",
    "make_bank_fraud",
    "make_claims",
    "make_indirect_bias",
    "read_table",
]
