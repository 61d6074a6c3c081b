"""How an estimator reads the tables it is given: by name where there are names, else by place."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fcorr._core import InvalidInputError
from fcorr.data.differences import compare
from fcorr.data.exposures import read_exposure
from fcorr.data.schema import Schema
from fcorr.data.tables import Table, read_table


class TableReader(BaseEstimator):
    """What knows the columns of the training table; the base of every estimator."""

    schema_: Schema
    n_features_in_: int
    exact_: bool

    def _name_features(self, table: Table) -> None:
        self.n_features_in_ = len(table.names)
        if table.named:
            self.feature_names_in_ = np.asarray(table.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _read_known_table(self, X: Any, *, read_sensitive: bool | None = None) -> Table:
        """Read a table for a fitted model: by name where both have names, else by position."""
        check_is_fitted(self, "model_")
        if read_sensitive is None:
            read_sensitive = not self.exact_
        fitted_with_names = hasattr(self, "feature_names_in_")
        # Not even converted: what is not read may be anything.
        unread = () if read_sensitive or not fitted_with_names else self.schema_.sensitive
        table = read_table(X, unread=unread)
        if table.named and fitted_with_names:
            return table
        names = {len(columns): columns for columns in self._possible_inputs()}
        if len(table.names) not in names:
            raise InvalidInputError(
                f"X has {len(table.names)} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input. Pass the columns it was trained on."
            )
        if table.named != fitted_with_names:
            owner = (
                "X does not have valid feature names, but"
                if fitted_with_names
                else ("X has feature names, but")
            )
            with_out = "with" if fitted_with_names else "without"
            warnings.warn(
                f"{owner} {type(self).__name__} was fitted {with_out} feature names: "
                "the columns are taken in their order.",
                UserWarning,
                stacklevel=3,
            )
        return table.renamed(names[len(table.names)])

    def _possible_inputs(self) -> list[tuple[str, ...]]:
        """Columns that a table without names may have; where two are as many, the later counts."""
        every, exposure = self._input_names, self.schema_.exposure
        unread = self.schema_.sensitive if getattr(self, "exact_", False) else ()
        left_out: list[set[str | None]] = [{exposure, *unread}, {*unread}, {exposure}, set()]
        return [tuple(name for name in every if name not in names) for names in left_out]

    @property
    def _input_names(self) -> tuple[str, ...]:
        """Names of all columns of the training table, features or not."""
        if hasattr(self, "feature_names_in_"):
            return tuple(self.feature_names_in_.tolist())
        return tuple(f"x{i}" for i in range(self.n_features_in_))

    def _read_exposure(self, table: Table) -> NDArray[np.float64]:
        """Return the exposures of a table for a fitted model."""
        name = self.schema_.exposure
        if name is not None and name not in table.columns:
            raise compare(self.schema_, table).to_error()
        return exposures(table, name)


def exposures(table: Table, name: str | None) -> NDArray[np.float64]:
    """Return each row's exposure, 1 where there is no column of them."""
    return np.ones(table.n_rows) if name is None else read_exposure(table, name)
