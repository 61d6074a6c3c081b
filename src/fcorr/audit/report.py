"""The audit: all that is measured of one model on rows, as plain data, JSON, a page, a model card.

`audit_model` returns an `AuditResult`, whose summary is what everything else shows.
"""

import datetime
import hashlib
import json
import math
import os
import platform
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from fcorr import metrics
from fcorr._core import (
    InvalidInputError,
    check_name,
    draw_seed,
    enumerate_some,
    html_table,
    numbered_by,
    show_progress,
    take_rows,
    to_plain,
    write_atomically,
)
from fcorr._version import __version__
from fcorr.audit import displays as charts
from fcorr.audit import measure, page
from fcorr.audit.insurance_displays import ActualExpectedDisplay, LiftDisplay, LorenzDisplay
from fcorr.audit.measure import AuditRows, Floats, Subject, is_ours, score_flips
from fcorr.data.encode import column_name, hash_rows
from fcorr.data.tables import read_table, resolve_columns
from fcorr.metrics import FlippedScores
from fcorr.metrics._checks import Labels, check_confidence, check_resamples, describe_label
from fcorr.metrics.group import MIN_ROWS, GroupedRows, cell, deviances, resample, tabulate_groups

SCHEMA = "fcorr-audit/1"
"""Name and version of the summary's layout; the number changes when a reader must."""

_MOST_SCORES = 1_000_000  # rows times values that flips are scored for
_MOST_ROWS = 20_000  # that attention and certificate read
_MOST_PROXY_ROWS = 5_000  # that trees predict sensitive columns of, for each column
_MOST_EXCHANGED = 2_000  # rows that a model which is not fcorr's is read by
_MOST_PAIRS = 132  # of categories that changes are listed for
_N_AFFECTED = 10


def audit_model(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    sensitive: Any = None,
    sample_weight: ArrayLike | None = None,
    exposure: Any = None,
    positive: Any = None,
    threshold: float | None = None,
    task: Literal["auto", "classification", "regression"] = "auto",
    power: float | None = None,
    incumbent: Any = None,
    sweep: Any = None,
    limits: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    name: str | None = None,
    target: str | None = None,
    unit: str = "",
    n_resamples: int = 200,
    confidence: float = 0.95,
    include_rows: bool = False,
    provenance: Mapping[str, Any] | None = None,
    random_state: int = 0,
    verbose: bool = False,
) -> "AuditResult":
    """Audit a model: what flips of the sensitive columns change, how groups fare, what it rests on.

    It is about invariance to a flip of the sensitive columns, all other columns left as they are,
    and about differences between groups; not about whether a model is lawful or fair.

    Parameters
    ----------
    model : fitted model or callable
        One with ``predict_proba`` or ``predict`` (fcorr, scikit-learn, LightGBM, ...), or a
        function from a table to scores: a probability or an amount for each row, or a probability
        for each class. Amounts are per unit of exposure.
    X : dataframe (pandas, polars, pyarrow) or array of shape (n_rows, n_features)
        Rows that had no part in training, with the sensitive columns.
    y : array-like of shape (n_rows,), optional
        What came about. Without it, the scores alone are audited.
    sensitive : str, int or list of them, optional
        The sensitive columns; by default those of an fcorr model.
    sample_weight : array-like of shape (n_rows,), optional
        How often each row counts.
    exposure : str, int or array-like of shape (n_rows,), optional
        Column of X, or numbers: y is divided by it, and rows are weighted by it. By default that of
        an fcorr model.
    positive : label, optional
        Of two classes the one that is decided for, such as "bad" or 1; by default the second in
        order. A function's single score is its probability. Selection rates and their ratio are
        about it: for those of what people wish for, name that class.
    threshold : float, optional
        Probability of that class from which on it is decided; by default the model's own, or 0.5.
    task : {"auto", "classification", "regression"}, default="auto"
        What scores are, where neither they nor y tell.
    power : float, optional
        Power of a regression's Tweedie deviance: 0 squared error, 1 Poisson, 2 gamma. By default
        that of an fcorr model, also as ONNX, or 0; the incumbent's is the same.
    incumbent : fitted model or callable, optional
        Another model of the same target, to stand beside this one.
    sweep : Sweep, optional
        The search that the model was chosen by.
    limits : path or mapping, optional
        Limits for figures, each with its source: see :func:`fcorr.audit.report.read_limits`.
    name, target, unit : str, optional
        What the model and the target are called, and what amounts are measured in.
    n_resamples, confidence : int and float, default=200 and 0.95
        Bootstrap resamples of the rows, and confidence of the intervals.
    include_rows : bool, default=False
        List the values of the rows that flips change most; otherwise only their numbers.
    provenance : mapping, optional
        More to be told about where model and data come from.
    random_state : int, default=0
        Seed of resamples and samples.
    verbose : bool, default=False
        Show progress.

    Returns
    -------
    AuditResult
        The summary, and what writes it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.integers(0, 2, 200), rng.normal(size=200)])
    >>> def score(X):
    ...     return 1 / (1 + np.exp(-X[:, 1] - 0.1 * X[:, 0]))
    >>> result = audit_model(score, X, X[:, 1] > 0, sensitive=0)
    >>> round(result.summary["flips"]["change"]["max"], 3)
    0.025
    """
    check_resamples(n_resamples)
    check_confidence(confidence)
    checked = {} if limits is None else read_limits(limits)
    seed = draw_seed(random_state)
    facts = measure.read_facts(model)
    sensitive = facts.get("sensitive") if sensitive is None else sensitive
    exposure = facts.get("exposure") if exposure is None else exposure
    power = facts.get("power") if power is None else power
    with (
        show_progress("audit", 5, shown=verbose, unit="step") as progress,
        measure.collect_warnings() as (notes, others),
    ):
        rows = measure.read_rows((X, y, sample_weight), sensitive, exposure=exposure)
        with numbered_by(rows.counted):
            options: dict[str, Any] = {"task": task, "threshold": threshold, "power": power}
            options["positive"] = positive
            audit = _Audit(measure.open_model(model, rows, **options), rows, seed, confidence)
            audit.describe(name, target or column_name(y) or "y", unit)
            audit.measure_performance()
            progress.advance("scores")
            audit.measure_flips(include_rows)
            progress.advance("flips")
            audit.measure_groups(n_resamples)
            progress.advance("groups")
            audit.measure_proxies()
            progress.advance("proxies")
            audit.read_model()
            if incumbent is not None:
                audit.stand_beside(measure.open_model(incumbent, rows, **options))
            if sweep is not None:
                audit.show_frontier(sweep)
            progress.advance("model")
    found = {
        "schema": SCHEMA,
        **audit.found,
        "limits": _compare(checked, audit.figures),
        "notes": [*notes, *others],
        "provenance": {**_provenance(model, (X, y, sample_weight), seed), **(provenance or {})},
    }
    summary: dict[str, Any] = to_plain(found)
    summary["findings"] = page.describe(summary)
    return AuditResult(summary, audit.displays, audit.subject.estimator)


# ------------------------------------------------------------------------------ the result


@dataclass(eq=False, repr=False)
class AuditResult:
    """What an audit found. ``print`` it for the findings; :meth:`to_html` writes the page.

    Attributes
    ----------
    summary : dict
        Everything as plain data, ready for JSON; None is what is not estimable.
    displays : dict of str to Display
        The figures, ready to ``plot()``.
    """

    summary: dict[str, Any]
    displays: dict[str, charts.Display] = field(default_factory=dict)
    _estimator: Any = None

    @property
    def crossed(self) -> list[dict[str, Any]]:
        """The limits that are crossed, or whose figure is not estimable."""
        return [each for each in self.summary["limits"] if not each["met"]]

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Write the summary as JSON to a file, or return it as text."""
        text = json.dumps(self.summary, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        return _write(path, text)

    def to_html(
        self, path: str | os.PathLike[str] | None = None, *, include_model: bool = True
    ) -> str | None:
        """Write the page to a file, or return it as text: one file that needs no other.

        With ``include_model`` the weights of an fcorr model go into the page, which computes its
        predictions. The figures need matplotlib, which the extra ``plot`` installs.
        """
        return _write(path, page.render(self, self._estimator if include_model else None))

    def to_model_card(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Write a model card to a file, or return it: Markdown with a Hugging Face header."""
        return _write(path, page.model_card(self.summary))

    def __str__(self) -> str:
        return "\n".join(text for part in self.summary["findings"].values() for text in part)

    def __repr__(self) -> str:
        return f"AuditResult({self.summary['subject']['name']!r}, {self.summary['rows']['n']} rows)"

    def _repr_html_(self) -> str:
        figures = self.summary["figures"].items()
        lines = [(name.replace("_", " "), page.show_cell(each)) for name, each in figures]
        return html_table(repr(self), ("figure", "found"), lines, " ".join(str(self).split("\n")))


def _write(path: str | os.PathLike[str] | None, text: str) -> str | None:
    if path is None:
        return text
    write_atomically(path, text.encode(errors="backslashreplace"))
    return None


# ------------------------------------------------------------------------------ measurements


def _or_why(compute: Callable[[], Any]) -> Any:
    """Compute something, or return why it is not estimable."""
    try:
        return compute()
    except InvalidInputError as error:
        return str(error)


class _Audit:
    """The parts of a summary, ``found`` one after the other."""

    def __init__(self, subject: Subject, rows: AuditRows, seed: int, confidence: float) -> None:
        self.subject, self.rows, self.seed, self.confidence = subject, rows, seed, confidence
        self.scores, self.truths = subject.score(rows.X), subject.truths(rows)
        self.is_class, self.is_single = subject.task != "regression", len(subject.outputs) == 1
        self.by = "weight" if rows.exposure is None else "exposure"
        self.found: dict[str, Any] = {}
        self.figures: dict[str, Any] = {}
        self.displays: dict[str, charts.Display] = {}

    def sample(self, most: int) -> AuditRows:
        if len(self.rows) <= most:
            return self.rows
        chosen = np.random.default_rng(self.seed).choice(len(self.rows), most, replace=False)
        return self.rows.take(np.sort(chosen))

    def describe(self, name: str | None, target: str, unit: str) -> None:
        subject, rows = self.subject, self.rows
        self.found |= {
            "subject": {
                "name": name or subject.name,
                "kind": subject.name,
                "task": subject.task,
                "target": target,
                "unit": unit or "probability" * self.is_class,
                "classes": [describe_label(label) for label in subject.classes],
                "threshold": subject.threshold,
                "deviance_power": None if self.is_class else subject.power,
                "doubt": subject.doubt,
            },
            "rows": {
                "n": len(rows),
                "exposure": None if rows.exposure is None else rows.exposure.sum(),
                "weighted": rows.weight is not None and rows.exposure is None,
                "has_target": rows.y is not None,
                "confidence": self.confidence,
            },
            "sensitive": {
                column: [describe_label(each) for each in rows.groups[column].categories]
                for column in map(str, rows.sensitive)
            },
            "figures": self.figures,
            "plots": {},
        }

    def measure_performance(self) -> None:
        found = measure.performance(self.subject, self.rows, self.scores)
        why = "one class only" if self.is_class else "no positive amounts"
        cells = {name: cell(value, why=why) for name, value in found.items()}
        self.found["performance"] = cells
        self.figures |= {name.lower().replace(" ", "_"): each for name, each in cells.items()}
        if self.truths is None or not self.is_single:
            return
        given = self.truths[0], self.scores[:, 0]
        table = metrics.lift_table(*given, sample_weight=self.rows.weight)
        self._show_lift("lift", table, "Lift: predicted and actual")
        curve = _or_why(lambda: metrics.lorenz_curve(*given, sample_weight=self.rows.weight))
        if not isinstance(curve, str):
            at = np.linspace(0, 1, 101)
            share = np.interp(at, curve.exposure_share, curve.claim_share)
            curve = metrics.LorenzCurve(at, share, curve.gini)
            labels = f"share of {self.by}, lowest prediction first", "share of the actual"
            of_model = {self.found["subject"]["name"]: curve}
            self.displays["lorenz"] = LorenzDisplay(of_model, *labels, "Lorenz curve")
            curve = curve.to_dict()
        self.found["plots"]["lorenz"] = curve

    def _show_lift(self, key: str, table: Any, title: str, *names: str) -> None:
        target = self.found["subject"]["target"]
        label = f"share of {target} = {self.subject.outputs[0]}" if self.is_class else target
        labels: dict[str, Any] = {"y_label": label, "weight_label": self.by, "title": title}
        self.displays[key] = LiftDisplay(table, *names, **labels)
        self.found["plots"][key] = table.to_dict()

    def measure_flips(self, include_rows: bool) -> None:
        subject, groups = self.subject, self.rows.groups
        sizes = {column: len(groups[column].categories) for column in map(str, self.rows.sensitive)}
        few = [column for column, size in sizes.items() if size < 2]
        if few:
            why = f"{enumerate_some(few)} has one value in these rows: there is nothing to flip to"
            self.found["flips"] = {"why": why, "certificate": self._certify()}
            self.figures["largest_change"] = cell(math.nan, why=why)
            return
        rows = self.sample(max(1, _MOST_SCORES // math.prod(sizes.values())))
        flips = score_flips(subject, rows)
        worst = int(np.argmax([each.changes.max() for each in flips]))
        of = flips[worst]
        change = metrics.flip_changes(of, sample_weight=rows.weight)
        found = measure.flip_metrics(subject, rows, flips)
        self.figures |= {"mean_change": cell(change["mean"]), "largest_change": cell(change["max"])}
        if "decisions flipped" in found:
            self.figures["decisions_flipped"] = cell(found["decisions flipped"])
        self.found["flips"] = {
            "n": len(rows),
            "categories": [describe_label(each) for each in of.categories],
            "output": describe_label(subject.outputs[worst]),
            "change": change,
            "n_changed": int((of.changes > 0).sum()),
            "metrics": found,
            "pairs": _pairs(of, rows.weight),
            "most_affected": _most_affected(of, rows, include_rows),
            "certificate": self._certify(),
        }

    def _certify(self) -> dict[str, Any] | None:
        model = self.subject.estimator
        if model is None or model.sensitive is None:
            return None
        if {*map(str, self.rows.sensitive)} - {*map(str, measure.name_columns(model.sensitive))}:
            return None  # flips of other columns than it was made invariant to
        certificate = model.certificate(self.sample(_MOST_ROWS).X)
        is_weighted = self.rows.weight is not None
        self.figures["exact"] = cell(float(certificate.exact))
        return {
            "exact": certificate.exact,
            "search": certificate.search,
            "population": f"{certificate.population}{' Rows count alike here.' * is_weighted}",
            "text": str(certificate).splitlines()[1],
            "assumptions": certificate.assumptions,
        }

    def measure_groups(self, n_resamples: int) -> None:
        subject, rows = self.subject, self.rows
        chosen = subject.decide(self.scores) if self.is_class else None
        everybody = Labels(("all",), np.zeros(len(rows), dtype=np.intp))
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        parts, grouped = [], []
        for k, output in enumerate(subject.outputs):
            score, truth = self.scores[:, k], None if self.truths is None else self.truths[k]
            options: dict[str, Any] = {}
            if chosen is not None:
                options["decision"] = chosen == (1 if self.is_single else k)
            elif truth is not None:
                options["deviance"] = deviances(truth, score, subject.power)
            for name, labels in {"": everybody, **rows.groups}.items():
                parts.append((name, describe_label(output), labels))
                grouped.append(GroupedRows(labels.codes, weight, score, truth, **options))
        drawn = resample(grouped, n_resamples, self.seed)
        self.found["groups"] = sections = []
        for i, (name, output, labels) in enumerate(parts):
            draws = {n: np.stack([each[i][n] for each in drawn]) for n in drawn[0][i]}
            names = [describe_label(label) for label in labels.categories]
            table = tabulate_groups(names, grouped[i], draws, self.confidence)
            if name:
                sections.append({"grouping": name, "output": output, **table})
                self._keep_worst(sections[-1])
            elif self.is_single:  # performance gets the intervals that resamples have
                known = table["groups"][0]["figures"]
                for each in {"AUROC", "deviance"} & known.keys() & self.found["performance"].keys():
                    self.found["performance"][each] = self.figures[each.lower()] = known[each]
        if self.truths is not None and self.is_single:
            self._show_groups(sections[0])

    def measure_proxies(self) -> None:
        """Measure what other columns and the score tell of the sensitive ones, and UF and PD."""
        from fcorr.audit.proxies import best_estimates, measure_proxies

        rows = self.sample(_MOST_PROXY_ROWS)
        scores = self.subject.score(rows.X)[:, 0] if self.is_single else None
        sensitive = list(rows.sensitive)
        known: dict[str, Any] = {"sample_weight": rows.weight, "random_state": self.seed, "cv": 3}
        strength = _or_why(
            lambda: measure_proxies(rows.X, sensitive, scores=scores, n_resamples=50, **known)
        )
        self.found["proxies"] = found = {"n": len(rows), "strength": strength}
        if not isinstance(strength, str):
            found["strength"] = [asdict(row) for row in strength.rows]
            found["notes"] = strength.notes
        if scores is None:
            return
        grouping = next(reversed(rows.groups))  # of several columns, all of them together
        everybody: dict[str, Any] = {
            "sensitive_features": self.rows.groups_of(grouping),
            "sample_weight": self.rows.weight,
        }
        unfairness = metrics.demographic_unfairness(self.scores[:, 0], **everybody)
        self.figures["demographic_unfairness"] = cell(unfairness, why="one group only")
        found["differences"] = self._split_differences(self.subject)
        truths = self.subject.truths(rows)
        if truths is not None:
            estimates = _or_why(lambda: best_estimates(rows.X, truths[0], sensitive, **known))
            value, why = math.nan, "one group only"
            if not isinstance(estimates, str):
                value = metrics.proxy_discrimination(scores, estimates, sample_weight=rows.weight)
            elif min(np.bincount(rows.groups[grouping].codes)) < known["cv"]:
                why = "a group has too few rows for estimates of its risk"
            else:
                why = estimates.removesuffix(".")
            self.figures["proxy_discrimination"] = cell(value, why=why)

    def _split_differences(self, subject: Subject) -> dict[str, Any] | None:
        """Split what groups differ by in the mean into the parts of features, by main effects."""
        model, rows = subject.estimator, self.sample(_MOST_ROWS)
        if model is None or not model._options["main_effects"]:
            return None
        grouping = next(reversed(rows.groups))
        labels, effects = rows.groups[grouping], model._main_by_row(rows.X)
        sizes = np.bincount(labels.codes, minlength=len(labels.categories))
        means = {
            describe_label(labels.categories[k]): np.average(
                effects[chosen],
                axis=0,
                weights=None if rows.weight is None else rows.weight[chosen],
            )
            for k in np.flatnonzero(sizes >= MIN_ROWS)
            for chosen in [labels.codes == k]
        }
        if len(means) < 2:
            return None
        spread = np.ptp(np.stack([*means.values()]), axis=0)
        names, order = model.schema_.feature_names, np.argsort(-spread, kind="stable")
        return {
            "grouping": grouping,
            "features": {
                names[j]: {"spread": spread[j], "means": {g: m[j] for g, m in means.items()}}
                for j in order
            },
        }

    def _keep_worst(self, section: Mapping[str, Any]) -> None:
        """Keep of all groupings the figure that is farthest from equal treatment."""
        where = {name: section[name] for name in ("grouping", "output")}
        for name, each in section["differences"].items():
            key, sign = name.replace(" ", "_"), -1 if "ratio" in name else 1
            before = self.figures.get(key, {"estimate": None})["estimate"]
            now = each["estimate"]
            if before is None or (now is not None and sign * now > sign * before):
                self.figures[key] = {**each, **where}

    def _show_groups(self, section: Mapping[str, Any]) -> None:
        rows = []
        for group in section["groups"][:60]:
            figures = group["figures"]
            ratio = [figures["actual / expected"].get(n) for n in ("estimate", "low", "high")]
            totals = [
                figures[n]["estimate"] * group["weight"] for n in ("mean actual", "mean predicted")
            ]
            numbers = [math.nan if number is None else number for number in ratio]
            size = group["group"], group["n"], group["weight"]
            rows.append(metrics.ActualExpected(*size, *totals, *numbers))
        table = metrics.ActualExpectedTable(tuple(rows), self.confidence)
        title = f"Actual over expected by {section['grouping']}"
        self.displays["groups"] = ActualExpectedDisplay(table, weight_label=self.by, title=title)

    def read_model(self) -> None:
        model = self.subject.estimator
        if model is None:
            self._exchange_columns()
            return
        some, sensitive = self.sample(_MOST_ROWS).X, model.schema_.sensitive_features
        matrix = model.attention(some)
        self.found["model"] = part = {
            "parameters": model.model_.n_parameters,
            "members": len(model.model_.members),
            "trained_on": model.schema_.n_rows,
            "attention": {"names": matrix.names, "values": matrix.values},
            "significance": model.feature_significance(),
        }
        self.displays["attention"] = charts.AttentionDisplay(matrix, sensitive, k=30)
        if not model._options["main_effects"]:
            return
        effects, importance = model.main_effects(), model.importance(some)
        for name, effect in effects.items():
            effects[name] = effect if name in sensitive else _without_rare(effect)
        shown = dict(zip(importance.names[:20], importance.total[:20].tolist(), strict=True))
        labels = "Importance", "share of what the model tells rows apart by (shares overlap)"
        self.displays["importance"] = charts.SignificanceDisplay(shown, sensitive, *labels)
        first = {n: effects[n] for n in importance.names[:9] if len(effects[n].values)}
        if first and effects.classes is None:
            self.displays["main effects"] = charts.MainEffectDisplay(first, effects.unit, sensitive)
        part |= {
            "importance": {name: importance[name] for name in importance.names},
            "importance_rows": importance.n_rows,
            "unit": effects.unit,
            "classes": effects.classes,
            "main_effects": {name: effect.table() for name, effect in effects.items()},
        }

    def _exchange_columns(self) -> None:
        """Measure what any model's scores change by where a row takes another's value."""
        from fcorr.audit.proxies import exchange

        rows = self.sample(_MOST_EXCHANGED)
        circle = np.random.default_rng(self.seed).permutation(len(rows))
        other = np.empty_like(circle)
        other[circle] = np.roll(circle, 1)
        before, others = self.subject.score(rows.X), rows.take(other).X
        table = read_table(rows.X)
        names = table.names
        change = [
            (name, np.abs(self.subject.score(exchange(rows.X, others, [i])) - before).mean())
            for i, name in enumerate(names)
        ]
        change.sort(key=lambda pair: -pair[1])
        self.found["model"] = {"change": dict(change), "importance_rows": len(rows)}
        labels = "Importance", "mean change of the score where a row takes another row's value"
        sensitive = resolve_columns(table, rows.sensitive, "sensitive")
        shown = dict(change[:20])
        self.displays["importance"] = charts.SignificanceDisplay(shown, sensitive, *labels)

    def stand_beside(self, other: Subject) -> None:
        """Put another model beside this one: who is right where they differ, who changes."""
        from scipy.stats import binomtest

        if other.outputs != self.subject.outputs:
            raise InvalidInputError(
                f"incumbent must predict the same, {enumerate_some(self.subject.outputs)}, got "
                f"{enumerate_some(other.outputs)}. Compare models of one target.",
                argument="incumbent",
            )
        other = replace(other, power=self.subject.power)  # or deviances would be of two kinds
        scores, rows = other.score(self.rows.X), self.rows
        name = other.name + " (incumbent)" * (other.name == self.subject.name)
        part: dict[str, Any] = {"name": name}
        self.found["incumbent"] = part
        if self.is_single:
            part["differences"] = self._split_differences(other)
        part["performance"] = measure.performance(other, rows, scores)
        if other.estimator is not None:
            shown = charts.AttentionDisplay(
                other.estimator.attention(self.sample(_MOST_ROWS).X),
                other.estimator.schema_.sensitive_features,
                k=30,
            )
            self.displays["attention of the other model"] = shown
        if "change" in self.found["flips"]:
            sample = self.sample(self.found["flips"]["n"])
            part["flips"] = measure.flip_metrics(other, sample, score_flips(other, sample))
        moves = {"mean_change": (self.scores - scores)[:, 0]}
        if self.is_class:
            ours, theirs = self.subject.decide(self.scores), other.decide(scores)
            moves["decisions_changed"] = (ours != theirs).astype(np.float64)
            if rows.y is not None:
                classes = np.asarray(self.subject.classes)
                right, other_right = classes[ours] == rows.y, classes[theirs] == rows.y
                only = right[right != other_right]  # of rows that one of them decides rightly
                p = binomtest(only.sum(), len(only)).pvalue if len(only) else math.nan
                part["mcnemar"] = {
                    "only_model_right": only.sum(),
                    "only_incumbent_right": (~only).sum(),
                    "p_value": max(p, np.finfo(float).tiny),
                }
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        part["who_changes"] = [
            {"grouping": name, "group": describe_label(label), "n": int(chosen.sum())}
            | {
                key: np.average(values[chosen], weights=weight[chosen])
                for key, values in moves.items()
            }
            for name, labels in rows.groups.items()
            for code, label in enumerate(labels.categories)
            for chosen in [labels.codes == code]
        ]
        if self.truths is not None and self.is_single:
            given = self.truths[0], self.scores[:, 0], scores[:, 0]
            table = _or_why(lambda: metrics.lift_table(*given, sample_weight=rows.weight))
            self.found["plots"]["double lift"] = table
            if not isinstance(table, str):
                names = self.found["subject"]["name"], name
                self._show_lift("double lift", table, "Double lift: two models", *names)

    def show_frontier(self, sweep: Any) -> None:
        choice = _or_why(sweep.choose)
        name, reason = (None, choice) if isinstance(choice, str) else (choice.name, choice.reason)
        points = [each.point for each in sweep.summaries]
        chosen = {"points": points, "chosen": name, "reason": reason}
        self.found["frontier"] = {**sweep.table()._asdict(), **chosen}
        self.displays["frontier"] = charts.FrontierDisplay(sweep.summaries, name)


def _pairs(flips: FlippedScores, weight: Floats | None) -> list[dict[str, Any]]:
    """List the signed change from each category that rows have to each other one."""
    moved = flips.scores - flips.factual[:, None]
    found: list[dict[str, Any]] = []
    for i, own in enumerate(flips.categories):
        rows = np.flatnonzero(flips.original == i)
        if not len(rows):
            continue
        mean = np.average(moved[rows], axis=0, weights=None if weight is None else weight[rows])
        largest = np.take_along_axis(moved[rows], np.abs(moved[rows]).argmax(0)[None], axis=0)[0]
        found += [
            {"from": describe_label(own), "to": describe_label(to), "n": len(rows)}
            | {"mean": float(mean[j]), "largest": float(largest[j])}
            for j, to in enumerate(flips.categories)
            if j != i
        ]
    return sorted(found, key=lambda pair: -abs(pair["mean"]))[:_MOST_PAIRS]


def _without_rare(effect: Any) -> Any:
    """Leave out the categories of a main effect that an audit does not name."""
    is_name = np.array([isinstance(v, str) and v != "missing" for v in effect.values])
    many = (effect.rows >= measure.MIN_NAMED) | ~is_name
    columns = {n: x[many] for n, x in vars(effect).items() if isinstance(x, np.ndarray)}
    return replace(effect, values=tuple(compress(effect.values, many)), **columns)


def _most_affected(flips: FlippedScores, rows: AuditRows, include: bool) -> list[dict[str, Any]]:
    change, lowest, highest = flips.changes, flips.lowest, flips.highest
    order = np.argsort(-change, kind="stable")[:_N_AFFECTED]
    number = np.arange(len(rows)) if rows.counted is None else rows.counted
    found = []
    for i in order[change[order] > 0].tolist():
        row = {"row": number[i], "change": change[i], "lowest": lowest[i], "highest": highest[i]}
        if include:
            columns = read_table(take_rows(rows.X, np.array([i]))).columns
            row["values"] = {name: str(column[0].as_py()) for name, column in columns.items()}
        found.append(row)
    return found


def _provenance(model: Any, data: tuple[Any, Any, Any], seed: int) -> dict[str, Any]:
    """Tell what was audited, with what, and when."""
    packages = {"numpy", "scipy", type(model).__module__.split(".")[0]}
    packages |= {"torch", "sklearn"} if is_ours(model) else set()
    found = {name: getattr(sys.modules[name], "__version__", None) for name in sorted(packages)}
    versions = {name: version for name, version in found.items() if version}
    settings = to_plain(model.get_params(deep=False)) if hasattr(model, "get_params") else None
    text, digest = json.dumps(settings, sort_keys=True), None
    if is_ours(model):
        from fcorr.estimators import read_header

        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder, "model"))
            digest = read_header(Path(folder, "model"))["sha256"]
    return {
        "data_hash": hash_rows(*data),
        "model_sha256": digest,
        "configuration": settings,
        "configuration_sha256": settings and hashlib.sha256(text.encode()).hexdigest(),
        "versions": {"fcorr": __version__, "python": platform.python_version(), **versions},
        "audit_seed": seed,
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


# ------------------------------------------------------------------------------ limits


def read_limits(source: str | os.PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Read limits for figures from a TOML file or a mapping.

    Each names a figure of the summary, a ``min`` or a ``max``, and the ``source`` that it comes
    from::

        [adverse_impact_ratio]
        min = 0.8
        source = "29 CFR 1607.4 D, the four-fifths rule of thumb"
    """
    given: Any = source
    if not isinstance(source, Mapping):
        try:
            given = tomllib.loads(Path(source).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidInputError(
                f"limits must be a TOML file, got {os.fspath(source)!r}: {error}.",
                argument="limits",
            ) from error
    for name, limit in given.items():
        ends = dict(limit) if isinstance(limit, Mapping) else {}
        origin = ends.pop("source", None)
        are_numbers = all(
            isinstance(end, int | float) and not isinstance(end, bool) and end == end
            for end in ends.values()
        )
        are_known = bool(ends) and {*ends} <= {"min", "max"}
        if not (are_known and are_numbers and isinstance(origin, str) and origin):
            raise InvalidInputError(
                "A limit must have a min or a max, its source, and nothing else, got "
                f"{limit!r} for {name!r}. Write [{name}], max = 0.01, source = 'policy 4.2'.",
                argument="limits",
            )
    return dict(given)


def _compare(limits: Mapping[str, Any], figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Hold figures against limits; one that is not estimable meets none."""
    found = []
    for name, limit in limits.items():
        has = f"It has {enumerate_some(figures, 40)}."
        check_name(name, figures, "limits must name figures of this audit", has, "limits")
        value, low, high = figures[name]["estimate"], limit.get("min"), limit.get("max")
        met = (
            value is not None and (low is None or value >= low) and (high is None or value <= high)
        )
        found.append({"figure": name, "value": value, "met": met, **limit})
    return found
