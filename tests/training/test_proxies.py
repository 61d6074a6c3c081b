"""The proxy dial: scores by the definition of their measure, decisions by the best rule."""

import functools
import itertools

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from fcorr.training.proxies import UNKNOWN, DecisionDial, Groups, ScoreDial, share_between

SIZES = torch.tensor([5.0, 3.0, 2.0], dtype=torch.float64)


def make_rows(n_rows=60, seed=0):
    generator = torch.Generator().manual_seed(seed)
    groups = torch.multinomial(SIZES, n_rows, replacement=True, generator=generator)
    values = torch.randn(n_rows, dtype=torch.float64, generator=generator) + 0.4 * groups
    weight = 0.5 + torch.rand(n_rows, dtype=torch.float64, generator=generator)
    return values, weight, groups


def by_pairs(values, weight, groups):
    """One minus the mean distance within groups over that of all, by every pair of rows."""
    distance = (values[:, None] - values).abs()
    mean = torch.zeros(3, 3, dtype=torch.float64)
    for g, h in itertools.product(range(3), range(3)):
        pairs = torch.outer(weight * (groups == g), weight * (groups == h)).fill_diagonal_(0)
        mean[g, h] = (pairs * distance).sum() / pairs.sum()
    share = SIZES / SIZES.sum()
    return 1 - (share @ mean.diagonal()) / (share @ mean @ share)


def test_the_share_between_groups_by_every_pair_of_rows():
    values, weight, groups = make_rows()
    groups[::7] = UNKNOWN
    found = share_between(values, weight, groups, SIZES)
    torch.testing.assert_close(found, by_pairs(values, weight, groups), rtol=1e-12, atol=0)
    values, weight, groups = make_rows(20)
    assert torch.autograd.gradcheck(
        lambda x: share_between(x, weight, groups, SIZES), values.requires_grad_()
    )


def test_small_batches_estimate_it_without_bias():
    values, weight, groups = make_rows(20_000)
    weight = torch.ones_like(weight)
    everything = share_between(values, weight, groups, SIZES)
    batches = torch.stack(
        [
            share_between(values[i], weight[i], groups[i], SIZES)
            for i in torch.arange(20_000).split(20)
        ]
    )
    error = float(batches.std() / len(batches) ** 0.5)
    assert float(batches.mean() - everything) == pytest.approx(0, abs=4 * error)
    assert error < 0.1 * float(everything)  # or the line above could not fail


@pytest.mark.parametrize("groups", [[0, 0, 0, 1], [UNKNOWN] * 4, [0, 1, 2, UNKNOWN]])
def test_what_no_two_groups_have_rows_for_is_nothing(groups):
    values = torch.arange(4.0, requires_grad=True)
    found = share_between(values, torch.ones(4), torch.tensor(groups), SIZES)
    found.backward()
    assert float(found.detach()) == 0
    assert (values.grad == 0).all()
    values = torch.full((6,), 0.3, requires_grad=True)  # nor have values that do not differ
    codes = torch.tensor([0, 0, 0, 1, 1, 1])
    share_between(values, torch.ones(6), codes, torch.ones(2)).backward()
    assert (values.grad == 0).all()


def test_what_scores_are():
    outputs, weight, codes = make_rows(200)
    groups = Groups(codes[:, None], weight, (SIZES,))
    of_outputs = float(ScoreDial(2.0).penalty(outputs[:, None], codes, groups))
    assert of_outputs == pytest.approx(2 * float(share_between(outputs, weight, codes, SIZES)))
    as_odds = ScoreDial(2.0, is_log_odds=True).penalty(outputs[:, None], codes, groups)
    share = share_between(outputs.sigmoid(), weight, codes, SIZES)
    assert float(as_odds) == pytest.approx(2 * float(share))


def test_several_columns_and_several_classes_are_averaged():
    values, weight, codes = make_rows(100)
    outputs = torch.stack([values, -values, values.square()], 1)
    groups = Groups(torch.stack([codes, codes.flip(0)], 1), weight, (SIZES, SIZES))
    expected = [
        float(share_between(p, weight, c, SIZES))
        for c in groups.codes.T
        for p in outputs.softmax(1).T
    ]
    found = float(ScoreDial(1.0, is_log_odds=True).penalty(outputs, codes, groups))
    assert found == pytest.approx(sum(expected) / 6)


# Decisions


def decide(target, threshold=0.3, seed=3):
    """Make a dial that follows no more, with two columns' multipliers, small and large."""
    dial = DecisionDial(1.0, target, threshold)
    generator = torch.Generator().manual_seed(seed)
    shape = (2 if target == "odds" else 1), 3
    dial.multipliers = [
        scale * torch.randn(shape, dtype=torch.float64, generator=generator) for scale in (0.2, 1.0)
    ]
    dial.follows = False
    return dial


@pytest.mark.parametrize("target", ["decision", "odds"])
def test_the_loss_at_costs_row_by_row(target):
    outputs, weight, codes = make_rows(200)
    y = (torch.arange(200) % 3 == 0).double()
    both = torch.stack([codes, codes.flip(0)], 1)
    both[::7, 0] = UNKNOWN
    dial = decide(target)
    expected, flipped = 0.0, 0
    for f, w, outcome, row in zip(outputs, weight, y, both.tolist(), strict=True):
        cost = 0.3 - outcome
        for mu, group in zip(dial.multipliers, row, strict=True):
            if group != UNKNOWN:
                cost = cost + mu[int(outcome) if target == "odds" else 0, group]
        label = 1.0 if cost < 0 else 0.0
        flipped += label != float(outcome)
        chance = f.sigmoid() if cost < 0 else 1 - f.sigmoid()
        costly = abs(cost) / (0.7 if cost < 0 else 0.3) * -chance.log()
        plain = -(f.sigmoid() if outcome else 1 - f.sigmoid()).log()
        expected += float(w * (costly - plain)) / 200
    found = dial.penalty(outputs[:, None], y, Groups(both, weight, (SIZES, SIZES)))
    assert 10 < flipped < 150
    assert float(found) == pytest.approx(expected)


@pytest.mark.parametrize("target", ["decision", "odds"])
def test_the_gradient_of_costs(target):
    outputs, weight, codes = make_rows(20)
    groups = Groups(torch.stack([codes, codes.flip(0)], 1), weight, (SIZES, SIZES))
    y = (torch.arange(20) % 3 == 0).double()
    dial = decide(target)
    assert torch.autograd.gradcheck(
        lambda f: dial.penalty(f[:, None], y, groups), outputs.requires_grad_()
    )


@pytest.mark.parametrize("target", ["decision", "odds"])
@pytest.mark.parametrize("threshold", [0.2, 0.5])
def test_the_loss_is_least_for_the_best_rule_that_does_not_read_the_column(target, threshold):
    """Cells of x with any p(x) and P(s | x, y): a free logit each, all outcomes by their chance."""
    generator = torch.Generator().manual_seed(0)
    n_cells = 300
    chance = torch.rand(n_cells, dtype=torch.float64, generator=generator)
    of_group = torch.rand(n_cells, 2, 3, dtype=torch.float64, generator=generator) ** 3
    of_group = of_group / of_group.sum(2, keepdim=True)
    joint = torch.stack([1 - chance, chance], 1)[:, :, None] * of_group  # P(y, s | x)
    dial = decide(target, threshold)
    dial.multipliers = dial.multipliers[1:]  # the large ones, which change labels too
    mu = dial.multipliers[0].expand(2, 3)
    margin = chance - threshold - (joint * mu).sum((1, 2))
    y = torch.tensor([0.0, 1.0], dtype=torch.float64)[None, :, None].expand(joint.shape)
    codes = torch.arange(3).expand(joint.shape)
    groups = Groups(codes.reshape(-1, 1), joint.flatten(), (SIZES,))
    logit = torch.zeros(n_cells, dtype=torch.float64, requires_grad=True)

    def loss():
        f = logit[:, None, None].expand(joint.shape).reshape(-1)
        plain = binary_cross_entropy_with_logits(f, y.flatten(), reduction="none")
        penalty = dial.penalty(f[:, None], y.flatten(), groups)
        return (joint.flatten() * plain).mean() + penalty

    optimizer = torch.optim.LBFGS([logit], max_iter=500, line_search_fn="strong_wolfe")

    def step():
        optimizer.zero_grad()
        total = loss() * joint.numel()
        total.backward()
        return total

    optimizer.step(step)
    decided = logit.detach().sigmoid() >= threshold
    clear = margin.abs() > 1e-3
    assert (decided == (margin > 0))[clear].all()
    # The rule is another one than without multipliers, or this would show nothing.
    assert (decided != (chance > threshold)).sum() > 20


def test_multipliers_by_hand():
    """80 rows of one group and 20 of another, of which 40 and 5 are decided positive."""
    codes = torch.tensor([0] * 80 + [1] * 20 + [UNKNOWN] * 9)
    outputs = torch.full((109, 1), -1.0, dtype=torch.float64)
    outputs[:40], outputs[80:85], outputs[100:] = 1, 1, 1
    outputs.requires_grad_()
    sizes = torch.tensor([80.0, 20.0])
    groups = Groups(codes[:, None], torch.ones(109), (sizes,))
    dial = DecisionDial(0.5, "decision", 0.5)
    assert float(dial.penalty(outputs, torch.zeros(109), groups).detach()) == 0
    dial.follow()
    # Shares are believed by half of ten rows, the rest is that of all, 0.45.
    shares = [(40 + 4.5) / 90, (5 + 4.5) / 30]
    half = (shares[0] - shares[1]) / 2
    price = torch.tensor([0.5 * half / 0.9, -0.5 * half / 0.3], dtype=torch.float64)
    expected = 0.5 * (price - (0.8 * price[0] + 0.2 * price[1]))  # one pass goes half the way
    torch.testing.assert_close(dial.multipliers[0][0], expected)


def test_a_column_that_few_rows_have_counts_its_own_rows():
    """And a batch in which nobody has it changes nothing."""
    known = torch.tensor([0] * 30 + [1] * 10 + [UNKNOWN] * 960)
    everybody = torch.arange(1_000) % 2
    outputs = torch.full((1_000, 1), -1.0, dtype=torch.float64)
    outputs[:10], outputs[30:38] = 1, 1
    outputs.requires_grad_()

    def follow(*columns, rows=slice(None)):
        sizes = tuple(torch.bincount(c[c != UNKNOWN]).double() for c in columns)
        codes = torch.stack(columns, 1)[rows]
        dial = DecisionDial(1.0, "decision", 0.5)
        some = outputs[rows]
        dial.penalty(some, torch.zeros(len(some)), Groups(codes, torch.ones(len(some)), sizes))
        dial.follow()
        return dial.multipliers

    alone, beside = follow(known)[0], follow(everybody, known)[1]
    assert alone.abs().max() > 0.01
    torch.testing.assert_close(beside, alone)
    assert follow(known, rows=slice(100, 200)) == []


@pytest.mark.parametrize("weight", [0.3, 3.0, 30.0])
def test_multipliers_come_to_rest_at_the_price_although_decisions_lag(weight):
    """Of three groups, one in fifty rows, each a share that falls by its price, half a pass late.

    At rest ``mu = weight · (share − mean share) / P``, of which shares and prices are the solution.
    """
    of_all = torch.tensor([0.7, 0.28, 0.02], dtype=torch.float64)
    free, answer = np.array([0.5, 0.3, 0.1]), np.array([0.4, 0.4, 0.05])
    dial, shares, history = DecisionDial(weight, "decision", 0.5), free, []
    for step in range(1_600):
        rows = 25_000 * of_all
        dial._n_rows = [1_000_000]
        dial._seen = [[torch.stack([rows, rows * torch.tensor(shares)])[:, None]]]
        dial.follow()
        history.append(dial.multipliers[0][0].numpy())
        late = history[max(0, step - 20)] if step >= 20 else np.zeros(3)
        shares = shares + (free - answer * late - shares) / 10
    middle = np.eye(3) - 1 / 3
    scale = weight * middle / of_all.numpy()[:, None]
    rest = np.linalg.solve(np.eye(3) + scale * answer, scale @ free)
    rest -= rest @ of_all.numpy()
    np.testing.assert_allclose(history[-1], rest, atol=0.02 * np.abs(rest).max())


@pytest.mark.parametrize("target", ["decision", "odds"])
def test_slices_in_any_order_give_the_same_multipliers(target):
    outputs, weight, codes = make_rows(3_000)
    y = (torch.arange(3_000) % 3 == 0).double()
    outputs.requires_grad_()
    groups = Groups(codes[:, None], weight.float() * 0.1, (SIZES,))

    def multipliers(slices):
        dial = DecisionDial(1.0, target, 0.5)
        for some in slices:
            of_slice = groups.each(functools.partial(torch.index_select, dim=0, index=some))
            dial.penalty(outputs[some, None], y[some], of_slice)
        dial.follow()
        return dial.multipliers[0]

    slices = list(torch.arange(3_000).split(171))
    first = multipliers(slices)
    assert (first != 0).all()
    assert torch.equal(first, multipliers(slices[::-1]))
    assert torch.equal(first, multipliers(slices[5:] + slices[:5]))


def test_a_dial_that_follows_no_more_keeps_its_price():
    outputs, weight, codes = make_rows(100)
    dial = decide("decision")
    before = [mu.clone() for mu in dial.multipliers]
    groups = Groups(torch.stack([codes, codes], 1), weight, (SIZES, SIZES))
    dial.penalty(outputs.requires_grad_()[:, None], torch.zeros(100), groups)
    dial.follow()
    assert all(torch.equal(a, b) for a, b in zip(before, dial.multipliers, strict=True))


def test_a_dial_settles_at_the_mean_of_a_price_that_swings():
    """One group and then the other is decided positive; each step counts by its place in all."""
    codes = torch.tensor([0, 1]).repeat_interleave(50)
    groups = Groups(codes[:, None], torch.ones(100), (torch.tensor([500.0, 500.0]),))
    dial, followed = DecisionDial(5.0, "decision", 0.5), []
    for step in range(12):
        outputs = torch.where(codes == (step // 3) % 2, 1.0, -1.0)[:, None].requires_grad_()
        dial.penalty(outputs, torch.zeros(100), groups)
        dial.follow()
        followed.append(dial.multipliers[0][0].numpy())
    assert (np.diff(np.sign(np.diff(followed, axis=0)), axis=0) != 0).any()
    late = [1.0] + [1 - np.exp(-3 / (step + 1)) for step in range(1, 12)]
    share = [late[k] * np.prod([1 - each for each in late[k + 1 :]]) for k in range(12)]
    assert sum(share) == pytest.approx(1)
    assert sum(share[-4:]) > 0.6
    dial.settle()
    np.testing.assert_allclose(dial.multipliers[0][0], np.array(share) @ np.array(followed))
    dial.follow()
    assert not dial.follows
