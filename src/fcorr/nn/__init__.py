"""The network, torch only: layers, embeddings, attention, the model, CAR. Read in that order."""

from fcorr.nn.car import car_augmented, car_cda, car_sensitive
from fcorr.nn.embeddings import CategoricalEmbedding, NumericEmbedding, SplineEmbedding
from fcorr.nn.fcorr import FCorrEncoderLayer, FCorrTransformer
from fcorr.nn.layers import CatLinear, ElementwiseLinear

__all__ = [
    "CatLinear",
    "CategoricalEmbedding",
    "ElementwiseLinear",
    "FCorrEncoderLayer",
    "FCorrTransformer",
    "NumericEmbedding",
    "SplineEmbedding",
    "car_augmented",
    "car_cda",
    "car_sensitive",
]
