"""What can be promised about flips of the sensitive columns, as plain data and as text."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from numpy.typing import ArrayLike

from fcorr._core.errors import InvalidInputError
from fcorr.certify.domain import Domain
from fcorr.certify.exactness import check_sensitive, embedding_gap, is_exact
from fcorr.certify.links import Link
from fcorr.certify.worst_cases import WorstCase, worst_case
from fcorr.metrics.population import PopulationBound, population_bound
from fcorr.nn.fcorr import FCorrTransformer

_SAYS_SOMETHING = 0.99  # a bound above this share of the trivial one is called vacuous

_PROMISE = (
    "This is about a flip of the sensitive column, all other columns left as they are. It is no "
    "statement about causes, about other columns that stand in for the sensitive one, about "
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
        note = " (vacuous: no better than what the range of outputs implies)"
        return f"{self.value:.3g}{note if self.vacuous else ''}"


@dataclass(frozen=True)
class FlipBound:
    """Bounds for a flip of one sensitive feature, or of any number of them.

    Attributes
    ----------
    name : str
        The feature, or "all together".
    gap : float
        Largest difference between the embeddings of two categories.
    exact : bool
        Whether all categories are embedded as the same number, bit for bit.
    score, prediction : Bound
        On the scale of the model's output, and on that of its prediction.
    """

    name: str
    gap: float
    exact: bool
    score: Bound
    prediction: Bound


@dataclass(frozen=True)
class Certificate:
    """What is certain about flips of the sensitive columns. ``print`` it for a report.

    Attributes
    ----------
    exact : bool
        Whether no flip can change any prediction, not by one bit.
    features : tuple of FlipBound
        One for each sensitive feature, the others fixed.
    joint : FlipBound
        For any combination of flips.
    population : PopulationBound or None
        The statement about the population, where a sample was given.
    domain : str
        The inputs that the bounds cover.
    assumptions : tuple of str
        What the statements rest on.
    """

    exact: bool
    features: tuple[FlipBound, ...]
    joint: FlipBound
    population: PopulationBound | None
    domain: str
    assumptions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; a bound that is infinite becomes None."""
        return {key: _finite(value) for key, value in asdict(self).items()}

    def __str__(self) -> str:
        lines = ["Invariance to a flip of the sensitive column"]
        if self.exact:
            lines.append(
                "Exact: all categories are embedded as the same number, bit for bit. No flip "
                "changes any prediction, for any input."
            )
        else:
            lines.append(f"Not exact. Largest change over all inputs ({self.domain}):")
            shown = self.features if len(self.features) == 1 else (*self.features, self.joint)
            lines += [
                f"- {flip.name}: prediction {flip.prediction}, score {flip.score}; "
                f"embeddings differ by up to {flip.gap:.3g}"
                for flip in shown
            ]
        if self.population is not None:
            lines.append(f"Population: {self.population}")
        lines.append("This rests on:")
        lines.extend(f"- {assumption}" for assumption in self.assumptions)
        lines.append(_PROMISE)
        return "\n".join(lines)


def certify_model(
    model: FCorrTransformer,
    sensitive: Sequence[int],
    names: Sequence[str],
    *,
    link: Link,
    domain: Domain | None = None,
    changes: ArrayLike | None = None,
    confidence: float = 0.95,
    alpha: float | None = None,
    epsilon: float | None = None,
    effort: int = 2**17,
) -> Certificate:
    """State what is certain about flips of a model's sensitive features.

    Parameters
    ----------
    model : FCorrTransformer
        The model, on the CPU.
    sensitive : sequence of int
        Positions of the sensitive features among the categorical ones.
    names : sequence of str
        Their names.
    link : Link
        How predictions come from scores.
    domain : Domain, optional
        The inputs that bounds cover; by default every category and every number.
    changes : array-like of shape (n_rows,), optional
        For a sample of the population, the largest change of each row's prediction over all
        categories.
    confidence : float, default=0.95
        Confidence of the statement about the population.
    alpha, epsilon : float, optional
        Share or change that it is about, one of them; see
        :func:`fcorr.metrics.population.population_bound`. By default a share of 1 %.
    effort : int, default=2**17
        See :func:`fcorr.certify.worst_cases.worst_case`. Exact features take none.

    Returns
    -------
    Certificate
        The statements.

    Examples
    --------
    >>> from fcorr.certify.exactness import collapse
    >>> model = FCorrTransformer([3, 2, 4], n_numeric=2, head=(4,))
    >>> collapse(model, [0])
    >>> certify_model(model, [0], ["race"], link=Link("sigmoid")).exact
    True
    """
    positions = check_sensitive(model, sensitive)
    if len(names) != len(positions) or not positions:
        raise InvalidInputError(
            f"names must hold one name for each sensitive feature, at least one, got {len(names)} "
            f"for {len(positions)}."
        )
    domain = domain or Domain()
    worst = {
        position: worst_case(model, position, domain, effort=effort)
        for position in positions
        if not is_exact(model, [position])
    }
    features = tuple(
        _flip_bound(name, [worst[position]] if position in worst else [], link)
        for name, position in zip(names, positions, strict=True)
    )
    population = None
    if changes is not None:
        alpha = 0.01 if alpha is None and epsilon is None else alpha
        population = population_bound(changes, epsilon=epsilon, alpha=alpha, confidence=confidence)
    gap = max(embedding_gap(model, position) for position in positions)
    joint = _flip_bound("all together", list(worst.values()), link)
    return Certificate(
        exact=not worst,
        features=features,
        joint=FlipBound(joint.name, gap, joint.exact, joint.score, joint.prediction),
        population=population,
        domain=domain.describe(),
        assumptions=_assumptions(bool(worst), population is not None, domain),
    )


def _flip_bound(name: str, worst: list[WorstCase], link: Link) -> FlipBound:
    """Bound a flip of all these features; changing them one after the other adds bounds up."""
    if not worst:
        nothing = Bound(0.0, None, vacuous=False)
        return FlipBound(name, 0.0, True, nothing, nothing)
    by_slope = [sum(sizes) for sizes in zip(*(w.by_slope for w in worst), strict=True)]
    # Each range holds for all inputs, so all of them do.
    low = [max(ends) for ends in zip(*(w.low for w in worst), strict=True)]
    high = [min(ends) for ends in zip(*(w.high for w in worst), strict=True)]
    by_range = [top - bottom for bottom, top in zip(low, high, strict=True)]
    sizes = [min(pair) for pair in zip(by_slope, by_range, strict=True)]
    score = _bound(max(sizes), max(by_range))
    width = link.width(low, high)
    prediction = _bound(min(link.largest_change(sizes, low, high), width), width)
    return FlipBound(name, max(w.gap for w in worst), False, score, prediction)


def _bound(value: float, trivial: float) -> Bound:
    return Bound(value, trivial, vacuous=not value < _SAYS_SOMETHING * trivial)


def _assumptions(has_bounds: bool, has_sample: bool, domain: Domain) -> tuple[str, ...]:
    texts = ["The model computes what its weights say, and they are not changed afterwards."]
    if has_bounds:
        texts.append(
            "The worst case is that of exact arithmetic with the stored weights, computed in "
            "double precision. Predictions in single precision differ from it by rounding and by "
            "the stated error of the attention series, about 1e-6 of the scores' size."
        )
        texts.append("Only categories that the model has a code for are flipped to.")
        if domain.low is not None or domain.high is not None:
            texts.append("Numbers outside the stated ranges are not covered.")
        if domain.min_divisors is not None:
            texts.append(
                "Rows for which a LayerNorm divides by less than the stated value, for a category "
                "or between two of them, are not covered."
            )
    else:
        texts.append(
            "The sensitive column reaches the model through its embedding alone, which is the same "
            "number for all categories; equal inputs give equal outputs."
        )
    if has_sample:
        texts.append(
            "The sampled rows are an independent sample of the population and had no part in "
            "training; the population does not drift."
        )
    return tuple(texts)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
