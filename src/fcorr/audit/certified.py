"""What is certain about flips of one model, in a few numbers, and the attack that tests it."""

import copy
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fcorr.audit.measuring import Estimator
from fcorr.certify import attack
from fcorr.estimators.certifying import training_domain


@dataclass(frozen=True)
class Certified:
    """The certificate of one model in numbers.

    Attributes
    ----------
    exact : bool
        Whether no flip can change any prediction.
    bound : float
        What no flip changes a prediction by more than, whatever the row; may be infinite.
    vacuous : bool
        Whether that says next to nothing.
    population : float or None
        The change that at most a share ``alpha`` of the population would exceed; None where the
        rows are too few to tell.
    alpha, confidence : float
        That share, and the confidence of the statement.
    attack : float
        The largest change that a search over all inputs found, one feature flipped at a time.
    """

    exact: bool
    bound: float
    vacuous: bool
    population: float | None
    alpha: float
    confidence: float
    attack: float


def certify(estimator: Estimator, X: Any, *, effort: int) -> Certified:
    """Certify a model on rows that had no part in its training."""
    certificate = estimator.certificate(X, effort=effort)
    population = certificate.population  # None where there are too many combinations of values
    return Certified(
        exact=certificate.exact,
        bound=certificate.bound,
        vacuous=certificate.joint.prediction.vacuous,
        population=population.epsilon if population is not None else None,
        alpha=population.alpha if population is not None else math.nan,
        confidence=population.confidence if population is not None else math.nan,
        attack=0.0 if certificate.exact else find_largest_change(estimator),
    )


def find_largest_change(estimator: Estimator) -> float:
    """Attack a model: the largest change of a prediction that a search over all inputs finds.

    Sensitive features are flipped one at a time. The flips that the search ends with are put to
    the model itself, as it predicts, so that what is returned does occur.
    """
    model = copy.deepcopy(estimator.model_).cpu().eval()
    largest = 0.0
    for feature in estimator.schema_.sensitive_positions:
        found = attack(model, feature, training_domain(estimator), link=estimator._link())
        flips = [flip for flip in (*found.flips, found.prediction_flip) if flip is not None]
        for flip in flips:
            with torch.no_grad():
                outputs = model(flip.x_cat, flip.x_num).double().numpy()
            before, after = estimator._to_predictions(outputs + estimator.balance_)
            largest = max(largest, float(np.abs(after - before).max()))
    return largest
