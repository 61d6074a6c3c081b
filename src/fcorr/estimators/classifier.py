"""The classifier."""

from collections.abc import Sequence
from typing import Literal

from fcorr._core import RandomState
from fcorr.data.bins import Bins
from fcorr.data.describing import CategoricalMissing, NumericMissing
from fcorr.data.inference import ConstantColumns, MinCategoryRows
from fcorr.data.kinds import Kinds
from fcorr.estimators._doc import documented
from fcorr.estimators.base import BaseFCorr
from fcorr.estimators.classification import ClassWeight, NetworkClassifier
from fcorr.estimators.invariance import Invariance
from fcorr.estimators.network import Columns
from fcorr.metrics.thresholds import ThresholdRule
from fcorr.nn.engine import EngineName
from fcorr.nn.fcorr import NumericEmbeddingName
from fcorr.training.objective import CarForm, CarWeight


@documented("classes", "fcorr")
class FCorrClassifier(NetworkClassifier, BaseFCorr):
    """FCorrTransformer with CAR for two or more classes.

    Every feature is embedded as one number, and one attention matrix lets features depend on each
    other. Counterfactual Attention Regularization drives the change of a prediction under a flip
    of the sensitive column towards 0, and ``invariance`` makes it exactly 0. That is invariance to
    a flip of the column, no more: other columns can still act as proxies for it.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from fcorr.data import make_indirect_bias
    >>> X, y = make_indirect_bias(2_000, random_state=0)
    >>> model = FCorrClassifier(sensitive="X1", epochs=5, random_state=0).fit(X, y)
    >>> model.attention(X).names
    ('X1', 'X2', 'X3')
    """

    def __init__(
        self,
        *,
        class_weight: ClassWeight = None,
        threshold: float | ThresholdRule = 0.5,
        sensitive: Columns = None,
        car: CarWeight = 1e6,
        car_form: CarForm = "sensitive",
        car_combinations: bool = False,
        invariance: Invariance = "adapt",
        bins: Bins | None = None,
        head: Sequence[int] = (128, 128),
        n_layers: int = 1,
        residual: bool = True,
        numeric_embedding: NumericEmbeddingName = "spline",
        n_knots: int = 64,
        dropout: float = 0.1,
        epochs: int = 20,
        batch_size: int | Literal["auto"] = "auto",
        learning_rate: float = 0.02,
        beta2: float = 0.95,
        early_stopping: bool | int = False,
        validation_fraction: float = 0.1,
        kinds: Kinds | None = None,
        min_category_rows: MinCategoryRows = "auto",
        missing_categorical: CategoricalMissing = "category",
        missing_numeric: NumericMissing = "mean",
        constant_columns: ConstantColumns = "error",
        random_state: RandomState = None,
        device: str = "cpu",
        engine: EngineName = "auto",
        verbose: bool | int = False,
    ) -> None:
        super().__init__(
            sensitive=sensitive,
            car=car,
            car_form=car_form,
            car_combinations=car_combinations,
            invariance=invariance,
            bins=bins,
            head=head,
            n_layers=n_layers,
            residual=residual,
            numeric_embedding=numeric_embedding,
            n_knots=n_knots,
            dropout=dropout,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            beta2=beta2,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            kinds=kinds,
            min_category_rows=min_category_rows,
            missing_categorical=missing_categorical,
            missing_numeric=missing_numeric,
            constant_columns=constant_columns,
            random_state=random_state,
            device=device,
            engine=engine,
            verbose=verbose,
        )
        self.class_weight = class_weight
        self.threshold = threshold
