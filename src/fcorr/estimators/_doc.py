"""What the estimators' arguments and attributes are, written once for all that share them."""

import inspect
import re
from collections.abc import Callable
from textwrap import indent
from typing import Literal, TypeVar

_SHARED = """
sensitive : str or list of str, optional
    Columns that predictions shall not depend on, categorical or continuous (``bins``,
    ``kinds``). For an array without column names, positions.
bins : int, sequence of float, dict or None, default=None
    Groups that continuous sensitive columns are cut into, which are then categories: a number
    of groups of about equal size, the edges between groups, or a dict of columns with one or
    the other. By default a sensitive column of more than 20 distinct numbers is continuous,
    and exchanged for a grid of training quantiles.
batch_size : int or "auto", default="auto"
    Rows per step; ``"auto"`` takes about 64 steps an epoch, with 32 to 2,048 rows each.
beta2 : float, default=0.95
    How long Adam remembers squared gradients. The default suits CAR, whose gradient falls by
    orders of magnitude; where rare rows, such as large claims, have most of the gradient, a longer
    memory (0.999) is worth a try.
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
constant_columns : {"error", "keep"}, default="error"
    What to do about a column that takes one value only.
random_state : int, numpy generator or None, default=None
    The same integer gives the same weights, to the bit, on the same machine.
device : str, default="cpu"
    Where torch computes.
verbose : bool or int, default=False
    Show progress: a bar on a terminal, plain lines elsewhere.
"""

_FCORR = """
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
learning_rate : float, default=0.02
    Largest learning rate; it rises for a tenth of the steps and then falls to 0.
missing_numeric : {"mean", "category"}, default="mean"
    A missing number, place or date is taken for the training mean, or has an embedding of
    its own.
engine : {"auto", "compiled", "plain"}, default="auto"
    Kernels compiled by numba, plain torch, or the first where numba is installed
    (``pip install 'fcorr[fast]'``). They differ in speed, and in rounding.
"""

_BASELINES = """
network : {"ft_transformer", "tab_transformer", "ffn"}, default="ft_transformer"
    The network: FT-Transformer (Gorishniy et al., 2021), TabTransformer (Huang et al., 2020), or
    a plain feed-forward network on one-hot categories. All get numbers as standardised places
    among the knots that FCorr's shape functions would have; a missing number is the mean.
network_options : dict or None, default=None
    Sizes of the network, ``head`` and, for the transformers, ``d_embedding``, ``n_layers`` and
    ``n_heads``, as in ``{"n_layers": 3, "d_embedding": 192}``; what is left out is as in
    ``network_``. FT-Transformer also has ``attention_dropout`` and ``residual_dropout``, both 0,
    and TabTransformer ``numeric_norm``, the authors' LayerNorm across the numbers, off because
    it takes their size away.
sensitive : str or list of str, optional
    Columns that ``car`` regularises the attention to, categorical or continuous (``bins``,
    ``kinds``). For an array without column names, positions.
car : float, "paper" or None, default=None
    Weight λ of Counterfactual Attention Regularization, for transformers, by its definition: the
    sensitive features are exchanged, and the first layer's attention to them is to stay what it
    was. It says nothing of the predictions; measure them with :func:`fcorr.metrics.flip_scores`.
    ``"paper"`` sets λ by the paper's rule from the first batch. TabTransformer has it for
    categorical columns only.
car_rows : float, default=1.0
    Share of the rows of each step that ``car`` is computed of. Its time grows with the square of
    the number of features: with hundreds of them a small share makes steps much faster,
    and the gradient stays right on average.
dropout : float or "auto", default="auto"
    Dropout of the network, in FT-Transformer of its feed-forward parts. ``"auto"`` is 0.1 for
    FT-Transformer, 0.2 for TabTransformer, 0.3 for the feed-forward network.
epochs : int or "auto", default="auto"
    Passes over the training table; ``"auto"`` is 10, for the feed-forward network 20.
learning_rate : float or "auto", default="auto"
    Largest learning rate; it rises for a tenth of the steps and then falls to 0. ``"auto"`` is
    0.001 for FT-Transformer, 0.002 for the others.
weight_decay : float or "auto", default="auto"
    Weight decay of the linear layers, as AdamW has it; biases, norms and embeddings have none.
    ``"auto"`` is 1e-05.
"""

_CLASSES = """
class_weight : "balanced", dict or None, default=None
    Weight of each class in the loss, beside ``sample_weight``: ``{label: weight}``, 1 for
    classes it leaves out, or ``"balanced"`` for weights that make all classes weigh the same.
    Probabilities stay those of the data: the balance below takes the distortion away.
threshold : float, "f1", {"fpr": rate} or {"cost": (c_fp, c_fn)}, default=0.5
    Probability of the second class from which on ``predict`` chooses it; for two classes only.
    A rule chooses it on the training rows, weighted by ``sample_weight``: ``"f1"`` by the best
    F1; ``{"fpr": 0.05}`` the lowest with a false-positive rate of at most 0.05;
    ``{"cost": (1, 20)}`` by the least cost, where a false positive costs 1 and a false
    negative 20. See :func:`fcorr.metrics.choose_threshold`.
"""

_NUMBER = """
objective : {"mse", "poisson", "gamma", "tweedie"}, default="mse"
    What is minimised. ``"mse"``: squared error. The others have a log link, so that effects
    multiply: ``"poisson"`` for counts (y is the count, not the rate), ``"gamma"`` for positive
    amounts such as claim severities, ``"tweedie"`` for amounts that are often 0, such as pure
    premiums.
tweedie_power : float, default=1.5
    How the variance grows with the mean for ``"tweedie"``, in (1, 2).
exposure : str, int or None, default=None
    Column of X with each row's exposure, such as years at risk, all positive; for an array
    without column names, its position. It is no feature but an offset: the expectation is
    proportional to it. Needs a log link.
"""

_CLASSES_LEARNT = """
classes_ : ndarray
    Class labels, sorted; the order of the columns of ``predict_proba``.
class_weight_ : ndarray of shape (n_classes,)
    Weight of each class in the loss.
threshold_ : float or None
    The threshold ``predict`` uses; None with more than two classes, where it chooses the most
    probable one.
balance_ : ndarray of shape (n_outputs,)
    Constant added to each logit when training is over, such that the mean probability of each
    class is its share, both weighted by ``sample_weight``, over all rows passed to ``fit``,
    also those that early stopping set aside. Two classes have one logit, more one each.
"""

_NUMBER_LEARNT = """
objective_ : str
    The objective of the fit.
base_ : float
    Weighted mean of y in training or, with a log link, logarithm of the rate: of weighted y
    over weighted exposure.
target_scale_ : float
    Unit in which the network learns y: its weighted deviation or, with a log link, mean.
balance_ : ndarray of shape (1,)
    Constant added to the network's output η when training is over. The prediction is ``base_ +
    target_scale_·(η + balance_)`` or, with a log link, ``exposure·exp(base_ + η + balance_)``,
    and the balance is such that predictions, weighted, sum to the observed total over all rows
    passed to ``fit``, also those that early stopping set aside.
"""

_FCORR_LEARNT = """
exact_ : bool
    Whether no flip of the sensitive columns can change a prediction; ``predict`` then does
    not read them.
portfolio_ : Portfolio or None
    What predictions are averaged over with ``invariance="marginal"``.
"""

_BASELINES_LEARNT = """
exact_ : bool
    False: a baseline makes use of the sensitive columns.
places_ : Places
    Knots of the numeric features.
"""

_SHARED_LEARNT = """
history_ : History
    Losses of every epoch, and the λ that was used. With a log link the loss is half the unit
    deviance of y in units of its mean, up to a constant.
schema_ : Schema
    What the training table looked like.
model_ : torch.nn.Module
    The trained network.
network_ : dict
    Its name and sizes.
feature_names_in_ : ndarray of str
    Column names of the training table, where it had names.
n_features_in_ : int
    Number of its columns.
"""

Target = Literal["classes", "number"]
Family = Literal["fcorr", "baselines"]
_ARGUMENTS = {"classes": _CLASSES, "number": _NUMBER, "fcorr": _FCORR, "baselines": _BASELINES}
_ATTRIBUTES = {
    "classes": _CLASSES_LEARNT,
    "number": _NUMBER_LEARNT,
    "fcorr": _FCORR_LEARNT,
    "baselines": _BASELINES_LEARNT,
}
_Class = TypeVar("_Class", bound=type)


def documented(target: Target, family: Family) -> Callable[[_Class], _Class]:
    """Write arguments and attributes where a class's docstring says so, in braces.

    Arguments come in the order of the signature.
    """

    def document(cls: _Class) -> _Class:
        entries = {
            entry.split(" : ")[0]: entry
            for text in (_SHARED, _ARGUMENTS[target], _ARGUMENTS[family])
            for entry in re.split(r"\n(?=\S)", text.strip())
        }
        arguments = list(inspect.signature(cls).parameters)
        texts = {
            "parameters": "\n".join(entries[name] for name in arguments),
            "attributes": "\n".join(
                text.strip() for text in (_ATTRIBUTES[target], _ATTRIBUTES[family], _SHARED_LEARNT)
            ),
        }
        for name, text in texts.items():
            place = f"    {{{name}}}"
            cls.__doc__ = (cls.__doc__ or "").replace(place, indent(text, "    "))
        return cls

    return document
