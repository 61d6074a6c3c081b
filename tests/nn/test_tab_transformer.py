import pytest
import torch
from torch import nn
from torch.autograd import gradcheck

from fcorr.nn.car import car_cda, exchange_features
from fcorr.nn.layers import dropout_from
from fcorr.nn.multihead_attention import MultiheadSelfAttention
from fcorr.nn.tab_transformer import ColumnEmbedding, TabTransformer, TransformerLayer


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=1):
    return torch.randn(*shape, dtype=torch.float64, generator=seeded(seed))


def torchs_attention(attention):
    """Copy the weights into torch's own multi-head attention."""
    d_embedding = attention.mix.in_features
    reference = nn.MultiheadAttention(d_embedding, attention.n_heads, batch_first=True).double()
    projections = (attention.query, attention.key, attention.value)
    with torch.no_grad():
        reference.in_proj_weight.copy_(torch.cat([layer.weight for layer in projections]))
        reference.in_proj_bias.copy_(torch.cat([layer.bias for layer in projections]))
    reference.out_proj.load_state_dict(attention.mix.state_dict())
    return reference


def torchs_layer(layer):
    """Copy the weights into torch's own encoder layer."""
    d_embedding = layer.widen.in_features
    reference = nn.TransformerEncoderLayer(
        d_embedding,
        layer.attention.n_heads,
        layer.widen.out_features,
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=False,
    ).double()
    reference.self_attn = torchs_attention(layer.attention)
    for ours, theirs in (
        (layer.attention_norm, reference.norm1),
        (layer.widen, reference.linear1),
        (layer.narrow, reference.linear2),
        (layer.feed_forward_norm, reference.norm2),
    ):
        theirs.load_state_dict(ours.state_dict())
    return reference


def shake_norms(module):
    """Move every LayerNorm away from its neutral start, where a swapped one would not show."""
    for norm in module.modules():
        if isinstance(norm, nn.LayerNorm):
            nn.init.uniform_(norm.weight, 0.5, 1.5, generator=seeded(5))
            nn.init.uniform_(norm.bias, -0.5, 0.5, generator=seeded(6))
    return module


@pytest.fixture
def model():
    model = TabTransformer(
        [2, 4, 3], n_numeric=2, head=(5,), d_embedding=8, n_layers=2, n_heads=2, generator=seeded()
    )
    return shake_norms(model.double())


X_CAT = torch.tensor([[0, 3, 1], [1, 0, 2], [1, 1, 0], [0, 2, 2]])


def test_attention_matches_torchs():
    attention = MultiheadSelfAttention(12, 3, generator=seeded()).double()
    x = normal(4, 5, 12)
    expected, weights = torchs_attention(attention)(x, x, x, average_attn_weights=False)
    torch.testing.assert_close(attention(x), expected)
    torch.testing.assert_close(attention.weights(x), weights)


def test_layer_matches_torchs_values_and_gradients():
    layer = shake_norms(TransformerLayer(8, 2, generator=seeded()).double())
    ours, theirs = (normal(3, 5, 8).requires_grad_() for _ in range(2))
    output, expected = layer(ours), torchs_layer(layer)(theirs)
    torch.testing.assert_close(output, expected)
    weight = normal(3, 5, 8, seed=2)
    (output * weight).sum().backward()
    (expected * weight).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_column_embedding_matches_tables_per_feature():
    embed = ColumnEmbedding([2, 4, 3], 8, 2, generator=seeded()).double()
    tables = embed.category.split([2, 4, 3])
    for b, codes in enumerate(X_CAT.tolist()):
        for f, code in enumerate(codes):
            expected = torch.cat([embed.column[f], tables[f][code]])
            assert torch.equal(embed(X_CAT)[b, f], expected)


def test_model_matches_torchs_parts(model):
    x_num = normal(4, 2)
    encoder = nn.Sequential(*(torchs_layer(layer) for layer in model.layers))
    context = encoder(model.embedding(X_CAT)).reshape(4, -1)
    norm = model.numeric_norm
    numbers = nn.functional.layer_norm(x_num, (2,), norm.weight, norm.bias)
    expected = model.head(torch.hstack([context, numbers]))
    torch.testing.assert_close(model(X_CAT, x_num), expected)


def test_gradients_by_finite_differences(model):
    names, parameters = zip(*model.named_parameters(), strict=True)

    def forward(x_num, *values):
        state = dict(zip(names, values, strict=True))
        return torch.func.functional_call(model, state, (X_CAT, x_num))

    assert gradcheck(forward, (normal(4, 2).requires_grad_(), *parameters), fast_mode=True)


def test_attention_is_shown_layer_by_layer(model):
    first, second = model.attention_by_layer(X_CAT)
    h = model.embedding(X_CAT)
    expected = []
    for layer in model.layers:
        expected.append(torchs_attention(layer.attention)(h, h, h, average_attn_weights=False)[1])
        h = layer(h)
    torch.testing.assert_close((first, second), tuple(expected))
    torch.testing.assert_close(model.attention_weights(X_CAT, normal(4, 2)), first.mean(1))


def test_car_reads_its_attention(model):
    x_num = normal(4, 2)
    exchanges = exchange_features(model.cat_cardinalities, 2, [1])
    losses = car_cda(model, X_CAT, x_num, exchanges)
    assert losses.shape == (4,)
    assert (losses > 0).all()
    with torch.no_grad():
        model.embedding.category[2:6] = model.embedding.category[2]  # its four categories, alike
    assert (car_cda(model, X_CAT, x_num, exchanges) == 0).all()


def test_sizes_are_the_papers_by_default():
    model = TabTransformer([2, 3], n_numeric=4, generator=seeded())
    n_in = 2 * 32 + 4
    assert [layer.out_features for layer in model.head.hidden] == [4 * n_in, 2 * n_in]
    assert (len(model.layers), model.layers[0].attention.n_heads) == (6, 8)
    assert model.embedding.column.shape == (2, 4)
    assert model.embedding.category.shape == (5, 28)
    assert model.n_parameters == sum(p.numel() for p in model.parameters())


def test_weights_and_dropout_come_from_the_generator_alone():
    state = torch.get_rng_state()
    x = (X_CAT, torch.zeros(4, 1))

    def outputs(seed):
        model = TabTransformer([2, 4, 3], 1, head=(4,), dropout=0.5, generator=seeded(seed))
        with dropout_from(seeded(seed)):
            return model(*x)

    assert torch.equal(outputs(0), outputs(0))
    assert not torch.equal(outputs(0), outputs(1))
    assert torch.equal(torch.get_rng_state(), state)


def test_refused_sizes():
    with pytest.raises(ValueError, match="multiple of n_heads, got 10 and 4"):
        TabTransformer([2], 1, d_embedding=10, n_heads=4)
    with pytest.raises(ValueError, match="cat_cardinalities must name at least one"):
        TabTransformer([], 3)
    with pytest.raises(ValueError, match="n_layers must be at least 1, got 0"):
        TabTransformer([2], 3, n_layers=0)
