"""The networks the paper compares with: by their authors' code, torch's layers, definitions."""

import numpy as np
import pandas as pd
import pytest
import rtdl_revisiting_models as rtdl
import torch
from sklearn.base import clone
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import one_hot

from fcorr import InvalidInputError
from fcorr.data.encode import encode
from fcorr.data.tables import read_table
from fcorr.nn.car import exchange_features, paper_weight
from fcorr.nn.layers import Dropout, dropout_from
from fcorr.training.objective import binary_log_loss
from fcorr.training.pack import PAPERS
from fcorr.training.rows import Rows
from paper.augmentation import exchange_combinations
from paper.baselines.car import BaselineObjective, TokenwiseModel, car_cda, car_columns
from paper.baselines.estimators import ARCHITECTURES, PlacedNumbers, make_baseline
from paper.baselines.ffn import FeedForwardNetwork
from paper.baselines.ft_transformer import FTTransformer, FTTransformerLayer
from paper.baselines.tab_transformer import TabTransformer

CARDINALITIES, N_NUMERIC = (2, 4, 3), 2
X_CAT = torch.tensor([[0, 3, 1], [1, 0, 2], [1, 1, 0], [0, 2, 2]])
GRIDS = {3: torch.tensor([-1.5, 0.0, 2.0]), 4: torch.tensor([0.5, 1.0])}
NETWORKS = (FTTransformer, TabTransformer, FeedForwardNetwork)
each_transformer = pytest.mark.parametrize("network", NETWORKS[:2])


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=1):
    return torch.randn(*shape, dtype=torch.float64, generator=seeded(seed))


def shake(model):
    """Move LayerNorms and biases away from their start, where a mix-up would not show."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or name.endswith("bias"):
                shift = torch.empty_like(parameter).uniform_(-0.5, 0.5, generator=seeded(5))
                parameter.add_(shift)
    return model


def make(network, cardinalities=CARDINALITIES, n_numeric=N_NUMERIC, **sizes):
    sizes = {"d_embedding": 8, "n_layers": 2, "n_heads": 2} | sizes
    if network is FeedForwardNetwork:
        sizes = {"head": (5, 4)}
    model = network(cardinalities, n_numeric, generator=seeded(), **sizes)
    return shake(model.double()).eval()


# ------------------------------------------------------------ FT-Transformer, its authors' model


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


def authors_model(cardinalities, n_numeric, n_outputs=1, **changed):
    backbone = rtdl.FTTransformer.get_default_kwargs(3) | changed
    table = {"n_cont_features": n_numeric, "cat_cardinalities": list(cardinalities)}
    return rtdl.FTTransformer(**table, d_out=n_outputs, **backbone)


@pytest.mark.parametrize(
    ("cardinalities", "n_numeric", "n_layers", "n_heads", "n_outputs"),
    [
        ((2, 4, 3), 2, 3, 2, 1),
        ((2, 4, 3), 2, 1, 1, 3),
        ((2, 4, 3), 0, 2, 1, 1),
        ((), 2, 2, 2, 3),
        ((3,), 0, 1, 2, 1),
        ((), 1, 1, 2, 1),
    ],
)
def test_ft_transformer_equals_the_authors(cardinalities, n_numeric, n_layers, n_heads, n_outputs):
    """Outputs, gradients of all weights, gradient of the numbers."""
    sizes = {"n_layers": n_layers, "n_heads": n_heads, "n_outputs": n_outputs}
    model = make(FTTransformer, cardinalities, n_numeric, **sizes)
    blocks = {"n_blocks": n_layers, "d_block": 8, "attention_n_heads": n_heads}
    reference = authors_model(cardinalities, n_numeric, n_outputs, **blocks)
    reference.load_state_dict(parts(model))  # all of its weights, or loading fails
    reference.double().eval()
    x_cat, x_num = X_CAT.clamp(max=2)[:, : len(cardinalities)], normal(4, n_numeric)
    ours_num, theirs_num = (x_num.clone().requires_grad_() for _ in range(2))
    output = model(x_cat, ours_num)
    expected = reference(theirs_num if n_numeric else None, x_cat if cardinalities else None)
    torch.testing.assert_close(output, expected)
    pull = normal(*output.shape, seed=2)
    (output * pull).sum().backward()
    (expected * pull).sum().backward()
    if n_numeric:
        torch.testing.assert_close(ours_num.grad, theirs_num.grad)
    for parameter in model.parameters():
        parameter.data = parameter.grad  # so that the parts are those of the gradient
    theirs = {name: parameter.grad for name, parameter in reference.named_parameters()}
    torch.testing.assert_close({name: part.detach() for name, part in parts(model).items()}, theirs)


def test_default_sizes_and_initial_weights_are_the_authors():
    """Biases of the attention are zero; everything else has the same spread."""
    model = FTTransformer([40, 50], 60, generator=seeded())
    with torch.random.fork_rng():
        torch.manual_seed(0)
        reference = authors_model([40, 50], 60)
    theirs, named = dict(reference.named_parameters()), parts(model)
    assert {name: p.shape for name, p in named.items()} == {n: p.shape for n, p in theirs.items()}
    for name, ours in named.items():
        if ours.numel() > 1:  # the largest of many draws is near the bound of all
            largest = theirs[name].abs().max().item()
            assert ours.abs().max().item() == pytest.approx(largest, rel=0.2), name
    rates, layer = rtdl.FTTransformer.get_default_kwargs(3), model.layers[0]
    assert layer.attention.dropout.rate == rates["attention_dropout"]
    assert layer.feed_forward_dropout.rate == rates["ffn_dropout"]


def test_dropout_is_where_the_authors_have_it():
    """Rebuild a training pass with the drawn masks in the places that the paper names."""
    rates = {"attention_dropout": 0.3, "feed_forward_dropout": 0.2}
    layer = shake(FTTransformerLayer(8, 2, generator=seeded(), **rates).double())
    x = normal(4, 6, 8)
    with dropout_from(seeded(7)):
        output = layer(x)
    with dropout_from(seeded(7)):
        z = layer.attention_norm(x)
        value = layer.attention.value(z).unflatten(2, (2, -1)).transpose(1, 2)
        heads = Dropout(0.3)(layer.attention.weights(z)) @ value
        a = x + layer.attention.mix(heads.transpose(1, 2).flatten(2))
        u, v = layer.widen(layer.feed_forward_norm(a)).chunk(2, dim=2)
        expected = a + layer.narrow(Dropout(0.2)(u * v.clamp(min=0)))
    torch.testing.assert_close(output, expected)
    assert not torch.allclose(output, layer.eval()(x))


# ------------------------------------------------------------ the others, by torch's own layers


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
    sizes = layer.widen.in_features, layer.attention.n_heads, layer.widen.out_features
    options = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": False}
    reference = nn.TransformerEncoderLayer(*sizes, **options).double()
    reference.self_attn = torchs_attention(layer.attention)
    reference.norm1.load_state_dict(layer.attention_norm.state_dict())
    reference.linear1.load_state_dict(layer.widen.state_dict())
    reference.linear2.load_state_dict(layer.narrow.state_dict())
    reference.norm2.load_state_dict(layer.feed_forward_norm.state_dict())
    return reference


def test_tab_transformer_equals_torchs_parts():
    model, x_num = make(TabTransformer, head=(5,)), normal(4, 2)
    tables, names = model.embedding.category.split(CARDINALITIES), model.embedding.column
    vectors = [
        torch.stack([torch.cat([names[f], tables[f][code]]) for f, code in enumerate(codes)])
        for codes in X_CAT.tolist()
    ]
    embedded, attention = torch.stack(vectors), model.layers[0].attention
    _, weights = torchs_attention(attention)(*[embedded] * 3)  # their mean over the heads
    torch.testing.assert_close(model.attention_weights(X_CAT, x_num), weights)
    context = nn.Sequential(*map(torchs_layer, model.layers))(embedded).reshape(4, -1)
    norm = model.numeric_norm
    numbers = nn.functional.layer_norm(x_num, (2,), norm.weight, norm.bias)
    expected = model.head(torch.hstack([context, numbers]))
    torch.testing.assert_close(model(X_CAT, x_num), expected)
    without = make(TabTransformer, head=(5,), numeric_norm=False)
    assert torch.equal(without.numeric_norm(x_num), x_num)
    authors = TabTransformer([2, 3], n_numeric=4)  # their sizes by default
    assert [layer.out_features for layer in authors.head.hidden] == [4 * 68, 2 * 68]
    assert (len(authors.layers), authors.layers[0].attention.n_heads) == (6, 8)
    assert [authors.embedding.column.shape[1], authors.embedding.category.shape[1]] == [4, 28]


@pytest.mark.parametrize("head", [(5, 4), ()], ids=["two", "linear"])
def test_ffn_equals_a_plain_stack_on_one_hot_vectors(head):
    model = FeedForwardNetwork(CARDINALITIES, 2, head, n_outputs=2, generator=seeded()).double()
    stack = [module for layer in model.network.hidden for module in (layer, nn.GELU())]
    columns, x_num = [one_hot(X_CAT[:, i], c) for i, c in enumerate(CARDINALITIES)], normal(4, 2)
    expected = nn.Sequential(*stack, model.network.output)(torch.cat([*columns, x_num], dim=1))
    torch.testing.assert_close(model(X_CAT, x_num), expected)


@pytest.mark.parametrize(
    ("n_features", "head", "total"),
    [(31, (128, 16, 128, 512), 74_897), (581, (512, 128, 128, 16, 32, 16), 383_313)],
    ids=["BAF", "InsurTech"],
)
def test_ffn_sizes_that_give_the_papers_counts(n_features, head, total):
    model = FeedForwardNetwork([], n_features, head)
    assert sum(p.numel() for p in model.parameters()) == total


@pytest.mark.parametrize(
    ("network", "arguments", "sizes", "message"),
    [
        (FTTransformer, ([2], 1), {"d_embedding": 10, "n_heads": 4}, "n_heads, got 10 and 4"),
        (FTTransformer, ([], 0), {}, "at least one feature, categorical or numeric, got none"),
        (FTTransformer, ([2], 3), {"n_layers": 0}, "n_layers must be at least 1, got 0"),
        (TabTransformer, ([2], 1), {"n_heads": 0}, "multiple of n_heads, got 32 and 0"),
        (TabTransformer, ([], 3), {}, "cat_cardinalities must name at least one"),
        (TabTransformer, ([2], 3), {"n_layers": 0}, "n_layers must be at least 1, got 0"),
        (FeedForwardNetwork, ([], 0), {}, "at least one feature, categorical or numeric, got none"),
    ],
)
def test_refused_sizes(network, arguments, sizes, message):
    with pytest.raises(ValueError, match=message):
        network(*arguments, **sizes)


# ------------------------------------------------------------ CAR


@pytest.mark.parametrize("place", range(6))
def test_attention_has_features_in_order_and_cls_last(place):
    """A feature whose key is long and aligned with every query draws all attention to its place."""
    model = make(FTTransformer)
    attention = model.layers[0].attention
    for parameter in (attention.query.weight, attention.key.bias):
        nn.init.zeros_(parameter)
    for parameter in (attention.query.bias, attention.key.weight):
        nn.init.ones_(parameter)
    with torch.no_grad():
        (model.tokenizer.bias if place < 5 else model.cls)[place % 5] += 100
    queries, keys = model.queries_and_keys(X_CAT, normal(4, 2))
    assert (torch.softmax(queries @ keys.mT, 3).argmax(3) == place).all()
    shown = model.attention_weights(X_CAT, normal(4, 2))
    assert shown.shape == (4, 5, 5)
    assert shown.sum().item() == pytest.approx(20 if place < 5 else 0, abs=1e-6)


def losses_and_gradients(form, model, rows, exchanges):
    losses = form(model, *rows, exchanges)
    # Rows weigh differently, so that no gradient of one row can stand in for another's.
    total = (losses * torch.arange(1, len(losses) + 1)).sum()
    names, parameters = zip(*model.named_parameters(), strict=True)
    pairs = zip(names, torch.autograd.grad(total, parameters, allow_unused=True), strict=True)
    return losses, {name: gradient for name, gradient in pairs if gradient is not None}


def assert_equal_to_the_definition(model, rows, exchanges, **tolerance):
    expected = losses_and_gradients(car_cda, model, rows, exchanges)
    measured = losses_and_gradients(car_columns, model, rows, exchanges)
    torch.testing.assert_close(measured, expected, **tolerance)
    return expected


def exchange(sensitive, *, combinations=False):
    exchange = exchange_combinations if combinations else exchange_features
    return exchange(CARDINALITIES, sensitive, grids=GRIDS)


@pytest.mark.parametrize("n_heads", [1, 2])
@pytest.mark.parametrize("combinations", [False, True])
@pytest.mark.parametrize(
    ("network", "sensitive"),
    [
        *((FTTransformer, of) for of in ([0], [2, 0, 1], [4, 3], [3, 1, 0])),
        *((TabTransformer, of) for of in ([2], [1, 2])),
    ],
    ids=str,
)
def test_car_by_columns_is_its_definition(network, sensitive, n_heads, combinations):
    model, rows = make(network, n_heads=n_heads), (X_CAT, normal(4, 2))
    exchanges = exchange(sensitive, combinations=combinations)
    losses, gradients = assert_equal_to_the_definition(model, rows, exchanges)
    assert (losses > 0).all()
    assert gradients["layers.0.attention.query.weight"].abs().max() > 0
    assert (car_columns(model, *rows, []) == 0).all()
    both = exchanges + exchange([0, 1], combinations=True)  # a feature in two exchanges
    assert_equal_to_the_definition(model, rows, both)


@each_transformer
def test_car_of_a_single_feature(network):
    """In TabTransformer it attends to itself alone, and to no other key."""
    model, rows = make(network, [3], 0), (X_CAT[:, 2:], normal(4, 0))
    losses, _ = assert_equal_to_the_definition(model, rows, exchange_features([3], [0]))
    assert (losses == 0).all() == (network is TabTransformer)


@each_transformer
@pytest.mark.parametrize("length", [500, 3000])
def test_car_where_a_feature_takes_all_of_the_attention_or_none(network, length):
    model, rows = make(network, n_heads=1), (X_CAT, normal(4, 2))
    categories = (model.tokenizer if network is FTTransformer else model.embedding).category
    with torch.no_grad():
        categories[2:6] *= length
    column = model.attention_weights(*rows)[:, :, 1]
    assert column.max() > 1 - 1e-12
    assert column.min() < 1e-12
    exchanges = exchange([0, 1])
    expected, _ = assert_equal_to_the_definition(model, rows, exchanges, rtol=1e-6, atol=1e-9)
    rows = rows[0], rows[1].float()
    losses, gradients = losses_and_gradients(car_columns, model.float(), rows, exchanges)
    torch.testing.assert_close(losses.double(), expected, rtol=1e-3, atol=1e-3)
    assert all(gradient.isfinite().all() for gradient in gradients.values())


@each_transformer
def test_values_that_a_row_has_already_change_nothing(network):
    """Exactly: the paper's weight would divide by a rounding error."""
    cardinalities = (1, *range(2, 11))
    model = network(cardinalities, 2, d_embedding=64, n_layers=1, n_heads=4, generator=seeded())
    codes = torch.stack([torch.randint(c, (200,), generator=seeded(c)) for c in cardinalities], 1)
    (single,) = exchange_features(cardinalities, [0])
    assert (car_columns(model, codes, normal(200, 2).float(), [single]) == 0).all()


def test_the_fused_kernel_and_the_matrix_agree_on_many_features(monkeypatch):
    """In single precision, as in training: both are as near to the definition."""
    cardinalities = (7, *[2] * 120)
    options = {"d_embedding": 32, "n_layers": 1, "n_heads": 2, "generator": seeded()}
    model = FTTransformer(cardinalities, 80, **options)
    codes = torch.stack([torch.randint(c, (6,), generator=seeded(c)) for c in cardinalities], 1)
    numbers, exchanges = normal(6, 80), exchange_features(cardinalities, [0, 5])
    expected, slopes = losses_and_gradients(car_cda, model.double(), (codes, numbers), exchanges)
    rows, steepest = (codes, numbers.float()), max(slope.abs().max() for slope in slopes.values())
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # an error, were it not possible
        car_columns(model.float(), *rows, exchanges)
    for largest in (0.99, 0.0):  # no share is below 0: all take the matrix
        monkeypatch.setattr("paper.baselines.car._LARGEST_SHARE", largest)
        losses, gradients = losses_and_gradients(car_columns, model.float(), rows, exchanges)
        torch.testing.assert_close(losses.double(), expected, rtol=1e-4, atol=0)
        found = {name: gradient.double() for name, gradient in gradients.items()}
        torch.testing.assert_close(found, slopes, rtol=1e-3, atol=float(1e-5 * steepest))


@each_transformer
def test_what_training_minimises(network):
    batch = Rows(X_CAT, normal(4, 2).float(), torch.tensor([0.0, 1.0, 1.0, 0.0]), torch.ones(4))
    model = make(network).float().eval()
    assert isinstance(model, TokenwiseModel)
    options = {"exchanges": exchange([1])}
    total, performance, car = BaselineObjective(model, binary_log_loss, car=7.0, **options)(batch)
    torch.testing.assert_close(total, performance + 7 * car)
    definition = car_cda(model, batch.x_cat, batch.x_num, options["exchanges"]).mean()
    torch.testing.assert_close(car, definition)
    objective = BaselineObjective(model, binary_log_loss, car="paper", numbers_per_row=7, **options)
    objective.settle_weight(batch)
    assert objective.car_weight == paper_weight(performance.item(), car.item())
    assert objective.numbers_per_row(batch) == 7
    # Of a share of the rows: the performance loss is of all of them; so is what is only measured.
    some = BaselineObjective(model, binary_log_loss, car=7.0, car_rows=0.3, **options)
    torch.testing.assert_close(some(batch), (total, performance, car))
    first = car_cda(model, batch.x_cat[:2], batch.x_num[:2], options["exchanges"]).mean()
    model.train()
    found = some(batch)
    if network is TabTransformer:  # without dropout by default
        torch.testing.assert_close(found[1:], (performance, first))


# ------------------------------------------------------------ estimators

TINY = {
    "ft_transformer": {"d_embedding": 8, "n_layers": 2, "n_heads": 2},
    "tab_transformer": {"d_embedding": 8, "n_layers": 2, "n_heads": 2, "head": (8,)},
    "ffn": {"head": (16, 8)},
}
each_name = pytest.mark.parametrize("network", TINY)
each_attentive = pytest.mark.parametrize("network", ["ft_transformer", "tab_transformer"])


def make_table(n=400):
    rng = np.random.default_rng(7)
    sex, job = rng.choice(["f", "m"], n), rng.choice(["clerk", "nurse", "pilot"], n)
    age, income = rng.normal(40, 10, n), rng.lognormal(size=n)
    score = (sex == "m") + 2.0 * (job == "nurse") + (age - 40) / 10 + np.log(income)
    X = pd.DataFrame({"sex": sex, "job": job, "age": age, "income": income})
    return X, score + rng.normal(size=n)


X, SCORE = make_table()
Y = (np.median(SCORE) < SCORE).astype(int)


def classifier(network, **options):
    settings = {"network_options": TINY[network], "epochs": 3, "random_state": 0}
    return make_baseline(network, "classification", **settings | options)


def encoded_rows(model):
    encoded = encode(read_table(X), model.schema_)
    return torch.from_numpy(encoded.codes), torch.from_numpy(encoded.numbers)


@each_name
def test_estimators_learn_and_are_in_balance(network, monkeypatch):
    groups, adamw = [], torch.optim.AdamW
    monkeypatch.setattr(torch.optim, "AdamW", lambda g, **o: groups.extend(g) or adamw(g, **o))
    model = classifier(network, epochs=25, learning_rate=0.01).fit(X, Y)
    assert model.score(X, Y) > 0.75
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(Y.mean(), abs=1e-9)
    assert not model.exact_
    assert clone(model).get_params() == model.get_params()
    # Weights of linear layers decay, and nothing else does.
    assert (groups[0]["weight_decay"], groups[1]["weight_decay"]) == (1e-5, 0.0)
    linear = {id(layer.weight) for layer in model.model_.modules() if isinstance(layer, nn.Linear)}
    assert {id(p) for p in groups[0]["params"]} == linear
    options = {"network_options": TINY[network], "epochs": 25, "learning_rate": 0.01}
    other = make_baseline(network, "regression", random_state=0, **options).fit(X, SCORE)
    assert other.score(X, SCORE) > 0.5
    assert other.predict(X).mean() == pytest.approx(SCORE.mean(), rel=1e-6)
    defaults = ARCHITECTURES[network].defaults  # the network's own
    assert defaults.items() <= make_baseline(network, "regression").get_params().items()


@each_name
def test_same_seed_same_bits_whatever_threads(network, monkeypatch):
    monkeypatch.setattr("fcorr.training.loop._TWO_SLICES", 2)
    monkeypatch.setattr("fcorr.training.rows._WORTH_A_THREAD", 1)
    sizes = TINY[network] | ({"attention_dropout": 0.5} if network == "ft_transformer" else {})
    options = {"sensitive": "sex", "batch_size": 128, "network_options": sizes}
    options["car"] = None if network == "ffn" else 10.0
    state, before = torch.get_rng_state(), torch.get_num_threads()
    models = []
    try:
        for n_threads, seed in ((1, 0), (2, 0), (1, 1)):
            torch.set_num_threads(n_threads)
            models.append(classifier(network, **options, random_state=seed).fit(X, Y))
    finally:
        torch.set_num_threads(before)
    one, same, other = (torch.cat([p.flatten() for p in m.model_.parameters()]) for m in models)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), state)
    scores = models[0].predict_proba(X)
    monkeypatch.setattr("fcorr.training.rows._CHUNK_NUMBERS", 1)
    # But for rounding: torch adds up in an order that depends on the rows beside a row.
    np.testing.assert_allclose(models[0].predict_proba(X), scores, rtol=0, atol=1e-6)


@each_attentive
def test_car_lowers_the_attention_change(network):
    plain, fair, papers = (
        classifier(network, sensitive="sex", epochs=10, learning_rate=0.01, car=car).fit(X, Y)
        for car in (None, 1e4, "paper")
    )
    exchanges = exchange_features(plain.schema_.cardinalities, [0])
    with torch.no_grad():
        before, after = (
            car_cda(of.model_, *encoded_rows(of), exchanges).mean() for of in (plain, fair)
        )
    assert after < 0.05 * before
    assert fair.score(X, Y) > 0.75
    assert (plain.history_.car_weight, fair.history_.car_weight) == (None, 1e4)
    power = np.log10(papers.history_.car_weight)
    assert power == round(power)
    assert all(record.car > 0 for record in papers.history_.epochs)


def test_car_of_numbers_exchanges_their_places():
    model = classifier("ft_transformer", sensitive="age", car=1.0).fit(X, Y)
    assert model.history_.epochs[-1].car > 0
    (raw,) = model._exchanges(encode(read_table(X), model.schema_), torch.device("cpu"))
    (placed,) = model._objective(model.model_, (raw,), PAPERS, 0.0).exchanges
    sizes = len(model.schema_.categorical), len(model.schema_.feature_names)
    located = model.model_.locate(raw.rows(*sizes)[1])
    assert torch.equal(placed.values[:, 0], located[:, raw.features[0] - sizes[0]])
    assert not torch.equal(placed.values, raw.values)


def test_attention_and_significance(monkeypatch):
    model = classifier("ft_transformer", sensitive="income").fit(X, Y)
    matrix = model.attention(X)
    assert matrix.names == ("income", "sex", "job", "age")
    with torch.no_grad():
        expected = model.model_.attention_weights(*encoded_rows(model)).double().mean(0).numpy()
    order = [list(model.schema_.feature_names).index(name) for name in matrix.names]
    np.testing.assert_allclose(matrix.values, expected[np.ix_(order, order)], rtol=1e-6)
    assert (matrix.values.sum(1) < 1).all()  # the rest is paid to CLS
    received = dict(zip(matrix.names, matrix.values.sum(0), strict=True))
    assert model.feature_significance() == pytest.approx(received)
    tab = classifier("tab_transformer", sensitive="job").fit(X, Y)
    assert tab.attention(X).names == ("job", "sex")  # between categories alone
    assert set(tab.feature_significance()) == {"sex", "job"}
    ffn = classifier("ffn").fit(X, Y)
    with pytest.raises(InvalidInputError, match="a transformer, got layer 0 of 'ffn'"):
        ffn.attention(X)
    assert ffn.feature_significance() == {}
    # Of large tables, every so many-th row is looked at.
    monkeypatch.setattr("paper.baselines.estimators._ATTENTION_ENTRIES", len(X) * 4**2 / 2.5)
    some = classifier("ft_transformer", sensitive="income").fit(X, Y)
    matrix = model.attention(X.iloc[::3])
    received = dict(zip(matrix.names, matrix.values.sum(0), strict=True))
    assert some.feature_significance() == pytest.approx(received)
    assert some.feature_significance() != pytest.approx(model.feature_significance())


@pytest.mark.parametrize(
    ("network", "options", "message"),
    [
        ("ffn", {"sensitive": "sex", "car": 1.0}, r"car needs attention to regularise, got 1\.0"),
        (
            "tab_transformer",
            {"sensitive": ["sex", "age"], "car": 1.0},
            r"needs categorical sensitive columns: .* got numbers in 'age'\. Cut them into groups",
        ),
        (
            "tab_transformer",
            {"kinds": {"sex": "numeric", "job": "numeric"}},
            r"needs a categorical column, .* got numbers only",
        ),
        ("tab_transformer", {"kinds": {"sex": "x"}}, "kinds"),
        ("ffn", {"epochs": 0}, "epochs must be an integer of at least 1, or 'auto', got 0"),
        ("ffn", {"network_options": {"d_embeding": 8}}, "d_embeding"),
    ],
)
def test_refusals(network, options, message):
    rows = X.assign(sex=X["age"], job=X["age"]) if len(options.get("kinds", ())) == 2 else X
    with pytest.raises((InvalidInputError, TypeError), match=message):
        classifier(network, **options).fit(rows, Y)


def test_places_spread_over_rows_and_values():
    rng = np.random.default_rng(0)
    gain = np.where(rng.uniform(size=5_000) < 0.9, 0, rng.lognormal(8, 1, 5_000))
    columns = [gain, rng.normal(size=5_000), np.full(5_000, 3.0)]
    numbers = np.stack(columns, axis=1).astype(np.float32)
    model = PlacedNumbers(nn.Identity(), numbers)
    placed = model.locate(torch.from_numpy(numbers)).numpy()
    np.testing.assert_allclose(placed.std(0), [1, 1, 0], atol=1e-5)
    assert np.abs(placed).max() < 6 < np.abs((gain - gain.mean()) / gain.std()).max()
    for i in range(2):  # by numpy's own interpolation
        knots = model.knots[i][model.knots[i].isfinite()].numpy()
        places = np.interp(numbers[:, i], knots, np.arange(len(knots)))
        expected = (places - places.mean()) / places.std()
        np.testing.assert_allclose(placed[:, i], expected, atol=1e-5)
    ends = torch.tensor([[3e38, -3e38, 3.0], [numbers[:, 0].max(), numbers[:, 1].min(), 3.0]])
    assert torch.equal(*model.locate(ends))  # far from training counts as its ends
