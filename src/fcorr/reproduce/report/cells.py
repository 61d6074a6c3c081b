"""Cells of the tables: a mean over seeds, its deviation, and the paper's figure."""

from collections.abc import Sequence

import numpy as np

from fcorr.audit.tables import show_small

Value = float | None


def show_cell(
    values: Sequence[Value],
    paper: Value = None,
    *,
    decimals: int = 4,
    paper_decimals: int = 4,
    tiny: bool = False,
) -> str:
    """Write what seeds came to, and in parentheses what the paper prints.

    Where seeds have no value, it is said how many have. Exactly 0 is written "0".

    Parameters
    ----------
    values : sequence of float or None
        A value of each seed, None where it could not be estimated.
    paper : float, optional
        The paper's figure.
    decimals, paper_decimals : int, default=4
        How many to write of each.
    tiny : bool, default=False
        Whether to write what rounds to 0 as a power of ten.

    Examples
    --------
    >>> show_cell([0.9126, 0.9130], 0.9128), show_cell([0.91]), show_cell([0.0, 0.0], 0.0)
    ('0.9128 ± 0.0002 (0.9128)', '0.9100', '0 (0.0000)')
    >>> show_cell([3e-8], tiny=True), show_cell([0.5, None]), show_cell([None])
    ('3.0e-08', '0.5000 [1 of 2]', 'n/a')
    """
    text = _show_mean(values, decimals, tiny=tiny)
    return text if paper is None else f"{text} ({_fixed(paper, paper_decimals)})"


def choose_decimals(values: Sequence[Value]) -> int:
    """Choose how many decimals a column needs: 2 of amounts such as claims, else 4.

    Examples
    --------
    >>> choose_decimals([0.25, 1.5]), choose_decimals([3305.85, None])
    (4, 2)
    """
    sizes = [abs(value) for value in values if value is not None]
    return 2 if sizes and max(sizes) >= 10 else 4


def _show_mean(values: Sequence[Value], decimals: int, *, tiny: bool) -> str:
    known = [value for value in values if value is not None and not np.isnan(value)]
    if not known:
        return "n/a"
    mean, deviation = float(np.mean(known)), float(np.std(known))
    tiny = tiny and max(abs(mean), deviation) < 10.0**-decimals

    def write(value: float) -> str:
        return show_small(value) if tiny or value == 0 else _fixed(value, decimals)

    text = write(mean)
    if len(known) > 1 and any(known):
        text += f" ± {write(deviation)}"
    if len(known) < len(values):
        text += f" [{len(known)} of {len(values)}]"
    return text


def _fixed(value: float, decimals: int) -> str:
    return f"{round(value, decimals) + 0.0:,.{decimals}f}".replace("-", "−")  # no −0
