"""What is measured of a model on rows: performance, change under flips, differences of groups."""

from fcorr.audit.measuring.classes import measure_classes
from fcorr.audit.measuring.regression import measure_regression
from fcorr.audit.measuring.results import LOWER_IS_BETTER, MAIN_METRIC, Measured, flatten_groups
from fcorr.audit.measuring.rows import AuditRows, View, as_it_is, name_columns, read_rows, unpack
from fcorr.estimators import FCorrClassifier, FCorrRegressor

__all__ = [
    "LOWER_IS_BETTER",
    "MAIN_METRIC",
    "AuditRows",
    "Estimator",
    "Measured",
    "View",
    "as_it_is",
    "flatten_groups",
    "measure",
    "name_columns",
    "read_rows",
    "unpack",
]

Estimator = FCorrClassifier | FCorrRegressor


def measure(
    estimator: Estimator,
    rows: AuditRows,
    *,
    view: View = as_it_is,
    threshold: float | None = None,
) -> Measured:
    """Measure a fitted model.

    Parameters
    ----------
    estimator : FCorrClassifier or FCorrRegressor
        The model.
    rows : AuditRows
        The rows, from :func:`read_rows`.
    view : callable
        What the model sees of a table.
    threshold : float, optional
        Of two classes, the probability from which on the second is decided; by default the
        model's own.
    """
    if isinstance(estimator, FCorrRegressor):
        return measure_regression(estimator, rows, view)
    return measure_classes(estimator, rows, view, threshold)
