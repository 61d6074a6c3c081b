"""The training half of a fit: the rows, and one network on all of them or a pack on bags of them.

Rows are those of a table in memory, or in Parquet files that are read piece by piece.
"""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from fcorr._core import (
    InvalidInputError,
    Progress,
    counted_rows,
    find_counted,
    numbered_by,
    renumber_rows,
    show_progress,
    temporary_folder,
)
from fcorr.data.encode import (
    EncodedTable,
    Outcomes,
    column_name,
    encode,
    parts_of_one_table,
    read_exposure,
    read_outcomes,
    use_ratings,
)
from fcorr.data.schema import Schema
from fcorr.data.stream import ParquetTable, RowStore, share_to_sample
from fcorr.data.tables import Table, read_table, resolve_columns
from fcorr.nn.engine import prepare_engine, use_engine
from fcorr.nn.fcorr import FCorrTransformer
from fcorr.training import pack as packs
from fcorr.training.checkpoint import Checkpoint, StateKeeper
from fcorr.training.loop import EpochRecord, train
from fcorr.training.pack import PAPERS, SINGLE, Bag, Recipe, Trained
from fcorr.training.proxies import DecisionDial, Groups
from fcorr.training.rows import (
    Fold,
    Ranks,
    Rows,
    StoredRows,
    TrainingRows,
    Workers,
    start_processes,
    start_workers,
)

if TYPE_CHECKING:
    from fcorr.estimators.base import BaseFCorr

EvalSet = tuple[Any, ArrayLike] | tuple[Any, ArrayLike, ArrayLike]
OnEpochEnd = Callable[[EpochRecord], object]

_SAMPLED, _STORED = 1, 2  # added to a seed: what is drawn by one has nothing to do with the other

# ------------------------------------------------------------------------------ rows


@dataclass(frozen=True)
class TrainingTable:
    """Rows to learn from: their table and outcomes, and the names of columns with other roles.

    Of a table in files, the ``source``, some rows were drawn: ``table`` has these. ``places`` are
    those of all rows in the files, where some of these have a weight of 0.
    """

    table: Table
    outcomes: Outcomes  # of all rows
    target: str | None
    weight: str | None
    exposure: str | None
    source: ParquetTable | None = None
    drawn: NDArray[np.int64] | None = None
    places: NDArray[np.int64] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.outcomes.y)

    def blocks(self) -> Iterator[tuple[NDArray[np.int64], Table]]:
        """Read the rows in files block by block; each process its own row groups."""
        assert self.source is not None
        ranks = Ranks.current()
        pieces = self.source.pieces[ranks.own :: ranks.n]
        for places, rows, block in self.source.numbered_blocks(self.places, pieces):
            if not len(rows):
                continue
            try:
                yield rows, read_table(block)
            except InvalidInputError as error:
                raise renumber_rows(error, places) from error

    @contextmanager
    def store(
        self, schema: Schema, ratings: Mapping[str, NDArray[np.float64]], memory: int, seed: int
    ) -> Iterator[RowStore | None]:
        """Encode the rows into files, to be read in any order; None where they are in memory."""
        if self.source is None or self.drawn is None:
            yield None
            return
        drawn = self.drawn

        def encoded() -> Iterator[tuple[NDArray[np.int64], EncodedTable]]:
            for rows, table in self.blocks():
                found = encode(table, schema)
                # Of a rated column, rows that the ratings come from have those of others.
                own = np.flatnonzero(np.isin(rows, drawn, assume_unique=True))
                if ratings and len(own):
                    among = np.searchsorted(drawn, rows[own])
                    held_out = {name: values[among] for name, values in ratings.items()}
                    part = EncodedTable(found.codes[own], found.numbers[own])
                    found.numbers[own] = use_ratings(part, schema, held_out).numbers
                yield rows, found

        with temporary_folder() as folder:
            sizes = self.n_rows, len(schema.categorical), len(schema.numeric)
            store = RowStore(folder, *sizes, memory, seed + _STORED)
            n_drawn = self.table.n_rows
            way_out = f" The schema is that of {n_drawn:,} drawn rows: raise memory for more."
            with parts_of_one_table(schema, way_out):
                store.write(encoded())
            yield store


@contextmanager
def open_training_table(
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    exposure: str | int | None,
    memory: int,
    seed: int,
) -> Iterator[TrainingTable]:
    """Read the rows to learn from; within it, errors number the rows as the user does."""
    if isinstance(X, str | os.PathLike):
        X = ParquetTable(X)
    if isinstance(X, ParquetTable):
        yield from _open_files(X, y, sample_weight, exposure, memory, seed)
        return
    target, weight = column_name(y), column_name(sample_weight)
    _warn_of_other_order(X, y)
    with counted_rows(X, y, sample_weight=sample_weight) as (X, y, sample_weight):
        table = read_table(X)
        name, exposures = None, np.ones(table.n_rows)
        if exposure is not None:
            (name,) = resolve_columns(table, [exposure], "exposure")
            exposures = read_exposure(table, name)
        outcomes = read_outcomes(y, sample_weight, exposures)
        yield TrainingTable(table, outcomes, target, weight, name)


def _open_files(
    source: ParquetTable,
    y: Any,
    sample_weight: Any,
    exposure: str | int | None,
    memory: int,
    seed: int,
) -> Iterator[TrainingTable]:
    for argument, name in {"y": y, "sample_weight": sample_weight}.items():
        if not isinstance(name, str) and (argument == "y" or name is not None):
            raise InvalidInputError(
                f"{argument} must name a column of the files that X is in, got "
                f"{type(name).__name__}. Pass its name.",
                argument=argument,
            )
    features = source.without([name for name in (y, sample_weight) if name is not None])
    weights = None if sample_weight is None else source.read(sample_weight)
    counted = find_counted(weights) if weights is not None else None
    with numbered_by(counted):

        def read(name: str) -> Any:
            column = source.read(name)
            column = column if counted is None else column.take(counted)
            # With its name, which messages know then.
            return nw.from_native(column, series_only=True).alias(name)

        n_rows = source.n_rows if counted is None else len(counted)
        exposures = np.ones(n_rows)
        if exposure is not None:
            source.without([str(exposure)])  # or it says that there is none
            column = Table({str(exposure): read(str(exposure)).to_native()}, n_rows, named=True)
            exposures = read_exposure(column, str(exposure))
        outcomes = read_outcomes(
            read(y), None if sample_weight is None else read(sample_weight), exposures
        )
        share = share_to_sample(n_rows, len(features.columns), memory)
        sample, drawn = features.sample(share, seed + _SAMPLED, counted)
        roles = y, sample_weight, None if exposure is None else str(exposure)
        yield TrainingTable(read_table(sample), outcomes, *roles, features, drawn, counted)


def _warn_of_other_order(X: Any, y: Any) -> None:
    """Warn where labels of pandas say that rows of y are in another order than those of X."""
    ours: Any = getattr(X, "index", None)
    theirs: Any = getattr(y, "index", None)
    if not hasattr(ours, "equals") or not hasattr(theirs, "equals") or ours.equals(theirs):
        return
    if len(ours) == len(theirs) and ours.is_unique and ours.isin(theirs).all():
        warnings.warn(
            "X and y have the same index labels in another order, and rows are taken by position. "
            "If they belong together by label, pass y.loc[X.index].",
            stacklevel=6,
        )


# ------------------------------------------------------------------------------ networks


@dataclass(frozen=True)
class Watch:
    """How a fit is watched, what is kept of it, and until when it may go on."""

    eval_set: EvalSet | None
    until: float | None
    checkpoint: str | os.PathLike[str] | None
    on_epoch_end: OnEpochEnd | None


class Trainer:
    """Trains the networks of one fit.

    What they are, the estimator says, which has the schema, the seed and what is known of the
    target. ``encoded`` are all rows, or of a table in files some, and the ``store`` has all;
    ``groups`` are those of the proxy dial.
    """

    def __init__(
        self,
        estimator: "BaseFCorr",
        encoded: EncodedTable,
        data: TrainingTable,
        store: RowStore | None,
        device: torch.device,
        groups: Groups | None,
        watch: Watch,
    ) -> None:
        self.estimator, self.encoded, self.store = estimator, encoded, store
        self.device, self.groups, self.watch = device, groups, watch
        self.outcomes, self.n_rows = data.outcomes, data.n_rows
        self.drawn = slice(None) if data.drawn is None else data.drawn
        self.n_members, self.fixed = estimator._n_members(), estimator._fixed_settings()
        self.validation = estimator._read_eval_set(watch.eval_set)
        if self.validation is not None and self.n_members != 1:
            raise InvalidInputError(
                "eval_set is for a single network: members of a pack are judged by rows of X that "
                "they leave out. Leave it out, or use n_members=1.",
                argument="eval_set",
            )
        self.target = estimator._encode_target(self.outcomes)
        self.weight = estimator._loss_weight(self.outcomes)
        self.exchanges = estimator._exchanges(encoded, device) if estimator._has_car else ()
        self.dial = estimator._dial() if estimator.proxy else None
        self.batch_size = estimator._batch_size(self.n_rows)
        self.kept: Checkpoint | None = None
        if watch.checkpoint is not None:
            arguments = {**estimator.get_params(deep=False), "random_state": estimator.seed_}
            del arguments["verbose"]
            if data.source is not None:
                files = sorted({piece.file for piece in data.source.pieces})
                arguments["files"] = [(os.path.basename(f), os.path.getsize(f)) for f in files]
            arrays = encoded.codes, encoded.numbers, self.target.numpy(), self.weight
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
        recipe = replace(SINGLE if estimator._options["main_effects"] else PAPERS, **self.fixed)
        n_numbers = min(self.batch_size, self.n_rows) * len(estimator.schema_.feature_names)
        shown = show_progress(
            "training", recipe.epochs, shown=bool(estimator.verbose), unit="epoch"
        )
        with start_workers(n_numbers) as workers, shown as progress:
            prepare_engine(progress.say)
            estimator.recipes_ = [asdict(recipe) | {"loss": None, "chosen": True}]
            estimator.oob_loss_ = None
            if estimator._options["early_stopping"]:
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
        recipes, precise = packs.list_recipes(self.n_rows, self.fixed)
        if self.store is None:
            strata = torch.from_numpy(estimator._strata(self.outcomes))
            bags = packs.make_bags(strata, n_members, seed)
        else:
            bags = packs.hash_bags(self.n_rows, n_members, seed)
        n_trainings = packs.count_trainings(recipes, bags, n_members)
        shown = show_progress("training", n_trainings, shown=bool(estimator.verbose), unit="member")
        # Processes that train together take one member after the other, or would wait for each
        # other's gradients of different ones.
        side_by_side = self.device.type == "cpu" and Ranks.current().n == 1
        with (
            start_workers(2**62 if side_by_side else 0) as workers,
            start_processes(workers) as each,
            shown as progress,
        ):
            prepare_engine(progress.say)
            self._settle_dial(replace(SINGLE, **self.fixed), workers)
            candidates = packs.Candidates(
                recipes,
                bags,
                self._train_member,
                self._loss_of,
                seed=seed,
                each=each,
                progress=progress,
            )
            result = packs.train_pack(
                candidates,
                n_members=n_members,
                precise=precise,
                mean_loss=self._loss_of_mean(),
                until=self.watch.until,
                draw=lambda number: replace(packs.draw_recipe(number, seed), **self.fixed),
            )
        estimator.recipes_, estimator.oob_loss_ = result.tried, result.loss
        return result.members, result.held_out.numpy()

    def _settle_dial(self, recipe: Recipe, workers: Workers) -> None:
        """Let a first network find the price at which all others are trained and judged."""
        if isinstance(self.dial, DecisionDial):
            self._train_one(recipe, None, self.estimator.seed_, workers, Progress())
            self.dial.follows = False

    def _train_member(self, recipe: Recipe, bag: Bag, seed: int) -> Trained:
        """Train a member of a pack, also in another process."""
        with use_engine(self.estimator._options["engine"]):
            return self._train_or_recall(recipe, bag, seed, Workers(None), Progress())

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
            follows = isinstance(self.dial, DecisionDial) and self.dial.follows
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
        estimator, generator = self.estimator, torch.Generator().manual_seed(seed)
        model = estimator._make_network(self.encoded, recipe, generator)
        known = self.target[self.drawn], self.weight[self.drawn]
        some = estimator._rows(model, self.encoded, *known, workers)
        if isinstance(model, FCorrTransformer) and model.views is not None:
            centred_on = torch.from_numpy(self.outcomes.weight[self.drawn])
            model.views.center_on(some.x_cat, some.x_num, centred_on)
            with torch.no_grad():
                start = torch.as_tensor(estimator._start(self.outcomes))
                model.head.output.bias.copy_(start)
        model = model.to(self.device)
        some = replace(some, groups=self.groups).to(self.device)
        rows, held_out = self._split(model, some, bag, generator, workers)
        # Rows have a loss each, the penalty one for all.
        penalty_scale = estimator._curvature(self.outcomes) / len(rows)
        objective = estimator._objective(model, self.exchanges, recipe, penalty_scale)
        objective.dial = self.dial
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

    def _split(
        self,
        model: FCorrTransformer,
        some: Rows,
        bag: Bag | None,
        generator: torch.Generator,
        workers: Workers,
    ) -> tuple[TrainingRows, TrainingRows | None]:
        """Return the rows to learn from, and those to be judged by, if any are."""
        options = self.estimator._options
        validation = None
        if self.validation is not None:
            validation = self.estimator._rows(model, *self.validation, workers)
        sets_aside = bool(options["early_stopping"]) and validation is None and bag is None
        share = options["validation_fraction"]
        if self.store is not None:
            fold = None if bag is None else bag.fold
            if sets_aside:
                fold = Fold(0, max(2, round(1 / share)), self.estimator.seed_, inside=True)
            weight = torch.from_numpy(self.weight).float()
            stored = self.store, self.target, weight, model.locate
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

    def _loss_of_mean(self) -> float:
        start = torch.as_tensor(self.estimator._start(self.outcomes), dtype=torch.float64)
        everything = torch.arange(self.n_rows)
        return self._loss_of(start.expand(self.n_rows, self.estimator._n_outputs()), everything)

    def _loss_of(self, outputs: Tensor, rows: Tensor) -> float:
        """Return the loss of outputs for some rows, with the dial's penalty."""
        wanted, weight = self.target[rows], torch.from_numpy(self.weight)[rows]
        exact = wanted.double() if wanted.is_floating_point() else wanted
        losses = self.estimator._loss()(outputs, exact).double()
        total = max(float(weight.sum()), float(np.finfo(float).tiny))
        found = float((weight * losses).sum()) / total
        if self.dial is not None and self.groups is not None:
            some = self.groups.each(lambda part: part[rows])
            found += float(self.dial.penalty(outputs, wanted, some))
        return found
