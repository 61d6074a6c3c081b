"""From a fitted estimator, and rows, to its certificate."""

import copy
import math
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fcorr._core import InvalidInputError
from fcorr.certify.certificate import ALL_TOGETHER, Certificate, certify_model
from fcorr.certify.domain import Domain
from fcorr.data.encoding import EncodedTable, encode
from fcorr.estimators.base import BaseFCorr
from fcorr.nn.counterfactuals import Exchange, exchange_features
from fcorr.nn.embeddings import SplineEmbedding

MAX_FLIPS = 4_096
"""Most combinations of sensitive values that each row of a sample is scored for."""

_MOST_VALUES = 64  # of a continuous feature, by itself
_FEW_VALUES = 8  # of each, where several features are flipped together


def certify_estimator(
    estimator: BaseFCorr,
    X: Any,
    *,
    epsilon: float | None,
    alpha: float | None,
    confidence: float,
    effort: int,
) -> Certificate:
    """Certify a fitted estimator; see :meth:`BaseFCorr.certificate`."""
    schema = estimator.schema_
    positions = schema.sensitive_positions
    if not positions:
        raise InvalidInputError(
            "A certificate is about flips of sensitive columns, and this model was fitted without "
            "any. Fit it with sensitive=..., or leave the certificate out."
        )
    changes: dict[str, NDArray[np.float64]] | None = None
    notes: list[str] = []
    if X is not None:
        changes, notes = _changes(estimator, X)
    return certify_model(
        copy.deepcopy(estimator.model_).cpu(),
        positions,
        schema.sensitive_features,
        link=estimator._link(),
        domain=training_domain(estimator),
        averaged=estimator.portfolio_ is not None,
        changes=changes,
        confidence=confidence,
        alpha=alpha,
        epsilon=epsilon,
        effort=effort,
        notes=notes,
    )


def training_domain(estimator: BaseFCorr) -> Domain:
    """Every number, or the training range where an embedding would grow without limit."""
    if isinstance(estimator.model_.numeric, SplineEmbedding):
        return Domain()
    numeric = estimator.schema_.numeric
    return Domain(
        low=[(column.low - column.mean) / column.scale for column in numeric],
        high=[(column.high - column.mean) / column.scale for column in numeric],
    )


def _changes(estimator: BaseFCorr, X: Any) -> tuple[dict[str, NDArray[np.float64]], list[str]]:
    """Score each row for all its flips: its largest change, by feature and by combination."""
    schema = estimator.schema_
    names = schema.sensitive_features
    table = estimator._read_known_table(X)
    if estimator.exact_:
        together = [ALL_TOGETHER] if len(names) > 1 else []
        return dict.fromkeys([*names, *together], np.zeros(table.n_rows)), []
    encoded = encode(table, schema)
    notes = []
    changes = {}
    for name, exchange in zip(names, _exchanges(estimator, _MOST_VALUES), strict=True):
        changes[name] = _largest_changes(estimator, encoded, exchange)
        if exchange.features[0] >= encoded.codes.shape[1]:
            notes.append(f"Sampled rows were flipped to {len(exchange)} values of {name!r}.")
    if len(names) > 1:
        sizes = [len(exchange) for exchange in _exchanges(estimator, _FEW_VALUES)]
        if math.prod(sizes) <= MAX_FLIPS:
            (joint,) = _exchanges(estimator, _FEW_VALUES, combinations=True)
            changes[ALL_TOGETHER] = _largest_changes(estimator, encoded, joint)
            notes.append(f"Together they were flipped to {len(joint)} combinations of values.")
        else:
            notes.append(
                f"Together they have {math.prod(sizes):,} combinations of values, more than the "
                f"{MAX_FLIPS:,} that a sample is scored for: no statement about these."
            )
    return changes, notes


def _exchanges(
    estimator: BaseFCorr, most_values: int, *, combinations: bool = False
) -> tuple[Exchange, ...]:
    model, schema = estimator.model_, estimator.schema_
    n_categorical = len(schema.categorical)
    grids = {
        position: _values(estimator, position - n_categorical, most_values)
        for position in schema.sensitive_positions
        if position >= n_categorical
    }
    return exchange_features(
        schema.cardinalities,
        len(schema.numeric),
        schema.sensitive_positions,
        grids=grids,
        combinations=combinations,
        device=next(model.parameters()).device,
    )


def _values(estimator: BaseFCorr, place: int, most: int) -> Tensor:
    """Numbers to flip a continuous feature to: its knots, between which nothing bends."""
    model, column = estimator.model_, estimator.schema_.numeric[place]
    if isinstance(model.numeric, SplineEmbedding):
        values = model.numeric.knots[place][model.numeric.used[place]].cpu()
        values = values[torch.linspace(0, len(values) - 1, min(most, len(values))).round().long()]
    else:
        low, high = ((end - column.mean) / column.scale for end in (column.low, column.high))
        values = torch.linspace(low, high, most)
    if column.keep_missing:
        values = torch.cat([values, torch.tensor([torch.nan])])
    return values


def _largest_changes(
    estimator: BaseFCorr, encoded: EncodedTable, exchange: Exchange
) -> NDArray[np.float64]:
    softmax = estimator._link_name() == "softmax"
    balance = torch.from_numpy(estimator.balance_) if softmax else None
    parts = estimator._map(encoded, partial(_range_over_flips, estimator.model_, exchange, balance))
    ranges = torch.cat(list(parts)).cpu().numpy()
    low, high = np.split(ranges, 2, axis=1)
    if not softmax:  # of one output, of which the prediction is a monotone function
        low, high = (estimator._to_predictions(ends + estimator.balance_) for ends in (low, high))
    return np.abs(high - low).max(axis=1)


def _range_over_flips(
    model: Any, exchange: Exchange, balance: Tensor | None, x_cat: Tensor, x_num: Tensor
) -> Tensor:
    """Smallest and largest output, or probability of several classes: ``(B, 2 K)``."""

    def outputs(e_BF: Tensor) -> Tensor:
        found = model.decode(model.encode(e_BF)).double()
        return found if balance is None else torch.softmax(found + balance.to(found), dim=1)

    e_BF = model.embed(x_cat, x_num)
    low = high = outputs(e_BF)
    for values_S in exchange.embed(model):
        e_BF[:, list(exchange.features)] = values_S
        found = outputs(e_BF)
        low, high = torch.minimum(low, found), torch.maximum(high, found)
    return torch.cat([low, high], dim=1)
