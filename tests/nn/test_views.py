"""Views: the kernels side by side, embeddings, models, CAR and packs, each by another way."""

import itertools
import math

import pytest
import torch
from torch.nn.functional import gelu

from fcorr.nn import FCorrTransformer, car_sensitive
from fcorr.nn.car import exchange_features
from fcorr.nn.engine import use_engine
from fcorr.nn.fcorr import FCorrEncoderLayer, Pack
from fcorr.nn.kernels.encoder import LANES, SERIES
from fcorr.nn.layers import ViewEmbedding
from tests.nn.networks import (
    assert_all_close,
    compare_layers,
    compare_models,
    draw_rows,
    perturb,
    seeded,
)
from tests.nn.test_car import augmented_by_matrix

# ------------------------------------------------------------------------------- the kernels


def largest_exponents(layer, h):
    """The largest |t y| of each row, which decides on the way it takes."""
    z = layer.attention_norm(h)
    y = z - z.mean(-1, keepdim=True)
    return (z.abs().amax(-1) * y.abs().amax(-1) / math.sqrt(h.shape[-1])).detach()


LAYERS = [
    *itertools.product([70], [1, 2, 7, 31, 130], [0, 1, 2, 3], [False, True]),
    *((n_rows, 9, 2, False) for n_rows in (1, LANES - 1, LANES, LANES + 1, 2 * LANES + 3)),
]


@pytest.mark.parametrize(("n_rows", "n_features", "n_elementwise", "residual"), LAYERS)
def test_layer_side_by_side(n_rows, n_features, n_elementwise, residual):
    """Output and every gradient equal plain torch's in float64, for any number of rows."""
    options = {"n_elementwise": n_elementwise, "residual": residual, "generator": seeded()}
    layer = perturb(FCorrEncoderLayer(n_features, **options))
    # Of two features nearly alike LayerNorm divides by 0.003: it makes 300 roundings of one.
    atol = 6e-5 if n_features < 3 else 4e-6
    compare_layers(layer, torch.randn(n_rows, n_features, generator=seeded(1)), atol)


@pytest.mark.parametrize("factor", [0.3, 1.0, 2.0, 20.0])
@pytest.mark.parametrize("n_elementwise", [0, 2])
def test_rows_of_all_series_in_one_batch(n_elementwise, factor):
    """What a short series makes of rows that need another reaches no output and no gradient."""
    layer = perturb(FCorrEncoderLayer(30, n_elementwise=n_elementwise, generator=seeded()), 0.1)
    with torch.no_grad():
        layer.attention_norm.weight.mul_(factor)
    h = torch.randn(140, 30, generator=seeded(1))
    h[::3, 4] = 40.0  # one feature stands out: the row's largest |t y| is near √p times factor²
    exponents = largest_exponents(layer, h)
    of_row = torch.bucketize(exponents, torch.tensor([s[2] for s in SERIES]))
    assert len(of_row.unique()) > 1 or factor == 20
    # An exponent, or a slope of as much, is itself rounded to single precision.
    compare_layers(layer, h, atol=4e-6 + torch.finfo(h.dtype).eps * exponents.max().item())


def test_rows_of_equal_entries():
    """All keys are 0 about their mean, and the largest is nothing to divide by."""
    layer = FCorrEncoderLayer(5, n_elementwise=1, generator=seeded())
    compare_layers(layer, torch.full((3, 5), 0.7))


# ------------------------------------------------------------------------------ the embedding

CARDINALITIES = [3, 1, 4]
KNOTS = [torch.tensor([-1.0, 0.0, 2.0]), torch.tensor([0.5]), torch.linspace(-2, 2, 20)]


def make_embedding(n_views=3, **options):
    options.setdefault("learn_missing", True)
    embedding = ViewEmbedding(CARDINALITIES, KNOTS, n_views, generator=seeded(), **options)
    return perturb(embedding)


def make_rows(n_rows=50, *, missing=True, seed=1):
    missing = 0.2 if missing else 0.0
    codes, numbers = draw_rows(CARDINALITIES, len(KNOTS), n_rows, missing=missing, seed=seed)
    return codes, 1.5 * numbers


def run(embedding, codes, numbers):
    return embedding(codes, embedding.numbers.locate(numbers))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_every_view_has_mean_zero_over_its_rows(missing, weighted, each_engine):
    embedding, (codes, numbers) = make_embedding(learn_missing=missing), make_rows(missing=missing)
    weight = torch.rand(50, generator=seeded(2)) if weighted else None
    embedding.center_on(codes, embedding.numbers.locate(numbers), weight)
    embedded = run(embedding, codes, numbers).detach().double()
    shares = torch.ones(50) if weight is None else weight
    means = (embedded * (shares / shares.sum()).double()[:, None, None]).sum(0)
    assert means.abs().max() < 1e-6
    others = run(embedding, *make_rows(seed=5, missing=missing)).mean(0)
    assert others.abs().max() > 1e-3  # of other rows it is not 0


def test_a_view_by_hand(each_engine):
    """Categories are looked up, numbers interpolated, and a missing one has its own value."""
    embedding, (codes, numbers) = make_embedding(), make_rows()
    embedding.center_on(codes, embedding.numbers.locate(numbers))
    embedded = run(embedding, codes, numbers).detach()
    assert embedded.shape == (50, 3, 6)
    table = embedding.table.detach().split(CARDINALITIES)
    steps = embedding.steps.detach().split([len(k) for k in KNOTS])
    by_hand = torch.empty(50, 3, 6, dtype=torch.float64)
    for row in range(50):
        for j, categories in enumerate(table):
            by_hand[row, :, j] = categories[codes[row, j]]
        for j, (knots, feature_steps) in enumerate(zip(KNOTS, steps, strict=True)):
            x = numbers[row, j]
            value = feature_steps[0].double()
            for k in range(1, len(knots)):
                way = ((x - knots[k - 1]) / (knots[k] - knots[k - 1])).clamp(0, 1)
                value = value + way * feature_steps[k]
            by_hand[row, :, 3 + j] = embedding.missing.detach()[j] if x.isnan() else value
    by_hand -= by_hand.mean(0)
    torch.testing.assert_close(embedded.double(), by_hand, rtol=0, atol=2e-6)


def test_numbers_that_cannot_be_missing_are_nan_where_they_are(each_engine):
    embedding, (codes, numbers) = make_embedding(learn_missing=False), make_rows()
    embedded = run(embedding, codes, numbers)
    assert torch.equal(embedded[:, 0, 3:].isnan(), numbers.isnan())
    assert embedded[:, :, :3].isfinite().all()


@pytest.mark.parametrize("n_views", [1, 2, 4, 8, 11])
@pytest.mark.parametrize("n_rows", [1, 50])
def test_the_compiled_embedding_is_the_plain_one(n_views, n_rows):
    found = []
    for dtype, engine in ((torch.float32, "compiled"), (torch.float64, "plain")):
        embedding, (codes, numbers) = make_embedding(n_views).to(dtype), make_rows(n_rows)
        weight = torch.randn(n_rows, n_views, 6, generator=seeded(3)).to(dtype)
        with use_engine(engine):
            embedded = run(embedding, codes, numbers.to(dtype))
            parameters = list(embedding.parameters())
            gradients = torch.autograd.grad((weight * embedded).sum(), parameters)
        found.append([embedded.detach(), *gradients])
    assert_all_close(*found, atol=1e-5)


def test_penalty_by_hand():
    embedding = make_embedding()
    rough = slope = 0.0
    for steps in embedding.steps.detach().double().split([len(k) for k in KNOTS]):
        values = steps.cumsum(0)
        for k in range(1, len(values) - 1):
            rough += float((values[k - 1] - 2 * values[k] + values[k + 1]).square().sum())
        # The integral of the squared slope, with the knots evenly between 0 and 1.
        width = 1 / max(1, len(values) - 1)
        slope += float(((values[1:] - values[:-1]) / width).square().sum() * width)
    found = float(embedding.penalty(3.0, 0.7).detach())
    values = torch.cat([embedding.table, embedding.missing]).detach().double()
    effects = float(values.square().sum()) + slope / 3
    assert found == pytest.approx(0.5 * (3.0 * rough + 0.7 * effects), rel=1e-5)
    codes_only = ViewEmbedding([3], [], 2, generator=seeded())
    expected = 0.35 * float(codes_only.table.detach().square().sum())
    assert float(codes_only.penalty(3.0, 0.7).detach()) == pytest.approx(expected)


@pytest.mark.parametrize("sparsity", [0.0, 3.0, 30.0])
def test_sparse_penalty_by_hand(sparsity):
    """A feature's size r counts as the integral of ``2 r / √(1 + a² r²)``: r², or 2 r/a."""
    embedding = make_embedding().double()
    table, missing = embedding.table.split(CARDINALITIES), embedding.missing
    steps = embedding.steps.split([len(k) for k in KNOTS])
    sizes = [values.norm() for values in table]
    for each, lack in zip(steps, missing, strict=True):
        slopes = each[1:] * math.sqrt((len(each) - 1) / 3)
        sizes.append(torch.cat([slopes.flatten(), lack]).norm())

    def counted(size):
        grid = torch.linspace(0, 1, 20_001, dtype=torch.float64) * size
        return torch.trapezoid(2 * grid / (1 + (sparsity * grid) ** 2).sqrt(), grid)

    expected = 0.35 * sum(float(counted(size.detach())) for size in sizes)
    found = embedding.penalty(0.0, 0.7, sparsity)
    assert float(found.detach()) == pytest.approx(expected, rel=1e-6)
    # The pull on a feature is that of the square up to a size of 1/a, and then stays as it is.
    pull = torch.autograd.grad(found, embedding.table)[0].split(CARDINALITIES)[0].norm()
    size = float(sizes[0].detach())
    assert float(pull) == pytest.approx(0.7 * size / math.sqrt(1 + (sparsity * size) ** 2))


def test_gradient_of_the_penalty():
    embedding = make_embedding(2).double()
    parameters = dict(embedding.named_parameters())

    def penalty(*values):
        replaced = dict(zip(parameters, values, strict=True))
        wrapped = Penalized(embedding)
        return torch.func.functional_call(wrapped, {f"of.{k}": v for k, v in replaced.items()}, ())

    assert torch.autograd.gradcheck(penalty, tuple(parameters.values()))


class Penalized(torch.nn.Module):
    """A penalty as what a module computes."""

    def __init__(self, embedding):
        super().__init__()
        self.of = embedding

    def forward(self):
        return self.of.penalty(3.0, 0.7, 5.0)


# --------------------------------------------------------------------------------- the model


def make_model(n_views=3, seed=0, **options):
    options = {"head": (5,), "knots": KNOTS, "learn_missing": True} | options
    model = FCorrTransformer(CARDINALITIES, 3, n_views=n_views, generator=seeded(seed), **options)
    return perturb(model, seed=seed + 9).eval()


@pytest.mark.parametrize("options", [{}, {"n_layers": 3}, {"residual": True}, {"n_outputs": 3}])
def test_output_by_hand(options):
    """f = b + Σ e + head(attention of each view): layer by layer in float64."""
    model, (codes, numbers) = make_model(**options).double(), make_rows()
    numbers = numbers.double()
    e = model.embed(codes, numbers)

    def norm(x, layer):
        centred = x - x.mean(-1, keepdim=True)
        spread = (centred.square().mean(-1, keepdim=True) + layer.eps).sqrt()
        return centred / spread * layer.weight + layer.bias

    encoded = []
    for h in e.unbind(1):
        for layer in model.layers:
            z = norm(h, layer.attention_norm)
            scores = z.unsqueeze(2) * z.unsqueeze(1) / math.sqrt(6)
            a = (torch.softmax(scores, 2) @ z.unsqueeze(2)).squeeze(2)
            a = a + h if layer.residual else a
            h = norm(a, layer.stack_norm)
            for i, linear in enumerate(layer.stack):
                h = (gelu(h) if i else h) * linear.weight + linear.bias
            h = a + h
        encoded.append(h)
    hidden = gelu(model.head.hidden[0](norm(torch.cat(encoded, 1), model.head_norm)))
    outputs = hidden @ model.head.output.weight.T + model.head.output.bias
    main = torch.stack([e[:, o].sum(1) for o in range(model.n_outputs)], 1)
    torch.testing.assert_close(model(codes, numbers), outputs + main)


@pytest.mark.parametrize("options", [{}, {"n_layers": 2, "residual": True}, {"n_outputs": 2}])
def test_whole_model(options):
    """The compiled model, its gradients included, is the plain one."""
    compare_models(lambda: make_model(**options), *make_rows(70))


def test_a_new_model_is_nearly_additive():
    """Main effects and the output's bias begin at 0, the other views do not; the head is small."""
    model = FCorrTransformer([3, 2], 4, (16,), n_views=5, n_outputs=2, generator=seeded()).eval()
    values = model.views.values().detach()
    assert (values[:, :2] == 0).all()
    assert values[:, 2:].abs().max() > 0.1
    codes = torch.randint(0, 2, (100, 2), generator=seeded(1))
    outputs = model(codes, torch.randn(100, 4, generator=seeded(2))).detach()
    assert 0 < outputs.abs().max() < 0.3


@pytest.mark.parametrize("options", [{}, {"n_layers": 2}])
def test_additive_features_have_a_main_effect_only(options, each_engine):
    model, (codes, numbers) = make_model(additive=[2, 5], **options), make_rows()
    other_codes, other_numbers = codes.clone(), numbers.clone()
    other_codes[:, 2] = (codes[:, 2] + 1) % 4
    other_numbers[:, 2] = numbers[:, 2].nan_to_num() + 0.4
    with torch.no_grad():
        e, other = model.embed(codes, numbers), model.embed(other_codes, other_numbers)
        assert torch.equal(model.encode(model.mix(e)), model.encode(model.mix(other)))
        change = model(other_codes, other_numbers) - model(codes, numbers)
        effects = (other - e)[:, 0, [2, 5]].sum(1, keepdim=True)
    assert effects.abs().min() > 1e-4
    torch.testing.assert_close(change, effects, rtol=0, atol=3e-6)


def test_feature_dropout(each_engine):
    model = make_model(feature_dropout=0.25, additive=[1])
    e = torch.tensor([1.0, 2.0, 4.0])[:, None].repeat(4_000, 1, 6)
    assert torch.equal(model.mix(e)[:, :, [0, 2, 3, 4, 5]], e[:, :, [0, 2, 3, 4, 5]])
    model.train()
    torch.manual_seed(0)
    ratio = model.mix(e) / e
    assert (ratio[:, :1] == ratio).all()  # a feature is dropped in all its views
    assert torch.allclose(ratio.unique(), torch.tensor([0.0, 1 / 0.75]))
    means = ratio[:, 0].mean(0)
    assert means[1] == 0  # what has a main effect only comes back in no row
    others = means[[0, 2, 3, 4, 5]]
    assert (others - 1).abs().max() < 0.05
    assert not torch.equal(model.mix(e) / e, ratio)  # drawn anew
    spared = model.mix(e, [1, 3]) / e
    assert (spared[:, :, 3] == 1).all()
    assert (spared[:, :, 1] == 0).all()
    assert (spared[:, 0, 2] == 0).any()


def test_main_effects_are_never_dropped():
    model, (codes, numbers) = make_model(feature_dropout=1.0), make_rows()
    model.train()
    with torch.no_grad():
        outputs, e = model(codes, numbers), model.embed(codes, numbers)
    rest = outputs - e[:, :1].sum(2)
    torch.testing.assert_close(rest, rest[:1].expand_as(rest), rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_views": 2, "n_outputs": 3}, "n_views must be at least n_outputs, 3, got 2"),
        ({"additive": [1]}, r"additive features need main effects: set n_views, got \[1\]"),
    ],
)
def test_refused(options, message):
    with pytest.raises(ValueError, match=message):
        FCorrTransformer([3, 2], 1, (4,), **options)
    with pytest.raises(RuntimeError, match="Only views have main effects"):
        FCorrTransformer([3], 2, (4,)).hold_monotone(1, 1)


# Collapsed and monotone features


@pytest.mark.parametrize("sign", [1, -1])
def test_monotone_shape_functions(sign):
    model = make_model()
    before = model.views.steps.detach().clone()
    model.hold_monotone(5, sign)
    after = model.views.steps.detach()
    assert torch.equal(after[:5], before[:5])  # other features, and where the function begins
    kept = sign * before[5:] > 0
    assert torch.equal(after[5:][kept], before[5:][kept])
    assert (after[5:][~kept] == 0).all()
    assert kept.any()
    assert not kept.all()
    numbers = torch.zeros(200, 3)
    numbers[:, 2] = torch.linspace(-3, 3, 200)
    embedded = model.embed(torch.zeros(200, 3, dtype=torch.long), numbers)[:, :, 5].detach()
    assert (sign * embedded.diff(dim=0) >= -1e-6).all()
    assert (sign * (embedded[-1] - embedded[0]) > 0.1).all()


# --------------------------------------------------------------------------------------- CAR

GRIDS = {5: torch.linspace(-1.5, 1.5, 4)}
EXCHANGES = exchange_features(CARDINALITIES, [2, 5], grids=GRIDS)


@pytest.mark.parametrize("additive", [(), (1, 4), (5,)], ids=str)
@pytest.mark.parametrize("n_views", [1, 3])
def test_car_is_the_sum_over_views(n_views, additive, each_engine):
    """Values and all gradients; what attention does not see has no part in it."""
    model, (codes, numbers) = make_model(n_views, additive=additive).double(), make_rows(20)
    parameters = list(model.parameters())
    weight = torch.randn(20, generator=seeded(6)).double()
    expected = augmented_by_matrix(model, codes, numbers.double(), EXCHANGES, only_own=True)
    assert (expected > 1e-9).all()
    largest_loss = expected.max().item()
    options = {"allow_unused": True, "materialize_grads": True}
    exact = torch.autograd.grad((weight * expected).sum(), parameters, **options)
    largest = max(each.abs().max() for each in exact)
    for dtype, rtol in ((torch.float64, 1e-7), (torch.float32, 1e-3)):
        model = model.to(dtype)
        losses = car_sensitive(model, model.embed(codes, numbers.to(dtype)), EXCHANGES)[1]
        torch.testing.assert_close(losses.double(), expected, rtol=rtol, atol=rtol * largest_loss)
        parameters = list(model.parameters())
        found = torch.autograd.grad((weight.to(dtype) * losses).sum(), parameters, **options)
        for value, wanted in zip(found, exact, strict=True):
            torch.testing.assert_close(value.double(), wanted, rtol=rtol, atol=rtol * largest)
    for sigma in (2, 5):
        model.collapse(sigma)
    assert (car_sensitive(model, model.embed(codes, numbers), EXCHANGES)[1] == 0).all()


def test_feature_dropout_leaves_the_exchange_alone():
    """CAR compares what attention sees before and after: never a value with a dropped one.

    With one category left the exchange changes nothing, whatever is dropped beside it.
    """
    model, (codes, numbers) = make_model(feature_dropout=0.5), make_rows()
    with torch.no_grad():
        model.views.table[4:8] = model.views.table[4]
        model.views.shares[:] = 0  # the values are then not 0
        for part in model.views.parameters_of(5):
            part.zero_()
        model.views.steps[4] = 0.4
        model.views.missing[2] = 0.4
        model.train()
        torch.manual_seed(0)
        losses = car_sensitive(model, model.embed(codes, numbers), EXCHANGES)[1]
    assert losses.abs().max() < 1e-10


# ------------------------------------------------------------------------------------- packs


def make_pack(**options):
    other = [torch.tensor([-1.0, 1.0]), torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0])]
    return Pack(
        [
            make_model(3, seed=0, **options),
            make_model(5, seed=1, knots=other, head=(7, 4), **options),
            make_model(4, seed=2, n_layers=2, **options),
        ]
    )


@pytest.mark.parametrize("options", [{}, {"n_outputs": 3}])
def test_a_pack_is_the_mean_of_its_members(options):
    pack, (codes, numbers) = make_pack(**options), make_rows()
    with torch.no_grad():
        scores = [member.score(codes, numbers).double() for member in pack.members]
        expected = sum(scores) / 3
        e = pack.embed(codes, numbers)
        assert e.shape == (50, 12, 6)
        assert torch.equal(pack.score_embedded(e), pack.score(codes, numbers))
        torch.testing.assert_close(pack.score(codes, numbers).double(), expected)
        torch.testing.assert_close(pack(codes, numbers).double(), expected, rtol=0, atol=5e-6)
        pack = pack.double()
        torch.testing.assert_close(pack(codes, numbers.double()), expected, rtol=0, atol=5e-6)


def test_a_pack_seen_from_outside():
    pack = make_pack()
    assert pack.main_views == [0, 3, 8]
    assert pack.n_parameters == sum(p.numel() for p in pack.parameters())
    assert (pack.n_features, pack.n_outputs, pack.dtype) == (6, 1, torch.float32)
    assert pack.cat_cardinalities == (3, 1, 4)
    codes, numbers = make_rows()
    e = pack.embed(codes, numbers)
    for first, member in zip(pack.main_views, pack.members, strict=True):
        assert torch.equal(e[:, first], member.embed(codes, numbers)[:, 0])


# ---------------------------------------------------------------------- what is moved to them


@torch.no_grad()
def test_moved_main_effects_are_centred_average_outputs_and_change_none():
    model, (codes, numbers) = make_model(additive=[2]), make_rows()
    model.views.center_on(codes, model.locate(numbers))
    before = model.score(codes, numbers)
    model.move_main_effects(codes, numbers)
    assert torch.equal(model.score(codes, numbers), before)
    effects = model.views.main_effects(codes, model.locate(numbers))[:, 0].double()
    assert not model.views.moved[4:8].any()  # the head never sees this feature
    torch.testing.assert_close(effects.mean(0), torch.zeros(6).double(), rtol=0, atol=1e-5)
    model = model.double()
    for feature, rows in ((0, codes), (3, numbers)):
        # Between two knots an effect is a line, and the average output need not be.
        x = rows[:, 0]
        exact = torch.ones_like(x).bool() if feature == 0 else x.isnan() | (x < -1) | (x > 2)
        averages = []
        for value in x[exact]:
            other = [codes.clone(), numbers.double()]
            other[feature // 3][:, 0] = value
            averages.append(model(*other).mean())
        difference = effects[exact, feature] - torch.stack(averages)
        constant = difference.mean().expand_as(difference)
        torch.testing.assert_close(difference, constant, rtol=0, atol=1e-5)
