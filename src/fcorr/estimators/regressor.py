"""The regressor."""

from collections.abc import Sequence
from typing import Literal

from fcorr._core import RandomState
from fcorr.data.bins import Bins
from fcorr.data.describing import CategoricalMissing, NumericMissing
from fcorr.data.inference import ConstantColumns, MinCategoryRows
from fcorr.data.kinds import Kinds
from fcorr.estimators._doc import documented
from fcorr.estimators.base import BaseFCorr
from fcorr.estimators.invariance import Invariance
from fcorr.estimators.network import Columns
from fcorr.estimators.regression import NetworkRegressor, ObjectiveName
from fcorr.nn.engine import EngineName
from fcorr.nn.fcorr import NumericEmbeddingName
from fcorr.training.objective import CarForm, CarWeight


@documented("number", "fcorr")
class FCorrRegressor(NetworkRegressor, BaseFCorr):
    """FCorrTransformer with CAR for a number: a mean, a count or an amount.

    See :class:`FCorrClassifier` for what the model is and what its invariance means.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(1_000, 4))
    >>> y = np.abs(X[:, 0]) + X[:, 1] * X[:, 2]
    >>> model = FCorrRegressor(epochs=40, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True

    Claim counts of policies with different times at risk:

    >>> X[:, 3] = years = rng.uniform(0.1, 1, 1_000)
    >>> claims = rng.poisson(years * np.exp(X[:, 0] - 1))
    >>> model = FCorrRegressor(objective="poisson", exposure=3, epochs=5, random_state=0)
    >>> expected = model.fit(X, claims).predict(X)
    >>> bool(np.isclose(expected.sum(), claims.sum()))
    True
    >>> np.allclose(expected, years * model.predict_rate(X[:, :3]))
    True
    """

    def __init__(
        self,
        *,
        objective: ObjectiveName = "mse",
        tweedie_power: float = 1.5,
        exposure: str | int | None = None,
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
        self.objective = objective
        self.tweedie_power = tweedie_power
        self.exposure = exposure
