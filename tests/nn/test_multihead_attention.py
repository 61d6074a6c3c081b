import pytest
import torch
from torch.autograd import gradcheck

from fcorr.nn.layers import Dropout, dropout_from
from fcorr.nn.multihead_attention import MultiheadSelfAttention, attention_received


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=1):
    return torch.randn(*shape, dtype=torch.float64, generator=seeded(seed))


def values_by_head(attention, x):
    return attention.value(x).unflatten(2, (attention.n_heads, -1)).transpose(1, 2)


def test_some_queries_are_some_rows_of_the_whole():
    attention = MultiheadSelfAttention(8, 2, generator=seeded()).double()
    x = normal(4, 5, 8)
    torch.testing.assert_close(attention(x, x[:, 3:]), attention(x)[:, 3:])


@pytest.mark.parametrize("n_heads", [1, 2, 4])
def test_products_of_queries_and_keys_are_the_logits(n_heads):
    attention = MultiheadSelfAttention(8, n_heads, generator=seeded()).double()
    x = normal(4, 3, 8)
    queries, keys = attention.queries_and_keys(x)
    assert queries.shape == keys.shape == (4, n_heads, 3, 8 // n_heads)
    torch.testing.assert_close(torch.softmax(queries @ keys.mT, 3), attention.weights(x))


def test_single_head_is_not_mixed():
    attention = MultiheadSelfAttention(6, 1, generator=seeded()).double()
    x = normal(4, 5, 6)
    scores = attention.query(x) @ attention.key(x).transpose(1, 2) / 6**0.5
    torch.testing.assert_close(attention(x), torch.softmax(scores, 2) @ attention.value(x))
    assert sum(p.numel() for p in attention.parameters()) == 3 * (6 * 6 + 6)


def test_dropout_drops_attention_weights():
    attention = MultiheadSelfAttention(8, 2, dropout=0.5, generator=seeded()).double()
    x = normal(4, 5, 8)
    with dropout_from(seeded(3)):
        dropped = attention(x)
    with dropout_from(seeded(3)):
        heads = Dropout(0.5)(attention.weights(x)) @ values_by_head(attention, x)
    torch.testing.assert_close(dropped, attention.mix(heads.transpose(1, 2).flatten(2)))
    torch.testing.assert_close(
        attention.eval()(x),
        attention.mix(
            (attention.weights(x) @ values_by_head(attention, x)).transpose(1, 2).flatten(2)
        ),
    )


def test_dropout_comes_from_the_generator_alone():
    attention = MultiheadSelfAttention(8, 2, dropout=0.5, generator=seeded())
    state = torch.get_rng_state()
    x = normal(4, 5, 8).float()

    def output(seed):
        with dropout_from(seeded(seed)):
            return attention(x)

    assert torch.equal(output(0), output(0))
    assert not torch.equal(output(0), output(1))
    assert torch.equal(torch.get_rng_state(), state)


def test_gradients_by_finite_differences_with_and_without_dropout():
    attention = MultiheadSelfAttention(4, 2, dropout=0.3, generator=seeded()).double()

    def forward(x):
        with dropout_from(seeded(3)):
            return attention(x)

    x = normal(2, 3, 4).requires_grad_()
    assert gradcheck(forward, x)
    assert gradcheck(attention.eval(), x)
    assert gradcheck(attention.weights, x)


def test_attention_received_is_the_column_sum():
    attention = torch.softmax(normal(3, 4, 4), dim=2)
    for b in range(3):
        for j in range(4):
            expected = sum(attention[b, i, j] for i in range(4))
            torch.testing.assert_close(attention_received(attention)[b, j], expected)


def test_refused_sizes():
    with pytest.raises(ValueError, match="n_heads must be at least 1, got 0"):
        MultiheadSelfAttention(8, 0)
    with pytest.raises(ValueError, match="multiple of n_heads, got 10 and 4"):
        MultiheadSelfAttention(10, 4)
