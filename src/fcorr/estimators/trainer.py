"""The training half of a fit: what networks there are, and how one, or a pack, is trained."""

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from torch import Tensor

from fcorr._core import (
    InvalidInputError,
    Progress,
    check_name,
    open_processes,
    show_progress,
    to_plain,
)
from fcorr.data.encode import EncodedTable
from fcorr.data.schema import NumericColumn, OrdinalColumn, Schema
from fcorr.data.stream import RowStore, TrainingTable
from fcorr.estimators.invariance import number_grid
from fcorr.estimators.options import DEFAULTS, DIRECTIONS, Advanced, Arguments
from fcorr.nn.car import Exchange, exchange_features
from fcorr.nn.engine import prepare_engine, use_engine
from fcorr.nn.fcorr import FCorrTransformer
from fcorr.nn.layers import choose_knots
from fcorr.training import pack as packs
from fcorr.training.checkpoint import Checkpoint, StateKeeper
from fcorr.training.loop import EpochRecord, Pace, train
from fcorr.training.objective import Loss, Objective, Target
from fcorr.training.pack import PAPERS, SINGLE, Bag, Recipe, Trained
from fcorr.training.proxies import DecisionDial
from fcorr.training.rows import (
    Fold,
    Ranks,
    Rows,
    StoredRows,
    TrainingRows,
    Workers,
    chunk_rows,
    start_workers,
)

_PATIENCE = 5  # epochs to wait for a better validation loss with early_stopping=True
_COLLAPSED_SHARE = 0.25  # of the epochs, in which the paper's model adapts to a collapsed embedding
_WAITING_SHARE = 0.3  # of its epochs, that a member waits for a better out-of-bag loss


@dataclass(frozen=True)
class Watch:
    """How a fit is watched, what is kept of it, and until when it may go on."""

    until: float | None
    checkpoint: str | os.PathLike[str] | None
    on_epoch_end: Callable[[EpochRecord], object] | None


class TrainableFCorr(Arguments, BaseEstimator, ABC):
    """What networks an estimator is made of, and how they are trained; not for direct use.

    Another network in the place of FCorrTransformer takes other :meth:`_make_network`,
    :meth:`_prepare_numbers`, :meth:`_objective` and :meth:`_pace`; and where it is read,
    ``_map``, ``_score``, ``_significance``, ``_mean_attention`` and ``_importance``.
    """

    exposure: str | int | None = None  # an argument of the regressor

    schema_: Schema
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    recipes_: list[dict[str, Any]]
    oob_loss_: float | None
    seed_: int

    def _class_labels(self) -> tuple[Any, ...] | None:
        """Return what the outputs are of, where there are several."""
        return None

    def _n_outputs(self) -> int:
        """Return the number of the model's outputs."""
        return len(self._class_labels() or (None,))

    @abstractmethod
    def _loss(self) -> Loss:
        """Return the performance loss."""

    @property
    def _options(self) -> Advanced:
        return DEFAULTS | (self.advanced or {})

    @property
    def _column_names(self) -> tuple[str, ...]:
        """Names of all columns of the training table, features or not."""
        if hasattr(self, "feature_names_in_"):
            return tuple(self.feature_names_in_.tolist())
        return tuple(f"x{i}" for i in range(self.n_features_in_))

    def _n_members(self) -> int | None:
        """Return how many members a pack shall have at most; None leaves it to the pack."""
        n_members = None if self.n_members == "auto" else int(self.n_members)
        if not self._options["main_effects"]:
            if n_members not in (None, 1):
                raise InvalidInputError(
                    "advanced['main_effects'] must be True for a pack, got False with n_members="
                    f"{n_members}. Use n_members=1 for the paper's model.",
                    argument="advanced",
                )
            return 1
        if n_members != 1 and self._options["early_stopping"]:
            raise InvalidInputError(
                "advanced['early_stopping'] is for a single network: members of a pack stop by the "
                "rows that they leave out. Leave it out, or use n_members=1.",
                argument="advanced",
            )
        return n_members

    def _fixed_settings(self) -> dict[str, Any]:
        """Return what the arguments decide about every member."""
        chosen = {n: getattr(self, n) for n in ("head", "dropout", "epochs", "learning_rate")}
        chosen |= {name: self._options.get(name) for name in ("n_views", "n_knots")}
        # In words that JSON has: they are written to the model file.
        settings = {name: to_plain(value) for name, value in chosen.items() if value != "auto"}
        if "head" in settings:
            settings["head"] = tuple(settings["head"])
        return settings

    def _batch_size(self, n_rows: int) -> int:
        """Return the rows of a step; about 64 steps an epoch: few rows need enough of them."""
        if self._options["batch_size"] != "auto":
            return int(self._options["batch_size"])
        return int(min(2048, max(32, 2 ** round(math.log2(n_rows / 64)))))

    def _make_network(
        self, encoded: EncodedTable, recipe: Recipe, generator: torch.Generator | None
    ) -> FCorrTransformer:
        options = self._options
        network: dict[str, Any] = {
            "head": list(recipe.head),
            "n_layers": int(options["n_layers"]),
            "residual": bool(options["residual"]),
        }
        if options["main_effects"]:
            n_views = max(recipe.n_views, self._n_outputs())
            n_features = len(self.schema_.feature_names)
            monotone = sorted(self._monotone_features())
            additive = range(n_features) if recipe.additive else monotone
            network |= {"n_views": n_views, "additive": list(additive)}
        else:
            network |= {"numeric_embedding": options["numeric_embedding"]}
        knots = choose_knots(encoded.numbers, recipe.n_knots)
        return self._build(network, knots, recipe, generator)

    def _build(
        self,
        network: Mapping[str, Any],
        knots: Sequence[Tensor],
        recipe: Recipe = SINGLE,
        generator: torch.Generator | None = None,
    ) -> FCorrTransformer:
        model = FCorrTransformer(
            self.schema_.cardinalities,
            len(self.schema_.numeric),
            n_outputs=self._n_outputs(),
            knots=knots,
            dropout=recipe.dropout,
            feature_dropout=recipe.feature_dropout,
            learn_missing=any(column.keep_missing for column in self.schema_.numeric),
            generator=generator,
            **network,
        )
        model.description = dict(network)
        return model

    def _prepare_numbers(self, model: Any, numbers: Tensor, workers: Workers) -> Tensor:
        """Do with numbers what need not be done in every step: find them among the knots."""
        size = chunk_rows(max(1, numbers.shape[1]))
        return torch.cat([*workers.map(model.locate, numbers.split(size))])

    def _exchanges(self, encoded: EncodedTable, device: torch.device) -> tuple[Exchange, ...]:
        """List what the sensitive features are exchanged for in training."""
        n_categorical = encoded.codes.shape[1]
        sensitive = self.schema_.sensitive_positions
        grids = {
            position: torch.from_numpy(number_grid(encoded.numbers[:, position - n_categorical]))
            for position in sensitive
            if position >= n_categorical
        }
        return exchange_features(self.schema_.cardinalities, sensitive, grids=grids, device=device)

    def _objective(
        self, model: Any, exchanges: tuple[Exchange, ...], recipe: Recipe, penalty_scale: float
    ) -> Objective:
        def penalty() -> Tensor:
            strengths = recipe.smoothness, recipe.credibility, recipe.sparsity
            return penalty_scale * model.views.penalty(*strengths)

        return Objective(
            model,
            self._loss(),
            sensitive=self.schema_.sensitive_positions,
            exchanges=exchanges,
            car=self.car,
            penalty=None if model.views is None else penalty,
            signs=self._monotone_features(),
        )

    def _pace(self, recipe: Recipe, batch_size: int, *, waits: bool) -> Pace:
        """Return how long and how fast to train; whether it ``waits`` for a better loss."""
        epochs, beta2 = recipe.epochs, self._options["beta2"]
        stopping = self._options["early_stopping"]
        patience = _PATIENCE if isinstance(stopping, bool | np.bool_) else int(stopping)
        if waits:
            patience = max(2, round(_WAITING_SHARE * epochs))
        collapsed = 0  # of the last epochs, in which sensitive features are embedded as one number
        if self.invariance == "adapt" and self.schema_.sensitive:
            share = 1.0 if self._options["main_effects"] else _COLLAPSED_SHARE
            collapsed = max(1, round(share * epochs))
        return Pace(
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=recipe.learning_rate,
            beta2=(0.95 if self._has_car else 0.999) if beta2 == "auto" else beta2,
            weight_decay=recipe.weight_decay,
            patience=patience if waits or stopping else None,
            collapsed_epochs=collapsed,
        )

    @property
    def _has_car(self) -> bool:
        """Whether CAR has a part in training.

        An average over the sensitive values takes a model that makes use of them. Where they are
        embedded as 0 from the first step on, there is nothing left to regularise.
        """
        is_collapsed = self.invariance == "adapt" and self._options["main_effects"]
        has_sensitive = bool(self.schema_.sensitive) and bool(self.car)
        return has_sensitive and self.invariance != "marginal" and not is_collapsed

    def _monotone_features(self) -> dict[int, int]:
        """Return the positions of the features that are monotone, and the sign of each."""
        names = dict(enumerate(self._column_names))  # columns without names go by position
        found = {}
        for key, direction in (self.monotone or {}).items():
            name = names.get(key, key) if not isinstance(key, str) else key
            rule = "monotone must name columns of X"
            check_name(name, self.schema_.names, rule, argument="monotone")
            column = self.schema_[name]
            if not isinstance(column, NumericColumn | OrdinalColumn):
                raise InvalidInputError(
                    f"monotone must name numbers or ordered categories, got {name!r}, which is "
                    f"{column.kind}. Give the order of its categories with kinds=, or drop it from "
                    "monotone.",
                    argument="monotone",
                )
            position = self.schema_.feature_names.index(column.features[0].name)
            found[position] = DIRECTIONS[direction]
        if found and self._n_outputs() > 1:
            raise InvalidInputError(
                "monotone is for two classes and for numbers: of several classes not each "
                f"probability can rise, got {self._n_outputs()} classes. Leave it out.",
                argument="monotone",
            )
        if found and not self._options["main_effects"]:
            raise InvalidInputError(
                "monotone is about main effects, got advanced={'main_effects': False}. Leave one "
                "of the two out.",
                argument="monotone",
            )
        return found


class Trainer:
    """Trains the networks of one fit.

    What they are, the estimator says, which has the schema and the seed. ``encoded`` are all rows,
    or of a table in files some, and the ``store`` has all. ``validation`` are other rows, encoded,
    with their target and weight.
    """

    def __init__(
        self,
        estimator: TrainableFCorr,
        data: TrainingTable,
        encoded: EncodedTable,
        store: RowStore | None,
        target: Target,
        validation: tuple[EncodedTable, Tensor, NDArray[np.float64]] | None,
        device: torch.device,
        watch: Watch,
    ) -> None:
        self.estimator, self.options, self.encoded = estimator, estimator._options, encoded
        self.store, self.target, self.validation = store, target, validation
        self.device, self.watch, self.n_rows = device, watch, len(target.values)
        self.sample_weight = data.outcomes.weight
        self.drawn = slice(None) if data.drawn is None else data.drawn
        self.n_members, self.fixed = estimator._n_members(), estimator._fixed_settings()
        self.n_features = len(estimator.schema_.feature_names)
        if validation is not None and self.n_members != 1:
            raise InvalidInputError(
                "eval_set is for a single network: members of a pack are judged by rows of X that "
                "they leave out. Leave it out, or use n_members=1.",
                argument="eval_set",
            )
        self.exchanges = estimator._exchanges(encoded, device) if estimator._has_car else ()
        self.batch_size = estimator._batch_size(self.n_rows)
        self.kept: Checkpoint | None = None
        if watch.checkpoint is not None:
            arguments = {**estimator.get_params(deep=False), "random_state": estimator.seed_}
            del arguments["verbose"]
            if data.source is not None:
                files = sorted({piece.file for piece in data.source.pieces})
                arguments["files"] = [(os.path.basename(f), os.path.getsize(f)) for f in files]
            arrays = encoded.codes, encoded.numbers, target.values.numpy(), target.weight
            self.kept = Checkpoint(watch.checkpoint, arguments, *arrays)

    def train(self) -> tuple[list[Trained], NDArray[np.float64] | None]:
        """Train the members that predictions need.

        Of a pack also return the outputs of every row, by members that left it out. The estimator
        gets the recipes that were tried, and their out-of-bag loss.
        """
        return self._train_single() if self.n_members == 1 else self._train_pack()

    def _train_single(self) -> tuple[list[Trained], None]:
        estimator = self.estimator
        if self.watch.until is not None:
            raise InvalidInputError(
                "budget is for packs: a single network has no members to add. Leave it out, or "
                "use n_members='auto'.",
                argument="budget",
            )
        recipe = replace(PAPERS, **self.fixed)
        if self.options["main_effects"]:
            recipe = self._adapt(SINGLE)
        n_numbers = min(self.batch_size, self.n_rows) * self.n_features
        shown = show_progress(
            "training", recipe.epochs, shown=bool(estimator.verbose), unit="epoch"
        )
        with start_workers(n_numbers) as workers, shown as progress:
            prepare_engine(progress.say)
            estimator.recipes_ = [asdict(recipe) | {"loss": None, "chosen": True}]
            estimator.oob_loss_ = None
            if self.options["early_stopping"]:
                self._settle_dial(recipe, workers)
            return [self._train_or_recall(recipe, None, estimator.seed_, workers, progress)], None

    def _train_pack(self) -> tuple[list[Trained], NDArray[np.float64]]:
        estimator, seed, n_members = self.estimator, self.estimator.seed_, self.n_members
        if self.n_rows == 1:
            raise InvalidInputError(
                "Members of a pack leave rows out: X must have at least two rows, got 1 sample. "
                "Add rows, or use n_members=1.",
                argument="n_members",
            )
        recipes, precise = packs.list_recipes(
            self.n_rows, self.n_features, self.target.rows_for_one, self.fixed
        )
        if self.store is None:
            bags = packs.make_bags(torch.from_numpy(self.target.strata), n_members, seed)
        else:
            bags = packs.hash_bags(self.n_rows, n_members, seed)
        # Each round tells of its own trainings, as it begins.
        shown = show_progress("training", 1, shown=bool(estimator.verbose), unit="trial")
        # Processes that train together take one member after the other, or would wait for each
        # other's gradients of different ones.
        side_by_side = self.device.type == "cpu" and Ranks.current().n == 1
        with (
            start_workers(2**62 if side_by_side else 0) as workers,
            open_processes() as spread,
            shown as progress,
        ):
            prepare_engine(progress.say)
            self._settle_dial(self._adapt(SINGLE), workers)
            candidates = packs.Candidates(
                recipes,
                bags,
                self._train_member,
                self.target.losses,
                seed=seed,
                each=spread or workers.map,
                progress=progress,
            )
            result = packs.train_pack(
                candidates,
                n_members=n_members,
                precise=precise,
                until=self.watch.until,
                draw=lambda number: self._adapt(packs.draw_recipe(number, seed)),
            )
        estimator.recipes_, estimator.oob_loss_ = result.tried, result.loss
        return result.members, result.held_out.numpy()

    def _adapt(self, recipe: Recipe) -> Recipe:
        return packs.adapt(recipe, self.n_features, self.target.rows_for_one, self.fixed)

    def _settle_dial(self, recipe: Recipe, workers: Workers) -> None:
        """Let a first network find the price at which all others are trained and judged."""
        if isinstance(self.target.dial, DecisionDial):
            self._train_one(recipe, None, self.estimator.seed_, workers, Progress())
            self.target.dial.settle()

    def _train_member(self, recipe: Recipe, bag: Bag, seed: int) -> Trained:
        """Train a member of a pack on one thread, also in another process."""
        with use_engine(self.options["engine"]), start_workers(0) as alone:
            return self._train_or_recall(recipe, bag, seed, alone, Progress())

    def _train_or_recall(
        self, recipe: Recipe, bag: Bag | None, seed: int, workers: Workers, progress: Progress
    ) -> Trained:
        if self.kept is None:
            return self._train_one(recipe, bag, seed, workers, progress)
        found = self.kept.recall(
            recipe, seed, lambda: self.estimator._make_network(self.encoded, recipe, None)
        )
        if found is None:
            # A dial that follows the training has a state of its own, which is not kept.
            follows = isinstance(self.target.dial, DecisionDial) and self.target.dial.follows
            keeper = None if follows else self.kept.keeper(recipe, seed)
            found = self._train_one(recipe, bag, seed, workers, progress, keeper)
            self.kept.keep(recipe, seed, found)
        return found

    def _train_one(
        self,
        recipe: Recipe,
        bag: Bag | None,
        seed: int,
        workers: Workers,
        progress: Progress,
        keeper: StateKeeper | None = None,
    ) -> Trained:
        """Train a network by a recipe; on a bag, also compute the outputs of what it leaves out."""
        estimator, target = self.estimator, self.target
        generator = torch.Generator().manual_seed(seed)
        model = estimator._make_network(self.encoded, recipe, generator)
        known = target.values[self.drawn], target.weight[self.drawn]
        some = self._rows(model, self.encoded, *known, workers)
        if isinstance(model, FCorrTransformer) and model.views is not None:
            centred_on = torch.from_numpy(self.sample_weight[self.drawn])
            model.views.center_on(some.x_cat, some.x_num, centred_on)
            with torch.no_grad():
                model.head.output.bias.copy_(torch.as_tensor(target.start))
        model = model.to(self.device)
        some = replace(some, groups=target.groups).to(self.device)
        rows, held_out = self._split(model, some, bag, generator, workers)
        # Rows have a loss each, the penalty one for all.
        penalty_scale = target.curvature / len(rows)
        objective = estimator._objective(model, self.exchanges, recipe, penalty_scale)
        objective.dial = target.dial
        pace = estimator._pace(recipe, self.batch_size, waits=bag is not None and bag.stops)
        history = train(
            objective,
            rows,
            pace,
            generator=generator,
            workers=workers,
            validation=held_out,
            progress=progress,
            keeper=keeper,
            on_epoch_end=self.watch.on_epoch_end,
        )
        outputs = torch.empty(0)
        if bag is not None and held_out is not None:
            outputs = objective.score(held_out, workers)
            if isinstance(held_out, StoredRows):
                outputs = held_out.by_place(outputs, bag.held_out)
        return Trained(model, history, outputs)

    def _rows(
        self,
        model: Any,
        encoded: EncodedTable,
        target: Tensor,
        weight: NDArray[np.float64],
        workers: Workers,
    ) -> Rows:
        return Rows(
            # From another process arrays come read-only, which torch does not take.
            torch.from_numpy(np.require(encoded.codes, requirements="W")),
            self.estimator._prepare_numbers(model, torch.from_numpy(encoded.numbers), workers),
            target,
            torch.from_numpy(weight).float(),
        )

    def _split(
        self,
        model: FCorrTransformer,
        some: Rows,
        bag: Bag | None,
        generator: torch.Generator,
        workers: Workers,
    ) -> tuple[TrainingRows, TrainingRows | None]:
        """Return the rows to learn from, and those to be judged by, if any are."""
        validation = None
        if self.validation is not None:
            validation = self._rows(model, *self.validation, workers)
        sets_aside = bool(self.options["early_stopping"]) and validation is None and bag is None
        share = self.options["validation_fraction"]
        if self.store is not None:
            fold = None if bag is None else bag.fold
            if sets_aside:
                fold = Fold(0, max(2, round(1 / share)), self.estimator.seed_, inside=True)
            weight = torch.from_numpy(self.target.weight).float()
            stored = self.store, self.target.values, weight, model.locate
            if fold is None:
                return StoredRows(*stored), validation
            return StoredRows(*stored, fold.others), StoredRows(*stored, fold)
        if bag is not None:
            return some.take(bag.rows), some.take(bag.held_out)
        if not sets_aside:
            return some, validation
        n_validation = max(1, round(share * len(some)))
        if n_validation >= len(some):
            raise InvalidInputError(
                f"early_stopping needs rows to train on beside those it validates on, got "
                f"{len(some)} row(s) in all. Pass eval_set, or leave early_stopping out."
            )
        order = torch.randperm(len(some), generator=generator).to(some.device)
        return some.take(order[n_validation:]), some.take(order[:n_validation])
