"""Tables from known populations: what a model finds can be held against what was planted."""

from fcorr.data.generators.bias import make_indirect_bias, make_proxy_bias
from fcorr.data.generators.levels import make_many_levels
from fcorr.data.generators.stand_ins import make_bank_fraud, make_claims

__all__ = [
    "make_bank_fraud",
    "make_claims",
    "make_indirect_bias",
    "make_many_levels",
    "make_proxy_bias",
]
