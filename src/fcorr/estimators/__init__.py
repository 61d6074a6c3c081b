"""The scikit-learn surface: a classifier, a regressor, and files to keep them in."""

from fcorr.estimators.classifier import FCorrClassifier
from fcorr.estimators.matrix import FeatureMatrix
from fcorr.estimators.model_file import load, read_header
from fcorr.estimators.regressor import FCorrRegressor

__all__ = ["FCorrClassifier", "FCorrRegressor", "FeatureMatrix", "load", "read_header"]
