"""Parameters, memory and seconds of the models at the sizes of the paper's two tables."""

import itertools
from dataclasses import replace

import pytest
import torch

from fcorr.nn.car import TokenwiseModel
from fcorr.reproduce import costs
from fcorr.reproduce.settings import list_runs
from fcorr.training.objective import BaselineObjective, Objective


def find(table, measure, model="FCorr + CAR"):
    (run,) = [
        run
        for run in list_runs("complexity", "full", 1)
        if (run.data, run.measure, run.model) == (table, measure, model)
    ]
    return run


@pytest.mark.parametrize(
    ("table", "n_parameters", "n_head"),
    # A head of sizes d: from 31 and from 581 features, with a bias for each output.
    [
        ("bank_fraud", 11_064, 31 * 64 + 64 + 2 * (64 * 64 + 64) + 64 + 1),
        ("claims", 21_767, 581 * 16 + 16 + 3 * (16 * 16 + 16) + 16 + 1),
    ],
)
def test_the_papers_numbers_of_parameters(table, n_parameters, n_head):
    found = [costs.measure_cost(find(table, "size", model)) for model in ("FCorr", "FCorr + CAR")]
    assert [cost["parameters"] for cost in found] == [n_parameters] * 2
    assert [cost["head_parameters"] for cost in found] == [n_head] * 2
    assert [cost["n_rows"] for cost in found] == [64] * 2
    assert found[0]["parameter_megabytes"] == pytest.approx(4 * n_parameters / 1e6)
    plain, with_car = (cost["kept_megabytes"] for cost in found)
    assert 0 < plain < with_car  # which keeps what it compares


@pytest.mark.parametrize("model", ["FFN", "TabTransformer", "FT-Transformer"])
def test_sizes_of_the_baselines(model):
    run = find("bank_fraud", "size", model)
    cost, half = (costs.measure_cost(replace(run, n_rows=n_rows)) for n_rows in (64, 32))
    assert cost["parameters"] == half["parameters"] > 0
    assert 1.5 < cost["kept_megabytes"] / half["kept_megabytes"] <= 2.1


def test_the_ffn_has_the_parameters_of_its_layers():
    run = find("bank_fraud", "size", "FFN")
    sizes = run.arguments["network_options"]["head"]
    assert sizes == [128, 16, 128, 512]
    cost = costs.measure_cost(run)
    schema = costs._encode("bank_fraud", run.sensitive, run.task, 20_000, 0).schema
    n_inputs = sum(schema.cardinalities) + len(schema.numeric)
    layers = [n_inputs, *sizes, 1]
    dense = sum((before + 1) * after for before, after in itertools.pairwise(layers))
    assert cost["parameters"] == dense


@pytest.mark.parametrize(("table", "n_rows"), [("bank_fraud", 130), ("claims", 8)])
def test_an_epoch_in_three_forms(table, n_rows):
    run = replace(find(table, "epochs"), n_rows=n_rows)
    cost = costs.measure_cost(run)
    assert cost["n_rows"] == n_rows
    seconds = cost["seconds_per_epoch"]
    assert set(seconds) == {costs.AUGMENTED, costs.BY_DEFINITION, costs.CLOSED_FORM}
    assert all(value > 0 for value in seconds.values())


@pytest.fixture
def first_losses(monkeypatch):
    """Keep what the objectives return when they are first called, by the form of CAR."""
    losses = {}

    def watch(kind):
        class Watched(kind):
            def __call__(self, batch):
                found = super().__call__(batch)
                form = getattr(self, "car_form", "definition")
                losses.setdefault(form, (found, isinstance(self.model, TokenwiseModel)))
                return found

        monkeypatch.setattr(costs, kind.__name__, Watched)

    for kind in (Objective, BaselineObjective):
        watch(kind)
    return losses


@pytest.mark.parametrize(("table", "n_rows"), [("bank_fraud", 64), ("claims", 8)])
def test_the_definition_and_its_closed_form_are_one_loss(first_losses, table, n_rows):
    costs.measure_cost(replace(find(table, "epochs"), n_rows=n_rows))
    assert set(first_losses) == {"paper", "cda", "definition"}
    (closed, _), (defined, is_tokenwise) = first_losses["cda"], first_losses["definition"]
    assert not is_tokenwise  # of which CAR would be computed by columns, not by its definition
    assert closed[2] > 0
    for one, other in zip(closed, defined, strict=True):  # total, performance, CAR
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-7)
    augmented, _ = first_losses["paper"]
    torch.testing.assert_close(augmented[1], closed[1], rtol=1e-4, atol=1e-7)
    assert abs(augmented[2] / closed[2] - 1) > 1e-2  # another form, another number
