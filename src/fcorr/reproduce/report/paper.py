"""Figures that the paper prints, from its file among the configurations."""

from typing import Any

from fcorr.reproduce.settings import read_config

SUBSETS = ("train", "test")


def paper_figure(table: str, model: str, metric: str, subset: str | None = None) -> float | None:
    """Return a figure that the paper prints, or None where it prints none.

    Parameters
    ----------
    table : str
        One of the tables in ``configs/paper.toml``.
    model, metric : str
        Its row and its column.
    subset : {"train", "test"}, optional
        Which rows of data it was measured on. A table that does not say is taken for both.

    Examples
    --------
    >>> paper_figure("adult_performance", "FCorr", "AUROC", "test")
    0.9128
    """
    rows = _rows(table, subset)
    figure: float | None = rows.get(model, {}).get(metric)
    return figure


def paper_models(table: str) -> list[str]:
    """List the models of one of the paper's tables, in its order.

    Examples
    --------
    >>> paper_models("claims_complexity")
    ['FFN', 'FT-Transformer', 'FCorr']
    """
    return list(_rows(table, SUBSETS[0]))


def _rows(table: str, subset: str | None) -> dict[str, Any]:
    rows: dict[str, Any] = read_config("paper").get(table, {})
    return rows.get(subset, {}) if subset is not None and SUBSETS[0] in rows else rows
