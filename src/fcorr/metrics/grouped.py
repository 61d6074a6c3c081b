"""Figures of all groups at once, and their bootstrap: a million rows and hundreds of resamples.

What `bootstrap_interval` does for any metric, one call per resample, is done here for rates, means,
ratios and rankings by sums over rows that were put in order once. A resample is a weight per row:
how often the row was drawn.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from fcorr.metrics._checks import FloatArray, IntArray

Figures = dict[str, FloatArray]
"""Figures by name, one number per group; nan is what a group's rows cannot give."""


class GroupedRows:
    """Rows of groups, of which all figures are computed for any weights.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Each row's group, from 0 on; every group has rows.
    score : ndarray of shape (n,)
        Probabilities of a class, or predicted amounts.
    truth : ndarray of shape (n,), optional
        What came about: 0 or 1, or amounts.
    decision : ndarray of shape (n,), optional
        Decisions, 0 or 1; figures are then those of a class, and otherwise those of amounts.
    deviance : ndarray of shape (n,), optional
        What each row adds to the deviance, for amounts.

    Examples
    --------
    >>> rows = GroupedRows(
    ...     np.array([0, 0, 1]), np.array([0.2, 0.6, 0.9]), np.array([0, 1, 1]), np.array([0, 1, 1])
    ... )
    >>> found = rows.figures(np.ones(3))
    >>> found["selection rate"].tolist(), found["AUROC"].tolist()
    ([0.5, 1.0], [1.0, nan])
    """

    def __init__(
        self,
        codes: IntArray,
        score: FloatArray,
        truth: FloatArray | None = None,
        decision: FloatArray | None = None,
        deviance: FloatArray | None = None,
    ) -> None:
        self.is_class = decision is not None
        self._order = np.lexsort((score, codes))
        codes, score = codes[self._order], score[self._order]
        self.counts = np.bincount(codes)
        self._starts = np.cumsum(self.counts) - self.counts
        columns = {"score": score, "score²": score * score}
        given = {"truth": truth, "decision": decision, "deviance": deviance}
        columns |= {n: x[self._order].astype(float) for n, x in given.items() if x is not None}
        if truth is not None and decision is not None:
            columns["hit"] = columns["truth"] * columns["decision"]
        self._columns = columns
        # The last row of each run of equal scores: between two of these, order says nothing.
        is_last = np.append((np.diff(score) != 0) | (np.diff(codes) != 0), True)
        self._ends = None if is_last.all() else np.flatnonzero(is_last)
        in_order = codes if self._ends is None else codes[self._ends]
        self._end_starts = np.searchsorted(in_order, np.arange(len(self.counts)))

    def figures(self, weight: FloatArray) -> Figures:
        """Compute all figures for these weights of the rows."""
        w = weight[self._order]
        mass = np.add.reduceat(w, self._starts)
        sums = {n: np.add.reduceat(w * x, self._starts) for n, x in self._columns.items()}
        with np.errstate(invalid="ignore", divide="ignore"):  # 0/0 is nan: not estimable
            mean = sums["score"] / mass
            found = {"weight": mass, "mean": mean, "variance": sums["score²"] / mass - mean**2}
            if self.is_class:
                found["selection rate"] = sums["decision"] / mass
            if "truth" not in sums:
                return found
            truth = sums["truth"]
            found["mean actual"] = truth / mass
            found["actual / expected"] = truth / sums["score"]
            gini = self._gini(w, mass, truth)
            if not self.is_class:
                return found | {"Gini": gini, "deviance": sums["deviance"] / mass}
            hit, chosen = sums["hit"], sums["decision"]
            return found | {
                "true positive rate": hit / truth,
                "false positive rate": (chosen - hit) / (mass - truth),
                "precision": hit / chosen,
                # The area under the ROC curve is the Lorenz curve's, on another scale.
                "AUROC": 0.5 + gini / (2 * (1 - truth / mass)),
            }

    def _gini(self, w: FloatArray, mass: FloatArray, total: FloatArray) -> FloatArray:
        """Compute 1 minus twice the area under each group's Lorenz curve."""
        x, y = np.cumsum(w), np.cumsum(w * self._columns["truth"])
        if self._ends is not None:
            x, y = x[self._ends], y[self._ends]
        middle = y.copy()
        middle[1:] += y[:-1]
        middle *= np.diff(x, prepend=0.0)
        area = np.add.reduceat(middle, self._end_starts) / 2
        before = np.append(0.0, np.cumsum(total)[:-1])  # of the groups before this one
        return 1 - 2 * (area - before * mass) / (mass * total)


def resample(
    grouped: Sequence[GroupedRows], weight: FloatArray, n_resamples: int, seed: int
) -> Iterator[list[Figures]]:
    """Draw rows again and again, and give the figures of all groupings of each resample."""
    rng, n_rows = np.random.default_rng(seed), len(weight)
    for _ in range(n_resamples):
        drawn = np.bincount(rng.integers(0, n_rows, n_rows), minlength=n_rows) * weight
        yield [rows.figures(drawn) for rows in grouped]


def interval(values: FloatArray, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Return the ends of percentile intervals over the first axis; nan where few draws have one.

    A draw in which a group has no rows, or no positives, gives nan. Where that is more than the
    share that an interval leaves out, what remains would look surer than it is.
    """
    tail = (1 - confidence) / 2
    rare = np.isnan(values).mean(axis=0) > 2 * tail
    low, high = np.nanquantile(np.where(rare, 0.0, values), [tail, 1 - tail], axis=0)
    return np.where(rare, np.nan, low), np.where(rare, np.nan, high)
