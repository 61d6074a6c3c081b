import pytest
import torch
from fcorr.training.losses import binary_log_loss

from fcorr.nn import FeedForwardNetwork, FTTransformer, TabTransformer
from fcorr.nn.car import car_cda, exchange_features, paper_weight
from fcorr.training.objective import BaselineObjective, Rows

SMALL = {"sensitive": "sex", "head": (4,), "epochs": 2, "random_state": 0}


RACE = exchange_features([3, 3], 2, [0])


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    return Rows(
        torch.randint(0, 3, (16, 2), generator=generator),
        8 * torch.rand(16, 2, generator=generator),  # places among the model's nine knots
        torch.randint(0, 2, (16,), generator=generator).float(),
        torch.ones(16),
    )


def test_any_network_with_attention_has_car_by_its_definition(batch):
    model = FTTransformer([3, 3], 2, d_embedding=8, n_layers=1, n_heads=2).eval()
    options = {"exchanges": RACE, "numbers_per_row": 7}
    objective = BaselineObjective(model, binary_log_loss, car=7.0, **options)
    total, performance, car = objective(batch)
    torch.testing.assert_close(total, performance + 7 * car)
    torch.testing.assert_close(car, car_cda(model, batch.x_cat, batch.x_num, RACE).mean())
    outputs = model(batch.x_cat, batch.x_num)
    torch.testing.assert_close(performance, binary_log_loss(outputs, batch.target).mean())
    assert objective.numbers_per_row(batch) == 7
    objective = BaselineObjective(model, binary_log_loss, car="paper", **options)
    objective.settle_weight(batch)
    assert objective.car_weight == paper_weight(performance.item(), car.item())


@pytest.mark.parametrize(("share", "n_rows"), [(0.25, 4), (0.26, 5), (1e-9, 1)])
def test_car_of_a_share_of_the_rows(batch, share, n_rows):
    """The performance loss is of all of them; so is CAR of what is only measured."""
    assert len(batch) == 16
    sizes = {"d_embedding": 8, "n_layers": 1, "n_heads": 2}
    dropouts = {"attention_dropout": 0.0, "feed_forward_dropout": 0.0}
    model = FTTransformer([3, 3], 2, **sizes, **dropouts).train()
    options = {"exchanges": RACE, "car": 7.0, "numbers_per_row": 7}
    whole = BaselineObjective(model, binary_log_loss, **options)(batch)
    total, performance, car = BaselineObjective(model, binary_log_loss, car_rows=share, **options)(
        batch
    )
    first = batch.take(torch.arange(n_rows))
    of_first = BaselineObjective(model, binary_log_loss, **options)(first)
    torch.testing.assert_close((performance, car), (whole[1], of_first[2]))
    torch.testing.assert_close(total, performance + 7 * car)
    model.eval()
    measured = BaselineObjective(model, binary_log_loss, car_rows=share, **options)(batch)
    torch.testing.assert_close(measured, whole)


class AttentionOnly(torch.nn.Module):
    """A network that shows its attention, and no queries and keys."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x_cat, x_num):
        return self.model(x_cat, x_num)

    def attention_weights(self, x_cat, x_num):
        return self.model.attention_weights(x_cat, x_num)


@pytest.mark.parametrize("network", [FTTransformer, TabTransformer])
def test_matrices_are_made_only_where_there_are_no_queries_and_keys(batch, network, monkeypatch):
    model = network([3, 3], 2, d_embedding=8, n_layers=1, n_heads=2).eval()
    calls = []
    of_network = network.attention_weights
    monkeypatch.setattr(
        network, "attention_weights", lambda *args: calls.append(args) or of_network(*args)
    )
    losses = []
    for each, n_calls in ((model, 0), (AttentionOnly(model), 4)):
        calls.clear()
        options = {"exchanges": RACE, "car": 7.0, "numbers_per_row": 7}
        losses.append(BaselineObjective(each, binary_log_loss, **options)(batch))
        assert len(calls) == n_calls
    torch.testing.assert_close(*losses)


def test_other_networks_do_not_collapse(batch):
    network = FeedForwardNetwork([3, 3], 2)
    objective = BaselineObjective(network, binary_log_loss, numbers_per_row=7)
    objective.hold_collapsed()
    with pytest.raises(NotImplementedError, match="FeedForwardNetwork cannot be collapsed"):
        objective.collapse(batch)
