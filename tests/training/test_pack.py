"""Packs: bags, the choice among recipes, and the order in which members are trained."""

import itertools
import time
from dataclasses import asdict, replace

import pytest
import torch

from fcorr._core import Progress
from fcorr.training import pack
from fcorr.training.loop import History
from fcorr.training.pack import (
    PRECISE,
    RECIPES,
    Candidates,
    Recipe,
    Trained,
    adapt,
    draw_recipe,
    hash_bags,
    list_recipes,
    make_bags,
    select_greedily,
    train_pack,
)
from fcorr.training.rows import start_workers

# ------------------------------------------------------------------------------------ the bags


def folds_of(bags, n_rows):
    """Return the fold of each row; every row is held out once, and learnt from by the others."""
    fold = torch.full((n_rows,), -1)
    for k, bag in enumerate(bags):
        assert (fold[bag.held_out] == -1).all()
        fold[bag.held_out] = k
        both = torch.cat([bag.rows, bag.held_out])
        assert torch.equal(both.sort().values, torch.arange(n_rows))
    assert (fold >= 0).all()
    return fold


@pytest.mark.parametrize("n_members", [None, 2, 3, 8, 100])
@pytest.mark.parametrize("n_rows", [2, 3, 7, 100, 12_000, 12_001, 100_001])
def test_every_row_is_held_out_once_and_strata_are_spread_evenly(n_rows, n_members):
    generator = torch.Generator().manual_seed(0)
    strata = (torch.rand(n_rows, generator=generator) < 0.03).long() * 5 + 1
    bags = make_bags(strata, n_members, seed=0)
    n_folds = 8 if n_rows <= 12_000 else 6 if n_rows <= 100_000 else 4
    assert len(bags) == min(n_folds, n_rows, n_members or n_folds)
    fold = folds_of(bags, n_rows)
    for some in (strata > 0, strata == 1, strata == 6):
        counts = fold[some].bincount(minlength=len(bags))
        assert counts.max() - counts.min() <= 1
    assert all(len(bag.rows) for bag in bags)


@pytest.mark.parametrize("n_events", [1, 3, 7])
def test_few_events_are_in_the_bags_by_which_recipes_are_tried(n_events):
    strata = torch.zeros(1_003, dtype=torch.long)
    strata[-n_events:] = 1
    fold = folds_of(make_bags(strata, None, seed=0), 1_003)
    assert sorted(fold[-n_events:].tolist()) == [*range(n_events)]


def test_bags_of_rows_in_files_hold_some_rows_out():
    sizes = [len(bag.held_out) for seed in range(50) for bag in hash_bags(100, None, seed)]
    assert len(sizes) == 50 * 8
    assert min(sizes) > 0
    assert [len(hash_bags(n, None, 0)) for n in (5, 30, 12_001, 100_001)] == [2, 3, 6, 4]
    assert len(hash_bags(12_001, 3, 0)) == 3


@pytest.mark.parametrize(
    ("n_rows", "rounds"),
    [(100, [8]), (2_001, [2, 4, 8]), (12_001, [1, 2, 6]), (100_001, [1, 4]), (3, [3])],
)
def test_rounds_are_on_more_and_more_bags(n_rows, rounds):
    bags = make_bags(torch.zeros(n_rows, dtype=torch.long), None, seed=0)
    *trials, everything = rounds
    assert pack._list_rounds(bags, 2) == ([*map(range, trials or rounds)], range(everything))
    assert pack._list_rounds(bags, 1) == ([], range(everything))


def test_bags_are_drawn_by_the_seed_alone():
    strata = torch.zeros(50, dtype=torch.long)
    state = torch.get_rng_state()
    first, again, other = (folds_of(make_bags(strata, None, seed), 50) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), state)


# ---------------------------------------------------------------------------------- the choice


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("n_most", [1, 2, 3, 5])
def test_greedy_choice_by_brute_force(seed, n_most):
    """Of all sequences, the one whose every step is the best; it ends where none is better."""
    values = torch.randn(4, generator=torch.Generator().manual_seed(seed)).tolist()

    def loss(some):
        return abs(sum(values[i] for i in some) / len(some) - 0.1)

    chosen = select_greedily(lambda some: torch.tensor([loss(some)]), range(4), n_most)
    assert 1 <= len(chosen) <= min(n_most, 4)
    assert len(set(chosen)) == len(chosen)
    for k in range(len(chosen)):
        rest = [i for i in range(4) if i not in chosen[:k]]
        assert loss(chosen[: k + 1]) == min(loss([*chosen[:k], i]) for i in rest)
    losses = [loss(chosen[: k + 1]) for k in range(len(chosen))]
    assert all(a > b for a, b in itertools.pairwise(losses))
    if len(chosen) < min(n_most, 4):
        rest = [i for i in range(4) if i not in chosen]
        assert all(loss([*chosen, i]) >= losses[-1] for i in rest)


@pytest.mark.parametrize("loss", [1.0, float("nan")])
def test_equal_candidates_and_losses_that_are_no_numbers_choose_the_first(loss):
    assert select_greedily(lambda some: torch.full((5,), loss), range(3), 2) == [0]


# ------------------------------------------------------------------------------------- recipes


@pytest.mark.usefixtures("all_recipes")
def test_recipes_with_what_the_user_decided():
    assert list_recipes(5_000, 30, 1.0, {}) == ([*RECIPES], [*PRECISE])
    fixed, precise = list_recipes(5_000, 9, 1.0, {"dropout": 0.0, "head": (4,)})
    assert {(recipe.dropout, recipe.head) for recipe in fixed + precise} == {(0.0, (4,))}
    assert [r.smoothness for r in fixed] == [r.smoothness for r in RECIPES]
    wanted = asdict(RECIPES[0])  # those that become equal are tried once
    assert list_recipes(5_000, 200, 3.0, wanted) == ([RECIPES[0]], [])
    del wanted["dropout"]
    found = [[recipe.dropout for recipe in some] for some in list_recipes(5_000, 90, 1.0, wanted)]
    assert found == [[0.0, 0.5, 0.3], []]


@pytest.mark.parametrize(("n_rows", "n_features"), [(2_000, 9), (2_001, 101)])
@pytest.mark.usefixtures("all_recipes")
def test_large_recipes_are_for_long_tables_that_are_not_wide(n_rows, n_features):
    assert any(recipe.large for recipe in list_recipes(2_001, 100, 1.0, {})[0])
    assert not any(recipe.large for recipe in list_recipes(n_rows, n_features, 1.0, {})[0])


def test_wide_tables_take_shorter_steps_and_fewer_views_unless_the_user_decided():
    recipe = Recipe(n_views=8, learning_rate=0.02)
    found = adapt(recipe, 400, 1.0, {})
    assert (found.learning_rate, found.n_views) == (0.005, 5)
    assert adapt(recipe, 30, 1.0, {}) == recipe
    wanted = {"learning_rate": 0.1, "n_views": 7}
    assert asdict(adapt(recipe, 400, 1.0, wanted)) == asdict(found) | wanted
    assert adapt(recipe, 10_000, 1.0, {}).n_views == 2
    assert adapt(replace(recipe, n_views=1), 10_000, 1.0, {}).n_views == 1


def test_rare_events_and_many_features_take_more_rows_to_be_believed():
    recipe = Recipe(smoothness=5.0, credibility=10.0)
    found = adapt(recipe, 60, 4.0, {})
    assert found == replace(recipe, smoothness=40.0, credibility=80.0)


# ------------------------------------------------------------------------------------ training


def run(n_rows=40, n_members=None, n_recipes=3, n_threads=1, seed=11, **growth):
    """Train a pack of constants: recipe r predicts a level of its own plus the bag's number."""
    recipes = [Recipe(epochs=r + 1) for r in range(n_recipes)]
    levels = [2.0, -1.0, -3.0, 0.2, -0.1]
    bags = make_bags(torch.zeros(n_rows, dtype=torch.long), n_members, seed=0)
    calls = []

    def train_one(recipe, bag, seed):
        calls.append((recipe.epochs - 1, int(bag.held_out[0]), seed))
        noise = torch.rand(len(bag.held_out), 1, generator=torch.Generator().manual_seed(seed))
        outputs = levels[recipe.epochs - 1] + 0.01 * noise
        return Trained((recipe.epochs - 1, int(bag.held_out[0])), History(), outputs.float())

    def losses(outputs, rows):
        assert outputs.shape == (len(rows), 1)
        assert outputs.dtype == torch.float64
        return outputs.square().squeeze(1)

    reports, steps, before = [], [], torch.get_num_threads()
    try:
        torch.set_num_threads(n_threads)
        with start_workers(2**62) as workers:
            options = {"seed": seed, "each": workers.map}
            progress = Progress(advance=reports.append, expect=steps.append)
            candidates = Candidates(recipes, bags, train_one, losses, progress=progress, **options)
            result = train_pack(candidates, n_members=n_members, **growth)
    finally:
        torch.set_num_threads(before)
    assert max(steps) == len(reports)
    return result, bags, calls, len(reports), steps[0]


@pytest.fixture
def far(monkeypatch):
    """Let recipes be chosen that are good with others alone, as those of long tables are."""
    monkeypatch.setattr(pack, "_FAR", 1e6)


@pytest.mark.usefixtures("far")
def test_what_is_chosen_is_trained_on_every_bag():
    result, bags, calls, n_reported, announced = run()
    assert len(bags) == 8
    assert len(calls) == n_reported == announced == 3 * 8
    # By itself -1 is best; with 2 beside it the mean is nearer to 0 than with -3.
    assert [each["chosen"] for each in result.tried] == [True, True, False]
    assert [each["loss"] for each in result.tried] == pytest.approx([4, 1, 9], rel=0.05)
    firsts = [int(bag.held_out[0]) for bag in bags]
    assert [m.model for m in result.members] == [(r, f) for r in (1, 0) for f in firsts]
    assert result.loss == pytest.approx(0.25, rel=0.05)
    for k, bag in enumerate(bags):  # in the order of the rows
        expected = (result.members[k].outputs + result.members[8 + k].outputs).double() / 2
        torch.testing.assert_close(result.held_out[bag.held_out], expected)


def test_of_few_rows_what_they_tell_to_be_worse_by_itself_is_not_chosen():
    result, bags, *_ = run()  # 2 beside -1 would be better, in these rows
    assert [each["chosen"] for each in result.tried] == [False, True, False]
    assert [m.model for m in result.members] == [(1, int(bag.held_out[0])) for bag in bags]


@pytest.mark.usefixtures("far")
def test_precise_recipes_are_tried_on_one_bag_and_go_on_where_they_help():
    in_vain, helps = Recipe(epochs=3, n_knots=128), Recipe(epochs=4, n_knots=256)
    more = Recipe(epochs=5, n_knots=512)  # best with the second
    result, _, calls, n_reported, _ = run(precise=[in_vain, helps, more])
    # Three on all bags, three more on two of them, two of these on all.
    assert len(calls) == n_reported == 3 * 8 + 3 * 2 + 2 * 6
    assert [each["n_knots"] for each in result.tried[3:] if each["chosen"]] == [256, 512]
    assert [each["loss"] for each in result.tried[3:]] == pytest.approx([9, 0.04, 0.01], rel=0.15)
    usual, _, calls, *_ = run(precise=[in_vain, replace(in_vain, n_knots=256), more])
    assert len(calls) == 3 * 8 + 2  # in vain on the first bag: no second, and no third recipe
    assert [each["chosen"] for each in usual.tried] == [True, True, False, False, False]
    assert len(run(n_recipes=1, precise=[helps])[0].tried) == 1  # asked for


def test_a_pack_grows_until_nothing_helps_or_the_time_is_over():
    def draw(number):
        return Recipe(epochs=min(number, 3) + 1, n_knots=16 + number)  # the fourth level for all

    now = time.monotonic()
    result, _, calls, *_ = run(until=now + 1e6, draw=draw)
    drawn = [each["n_knots"] for each in result.tried[3:]]
    # One round finds the fourth level; two without a gain end it.
    assert len(drawn) in (12, 16)
    assert drawn == list(range(19, 19 + len(drawn)))
    assert len(calls) == len({seed for *_, seed in calls}) == (3 + len(drawn)) * 8
    assert any(each["chosen"] for each in result.tried[3:])
    usual, late = run()[0], run(until=now - 1, draw=draw)[0]
    assert result.loss < 0.3 * usual.loss
    assert late.tried == usual.tried


def test_more_are_chosen_where_the_rows_cannot_tell_that_they_are_worse():
    first, second, third = torch.zeros(64), torch.ones(64), torch.full((64,), 9.0)
    second[::2] = -0.8  # the mean of both is worse by 0.05, with a standard error of 0.057

    def losses(some):
        return torch.stack([first, second, third])[some].mean(0)

    assert select_greedily(losses, range(3), 3) == [0]
    assert select_greedily(losses, range(3), 3, n_least=2) == [0, 1]
    second[::2] = -0.9  # by 0.025
    assert select_greedily(losses, range(3), 3) == [0, 1]
    assert select_greedily(losses, range(3), 1) == [0]
    third[:32], third[32:] = -0.38, 0.5  # beside the two it would be worse by less than chance
    assert select_greedily(losses, range(3), 3) == [0, 1, 2]
    assert select_greedily(losses, range(3), 2) == [0, 1]
    third[:] = 0.03  # the better second, of which each row tells that it is worse
    assert select_greedily(losses, range(3), 3) == [0]


def select(losses, n_rows):
    """Choose among recipes by losses of rows, as if several had the mean of theirs."""
    candidates = Candidates.__new__(Candidates)
    candidates.bags = make_bags(torch.zeros(n_rows, dtype=torch.long), None, seed=0)
    candidates.outputs, candidates.held_out = (
        lambda some, bags: losses[some].mean(0),
        lambda _: None,
    )
    candidates.losses, candidates.train = lambda outputs, _: outputs, lambda *_: None
    return candidates.select(range(len(losses)), [0], pack._n_chosen(candidates.bags, None))


@pytest.mark.parametrize(("n_rows", "n_least", "n_most"), [(2_000, 2, 6), (2_001, 1, 2)])
def test_how_many_recipes_are_chosen(n_rows, n_least, n_most):
    noise = torch.tensor([1.0, -1.0]).repeat(32)  # the standard error of its mean is 1/8
    alike = torch.stack([noise, -noise]).repeat(5, 1)
    assert len(select(alike, n_rows)) == n_most
    behind = torch.stack([torch.zeros(64), 2.5 / 8 + noise])
    assert select(behind, n_rows) == [0, 1][:n_least]
    behind[1] += 1 / 8  # more than 3 standard errors
    assert select(behind, n_rows) == [0]
    behind[0] = torch.nan  # a training that went astray
    assert select(behind, n_rows)[0] == 1


def test_recipes_are_drawn_by_their_number():
    drawn = [draw_recipe(number, seed=0) for number in range(200)]
    assert drawn == [draw_recipe(number, seed=0) for number in range(200)]
    assert len(set(drawn)) == 200
    assert drawn[0] != draw_recipe(0, seed=1)
    assert 15 < sum(recipe.additive for recipe in drawn) < 55


def test_more_rows_try_every_recipe_on_some_bags_and_the_best_on_more(monkeypatch):
    monkeypatch.setattr(pack, "_ROUNDS", {40: (1, 2, 6)})
    monkeypatch.setattr(pack, "_FEW_ROWS", 39)  # beyond which no more than two are chosen
    result, bags, calls, n_reported, announced = run(n_recipes=4)
    assert len(calls) == n_reported == 4 + 4 + 4  # 0.2 is chosen by itself
    assert announced == 4
    first, second, *_ = (int(bag.held_out[0]) for bag in bags)
    longest_first = [(r, f) for f in (first, second) for r in (3, 2, 1, 0)]
    assert [(r, f) for r, f, _ in calls[:8]] == longest_first
    assert len(result.members) == len(bags) == 6
    monkeypatch.setattr(pack, "_N_BEST", 2)
    *_, calls, n_reported, _ = run(n_recipes=3)
    assert len(calls) == n_reported == 3 + 2 + 2 * 4
    assert {r for r, *_ in calls[3:]} == {0, 1}  # whose mean is nearest to 0
    monkeypatch.setattr(pack, "_N_BEST", 3)
    *_, calls, _, _ = run(n_recipes=5)
    assert {r for r, *_ in calls[5:]} == {4, 3, 1}  # -0.1, 0.2 and -1


def test_a_larger_pack_goes_on_with_more_recipes(monkeypatch):
    monkeypatch.setattr(pack, "_ROUNDS", {40: (1, 2, 6)})
    *_, calls, n_reported, _ = run(n_recipes=4, n_members=100)
    assert 4 + 4 + 4 <= len(calls) == n_reported <= 4 * 6


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize(("n_members", "n_trained"), [(2, 2), (7, 7), (8, 8), (16, 16), (17, 16)])
def test_no_more_members_than_asked_for(n_members, n_trained):
    result, *_ = run(n_members=n_members)
    assert len(result.members) == n_trained <= n_members


def test_every_training_has_a_seed_of_its_own():
    seeds = [seed for _, _, seed in run(n_recipes=4)[2]]
    assert len(set(seeds)) == len(seeds) == 4 * 8
    assert not set(seeds) & {seed for _, _, seed in run(n_recipes=4, seed=12)[2]}
    result, _, calls, *_ = run(n_recipes=1)  # one recipe is not tried first
    assert len(calls) == len(result.members) == 8
    assert [(each["loss"], each["chosen"]) for each in result.tried] == [(None, True)]
