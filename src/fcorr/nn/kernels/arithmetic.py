"""Exponential and GELU that the compiler can vectorise.

The C library's are called for one number at a time, which would take most of a kernel's time.
"""

import math

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import erfcx

from fcorr.nn.kernels.compiling import compiled, compiled_in_order

_LOG2_E = 1 / math.log(2)
_LN2_HIGH = 0.693359375  # few enough bits that its small multiples are exact
_LN2_LOW = math.log(2) - _LN2_HIGH
_ROUND_64 = 1.5 * 2.0**52  # adding it rounds to an integer, and leaves that in the lowest bits
_ROUND_32 = np.float32(1.5 * 2.0**23)
_TAYLOR = tuple(1 / math.factorial(n) for n in range(11))
_TAYLOR_32 = tuple(np.float32(1 / math.factorial(n)) for n in range(8))


@compiled_in_order
def exp(x: float) -> float:
    """``e^x`` to 1e-11, for finite x; beyond ±700 it stays what it is there."""
    x = min(max(x, -700.0), 700.0)
    rounded = x * _LOG2_E + _ROUND_64
    whole = rounded - _ROUND_64
    r = x - whole * _LN2_HIGH - whole * _LN2_LOW
    t = _TAYLOR[10]
    for n in range(9, -1, -1):
        t = t * r + _TAYLOR[n]
    power = (np.float64(rounded).view(np.int64) + np.int64(1023)) << np.int64(52)
    return t * np.int64(power).view(np.float64)


@compiled_in_order
def expm1_32(x: np.float32) -> np.float32:
    """``e^x − 1`` in single precision, exact in the small: the result is relative to x."""
    x = min(max(x, np.float32(-87.0)), np.float32(87.0))
    rounded = x * np.float32(_LOG2_E) + _ROUND_32
    whole = rounded - _ROUND_32
    r = x - whole * np.float32(_LN2_HIGH) - whole * np.float32(_LN2_LOW)
    t = _TAYLOR_32[7]
    for n in range(6, 0, -1):
        t = t * r + _TAYLOR_32[n]
    power = (np.float32(rounded).view(np.int32) + np.int32(127)) << np.int32(23)
    scale = np.int32(power).view(np.float32)
    return scale * (t * r) + (scale - np.float32(1.0))


def _scaled_tail(t: np.ndarray) -> np.ndarray:
    """Return ``e^{u²} erfc(u)`` for u ≥ 0, as a function of t = 1/(1 + u/2) in (0, 1]."""
    return erfcx(2 / np.maximum(t, 1e-12) - 2)


# A polynomial in t: its Chebyshev interpolant, good to 1e-9.
_TAIL = tuple(
    chebyshev.Chebyshev.interpolate(_scaled_tail, 14, domain=[0, 1])
    .convert(kind=np.polynomial.Polynomial)
    .coef.tolist()
)
_SQRT_HALF = math.sqrt(0.5)
_NORMAL = 1 / math.sqrt(2 * math.pi)


@compiled
def gelu(x: float) -> float:
    """``x Φ(x)``, Φ the distribution function of the standard normal."""
    return x * _normal(x)[0]


@compiled
def gelu_slope(x: float) -> float:
    """Compute the derivative of :func:`gelu`, ``Φ(x) + x φ(x)``."""
    below, density = _normal(x)
    return below + x * density


@compiled
def _normal(x: float) -> tuple[float, float]:
    """Return Φ(x) and φ(x) of the standard normal; both need one exponential."""
    u = abs(x) * _SQRT_HALF
    bell = exp(-u * u)
    t = 1 / (1 + 0.5 * u)
    tail = _TAIL[14]
    for n in range(13, -1, -1):
        tail = tail * t + _TAIL[n]
    tail *= 0.5 * bell  # Φ(−|x|)
    return (tail if x < 0 else 1 - tail), bell * _NORMAL
