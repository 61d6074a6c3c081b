"""The scikit-learn surface: a classifier, a regressor, model files, and a repair of any scores."""

from fcorr.estimators.classifier import FCorrClassifier
from fcorr.estimators.engines import fit_on_ray
from fcorr.estimators.export import to_onnx
from fcorr.estimators.model_file import load, read_header
from fcorr.estimators.options import Advanced
from fcorr.estimators.regressor import FCorrRegressor
from fcorr.estimators.repair import QuantileRepair
from fcorr.estimators.results import Explanation, FeatureMatrix, Importance, MainEffect, MainEffects
from fcorr.estimators.scoring import Scorer, score_parquet, score_spark

__all__ = [
    "Advanced",
    "Explanation",
    "FCorrClassifier",
    "FCorrRegressor",
    "FeatureMatrix",
    "Importance",
    "MainEffect",
    "MainEffects",
    "QuantileRepair",
    "Scorer",
    "fit_on_ray",
    "load",
    "read_header",
    "score_parquet",
    "score_spark",
    "to_onnx",
]
