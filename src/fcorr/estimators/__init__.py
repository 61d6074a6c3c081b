"""The scikit-learn surface: a classifier, a regressor, and model files."""

from fcorr.estimators.classifier import FCorrClassifier
from fcorr.estimators.model_file import load, read_header
from fcorr.estimators.options import Advanced
from fcorr.estimators.reading import (
    Explanation,
    FeatureMatrix,
    Importance,
    MainEffect,
    MainEffects,
)
from fcorr.estimators.regressor import FCorrRegressor

__all__ = [
    "Advanced",
    "Explanation",
    "FCorrClassifier",
    "FCorrRegressor",
    "FeatureMatrix",
    "Importance",
    "MainEffect",
    "MainEffects",
    "load",
    "read_header",
]
