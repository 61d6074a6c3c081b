"""Records of runs, as they are kept in a file of JSON lines."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from fcorr._core import InvalidInputError, to_plain
from fcorr.audit.certified import Certified
from fcorr.audit.measuring import Measured


@dataclass(frozen=True)
class Record:
    """One run: what was fitted, and what was measured of it on the validation rows.

    Attributes
    ----------
    key : str
        What run it is: arguments, seed, data and effort in one text.
    estimator : str
        The class of the model.
    data : str
        Fingerprint of training and validation rows.
    effort : int
        How hard the certificate was tried for.
    arguments : dict
        The model's arguments, as plain data.
    seed : int
        Its ``random_state``.
    warm_path : tuple of float
        λ of the runs whose weights it started from, one after the other; empty for a fit from
        scratch, which is what ``fit`` gives.
    measured : Measured
        Performance, change under flips, differences of groups; nan where not estimable.
    certified : Certified
        What is certain about flips.
    notes : tuple of str
        What could not be estimated, or not for all groups.
    seconds : dict
        Time of the fit, and of measuring and certifying.
    versions : dict
        Of the libraries, and the engine that ran.
    """

    key: str
    estimator: str
    data: str
    effort: int
    arguments: dict[str, Any]
    seed: int
    warm_path: tuple[float, ...]
    measured: Measured
    certified: Certified
    notes: tuple[str, ...]
    seconds: dict[str, float]
    versions: dict[str, str]

    @property
    def warm(self) -> bool:
        """Whether the run started from the weights of another."""
        return bool(self.warm_path)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; what is not estimable or infinite becomes None."""
        plain: dict[str, Any] = to_plain(asdict(self))
        return {**plain, "warm": self.warm}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Record":
        """Undo :meth:`to_dict`, also after a trip through JSON."""
        known = {field.name: data[field.name] for field in fields(cls)}
        measured, certified = dict(data["measured"]), dict(data["certified"])
        for part in ("performance", "flip"):
            measured[part] = _with_nan(measured[part])
        measured["groups"] = {name: _with_nan(one) for name, one in measured["groups"].items()}
        if certified["bound"] is None:
            certified["bound"] = float("inf")
        known |= {
            "measured": Measured(**measured),
            "certified": Certified(**certified),
            "warm_path": tuple(data["warm_path"]),
            "notes": tuple(data["notes"]),
        }
        return cls(**known)


def _with_nan(metrics: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float("nan") if value is None else value for name, value in metrics.items()}


def check_experiment(
    records: Sequence[Record], expected: Mapping[str, Any], fixed: Mapping[str, Any], path: Any
) -> None:
    """Refuse a file with runs that cannot stand beside those to come.

    Parameters
    ----------
    records : sequence of Record
        What the file holds.
    expected : mapping
        What their ``estimator``, ``data`` and ``effort`` must be.
    fixed : mapping
        Arguments that the grid does not vary, and what they must be.
    path : path
        The file.
    """
    for record in records:
        found = {name: getattr(record, name) for name in expected} | record.arguments
        for name, value in {**expected, **fixed}.items():
            if name not in found or found[name] != value:
                raise InvalidInputError(
                    f"{str(path)!r} must hold runs of this experiment only, got one with {name} = "
                    f"{found.get(name)!r} where this one has {value!r}. Choose another path, or "
                    "move the file away."
                )
