"""DisturbanceBelief, one noise shared by all pairs, on a small inventory with lost sales."""

import numpy as np
import pytest
from scipy import stats

import brmdp
from brmdp.planning import certify_nested

CAPACITY, DEMANDS = 4, 4
S = CAPACITY + 1
PRIOR = np.array([0.5, 1.0, 2.0, 0.7])
PRICE, COST, HOLDING = 3.0, 1.0, 0.1


def next_stock(stock, order, demand):
    return max(stock + order - demand, 0)


def admissible_orders():
    return np.add.outer(np.arange(S), np.arange(S)) <= CAPACITY


def inventory(concentration=PRIOR):
    return brmdp.DisturbanceBelief.from_function(
        next_stock, S, S, DEMANDS, concentration, admissible=admissible_orders()
    )


def profits():
    """Rewards r(s, a, d): after a lost sale the next stock does not reveal the demand."""
    s, a, d = np.ogrid[:S, :S, :DEMANDS]
    return PRICE * np.minimum(s + a, d) - COST * a - HOLDING * s


def kernel_of(p):
    kernel = np.zeros((S, S, S))
    for s in range(S):
        for a in range(S - s):
            for d in range(DEMANDS):
                kernel[s, a, next_stock(s, a, d)] += p[d]
    return kernel


def state_of(belief):
    return (
        belief.concentration().tobytes(),
        belief.counts().tobytes(),
        belief.mean("flat").tobytes(),
    )


def test_the_function_is_tabulated():
    belief = inventory()
    assert (belief.n_states, belief.n_actions, belief.n_disturbances) == (S, S, DEMANDS)
    assert belief.outcomes.shape == (S, S, DEMANDS)
    for s, a, d in np.ndindex(S, S, DEMANDS):
        assert belief.outcomes[s, a, d] == (next_stock(s, a, d) if s + a <= CAPACITY else -1)
    np.testing.assert_array_equal(belief.pattern.admissible, admissible_orders())
    direct = brmdp.DisturbanceBelief(belief.outcomes, PRIOR)
    assert state_of(direct) == state_of(belief)
    assert not belief.rows_independent


def test_mean_kernel_and_moments():
    belief = inventory()
    p = PRIOR / PRIOR.sum()
    np.testing.assert_allclose(belief.disturbance_mean(), p, rtol=1e-15)
    np.testing.assert_allclose(
        belief.disturbance_variance(), p * (1 - p) / (PRIOR.sum() + 1), rtol=1e-14
    )
    np.testing.assert_allclose(belief.mean(), kernel_of(p), atol=1e-15)
    np.testing.assert_allclose(
        belief.mean("csr").toarray().reshape(S, S, S), kernel_of(p), atol=1e-15
    )
    assert belief.effective_sample_size() == pytest.approx(PRIOR.sum())
    np.testing.assert_array_equal(inventory(2.0).concentration(), np.full(DEMANDS, 2.0))


def test_one_observation_teaches_about_every_pair():
    belief = inventory()
    before = belief.mean()
    assert belief.observe(4, 0, 2) is None  # demand 2
    after = belief.mean()
    np.testing.assert_array_equal(belief.counts(), [0, 0, 1, 0])
    p = (PRIOR + np.array([0, 0, 1, 0])) / (PRIOR.sum() + 1)
    np.testing.assert_allclose(after, kernel_of(p), atol=1e-15)
    moved = (np.abs(after - before) > 1e-6).any(axis=2)
    # all pairs but (0, 0), whose stock stays at zero whatever the demand
    expected = admissible_orders()
    expected[0, 0] = False
    np.testing.assert_array_equal(moved, expected)


def test_a_hidden_disturbance_must_be_given():
    belief = inventory()
    before = state_of(belief)
    # stock 1, order 0, next stock 0: the demand was 1, 2 or 3
    with pytest.raises(
        brmdp.InvalidInputError, match=r"state=1, action=0, next_state=0.*\[1, 2, 3\].*disturbance="
    ):
        belief.observe(1, 0, 0)
    assert state_of(belief) == before
    belief.observe(1, 0, 0, disturbance=3)
    np.testing.assert_array_equal(belief.counts(), [0, 0, 0, 1])
    with pytest.raises(
        brmdp.ImpossibleTransitionError, match=r"disturbance 0.*to 1, not to next_state=0"
    ):
        belief.observe(1, 0, 0, disturbance=0)
    for wrong in (4, -1, -2, 1.0, "2"):
        with pytest.raises(brmdp.InvalidInputError, match="disturbance"):
            belief.observe(4, 0, 2, disturbance=wrong)
    np.testing.assert_array_equal(belief.counts(), [0, 0, 0, 1])


@pytest.mark.parametrize(
    ("transition", "error", "culprit"),
    [
        ((4, 0, 0), brmdp.ImpossibleTransitionError, "state=4, action=0, next_state=0"),
        ((2, 2, 3.0), brmdp.InvalidInputError, r"next_state.*3\.0"),
        ((5, 0, 0), brmdp.InvalidInputError, "state must.*5"),
        ((0, 5, 0), brmdp.InvalidInputError, "action must.*5"),
        ((0, 0, -1), brmdp.InvalidInputError, "next_state must.*-1"),
        ((4, 1, 4), brmdp.InvalidInputError, "action 1 is not admissible in state 4"),
        ((4, 1, -1), brmdp.InvalidInputError, "next_state|not admissible"),
    ],
)
def test_bad_observations_change_nothing(transition, error, culprit):
    belief = inventory()
    belief.observe(4, 0, 4)
    before = state_of(belief)
    with pytest.raises(error, match=culprit):
        belief.observe(*transition)
    s, a, t = transition
    with pytest.raises(error, match=culprit):
        belief.observe([4, s], [0, a], [3, t])
    assert state_of(belief) == before


def test_batch_and_single_observation_agree():
    rng = np.random.default_rng(0)
    demand = rng.integers(DEMANDS, size=60)
    stock = rng.integers(S, size=60)
    after = np.maximum(stock - demand, 0)
    singly, batch, direct = inventory(), inventory(), inventory()
    for item in zip(stock, after, demand, strict=True):
        singly.observe(item[0], 0, item[1], disturbance=item[2])
    assert batch.observe(stock, 0, after, disturbance=demand) is None
    direct.observe_disturbance(demand[:30])
    for d in demand[30:]:
        assert direct.observe_disturbance(d) is None
    assert state_of(singly) == state_of(batch) == state_of(direct)
    np.testing.assert_array_equal(batch.counts(), np.bincount(demand, minlength=DEMANDS))
    np.testing.assert_allclose(
        batch.concentration(), PRIOR + np.bincount(demand, minlength=DEMANDS)
    )


def test_copy_is_independent():
    original = inventory()
    twin = original.copy()
    assert state_of(twin) == state_of(original)
    twin.observe_disturbance(1)
    assert original.counts().sum() == 0
    original.observe_disturbance([2, 3])
    np.testing.assert_array_equal(twin.counts(), [0, 1, 0, 0])
    original.concentration()[:] = 7.0
    np.testing.assert_array_equal(original.concentration(), PRIOR + np.array([0, 0, 1, 1]))


def test_all_pairs_of_a_draw_share_the_distribution():
    belief = inventory()
    draws = belief.sample(400, rng=np.random.default_rng(3))
    assert draws.shape == (400, S, S, S)
    p = draws[:, CAPACITY, 0, ::-1][:, :DEMANDS]  # stock 4, no order: next stock 4 − d reveals p
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-14)
    for draw, probabilities in zip(draws, p, strict=True):
        np.testing.assert_allclose(draw, kernel_of(probabilities), atol=1e-14)
    for d in range(DEMANDS):
        law = stats.beta(PRIOR[d], PRIOR.sum() - PRIOR[d])
        assert stats.kstest(p[:, d], law.cdf).pvalue > 1e-3
    flat = belief.sample(2, rng=0, format="flat").reshape(2, -1, DEMANDS)
    assert (flat == flat[:, :1]).all()


# --- planning -------------------------------------------------------------------------------------


def targets(values, discount):
    """Targets w(s, a, d) = r(s, a, d) + γV(f(s, a, d))."""
    belief = inventory()
    return profits() + discount * values[belief.outcomes]


@pytest.mark.parametrize("alpha", [0.02, 0.3, 0.9])
def test_the_backup_is_the_quantile_over_the_disturbance(alpha):
    belief = inventory()
    belief.observe_disturbance([1, 1, 2, 3, 2])
    values = np.random.default_rng(1).normal(size=S)
    w = targets(values, 0.9)
    mask = admissible_orders()
    rewards = brmdp.DisturbanceRewards(profits())
    phi = belief.concentration()
    found = brmdp.backup(belief, rewards, 0.9, values, risk=brmdp.Quantile(alpha))
    expected, row = brmdp.dirichlet.quantile_row(phi, w[mask], alpha)
    np.testing.assert_allclose(found.q_values[mask], expected, atol=1e-12)
    assert (found.q_values[~mask] == -np.inf).all()
    spread = np.zeros((S, S, S))
    for (s, a), probabilities in zip(np.argwhere(mask), row, strict=True):
        np.add.at(spread[s, a], belief.outcomes[s, a], probabilities)
    np.testing.assert_allclose(found.kernel, spread, atol=1e-9)
    found = brmdp.backup(belief, rewards, 0.9, values, risk=brmdp.CVaR(alpha))
    np.testing.assert_allclose(
        found.q_values[mask], brmdp.dirichlet.cvar(phi, w[mask], alpha), atol=1e-12
    )


@pytest.mark.parametrize("alpha", [0.1, 0.6])
def test_the_plan_is_the_fixed_point_of_that_backup(alpha):
    belief = inventory()
    belief.observe_disturbance([0, 1, 1, 2])
    solution = brmdp.plan(
        belief, brmdp.DisturbanceRewards(profits()), 0.8, risk=brmdp.Quantile(alpha)
    )
    values = np.zeros(S)
    mask = admissible_orders()
    for _ in range(110):  # 0.8^110 · 60 < 2e-9
        q = np.full((S, S), -np.inf)
        q[mask] = brmdp.dirichlet.quantile(
            belief.concentration(), targets(values, 0.8)[mask], alpha
        )
        values = q.max(axis=1)
    np.testing.assert_allclose(solution.values, values, atol=2e-8)
    assert mask[np.arange(S), solution.policy].all()
    np.testing.assert_allclose(
        solution.values,
        brmdp.dirichlet.quantile(
            belief.concentration(),
            targets(solution.values, 0.8)[np.arange(S), solution.policy],
            alpha,
        ),
        atol=1e-7,
    )


def test_mean_plan_equals_the_known_mdp_with_the_mean_demand():
    belief = inventory()
    belief.observe_disturbance([0, 3, 3, 3])
    p = belief.disturbance_mean()
    mask = admissible_orders()
    expected = np.where(mask, profits() @ p, 0.0)
    mdp = brmdp.TabularMDP(kernel_of(p), expected, 0.9, admissible=mask)
    truth = brmdp.solve(mdp)
    rewards = brmdp.DisturbanceRewards(profits())
    np.testing.assert_allclose(
        brmdp.plan(belief, rewards, 0.9, risk=brmdp.Mean()).values, truth.values, atol=1e-7
    )


def test_rewards_by_next_state_agree_with_rewards_by_disturbance():
    belief = inventory()
    by_state = np.random.default_rng(2).normal(size=(S, S, S))
    s, a = np.ogrid[:S, :S]
    by_disturbance = by_state[s[..., None], a[..., None], belief.outcomes]
    for risk in (brmdp.Quantile(0.2), brmdp.CVaR(0.5)):
        one = brmdp.plan(belief, by_state, 0.9, risk=risk).values
        two = brmdp.plan(belief, brmdp.DisturbanceRewards(by_disturbance), 0.9, risk=risk).values
        np.testing.assert_allclose(one, two, atol=1e-9)


def test_certificate_uses_the_union_level():
    belief = inventory()
    belief.observe_disturbance([0, 1, 2, 3] * 5)
    rewards = brmdp.DisturbanceRewards(profits())
    certificate = certify_nested(belief, rewards, 0.8, confidence=0.9, coverage_samples=400, rng=0)
    assert certificate.level == pytest.approx(0.1 / S)
    assert "union" in certificate.rule
    # independent check of the bounds: draw demands, evaluate the policy in each world
    rng = np.random.default_rng(7)
    states = np.arange(S)
    held = 0
    for p in rng.dirichlet(belief.concentration(), size=400):
        kernel = kernel_of(p)[states, certificate.policy]
        reward = (profits() @ p)[states, certificate.policy]
        held += bool(
            (np.linalg.solve(np.eye(S) - 0.8 * kernel, reward) >= certificate.values).all()
        )
    assert held / 400 >= 0.9
    assert certificate.coverage >= 0.9
    assert abs(certificate.coverage - held / 400) < 0.06


def test_bad_disturbance_rewards_are_refused():
    with pytest.raises(
        brmdp.InvalidInputError, match=r"rewards must have shape.*\(5, 5, 4\).*\(5, 5, 3\)"
    ):
        brmdp.plan(
            inventory(), brmdp.DisturbanceRewards(profits()[..., :3]), 0.9, risk=brmdp.Mean()
        )
    bad = profits()
    bad[1, 2, 3] = np.nan
    with pytest.raises(
        brmdp.InvalidInputError, match=r"rewards must be finite; got nan at index \(1, 2, 3\)"
    ):
        brmdp.plan(inventory(), brmdp.DisturbanceRewards(bad), 0.9, risk=brmdp.Mean())


# --- files ----------------------------------------------------------------------------------------


def test_save_and_load_are_bit_identical(tmp_path):
    belief = inventory()
    belief.observe_disturbance([0, 1, 1, 3])
    belief.save(tmp_path / "demand.npz")
    loaded = brmdp.DisturbanceBelief.load(tmp_path / "demand.npz")
    assert state_of(loaded) == state_of(belief)
    np.testing.assert_array_equal(loaded.outcomes, belief.outcomes)
    np.testing.assert_array_equal(loaded.pattern.admissible, belief.pattern.admissible)
    for p in (belief, loaded):
        p.observe(4, 0, 3)
    assert state_of(loaded) == state_of(belief)
    np.testing.assert_array_equal(loaded.sample(2, rng=0), belief.sample(2, rng=0))
