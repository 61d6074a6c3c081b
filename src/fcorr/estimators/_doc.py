"""The arguments that both estimators share, written once."""

from typing import TypeVar

_PARAMETERS = """sensitive : str or list of str, optional
        Columns that predictions shall not depend on, categorical or continuous (``bins``,
        ``kinds``). For an array without column names, positions.
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
    car_combinations : bool, default=False
        With several sensitive columns: exchange them all at once, in every combination, as the
        paper does. By default each is exchanged by itself, which is cheaper and, since features
        are embedded one by one, comes to the same: what no single flip changes, no combination of
        flips does.
    invariance : {"adapt", "marginal"} or None, default="adapt"
        How the model becomes exactly invariant: no flip of the sensitive columns then changes a
        prediction, not by one bit, whatever the row, and ``predict`` does not read them: they may
        be left out of X. ``"adapt"``: in the last quarter of the epochs the sensitive features
        are embedded as one number each, the mean over the training rows, and the rest of the
        model adapts to it, as if the columns had never been there. ``"marginal"``: the model is
        trained with the sensitive columns at work, without CAR, so that other columns are not
        asked to stand in for them; a prediction is the average over the values they take in the
        training table, weighted by how often they do (``sample_weight`` times exposure), which
        takes one pass for each of them. ``None``: not exact; ``car`` alone sets how close it
        comes.
    bins : int, sequence of float, dict or None, default=None
        Groups that continuous sensitive columns are cut into, which are then categories: a number
        of groups of about equal size, the edges between groups, or a dict of columns with one or
        the other. By default a sensitive column of more than 20 distinct numbers is continuous,
        and exchanged for a grid of training quantiles.
    head : tuple of int, default=(128, 128)
        Sizes of the hidden layers of the prediction head.
    n_layers : int, default=1
        Number of encoder layers. The paper recommends one: only the first attention matrix reads
        as feature dependencies.
    residual : bool, default=True
        Residual connection round the attention, the paper's variant "+ Res": the head sees each
        feature's own number beside what the attention made of all. The paper's model has none.
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
    kinds : dict or None, default=None
        What columns are, where their types do not say it: ``"numeric"``, ``"categorical"``,
        ``"ordinal"``, ``"boolean"``, ``"datetime"``, or a sequence of categories in order, as in
        ``kinds={"zip": "categorical", "grade": ["A", "B", "C"]}``. For an array without column
        names, the keys are positions. By default numbers are numeric; text and booleans
        categorical; an ordered Categorical of pandas ordinal; dates datetime.
        An ordinal column is a number to the model, the place in its order, so that neighbours
        share strength; a value outside the order is an error in ``fit`` and, with a warning, a
        missing value in ``predict``. A date column ``d`` gives the numbers ``d.year``,
        ``d.month``, ``d.day_of_week`` (0 is Monday), ``d.hour`` and ``d.days`` (since the first
        training date): those that vary in the training table.
    min_category_rows : int or "auto", default="auto"
        Categories seen in fewer rows are pooled with the other rare ones of their column into
        one, "other". So are, without a warning, categories that ``predict`` meets first; where
        nothing was pooled they are taken for the most frequent category, with an
        ``UnseenCategoryWarning``. ``"auto"`` is the smaller of 10 and a thousandth of the rows,
        so that tables of up to 1,000 rows pool nothing; 1 never does. Sensitive and boolean
        columns are never pooled.
    missing_categorical : {"category", "mode"}, default="category"
        A missing category is a category of its own, or is taken for the most frequent one.
    missing_numeric : {"mean", "category"}, default="mean"
        A missing number, place or date is taken for the training mean, or has an embedding of
        its own.
    constant_columns : {"error", "keep"}, default="error"
        What to do about a column that takes one value only.
    random_state : int, numpy generator or None, default=None
        The same integer gives the same weights, to the bit, on the same machine.
    device : str, default="cpu"
        Where torch computes.
    engine : {"auto", "compiled", "plain"}, default="auto"
        Kernels compiled by numba, plain torch, or the first where numba is installed
        (``pip install 'fcorr[fast]'``). They differ in speed, and in rounding.
    verbose : bool or int, default=False
        Show progress: a bar on a terminal, plain lines elsewhere."""

_Class = TypeVar("_Class", bound=type)


def with_shared_parameters(cls: _Class) -> _Class:
    """Write the shared arguments where the class's docstring says ``{parameters}``."""
    cls.__doc__ = (cls.__doc__ or "").replace("{parameters}", _PARAMETERS)
    return cls
