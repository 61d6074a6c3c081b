"""The estimators' base: from a table to a trained FCorrTransformer, and from it to scores."""

import os
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from fcorr._core import (
    InvalidInputError,
    counted_rows,
    draw_seed,
    enumerate_some,
    errors_about,
    show_text,
    to_plain,
)
from fcorr._version import __version__
from fcorr.certify import Certificate, Link, certify_model, is_exact, largest_change, list_flips
from fcorr.data.encode import (
    EncodedTable,
    Outcomes,
    column_name,
    encode,
    find_differences,
    read_exposure,
    read_outcomes,
    unpack_rows,
    use_ratings,
    warn_of_other_order,
)
from fcorr.data.infer import infer_schema, rate_columns, warn_of_copies
from fcorr.data.stream import ParquetTable, TrainingTable, open_files
from fcorr.data.tables import Table, read_table, resolve_columns
from fcorr.estimators.invariance import Portfolio, feature_values, label_value
from fcorr.estimators.options import Columns, check_arguments, check_device, parse_amount
from fcorr.estimators.trainer import TrainableFCorr, Trainer, Watch
from fcorr.nn.engine import resolve_engine, use_engine
from fcorr.nn.fcorr import Network, Pack
from fcorr.training.checkpoint import write_tensors
from fcorr.training.loop import EpochRecord, History
from fcorr.training.objective import LinkName, Target
from fcorr.training.pack import Trained
from fcorr.training.proxies import ProxyDial, ScoreDial, find_groups
from fcorr.training.rows import Ranks, chunk_rows, start_workers

EvalSet = tuple[Any, ArrayLike] | tuple[Any, ArrayLike, ArrayLike]

FORMAT = 1
"""Number of the model file's layout; a reader refuses a larger one."""

EQUAL_PREDICTIONS = "Predictions must differ between rows to be of use"
"""How the warning of a network begins that predicts one value for all."""

READ_IN_TRAINING = ("significance", "importance")
"""What a model file has of each feature beside the weights."""

_NO_SPREAD = 1e-3  # of outputs, to count as one value
_AVERAGED_ROWS = (16, 128)  # fewest and most rows that main effects are averages over
_MOST_AVERAGED = 400_000  # outputs for that


class BaseFCorr(TrainableFCorr):
    """Base of :class:`FCorrClassifier` and :class:`FCorrRegressor`; not for direct use.

    What y is to the network, they say; everything else is here.

    NOTE[DIFF]: the residual round the attention is on by default; the paper's model has none.
    """

    model_: Network
    balance_: NDArray[np.float64]
    history_: History
    significance_: NDArray[np.float64]
    importance_: NDArray[np.float64]
    exact_: bool
    portfolio_: Portfolio | None

    # What classes and numbers differ in.

    @abstractmethod
    def _learn_target(self, outcomes: Outcomes) -> None:
        """Learn what maps y to the model's target, and set it as fitted attributes."""

    @abstractmethod
    def _encode_target(self, outcomes: Outcomes) -> Tensor:
        """Map y, and the exposure where it counts, to the model's target."""

    def _loss_weight(self, outcomes: Outcomes) -> NDArray[np.float64]:
        """Return the weight of each row in the loss, of mean 1."""
        return outcomes.weight

    @abstractmethod
    def _make_target(self, outcomes: Outcomes) -> Target:
        """Return what the networks learn."""

    @abstractmethod
    def _balance(self, outputs: NDArray[np.float64], outcomes: Outcomes) -> NDArray[np.float64]:
        """Return the shift of each output that makes predicted totals those of y."""

    def _learn_decision(self, outputs: NDArray[np.float64], outcomes: Outcomes) -> None:
        """Learn what maps balanced outputs to decisions, where there are decisions."""

    def _dial(self) -> ProxyDial:
        """Return the penalty on what groups differ in."""
        return ScoreDial(float(self.proxy))

    @abstractmethod
    def _link(self) -> Link:
        """Return what makes predictions, per unit of exposure, of balanced outputs."""

    @abstractmethod
    def _read_off(self, encoded: EncodedTable, link: LinkName) -> None:
        """Read off the network what a model file has of each feature, at the end of a fit."""

    @abstractmethod
    def _target_state(self) -> dict[str, Any]:
        """Return what was learnt about y, as plain data for a model file."""

    @abstractmethod
    def _restore_target(self, state: dict[str, Any]) -> None:
        """Undo :meth:`_target_state`."""

    # Fit

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        eval_set: EvalSet | None = None,
        *,
        budget: str | float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        memory: str | float = "2GB",
        on_epoch_end: Callable[[EpochRecord], object] | None = None,
    ) -> Self:
        """Fit the model.

        When training is over, a constant is added to the outputs so that the predictions for X,
        weighted, sum to what y does: see ``balance_``.

        Parameters
        ----------
        X : dataframe (pandas, polars, pyarrow), array of shape (n_rows, n_features) or path
            Training table. Numbers are numeric features, text and booleans categorical ones, dates
            are taken apart into numbers; ``kinds`` says otherwise. A path, or a
            :class:`fcorr.data.ParquetTable`, is a Parquet file or a folder of them, which is read
            piece by piece and need not fit into memory.
        y : array-like of shape (n_rows,) or str
            Target; of a table in files the name of its column.
        sample_weight : array-like of shape (n_rows,) or str, optional
            Weight of each row: in the loss, and in every total and threshold that is learnt. A row
            of weight 0 is as if it were not there, whatever it holds, also in ``eval_set``. Of a
            table in files the name of its column.
        eval_set : tuple (X, y) or (X, y, sample_weight), optional
            For a single network (``n_members=1``): rows to measure after every epoch; with
            ``early_stopping`` they decide when to stop.
        budget : str or float, optional
            Time for more than the usual pack, such as ``"10min"``, ``"2h"`` or seconds: further
            recipes are drawn at random and tried until it is over, or until they no longer lower
            the out-of-bag loss. How many were tried, ``recipes_`` tells; it depends on the machine.
        checkpoint : path-like, optional
            Folder that keeps what is trained, and every two minutes and after each epoch what is
            in training. A fit of the same rows with the same arguments and an integer
            ``random_state`` takes it from there: one that was cut short goes on, to the same
            weights as if it had not been, and one with a larger ``budget`` goes further. A fit
            with other arguments is refused.
        memory : str or float, default="2GB"
            For a table in files: about how much to use, as text or in bytes, beside some 50 bytes
            for each row. It sets how many rows the schema is inferred from, and how many are
            shuffled at a time.
        on_epoch_end : callable, optional
            Called with an :class:`fcorr.training.loop.EpochRecord` after each epoch of each
            network, by the thread that trains it; if it returns something true, that training ends.

        Returns
        -------
        Self
            The fitted estimator.
        """
        check_arguments(self.get_params(deep=False))
        until = None if budget is None else time.monotonic() + parse_amount("budget", budget)
        watch = Watch(until, checkpoint, on_epoch_end)
        with _unchanged_if_it_fails(self), use_engine(self._options["engine"]):
            self._fit((X, y, sample_weight), eval_set, int(parse_amount("memory", memory)), watch)
        return self

    def _fit(
        self, rows: tuple[Any, Any, Any], eval_set: EvalSet | None, memory: int, watch: Watch
    ) -> None:
        device, ranks = check_device(self._options["device"]), Ranks.current()
        self.seed_ = ranks.agree(draw_seed(self.random_state))
        opened = open_rows(*rows, self.exposure)
        if isinstance(rows[0], str | os.PathLike | ParquetTable):
            own = slice(ranks.own, None, ranks.n)
            opened = open_files(*rows, self.exposure, memory, self.seed_, own)
        with opened as data:
            self._learn_target(data.outcomes)
            self._learn_columns(data)
        ratings = self._learn_ratings(data)
        encoded = encode(data.table, self.schema_)
        target = self._add_dial(self._make_target(data.outcomes), data, encoded)
        validation = self._read_eval_set(eval_set)
        learnt = use_ratings(encoded, self.schema_, ratings)
        in_files = None if data.source is None else (self.schema_, ratings, memory, self.seed_)
        with nullcontext() if in_files is None else data.store(*in_files) as store:
            trainer = Trainer(self, data, learnt, store, target, validation, device, watch)
            members, held_out = trainer.train()
        self._finish(data, encoded, members, held_out)

    def _learn_columns(self, data: TrainingTable) -> None:
        """Learn what the columns are, within what numbers rows in errors as the user does."""
        table = data.table
        self.schema_ = infer_schema(
            table,
            sensitive=_as_columns(self.sensitive),
            kinds=self.kinds,
            missing_categorical=self._options["missing_categorical"],
            missing_numeric=self._options["missing_numeric"],
            min_category_rows=self.min_category_rows,
            target=data.target,
            weight=data.weight,
            exposure=data.exposure,
        )
        if self.invariance is not None and set(self.schema_.names) == set(self.schema_.sensitive):
            raise InvalidInputError(
                f"X must have a column to predict from that is not sensitive, got "
                f"{enumerate_some(self.schema_.names)} and invariance={self.invariance!r}. Add "
                "features, or use invariance=None."
            )
        self.n_features_in_ = len(table.names)
        if table.named:
            self.feature_names_in_ = np.asarray(table.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _learn_ratings(self, data: TrainingTable) -> dict[str, NDArray[np.float64]]:
        """Make numbers of columns with many levels; return those that rows are trained with."""
        known = data.outcomes.take(data.drawn)
        warn_of_copies(data.table, self.schema_, known.classes[1], known.label)
        schema, ratings = rate_columns(
            data.table, self.schema_, known, link=self._link().name, seed=self.seed_
        )
        # That of drawn rows becomes one of all: counts are estimates then.
        self.schema_ = schema if data.drawn is None else schema.scaled(len(data.outcomes.y))
        return ratings

    def _add_dial(self, target: Target, data: TrainingTable, encoded: EncodedTable) -> Target:
        """Add the penalty on what groups differ in, where it was asked for."""
        if not self.proxy:
            return target
        if data.source is not None or Ranks.current().n > 1:
            raise InvalidInputError(
                "proxy needs a table in memory, and one process, got one in files or several. "
                "Read it first, or leave proxy out.",
                argument="proxy",
            )
        dial, weight = self._dial(), data.outcomes.weight * data.outcomes.exposure
        batch_size = self._batch_size(len(weight)) if isinstance(dial, ScoreDial) else None
        groups = find_groups(data.table, encoded, self.schema_, weight, batch_size)
        return replace(target, dial=dial, groups=groups)

    def _finish(
        self,
        data: TrainingTable,
        encoded: EncodedTable,
        members: Sequence[Trained],
        held_out: NDArray[np.float64] | None,
    ) -> None:
        """Learn what predictions need beside the weights, and read off what a file has of them."""
        # Engine and device are those of the training: predictions are computed in one way.
        networks = [member.model.to("cpu") for member in members]
        self.model_ = networks[0] if len(networks) == 1 else Pack(networks)
        self.history_ = members[0].history
        self.history_.engine = resolve_engine(self._options["engine"])
        sensitive, known = self.schema_.sensitive_positions, data.outcomes.take(data.drawn)
        self.portfolio_ = None
        if sensitive and self.invariance == "marginal":
            self.portfolio_ = Portfolio.learn(encoded, sensitive, known.weight * known.exposure)
        is_collapsed = bool(sensitive) and self.invariance == "adapt"
        self.exact_ = self.portfolio_ is not None or (
            is_collapsed and is_exact(self.model_, sensitive)
        )
        # On all rows of X, also on those that early stopping set aside: it is their totals that
        # must agree, and one constant per output is not overfitted.
        outputs = self._raw_outputs(encoded) if data.source is None else self._output_files(data)
        spread = outputs.std(0).max()  # the outputs have the scale of 1
        if spread < _NO_SPREAD and (data.outcomes.y != data.outcomes.y[0]).any():
            warnings.warn(
                f"{EQUAL_PREDICTIONS}, got outputs with a standard deviation of {spread:.1g}. "
                "Either X says nothing of y, or training went astray: try a smaller learning_rate, "
                "a longer memory of the optimiser (advanced={'beta2': 0.999}), less dropout or "
                "more epochs.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.balance_ = self._balance(outputs, data.outcomes)
        # Rows that a network learnt from look better than others will: where there are bags, a
        # threshold is chosen by the members that left a row out.
        decided = outputs if held_out is None or self.portfolio_ is not None else held_out
        self._learn_decision(decided + self.balance_, data.outcomes)
        if self._options["main_effects"]:  # what heads do with a feature by itself is counted to it
            n_slots = max(network.n_slots for network in networks)
            n_rows = int(np.clip(_MOST_AVERAGED // n_slots, *_AVERAGED_ROWS))
            some = encoded.sample(n_rows, self.seed_)
            x_cat, x_num = torch.from_numpy(some.codes), torch.from_numpy(some.numbers)
            with start_workers(2**62) as workers:
                list(workers.map(lambda each: each.move_main_effects(x_cat, x_num), networks))
        self._read_off(encoded, self._link().name)

    # Tables of a fitted model: columns by name where there are names, else by their order

    def _read_known_table(self, X: Any, *, read_sensitive: bool | None = None) -> Table:
        check_is_fitted(self, "schema_")  # which fit has before the model, when it reads eval_set
        if read_sensitive is None:
            read_sensitive = not self.exact_
        fitted_with_names = hasattr(self, "feature_names_in_")
        # Not even converted: what is not read may be anything.
        unread = () if read_sensitive or not fitted_with_names else self.schema_.sensitive
        table = read_table(X, unread=unread)
        if table.named and fitted_with_names:
            return table
        # The columns that it may have; where two are as many, the later counts.
        exposure = self.schema_.exposure
        not_read = self.schema_.sensitive if getattr(self, "exact_", False) else ()
        left_out: list[set[str | None]] = [{exposure, *not_read}, {*not_read}, {exposure}, set()]
        possible = [tuple(n for n in self._column_names if n not in each) for each in left_out]
        names = {len(columns): columns for columns in possible}
        if len(table.names) not in names:
            raise InvalidInputError(
                f"X has {len(table.names)} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input. Pass the columns it was trained on."
            )
        if table.named != fitted_with_names:
            has, fitted = ("has", "without") if table.named else ("does not have valid", "with")
            warnings.warn(
                f"X {has} feature names, but {type(self).__name__} was fitted {fitted} feature "
                "names: the columns are taken in their order.",
                stacklevel=3,
            )
        return table.renamed(names[len(table.names)])

    def _read_exposure(self, table: Table) -> NDArray[np.float64]:
        """Return each row's exposure, 1 where there is no column of them."""
        name = self.schema_.exposure
        if name is None:
            return np.ones(table.n_rows)
        if name not in table.columns:
            differences = find_differences(
                self.schema_, table, read_sensitive=not getattr(self, "exact_", False)
            )
            raise differences.to_error()
        return read_exposure(table, name)

    def _read_eval_set(
        self, eval_set: EvalSet | None
    ) -> tuple[EncodedTable, Tensor, NDArray[np.float64]] | None:
        if eval_set is None:
            return None
        if isinstance(eval_set, list) and len(eval_set) == 1:
            eval_set = eval_set[0]  # LightGBM takes a list of pairs; one of them is what we use
        X, y, sample_weight = unpack_rows(eval_set, "eval_set")
        with (
            errors_about("eval_set"),
            counted_rows(X, y, sample_weight=sample_weight) as (X, y, sample_weight),
        ):
            table = self._read_known_table(X, read_sensitive=True)
            encoded = encode(table, self.schema_)
            outcomes = read_outcomes(y, sample_weight, self._read_exposure(table))
            return encoded, self._encode_target(outcomes), self._loss_weight(outcomes)

    # Predict

    def _outputs(self, table: Table) -> NDArray[np.float64]:
        """Compute the model's balanced outputs, ``(n_rows, n_outputs)``."""
        encoded = encode(table, self.schema_, read_sensitive=not self.exact_)
        return self._raw_outputs(encoded) + self.balance_

    def _raw_outputs(self, encoded: EncodedTable) -> NDArray[np.float64]:
        outputs = torch.cat([*self._map(encoded, self._score)]).double().numpy()
        if not np.isfinite(outputs).all():  # `load` tries some rows; others can overflow
            raise InvalidInputError(
                "Outputs of the model must be finite, got others: its weights are out of all "
                "proportion. The file was edited, or training went astray; train it again."
            )
        return outputs

    def _output_files(self, data: TrainingTable) -> NDArray[np.float64]:
        """Compute the outputs of a training table in files, as predictions are computed."""
        outputs = torch.zeros(len(data.outcomes.y), self._n_outputs(), dtype=torch.float64)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # which said it when the rows were stored
            for rows, table in data.blocks():
                outputs[torch.from_numpy(rows)] = torch.from_numpy(
                    self._raw_outputs(encode(table, self.schema_, read_sensitive=not self.exact_))
                )
        return Ranks.current().add_up(outputs).numpy()

    def _score(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Compute outputs of codes and numbers."""
        if self.portfolio_ is None:
            return self.model_.score(x_cat, x_num)
        e_BHF = self.model_.embed_to_score(x_cat, x_num)
        return self.portfolio_.average(self.model_, self._link().name, e_BHF)

    def _map(
        self,
        encoded: EncodedTable,
        function: Callable[..., Tensor],
        *,
        numbers_per_row: int | None = None,
    ) -> Iterator[Tensor]:
        """Apply ``function(x_cat, x_num)`` without gradient, in chunks that bound the memory.

        ``numbers_per_row`` is the size of a row's work, by default the number of features.
        """
        self.model_.eval()
        numbers_per_row = numbers_per_row or len(self.schema_.feature_names)
        size = chunk_rows(numbers_per_row)
        parts = (torch.from_numpy(x).split(size) for x in (encoded.codes, encoded.numbers))

        def without_gradient(chunk: tuple[Tensor, Tensor]) -> Tensor:
            with torch.no_grad():  # a setting of each thread
                return function(*chunk)

        with start_workers(len(encoded) * numbers_per_row) as workers:
            yield from workers.map(without_gradient, zip(*parts, strict=True))

    def summary(self) -> str:
        """One line about the fit: its size, the last loss, and how invariant the model is."""
        check_is_fitted(self, "model_")
        schema, history = self.schema_, self.history_
        last, outcome = history.epochs[-1], ""
        if self.exact_:
            names = ", ".join(map(show_text, schema.sensitive))
            outcome = f", exactly invariant to {names} (predict does not read it)"
        elif last.car is not None:
            outcome = f", CAR {last.car:.2e} at λ {history.car_weight:g}"
        for name in schema.sensitive:
            if schema[name].n_missing:
                outcome += f", rows without {show_text(name)}: {schema[name].n_missing}"
        loss, n_members = f"loss {last.loss:.4f}", len(self.model_.members)
        if self.oob_loss_ is not None:
            loss = f"{n_members} members, out-of-bag loss {self.oob_loss_:.4f}"
        return (
            f"{type(self).__name__}: {schema.n_rows} rows, {len(schema.names)} features, "
            f"{self.model_.n_parameters} parameters, {loss}{outcome}"
        )

    # What is certain

    def certificate(
        self,
        X: Any = None,
        *,
        epsilon: float | None = None,
        alpha: float | None = None,
        confidence: float = 0.95,
    ) -> Certificate:
        """State what is certain about flips of the sensitive columns.

        A model with ``invariance="adapt"`` or ``"marginal"`` is exact: no flip changes any
        prediction, proven from its structure and weights. Any other model is not, also where its
        weights happen to round to the same number for all sensitive values. Of these the
        certificate has the largest change that a search over all inputs found, a lower bound of
        the worst case; and, given rows, a statement about the population that they are drawn from.

        Parameters
        ----------
        X : dataframe or array of shape (n_rows, n_features), optional
            An independent sample of the population, which had no part in training. Each row is
            scored for all categories, and for some 256 numbers, of each sensitive column, and for
            up to 4,096 combinations where there are several; nothing is said of other numbers.
        epsilon, alpha : float, optional
            One of them, for a statement "with ``confidence`` at most a share ``alpha`` of the
            population would see a change above ``epsilon``"; the other is computed. By default
            ``alpha`` is 0.01. Changes are of the predictions per unit of exposure.
        confidence : float, default=0.95
            Confidence of that statement.

        Returns
        -------
        Certificate
            ``exact``, ``search``, ``population``, and what they rest on; ``print`` it.
        """
        check_is_fitted(self, "model_")
        model, positions = self.model_, self.schema_.sensitive_positions
        if not positions:
            raise InvalidInputError(
                "A certificate is about flips of sensitive columns, and this model was fitted "
                "without any. Fit it with sensitive=..., or leave the certificate out."
            )
        names = self.schema_.sensitive_features
        proven = self.portfolio_ is not None or is_exact(model, positions)
        # A proof leaves nothing to search through, and no changes to measure.
        values = () if proven else feature_values(model, self.schema_)
        shift = tuple(self.balance_.tolist())
        link = Link("identity") if proven else replace(self._link(), shift=shift)
        changes: dict[str, ArrayLike] = {}
        if X is not None and proven:
            n_rows = self._read_known_table(X, read_sensitive=False).n_rows
            changes = dict.fromkeys(names, np.zeros(n_rows))
        elif X is not None:
            encoded = encode(self._read_known_table(X, read_sensitive=True), self.schema_)
            for name, flip in list_flips(model, positions, names, values).items():
                change = partial(largest_change, model, flip, link)
                changes[name] = torch.cat([*self._map(encoded, change)]).cpu()
        return certify_model(
            model,
            positions,
            names,
            link=link,
            values=values,
            label=partial(label_value, self.schema_),
            averaged=self.portfolio_ is not None,
            changes=changes,
            epsilon=epsilon,
            alpha=alpha,
            confidence=confidence,
        )

    # Model files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one safetensors file; read it back with :func:`fcorr.load`.

        The file holds the weights and, as JSON in its header, the schema, the arguments and the
        course of the training: no pickle, no code, no training rows. An existing file is
        replaced in one step.
        """
        check_is_fitted(self, "model_")
        tensors = {
            f"model.{i}.{k}": v
            for i, member in enumerate(self.model_.members)
            for k, v in member.state_dict().items()
        }
        for name in READ_IN_TRAINING:
            tensors[name] = torch.from_numpy(getattr(self, f"{name}_"))
        if self.portfolio_ is not None:
            tensors["portfolio.values"] = self.portfolio_.values
            tensors["portfolio.shares"] = self.portfolio_.shares
        header = {
            "format": FORMAT,
            "fcorr_version": __version__,
            "estimator": type(self).__name__,
            "networks": [member.description for member in self.model_.members],
            "recipes": self.recipes_,
            "oob_loss": self.oob_loss_,
            "parameters": self._plain_parameters(),
            "schema": self.schema_.to_dict(),
            "named": hasattr(self, "feature_names_in_"),
            "columns": list(self._column_names),
            "target": self._target_state(),
            "balance": self.balance_.tolist(),
            "exact": self.exact_,
            "seed": self.seed_,
            "history": to_plain(asdict(self.history_)),
        }
        write_tensors(path, header, tensors)

    def _check_roles(self) -> None:
        """Refuse arguments that name other sensitive columns, or another exposure, than the fit."""
        # Columns without names are given by position.
        names: dict[Any, str] = dict(enumerate(self._column_names))
        given = tuple(names.get(column, column) for column in _as_columns(self.sensitive))
        exposure = names.get(self.exposure, self.exposure)
        if (given, exposure) != (self.schema_.sensitive, self.schema_.exposure):
            raise InvalidInputError(
                f"sensitive and exposure must be those of the fit, {self.schema_.sensitive} and "
                f"{self.schema_.exposure!r}, got {given} and {exposure!r}. Fit the model again."
            )

    def _check_monotone(self) -> None:
        """Refuse a monotone that the weights do not keep."""
        signs = self._monotone_features()
        for member in self.model_.members:
            additive = member.description.get("additive", ())
            # A recipe may have left it at main effects for all features.
            is_alone = set(additive) in (set(signs), set(range(member.n_features)))
            if not is_alone or not all(member.is_monotone(*each) for each in signs.items()):
                raise InvalidInputError(
                    f"monotone must be that of the fit, got {self.monotone!r}, which the weights "
                    "do not keep. Fit the model again."
                )

    def _plain_parameters(self) -> dict[str, Any]:
        parameters = self.get_params(deep=False)
        # A generator has moved on since the fit: the seed drawn from it is what repeats the model.
        parameters["random_state"] = self.seed_
        check_arguments(parameters)  # or load would refuse them
        self._check_roles()
        self._check_monotone()
        # JSON has no integers as keys: columns without names go by the names they were given.
        names = dict(enumerate(self._column_names))
        for name in ("kinds", "monotone"):
            by_column = parameters[name]
            if isinstance(by_column, Mapping):
                parameters[name] = {names.get(key, key): by_column[key] for key in by_column}
        if isinstance(parameters.get("class_weight"), Mapping):  # classes are no text
            parameters["class_weight"] = list(parameters["class_weight"].items())
        return to_plain(parameters)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


@contextmanager
def open_rows(
    X: Any, y: Any, sample_weight: Any, exposure: str | int | None
) -> Iterator[TrainingTable]:
    """Read the rows to learn from; within it, errors number the rows as the user does."""
    target, weight = column_name(y), column_name(sample_weight)
    warn_of_other_order(X, y=y, sample_weight=sample_weight)
    with counted_rows(X, y, sample_weight=sample_weight) as (X, y, sample_weight):
        table = read_table(X)
        name, exposures = None, np.ones(table.n_rows)
        if exposure is not None:
            (name,) = resolve_columns(table, [exposure], "exposure")
            exposures = read_exposure(table, name)
        outcomes = read_outcomes(y, sample_weight, exposures)
        yield TrainingTable(table, outcomes, target, weight, name)


@contextmanager
def _unchanged_if_it_fails(estimator: BaseFCorr) -> Iterator[None]:
    """Let a fit that fails leave the estimator as it was, never half of one model and another."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def _as_columns(columns: Columns) -> Sequence[str | int]:
    if columns is None:
        return ()
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        return [columns]
    return list(columns)
