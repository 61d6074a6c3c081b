"""What is certain about a flip of the sensitive column.

From the weights alone (`exactness`); over all inputs of a domain (`worst_cases`, with the
mathematics in `intervals`, `gelu_ranges`, `rows`, `boxes`, `layer_norm`, `attention_bounds`,
`encoder_bounds` and `head_bounds`, read in that order); for the population, from a sample
(:mod:`fcorr.metrics.population`). `certificate` puts them together.
"""

from fcorr.certify.certificate import Bound, Certificate, FlipBound, certify_model
from fcorr.certify.domain import Domain, layer_norm_divisors
from fcorr.certify.exactness import collapse, embedding_gap, is_exact
from fcorr.certify.links import Link
from fcorr.certify.worst_cases import WorstCase, worst_case

__all__ = [
    "Bound",
    "Certificate",
    "Domain",
    "FlipBound",
    "Link",
    "WorstCase",
    "certify_model",
    "collapse",
    "embedding_gap",
    "is_exact",
    "layer_norm_divisors",
    "worst_case",
]
