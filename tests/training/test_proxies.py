"""The proxy dial: its measure against its definition, its gradient, and its estimate by batches."""

import itertools

import pytest
import torch

from fcorr.training.proxies import UNKNOWN, Groups, ProxyDial, decision_cut, share_between

SIZES = torch.tensor([5.0, 3.0, 2.0], dtype=torch.float64)


def make_rows(n_rows=60, seed=0):
    generator = torch.Generator().manual_seed(seed)
    groups = torch.multinomial(SIZES, n_rows, replacement=True, generator=generator)
    values = torch.randn(n_rows, dtype=torch.float64, generator=generator) + 0.4 * groups
    weight = 0.5 + torch.rand(n_rows, dtype=torch.float64, generator=generator)
    return values, weight, groups


def by_pairs(values, weight, groups, squared):
    """One minus the mean distance within groups over that of all, by every pair of rows."""
    distance = (values[:, None] - values).abs() ** (2 if squared else 1)
    mean = torch.zeros(3, 3, dtype=torch.float64)
    for g, h in itertools.product(range(3), range(3)):
        pairs = torch.outer(weight * (groups == g), weight * (groups == h)).fill_diagonal_(0)
        mean[g, h] = (pairs * distance).sum() / pairs.sum()
    share = SIZES / SIZES.sum()
    return 1 - (share @ mean.diagonal()) / (share @ mean @ share)


@pytest.mark.parametrize("squared", [False, True])
def test_the_share_between_groups_by_every_pair_of_rows(squared):
    values, weight, groups = make_rows()
    groups[::7] = UNKNOWN
    found = share_between(values, weight, groups, SIZES, squared=squared)
    torch.testing.assert_close(found, by_pairs(values, weight, groups, squared), rtol=1e-12, atol=0)


@pytest.mark.parametrize("squared", [False, True])
def test_its_gradient(squared):
    values, weight, groups = make_rows(20)
    assert torch.autograd.gradcheck(
        lambda x: share_between(x, weight, groups, SIZES, squared=squared), values.requires_grad_()
    )


@pytest.mark.parametrize("squared", [False, True])
def test_small_batches_estimate_it_without_bias(squared):
    values, weight, groups = make_rows(20_000)
    weight = torch.ones_like(weight)
    everything = share_between(values, weight, groups, SIZES, squared=squared)
    batches = torch.stack(
        [
            share_between(values[i], weight[i], groups[i], SIZES, squared=squared)
            for i in torch.arange(20_000).split(20)
        ]
    )
    error = float(batches.std() / len(batches) ** 0.5)
    assert float(batches.mean() - everything) == pytest.approx(0, abs=4 * error)
    assert error < 0.1 * float(everything)  # or the line above could not fail


def test_equal_distributions_and_disjoint_ones():
    groups, ones = torch.arange(400) % 2, torch.ones(400, dtype=torch.float64)
    sizes = torch.ones(2)
    same = torch.arange(400, dtype=torch.float64) // 2
    for squared in (False, True):
        assert share_between(same, ones, groups, sizes, squared=squared).abs() < 0.01
        apart = share_between(same * 1e-9 + groups, ones, groups, sizes, squared=squared)
        assert apart == pytest.approx(1)
    # The mean is the same, the spread is not: only whole distributions tell the two apart.
    wide = torch.randn(400, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    wide = torch.stack([wide[:200], 3 * wide[:200]], 1).flatten()
    wide[1::2] -= wide[1::2].mean() - wide[::2].mean()
    assert share_between(wide, ones, groups, sizes, squared=False) > 0.03
    assert share_between(wide, ones, groups, sizes, squared=True).abs() < 0.01


@pytest.mark.parametrize("groups", [[0, 0, 0, 1], [UNKNOWN] * 4, [0, 1, 2, UNKNOWN]])
def test_what_no_two_groups_have_rows_for_is_nothing(groups):
    values = torch.arange(4.0, requires_grad=True)
    found = share_between(values, torch.ones(4), torch.tensor(groups), SIZES, squared=False)
    found.backward()
    assert float(found.detach()) == 0
    assert (values.grad == 0).all()


@pytest.mark.parametrize("squared", [False, True])
def test_values_that_hardly_differ_have_no_gradient_yet(squared):
    values = torch.full((6,), 0.3, requires_grad=True)
    groups = torch.tensor([0, 0, 0, 1, 1, 1])
    share_between(values, torch.ones(6), groups, torch.ones(2), squared=squared).backward()
    assert (values.grad == 0).all()


def test_what_scores_decisions_and_odds_are():
    outputs, weight, codes = make_rows(200)
    outcomes = (torch.arange(200) % 3 == 0).double()
    groups = Groups(codes[:, None], weight, (SIZES,))

    def penalty(*dial):
        return float(ProxyDial(*dial).penalty(outputs[:, None], outcomes, groups))

    def share(values, some=slice(None), squared=True):
        return float(share_between(values[some], weight[some], codes[some], SIZES, squared=squared))

    assert penalty(2.0) == pytest.approx(2 * share(outputs, squared=False))
    assert penalty(2.0, "score", 0.7) == pytest.approx(2 * share(outputs.sigmoid(), squared=False))
    steps = (outputs > 0.7).double()
    assert penalty(3.0, "decision", 0.7) == pytest.approx(3 * share(steps))
    by_outcome = [share(steps, outcomes == outcome) for outcome in (0, 1)]
    assert penalty(1.0, "odds", 0.7) == pytest.approx(sum(by_outcome) / 2)


def test_decisions_have_the_gradient_of_a_sigmoid():
    outputs, weight, codes = make_rows(200)
    outputs.requires_grad_()
    groups = Groups(codes[:, None], weight, (SIZES,))
    penalty = ProxyDial(1.0, "decision", 0.7).penalty(outputs[:, None], codes, groups)
    (found,) = torch.autograd.grad(penalty, outputs)
    steps = (outputs.detach() > 0.7).double().requires_grad_()
    (by_step,) = torch.autograd.grad(
        share_between(steps, weight, codes, SIZES, squared=True), steps
    )
    smooth = (outputs.detach() - 0.7).sigmoid()
    torch.testing.assert_close(found, by_step * smooth * (1 - smooth))


def test_several_columns_and_several_classes_are_averaged():
    values, weight, codes = make_rows(100)
    outputs = torch.stack([values, -values, values.square()], 1)
    groups = Groups(torch.stack([codes, codes.flip(0)], 1), weight, (SIZES, SIZES))
    expected = [
        float(share_between(p, weight, c, SIZES, squared=False))
        for c in groups.codes.T
        for p in outputs.softmax(1).T
    ]
    found = float(ProxyDial(1.0, "score", 0.0).penalty(outputs, codes, groups))
    assert found == pytest.approx(sum(expected) / 6)


def test_the_cut_of_a_threshold():
    for threshold in (0.0, 0.3, 0.5, 1.0):
        assert 1 / (1 + 2.718281828459045 ** -decision_cut(threshold)) == pytest.approx(
            threshold, abs=2e-6
        )
