"""A model as data for the page, whose script computes its predictions: see ``page.js``."""

import base64
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fcorr.audit.measure import MIN_NAMED
from fcorr.data.schema import CategoryColumn, Column, DatetimeColumn, Schema
from fcorr.estimators.model_file import Estimator
from fcorr.metrics.sharing import draw_orders
from fcorr.nn.fcorr import FCorrTransformer

# Of a column, whatever its kind has.
_LEARNT = ["categories", "labels", "mode", "pool", "ratings", "parts", "first", "last"]
_MOST = 64, 200, 64  # members, features and averaged values that a browser computes with ease
_MOST_PRODUCTS = 10**8  # for the shares of features in what they do together, about half a second
_MOST_ORDERS = 32


def pack_model(estimator: Estimator, threshold: float | None) -> dict[str, Any] | str:
    """Return what the page needs to compute predictions as plain data; or why it cannot.

    The ``threshold`` is that of the second of two classes.
    """
    members, portfolio = estimator.model_.members, estimator.portfolio_
    schema = estimator.schema_
    sizes = {
        "members": len(members),
        "features": len(schema.feature_names),
        "averaged sensitive values": 0 if portfolio is None else len(portfolio.shares),
    }
    for (what, n), most in zip(sizes.items(), _MOST, strict=True):
        if n > most:
            return f"the page computes models of up to {most} {what}, and this one has {n}"
    if any(member.knots is None for member in members):
        return "the page computes shape functions with knots, and this model has the paper's"
    arrays: list[NDArray[np.float32]] = []

    def place(values: Any) -> list[int]:
        """Put numbers to the others, and tell where they are."""
        arrays.append(np.ascontiguousarray(torch.as_tensor(values).detach().numpy(), "<f4").ravel())
        return [sum(map(len, arrays[:-1])), len(arrays[-1])]

    with torch.no_grad():
        packed = [_pack_member(member, place) for member in members]
    constant, unit = estimator._scale()
    # As many orders of the features as the page has time for; none if too few.
    n_products = sum(parameter.numel() for parameter in estimator.model_.parameters())
    n_passes = sizes["features"] * max(1, sizes["averaged sensitive values"])
    n_orders = min(_MOST_ORDERS, _MOST_PRODUCTS // (n_products * n_passes)) // 2 * 2
    starts: dict[str, Any] = {}  # of numbers, the median of the training rows
    if estimator._options["main_effects"]:
        for name, effect in estimator.main_effects().items():
            if effect.kind == "numeric":
                places = np.searchsorted(np.cumsum(effect.rows), effect.rows.sum() / 2)
                starts[name] = next(v for v in effect.values[int(places) :: -1] if v is not None)
    data: dict[str, Any] = {
        "columns": [_describe(each, schema) for each in schema.columns],
        "features": schema.feature_names,
        "starts": starts,
        "sensitive": schema.sensitive,
        "hidden": schema.sensitive_positions if estimator.exact_ else [],
        "orders": draw_orders(sizes["features"], n_orders, 0) if n_orders >= 4 else [],
        "cardinalities": schema.cardinalities,
        "members": packed,
        "balance": estimator.balance_,
        "constant": constant,
        "unit": unit,
        "link": estimator._link().name,
        "classes": [str(label) for label in getattr(estimator, "classes_", ())],
        "threshold": threshold,
        "portfolio": portfolio
        and {
            "features": portfolio.features,
            "values": portfolio.values.numpy(),
            "shares": portfolio.shares.numpy(),
        },
    }
    data["weights"] = base64.b64encode(np.concatenate(arrays).tobytes()).decode()
    return data


def _pack_member(network: FCorrTransformer, place: Any) -> dict[str, Any]:
    """Put a network's weights down: a table of slots, encoder layers, the head."""
    main = torch.zeros(0) if network.views is None else network.views.main_values()
    knots: Any = network.knots
    layers: Any = network.layers
    head = [*network.head.hidden, network.head.output]

    def norm(layer: Any) -> list[Any]:
        return [place(layer.weight), place(layer.bias), float(layer.eps)]

    return {
        "views": network.n_views,
        "outputs": network.n_outputs,
        "values": place(network.slot_values()),
        "main": place(main),
        "knots": place(knots.knots[knots.used]),
        "starts": knots.starts.tolist(),
        "mixed": place(network.mixed),
        "layers": [
            {
                "residual": layer.residual,
                "attention_norm": norm(layer.attention_norm),
                "stack_norm": norm(layer.stack_norm),
                "stack": [[place(each.weight), place(each.bias)] for each in layer.stack],
            }
            for layer in layers
        ],
        "head_norm": norm(network.head_norm),
        "head": [[place(layer.weight), place(layer.bias)] for layer in head],
    }


def _describe(column: Column, schema: Schema) -> dict[str, Any]:
    """Say how a column becomes codes or numbers, and where these are among the features.

    Rare categories have no name, which a list stands for: no value equals it. "Missing" is no name.
    """
    features = schema.feature_names
    found: dict[str, Any] = {"name": column.name, "kind": column.kind}
    found["features"] = [
        {"at": features.index(feature.name)}
        | {n: getattr(feature, n, None) for n in ("mean", "scale", "low", "high", "keep_missing")}
        for feature in column.features
    ]
    found |= {name: getattr(column, name) for name in _LEARNT if hasattr(column, name)}
    is_grouped = column.name in schema.sensitive  # whose groups are listed anyway
    if not is_grouped and isinstance(column, CategoryColumn):
        named = zip(column.categories, column.counts, strict=True)
        is_shown = [n >= MIN_NAMED or each is None for each, n in named] + [True]  # of a pool, too
        for name, hidden in (("categories", []), ("labels", "a rare one")):
            pairs = zip(found.get(name, ()), is_shown, strict=False)
            found[name] = [each if shown else hidden for each, shown in pairs]
    if isinstance(column, DatetimeColumn):
        found["origin"] = column.origin.isoformat()
    return found
