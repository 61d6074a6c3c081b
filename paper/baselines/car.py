"""CAR of transformers whose features are vectors, and what their training minimises.

The definition is :func:`car_cda` (paper, equation 2): exchange the sensitive category, run the
model again, compare the columns of the first attention matrix. :func:`car_columns` gives the same
without running anything again.
"""

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from fcorr.nn.car import Exchange
from fcorr.training.objective import CarWeight, Loss, Objective
from fcorr.training.rows import Rows, TrainingRows

_SMALLEST_SHARE, _LARGEST_SHARE = 1e-30, 0.99  # between which a share tells what the others have


@runtime_checkable
class TokenwiseModel(Protocol):
    """A model whose first layer makes each query and key of one feature alone."""

    def queries_and_keys(self, x_cat: Tensor, x_num: Tensor) -> tuple[Tensor, Tensor]:
        """First-layer queries ``(B, n_heads, F, d_head)`` and keys ``(B, n_heads, T, d_head)``.

        Their products are the logits of the attention. Both are those of the features, categorical
        ones first; behind them there may be keys of other tokens, such as CLS.
        """
        ...


class BaselineObjective(Objective):
    """``L_perf + λ L_CAR`` of any network, with CAR by its definition.

    Parameters
    ----------
    model : nn.Module
        ``model(x_cat, x_num)`` are its outputs; with CAR, ``model.attention_weights(x_cat, x_num)``
        its attention. One that has ``queries_and_keys`` is asked for them instead, and CAR is
        computed by :func:`car_columns`, which is the same but for rounding.
    loss, exchanges, car
        See :class:`fcorr.training.objective.Objective`.
    car_rows : float, default=1.0
        Share of a batch's rows that CAR is computed of in training: the first, as batches are in no
        order. A validation and the paper's rule take all rows.
    numbers_per_row : int, default=1
        Size of one row's step, in numbers of a table that FCorrTransformer would read.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        *,
        exchanges: Sequence[Exchange] = (),
        car: CarWeight = None,
        car_rows: float = 1.0,
        numbers_per_row: int = 1,
    ) -> None:
        super().__init__(cast(Any, model), loss, exchanges=exchanges, car=car)
        self.car_rows = car_rows
        self._numbers_per_row = numbers_per_row

    def numbers_per_row(self, rows: TrainingRows) -> int:
        """Size of one row's step, as the model's owner says."""
        return self._numbers_per_row

    def _outputs(self, batch: Rows) -> Tensor:
        return self.model(batch.x_cat, batch.x_num)

    def _outputs_and_car(self, batch: Rows) -> tuple[Tensor, Tensor]:
        outputs = self._outputs(batch)
        n_rows = math.ceil(self.car_rows * len(batch)) if self.model.training else len(batch)
        rows = batch.x_cat[:n_rows], batch.x_num[:n_rows], self.exchanges
        model: Any = self.model
        if isinstance(model, TokenwiseModel):
            return outputs, car_columns(model, *rows)
        return outputs, car_cda(model, *rows)


class AttentiveModel(Protocol):
    """Any model that shows how its features attend to each other."""

    def attention_weights(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """First-layer attention matrix ``(B, F, F)``, categorical features first."""
        ...


def car_cda(
    model: AttentiveModel, x_cat: Tensor, x_num: Tensor, exchanges: Sequence[Exchange]
) -> Tensor:
    """CAR by counterfactual data augmentation (equation 2) of each row ``(B,)``: C + 1 matrices."""
    attention_BFF = model.attention_weights(x_cat, x_num)
    losses = torch.zeros_like(attention_BFF[:, 0, 0])
    for exchange in exchanges:
        own = list(exchange.features)
        for flipped_cat, flipped_num in exchange_rows(exchange, x_cat, x_num):
            counterfactual_BFF = model.attention_weights(flipped_cat, flipped_num)
            change_BFS = attention_BFF[:, :, own] - counterfactual_BFF[:, :, own]
            losses = losses + change_BFS.square().sum((1, 2)) / len(exchange)
    return losses


def exchange_rows(
    exchange: Exchange, x_cat: Tensor, x_num: Tensor
) -> Iterator[tuple[Tensor, Tensor]]:
    """Make each exchange in turn in all rows: C pairs of codes and numbers."""
    n_categorical = x_cat.shape[1]
    for values_S in exchange.values:
        flipped_cat, flipped_num = x_cat.clone(), x_num.clone()
        for feature, value in zip(exchange.features, values_S, strict=True):
            if feature < n_categorical:
                flipped_cat[:, feature] = value
            else:
                flipped_num[:, feature - n_categorical] = value
        yield flipped_cat, flipped_num


def car_columns(
    model: TokenwiseModel, x_cat: Tensor, x_num: Tensor, exchanges: Sequence[Exchange]
) -> Tensor:
    """Compute :func:`car_cda` of each row ``(B,)``, in the time of one attention and C columns.

    An exchange of the features σ leaves all other queries and keys as they are, so that a row of
    the softmax needs no more of the other keys than their log-sum-exp: the same before and after
    the exchange in the rows of the other features, a new one in the rows of σ. That takes
    O(C·|σ|·p·d) time and O(C·|σ|·p) memory per row, beside the O(p²·d) time of the log-sum-exp.
    """
    q_BHFE, k_BHTE = model.queries_and_keys(x_cat, x_num)
    losses = torch.zeros_like(q_BHFE[:, 0, 0, 0])
    watched = sorted({feature for exchange in exchanges for feature in exchange.features})
    if not watched:
        return losses
    k_never_BHRE = _take(k_BHTE, [t for t in range(k_BHTE.shape[2]) if t not in watched])
    log_never_BHF = _log_sum_of_others(q_BHFE, k_BHTE, watched)
    for exchange in exchanges:
        own = list(exchange.features)
        k_elsewhere_BHGE = _take(k_BHTE, [sigma for sigma in watched if sigma not in own])
        log_others_BHF = _log_add(log_never_BHF, q_BHFE @ k_elsewhere_BHGE.mT)
        columns_BFS = _columns(q_BHFE @ _take(k_BHTE, own).mT, log_others_BHF)

        value_cat, value_num = exchange.rows(x_cat.shape[1], x_cat.shape[1] + x_num.shape[1])
        value_num = value_num.to(x_num.dtype)
        q_CHSE, k_CHSE = (_take(x, own) for x in model.queries_and_keys(value_cat, value_num))
        # Keys come first so that the features lie side by side in memory, as in log_others_BHF.
        logits_BCHFS = torch.einsum("chse,bhfe->bchfs", k_CHSE, q_BHFE)
        exchanged_BCFS = _columns(logits_BCHFS, log_others_BHF.unsqueeze(1))
        # In the rows of the exchanged features, the queries are exchanged too.
        own_log_others_BCHS = _log_add(
            torch.einsum("chse,bhre->bchsr", q_CHSE, k_never_BHRE).logsumexp(4),
            torch.einsum("chse,bhge->bchsg", q_CHSE, k_elsewhere_BHGE),
        )
        exchanged_BCFS = exchanged_BCFS.index_copy(
            2,
            torch.tensor(own, device=x_cat.device),
            _columns(q_CHSE @ k_CHSE.mT, own_log_others_BCHS),
        )
        change_BC = (columns_BFS.unsqueeze(1) - exchanged_BCFS).square().sum((2, 3))
        # Exactly 0 where a row has the values already; the two columns differ in their rounding.
        x_BS = torch.cat([x_cat, x_num], 1)[:, own]
        values_CS = torch.cat([value_cat, value_num], 1)[:, own]
        losses = losses + (change_BC * (x_BS.unsqueeze(1) != values_CS).any(2)).mean(1)
    return losses


def _log_sum_of_others(q_BHFE: Tensor, k_BHTE: Tensor, watched: list[int]) -> Tensor:
    """Log-sum-exp of the logits of all keys but the watched ones: ``(B, n_heads, F)``.

    Torch's fused attention, which makes no matrix, tells it by the share w that the watched keys
    have: the others' sum is theirs times (1 − w)/w. That loses digits where w is next to 1, and all
    of them where it is 0; such batches take matrices, one row's at a time.
    """
    values_BHTE = torch.zeros_like(k_BHTE)  # the fused kernel wants them whole
    values_BHTE[:, :, watched] = 1.0
    share_BHF = scaled_dot_product_attention(q_BHFE, k_BHTE, values_BHTE, scale=1.0)[..., 0]
    least, largest = torch.aminmax(share_BHF.detach())
    if least > _SMALLEST_SHARE and largest < _LARGEST_SHARE:
        log_watched_BHF = (q_BHFE @ _take(k_BHTE, watched).mT).logsumexp(3)
        return log_watched_BHF + torch.log1p(-share_BHF) - share_BHF.log()
    k_others_BHRE = _take(k_BHTE, [t for t in range(k_BHTE.shape[2]) if t not in watched])
    rows = zip(q_BHFE.split(1), k_others_BHRE.split(1), strict=True)
    return torch.cat([checkpoint(_log_sum, *row, use_reentrant=False) for row in rows])


def _log_sum(q_BHFE: Tensor, k_BHTE: Tensor) -> Tensor:
    return torch.logsumexp(q_BHFE @ k_BHTE.mT, 3)


def _take(x_BHTE: Tensor, tokens: list[int]) -> Tensor:
    return x_BHTE.index_select(2, torch.tensor(tokens, dtype=torch.long, device=x_BHTE.device))


def _columns(logits_HFS: Tensor, log_others_HF: Tensor) -> Tensor:
    """Columns of the softmax over some keys and others whose log-sum-exp is known: ``(..., F, S)``.

    The mean over the heads. Both arguments may have further dimensions in front. A key's share is
    the logistic function of its logit less the log-sum-exp of all keys but itself.
    """
    columns = []
    for s, logit_HF in enumerate(logits_HFS.unbind(-1)):
        rest_HFS = torch.cat([logits_HFS[..., :s], logits_HFS[..., s + 1 :]], -1)
        columns.append(torch.sigmoid(logit_HF - _log_add(log_others_HF, rest_HFS)).mean(-2))
    return torch.stack(columns, -1)


def _log_add(log_sum_HF: Tensor, logits_HFS: Tensor) -> Tensor:
    """Add a few more keys to a log-sum-exp."""
    return reduce(torch.logaddexp, logits_HFS.unbind(-1), log_sum_HF)
