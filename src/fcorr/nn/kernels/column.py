"""CAR's loss from the columns of the attention matrix alone, and its gradient, row by row.

See :class:`fcorr.nn.car.ColumnChange` for what is computed. Here the difference of two entries of
the matrix is ``a_own · (e^{t δ} − 1)`` with δ the difference of the two embeddings: it keeps its
digits when the embeddings have all but met, which is where CAR leads them.
"""

import math

import numpy as np

from fcorr.nn.kernels.arithmetic import expm1_32
from fcorr.nn.kernels.compiling import compiled
from fcorr.nn.kernels.encoder import affine, normalize


@compiled
def column_change(h, columns, attended, norm, eps, categories, own, sizes, loss, d_own, d_extra):
    """Compute the loss of each row and its gradient by the sensitive features' embeddings.

    Parameters
    ----------
    h : ndarray of shape (B, F)
        Embeddings.
    columns : ndarray of shape (B, S, F)
        The attention every feature pays to each sensitive one.
    attended : ndarray of shape (B, S)
        The attention's output at each sensitive feature.
    norm : ndarray of shape (2, F)
        Weight and bias of the first LayerNorm.
    eps : float
        Of the LayerNorm.
    categories : ndarray of shape (ΣC,)
        Embeddings of every category of every sensitive feature.
    own, sizes : ndarrays of shape (S,)
        Position of each sensitive feature, and its number of categories.
    loss : ndarray of shape (B,)
        The loss of each row.
    d_own : ndarray of shape (B, S)
        Gradient by the embedding the row has.
    d_extra : ndarray of shape (B, ΣC)
        Gradient by the embedding of each category.
    """
    n = h.shape[1]
    root = math.sqrt(n)
    x, normed, z = np.empty(n), np.empty(n), np.empty(n)
    n_own, n_extra = len(own), len(categories)
    t = np.empty(n, dtype=np.float32)
    extra_sum = np.empty(n, dtype=np.float32)
    shared = np.empty(n, dtype=np.float32)
    a_own = np.empty((n_own, n), dtype=np.float32)
    ga_own = np.empty((n_own, n), dtype=np.float32)
    v = np.empty((n_extra, n), dtype=np.float32)
    for b in range(len(h)):
        for j in range(n):
            x[j] = h[b, j]
        scale = normalize(x, eps, normed)
        affine(normed, norm[0], norm[1], z)
        for i in range(n):
            t[i] = z[i] / root
            extra_sum[i] = 1.0
            shared[i] = 0.0
        start = 0
        for k in range(n_own):
            sigma = own[k]
            for i in range(n):
                a_own[k, i] = columns[b, k, i]
            step = scale * norm[0, sigma]
            for c in range(start, start + sizes[k]):
                delta = np.float32((categories[c] - x[sigma]) * step)
                relative_change(t, delta, a_own[k], v[c], extra_sum)
            start += sizes[k]
        start = 0
        total = 0.0
        for k in range(n_own):
            divide(a_own[k], extra_sum)
            clear(ga_own[k])
            for c in range(start, start + sizes[k]):
                total += change_of_entry(
                    a_own[k], v[c], np.float32(1 / sizes[k]), ga_own[k], shared
                )
            start += sizes[k]
        loss[b] = total
        start = 0
        for k in range(n_own):
            sigma = own[k]
            step = scale * norm[0, sigma]
            as_key = key_gradient(ga_own[k], a_own[k], shared, t)
            d_own[b, k] = as_key * step
            for c in range(start, start + sizes[k]):
                d_extra[b, c] = (
                    extra_gradient(a_own[k], v[c], np.float32(1 / sizes[k]), shared, t) * step
                )
            start += sizes[k]
        # As a query, a sensitive feature moves every exponent of its own row of the matrix.
        for k in range(n_own):
            i = own[k]
            through = -shared[i] * attended[b, k] / extra_sum[i]
            start = 0
            for m in range(n_own):
                sigma = own[m]
                through += z[sigma] * ga_own[m, i]
                step = scale * norm[0, sigma]
                for c in range(start, start + sizes[m]):
                    a = a_own[m, i] * (1 + v[c, i])
                    g = 2 / sizes[m] * a_own[m, i] * v[c, i]
                    extra = z[sigma] + (categories[c] - x[sigma]) * step
                    through += extra * a * (g - shared[i])
                start += sizes[m]
            d_own[b, k] += through / root * scale * norm[0, own[k]]


@compiled
def relative_change(t, delta, w_own, v, extra_sum):
    """Compute ``e^{t δ} − 1``, and add the extra key's weight to what the softmax divides by."""
    for i in range(len(t)):
        v[i] = expm1_32(t[i] * delta)
    for i in range(len(t)):
        extra_sum[i] += w_own[i] * (np.float32(1.0) + v[i])


@compiled
def divide(a, by):
    """Divide in place."""
    for i in range(len(a)):
        a[i] /= by[i]


@compiled
def clear(a):
    """Set to 0."""
    for i in range(len(a)):
        a[i] = np.float32(0.0)


@compiled
def change_of_entry(a_own, v, share, ga_own, shared):
    """Return a category's part of the loss; add its derivatives, each times its entry.

    With g = 2/C · (a_c − a_own): ``ga_own`` adds −g a_own, and ``shared`` adds g (a_c − a_own),
    the sum over both entries.
    """
    total = np.float32(0.0)
    for i in range(len(v)):
        change = a_own[i] * v[i]
        total += change * change
    for i in range(len(v)):
        change = a_own[i] * v[i]
        g = np.float32(2.0) * share * change
        ga_own[i] -= g * a_own[i]
        shared[i] += g * change
    return total * share


@compiled
def key_gradient(ga_own, a_own, shared, t):
    """Return the gradient by the sensitive feature's own normed embedding, as a key."""
    total = np.float32(0.0)
    for i in range(len(t)):
        total += (ga_own[i] - a_own[i] * shared[i]) * t[i]
    return total


@compiled
def extra_gradient(a_own, v, share, shared, t):
    """Return the gradient by one category's normed embedding, as a key."""
    total = np.float32(0.0)
    for i in range(len(t)):
        change = a_own[i] * v[i]
        entry = a_own[i] + change
        total += entry * (np.float32(2.0) * share * change - shared[i]) * t[i]
    return total
