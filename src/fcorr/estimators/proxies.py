"""Groups of sensitive columns in a training table, for the proxy dial."""

import warnings

import numpy as np
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray

from fcorr._core import InvalidInputError, show_text
from fcorr.data.encode import EncodedTable
from fcorr.data.schema import Schema
from fcorr.data.tables import Table
from fcorr.training.proxies import FEW_ROWS, UNKNOWN, Groups

_QUANTILES = (0.25, 0.5, 0.75)  # at which a continuous sensitive column is cut
_FEW_IN_BATCH = 2  # rows of a group, below which a batch says nothing of its scores


def find_groups(
    table: Table,
    encoded: EncodedTable,
    schema: Schema,
    weight: NDArray[np.float64],
    batch_size: int | None,
) -> Groups:
    """Find the group of each row and sensitive feature; warn of groups that have too few rows.

    That is in a batch, where groups are compared within batches, or in the table. Rows whose
    sensitive value is missing are in no group.
    """
    if not schema.sensitive:
        raise InvalidInputError(
            "proxy needs the column whose groups shall not differ, got no sensitive column. Name "
            "it with sensitive=..., or leave proxy out.",
            argument="proxy",
        )
    seen_share, least, where = 1.0, FEW_ROWS, f"of which {FEW_ROWS:g} are believed by half"
    if batch_size is not None:
        seen_share, least = min(1.0, batch_size / len(encoded)), _FEW_IN_BATCH
    found = []
    for name in schema.sensitive:
        missing = pc.is_null(table.columns[name], nan_is_null=True).to_numpy()
        for feature in schema[name].features:
            position = schema.feature_names.index(feature.name)
            number = position - len(schema.categorical)
            if number < 0:
                groups = encoded.codes[:, position].astype(np.int64)
            else:
                numbers = encoded.numbers[:, number]
                edges = np.unique(np.quantile(numbers[~missing], _QUANTILES))
                groups = np.searchsorted(edges, numbers, side="right")
            groups[missing] = UNKNOWN
            sizes = np.bincount(groups[~missing])
            seen = seen_share * sizes
            few = np.flatnonzero((sizes > 0) & (seen < least))
            if len(few):
                smallest = few[sizes[few].argmin()]
                label = f"quarter {smallest + 1}"
                if number < 0:
                    label = schema.categorical[position].labels[smallest]
                if batch_size is not None:
                    where = f"{seen[smallest]:.1f} in a batch of {batch_size}"
                warnings.warn(
                    f"proxy compares groups, and {len(few)} of {show_text(feature.name)} have too "
                    f"few rows to have a say: {show_text(label)} has {sizes[smallest]}, {where}. "
                    "Pool the groups"
                    + (", or raise advanced['batch_size']." if batch_size else "."),
                    stacklevel=5,
                )
            found.append(torch.from_numpy(groups))
    codes = torch.stack(found, 1)
    shares = tuple(
        torch.from_numpy(np.bincount(column[known], weights=weight[known]))
        for column in codes.numpy().T
        for known in [column != UNKNOWN]
    )
    return Groups(codes, torch.from_numpy(weight).float(), shares)
