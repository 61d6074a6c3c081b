"""The scikit-learn surface: a classifier, a regressor, and model files."""

from fcorr.estimators.base import FeatureMatrix
from fcorr.estimators.classifier import FCorrClassifier
from fcorr.estimators.model_file import load, read_header
from fcorr.estimators.options import Advanced
from fcorr.estimators.regressor import FCorrRegressor

__all__ = [
    "Advanced",
    "FCorrClassifier",
    "FCorrRegressor",
    "FeatureMatrix",
    "load",
    "read_header",
]
