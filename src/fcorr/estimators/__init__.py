"""fcorr.estimators."""
