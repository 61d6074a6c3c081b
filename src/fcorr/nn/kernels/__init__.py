"""Compiled kernels for single precision on the CPU: arrays in and out; they need numba."""

from fcorr.nn.kernels.attention import attention_backward, attention_forward
from fcorr.nn.kernels.network import (
    column_change,
    drop,
    embed_backward,
    embed_forward,
    encoder_backward,
    encoder_forward,
    locate,
)

__all__ = [
    "attention_backward",
    "attention_forward",
    "column_change",
    "drop",
    "embed_backward",
    "embed_forward",
    "encoder_backward",
    "encoder_forward",
    "locate",
]
