"""What is read off a model: main effects, importance, explanations of rows, attention.

On the scale of the link a model is a sum::

    f(x) = b + Σ_j e_j(x_j) + correction(x)

The main effects ``e_j`` are tables and curves that can be written down. The correction is what
attention and head add, for features that act together.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from fcorr._core import InvalidInputError, RandomState, check_argument, draw_seed, is_integer
from fcorr.certify import Link
from fcorr.data.encode import EncodedTable, encode
from fcorr.data.schema import CategoricalColumn, Column, OrdinalColumn, RatedColumn, Schema
from fcorr.estimators.base import BaseFCorr
from fcorr.estimators.invariance import label_value
from fcorr.estimators.results import (
    Explanation,
    FeatureMatrix,
    Importance,
    MainEffect,
    MainEffects,
    Vector,
)
from fcorr.metrics.sharing import draw_orders, share_out
from fcorr.nn.engine import use_engine
from fcorr.nn.fcorr import FCorrTransformer, Network
from fcorr.training.objective import LinkName

UNITS = {
    "sigmoid": "log-odds",
    "softmax": "log-odds, up to a constant that all classes share",
    "exp": "logarithm of the relativity",
    "identity": "unit of y",
}
"""What effects are measured in, by the link."""

_MOST_LEVELS = 50  # of a rated column that are listed
_N_ERRORS = 2  # standard errors from an estimate to the ends of its interval
_N_EXCHANGES = 4  # other rows that each row takes values from
_NOTHING_TOLD = 1e-15  # mean divergence from one prediction for all, in rounding
_N_IMPORTANCE_ROWS = 2_000  # most of the training table that feature_importances_ is computed on
_N_IMPORTANCE_SCORES = 2**16  # and most rows that are scored for it


class ReadableFCorr(BaseFCorr):
    """What is read off a fitted model, whatever its target; not for direct use."""

    def main_effects(self) -> MainEffects:
        """Return what each feature adds to the output by itself, value by value: rating tables.

        The model is ``f(x) = b + Σ_j e_j(x_j) + correction(x)``, and these are the ``e_j``: in
        log-odds, in the logarithm of a relativity, or in the unit of y. Sensitive features of an
        exact model have an effect of 0.

        Each is the average output of the whole model over up to 128 training rows, with the feature
        at each of its values: what the head does with a feature by itself is counted to it. What
        depends on several features is the correction.

        Returns
        -------
        MainEffects
            A table for each feature: ``effects["age"].effect``, ``effects.to_pandas()``.
        """
        self._check_main_effects("main_effects")
        schema, classes = self.schema_, self._class_labels()
        link, (_, unit) = self._link().name, self._scale()
        members = self.model_.members
        columns = {f.name: column for column in schema.columns for f in column.features}
        # How many rows a category needs to be believed by half, mean over the chosen recipes.
        k = float(np.mean([r["credibility"] for r in self.recipes_ if r["chosen"]]))
        effects = {}
        for position, name in enumerate(schema.feature_names):
            values, points, rows, credibility = _list_levels(
                schema, position, columns[name], members, k
            )
            by_member = unit * np.stack([_effect_at(each, position, points) for each in members])
            if position in self._unread:
                by_member[:] = 0
            effect = by_member.mean(0)
            error = jackknife_error(by_member.reshape(-1, self._n_bags, *effect.shape).mean(0))
            arrays: dict[str, Any] = {
                "effect": effect,
                "lower": effect - _N_ERRORS * error,
                "upper": effect + _N_ERRORS * error,
                "relativity": np.exp(effect) if link == "exp" else None,
            }
            if classes is None:  # one output needs no axis
                arrays = {name: x if x is None else x[:, 0] for name, x in arrays.items()}
            arrays |= {"rows": rows, "credibility": credibility}
            effects[name] = MainEffect(name, columns[name].kind, values, **arrays)
        return MainEffects(effects, UNITS[link], classes)

    def importance(
        self, X: Any, *, n_rows: int = 2_000, random_state: RandomState = 0
    ) -> Importance:
        """Measure how much each feature matters for the outputs of rows.

        Each row takes the feature's value of other rows, and what changes is measured. Where
        features depend on each other this also makes combinations that no row has. What a model
        made of chance is taken off, as far as its bags of rows disagree (by the jackknife).

        Parameters
        ----------
        X : dataframe or array of shape (n_rows, n_features)
            Rows, at least two; they need no target.
        n_rows : int, default=2000
            Most rows to compute on, drawn from X at random.
        random_state : int, numpy generator or None, default=0
            Source of the draw, and of which rows are exchanged.

        Returns
        -------
        Importance
            A row for each feature, the largest total first; sensitive features of an exact model
            have exactly 0.
        """
        self._check_main_effects("importance")
        rule, way_out = "an integer of at least 2", "Leave it out, or raise it."
        check_argument("n_rows", n_rows, is_integer(n_rows, 2), rule, way_out)
        seed, encoded = draw_seed(random_state), self._encode_known(X)
        if len(encoded) < 2:
            raise InvalidInputError(
                f"importance compares rows, and needs at least 2, got {len(encoded)}. Pass more "
                "rows, or use explain(X) for a single one."
            )
        encoded = encoded.sample(n_rows, seed)
        main_BMOF = torch.cat([*self._map(encoded, self._effects_by_bag)]).numpy()
        shares = explained_shares(
            self._score_bags,
            encoded,
            self._link().name,
            effects=main_BMOF,
            seed=seed,
            n_exchanges=_N_EXCHANGES,
        )
        main, total = (np.maximum(without_bias(share), 0) for share in shares)
        error = _N_ERRORS * jackknife_error(shares[1][1:])
        order = np.argsort(-total, kind="stable")
        return Importance(
            tuple(self.schema_.feature_names[i] for i in order),
            main[order],
            total[order],
            np.maximum(total - error, 0)[order],
            (total + error)[order],
            rank_correlation(total, self.significance_),
            len(encoded),
        )

    def explain(self, X: Any, *, n_samples: int = 32, random_state: RandomState = 0) -> Explanation:
        """Return what each feature adds to the output of each row; all adds up to the output.

        Main effects are exact. What attention and head add to them is shared out by Shapley
        values: a feature gets what the correction changes by when it appears after some others,
        on average over orders of all features. A feature that has not appeared has all its views
        at 0, which is their mean over the training rows: no background rows are needed, or chosen.
        The orders are the same for all rows: rows beside it do not change a row's explanation.

        Parameters
        ----------
        X : dataframe or array of shape (n_rows, n_features)
            Rows to explain.
        n_samples : int, default=32
            Orders of the features, an even number of at least 4: each comes with its reverse.
        random_state : int, numpy generator or None, default=0
            Source of the orders.

        Returns
        -------
        Explanation
            Intercept, main effects, corrections with their standard errors, and outputs.
        """
        self._check_main_effects("explain")
        seed = draw_seed(random_state)
        names, classes = self.schema_.feature_names, self._class_labels()
        n_views = sum(member.n_views for member in self.model_.members)
        orders = draw_orders(len(names), n_samples, seed)
        score = partial(self._score_embedded, self.model_)

        def explain(x_cat: Tensor, x_num: Tensor) -> Tensor:
            e_BHF = self._embed(x_cat, x_num)
            main_BFO = self._effects_by_bag(x_cat, x_num)[:, 0].transpose(1, 2)
            output_B1O = score(e_BHF).unsqueeze(1)
            values_BFO, error_BFO = shapley_values(score, e_BHF, orders)
            # What main effects add up to is shared out exactly: each feature gets its own.
            parts = main_BFO, values_BFO - main_BFO, error_BFO, output_B1O
            return torch.cat(parts, dim=1)

        found = self._map(self._encode_known(X), explain, numbers_per_row=n_views * len(names))
        parts = torch.cat([*found]).numpy()
        at_zero = score(torch.zeros(1, n_views, len(names))).numpy()[0]
        constant, unit = self._scale()
        shift = constant + unit * self.balance_
        main, correction, error = np.split(unit * parts[:, :-1], 3, axis=1)
        arrays: dict[str, Any] = {
            "intercept": unit * at_zero + shift,
            "main": main,
            "correction": correction,
            "error": error,
            "output": unit * parts[:, -1] + shift,
        }
        if classes is None:  # one output needs no axis
            arrays = {name: array[..., 0] for name, array in arrays.items()}
        return Explanation(names, **arrays, unit=UNITS[self._link().name], classes=classes)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Importance of each column of X, in its order, on a sample of the training table.

        It is the ``total`` of :meth:`importance`; a column of dates has the sum of its parts, the
        exposure, which is no feature, 0.
        """
        check_is_fitted(self, "model_")
        total = dict(zip(self.schema_.feature_names, self.importance_, strict=True))
        parts = {c.name: [total[f.name] for f in c.features] for c in self.schema_.columns}
        return np.array([sum(parts.get(name, [])) for name in self._column_names], dtype=float)

    def attention(self, X: Any, *, layer: int = 0) -> FeatureMatrix:
        """Mean pre-softmax attention matrix ``z zᵀ/√p`` of a layer over the rows of X.

        Off the diagonal it reads as dependence between features, on the diagonal as a feature's
        significance (paper, §4.1). Sensitive features come first. A model with
        ``invariance="marginal"`` needs the sensitive columns here, which ``predict`` does not.

        NOTE[DIFF]: in the first layer of a model with main effects, z are the main effects over the
        root of their mean square over rows and features: the matrix is that of their products. The
        LayerNorm of the layer divides row by row, so that a feature that seldom matters, but then
        much, would hardly count; and it takes the row's mean away and weighs the features, so that
        one without any effect would have a significance. Of a pack, what chance put into the matrix
        is taken off by the jackknife over its bags.

        Parameters
        ----------
        X : dataframe or array of shape (n_rows, n_features)
            Rows to average over.
        layer : int, default=0
            Which layer, from 0 to ``n_layers`` − 1. Only the first one's matrix is about pairs of
            features: what deeper layers attend with is already a mixture of all.

        Returns
        -------
        FeatureMatrix
            The matrix, with the features' names.
        """
        check_is_fitted(self, "model_")
        n_layers = len(self.model_.members[0].layers)
        fits = is_integer(layer, 0) and layer < n_layers
        rule = f"an integer from 0 to {n_layers - 1}"
        way_out = "Leave it out for the first layer, whose matrix is about pairs of features."
        check_argument("layer", layer, fits, rule, way_out)
        is_collapsed = self.exact_ and self.portfolio_ is None
        table = self._read_known_table(X, read_sensitive=not is_collapsed)
        encoded = encode(table, self.schema_, read_sensitive=not is_collapsed)
        return self._name_matrix(self._mean_attention(encoded, int(layer)))

    def feature_significance(self) -> dict[str, float]:
        """Significance of each feature on the training table, the largest first.

        It is the diagonal of the attention matrix before the softmax (paper, §4.1), that of
        :meth:`attention`: the mean square of a feature's main effect in units of all features',
        over √p. A feature that the model ignores has 0, one that cannot be told from chance may
        have less. It is quick, and leaves out what features do together: :meth:`importance`
        measures what changes, and how far the two agree.
        """
        check_is_fitted(self, "model_")
        order = np.argsort(-self.significance_, kind="stable")
        names = self.schema_.feature_names
        return {names[i]: float(self.significance_[i]) for i in order}

    # What fit reads off the training table

    def _read_off(self, encoded: EncodedTable, link: LinkName) -> None:
        self.significance_ = self._significance(encoded)
        self.importance_ = self._importance(encoded, link)

    def _importance(self, encoded: EncodedTable, link: LinkName) -> Vector:
        """Return the total importance of each feature, on some of the rows."""
        n_features = max(1, len(self.schema_.feature_names))
        n_rows = min(_N_IMPORTANCE_ROWS, max(200, _N_IMPORTANCE_SCORES // n_features))
        _, total = explained_shares(
            self._score_bags
            if self._n_bags > 1
            else lambda rows: self._raw_outputs(rows)[:, None] + self.balance_,
            encoded.sample(n_rows, self.seed_),
            link,
            seed=self.seed_,
        )
        return np.maximum(without_bias(total), 0)

    def _significance(self, encoded: EncodedTable) -> NDArray[np.float64]:
        return self._mean_attention(encoded).diagonal().copy()

    def _mean_attention(self, encoded: EncodedTable, layer: int = 0) -> NDArray[np.float64]:
        members, n_rows, total = self.model_.members, 0, torch.zeros(1, dtype=torch.float64)
        if layer == 0 and members[0].views is not None:
            for main_BMOF in self._map(encoded, self._effects_by_bag):
                total = total + torch.einsum("bmof,bmog->mfg", main_BMOF, main_BMOF)
            squares = total.numpy()
            size = math.sqrt(squares.shape[-1]) * squares[0].diagonal().mean()
            return without_bias(squares) / size if size else squares[0]
        for member in members:
            embed = partial(member.normalized_embedding, layer=layer)
            for z in self._map(encoded, use_engine(self._options["engine"])(embed)):
                total = total + z.double().T @ z.double()
                n_rows += len(z)
        return (total / (n_rows * math.sqrt(total.shape[-1]))).numpy()

    def _whole_and_bags(self, by_member: Tensor) -> Tensor:
        """Average over all members, and over those of each bag: ``(N, B, *)`` → ``(B, 1 + K, *)``.

        A single bag is the whole.
        """
        bags = by_member.unflatten(0, (-1, self._n_bags)).mean(0)
        whole = by_member.mean(0, keepdim=True)
        found = torch.cat([whole, bags]) if len(bags) > 1 else whole
        return found.transpose(0, 1).contiguous()

    def _name_matrix(self, values: NDArray[np.float64]) -> FeatureMatrix:
        """Name a matrix between the first features; sensitive ones come first."""
        names = self.schema_.feature_names[: len(values)]
        first = [i for i in self.schema_.sensitive_positions if i < len(names)]
        order = [*first, *(i for i in range(len(names)) if i not in first)]
        return FeatureMatrix(tuple(names[i] for i in order), values[np.ix_(order, order)])

    # The parts of the sum

    def _scale(self) -> tuple[float, float]:
        """Return constant and factor that make of balanced outputs what the link is applied to."""
        return 0.0, 1.0

    @property
    def _n_bags(self) -> int:
        """Number of bags; the members are recipes times bags, in this order."""
        if self.oob_loss_ is None:  # a single network, which may be another than ours
            return 1
        return len(self.model_.members) // sum(recipe["chosen"] for recipe in self.recipes_)

    @property
    def _unread(self) -> list[int]:
        """Positions of features that predictions do not read."""
        return list(self.schema_.sensitive_positions) if self.exact_ else []

    def _check_main_effects(self, method: str) -> None:
        check_is_fitted(self, "model_")
        if any(member.views is None for member in self.model_.members):
            raise InvalidInputError(
                f"{method} needs a model with main effects, and this one was fitted with "
                "advanced={'main_effects': False}, as the paper has it. Fit it without that, or "
                "use attention(X), feature_significance() or feature_importances_."
            )

    def _encode_known(self, X: Any) -> EncodedTable:
        return encode(self._read_known_table(X), self.schema_, read_sensitive=not self.exact_)

    def _embed(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Embed every feature, one that predictions do not read as 0: ``(B, H, F)``."""
        e_BHF = self.model_.embed_to_score(x_cat, x_num)
        e_BHF[:, :, self._unread] = 0
        return e_BHF

    def _main_by_row(self, X: Any) -> Vector:
        """Return the main effect of each feature for each row, in the unit of the link."""
        parts = torch.cat([*self._map(self._encode_known(X), self._effects_by_bag)])
        return self._scale()[1] * parts[:, 0, 0].numpy()

    def _effects_by_bag(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Return the main effects of the model and of the members of each bag: ``(B, M, O, F)``."""
        found = [member.main_effects(x_cat, x_num).double() for member in self.model_.members]
        main_BMOF = self._whole_and_bags(torch.stack(found))
        main_BMOF[..., self._unread] = 0
        return main_BMOF

    def _score_embedded(self, network: Network, e_BHF: Tensor) -> Tensor:
        """Compute outputs of embedded features in float64: ``(B, O)``."""
        if self.portfolio_ is None:
            return network.score_embedded(e_BHF.contiguous()).double()
        return self.portfolio_.average(network, self._link().name, e_BHF.clone())

    def _score_bags(self, encoded: EncodedTable) -> Vector:
        """Compute outputs of the model and of the members of each bag: ``(n_rows, M, O)``."""
        sizes = [member.n_views for member in self.model_.members]

        def score(x_cat: Tensor, x_num: Tensor) -> Tensor:
            e_BHF = self._embed(x_cat, x_num)
            parts = zip(self.model_.members, e_BHF.split(sizes, dim=1), strict=True)
            members = torch.stack([self._score_embedded(*part) for part in parts])
            found = self._whole_and_bags(members)
            if self.portfolio_ is not None:  # averages over it are not linear in the outputs
                found[:, 0] = self._score_embedded(self.model_, e_BHF)
            return found

        return torch.cat([*self._map(encoded, score)]).numpy() + self.balance_


def _effect_at(network: FCorrTransformer, feature: int, points: Vector) -> Vector:
    """Return a network's effect of a feature at codes, or at numbers: ``(n_points, n_outputs)``."""
    rows = torch.zeros(len(points), network.n_features, dtype=torch.float64)
    rows[:, feature] = torch.from_numpy(points)
    n_codes = len(network.cat_cardinalities)
    effects = network.main_effects(rows[:, :n_codes].int(), rows[:, n_codes:].float())
    return effects[:, :, feature].double().numpy()


def _list_levels(
    schema: Schema, position: int, column: Column, networks: Sequence[FCorrTransformer], k: float
) -> tuple[tuple[str | float | None, ...], Vector, Vector, Vector]:
    """List a feature's values in the table's words and in the model's, their rows, credibility."""
    if isinstance(column, CategoricalColumn):
        rows = np.array([*column.counts, column.n_pooled_rows][: column.n_codes], dtype=float)
        credibility = np.divide(rows, rows + k, where=rows > 0, out=np.zeros(len(rows)))
        return column.labels, np.arange(len(rows), dtype=float), rows, credibility
    number = schema.numeric[position - len(schema.cardinalities)]
    if isinstance(column, RatedColumn):  # where a missing value is a category like any other
        counts = np.array(column.counts, dtype=float)
        shown = np.argsort(-counts, kind="stable")[:_MOST_LEVELS]
        categories = ["missing" if c is None else str(c) for c in column.categories]
        labels = tuple(categories[i] for i in shown)
        points = (np.array(column.ratings)[shown] - number.mean) / number.scale
        return labels, points, counts[shown], np.array(column.credibilities)[shown]
    if isinstance(column, OrdinalColumn):
        values: tuple[str | float | None, ...] = tuple(map(str, column.categories))
        points = (np.arange(len(values), dtype=np.float64) - number.mean) / number.scale
        rows = np.array(column.counts, dtype=float)
    else:
        all_views = [network._views for network in networks]
        finest = max(all_views, key=lambda views: int((views.feature_of_slot == position).sum()))
        knots = finest.numbers.knots[position - len(schema.cardinalities)]
        points = knots[knots.isfinite()].double().numpy()
        # What comes after the knots is a missing number's.
        shares = finest.shares[finest.feature_of_slot == position][: len(points)]
        rows = shares.double().numpy() * schema.n_rows
        values = tuple(label_value(schema, position, value) for value in points)
    if number.keep_missing:
        values, points = (*values, None), np.append(points, np.nan)
        rows = np.append(rows, number.n_missing)
    return values, points, rows, np.full(len(rows), np.nan)


def jackknife_error(bags: Vector) -> Vector:
    """Return the standard error by the delete-a-group jackknife: ``(K, *)`` → ``(*)``.

    ``√((K − 1)/K · Σ_k (θ_k − θ̄)²)``, where θ_k is what was learnt without group k. Bags have most
    of their rows in common, so that their own spread says too little. NaN with a single bag.

    Examples
    --------
    The mean of 1, 2, 6 has a standard error of √(7/3); its groups of one are left out in turn:

    >>> round(float(jackknife_error(np.array([4.0, 3.5, 1.5])) ** 2), 6)
    2.333333
    """
    n_bags = len(bags)
    if n_bags < 2:
        return np.full(bags.shape[1:], np.nan)
    total = np.square(bags - bags.mean(0)).sum(0)
    return np.sqrt((n_bags - 1) / n_bags * total)


def without_bias(shares: Vector) -> Vector:
    """Take off what chance adds to a share, by the jackknife: ``(1 + K, *)`` → ``(*)``.

    The first is of the model, the others of its K bags of rows, each of which leaves a group out.
    Shares are squares, and what a model makes of chance does not cancel in them: pure noise has
    one too. It is the larger the further bags lie apart, and ``θ − (K − 1) (mean θ_k − θ)`` is
    without it (Quenouille, 1956). A model without bags keeps it.

    Examples
    --------
    Effects of 1 ± 0.1 in two bags, squared:

    >>> round(float(without_bias(np.array([1.0, 1.21, 0.81]))), 6)
    0.99
    """
    whole, bags = shares[0], shares[1:]
    return whole - (len(bags) - 1) * (bags.mean(0) - whole) if len(bags) > 1 else whole


def explained_shares(
    score: Callable[[EncodedTable], Vector],
    encoded: EncodedTable,
    link: LinkName,
    *,
    effects: Vector | None = None,
    seed: int,
    n_exchanges: int = 1,
) -> tuple[Vector, Vector]:
    """Measure what share of what a model tells the rows apart by is each feature's.

    What lies between two predictions is measured as the loss does it: half the squared difference
    of numbers, for classes the Kullback-Leibler divergence, for a logarithmic link the Poisson
    deviance: see :func:`divergence`. Rows are put in a random circle, and each takes the feature's
    value of the row ``1`` to ``n_exchanges`` places further: of another row always, and each value
    as often as it was there. The share is half the mean divergence from the row as it is to that
    row, over the mean divergence to the model that predicts the mean for all, of which n − 1 rows
    are the measure, as no row is exchanged with itself. With numbers that is Sobol's total index by
    the formula of Jansen (1999); the numerator is half of what permutation importance finds, if the
    model is right.

    ``score`` has the outputs of M models, ``(B, M, n_outputs)``, of which the ``link`` makes
    predictions, and ``effects`` their main effects, ``(B, M, n_outputs, n_features)``. Returns the
    shares ``(M, n_features)`` if only the main effect were that of the other row, 0 without
    ``effects``, and if the value is. Both are 0 for a model that predicts one value for all.
    """
    n_rows, (n_codes, n_numbers) = len(encoded), (encoded.codes.shape[1], encoded.numbers.shape[1])
    circle = np.random.default_rng(seed).permutation(n_rows)
    before = torch.from_numpy(score(encoded))
    main, total = torch.zeros(2, before.shape[1], n_codes + n_numbers, dtype=torch.float64)
    # With one row more are the same row.
    shifts = range(1, min(n_exchanges, n_rows - 1) + 1)
    for shift in shifts:
        other = np.empty(n_rows, dtype=np.intp)
        other[circle] = np.roll(circle, shift)
        for j in range(n_codes + n_numbers):
            codes, numbers = encoded.codes.copy(), encoded.numbers.copy()
            column = codes[:, j] if j < n_codes else numbers[:, j - n_codes]
            column[:] = column[other]
            after = torch.from_numpy(score(replace(encoded, codes=codes, numbers=numbers)))
            total[:, j] += divergence(link, before, after).mean(0)
            if effects is not None:
                moved = torch.from_numpy(effects[other, ..., j] - effects[..., j])
                main[:, j] += divergence(link, before, before + moved).mean(0)
    known = 2 * max(1, len(shifts)) * divergence(link, before, mean_output(link, before)).mean(0)
    known *= n_rows / max(1, n_rows - 1)  # as a row is never exchanged with itself
    is_told = known > _NOTHING_TOLD
    main, total = (torch.where(is_told[:, None], x / known[:, None], 0.0) for x in (main, total))
    return main.numpy(), total.numpy()


def divergence(link: LinkName, outputs: Tensor, others: Tensor) -> Tensor:
    """Measure how much worse other outputs are, if these are right: ``(*, n_outputs)`` → ``(*)``.

    ``A(η') − A(η) − A'(η)·(η' − η)``, where the slope of A makes predictions of outputs η: it is
    half the deviance of the family that the link belongs to.

    Examples
    --------
    >>> one, other = torch.tensor([[0.0]]), torch.tensor([[2.0]])
    >>> divergence("identity", one, other)
    tensor([2.], dtype=torch.float64)
    """
    predictions = Link(link)(outputs)
    linear = (predictions * (others - outputs)).sum(-1)
    return _potential(link, others) - _potential(link, outputs) - linear


def _potential(link: LinkName, outputs: Tensor) -> Tensor:
    if link == "softmax":
        return outputs.logsumexp(-1)
    functions: dict[LinkName, Callable[[Tensor], Tensor]] = {
        "sigmoid": nn.functional.softplus,
        "exp": torch.exp,
        "identity": lambda x: x.square() / 2,
    }
    return functions[link](outputs).sum(-1)


def mean_output(link: LinkName, outputs: Tensor) -> Tensor:
    """Return the outputs of the mean prediction over the rows: ``(B, *)`` → ``(1, *)``."""
    mean = Link(link)(outputs).mean(0, keepdim=True)
    if link == "identity":
        return mean
    return torch.logit(mean) if link == "sigmoid" else mean.log()


def rank_correlation(a: Vector, b: Vector) -> float:
    """Return Spearman's rank correlation, NaN where all of one are the same.

    Examples
    --------
    >>> rank_correlation(np.array([1.0, 5.0, 2.0]), np.array([0.1, 9.0, 3.0]))
    1.0
    """
    differ = np.ptp(a) > 0 and np.ptp(b) > 0
    return round(float(np.corrcoef(rankdata(a), rankdata(b))[0, 1]), 12) if differ else math.nan


@torch.no_grad()
def shapley_values(
    score: Callable[[Tensor], Tensor], e_BHF: Tensor, orders: NDArray[np.intp]
) -> tuple[Tensor, Tensor]:
    """Share a function of embedded features out among them, by orders in which they appear.

    A feature gets what the function, ``(B, H, F)`` → ``(B, n_outputs)``, changes by when its views
    take the place of zeros: the mean over the orders, and its standard error over pairs of them,
    ``(B, F, n_outputs)`` in float64. All features together get ``score(e) − score(0)``, whatever
    the orders.
    """
    at_zero = score(torch.zeros_like(e_BHF)).double().numpy()

    def appear(order: list[int]) -> Iterator[NDArray[Any]]:
        present = torch.zeros_like(e_BHF)
        yield at_zero
        for j in order:
            present[:, :, j] = e_BHF[:, :, j]
            yield score(present).double().numpy()

    found = torch.from_numpy(share_out(appear, orders))
    return found.mean(0), found.std(0) / math.sqrt(len(found))
