"""What it costs that a row's score is its own: scores by the kernels against the head by BLAS.

Both in one process, on one thread, the fastest of several runs of each in turn. Prints microseconds
a row, and the rate of the kernels as a share of the other; nothing is written.

    python benchmarks/scoring.py
"""

import time
from collections.abc import Callable

import torch

from fcorr.nn import FCorrTransformer

SIZES = [(13, (64, 64)), (13, (128, 128)), (31, (128, 128)), (581, (128, 128)), (13, (300, 300))]
N_ROWS, N_RUNS = 8_192, 15


def fastest(*functions: Callable[[], object]) -> list[float]:
    """Return microseconds a row of each, run in turn."""
    best = [float("inf")] * len(functions)
    for _ in range(N_RUNS):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            best[i] = min(best[i], (time.perf_counter() - start) / N_ROWS * 1e6)
    return best


def main() -> None:
    torch.set_num_threads(1)
    for n_features, head in SIZES:
        n_categorical = n_features // 2
        model = FCorrTransformer([5] * n_categorical, n_features - n_categorical, head).eval()
        codes = torch.randint(0, 5, (N_ROWS, n_categorical))
        numbers = torch.randn(N_ROWS, n_features - n_categorical)
        rows = codes, numbers
        with torch.no_grad():
            blas, own = fastest(lambda m=model, r=rows: m(*r), lambda m=model, r=rows: m.score(*r))
        print(f"{n_features} features, head {head}: {own:.2f} µs, {blas / own:.2f} of the rate")


if __name__ == "__main__":
    main()
