"""The network, torch only: layers, embeddings, attention, the model, CAR. Read in that order.

Baselines have a file each: FeedForwardNetwork, TabTransformer and FTTransformer.
"""

from fcorr.nn.car import car_augmented, car_cda, car_sensitive
from fcorr.nn.embeddings import CategoricalEmbedding, NumericEmbedding, SplineEmbedding
from fcorr.nn.fcorr import FCorrEncoderLayer, FCorrTransformer
from fcorr.nn.feed_forward_network import FeedForwardNetwork
from fcorr.nn.ft_transformer import FTTransformer
from fcorr.nn.layers import CatLinear, ElementwiseLinear
from fcorr.nn.tab_transformer import TabTransformer

__all__ = [
    "CatLinear",
    "CategoricalEmbedding",
    "ElementwiseLinear",
    "FCorrEncoderLayer",
    "FCorrTransformer",
    "FTTransformer",
    "FeedForwardNetwork",
    "NumericEmbedding",
    "SplineEmbedding",
    "TabTransformer",
    "car_augmented",
    "car_cda",
    "car_sensitive",
]
