"""What a table looks like to the model: column kinds, categories, ranges. JSON in and out."""

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fcorr._core import InvalidInputError
from fcorr.data.descriptions import (
    CodedColumn,
    Column,
    NumericColumn,
    are_counts,
    column_from_dict,
)

if TYPE_CHECKING:
    from fcorr.data.differences import SchemaDiff


@dataclass(frozen=True)
class Schema:
    """What a training table looked like. :func:`infer_schema` makes one.

    Attributes
    ----------
    columns : tuple of columns
        One description per column of the table but the exposure, in the table's order.
    sensitive : tuple of str
        Names of the sensitive columns, of whatever kind, in the order they were given.
    n_rows : int
        Rows of the training table.
    target, weight, exposure : str or None
        Names of the columns with these roles, where they are known. They are no features.
    """

    columns: tuple[Column, ...]
    sensitive: tuple[str, ...]
    n_rows: int
    target: str | None = None
    weight: str | None = None
    exposure: str | None = None

    def __getitem__(self, name: str) -> Column:
        return self._by_name[name]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that features come from."""
        return tuple(self._by_name)

    @cached_property
    def sensitive_first(self) -> tuple[Column, ...]:
        """The columns in the model's order: sensitive ones as given, then the others by table."""
        place = {name: i for i, name in enumerate(self.sensitive)}
        return tuple(sorted(self.columns, key=lambda column: place.get(column.name, len(place))))

    @cached_property
    def categorical(self) -> tuple[CodedColumn, ...]:
        """The features that are codes: categories and bins, sensitive ones first as given."""
        return tuple(c for c in self.sensitive_first if isinstance(c, CodedColumn))

    @cached_property
    def numeric(self) -> tuple[NumericColumn, ...]:
        """The features that are numbers: numeric columns, ordinal places, parts of dates.

        Those of sensitive columns come first, in the order the columns were given.
        """
        found = (c for c in self.sensitive_first if not isinstance(c, CodedColumn))
        return tuple(feature for column in found for feature in column.features)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """The model's features in the model's order: categorical, numeric; sensitive first in each.

        A column of dates gives several features, every other column one.
        """
        categorical = tuple(column.name for column in self.categorical)
        return categorical + tuple(feature.name for feature in self.numeric)

    @cached_property
    def sensitive_positions(self) -> tuple[int, ...]:
        """Where in :attr:`feature_names` the features of sensitive columns are."""
        sensitive = {f.name for name in self.sensitive for f in self._by_name[name].features}
        return tuple(i for i, name in enumerate(self.feature_names) if name in sensitive)

    @property
    def sensitive_features(self) -> tuple[str, ...]:
        """Names of the features of sensitive columns, in the model's order."""
        return tuple(self.feature_names[i] for i in self.sensitive_positions)

    @property
    def text(self) -> tuple[str, ...]:
        """Names of the columns whose categories are text."""
        return tuple(c.name for c in self.columns if getattr(c, "is_text", False))

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of codes of each categorical feature."""
        return tuple(column.n_codes for column in self.categorical)

    def with_roles(
        self, *, target: str | None = None, weight: str | None = None, exposure: str | None = None
    ) -> "Schema":
        """Return the same schema with the names of the columns that are no features."""
        return replace(self, target=target, weight=weight, exposure=exposure)

    def diff(self, X: Any, *, read_sensitive: bool = True) -> "SchemaDiff":
        """Compare a table with the training table.

        Parameters
        ----------
        X : Table, dataframe or array
            The table. Columns without names are taken in their order.
        read_sensitive : bool, default=True
            Whether the sensitive columns are looked at. If not, they may differ in any way, and
            may be absent.

        Returns
        -------
        SchemaDiff
            What differs, column by column; ``print`` it to read it. False where nothing does.

        Examples
        --------
        >>> from fcorr.data import infer_schema, read_table
        >>> schema = infer_schema(read_table([[1, "a"], [2, "b"]]).renamed(["age", "job"]))
        >>> print(schema.diff([[3, "c"], [1, "b"]]))
        2 differences from the training table:
        - Column 'age' has 1 row(s) outside the training range, 1 to 2: up to 3
        - Column 'job' has 1 row(s) of categories not seen in training: 'c' (1)
        """
        from fcorr.data.differences import compare

        return compare(self, X, read_sensitive=read_sensitive)

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain data, ready for JSON."""
        columns = [{"kind": column.kind, **asdict(column)} for column in self.columns]
        return {**asdict(replace(self, columns=())), "columns": columns}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Schema":
        """Make a schema from what :meth:`to_dict` returned, also after a trip through JSON.

        Data that no table could have given, as in a damaged file, raises an error.
        """
        columns = tuple(column_from_dict(column) for column in data["columns"])
        schema = cls(**{**data, "columns": columns, "sensitive": tuple(data["sensitive"])})
        if not schema._is_possible():
            raise InvalidInputError("A schema must describe a table, this one contradicts itself.")
        return schema

    def to_json(self, indent: int | None = 2) -> str:
        """Return the schema as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Schema":
        """Make a schema from what :meth:`to_json` returned.

        Raises
        ------
        InvalidInputError
            The text is not JSON, or not a schema.
        """
        try:
            return cls.from_dict(json.loads(text))
        except InvalidInputError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InvalidInputError(
                f"A schema must be JSON as to_json writes it ({type(error).__name__}: {error}). "
                "Write it again with schema.to_json()."
            ) from error

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    def _is_possible(self) -> bool:
        roles = (self.target, self.weight, self.exposure)
        return (
            all(isinstance(column.name, str) for column in self.columns)
            and len(self._by_name) == len(self.columns)
            and len(set(self.feature_names)) == len(self.feature_names)
            and len(set(self.sensitive)) == len(self.sensitive)
            and set(self._by_name).issuperset(self.sensitive)
            and all(role is None or isinstance(role, str) for role in roles)
            and self.exposure not in self._by_name
            and are_counts(self.n_rows)
            and all(column.is_possible() for column in self.columns)
        )
