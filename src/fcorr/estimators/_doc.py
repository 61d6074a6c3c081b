"""The arguments that both estimators share, written once."""

from typing import TypeVar

_PARAMETERS = """sensitive : str or list of str, optional
        Columns that predictions shall not depend on. They are treated as categorical. For an array
        without column names, positions.
    car : float, "paper" or None, default=1e6
        Weight λ of Counterfactual Attention Regularization. Once λ is large enough to act, what
        a flip of the sensitive column still changes falls roughly as 1/λ; in the default form a
        large λ costs the other features nothing. ``"paper"`` sets λ by the paper's rule from the
        first batch (:func:`fcorr.nn.car.paper_weight`); ``None`` or 0 switch it off. Without
        ``sensitive`` there is nothing to regularise.
    car_form : {"sensitive", "paper", "cda"}, default="sensitive"
        ``"sensitive"``: gradient into the sensitive embedding only, the form that converges best.
        ``"paper"``: the paper's input augmentation. ``"cda"``: the definition by counterfactual
        data augmentation, the slowest. See :mod:`fcorr.nn.car`.
    head : tuple of int, default=(128, 128)
        Sizes of the hidden layers of the prediction head.
    n_layers : int, default=1
        Number of encoder layers. The paper recommends one: only the first attention matrix reads
        as feature dependencies.
    residual : bool, default=False
        Residual connection round the attention, the paper's variant "+ Res".
    numeric_embedding : {"spline", "paper"}, default="spline"
        How a number becomes a number: a piecewise-linear shape function with knots learnt from
        the training table, or the paper's two element-wise linear layers.
    n_knots : int, default=64
        Most knots of a shape function.
    dropout : float, default=0.1
        Dropout in the prediction head.
    epochs : int, default=20
        Passes over the training table.
    batch_size : int or "auto", default="auto"
        Rows per step; ``"auto"`` takes about 64 steps an epoch, with 32 to 2,048 rows each.
    learning_rate : float, default=0.02
        Largest learning rate; it rises for a tenth of the steps and then falls to 0.
    early_stopping : bool or int, default=False
        Stop when the validation loss (with λ times CAR, as in training) has not fallen for this
        many epochs (True: 5), and keep the best weights. Validates on ``eval_set`` or, without
        one, on ``validation_fraction``.
    validation_fraction : float, default=0.1
        Share of the rows set aside for early stopping where there is no ``eval_set``.
    categorical_features : str, list of str or None, default=None
        Columns of numbers to treat as categorical.
    missing_categorical : {"category", "mode"}, default="category"
        A missing category is a category of its own, or is taken for the most frequent one.
    missing_numeric : {"mean", "category"}, default="mean"
        A missing number is taken for the training mean, or has an embedding of its own.
    constant_columns : {"error", "keep"}, default="error"
        What to do about a column that takes one value only.
    random_state : int, numpy generator or None, default=None
        The same integer gives the same weights, to the bit, on the same machine.
    device : str, default="cpu"
        Where torch computes.
    verbose : bool or int, default=False
        Show progress: a bar on a terminal, plain lines elsewhere."""

_Class = TypeVar("_Class", bound=type)


def with_shared_parameters(cls: _Class) -> _Class:
    """Write the shared arguments where the class's docstring says ``{parameters}``."""
    cls.__doc__ = (cls.__doc__ or "").replace("{parameters}", _PARAMETERS)
    return cls
