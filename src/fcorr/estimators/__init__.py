"""The scikit-learn surface: FCorr's estimators, those of other networks, and model files."""

from fcorr.estimators.baselines import BaselineClassifier, BaselineRegressor
from fcorr.estimators.classifier import FCorrClassifier
from fcorr.estimators.matrix import FeatureMatrix
from fcorr.estimators.model_file import load, read_header
from fcorr.estimators.regressor import FCorrRegressor

__all__ = [
    "BaselineClassifier",
    "BaselineRegressor",
    "FCorrClassifier",
    "FCorrRegressor",
    "FeatureMatrix",
    "load",
    "read_header",
]
