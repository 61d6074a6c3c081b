"""Compiled kernels for single precision on the CPU; importing them needs numba."""

from fcorr.nn.kernels.network import (
    attention_backward,
    attention_forward,
    column_change,
    drop,
    embed_backward,
    embed_forward,
    embed_numbers,
    encoder_backward,
    encoder_forward,
    locate,
)
from fcorr.nn.kernels.scoring import add_log_predictions, head_forward

__all__ = [
    "add_log_predictions",
    "attention_backward",
    "attention_forward",
    "column_change",
    "drop",
    "embed_backward",
    "embed_forward",
    "embed_numbers",
    "encoder_backward",
    "encoder_forward",
    "head_forward",
    "locate",
]
