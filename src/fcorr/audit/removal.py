"""The same table with columns held at one value: what a model sees whose columns were removed.

With one feature less LayerNorm would see one number less, which for few features is much: a column
that is held constant leaves the network's layout as it is.
"""

from collections.abc import Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.base import clone

from fcorr.audit.measuring import Estimator, View, name_columns

_TEXT, _NUMBER = "removed", 0.0


def without_sensitive(estimator: Estimator) -> tuple[Estimator, View]:
    """Make the unfitted twin of a fitted model that never sees its sensitive columns.

    Returns
    -------
    tuple of estimator and view
        The twin, and what to apply to every table before it is fitted or asked.
    """
    columns = name_columns(estimator.sensitive)
    schema = estimator.schema_
    names = {column: schema.sensitive[i] for i, column in enumerate(columns)}
    coded = {column.name for column in schema.categorical}
    kinds: dict[Any, Any] = {
        column: "categorical" if names[column] in coded else "numeric" for column in columns
    }
    twin = clone(estimator).set_params(
        sensitive=None,
        bins=None,  # of sensitive columns
        kinds={**(estimator.kinds or {}), **kinds},
        constant_columns="keep",
        random_state=estimator.seed_,
    )
    return twin, hold_constant(kinds)


def hold_constant(kinds: Mapping[Any, str]) -> View:
    """Return a view of tables in which some columns have one value in all rows.

    Parameters
    ----------
    kinds : mapping
        The columns, by name or position: "numeric" for a number, else text, where the table can
        hold it.

    Examples
    --------
    >>> hold_constant({0: "numeric"})(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[0., 2.],
           [0., 4.]])
    """

    def view(X: Any) -> Any:
        if isinstance(X, np.ndarray):
            held = X.copy()
            for position, kind in kinds.items():
                is_text = kind != "numeric" and X.dtype.kind == "O"
                held[:, position] = _TEXT if is_text else _NUMBER
            return held
        constants = [
            nw.lit(_NUMBER if kind == "numeric" else _TEXT).alias(name)
            for name, kind in kinds.items()
        ]
        return nw.from_native(X, eager_only=True).with_columns(*constants).to_native()

    return view
