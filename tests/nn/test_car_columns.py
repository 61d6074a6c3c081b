"""CAR of the baselines from columns alone, against its definition."""

import pytest
import torch
from torch.autograd import gradcheck
from torch.nn.attention import SDPBackend, sdpa_kernel

from fcorr.nn import FCorrTransformer, FeedForwardNetwork, FTTransformer, TabTransformer
from fcorr.nn.car import TokenwiseModel, car_cda, car_columns, exchange_features

CARDINALITIES = (3, 2, 4)
N_NUMERIC = 2
GRIDS = {3: torch.tensor([-1.5, 0.0, 2.0]), 4: torch.tensor([0.5, 1.0])}

each_network = pytest.mark.parametrize("network", [FTTransformer, TabTransformer])


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def make(network, cardinalities=CARDINALITIES, n_numeric=N_NUMERIC, *, n_heads=2):
    model = network(
        cardinalities, n_numeric, d_embedding=8, n_layers=2, n_heads=n_heads, generator=seeded()
    ).double()
    attention = model.layers[0].attention
    with torch.no_grad():
        for layer in (attention.query, attention.key):
            layer.bias.uniform_(-1, 1, generator=seeded(1))
    return model


def make_rows(cardinalities=CARDINALITIES, n_numeric=N_NUMERIC, n_rows=9):
    codes = [torch.randint(c, (n_rows,), generator=seeded(c)) for c in cardinalities]
    numbers = torch.randn(n_rows, n_numeric, dtype=torch.float64, generator=seeded(2))
    return torch.stack(codes, dim=1), numbers


def exchange(sensitive, combinations=False):
    return exchange_features(
        CARDINALITIES, N_NUMERIC, sensitive, grids=GRIDS, combinations=combinations
    )


def losses_and_gradients(form, model, rows, exchanges):
    losses = form(model, *rows, exchanges)
    # Rows weigh differently, so that no gradient of one row can stand in for another's.
    total = (losses * torch.arange(1, len(losses) + 1)).sum()
    gradients = torch.autograd.grad(total, list(model.parameters()), allow_unused=True)
    names = [name for name, _ in model.named_parameters()]
    pairs = zip(names, gradients, strict=True)
    return losses, {name: gradient for name, gradient in pairs if gradient is not None}


def assert_equal_to_the_definition(model, rows, exchanges, **tolerance):
    expected = losses_and_gradients(car_cda, model, rows, exchanges)
    measured = losses_and_gradients(car_columns, model, rows, exchanges)
    torch.testing.assert_close(measured, expected, **tolerance)
    return expected


@each_network
@pytest.mark.parametrize("n_heads", [1, 2, 4])
@pytest.mark.parametrize("combinations", [False, True])
@pytest.mark.parametrize("sensitive", [[0], [2], [1, 2], [2, 0, 1]], ids=str)
def test_categories(network, n_heads, combinations, sensitive):
    model = make(network, n_heads=n_heads)
    exchanges = exchange(sensitive, combinations)
    losses, gradients = assert_equal_to_the_definition(model, make_rows(), exchanges)
    assert (losses > 0).all()
    assert gradients["layers.0.attention.query.weight"].abs().max() > 0


@pytest.mark.parametrize("n_heads", [1, 2])
@pytest.mark.parametrize("combinations", [False, True])
@pytest.mark.parametrize("sensitive", [[3], [4, 3], [0, 4], [3, 1, 0], list(range(5))], ids=str)
def test_numbers(n_heads, combinations, sensitive):
    model = make(FTTransformer, n_heads=n_heads)
    exchanges = exchange(sensitive, combinations)
    losses, gradients = assert_equal_to_the_definition(model, make_rows(), exchanges)
    assert (losses > 0).all()
    assert gradients["cls"].abs().max() > 0  # CLS is among the keys


@each_network
def test_a_feature_in_two_exchanges(network):
    exchanges = exchange([0, 1]) + exchange([1, 2], combinations=True)
    assert_equal_to_the_definition(make(network), make_rows(), exchanges)


@each_network
def test_a_single_feature(network):
    """In TabTransformer it attends to itself alone, and to no other key."""
    exchanges = exchange_features([3], 0, [0])
    losses, _ = assert_equal_to_the_definition(make(network, [3], 0), make_rows([3], 0), exchanges)
    assert (losses == 0).all() == (network is TabTransformer)


@each_network
@pytest.mark.parametrize("combinations", [False, True])
@pytest.mark.parametrize("length", [500, 3000])
def test_a_feature_that_takes_all_of_the_attention_or_none(network, combinations, length):
    model, rows = make(network, n_heads=1), make_rows()
    categories = (model.tokenizer if network is FTTransformer else model.embedding).category
    with torch.no_grad():
        categories[: CARDINALITIES[0]] *= length
    column = model.attention_weights(*rows)[:, :, 0]
    assert column.max() > 1 - 1e-12
    assert column.min() < 1e-12
    exchanges = exchange([0, 2], combinations)
    expected, _ = assert_equal_to_the_definition(model, rows, exchanges, rtol=1e-6, atol=1e-9)
    queries, keys = model.queries_and_keys(*rows)
    assert (queries @ keys.mT).exp().float().isinf().any()
    rows = rows[0], rows[1].float()
    losses, gradients = losses_and_gradients(car_columns, model.float(), rows, exchanges)
    torch.testing.assert_close(losses.double(), expected, rtol=1e-3, atol=1e-3)
    assert all(gradient.isfinite().all() for gradient in gradients.values())


@each_network
def test_gradients_by_finite_differences(network):
    model = make(network, (2, 3), 1)
    rows = make_rows((2, 3), 1, n_rows=2)
    exchanges = exchange_features((2, 3), 1, [0]) + exchange_features(
        (2, 3), 1, [0, 1], combinations=True
    )
    assert gradcheck(
        lambda *_: car_columns(model, *rows, exchanges), tuple(model.parameters()), fast_mode=True
    )


@each_network
def test_values_that_a_row_has_already_change_nothing(network):
    """Exactly: the paper's weight would divide by a rounding error."""
    cardinalities = (1, *range(2, 11))
    options = {"d_embedding": 64, "n_layers": 1, "n_heads": 4, "generator": seeded()}
    model = network(cardinalities, 2, **options)
    codes, numbers = make_rows(cardinalities, 2, n_rows=200)
    (single,) = exchange_features(cardinalities, 2, [0])
    assert (car_columns(model, codes, numbers.float(), [single]) == 0).all()


@each_network
def test_other_entries_of_an_exchange_have_no_part(network):
    model, rows = make(network), make_rows()
    (sex,) = exchange([1])
    other = type(sex)(sex.features, sex.x_cat.clone(), sex.x_num + 1)
    other.x_cat[:, [0, 2]] += 1
    assert torch.equal(car_columns(model, *rows, [sex]), car_columns(model, *rows, [other]))


@each_network
def test_no_exchange_no_loss(network):
    assert (car_columns(make(network), *make_rows(), []) == 0).all()


def test_models_that_make_queries_and_keys_of_one_feature_each():
    for network in (FTTransformer, TabTransformer):
        assert isinstance(make(network), TokenwiseModel)
    assert not isinstance(FCorrTransformer([2, 3], 1), TokenwiseModel)
    assert not isinstance(FeedForwardNetwork([2, 3], 1), TokenwiseModel)


def test_the_fused_kernel_and_the_matrix_agree_on_many_features(monkeypatch):
    """In single precision, as in training: both are as near to the definition."""
    cardinalities = (7, *[2] * 120)
    options = {"d_embedding": 32, "n_layers": 1, "n_heads": 2, "generator": seeded()}
    model = FTTransformer(cardinalities, 80, **options)
    codes, numbers = make_rows(cardinalities, 80, n_rows=6)
    exchanges = exchange_features(cardinalities, 80, [0, 5])
    expected, slopes = losses_and_gradients(car_cda, model.double(), (codes, numbers), exchanges)
    rows, steepest = (codes, numbers.float()), max(slope.abs().max() for slope in slopes.values())
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # an error, were it not possible
        car_columns(model.float(), *rows, exchanges)
    for largest in (0.99, 0.0):  # no share is below 0: all take the matrix
        monkeypatch.setattr("fcorr.nn.car._LARGEST_SHARE", largest)
        losses, gradients = losses_and_gradients(car_columns, model.float(), rows, exchanges)
        torch.testing.assert_close(losses.double(), expected, rtol=1e-4, atol=0)
        for name, slope in slopes.items():
            torch.testing.assert_close(
                gradients[name].double(), slope, rtol=1e-3, atol=float(1e-5 * steepest), msg=name
            )
