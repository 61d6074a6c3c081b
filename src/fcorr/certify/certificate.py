"""What can be promised about flips of the sensitive columns, as plain data and as text."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from numpy.typing import ArrayLike

from fcorr._core import InvalidInputError
from fcorr.certify.domain import Domain
from fcorr.certify.exactness import check_sensitive, is_continuous, is_exact
from fcorr.certify.links import Link
from fcorr.certify.worst_cases import WorstCase, worst_case
from fcorr.metrics.population import PopulationBound, population_bound
from fcorr.nn.fcorr import FCorrTransformer

ALL_TOGETHER = "all together"  # how flips of several features at once are called

_SAYS_SOMETHING = 0.99  # a bound above this share of the trivial one is called vacuous

_PROMISE = (
    "This is about flips of the sensitive columns, all other columns left as they are. It is no "
    "statement about causes, about other columns that stand in for the sensitive ones, about "
    "differences between groups, or about compliance with any law."
)


@dataclass(frozen=True)
class Bound:
    """A bound on a change.

    Attributes
    ----------
    value : float
        No change is larger.
    trivial : float or None
        What the range of the output alone implies; None where it was not needed.
    vacuous : bool
        Whether the bound says next to nothing beyond the trivial one.
    """

    value: float
    trivial: float | None
    vacuous: bool

    def __str__(self) -> str:
        return f"{self.value:.3g}{' (vacuous)' if self.vacuous else ''}"


@dataclass(frozen=True)
class FlipBound:
    """Bounds for a flip of one sensitive feature, or of any number of them.

    Attributes
    ----------
    name : str
        The feature, or "all together".
    continuous : bool
        Whether it is flipped between numbers, not between categories; for several features,
        whether one of them is.
    exact : bool
        Whether no flip can change any prediction, not by one bit.
    gap : float or None
        Largest difference between the embeddings of two values; None where the column is not read.
    score, prediction : Bound
        On the scale of the model's output, and on that of its prediction.
    population : PopulationBound or None
        The statement about the population, where a sample was given.
    """

    name: str
    continuous: bool
    exact: bool
    gap: float | None
    score: Bound
    prediction: Bound
    population: PopulationBound | None = None

    @property
    def _values(self) -> str:
        if self.name == ALL_TOGETHER:
            return "any two combinations of values"
        return "any two numbers" if self.continuous else "any two categories"


@dataclass(frozen=True)
class Certificate:
    """What is certain about flips of the sensitive columns. ``print`` it for a report.

    Attributes
    ----------
    exact : bool
        Whether no flip can change any prediction, not by one bit.
    averaged : bool
        Whether that is because the sensitive columns are not read at all.
    features : tuple of FlipBound
        One for each sensitive feature, the others fixed.
    joint : FlipBound
        For any combination of flips; that of the feature where there is one only.
    domain : str
        The inputs that the bounds cover.
    assumptions : tuple of str
        What the statements rest on.
    """

    exact: bool
    averaged: bool
    features: tuple[FlipBound, ...]
    joint: FlipBound
    domain: str
    assumptions: tuple[str, ...]

    @property
    def bound(self) -> float:
        """What no flip changes a prediction by more than: 0 if exact, else the worst case."""
        return self.joint.prediction.value

    @property
    def population(self) -> PopulationBound | None:
        """The statement about the population for any combination of flips."""
        return self.joint.population

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; a bound that is infinite becomes None."""
        data = {"bound": self.bound, **asdict(self), "scope": _PROMISE}
        return {key: _finite(value) for key, value in data.items()}

    def __str__(self) -> str:
        shown = self.features if len(self.features) == 1 else (*self.features, self.joint)
        lines = ["Invariance to a flip of the sensitive columns", *self._worst_case(shown)]
        sampled = [flip for flip in shown if flip.population is not None]
        if sampled and not self.exact:  # a sample adds nothing to a proof
            lines.append("For the population, judged by a sample:")
            lines += [f"- {flip.name}: {flip.population}" for flip in sampled]
        lines.append("This rests on:")
        lines += [f"- {assumption}" for assumption in self.assumptions]
        lines.append(_PROMISE)
        return "\n".join(lines)

    def _worst_case(self, shown: Sequence[FlipBound]) -> list[str]:
        if self.averaged:
            return [
                "Exact: the sensitive columns are not read; predictions are averages over a fixed "
                "list of values. No flip changes any prediction, for any input."
            ]
        if self.exact:
            return [
                "Exact: every value of the sensitive columns is embedded as the same number, bit "
                "for bit. No flip changes any prediction, for any input."
            ]
        lines = [
            "Not exact. The largest change that a flip can make, whatever the other columns are "
            f"({self.domain}):"
        ]
        lines += [
            f"- {flip.name}, between {flip._values}: "
            + (
                "none, not by one bit"
                if flip.exact
                else f"prediction by at most {flip.prediction}, score by at most {flip.score}; "
                f"embeddings differ by up to {flip.gap:.3g}"
            )
            for flip in shown
        ]
        if any(flip.prediction.vacuous or flip.score.vacuous for flip in shown):
            lines.append(
                "Vacuous: the range of the outputs alone implies as much, so that nothing is "
                "promised about a flip. It does not mean that such a change occurs."
            )
        return lines


def certify_model(
    model: FCorrTransformer,
    sensitive: Sequence[int],
    names: Sequence[str],
    *,
    link: Link,
    domain: Domain | None = None,
    averaged: bool = False,
    changes: Mapping[str, ArrayLike] | None = None,
    confidence: float = 0.95,
    alpha: float | None = None,
    epsilon: float | None = None,
    effort: int = 2**17,
    notes: Sequence[str] = (),
) -> Certificate:
    """State what is certain about flips of a model's sensitive features.

    Parameters
    ----------
    model : FCorrTransformer
        The model, on the CPU.
    sensitive : sequence of int
        Positions of the sensitive features; numeric ones follow the categorical ones.
    names : sequence of str
        Their names.
    link : Link
        How predictions come from scores.
    domain : Domain, optional
        The inputs that bounds cover; by default every category and every number.
    averaged : bool, default=False
        Whether predictions are averages over a fixed list of values of the sensitive features, so
        that the columns are not read. No flip can change anything then, whatever the weights are.
    changes : mapping of str to array-like of shape (n_rows,), optional
        For a sample of the population, the largest change of each row's prediction over all values
        of a feature, under the feature's name; under "all together" that over all combinations, if
        there are several. Names may be left out.
    confidence : float, default=0.95
        Confidence of each statement about the population.
    alpha, epsilon : float, optional
        Share or change that it is about, one of them; see
        :func:`fcorr.metrics.population.population_bound`. By default a share of 1 %. An epsilon of
        0 stands for any change at all.
    effort : int, default=2**17
        See :func:`fcorr.certify.worst_cases.worst_case`. Exact features take none.
    notes : sequence of str
        More that the statements rest on, as sentences.

    Returns
    -------
    Certificate
        The statements.

    Examples
    --------
    >>> model = FCorrTransformer([3, 2, 4], n_numeric=2, head=(4,))
    >>> model.collapse(0, 0.5)
    >>> certify_model(model, [0], ["race"], link=Link("sigmoid")).exact
    True
    """
    positions = check_sensitive(model, sensitive)
    _check_names(names, positions)
    populations = _populations(names, changes or {}, confidence, alpha, epsilon)
    domain = domain or Domain()
    worst = {
        position: worst_case(model, position, domain, effort=effort)
        for position in positions
        if not averaged and not is_exact(model, [position])
    }
    features = tuple(
        _flip_bound(
            name,
            is_continuous(model, position),
            [worst[position]] if position in worst else [],
            link,
            populations.get(name),
        )
        for name, position in zip(names, positions, strict=True)
    )
    if averaged:  # the embeddings have no part in it
        features = tuple(replace(flip, gap=None) for flip in features)
    joint = features[0]
    if len(features) > 1:
        continuous = any(flip.continuous for flip in features)
        joint = _flip_bound(
            ALL_TOGETHER, continuous, list(worst.values()), link, populations.get(ALL_TOGETHER)
        )
        joint = replace(joint, gap=None if averaged else joint.gap)
    return Certificate(
        exact=not worst,
        averaged=averaged,
        features=features,
        joint=joint,
        domain=domain.describe(),
        assumptions=(
            *_assumptions(averaged, features, bool(populations and worst), domain),
            *notes,
        ),
    )


def _check_names(names: Sequence[str], positions: Sequence[int]) -> None:
    if len(names) != len(positions) or not positions or len(set(names)) != len(names):
        raise InvalidInputError(
            "names must hold one name for each sensitive feature, at least one, all different, "
            f"got {list(names)!r} for {len(positions)}."
        )


def _populations(
    names: Sequence[str],
    changes: Mapping[str, ArrayLike],
    confidence: float,
    alpha: float | None,
    epsilon: float | None,
) -> dict[str, PopulationBound]:
    if alpha is not None and epsilon is not None:
        raise InvalidInputError(
            f"certify needs at most one of alpha and epsilon, got alpha={alpha!r} and "
            f"epsilon={epsilon!r}. Give the one you know."
        )
    if alpha is not None and not 0 < alpha < 1:
        raise InvalidInputError(
            f"alpha must lie between 0 and 1, both excluded, got {alpha!r}. Write 1 % as 0.01."
        )
    if epsilon is not None and not 0 <= epsilon < math.inf:
        raise InvalidInputError(
            f"epsilon must be a finite number that is not negative, got {epsilon!r}. "
            "0 stands for any change at all."
        )
    allowed = [*names, *([ALL_TOGETHER] if len(names) > 1 else [])]
    for name in changes:
        if name not in allowed:
            raise InvalidInputError(
                f"changes must be given by the names {allowed!r}, got {name!r}. Drop it or rename "
                "it."
            )
    if alpha is None and epsilon is None:
        alpha = 0.01
    return {
        name: population_bound(sizes, epsilon=epsilon, alpha=alpha, confidence=confidence)
        for name, sizes in changes.items()
    }


def _flip_bound(
    name: str,
    continuous: bool,
    worst: list[WorstCase],
    link: Link,
    population: PopulationBound | None,
) -> FlipBound:
    """Bound a flip of all these features; changing them one after the other adds bounds up."""
    if not worst:
        nothing = Bound(0.0, None, vacuous=False)
        return FlipBound(name, continuous, True, 0.0, nothing, nothing, population)
    by_slope = [sum(sizes) for sizes in zip(*(w.by_slope for w in worst), strict=True)]
    # Each range holds for all inputs, so all of them do.
    low = [max(ends) for ends in zip(*(w.low for w in worst), strict=True)]
    high = [min(ends) for ends in zip(*(w.high for w in worst), strict=True)]
    by_range = [top - bottom for bottom, top in zip(low, high, strict=True)]
    sizes = [min(pair) for pair in zip(by_slope, by_range, strict=True)]
    score = _bound(max(sizes), max(by_range))
    width = link.width(low, high)
    prediction = _bound(min(link.largest_change(sizes, low, high), width), width)
    gap = max(w.gap for w in worst)
    return FlipBound(name, continuous, False, gap, score, prediction, population)


def _bound(value: float, trivial: float) -> Bound:
    return Bound(value, trivial, vacuous=not value < _SAYS_SOMETHING * trivial)


def _assumptions(
    averaged: bool, features: Sequence[FlipBound], has_sample: bool, domain: Domain
) -> list[str]:
    texts = ["The model computes what its weights say, and they are not changed afterwards."]
    if averaged:
        texts.append(
            "The sensitive columns are not read; predictions are averages over a fixed list of "
            "values."
        )
    elif not all(flip.exact for flip in features):
        texts.append(
            "The worst case is that of exact arithmetic with the stored weights, computed in "
            "double precision. Predictions in single precision differ from it by rounding and by "
            "the stated error of the attention series, about 1e-6 of the scores' size."
        )
        if not all(flip.continuous for flip in features):
            texts.append("Only categories that the model has a code for are flipped to.")
        if domain.low is not None or domain.high is not None:
            texts.append("Numbers outside the stated ranges are not covered.")
        if domain.min_divisors is not None:
            texts.append(
                "Rows for which a LayerNorm divides by less than the stated value, for a value of "
                "the column or between two of them, are not covered."
            )
    else:
        texts.append(
            "A sensitive column reaches the model through its embedding alone, which is the same "
            "number for all its values; equal inputs give equal outputs."
        )
    if has_sample:
        texts.append(
            "The sampled rows are an independent sample of the population and had no part in "
            "training; the population does not drift."
        )
    return texts


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
