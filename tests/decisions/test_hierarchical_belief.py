"""The belief behind a learned prior: new data, copies, files, and what its draws are worth."""

import numpy as np
import pytest

import brmdp
from brmdp.decisions import (
    HierarchicalBelief,
    Sampler,
    compare,
    draws,
    learn_prior,
    value_of_information,
)
from oracles.learned_prior import two_category_posterior, two_group_posterior

BOUNDS = (np.log(1e-2), np.log(1e6))


def two_rows(counts, **settings):
    table = np.array(counts)[:, None, :]
    return learn_prior(table, shape="destinations", rng=5, **settings).belief()


def groups_of_one_row(counts, bounds, **settings):
    tables = {}
    for g, (first, second) in enumerate(counts):
        tables[g] = np.zeros((2, 1, 2), dtype=int)
        tables[g][0, 0] = first, second
    return learn_prior(
        tables, shape="uniform", pooling="partial", strength_range=bounds, rng=6, **settings
    ).belief(0)


@pytest.fixture(scope="module")
def drifting():
    """Increments with categories that were never seen; state 5 was not visited."""
    rng = np.random.default_rng(1)
    counts = np.zeros((8, 1, 8), dtype=int)
    for s in range(8):
        if s != 5:
            steps = rng.choice([-1, 0, 1], size=6, p=[0.2, 0.5, 0.3])
            np.add.at(counts, (s, 0, np.clip(s + steps, 0, 7)), 1)
    return learn_prior(counts, shape="increments", reach=3, draws=400, rng=0)


def near(found, exact, effective):
    """Within five Monte Carlo errors."""
    mean, deviation = exact
    assert found == pytest.approx(mean, abs=5 * deviation / np.sqrt(effective))


# --- new data -------------------------------------------------------------------------------------


@pytest.mark.long
def test_observing_is_learning_from_the_longer_log():
    before, after = [[4, 2], [3, 3]], [[6, 2], [3, 7]]
    belief = two_rows(before, draws=4000)
    exact = two_category_posterior(after, 0.5, BOUNDS)
    belief.observe([0, 0], 0, 0)
    belief.observe([1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1])
    effective = belief.independent_draws
    assert 500 < effective < belief.mixing.effective
    weights = belief._weights()
    near(weights @ belief._hyper.log_strength[:, 0], exact["ln κ"], effective)
    near(weights @ belief._hyper.law[:, 0], exact["m"], effective)
    near(belief.mean_entries()[0], exact["row"], effective)
    drawn = belief.sample_entries(8000, rng=np.random.default_rng(0))[:, 0]
    near(drawn.mean(), exact["row"], effective)
    assert drawn.std() == pytest.approx(exact["row"][1], rel=0.1)
    # κ did not stay what it was
    stale = two_rows(before, draws=4000)._hyper.log_strength[:, 0].mean()
    assert abs(stale - exact["ln κ"][0]) > 5 * exact["ln κ"][1] / np.sqrt(effective)


@pytest.mark.long
def test_observing_in_a_group_is_learning_from_the_longer_log():
    bounds = (1.0, 300.0)
    belief = groups_of_one_row([[4, 2], [3, 5]], bounds, draws=3000)
    belief.observe(0, 0, [1] * 6)
    exact = two_group_posterior([[4, 8], [3, 5]], tuple(np.log(bounds)))
    effective = belief.independent_draws
    near(belief._weights() @ belief._hyper.log_strength, exact["ln κ_0"], effective)
    near(belief._weights() @ belief._hyper.rows[:, 0], exact["Q"], effective)
    near(belief.mean_entries()[0], exact["P_0"], effective)


@pytest.mark.long
def test_successors_never_seen_before_can_be_observed():
    counts = np.zeros((7, 1, 7), dtype=int)
    counts[:, 0, :2] = np.random.default_rng(3).multinomial(4, [0.6, 0.4], size=7)
    belief = learn_prior(counts, shape="destinations", draws=4000, rng=0).belief()
    assert belief._hyper.law.shape[1] == 3  # the other five are counted together
    belief.observe([3, 4, 4], 0, [6, 5, 0])
    assert belief._hyper.law.shape[1] == 5
    again = learn_prior(belief.counts(), shape="destinations", draws=4000, rng=1).belief()
    deviation = again.sample(4000, rng=0).std(axis=0)
    error = 5 * deviation / np.sqrt(belief.independent_draws)
    assert (np.abs(belief.mean() - again.mean()) <= error).all()
    drawn = belief.sample(4000, rng=2)
    assert (np.abs(drawn.mean(axis=0) - again.mean()) <= 2 * error).all()
    belief.observe([3, 3, 3], 0, [2, 3, 4])  # now all are known apart
    law = belief._hyper.whole(belief._hyper.law, np.random.default_rng(0))
    np.testing.assert_allclose(law.sum(axis=1), 1.0)


def test_one_by_one_or_all_at_once_is_the_same(drifting):
    one, other = drifting.belief(), drifting.belief()
    for t in (4, 5, 4):
        one.observe(4, 0, t)
    other.observe([4, 4, 4], 0, [4, 5, 4])
    np.testing.assert_array_equal(one.counts(), other.counts())
    np.testing.assert_allclose(one._weights(), other._weights(), rtol=1e-9)
    np.testing.assert_allclose(one.mean(), other.mean(), rtol=1e-9)


def test_what_is_refused_changes_nothing(drifting):
    belief = drifting.belief()
    before = belief.counts()
    with pytest.raises(brmdp.ImpossibleTransitionError, match="next_state must be one of"):
        belief.observe([0, 0], 0, [1, 7])
    with pytest.raises(brmdp.InvalidInputError, match="state must lie in"):
        belief.observe(9, 0, 0)
    with pytest.raises(brmdp.InvalidInputError, match="learn the prior again"):
        belief.observe([2] * 900 + [3] * 900, 0, [5] * 900 + [0] * 900)
    belief.observe([], [], [])
    np.testing.assert_array_equal(belief.counts(), before)
    assert not belief._log_weights.any()


def test_rows_with_one_successor_say_nothing_about_the_strength():
    table = np.ones((3, 1, 3))
    table[0, 0, 1:] = 0
    counts = np.array([[[4, 0, 0]], [[1, 2, 3]], [[2, 2, 0]]])
    belief = learn_prior(counts, shape="uniform", possible=table, draws=80, rng=0).belief()
    belief.observe(0, 0, [0] * 50)
    assert not belief._log_weights.any()
    assert belief.counts()[0, 0, 0] == 54


# --- copies and files -----------------------------------------------------------------------------


def test_a_copy_is_independent(drifting):
    belief = drifting.belief()
    twin = belief.copy()
    twin.observe(5, 0, [6, 6, 7])
    assert twin.counts().sum() == belief.counts().sum() + 3
    assert not np.allclose(twin.mean()[5], belief.mean()[5])
    assert "worth" in repr(twin)
    assert "worth" not in repr(belief)
    assert drifting.belief().counts().sum() == belief.counts().sum()


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("kind", ["laws", "uniform", "group"])
def test_files_keep_everything(kind, observed, drifting, tmp_path):
    if kind == "laws":
        belief = drifting.belief()
    elif kind == "uniform":
        belief = learn_prior(np.ones((3, 1, 3), dtype=int), shape="uniform", draws=80).belief()
    else:
        belief = groups_of_one_row([[4, 2], [3, 5]], (1.0, 300.0), draws=80)
    if observed:
        belief.observe(0, 0, 1)
    belief.save(tmp_path / "belief.npz")
    loaded = HierarchicalBelief.load(tmp_path / "belief.npz")
    assert repr(loaded) == repr(belief)
    assert loaded.mixing == belief.mixing
    np.testing.assert_array_equal(loaded.sample(5, rng=1), belief.sample(5, rng=1))
    pairs = belief.pattern.pairs
    np.testing.assert_array_equal(loaded.borrowed(pairs), belief.borrowed(pairs))
    for one in (belief, loaded):
        one.observe(0, 0, [0, 1])
    np.testing.assert_array_equal(loaded.mean(), belief.mean())


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("law", lambda a: -a),
        ("law", lambda a: 2 * a),
        ("law", lambda a: a[:-1]),
        ("place", lambda a: a + 1000),
        ("place", lambda a: a * 0),
        ("family", lambda a: np.array("circles")),
        ("counts", lambda a: a - 1),
        ("counts", lambda a: a[:-1]),
        ("weights", lambda a: a * np.nan),
        ("mixing", lambda a: a[:3]),
        ("borrowed", lambda a: a + 2),
        ("log_strength", lambda a: a + 100),
        ("seed", lambda a: np.array([1, 2])),
    ],
)
def test_bad_files_are_refused(name, change, drifting):
    arrays = drifting.belief().arrays()
    with pytest.raises(brmdp.CorruptFileError):
        HierarchicalBelief.from_arrays({**arrays, name: change(arrays[name])}, "a file")
    with pytest.raises(brmdp.CorruptFileError):
        HierarchicalBelief.from_arrays({k: v for k, v in arrays.items() if k != name}, "a file")


# --- decisions ------------------------------------------------------------------------------------


@pytest.mark.long
def test_sample_information_has_a_value():
    rng = np.random.default_rng(4)
    counts = rng.multinomial(3, [0.4, 0.4, 0.2], size=(3, 2))
    belief = learn_prior(counts, shape="destinations", draws=1000, rng=0).belief()
    found = value_of_information(
        belief,
        rng.random((3, 2)),
        0.8,
        pairs=[(0, 0), (0, 1)],
        transitions=5,
        start=0,
        draws=100,
        rng=0,
    )
    assert np.isfinite(found.sample.mean)
    assert found.sample.mean <= found.perfect.mean + 4 * found.perfect.error


def test_data_that_the_stored_draws_cannot_follow_still_have_a_value_and_are_counted():
    counts = np.full((3, 2, 3), 2)
    belief = learn_prior(counts, shape="destinations", draws=80, rng=0).belief()
    settings = {"pairs": [(0, 0), (1, 1)], "start": 0, "draws": 100, "rng": 0}
    rewards = np.arange(6.0).reshape(3, 2)
    much = value_of_information(belief, rewards, 0.8, transitions=400, **settings)
    assert 0.0 < much.worn <= 1.0
    assert "may be worth more" in " ".join(str(much).split())
    little = value_of_information(belief, rewards, 0.8, transitions=1, **settings)
    assert little.worn == 0.0
    assert "may be worth more" not in " ".join(str(little).split())


def test_how_few_draws_may_be_left_is_for_the_caller_to_say():
    surprise = (0, 0, [2] * 400)
    counts = np.array([[[9, 9, 0]], [[9, 9, 0]], [[9, 9, 0]]])
    belief = learn_prior(counts, shape="destinations", draws=80, rng=0).belief()
    with pytest.raises(brmdp.InvalidInputError, match="400 more observations"):
        belief.observe(*surprise)
    before = belief.mean().copy()
    for bad in (-1.0, np.nan, "few"):
        with pytest.raises(brmdp.InvalidInputError, match="fewest"):
            belief.observe(*surprise, fewest=bad)
    np.testing.assert_array_equal(belief.mean(), before)
    belief.observe(*surprise, fewest=0)
    assert belief.independent_draws < 10
    assert belief.mean()[0, 0, 2] > 0.8


@pytest.mark.long
def test_comparisons_know_what_stored_draws_are_worth(drifting):
    belief = drifting.belief()
    rewards = np.tile(np.arange(8.0)[:, None], (1, 1))
    found = compare(belief, rewards, 0.9, [0] * 8, [0] * 8, start=0, draws=4000, rng=0)
    assert found.gain.error == 0.0
    few = compare(belief, rewards, 0.9, [0] * 8, [0] * 8, start=0, draws=4000, differences=0, rng=0)
    low, high = few.better_interval
    # of at most 400 independent draws, not of 4,000
    assert high - low > 0.005


def test_estimates_are_no_surer_than_the_draws_behind_them():
    values = np.random.default_rng(0).standard_normal(10_000)
    plain = brmdp.decisions.Estimate.of(values)
    stored = brmdp.decisions.Estimate.of(values, 100.0)
    assert stored.error == pytest.approx(plain.error * np.sqrt(1 + 10_000 / 100), rel=1e-9)


# --- what the prior rests on ----------------------------------------------------------------------


def test_borrowed_weight_is_what_the_other_rows_supplied():
    """By hand: with κ → ∞ every observation opens a table of its own."""
    rng = np.random.default_rng(2)
    counts = rng.multinomial(7, [0.5, 0.3, 0.2], size=(3, 1))
    learned = learn_prior(counts, shape="destinations", strength_range=(1e8, 1e9), draws=80, rng=0)
    belief = learned.belief()
    pairs = np.arange(3)
    prior, data = belief.evidence(pairs)
    np.testing.assert_array_equal(data, 7)
    # 14 tables of the two other rows beside a base of ½ per category
    np.testing.assert_allclose(belief.borrowed(pairs) / prior, 14 / 15.5, rtol=1e-5)
    point = learned.posterior()
    np.testing.assert_allclose(
        point.borrowed(pairs) / point.evidence(pairs)[0], 14 / 15.5, rtol=1e-5
    )
    found = brmdp.prior_reliance(belief, [0, 0, 0], 0.9)
    assert found.borrowed + found.share == pytest.approx(1.0, abs=1e-5)
    assert not found.outweighs
    assert "borrowed from other rows of the log" in " ".join(str(found).split())


def test_a_single_row_borrows_nothing_and_the_warning_says_so():
    counts = np.zeros((3, 1, 3), dtype=int)
    counts[0, 0] = 3, 1, 0
    learned = learn_prior(counts, shape="destinations", draws=80, rng=0)
    assert learned.belief().borrowed(np.array([0]))[0] == 0.0
    assert learned.belief().borrowed(np.array([1]))[0] > 0.0
    plain = learn_prior(counts, shape="uniform", draws=80, rng=0)
    np.testing.assert_array_equal(plain.belief().borrowed(np.arange(3)), 0.0)
    with pytest.warns(brmdp.PriorWarning, match=r"it\s+outweighs\s+the\s+data"):
        brmdp.plan(plain.posterior(), np.eye(3)[:, :1], 0.9, risk=brmdp.Quantile(0.1))


def test_groups_borrow_from_each_other():
    counts = {g: np.array([[[29, 1]], [[3, 27]]]) for g in range(3)}
    counts["new"] = np.zeros((2, 1, 2), dtype=int)
    learned = learn_prior(counts, shape="uniform", pooling="partial", draws=80, rng=0)
    shares = {}
    for label in (0, "new"):
        belief = learned.belief(label)
        shares[label] = belief.borrowed(np.arange(2)) / belief.evidence(np.arange(2))[0]
    assert (shares[0] > 0.2).all()
    assert (shares["new"] > shares[0]).all()
    alone = learn_prior(
        {0: counts[0], "new": counts["new"]}, shape="uniform", pooling="partial", draws=80, rng=0
    ).belief(0)
    np.testing.assert_allclose(alone.borrowed(np.arange(2)), 0.0, atol=1e-9)


def test_draws_of_a_learned_prior_depend_neither_on_threads_nor_on_their_order(
    drifting, monkeypatch
):
    belief, rewards = drifting.belief(), np.linspace(0.0, 1.0, 8)[:, None]
    monkeypatch.setattr(draws, "LARGEST_BLOCK", 16)
    monkeypatch.setattr(draws, "WORTH_A_THREAD", 0)
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(draws, "thread_count", lambda threads=threads: threads)
        sampler = Sampler(belief, rewards, 0.8, [np.zeros(8, dtype=int)], rng=5)
        found.append(np.concatenate([block.values for block in sampler.blocks(200)]))
    np.testing.assert_array_equal(*found)
