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
from fcorr.training.proxies import UNKNOWN, Groups

_QUANTILES = (0.25, 0.5, 0.75)  # at which a continuous sensitive column is cut
_FEW_ROWS = 2  # of a group in a batch, below which the batch says nothing of it


def find_groups(
    table: Table,
    encoded: EncodedTable,
    schema: Schema,
    weight: NDArray[np.float64],
    batch_size: int,
) -> Groups:
    """Find the group of each row and sensitive feature; warn of groups that batches hardly see.

    Rows whose sensitive value is missing are in no group.
    """
    if not schema.sensitive:
        raise InvalidInputError(
            "proxy needs the column whose groups shall not differ, got no sensitive column. Name "
            "it with sensitive=..., or leave proxy out.",
            argument="proxy",
        )
    share_in_batch = min(1.0, batch_size / len(encoded))
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
            seen = share_in_batch * sizes
            few = np.flatnonzero((sizes > 0) & (seen < _FEW_ROWS))
            if len(few):
                smallest = few[sizes[few].argmin()]
                label = f"quarter {smallest + 1}"
                if number < 0:
                    label = schema.categorical[position].labels[smallest]
                warnings.warn(
                    f"proxy compares groups within batches, and {len(few)} of "
                    f"{show_text(feature.name)} are in hardly any: {show_text(label)} has "
                    f"{sizes[smallest]} rows, {seen[smallest]:.1f} in a batch of {batch_size}. "
                    "Raise advanced['batch_size'], or pool the groups.",
                    UserWarning,
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
