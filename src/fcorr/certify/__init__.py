"""What is certain about a flip of the sensitive columns.

From the weights alone (`exactness`); over all inputs of a domain (`worst_cases`, with the
mathematics in `intervals`, `gelu_ranges`, `rows`, `two_points`, `covariances`, `boxes`,
`layer_norm`, `attention_bounds`, `encoder_bounds` and `head_bounds`, read in that order); for the
population, from a sample (:mod:`fcorr.metrics.population`). `certificate` puts them together, and
`attacks` searches for flips from the other side.
"""

from fcorr.certify.attacks import Attack, Flip, attack
from fcorr.certify.certificate import Bound, Certificate, FlipBound, certify_model
from fcorr.certify.domain import Domain, embedding_gap, layer_norm_divisors
from fcorr.certify.exactness import is_exact
from fcorr.certify.links import Link
from fcorr.certify.worst_cases import WorstCase, worst_case

__all__ = [
    "Attack",
    "Bound",
    "Certificate",
    "Domain",
    "Flip",
    "FlipBound",
    "Link",
    "WorstCase",
    "attack",
    "certify_model",
    "embedding_gap",
    "is_exact",
    "layer_norm_divisors",
    "worst_case",
]
