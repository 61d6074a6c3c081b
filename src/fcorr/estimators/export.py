"""Export: a fitted model as one ONNX graph, from raw columns to scores, for other stacks to run.

The graph repeats :mod:`fcorr.data.encode` and :class:`~fcorr.nn.fcorr.FCorrTransformer`. Numbers
come in as double, are standardised as such and go through the network as float, as in Python;
only attention is a plain softmax here, where Python's kernels sum a power series.
"""

import datetime
import json
import math
import os
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import nn

from fcorr._core import InvalidInputError, check_argument, require, write_atomically
from fcorr._version import __version__
from fcorr.data.encode import FARTHEST, UNSEEN, encode_places
from fcorr.data.schema import CategoricalColumn, CategoryColumn, Column, NumericColumn, Schema
from fcorr.estimators.invariance import Portfolio
from fcorr.estimators.model_file import Estimator
from fcorr.nn.car import Exchange
from fcorr.nn.fcorr import FCorrEncoderLayer, FCorrTransformer
from fcorr.nn.layers import Knots

_OPSETS = range(17, 22)  # from the first that has LayerNormalization

_DAY = 86_400.0


def to_onnx(estimator: Estimator, path: str | os.PathLike[str], *, opset: int = 17) -> None:
    """Write a fitted model as an ONNX file, which scores raw columns without Python.

    Each column is an input of shape ``(n_rows, 1)`` under its name: text as string, "" where it is
    missing; all else as double, NaN where it is missing, booleans as 0 and 1, dates as seconds
    since 1970 by the clock on the wall. What an exactly invariant model does not read is no input.

    A classifier's outputs are ``label`` and ``probabilities``, ``(n_rows, n_classes)``; a
    regressor's ``prediction``, ``(n_rows, 1)``, and, where it knows an exposure, which is then an
    input too, ``rate``, per unit of it. Where a column has such a name, an underscore follows.

    The file's metadata hold as JSON the ``schema``, the ``target`` (classes and threshold, or the
    objective) and, of a model with sensitive columns, the ``certificate``.

    Parameters
    ----------
    estimator : FCorrClassifier or FCorrRegressor
        The fitted model.
    path : path-like
        File to write; an existing one is replaced in one step.
    opset : int, default=17
        Version of ONNX's operators, 17 to 21.

    Raises
    ------
    InvalidInputError
        The opset is none of these, or a column has categories that ONNX cannot tell apart.
    ImportError
        The package onnx is missing.
    """
    check_is_fitted(estimator, "model_")
    way_out = f"Leave it out for {_OPSETS[0]}, which most runtimes read."
    check_argument("opset", opset, opset in _OPSETS, f"{_OPSETS[0]} to {_OPSETS[-1]}", way_out)
    schema = estimator.schema_
    graph = _Graph({*schema.names, schema.exposure})
    with torch.no_grad():
        _add_model(graph, estimator)
    metadata = {"schema": schema.to_dict(), "target": estimator._target_state()}
    if hasattr(estimator, "_deviance_power"):
        metadata["target"]["power"] = estimator._deviance_power
    if schema.sensitive:
        metadata["certificate"] = estimator.certificate().to_dict()
    write_atomically(path, graph.finish(opset, estimator.summary(), metadata))


# ------------------------------------------------------------------------------ graphs


def _operator(name: str) -> Callable[["_Value", Any], "_Value"]:
    return lambda self, other: self.graph(name, self, other)


class _Value:
    """A tensor in the graph; arithmetic adds a node."""

    def __init__(self, graph: "_Graph", name: str) -> None:
        self.graph, self.name = graph, name

    __add__, __sub__ = _operator("Add"), _operator("Sub")
    __mul__, __truediv__ = _operator("Mul"), _operator("Div")
    __matmul__ = _operator("MatMul")

    def __floordiv__(self, other: float) -> "_Value":
        return self.graph("Floor", self / other)


class _Graph:
    """A graph in the making: call it with an operator to add a node.

    Arrays, torch's and numpy's, and plain numbers become constants in their own type.
    """

    def __init__(self, columns: set[str | None]) -> None:
        self.onnx: Any = require("onnx", extra="onnx", purpose="An ONNX file")
        self.helper = self.onnx.helper
        self.nodes: list[Any] = []
        self.constants: dict[Any, Any] = {}
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        # Columns keep their names, whatever they are: all else is called otherwise.
        self._columns = columns
        self._numbers = count()

    def __call__(self, operator: str, *inputs: Any, domain: str = "", **attributes: Any) -> _Value:
        out = self.free_name()
        names = [self._name(each) for each in inputs]
        node = self.helper.make_node(operator, names, [out], domain=domain, **attributes)
        self.nodes.append(node)
        return _Value(self, out)

    def free_name(self) -> str:
        return next(n for i in self._numbers if (n := f"t{i}") not in self._columns)

    def _name(self, value: Any) -> str:
        if isinstance(value, _Value):
            return value.name
        array = value.numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
        # Members share much, such as knots: it is kept once.
        is_text = array.dtype == object
        key = array.dtype, array.shape, repr(array.tolist()) if is_text else array.tobytes()
        if key not in self.constants:
            self.constants[key] = self.tensor(array, self.free_name())
        return str(self.constants[key].name)

    def tensor(self, array: NDArray[Any], name: str = "") -> Any:
        return self.onnx.numpy_helper.from_array(array.copy(order="C"), name)

    def cast(self, value: _Value, dtype: Any) -> _Value:
        return self("Cast", value, to=self.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def describe(self, name: str, dtype: Any, *shape: int | str) -> Any:
        kind = self.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.helper.make_tensor_value_info(name, kind, shape)

    def add_input(self, name: str, dtype: Any) -> _Value:
        """Add a column: ``(N, 1)``."""
        if not name:
            raise InvalidInputError(
                "A column must have a name to be an input of ONNX, got ''. Train with a name for "
                "it, or without it."
            )
        self.inputs.append(self.describe(name, dtype, "n_rows", 1))
        return _Value(self, name)

    def add_output(self, name: str, value: _Value, dtype: Any, *shape: int) -> None:
        while name in self._columns:
            name += "_"
        self.nodes.append(self.helper.make_node("Identity", [value.name], [name]))
        self.outputs.append(self.describe(name, dtype, "n_rows", *shape))

    def finish(self, opset: int, description: str, metadata: dict[str, Any]) -> bytes:
        constants = list(self.constants.values())
        graph = self.helper.make_graph(self.nodes, "fcorr", self.inputs, self.outputs, constants)
        opsets = [self.helper.make_opsetid(*each) for each in (("", opset), ("ai.onnx.ml", 4))]
        model = self.helper.make_model(
            graph,
            opset_imports=opsets,
            ir_version=self.helper.find_min_ir_version_for(opsets),
            producer_name="fcorr",
            producer_version=__version__,
            doc_string=description,
        )
        texts = {k: json.dumps(value, ensure_ascii=False) for k, value in metadata.items()}
        self.helper.set_model_props(model, texts)
        self.onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString())


def _add_model(g: _Graph, estimator: Estimator) -> None:
    schema, portfolio = estimator.schema_, estimator.portfolio_
    rows = _Rows(g, schema, schema.sensitive if estimator.exact_ else ())
    networks = estimator.model_.members
    embedded = [rows.embed(network) for network in networks]
    link = estimator._link().name
    if portfolio is None:
        outputs = _mean_output(g, networks, embedded)
    else:
        outputs = _average(g, networks, embedded, portfolio, link)
    outputs = outputs + estimator.balance_
    if hasattr(estimator, "classes_"):
        _add_classes(g, estimator, outputs)
        return
    constant, unit = estimator._scale()
    rate = outputs * unit + constant
    if link == "exp":
        rate = g("Exp", rate)
    if schema.exposure is None:
        g.add_output("prediction", rate, np.float64, 1)
    else:
        exposure = g.add_input(schema.exposure, np.float64)
        g.add_output("prediction", exposure * rate, np.float64, 1)
        g.add_output("rate", rate, np.float64, 1)


def _add_classes(g: _Graph, estimator: Any, outputs: _Value) -> None:
    if estimator.threshold_ is None:
        probabilities = g("Softmax", outputs, axis=1)
        chosen = g("ArgMax", probabilities, axis=1, keepdims=0)
    else:
        probability = g("Sigmoid", outputs)
        probabilities = g("Concat", g("Sub", 1.0, probability), probability, axis=1)
        is_second = g("GreaterOrEqual", probability, estimator.threshold_)
        chosen = g("Squeeze", g.cast(is_second, np.int64), [1])
    classes = estimator.classes_
    kinds: dict[str, Any] = {"b": bool, "f": np.float64, "i": np.int64, "u": np.int64}
    kind = kinds.get(classes.dtype.kind, object)
    g.add_output("label", g("Gather", classes.astype(kind), chosen), kind)
    g.add_output("probabilities", probabilities, np.float64, len(classes))


# ------------------------------------------------------------------------------ columns


class _Rows:
    """The inputs, and what networks make of them."""

    def __init__(self, g: _Graph, schema: Schema, unread: Sequence[str]) -> None:
        self.g = g
        self._located: dict[bytes, tuple[_Value, _Value, _Value]] = {}
        found: dict[str, _Value] = {}
        for column in schema.columns:
            if column.name not in unread:
                found |= _encode_column(g, column)
        shape = g("Shape", _Value(g, g.inputs[0].name))
        for name in unread:  # as `encode` has it
            for feature in schema[name].features:
                held = float(feature.mode) if isinstance(feature, CategoricalColumn) else 0.0
                found[feature.name] = g("Expand", [[held]], shape)
        if schema.categorical:
            parts = (found[feature.name] for feature in schema.categorical)
            codes = g.cast(g("Concat", *parts, axis=1), np.int64)
            self.category_slots = codes + np.cumsum([0, *schema.cardinalities[:-1]])
        if schema.numeric:
            numbers = g("Concat", *(found[feature.name] for feature in schema.numeric), axis=1)
            is_nan = g("IsNaN", numbers)
            kept = np.array([feature.keep_missing for feature in schema.numeric])
            self.are_missing = g("And", is_nan, kept)
            numbers = g("Clip", g("Where", is_nan, 0.0, numbers), -FARTHEST, FARTHEST)
            self.numbers = g.cast(numbers, np.float32)

    def embed(self, network: FCorrTransformer) -> _Value:
        """Embed every feature in every view: ``(N, H, F)``."""
        g, n_categorical = self.g, len(network.cat_cardinalities)
        values = network.slot_values()
        parts = [g("Gather", values, self.category_slots)] if n_categorical else []
        if isinstance(network.knots, Knots) and network.n_features > n_categorical:
            slot, after, share = self._locate(network.knots, sum(network.cat_cardinalities))
            low = g("Gather", values, slot)
            parts.append(low + (g("Gather", values, after) - low) * share)
        elif network.n_features > n_categorical:
            numeric: Any = network.numeric
            first, second = numeric.first, numeric.second
            e_NM = _gelu(self.numbers * first.weight + first.bias) * second.weight + second.bias
            if network.missing is not None:
                e_NM = g("Where", self.are_missing, network.missing, e_NM)
            parts.append(g("Unsqueeze", e_NM, [2]))
        return g("Transpose", g("Concat", *parts, axis=1), perm=[0, 2, 1])

    def _locate(self, knots: Knots, n_codes: int) -> tuple[_Value, _Value, _Value]:
        """Find the two slots each number lies between, and the share of the way."""
        key = knots.knots.numpy().tobytes()
        if key not in self._located:
            g, left = self.g, knots.knots[:, :-1]
            # The whole segments that a number has passed, and its share of the next one. There are
            # none beyond the last knot.
            width = (knots.knots[:, 1:] - left).nan_to_num(nan=torch.inf, posinf=torch.inf)
            left = torch.where(left.isinf(), 0.0, left)
            passed = (g("Unsqueeze", self.numbers, [2]) - left) / width
            passed = g("Clip", passed, np.float32(0), np.float32(1))
            position = g("ReduceSum", passed, [2], keepdims=0)
            knot, starts = g("Floor", position), n_codes + knots.starts
            slot = g.cast(knot, np.int64) + starts[:-1]
            after = g("Min", slot + 1, starts[1:] - 1)
            missing = starts[-1] + torch.arange(len(left))
            slot, after = (g("Where", self.are_missing, missing, each) for each in (slot, after))
            self._located[key] = slot, after, g("Unsqueeze", position - knot, [2])
        return self._located[key]


def _encode_column(g: _Graph, column: Column) -> dict[str, _Value]:
    """Add an input; return its features, in double: codes, and standardised numbers."""
    if isinstance(column, CategoryColumn):
        (feature,) = column.features
        return {feature.name: _encode_categories(g, column)}
    value = g.add_input(column.name, np.float64)
    if isinstance(column, NumericColumn):
        return {column.name: (value - column.mean) / column.scale}
    parts = _date_parts(value, column.origin)
    pairs = zip(column.parts, column.features, strict=True)
    return {f.name: (parts[part] - f.mean) / f.scale for part, f in pairs}


def _encode_categories(g: _Graph, column: CategoryColumn) -> _Value:
    seen = [category for category in column.categories if category is not None]
    places = np.append(np.arange(len(seen), dtype=np.int32), np.int32(UNSEEN))
    *known, unseen, missing = encode_places(places, column)[0].astype(np.float64)
    if column.is_text and ("" not in seen or column.n_missing):
        seen, known = [*seen, ""], [*known, missing]
    keys = np.array(seen, dtype=object if column.is_text else np.float64)
    if len(set(keys.tolist())) < len(keys):
        raise InvalidInputError(
            f"Column {column.name!r} must have categories that ONNX can tell apart, where '' is a "
            "missing value and all numbers are float64. Train with other names for them."
        )
    value = g.add_input(column.name, keys.dtype)
    tensors = {"keys": keys, "values": np.array(known), "default": np.array([unseen])}
    attributes = {f"{name}_tensor": g.tensor(array) for name, array in tensors.items()}
    found = g("LabelEncoder", value, domain="ai.onnx.ml", **attributes)
    return found if column.is_text else g("Where", g("IsNaN", value), missing, found)


def _date_parts(seconds: _Value, origin: datetime.date) -> dict[str, _Value]:
    """Take dates apart as :func:`fcorr.data.tables.date_part` does; NaN gives NaN."""
    day = seconds // _DAY
    weekday = day + 3.0  # 1970 began on a Thursday
    # The calendar of 400 years, whose years begin in March: Hinnant, "chrono-compatible low-level
    # date algorithms", civil_from_days.
    since = day + 719_468.0
    era = since // 146_097.0
    of_era = since - era * 146_097.0
    year = (of_era - of_era // 1_460.0 + of_era // 36_524.0 - of_era // 146_096.0) // 365.0
    of_year = of_era - (year * 365.0 + year // 4.0 - year // 100.0)
    month = (of_year * 5.0 + 2.0) // 153.0
    is_next = month // 10.0  # January and February
    return {
        "year": year + era * 400.0 + is_next,
        "month": month + 3.0 - is_next * 12.0,
        "day_of_week": weekday - weekday // 7.0 * 7.0,
        "hour": (seconds - day * _DAY) // 3_600.0,
        "days": day - float((origin - datetime.date(1970, 1, 1)).days),
    }


# ------------------------------------------------------------------------------ the network


def _mean_output(
    g: _Graph, networks: Sequence[FCorrTransformer], embedded: Sequence[_Value]
) -> _Value:
    """Compute the mean of the networks' outputs in double: ``(N, K)``."""
    outputs = [_outputs(g, *each) for each in zip(networks, embedded, strict=True)]
    return g.cast(g("Sum", *outputs) / np.float32(len(outputs)), np.float64)


def _outputs(g: _Graph, network: FCorrTransformer, e_NHF: _Value) -> _Value:
    """Compute a network's outputs: ``(N, K)``."""
    head = network.head
    outputs: Any = head.output.bias
    if not network.is_additive:
        h: Any = e_NHF if network.views is None else e_NHF * network.mixed
        for layer in network.layers:
            h = _encoder_layer(g, cast(FCorrEncoderLayer, layer), h)
        norm = network.head_norm
        h = _normalise(g, norm, g("Reshape", h, [-1, *norm.normalized_shape]))
        for hidden in head.hidden:
            h = _gelu(h @ hidden.weight.T + hidden.bias)
        outputs = h @ head.output.weight.T + outputs
    if network.views is None:
        return outputs
    main = g("Gather", e_NHF, list(range(network.n_outputs)), axis=1)
    return g("ReduceSum", main, [2], keepdims=0) + outputs


def _encoder_layer(g: _Graph, layer: FCorrEncoderLayer, h: _Value) -> _Value:
    z = _normalise(g, layer.attention_norm, h)
    root = np.float32(math.sqrt(layer.attention_norm.normalized_shape[0]))
    keys = g("Unsqueeze", z, [3])
    weights = g("Softmax", keys @ g("Unsqueeze", z / root, [2]), axis=-1)
    attended = g("Squeeze", weights @ keys, [3])
    if layer.residual:
        attended = h + attended
    x = _normalise(g, layer.stack_norm, attended)
    for i, each in enumerate(layer.stack):
        x = (_gelu(x) if i else x) * each.weight + each.bias
    return attended + x


def _normalise(g: _Graph, norm: nn.LayerNorm, x: _Value) -> _Value:
    return g("LayerNormalization", x, norm.weight, norm.bias, axis=-1, epsilon=norm.eps)


def _gelu(x: _Value) -> _Value:
    half, one, root = np.float32(0.5), np.float32(1), np.float32(math.sqrt(2))
    return x * half * (x.graph("Erf", x / root) + one)


def _average(
    g: _Graph,
    networks: Sequence[FCorrTransformer],
    embedded: Sequence[_Value],
    portfolio: Portfolio,
    link: str,
) -> _Value:
    """Average predictions over the portfolio, and take them back through the link: ``(N, K)``.

    One combination of sensitive values after the other: all at once would take too much memory.
    """
    counted = portfolio.shares > 0
    exchange = Exchange(portfolio.features, portfolio.values[counted])
    is_own = np.isin(np.arange(networks[0].n_features), portfolio.features)
    tables, exchanged, inputs, outside = [], [], [], g.nodes
    g.nodes = []
    for network, e_NHF in zip(networks, embedded, strict=True):
        table = torch.zeros(len(exchange), network.n_views, network.n_features)
        table[:, :, list(portfolio.features)] = exchange.embed(network)
        tables.append(table)
        own = _Value(g, g.free_name())
        inputs.append(g.describe(own.name, np.float32, *table.shape[1:]))
        exchanged.append(g("Where", is_own, own, e_NHF))
    outputs = _mean_output(g, networks, exchanged)
    operators = {"sigmoid": "Sigmoid", "softmax": "Softmax", "exp": "Exp", "identity": "Identity"}
    scores = g(operators[link], outputs)
    found = g.describe(scores.name, np.float64, "n_rows", network.n_outputs)
    body = g.helper.make_graph(g.nodes, "one of the portfolio", inputs, [found])
    g.nodes = outside
    scores = g("Scan", *tables, body=body, num_scan_inputs=len(tables))
    shares = portfolio.shares[counted][:, None, None]
    mean = g("ReduceSum", scores * shares, [0], keepdims=0)
    if link == "identity":
        return mean
    log = g("Log", mean)
    return log - g("Log", g("Sub", 1.0, mean)) if link == "sigmoid" else log
