"""Tables for the documents, from the records alone."""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

Record = dict[str, Any]

LABELS = {
    "head": "bare head",
    "fcorr": "FCorr",
    "fcorr_car": "FCorr + CAR",
    "fcorr_car_paper": "FCorr + CAR, the paper's form",
    "fcorr_car_cda": "FCorr + CAR, CDA form",
    "fcorr_sdpa": "FCorr, torch's fused softmax",
    "fcorr_exact": "FCorr, p × p softmax",
    "tab_transformer": "TabTransformer",
    "ft_transformer": "FT-Transformer",
}
SETTINGS = {"bank_fraud": "bank fraud", "claims": "claims"}
# Seconds per epoch with CAR, as the paper prints them (§3.2): CDA form, input augmentation.
PAPER_SECONDS = {"bank_fraud": (21.46, 19.50), "claims": (52.98, 14.40)}
DOUBLINGS = ((581, 1_162), (1_162, 2_324))
_NONE = "–"


class Results:
    """What the records say, or ``None`` where they say nothing."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records

    def select(self, **fields: Any) -> list[Record]:
        """Return the measured records with these fields."""
        return [r for r in self._having(fields) if "skipped" not in r]

    def skipped(self, **fields: Any) -> list[Record]:
        """Return the records that say why something was not measured."""
        return [r for r in self._having(fields) if "skipped" in r]

    def _having(self, fields: Record) -> list[Record]:
        return [r for r in self.records if all(r.get(k) == v for k, v in fields.items())]

    def per_row(self, kind: str, model: str, **where: Any) -> float | None:
        """Return the median seconds of a training step, per row."""
        found = self.select(kind=kind, model=model, **where)
        return median(found[0]["seconds"]) / found[0]["rows"] if found else None

    def memory(self, setting: str, model: str) -> float | None:
        """Return the peak bytes of a step of the whole batch.

        From two smaller steps where the batch did not fit: a fixed part, and as much per row.
        """
        found = self.select(kind="memory", setting=setting, model=model)
        if not found:
            return None
        large = max(found, key=lambda r: r["rows"])
        if large["rows"] == large["batch"]:
            return large["peak_bytes"]
        small = min(found, key=lambda r: r["rows"])
        if small is large:
            return None
        slope = (large["peak_bytes"] - small["peak_bytes"]) / (large["rows"] - small["rows"])
        return large["peak_bytes"] + slope * (large["batch"] - large["rows"])

    def rows_per_second(self, setting: str, model: str, source: str) -> float | None:
        """Return how many rows are scored in a second."""
        found = self.select(kind="scoring", setting=setting, model=model, source=source)
        return found[0]["rows"] / median(found[0]["seconds"]) if found else None

    def epoch(self, setting: str, model: str) -> float | None:
        """Return the median seconds of an epoch."""
        found = self.select(kind="epoch", setting=setting, model=model)
        return median(found[0]["seconds"]) if found else None

    def encoding(self, setting: str, *parts: str) -> float | None:
        """Return the median seconds of these parts of the way from a frame to arrays."""
        found = self.select(kind="encoding", setting=setting)
        return median(sum(r[f"{part}_seconds"] for part in parts) for r in found) if found else None

    def lightgbm_fit(self, setting: str) -> float | None:
        """Return the seconds of LightGBM's whole fit."""
        found = self.select(kind="lightgbm", setting=setting)
        return found[0]["fit_seconds"] if found else None

    def doubling(self, model: str, p: int, twice_p: int) -> float | None:
        """Return the cost at twice as many features, in terms of the cost at p."""
        return ratio(self.per_row("scaling", model, p=twice_p), self.per_row("scaling", model, p=p))


def ratio(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None or b == 0 else a / b


# -------------------------------------------------------------------------------------- tables


def setup_table(results: Results) -> str:
    found = results.select(kind="setup")
    setup = found[0] if found else {}
    rows = [
        ["processor", setup.get("processor", _NONE)],
        ["vector instructions", setup.get("vector_instructions", _NONE)],
        ["cores; threads used", f"{setup.get('cores', _NONE)}; {setup.get('threads', _NONE)}"],
        ["Python", setup.get("python", _NONE)],
    ]
    versions = setup.get("versions", {})
    rows += [[name, number or "not installed"] for name, number in versions.items()]
    return _table(["", ""], rows, align="|---|---|")


def step_table(results: Results, setting: str) -> str:
    base = results.per_row("step", "fcorr", setting=setting)
    base_memory = results.memory(setting, "fcorr")
    rows = []
    for model, label in LABELS.items():
        found = results.select(kind="step", setting=setting, model=model)
        seconds = results.per_row("step", model, setting=setting)
        memory = results.memory(setting, model)
        rows.append(
            [
                label,
                f"{found[0]['parameters']:,}" if found else _NONE,
                f"{found[0]['rows']:,}" if found else _NONE,
                _show(seconds, 1e6),
                _show(ratio(seconds, base)),
                _show(memory, 1e-6),
                _show(ratio(memory, base_memory)),
            ]
        )
    heads = ["", "parameters", "rows per step", "µs per row", "÷ FCorr", "memory, MB", "÷ FCorr"]
    return _table(heads, rows) + _left_out(results, setting=setting)


def scoring_table(results: Results) -> str:
    rows = []
    for source, words in (("frame", "a pandas frame"), ("arrays", "encoded arrays")):
        of_model: dict[str, list[float | None]] = {}
        for model, label in (("fcorr", "FCorr"), ("lightgbm", "LightGBM")):
            of_model[model] = [results.rows_per_second(s, model, source) for s in SETTINGS]
            rows.append([f"{label}, from {words}", *(_show(speed) for speed in of_model[model])])
        ratios = map(ratio, of_model["fcorr"], of_model["lightgbm"])
        rows.append([f"FCorr ÷ LightGBM, from {words}", *(_show(r) for r in ratios)])
    return _table(["rows per second", *_scoring_heads(results)], rows)


def _scoring_heads(results: Results) -> list[str]:
    heads = []
    for setting, label in SETTINGS.items():
        found = results.select(kind="scoring", setting=setting)
        heads.append(f"{label}, {found[0]['rows']:,} rows" if found else label)
    return heads


def epoch_table(results: Results) -> str:
    parts = ("read", "schema", "encode")
    lines: list[tuple[str, Callable[[str], float | None]]] = [
        ("FCorr, one epoch", lambda s: results.epoch(s, "fcorr")),
        ("FCorr + CAR, one epoch", lambda s: results.epoch(s, "fcorr_car")),
        ("pandas frame to arrays, once per fit", lambda s: results.encoding(s, *parts)),
        ("knots of the shape functions, once per fit", lambda s: results.encoding(s, "knots")),
        ("LightGBM, 100 trees from the frame", results.lightgbm_fit),
    ]
    heads = ["seconds"]
    for setting, label in SETTINGS.items():
        found = results.select(kind="epoch", setting=setting)
        size = f", {found[0]['rows']:,} × {found[0]['p']}" if found else ""
        heads.append(label + size)
    rows = [[label, *(_show(of(s)) for s in SETTINGS)] for label, of in lines]
    for i, form in enumerate(("CDA form", "input augmentation")):
        printed = (f"{PAPER_SECONDS[s][i]:.2f}" for s in SETTINGS)
        rows.append([f"the paper, one epoch, {form}, its GPU", *printed])
    return _table(heads, rows)


def scaling_table(results: Results) -> str:
    widths = sorted({r["p"] for r in results.select(kind="scaling")})
    models = [m for m in LABELS if results.select(kind="scaling", model=m)] or ["fcorr"]
    rows = [
        [f"p = {p:,}", *(_show(results.per_row("scaling", m, p=p), 1e6) for m in models)]
        for p in widths
    ]
    rows += [
        [f"{p:,} → {twice:,}, times", *(_show(results.doubling(m, p, twice)) for m in models)]
        for p, twice in DOUBLINGS
    ]
    heads = ["µs per row", *(LABELS[m] for m in models)]
    return _table(heads, rows) + _left_out(results, kind="scaling")


def reach_table(results: Results) -> str:
    """Set what was aimed at against what was measured."""

    def step(setting: str, above: str, below: str) -> float | None:
        return ratio(
            results.per_row("step", above, setting=setting),
            results.per_row("step", below, setting=setting),
        )

    def memory(setting: str) -> float | None:
        above, below = (results.memory(setting, m) for m in ("ft_transformer", "fcorr"))
        return ratio(above, below)

    def scoring(setting: str, source: str) -> float | None:
        speeds = (results.rows_per_second(setting, m, source) for m in ("fcorr", "lightgbm"))
        return ratio(*speeds)

    both = ("bank_fraud", "claims")
    encoding = ratio(
        results.encoding("bank_fraud", "read", "schema", "encode"),
        results.epoch("bank_fraud", "fcorr"),
    )
    doublings = [results.doubling("fcorr", *pair) for pair in DOUBLINGS]
    # what, then for each setting: at most (−1) or at least (+1), the bound, what was measured
    lines = [
        (
            "FCorr + CAR step ÷ bare head step",
            -1,
            (6, 12),
            [[step(s, "fcorr_car", "head")] for s in both],
        ),
        (
            "FCorr + CAR step ÷ FCorr step",
            -1,
            (1.25, 1.25),
            [[step(s, "fcorr_car", "fcorr")] for s in both],
        ),
        (
            "FT-Transformer step ÷ FCorr step",
            1,
            (40, 500),
            [[step(s, "ft_transformer", "fcorr")] for s in both],
        ),
        (
            "p × p softmax FCorr step ÷ FCorr step",
            1,
            (1.5, 40),
            [[step(s, "fcorr_exact", "fcorr")] for s in both],
        ),
        ("peak step memory, FT-Transformer ÷ FCorr", 1, (40, 100), [[memory(s)] for s in both]),
        (
            "scoring rows/s ÷ LightGBM's, from a frame",
            1,
            (1, 1),
            [[scoring(s, "frame")] for s in both],
        ),
        (
            "scoring rows/s ÷ LightGBM's, from arrays",
            1,
            (1, 1),
            [[scoring(s, "arrays")] for s in both],
        ),
        ("cost when p doubles (581 → 1,162 → 2,324)", -1, (None, 2.2), [[], doublings]),
        ("encoding a pandas frame ÷ one epoch", -1, (1, None), [[encoding], []]),
    ]
    rows = []
    for what, sense, bounds, measured in lines:
        row = [what]
        for bound, values in zip(bounds, measured, strict=True):
            row += ["", "", ""] if bound is None else _verdict(sense, bound, values)
        rows.append(row)
    heads = [""]
    for setting in both:
        heads += [f"{_setting_head(results, setting)}: target", "measured", ""]
    return _table(heads, rows)


def _verdict(sense: int, bound: float, values: Sequence[float | None]) -> list[str]:
    target = f"{'≥' if sense > 0 else '≤'} {bound:g}" + (" each" if len(values) > 1 else "")
    shown = ", ".join(_show(value) for value in values)
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return [target, shown, "not measured"]
    met = all(sense * value >= sense * bound for value in known)
    return [target, shown, "met" if met else "missed"]


def _setting_head(results: Results, setting: str) -> str:
    found = results.select(kind="step", setting=setting, model="fcorr")
    if not found:
        return SETTINGS[setting]
    return f"p={found[0]['p']}, batch {found[0]['batch']:,}, C={found[0]['categories']}"


def summary_table(results: Results) -> str:
    """Show the few lines that answer whether it is fast."""
    rows = []
    for model in ("head", "fcorr", "fcorr_car", "fcorr_exact", "ft_transformer"):
        times = [results.per_row("step", model, setting=s) for s in SETTINGS]
        rows.append(
            [f"{LABELS[model]}, training step, µs per row", *(_show(t, 1e6) for t in times)]
        )
    epochs = [results.epoch(s, "fcorr_car") for s in SETTINGS]
    rows.append(["FCorr + CAR, one epoch, s", *(_show(t) for t in epochs)])
    for model, label in (("fcorr", "FCorr"), ("lightgbm", "LightGBM, 100 trees")):
        speeds = [results.rows_per_second(s, model, "frame") for s in SETTINGS]
        rows.append([f"{label}, rows scored per second", *(_show(v) for v in speeds)])
    heads = [""]
    for setting, label in SETTINGS.items():
        found = results.select(kind="epoch", setting=setting)
        heads.append(f"{label}, {found[0]['rows']:,} × {found[0]['p']}" if found else label)
    return _table(heads, rows)


TABLES: dict[str, Callable[[Results], str]] = {
    "speed_summary": summary_table,
    "speed_setup": setup_table,
    "speed_reach": reach_table,
    "speed_step_bank_fraud": lambda results: step_table(results, "bank_fraud"),
    "speed_step_claims": lambda results: step_table(results, "claims"),
    "speed_scoring": scoring_table,
    "speed_epochs": epoch_table,
    "speed_scaling": scaling_table,
}


# ------------------------------------------------------------------------------------ markdown


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, align: str = "") -> str:
    align = align or "|---|" + "---:|" * (len(heads) - 1)
    lines = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in (heads, *rows)]
    return "\n".join([lines[0], align, *lines[1:]]) + "\n"


def _left_out(results: Results, **where: Any) -> str:
    """Say what was not measured, and why."""
    reasons = [
        f"{LABELS[r['model']]}{' at p = ' + format(r['p'], ',') if 'p' in r else ' (memory)'}: "
        f"{r['skipped']}"
        for r in results.skipped(**where)
    ]
    return f"\nLeft out: {'; '.join(reasons)}.\n" if reasons else ""


def _show(value: float | None, unit: float = 1.0) -> str:
    """Write a number with about three digits.

    Examples
    --------
    >>> [_show(value) for value in (1234.5, 56.78, 1.2345, 0.4, 0.01234, None)]
    ['1,234', '56.8', '1.23', '0.40', '0.012', '–']
    """
    if value is None:
        return _NONE
    value *= unit
    if value >= 1:
        decimals = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
        return f"{value:,.{decimals}f}"
    return f"{value:#.2g}"
