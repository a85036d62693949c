"""LakeBelief: conjugate updates against Bayes by brute force, draws, files, bad input."""

import numpy as np
import pytest
from scipy import stats

import brmdp
from brmdp.continuous.belief import LakeBelief
from brmdp.continuous.environment import ContinuousFrozenLakeEnv
from brmdp.continuous.lake import CENTRES, GOAL, HOLES, LakeParameters, cells
from oracles import continuous_lake as oracle

ICE, HOLE, GOAL_STATE = CENTRES[0], CENTRES[5], CENTRES[GOAL]
PRIOR = {"slip": (0.5, 2.0, 1.5), "mobility": (0.7, 3.0), "spread": (1.5, 0.3)}


def content(belief):
    return b"".join(belief.arrays()[name].tobytes() for name in ("slip", "mobility", "spread"))


def walk(steps, seed):
    """Transitions of a random walk with their primitives."""
    env = ContinuousFrozenLakeEnv()
    state, _ = env.reset(seed=seed)
    actions = np.random.default_rng(seed).integers(4, size=steps)
    for action in actions:
        following, _, _, _, info = env.step(action)
        yield state, int(action), following, info
        state = following


def learnt(steps=60, seed=0, **prior):
    belief = LakeBelief(**prior)
    for transition in walk(steps, seed):
        belief.observe(*transition)
    return belief


def test_the_default_is_the_papers_prior():
    belief = LakeBelief()
    np.testing.assert_array_equal(belief.slip, [1, 1, 1])
    np.testing.assert_array_equal(belief.mobility, [1, 1])
    np.testing.assert_array_equal(belief.spread, [2, 0.25])
    mean = belief.mean()
    np.testing.assert_allclose(mean.slip, [1 / 3] * 3)
    assert (mean.mobility, mean.spread) == (0.5, 0.5)
    assert mean.mobility.shape == mean.spread.shape == ()


def test_counts_and_largest_length():
    belief = LakeBelief()
    modes, mobiles, lengths, resets = [], [], [], 0
    for state, action, following, info in walk(400, seed=3):
        assert belief.observe(state, action, following, info) is None
        modes += [] if info["mode"] is None else [info["mode"]]
        mobiles += [] if info["mobile"] is None else [info["mobile"]]
        lengths += [] if info["length"] is None else [info["length"]]
        resets += bool(cells(state) == GOAL)
    assert resets > 0
    assert len(modes) + len(mobiles) + resets == 400
    assert len(lengths) == len(modes) + sum(mobiles)
    np.testing.assert_array_equal(belief.slip, 1 + np.bincount(modes, minlength=3))
    np.testing.assert_array_equal(
        belief.mobility, [1 + sum(mobiles), 1 + len(mobiles) - sum(mobiles)]
    )
    np.testing.assert_array_equal(belief.spread, [2 + len(lengths), max(lengths) - 0.75])


@pytest.mark.parametrize("steps", [0, 1, 5, 60])
def test_updates_are_bayes_rule(steps):
    transitions = list(walk(steps, seed=5))
    belief = LakeBelief(**PRIOR)
    for transition in transitions:
        belief.observe(*transition)
    infos = [info for *_, info in transitions]
    modes = np.bincount([i["mode"] for i in infos if i["mode"] is not None], minlength=3)
    mobiles = [i["mobile"] for i in infos if i["mobile"] is not None]
    lengths = np.array([i["length"] - 0.75 for i in infos if i["length"] is not None])
    mean = belief.mean()

    # mobility: midpoints in the logit, where the density is smooth down to both ends
    logit = (np.arange(-4000, 4000) + 0.5) / 100
    p, rest = 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(logit))
    prior = p ** PRIOR["mobility"][0] * rest ** PRIOR["mobility"][1]
    weights = oracle.weights_by_bayes(
        prior, sum(np.log(p if m else rest) for m in mobiles) + np.zeros(p.shape)
    )
    law = stats.beta(*belief.mobility)
    assert weights @ p == pytest.approx(float(mean.mobility), rel=1e-6)
    assert weights @ (p - weights @ p) ** 2 == pytest.approx(law.var(), rel=1e-5)

    # slip: p1 = x, p2 = (1 − x)y, both in the logit
    z = (np.arange(-320, 320) + 0.5) / 8
    one, rest = 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(z))
    slip = np.stack([np.outer(one, np.ones(z.size)), np.outer(rest, one), np.outer(rest, rest)])
    jacobian = np.outer(one * rest * rest, one * rest)
    prior = (
        np.prod([s ** (a - 1) for s, a in zip(slip, PRIOR["slip"], strict=True)], axis=0) * jacobian
    )
    weights = oracle.weights_by_bayes(prior, np.tensordot(modes, np.log(slip), 1))
    found = (weights * slip).sum(axis=(1, 2))
    np.testing.assert_allclose(found, mean.slip, rtol=1e-6)
    total = belief.slip.sum()
    second = (weights * slip[0] * slip[1]).sum()
    assert second == pytest.approx(
        belief.slip[0] * belief.slip[1] / (total * (total + 1)), rel=1e-6
    )

    # spread: the density on a fine grid of log θ; the likelihood of U is 1/θ above the largest
    step = 2e-4
    theta = 0.3 * np.exp(step * (np.arange(150_000) + 0.5))
    a, scale = PRIOR["spread"]
    prior = a * scale**a * theta**-a
    log_likelihood = sum(np.where(theta >= u, -np.log(theta), -np.inf) for u in lengths) + np.zeros(
        theta.shape
    )
    weights = oracle.weights_by_bayes(prior, log_likelihood)
    shape, least = belief.spread
    assert weights @ theta == pytest.approx(float(mean.spread), rel=1e-3)
    for t in (1.0001, 1.01, 1.3, 4.0):
        cut = least * t
        assert weights[theta > cut].sum() == pytest.approx(t**-shape, abs=step * shape)


def test_goal_transitions_teach_nothing():
    belief = learnt()
    before = content(belief)
    belief.observe(GOAL_STATE, 2, ICE, {"mode": None, "mobile": None, "length": None})
    assert content(belief) == before


def test_an_immobile_step_teaches_only_mobility():
    belief = LakeBelief()
    belief.observe(HOLE, 0, HOLE, {"mode": None, "mobile": 0, "length": None})
    np.testing.assert_array_equal(belief.mobility, [1, 2])
    np.testing.assert_array_equal(belief.slip, [1, 1, 1])
    np.testing.assert_array_equal(belief.spread, [2, 0.25])
    belief.observe(HOLE, 0, HOLE, {"mode": None, "mobile": 1, "length": 1.2})
    np.testing.assert_array_equal(belief.mobility, [2, 2])
    np.testing.assert_allclose(belief.spread, [3, 0.45])


def test_the_posterior_finds_the_truth():
    mean = learnt(4000, seed=8).mean()
    np.testing.assert_allclose(
        mean.slip, [0.5, 0.25, 0.25], atol=0.04
    )  # 4 standard deviations at about 2000 movements
    assert mean.mobility == pytest.approx(0.2, abs=0.04)
    assert mean.spread == pytest.approx(0.5, abs=0.003)


# --- draws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: LakeBelief(**PRIOR), learnt], ids=["prior", "learnt"])
def test_draws_follow_the_posterior(make):
    belief, n = make(), 20_000
    draws = belief.sample(n, rng=np.random.default_rng(1))
    assert isinstance(draws, LakeParameters)
    assert [part.shape for part in draws] == [(n, 3), (n,), (n,)]
    np.testing.assert_allclose(draws.slip.sum(axis=1), 1.0, atol=1e-14)
    total = belief.slip.sum()
    for k in range(3):
        assert (
            stats.kstest(
                draws.slip[:, k], stats.beta(belief.slip[k], total - belief.slip[k]).cdf
            ).pvalue
            > 1e-3
        )
    covariance = -belief.slip[0] * belief.slip[1] / (total**2 * (total + 1))
    products = (draws.slip[:, 0] - belief.slip[0] / total) * (
        draws.slip[:, 1] - belief.slip[1] / total
    )
    assert products.mean() == pytest.approx(covariance, abs=4 * products.std() / np.sqrt(n))
    assert stats.kstest(draws.mobility, stats.beta(*belief.mobility).cdf).pvalue > 1e-3
    shape, scale = belief.spread
    assert stats.kstest(draws.spread, stats.pareto(shape, scale=scale).cdf).pvalue > 1e-3
    mean = belief.mean()
    assert draws.mobility.mean() == pytest.approx(
        float(mean.mobility), abs=4 * draws.mobility.std() / np.sqrt(n)
    )
    # the logarithm of a Pareto has a finite variance whatever the shape
    assert np.log(draws.spread / scale).mean() == pytest.approx(
        1 / shape, abs=4 / shape / np.sqrt(n)
    )
    # independent of each other
    ranks = stats.spearmanr(
        np.column_stack([draws.slip[:, 0], draws.mobility, draws.spread])
    ).statistic
    assert np.abs(ranks[np.triu_indices(3, 1)]).max() < 4 / np.sqrt(n)


def test_the_mean_of_the_spread_is_that_of_its_draws():
    belief = LakeBelief(spread=(6.0, 0.4))
    draws = belief.sample(50_000, rng=2).spread
    assert draws.mean() == pytest.approx(0.48, abs=4 * draws.std() / np.sqrt(50_000))
    assert belief.mean().spread == pytest.approx(0.48)


def test_draws_depend_on_the_stream_alone():
    belief = learnt()
    one, two, other = (belief.sample(5, rng=np.random.default_rng(seed)) for seed in (3, 3, 4))
    for a, b, c in zip(one, two, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert (a != c).any()


def test_tiny_concentrations_give_proper_draws():
    draws = LakeBelief(slip=[1e-9] * 3, mobility=[1e-9, 1e-9]).sample(200, rng=0)
    np.testing.assert_allclose(draws.slip.sum(axis=1), 1.0)
    assert np.isfinite(draws.mobility).all()


# --- copies and files -----------------------------------------------------------------------------


def test_copy_is_independent():
    original = learnt()
    twin = original.copy()
    assert content(twin) == content(original)
    twin.observe(ICE, 0, ICE, {"mode": 1, "mobile": None, "length": 1.3})
    assert content(twin) != content(original)
    assert content(original) == content(learnt())


def test_the_prior_given_is_not_changed():
    prior = {name: np.array(value) for name, value in PRIOR.items()}
    learnt(**prior)
    for name, value in PRIOR.items():
        np.testing.assert_array_equal(prior[name], value)


def test_files_are_lossless_and_learning_goes_on(tmp_path):
    belief = learnt(**PRIOR)
    path = tmp_path / "belief.npz"
    belief.save(path)
    loaded = LakeBelief.load(path)
    assert content(loaded) == content(belief)
    for transition in walk(30, seed=9):
        belief.observe(*transition)
        loaded.observe(*transition)
    assert content(loaded) == content(belief)
    with np.load(path, allow_pickle=False) as archive:
        assert {archive[name].dtype.kind for name in archive.files} <= {"f", "U"}


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "belief.npz"
    belief = learnt()
    belief.save(path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(brmdp.CorruptFileError, match=r"belief\.npz"):
            LakeBelief.load(path)
    refused = 0
    for position in range(0, len(whole), 5):
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        try:
            assert content(LakeBelief.load(path)) == content(belief)
        except brmdp.CorruptFileError:
            refused += 1
    assert refused > 0.7 * len(whole) / 5


@pytest.mark.parametrize(
    "change",
    [
        {"slip": np.array([1.0, 1.0])},
        {"slip": np.array([1.0, 0.0, 1.0])},
        {"mobility": np.array([1.0, np.nan])},
        {"mobility": np.array(["a", "b"])},
        {"spread": np.array([1.0, 0.25])},
        {"extra": np.array([1.0])},
    ],
)
def test_files_with_impossible_content_are_refused(tmp_path, change):
    with pytest.raises(brmdp.CorruptFileError, match="source"):
        LakeBelief.from_arrays(LakeBelief().arrays() | change, "source")


def test_files_of_another_kind_are_refused(tmp_path):
    brmdp.DirichletBelief.uniform(2, 2).save(tmp_path / "other.npz")
    with pytest.raises(brmdp.CorruptFileError, match="DirichletBelief"):
        LakeBelief.load(tmp_path / "other.npz")


def test_repr():
    belief = LakeBelief()
    belief.observe(ICE, 0, ICE, {"mode": 1, "mobile": None, "length": 1.25})
    assert repr(belief) == (
        "LakeBelief(slip ~ Dir(1, 2, 1), mobility ~ Beta(1, 1), spread ~ Pareto(3, 0.5))"
    )


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prior", "culprit"),
    [
        ({"slip": (1, 1)}, "slip must be 3 numbers"),
        ({"slip": (1, 1, 0)}, "slip must be 3 numbers"),
        ({"slip": (1, 1, np.nan)}, "slip must be finite"),
        ({"slip": "even"}, "slip must be an array of real numbers"),
        ({"mobility": (1, -1)}, "mobility must be 2 numbers"),
        ({"mobility": (1, 1, 1)}, "mobility must be 2 numbers"),
        ({"mobility": (1, np.inf)}, "mobility must be finite"),
        ({"spread": (2, 0)}, "spread must be 2 numbers"),
        ({"spread": 2.0}, "spread must be 2 numbers"),
        ({"spread": (1.0, 0.25)}, r"spread must have a shape .* above 1.*got 1\.0"),
    ],
)
def test_bad_priors_are_named(prior, culprit):
    with pytest.raises(brmdp.InvalidInputError, match=culprit):
        LakeBelief(**prior)


def primitives(mode=None, mobile=None, length=None):
    return {"mode": mode, "mobile": mobile, "length": length}


@pytest.mark.parametrize(
    ("state", "told", "culprit"),
    [
        (ICE, {"mobile": None, "length": 1.0}, "'mode' is missing"),
        (ICE, {"mode": 0, "length": 1.0}, "'mobile' is missing"),
        (HOLE, {"mode": None, "mobile": 0}, "'length' is missing"),
        (GOAL_STATE, {}, "'mode' is missing"),
        (ICE, None, "primitives must be a mapping .* got None"),
        (ICE, (0, None, 1.0), "primitives must be a mapping"),
        (ICE, primitives(None, None, 1.0), r"\['mode'\] on an ordinary cell must .*0\.\.2.*None"),
        (
            ICE,
            primitives(3, None, 1.0),
            r"\['mode'\] on an ordinary cell must lie in 0\.\.2; got 3",
        ),
        (ICE, primitives(-1, None, 1.0), r"\['mode'\].*-1"),
        (ICE, primitives(1.0, None, 1.0), r"\['mode'\].*1\.0"),
        (ICE, primitives(True, None, 1.0), r"\['mode'\].*True"),
        (ICE, primitives(0, 1, 1.0), r"\['mobile'\] must be None on an ordinary cell; got 1"),
        (ICE, primitives(0, None, None), r"\['length'\] on an ordinary cell .*0\.75.*None"),
        (
            ICE,
            primitives(0, None, 0.7),
            r"\['length'\] on an ordinary cell .*at least 0\.75; got 0\.7",
        ),
        (ICE, primitives(0, None, np.nan), r"\['length'\].*nan"),
        (ICE, primitives(0, None, np.inf), r"\['length'\].*inf"),
        (ICE, primitives(0, None, "1"), r"\['length'\].*'1'"),
        (HOLE, primitives(None, None, None), r"\['mobile'\] in a hole must .*0\.\.1.*None"),
        (HOLE, primitives(None, 2, 1.0), r"\['mobile'\] in a hole must lie in 0\.\.1; got 2"),
        (HOLE, primitives(None, True, 1.0), r"\['mobile'\].*True"),
        (HOLE, primitives(0, 1, 1.0), r"\['mode'\] must be None in a hole"),
        (HOLE, primitives(None, 1, None), r"\['length'\] in a hole with mobile = 1 must .*None"),
        (
            HOLE,
            primitives(None, 0, 1.0),
            r"\['length'\] must be None in a hole with mobile = 0; got 1\.0",
        ),
        (GOAL_STATE, primitives(0, None, 1.0), r"\['mode'\] must be None in the goal; got 0"),
        (GOAL_STATE, primitives(None, 0, None), r"\['mobile'\] must be None in the goal"),
        (GOAL_STATE, primitives(None, None, 1.0), r"\['length'\] must be None in the goal"),
    ],
)
def test_primitives_must_fit_the_cell(state, told, culprit):
    belief = learnt()
    before = content(belief)
    with pytest.raises(brmdp.InvalidInputError, match=culprit):
        belief.observe(state, 0, ICE, told)
    assert content(belief) == before


def test_every_hole_is_a_hole():
    for cell in range(16):
        belief = LakeBelief()
        told = primitives(None, 0, None)
        if cell in HOLES:
            belief.observe(CENTRES[cell], 0, CENTRES[cell], told)
            assert belief.mobility[1] == 2
        else:
            with pytest.raises(brmdp.InvalidInputError, match="mobile"):
                belief.observe(CENTRES[cell], 0, CENTRES[cell], told)


@pytest.mark.parametrize(
    ("transition", "culprit"),
    [
        (((4.1, 0.0), 0, ICE), r"state must lie in \[0, 4\]².*4\.1"),
        (((np.nan, 0.0), 0, ICE), "state must be finite"),
        ((3, 0, ICE), r"state must be two numbers \(x, y\)"),
        ((ICE, 4, ICE), r"action must lie in 0\.\.3; got 4"),
        ((ICE, 0.5, ICE), r"action must be an integer in 0\.\.3"),
        ((ICE, 0, (0.0, -0.1)), r"next_state must lie in \[0, 4\]²"),
        ((ICE, 0, None), "next_state"),
    ],
)
def test_bad_transitions_change_nothing(transition, culprit):
    belief = learnt()
    before = content(belief)
    with pytest.raises(brmdp.InvalidInputError, match=culprit):
        belief.observe(*transition, primitives(0, None, 1.0))
    assert content(belief) == before


@pytest.mark.parametrize("n", [0, -1, 2.0, None])
def test_bad_number_of_draws(n):
    with pytest.raises(brmdp.InvalidInputError, match="n must be a positive integer"):
        LakeBelief().sample(n, rng=0)


def test_bad_stream():
    with pytest.raises(brmdp.InvalidInputError, match="rng must be"):
        LakeBelief().sample(1, rng="chance")
