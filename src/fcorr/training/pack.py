"""A pack: networks that differ in how they are regularised, each trained on its own bag of rows.

The rows are put into folds, and a member leaves one of them out: on these rows, which it never saw,
it is stopped and judged. So no row is lost to validation, and nobody has to tune. A first round
tries every recipe on some bags, a second one the best of them on more; those whose mean predicts
best are then trained on all bags, and the prediction is the mean of these members.

What this takes from others: bags and out-of-bag rows from explainable boosting machines, members
of different settings chosen greedily by their mean from ensemble selection (Caruana et al., 2004)
and TabPack (Gorishniy et al., 2026).
"""

import math
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fcorr._core import Progress
from fcorr.nn.fcorr import FCorrTransformer
from fcorr.training.loop import History
from fcorr.training.rows import Fold, Map

_FEW_ROWS = 2_000  # up to which there are no large recipes, and two at least are chosen
# Up to so many rows: the bags on which all recipes are tried, then the best, at last the chosen
# ones. A bag leaves out enough rows to stop by, or is rather one of many.
_ROUNDS = {_FEW_ROWS: (8,), 12_000: (2, 4, 8), 100_000: (1, 2, 6), math.inf: (1, 4)}
_N_BEST = 4  # recipes that a second round tries
_TOLERANCE = 0.75  # standard errors, by which a recipe more may look worse than without it
_FAR = 3.0  # standard errors, by which a recipe of a few rows is too far behind the best
_N_DRAWN, _MOST_GROWN = 4, 6  # recipes to draw at a time, and to choose, where there is time
_N_STALE, _LEAST_GAIN = 2, 1e-4  # how often, in vain, and what is a gain
_MANY_HELD_OUT = 2_000  # rows that tell when to stop, and still are fit to judge by
_N_PROBES, _N_PROBED = 2, 2  # precise recipes, and bags on which they are tried first
_MANY = 30  # features, above which each is believed less
_WIDE = 100  # features, above which steps are shorter, and recipes others
_MOST_NUMBERS = 2_048  # of a row, all views of all features together


@dataclass(frozen=True)
class Recipe:
    """How one network is made, and trained.

    Attributes
    ----------
    head : tuple of int
        Sizes of the hidden layers of the prediction head.
    n_views, n_knots : int
        Numbers for each feature, and most knots of a shape function.
    dropout, feature_dropout : float
        Share of the head's numbers, and of the features, that a step does without.
    epochs : int
        Most passes over the rows.
    learning_rate, weight_decay : float
        AdamW's; weights of linear layers decay.
    smoothness : float
        Weight of the squared second differences of shape functions, in rows like credibility.
    credibility : float
        How many rows a category needs to be believed by half: with n rows it is pulled to the mean
        as if by ``n / (n + credibility)``. Of a recipe that is not adapted yet, rows of a table
        whose classes have the same size.
    sparsity : float
        See :meth:`fcorr.nn.layers.ViewEmbedding.penalty`; with 0 all effects shrink alike.
    additive : bool
        Main effects only: attention and head see nothing.
    large : bool
        For long tables, of more than 2,000 rows, that are not wide, of at most 100 features.
    """

    head: tuple[int, ...] = (128, 128)
    n_views: int = 8
    n_knots: int = 64
    dropout: float = 0.3
    feature_dropout: float = 0.1
    epochs: int = 15
    learning_rate: float = 0.003
    weight_decay: float = 0.1
    smoothness: float = 5.0
    credibility: float = 10.0
    sparsity: float = 0.0
    additive: bool = False
    large: bool = False

    @property
    def turn(self) -> tuple[bool, int]:
        """When it is its turn, the least first.

        The longest trainings come first, so that in the end none is left over for one of several
        workers; before them those that need no compiled kernels, which may be yet to come.
        """
        return not self.additive, -self.epochs * self.n_views * sum(self.head)


SINGLE = Recipe()
"""Of a network on its own."""

PAPERS = Recipe(
    dropout=0.1, feature_dropout=0.0, epochs=20, learning_rate=0.02, weight_decay=0.0,
    smoothness=0.0, credibility=0.0,
)  # fmt: skip
"""Of a network without main effects, as the paper has it."""

RECIPES = (
    Recipe((8,), 1, 16, 0.0, 0.0, 10, 0.02, 0.0, 50.0, 15.0, additive=True),
    Recipe((8,), 1, 64, 0.0, 0.0, 20, 0.01, 0.0, 500.0, 15.0, additive=True),
    Recipe((64, 64), 4, 16, 0.5, 0.1, 10, 0.002, 0.3, 50.0, 15.0),
    Recipe((128, 128), 8, 32, 0.5, 0.2, 10, 0.002, 0.3, 15.0, 15.0),
    Recipe((64, 64), 4, 32, 0.3, 0.1, 12, 0.002, 0.01, 5.0, 5.0),
    Recipe((64, 64), 4, 32, 0.3, 0.1, 6, 0.005, 0.01, 50.0, 5.0),
    Recipe((128, 128), 8, 128, 0.5, 0.2, 15, 0.005, 0.01, 0.5, 1.5, large=True),
    Recipe((128, 128), 8, 128, 0.5, 0.1, 12, 0.003, 0.1, 150.0, 15.0, large=True),
    Recipe((128, 128), 8, 128, 0.5, 0.1, 30, 0.003, 0.1, 150.0, 15.0, large=True),
    Recipe((8,), 1, 16, 0.0, 0.0, 20, 0.02, 0.0, 200.0, 60.0, 10.0, additive=True),
    Recipe((8,), 1, 64, 0.0, 0.0, 20, 0.01, 0.0, 2000.0, 60.0, 30.0, additive=True),
)
"""What the first round tries: from tables with sharp bends to tables of a few hundred rows, and
those with many features that say nothing."""

PRECISE = (
    Recipe((8,), 1, 32, 0.0, 0.0, 60, 0.02, 0.0, 5.0, 5.0, additive=True),
    Recipe((64, 64), 4, 32, 0.2, 0.05, 40, 0.005, 0.01, 0.5, 1.5),
    Recipe((128, 128), 8, 32, 0.2, 0.05, 50, 0.005, 0.01, 0.5, 1.5),
    Recipe((128, 128), 8, 128, 0.1, 0.0, 40, 0.005, 0.01, 0.5, 1.5),
)
"""For tables with little noise, as prices or measurements have, or with interactions of many
features: to train for longer, and to leave out less, repeats the noise of others. The first two are
to find out whether it is such a table."""


def adapt(recipe: Recipe, n_features: int, rows_for_one: float, fixed: Mapping[str, Any]) -> Recipe:
    """Return a recipe for a table of some width and noise, with what the user decided on.

    An output is a sum over features, each of which a step moves by as much as the learning rate:
    where all go one way, as for a rare large claim, outputs of a wide table would run away. Wide
    tables have fewer views, too, or would take long.

    Where events are rare, or amounts skewed, it takes ``rows_for_one`` rows to say as much as one
    does of classes of the same size. And the more features, the less each of them does: with
    the same shrinkage for all, the noise of hundreds would add up.
    """
    shrink = rows_for_one * max(1.0, n_features / _MANY)
    adapted: dict[str, Any] = {
        "n_views": min(recipe.n_views, max(2, _MOST_NUMBERS // n_features)),
        "learning_rate": recipe.learning_rate * min(1.0, _WIDE / n_features),
        "smoothness": recipe.smoothness * shrink,
        "credibility": recipe.credibility * shrink,
    }
    return replace(recipe, **{**adapted, **fixed})


def list_recipes(
    n_rows: int, n_features: int, rows_for_one: float, fixed: Mapping[str, Any]
) -> tuple[list[Recipe], list[Recipe]]:
    """Return the recipes for a table, and the precise ones; each once.

    Where the user decided how long to train, there are no longer ones.
    """
    takes_large = n_rows > _FEW_ROWS and n_features <= _WIDE
    usual = [recipe for recipe in RECIPES if takes_large or not recipe.large]
    lists = usual, () if "epochs" in fixed else PRECISE
    first, precise = (
        dict.fromkeys(adapt(recipe, n_features, rows_for_one, fixed) for recipe in some)
        for some in lists
    )
    return list(first), list(precise)


@dataclass(frozen=True)
class Bag:
    """The rows that a member learns from, and those that it is judged by.

    Rows in files have a ``fold`` instead of a list of those to learn from.
    """

    rows: Tensor
    held_out: Tensor
    fold: Fold | None = None

    @property
    def stops(self) -> bool:
        """Whether it can stop a training too.

        The best of many epochs on a few rows looks better than it is, most of all where the loss
        jumps about; recipes that are judged by these rows would be chosen for that.
        """
        return len(self.held_out) >= _MANY_HELD_OUT


@dataclass(frozen=True)
class Trained:
    """A trained network, and its outputs for the rows that it was judged by."""

    model: FCorrTransformer
    history: History
    outputs: Tensor


@dataclass(frozen=True)
class PackResult:
    """The chosen members, with the outputs of rows by members that did not learn from them.

    ``tried`` are the recipes as plain data, with their out-of-bag loss by themselves and whether
    they were chosen; ``loss`` is that of the chosen ones' mean.
    """

    members: list[Trained]
    held_out: Tensor
    tried: list[dict[str, Any]]
    loss: float


def make_bags(strata: Tensor, n_members: int | None, seed: int) -> list[Bag]:
    """Put the rows into folds, the rows of each stratum evenly; a bag is all folds but one.

    Where the last stratum, as of rare events, has fewer rows than there are folds, they are in the
    first ones, by which recipes are tried.
    """
    n_rows, generator = len(strata), torch.Generator().manual_seed(seed)
    n_folds = min(n_members or n_rows, _rounds_of(n_rows)[-1], n_rows)
    order = torch.randperm(n_rows, generator=generator)
    order = order[torch.sort(strata[order], stable=True).indices]
    if (strata == strata.max()).sum() < n_folds:
        order = order.flip(0)
    fold = torch.empty(n_rows, dtype=torch.long)
    fold[order] = torch.arange(n_rows) % n_folds
    everything = torch.arange(n_rows)
    return [Bag(everything[fold != k], everything[fold == k]) for k in range(n_folds)]


def hash_bags(n_rows: int, n_members: int | None, seed: int) -> list[Bag]:
    """Make bags of rows in files: a row's fold is a hash of its place; few rows have few folds."""
    n_folds = max(2, min(n_members or n_rows, _rounds_of(n_rows)[-1], n_rows // 10))
    folds = [Fold(k, n_folds, seed, inside=True) for k in range(n_folds)]
    places, nothing = np.arange(n_rows), torch.empty(0, dtype=torch.long)
    return [Bag(nothing, torch.from_numpy(np.flatnonzero(f.has(places))), f) for f in folds]


@dataclass
class Candidates:
    """Networks of some recipes, trained on some bags when they are first asked for.

    ``train_one(recipe, bag, seed)`` trains a network, and ``losses(outputs, rows)`` are those of
    outputs for some rows; ``each`` maps over threads or processes, whose number changes nothing.
    """

    recipes: list[Recipe]
    bags: Sequence[Bag]
    train_one: Callable[[Recipe, Bag, int], Trained]
    losses: Callable[[Tensor, Tensor], Tensor]
    seed: int
    each: Map
    progress: Progress
    trained: dict[tuple[int, int], Trained] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.recipes = list(self.recipes)  # which may grow

    def train(self, recipes: Iterable[int], bags: Iterable[int]) -> None:
        """Train what of it is not trained yet."""
        pairs = [pair for pair in product(recipes, bags) if pair not in self.trained]
        pairs.sort(key=lambda pair: self.recipes[pair[0]].turn)
        self.progress.expect(len(self.trained) + len(pairs))

        # A function of what it needs and no more, which may have to travel to another process.
        train_one, recipes_, bags_, seed_ = self.train_one, self.recipes, self.bags, self.seed

        def one(pair: tuple[int, int]) -> Trained:
            r, b = pair
            seed = (seed_ + 1_000_003 * r + 7_919 * b) % 2**62
            return train_one(recipes_[r], bags_[b], seed)

        for (r, b), result in zip(pairs, self.each(one, pairs), strict=True):
            self.trained[r, b] = result
            found = self.loss_of([r], [b])
            self.progress.advance(f"recipe {r + 1}, bag {b + 1}: out-of-bag loss {found:.4f}")

    def outputs(self, chosen: Sequence[int], bags: Iterable[int]) -> Tensor:
        """Return mean outputs of the held-out rows of some bags, one bag after the other."""
        of_bags = [[self.trained[r, b].outputs.double() for r in chosen] for b in bags]
        return torch.cat([torch.stack(outputs).mean(0) for outputs in of_bags])

    def held_out(self, bags: Iterable[int]) -> Tensor:
        """Return the rows that some bags leave out, one bag after the other."""
        return torch.cat([self.bags[b].held_out for b in bags])

    def losses_of(self, chosen: Sequence[int], bags: Sequence[int]) -> Tensor:
        """Return the losses of the mean of some recipes, of the held-out rows of some bags."""
        losses = self.losses(self.outputs(chosen, bags), self.held_out(bags))
        return losses.nan_to_num(nan=math.inf)

    def loss_of(self, chosen: Sequence[int], bags: Sequence[int]) -> float:
        """Return the mean of these losses."""
        return float(self.losses_of(chosen, bags).mean())

    def select(self, recipes: Sequence[int], bags: Sequence[int], n_most: int) -> list[int]:
        """Train what of it is not trained yet, and choose among it."""
        self.train(recipes, bags)
        n_least = 1
        if _n_rows(self.bags) <= _FEW_ROWS:
            n_least = min(2, n_most)  # even all of few rows can make one look best that is not
            # Out of bag a row has one network of each recipe, a prediction has all. Any other
            # recipe, a bad one too, averages out some of the noise that single networks have.
            by_itself = {r: self.losses_of([r], bags) for r in recipes}
            best = min(by_itself.values(), key=torch.mean)
            behind = {r: losses - best for r, losses in by_itself.items()}
            recipes = [r for r, d in behind.items() if not d.mean() > _FAR * _error(d)]
        return select_greedily(partial(self.losses_of, bags=bags), recipes, n_most, n_least)


def train_pack(
    candidates: Candidates,
    *,
    n_members: int | None,
    precise: Sequence[Recipe] = (),
    until: float | None = None,
    draw: Callable[[int], Recipe] | None = None,
) -> PackResult:
    """Try the recipes on some bags, the best on more, and train the chosen ones on all.

    Of the ``precise`` ones the first are tried as well, on a bag or two, and the others where one
    of these lowers the loss.

    With ``until``, a time by ``time.monotonic``, recipes that ``draw`` gives by their number are
    tried as well, some at a time, until then or until they no longer lower the out-of-bag loss.
    """
    recipes, bags = candidates.recipes, candidates.bags
    trials, everything = _list_rounds(bags, len(recipes))
    first = trials[-1] if trials else everything  # bags on which any further recipe is tried
    n_most = _n_chosen(bags, n_members)
    chosen, best = [0], [*range(len(recipes))]

    def learn_of(more: Iterable[Recipe]) -> range:
        """Take up more recipes; return their numbers."""
        n_known = len(recipes)
        recipes.extend(more)
        return range(n_known, len(recipes))

    for some in trials:
        chosen = candidates.select(best, some, n_most)
        others = sorted({*best} - {*chosen}, key=lambda r: candidates.loss_of([r], some))
        best = [*chosen, *others][: max(_N_BEST, n_most)]
    if trials:
        # A gain by chance would cost much time: it must show on each of the bags.
        probes = [*chosen, *learn_of(precise[:_N_PROBES])]
        for probed in (first[:1], first[:_N_PROBED]):
            better = candidates.select(probes, probed, n_most)
            gains = (
                candidates.loss_of(better, [b]) < candidates.loss_of(chosen, [b]) for b in probed
            )
            if {*better} <= {*chosen} or not all(gains):
                break
        else:
            more = [*better, *learn_of(precise[_N_PROBES:])]
            better = candidates.select(more, first[:_N_PROBED], n_most)
            chosen = candidates.select(sorted({*chosen, *better}), first, n_most)
    chosen = candidates.select(chosen, everything, n_most)  # on which it may help less
    if until is not None and draw is not None:
        least, n_stale, took = candidates.loss_of(chosen, everything), 0, 0.0
        n_most = n_most if n_members is not None else _MOST_GROWN
        while n_stale < _N_STALE and time.monotonic() + took <= until:
            started, n_known = time.monotonic(), len(recipes)
            drawn = learn_of(draw(r) for r in range(n_known, n_known + _N_DRAWN))
            better = candidates.select([*chosen, *drawn], first, n_most)
            better = candidates.select(sorted({*chosen, *better}), everything, n_most)
            loss = candidates.loss_of(better, everything)
            n_stale = 0 if loss < least - _LEAST_GAIN * abs(least) else n_stale + 1
            if loss < least:
                chosen, least = better, loss
            took = time.monotonic() - started
    outputs = candidates.outputs(chosen, everything)
    by_row = torch.empty_like(outputs)
    by_row[candidates.held_out(everything)] = outputs
    tried = []
    for r, recipe in enumerate(recipes):
        on = [b for b in everything if (r, b) in candidates.trained]
        by_itself = candidates.loss_of([r], on) if trials or r > 0 else None  # not tried
        tried.append({**asdict(recipe), "loss": by_itself, "chosen": r in chosen})
    members = [candidates.trained[pair] for pair in product(chosen, everything)]
    return PackResult(members, by_row, tried, candidates.loss_of(chosen, everything))


def draw_recipe(number: int, seed: int) -> Recipe:
    """Draw a recipe at random, the same for the same number and seed."""
    pick = random.Random(f"{seed} {number}")

    def between(low: float, high: float) -> float:
        return float(f"{low * (high / low) ** pick.random():.2g}")

    recipe = Recipe(
        head=pick.choice(((64, 64), (128, 128), (256, 256))),
        n_views=pick.choice((2, 4, 8)),
        n_knots=pick.choice((16, 32, 64, 128)),
        dropout=pick.choice((0.1, 0.3, 0.5, 0.7)),
        feature_dropout=pick.choice((0.0, 0.1, 0.2, 0.4)),
        epochs=pick.randint(6, 20),
        learning_rate=between(0.0006, 0.006),
        weight_decay=between(0.01, 0.3),
        smoothness=between(0.5, 500),
        credibility=between(1.5, 50),
    )
    if pick.random() < 1 / 6:
        taken = ("n_knots", "epochs", "smoothness", "credibility")
        kept = {name: getattr(recipe, name) for name in taken}
        return replace(RECIPES[0], learning_rate=5 * recipe.learning_rate, **kept)
    return recipe


def _rounds_of(n_rows: int) -> tuple[int, ...]:
    return next(rounds for most, rounds in _ROUNDS.items() if n_rows <= most)


def _n_rows(bags: Sequence[Bag]) -> int:
    return sum(len(bag.held_out) for bag in bags)


def _list_rounds(bags: Sequence[Bag], n_recipes: int) -> tuple[list[range], range]:
    """List the bags of each round of trials, of which a single recipe needs none, and all bags."""
    sizes = sorted({min(n, len(bags)) for n in _rounds_of(_n_rows(bags))})
    *trials, everything = map(range, sizes)
    return (trials or [everything]) if n_recipes > 1 else [], everything


def _n_chosen(bags: Sequence[Bag], n_members: int | None) -> int:
    usual = 6 if _n_rows(bags) <= _FEW_ROWS else 2
    return usual if n_members is None else max(1, n_members // len(bags))


def select_greedily(
    losses: Callable[[Sequence[int]], Tensor],
    candidates: Sequence[int],
    n_most: int,
    n_least: int = 1,
) -> list[int]:
    """Choose candidates one by one, each time that which lowers the loss of all together most.

    ``losses`` are those of each row. When there are ``n_least``, it ends as soon as their mean
    rises and the rows tell this from chance: the best of many looks better than it is.

    Examples
    --------
    >>> values = torch.tensor([[4.0], [-2.0], [1.0]])
    >>> select_greedily(lambda some: values[some].mean(0).abs(), range(3), 2)
    [2, 1]
    """
    chosen: list[int] = []
    before: Tensor | float = math.inf
    while len(chosen) < min(n_most, len(candidates)):
        left = [i for i in candidates if i not in chosen]
        best = min(left, key=lambda i: float(losses([*chosen, i]).mean()))
        after = losses([*chosen, best])
        rise = after - before
        if len(chosen) >= n_least and not float(rise.mean()) < _TOLERANCE * _error(rise):
            break
        chosen.append(best)
        before = after
    return chosen


def _error(values: Tensor) -> float:
    """Return the standard error of a mean."""
    return float(values.std(correction=0)) / math.sqrt(len(values))
