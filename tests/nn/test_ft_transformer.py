import pytest
import rtdl_revisiting_models as rtdl
import torch
from torch import nn
from torch.autograd import gradcheck
from torch.nn.functional import binary_cross_entropy_with_logits

from fcorr.nn import FTTransformer, car_cda
from fcorr.nn.car import exchange_features
from fcorr.nn.ft_transformer import FTTransformerLayer, default_sizes
from fcorr.nn.layers import Dropout, dropout_from

X_CAT = torch.tensor([[0, 3, 1], [1, 0, 2], [1, 1, 0], [0, 2, 2]])


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=1):
    return torch.randn(*shape, dtype=torch.float64, generator=seeded(seed))


def shake(model):
    """Move LayerNorms and zero biases away from their start, where a mix-up would not show."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or name.endswith("bias"):
                shift = torch.empty_like(parameter).uniform_(-0.5, 0.5, generator=seeded(5))
                parameter.add_(shift)
    return model


def make(cardinalities=(2, 4, 3), n_numeric=2, **kwargs):
    sizes = {"d_embedding": 8, "n_layers": 2, "n_heads": 2} | kwargs
    return FTTransformer(cardinalities, n_numeric, generator=seeded(), **sizes)


@pytest.fixture
def model():
    return shake(make().double()).eval()


def parts(model):
    """Pair each of our parameters, or a piece of it, with its name in the authors' model."""
    tokenizer, n_categorical = model.tokenizer, len(model.cat_cardinalities)
    named = {"cls_embedding.weight": model.cls[0]}
    if n_categorical:
        tables = tokenizer.category.split(model.cat_cardinalities)
        named |= {f"cat_embeddings.embeddings.{i}.weight": t for i, t in enumerate(tables)}
        named["cat_embeddings.bias"] = tokenizer.bias[:n_categorical]
    if len(tokenizer.slope):
        named["cont_embeddings.weight"] = tokenizer.slope
        named["cont_embeddings.bias"] = tokenizer.bias[n_categorical:]
    modules = {"backbone.output.normalization": model.head_norm}
    modules["backbone.output.linear"] = model.head.output
    for i, layer in enumerate(model.layers):
        block = f"backbone.blocks.{i}"
        modules |= {
            f"{block}.attention_normalization": layer.attention_norm,
            f"{block}.attention.W_q": layer.attention.query,
            f"{block}.attention.W_k": layer.attention.key,
            f"{block}.attention.W_v": layer.attention.value,
            f"{block}.attention.W_out": layer.attention.mix,
            f"{block}.ffn_normalization": layer.feed_forward_norm,
            f"{block}.ffn.linear1": layer.widen,
            f"{block}.ffn.linear2": layer.narrow,
        }
    for prefix, module in modules.items():
        named |= {f"{prefix}.{name}": p for name, p in module.named_parameters()}
    return named


def authors_model(model, **backbone):
    """Copy the weights into the authors' own model; all of its weights, or loading fails."""
    reference = rtdl.FTTransformer(
        n_cont_features=len(model.tokenizer.slope),
        cat_cardinalities=list(model.cat_cardinalities),
        d_out=model.head.output.out_features,
        **backbone,
    )
    reference.load_state_dict(parts(model))
    return reference.double().eval()


def authors_output(reference, x_cat, x_num):
    return reference(x_num if x_num.shape[1] else None, x_cat if x_cat.shape[1] else None)


def check_equality(model, reference, x_cat, x_num):
    """Outputs, gradients of all weights, gradient of the numbers."""
    ours_num, theirs_num = (x_num.clone().requires_grad_() for _ in range(2))
    output = model(x_cat, ours_num)
    expected = authors_output(reference, x_cat, theirs_num)
    torch.testing.assert_close(output, expected)
    pull = normal(*output.shape, seed=2)
    (output * pull).sum().backward()
    (expected * pull).sum().backward()
    if x_num.shape[1]:
        torch.testing.assert_close(ours_num.grad, theirs_num.grad)
    for parameter in model.parameters():
        parameter.data = parameter.grad  # so that the parts are those of the gradient
    theirs = {name: parameter.grad for name, parameter in reference.named_parameters()}
    torch.testing.assert_close({name: part.detach() for name, part in parts(model).items()}, theirs)


@pytest.mark.parametrize("n_layers", [1, 2, 3])
@pytest.mark.parametrize(
    ("cardinalities", "n_numeric"),
    [((2, 4, 3), 2), ((2, 4, 3), 0), ((), 2), ((3,), 0), ((), 1)],
    ids=["both", "categories", "numbers", "one category", "one number"],
)
@pytest.mark.parametrize(
    ("n_heads", "d_hidden", "n_outputs"), [(2, 5, 1), (1, 16, 3)], ids=["heads", "head"]
)
def test_equals_the_authors_model(cardinalities, n_numeric, n_layers, n_heads, d_hidden, n_outputs):
    sizes = {"n_layers": n_layers, "n_heads": n_heads, "d_hidden": d_hidden}
    model = make(cardinalities, n_numeric, n_outputs=n_outputs, **sizes)
    model = shake(model.double()).eval()
    reference = authors_model(
        model,
        n_blocks=n_layers,
        d_block=8,
        attention_n_heads=n_heads,
        attention_dropout=0.2,
        ffn_d_hidden=d_hidden,
        ffn_d_hidden_multiplier=None,
        ffn_dropout=0.1,
        residual_dropout=0.1,
    )
    x_cat = X_CAT.clamp(max=2)[:, : len(cardinalities)]
    check_equality(model, reference, x_cat, normal(4, n_numeric))


@pytest.mark.parametrize("n_layers", [1, 3])
def test_default_sizes_are_the_authors(n_layers):
    model = FTTransformer([2, 4, 3], 2, generator=seeded(), **default_sizes(n_layers))
    model = shake(model.double()).eval()
    reference = authors_model(model, **rtdl.FTTransformer.get_default_kwargs(n_layers))
    assert model.n_parameters == sum(p.numel() for p in reference.parameters())
    check_equality(model, reference, X_CAT, normal(4, 2))


@pytest.mark.parametrize("n_layers", range(1, 7))
def test_default_dropouts_are_the_authors(n_layers):
    theirs = rtdl.FTTransformer.get_default_kwargs(n_layers)
    assert default_sizes(n_layers) == {
        "n_layers": n_layers,
        "d_embedding": theirs["d_block"],
        "attention_dropout": theirs["attention_dropout"],
        "feed_forward_dropout": theirs["ffn_dropout"],
    }


def test_three_layers_are_the_default():
    model = FTTransformer([2], 1)
    layer = model.layers[0]
    sizes = default_sizes(3)
    assert len(model.layers) == 3
    assert model.cls.shape == (1, sizes["d_embedding"])
    assert layer.attention.n_heads == 8
    assert layer.attention.dropout.rate == sizes["attention_dropout"]
    assert layer.feed_forward_dropout.rate == sizes["feed_forward_dropout"]
    assert layer.residual_dropout.rate == 0


def test_initial_weights_are_drawn_as_the_authors_draw_them():
    """Biases of the attention are zero; everything else has the same spread."""
    model = FTTransformer([40, 50], 60, generator=seeded(), n_layers=2, d_embedding=64)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        reference = rtdl.FTTransformer(
            n_cont_features=60,
            cat_cardinalities=[40, 50],
            d_out=1,
            **(rtdl.FTTransformer.get_default_kwargs(2) | {"d_block": 64}),
        )
    theirs = dict(reference.named_parameters())
    for name, ours in parts(model).items():
        if ours.numel() > 1:  # the largest of many draws is near the bound of all
            largest = theirs[name].abs().max().item()
            assert ours.abs().max().item() == pytest.approx(largest, rel=0.2), name


def test_hidden_layers_of_the_head():
    model = shake(make(head=(6, 5)).double()).eval()
    x_num = normal(4, 2)
    h = model.tokens(X_CAT, x_num)
    for layer in model.layers:
        h = layer(h)
    expected = model.head(torch.relu(model.head_norm(h[:, -1])))
    torch.testing.assert_close(model(X_CAT, x_num), expected)
    assert [layer.out_features for layer in model.head.hidden] == [6, 5]


def test_gradients_by_finite_differences(model):
    names, parameters = zip(*model.named_parameters(), strict=True)

    def forward(x_num, *values):
        state = dict(zip(names, values, strict=True))
        return torch.func.functional_call(model, state, (X_CAT, x_num))

    assert gradcheck(forward, (normal(4, 2).requires_grad_(), *parameters), fast_mode=True)


def test_dropout_is_where_the_authors_have_it():
    """Rebuild a training pass with the drawn masks in the places that the paper names."""
    rates = {"attention_dropout": 0.3, "feed_forward_dropout": 0.2, "residual_dropout": 0.1}
    layer = shake(FTTransformerLayer(8, 2, 5, generator=seeded(), **rates).double())
    x = normal(4, 6, 8)
    with dropout_from(seeded(7)):
        output = layer(x)
    with dropout_from(seeded(7)):
        z = layer.attention_norm(x)
        value = layer.attention.value(z).unflatten(2, (2, -1)).transpose(1, 2)
        heads = Dropout(0.3)(layer.attention_weights(x)) @ value
        a = x + Dropout(0.1)(layer.attention.mix(heads.transpose(1, 2).flatten(2)))
        u, v = layer.widen(layer.feed_forward_norm(a)).split(5, dim=2)
        expected = a + Dropout(0.1)(layer.narrow(Dropout(0.2)(u * v.clamp(min=0))))
    torch.testing.assert_close(output, expected)
    assert not torch.allclose(output, layer.eval()(x))


def attention_by_torch(layer, x):
    """Compute the attention matrices by torch's own multi-head attention."""
    attention = layer.attention
    reference = nn.MultiheadAttention(8, attention.n_heads, batch_first=True).double()
    projections = (attention.query, attention.key, attention.value)
    with torch.no_grad():
        reference.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
        reference.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
    z = layer.attention_norm(x)
    return reference(z, z, z, average_attn_weights=False)[1]


def test_attention_is_shown_layer_by_layer(model):
    x_num = normal(4, 2)
    first, second = model.attention_by_layer(X_CAT, x_num)
    h = model.tokens(X_CAT, x_num)
    torch.testing.assert_close(first, attention_by_torch(model.layers[0], h))
    torch.testing.assert_close(second, attention_by_torch(model.layers[1], model.layers[0](h)))
    assert first.shape == (4, 2, 6, 6)
    torch.testing.assert_close(model.attention_weights(X_CAT, x_num), first.mean(1)[:, :5, :5])


def test_attention_has_features_in_order_and_cls_last(model):
    """A feature whose key is long and aligned with every query draws all attention to its place."""
    x_num = normal(4, 2)
    place_of = {"bias": [0, 1, 2, 3, 4], "cls": [5]}
    for name, places in place_of.items():
        for row, place in enumerate(places):
            changed = make().double().eval()
            for layer in (changed.layers[0].attention.query, changed.layers[0].attention.key):
                nn.init.zeros_(layer.weight)
                nn.init.zeros_(layer.bias)
            nn.init.ones_(changed.layers[0].attention.query.bias)
            nn.init.ones_(changed.layers[0].attention.key.weight)
            with torch.no_grad():
                tokens = changed.cls if name == "cls" else changed.tokenizer.bias
                tokens[row] += 100
            first = next(changed.attention_by_layer(X_CAT, x_num))
            assert (first.argmax(3) == place).all()


def test_car_reads_its_attention(model):
    x_num = normal(4, 2)
    exchanges = exchange_features(model.cat_cardinalities, 2, [1])
    losses = car_cda(model, X_CAT, x_num, exchanges)
    assert losses.shape == (4,)
    assert (losses > 0).all()
    losses.sum().backward()
    assert model.tokenizer.category.grad[2:6].abs().sum() > 0
    with torch.no_grad():
        model.tokenizer.category[2:6] = model.tokenizer.category[2]  # its four categories, alike
    assert (car_cda(model, X_CAT, x_num, exchanges) == 0).all()


def test_car_reads_numbers_and_combinations_too(model):
    x_num = normal(4, 2)
    grid = torch.tensor([-1.0, 0.0, 2.0])
    number = exchange_features(model.cat_cardinalities, 2, [4], grids={4: grid})
    both = exchange_features(model.cat_cardinalities, 2, [1, 4], grids={4: grid}, combinations=True)
    for exchanges in (number, both):
        assert (car_cda(model, X_CAT, x_num, exchanges) > 0).all()
    with torch.no_grad():
        model.tokenizer.slope[1] = 0
    assert (car_cda(model, X_CAT, x_num, number) == 0).all()
    assert (car_cda(model, X_CAT, x_num, both) > 0).all()
    with torch.no_grad():
        model.tokenizer.category[2:6] = model.tokenizer.category[2]
    assert (car_cda(model, X_CAT, x_num, both) == 0).all()


def test_car_does_not_depend_on_dropout():
    model = make(attention_dropout=0.5, residual_dropout=0.5).double()
    x_num = normal(4, 2)
    exchanges = exchange_features(model.cat_cardinalities, 2, [1])
    training = car_cda(model, X_CAT, x_num, exchanges)
    assert torch.equal(training, car_cda(model.eval(), X_CAT, x_num, exchanges))


def test_weights_and_dropout_come_from_the_generator_alone():
    state = torch.get_rng_state()
    x = (X_CAT, torch.zeros(4, 2))

    def outputs(seed):
        rates = {"feed_forward_dropout": 0.5, "residual_dropout": 0.5}
        model = FTTransformer([2, 4, 3], 2, d_embedding=16, **rates, generator=seeded(seed))
        with dropout_from(seeded(seed)):
            return model(*x)

    assert torch.equal(outputs(0), outputs(0))
    assert not torch.equal(outputs(0), outputs(1))
    assert torch.equal(torch.get_rng_state(), state)


def test_single_precision_agrees_with_double():
    model, x_num = make().eval(), normal(4, 2)
    single = model(X_CAT, x_num.float())
    assert single.dtype == torch.float32
    assert model.attention_weights(X_CAT, x_num.float()).dtype == torch.float32
    torch.testing.assert_close(single.double(), model.double()(X_CAT, x_num), rtol=1e-5, atol=1e-6)


def test_steps_lower_the_loss():
    model, x_num = make(), normal(4, 2).float()
    target = torch.tensor([[0.0], [1.0], [1.0], [0.0]])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    with dropout_from(seeded()):
        for _ in range(40):
            loss = binary_cross_entropy_with_logits(model(X_CAT, x_num), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_refused_sizes():
    with pytest.raises(ValueError, match="multiple of n_heads, got 10 and 4"):
        FTTransformer([2], 1, d_embedding=10, n_heads=4)
    with pytest.raises(ValueError, match="at least one feature, categorical or numeric, got none"):
        FTTransformer([], 0)
    with pytest.raises(ValueError, match="n_layers must be at least 1, got 0"):
        FTTransformer([2], 3, n_layers=0)
    with pytest.raises(ValueError, match="1 to 6 layers, got n_layers=7"):
        default_sizes(7)
