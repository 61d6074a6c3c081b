"""A square matrix between features that knows their names."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcorr._core import InvalidInputError, near_match, require


@dataclass(frozen=True, eq=False)
class FeatureMatrix:
    """A matrix with one row and one column per feature.

    ``matrix["age", "income"]`` is one entry; ``numpy.asarray(matrix)`` the plain array.

    Examples
    --------
    >>> matrix = FeatureMatrix(("a", "b"), np.array([[1.0, 0.2], [0.2, 3.0]]))
    >>> float(matrix["a", "b"])
    0.2
    >>> matrix.diagonal()
    {'a': 1.0, 'b': 3.0}
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]

    def __getitem__(self, key: tuple[str, str]) -> float:
        row, column = key
        return float(self.values[self._position(row), self._position(column)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def diagonal(self) -> dict[str, float]:
        """Diagonal by feature: what the paper reads as feature significance."""
        return dict(zip(self.names, self.values.diagonal().tolist(), strict=True))

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with the names on both axes."""
        pandas = require("pandas", extra="pandas", purpose="FeatureMatrix.to_pandas")
        return pandas.DataFrame(self.values, index=self.names, columns=self.names)

    def _position(self, name: str) -> int:
        if name not in self.names:
            raise InvalidInputError(
                f"The matrix has no feature {name!r}.{near_match(name, self.names)}"
            )
        return self.names.index(name)
