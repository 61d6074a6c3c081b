"""The network, torch only: layers, attention, the model, CAR. Read in that order.

The engine says which arithmetic runs: compiled kernels, or plain torch.
"""

from fcorr.nn.car import car_sensitive
from fcorr.nn.fcorr import FCorrEncoderLayer, FCorrTransformer
from fcorr.nn.layers import (
    CategoricalEmbedding,
    CatLinear,
    ElementwiseLinear,
    NumericEmbedding,
    SplineEmbedding,
)

__all__ = [
    "CatLinear",
    "CategoricalEmbedding",
    "ElementwiseLinear",
    "FCorrEncoderLayer",
    "FCorrTransformer",
    "NumericEmbedding",
    "SplineEmbedding",
    "car_sensitive",
]
