"""Plans and certificates say where they rest on the prior instead of data."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import brmdp
from brmdp import theory
from brmdp.planning import certify_nested
from brmdp.planning.prior import MAX_OUTWEIGHED_TIME, MAX_PRIOR_SHARE
from foreign import Jittered
from oracles import planning
from problems import disturbance, known, problem, scenarios

KEEP, REPLACE = 0, 1


def maintenance_log(n_states=90, steps=15_800, seed=0):
    """A log in which wear grows by 0 to 3 a day.

    The operator replaces now and then, and mostly from two thirds of the wear on.
    """
    rng = np.random.default_rng(seed)
    grows = rng.choice(4, steps, p=(0.55, 0.25, 0.15, 0.05))
    luck = rng.random(steps)
    log, wear = np.empty((steps, 3), dtype=np.int64), 0
    for t in range(steps):
        action = int(luck[t] < (0.25 if wear >= 2 * n_states // 3 else 0.002))
        following = 0 if action == REPLACE else min(wear + int(grows[t]), n_states - 1)
        log[t] = wear, action, following
        wear = following
    return log


def maintenance_rewards(n_states=90):
    wear = np.arange(n_states) / (n_states - 1)
    return np.stack([1 - 1.5 * wear**2, np.full(n_states, -8.0)], axis=1)


def structure(n_states=90):
    """What is known without data: wear grows by at most 3, and a replaced machine is new."""
    now, then = np.arange(n_states)[:, None], np.arange(n_states)
    return np.stack(
        [(then >= now) & (then <= now + 3), np.broadcast_to(then == 0, (n_states, n_states))],
        axis=1,
    )


def reliance_by_hand(belief, policy, discount, start):
    prior = belief.concentration() - belief.counts()
    counts = belief.counts()
    states = np.arange(len(policy))
    m, n = prior[states, policy].sum(axis=1), counts[states, policy].sum(axis=1)
    doubt = (belief.concentration()[states, policy] > 0).sum(axis=1) > 1
    time = planning.discounted_time(belief.mean(), policy, discount, start)
    return {
        "share": (time * np.where(doubt, m / (m + n), 0.0)).sum(),
        "outweighed": time[doubt & (m > n)].sum(),
        "never_observed": states[doubt & (n == 0)],
        "never_observed_visits": time[doubt & (n == 0)].sum(),
    }


def assert_by_hand(found, belief, policy, discount, start, accuracy):
    wanted = reliance_by_hand(belief, policy, discount, start)
    np.testing.assert_array_equal(found.never_observed, wanted["never_observed"])
    for name in ("share", "outweighed", "never_observed_visits"):
        assert getattr(found, name) == pytest.approx(wanted[name], abs=accuracy), name


# --- the case that made it necessary --------------------------------------------------------------


def test_a_log_of_ordered_states_under_the_uniform_prior():
    log, rewards = maintenance_log(), maintenance_rewards()
    uniform = brmdp.DirichletBelief.uniform(90, 2)
    uniform.observe(*log.T)
    with pytest.warns(brmdp.PriorWarning, match="this plan rests heavily on the prior") as caught:
        bad = brmdp.plan(uniform, rewards, 0.95, risk=brmdp.Quantile(0.1))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert (bad.policy == KEEP).all(), "never replace: what the prior makes of it"
    assert bad.prior.outweighs
    assert "rests on the prior" in repr(bad)
    seen = np.bincount(log[:, 0], minlength=90) / len(log)
    assert bad.prior.start == "observed states"
    assert_by_hand(bad.prior, uniform, bad.policy, 0.95, seen, 1e-9)
    assert bad.prior.never_observed.size > 10
    with pytest.warns(brmdp.PriorWarning, match="this certificate rests heavily on the prior"):
        certificate = certify_nested(uniform, rewards, 0.95, 0.9, coverage_samples=50, rng=0)
    assert certificate.prior.outweighs
    assert "This belief rests heavily on the prior" in str(certificate)
    # the same log with a prior that rules out what is impossible
    careful = brmdp.DirichletBelief.uniform(90, 2, possible=structure())
    careful.observe(*log.T)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        good = brmdp.plan(careful, rewards, 0.95, risk=brmdp.Quantile(0.1))
        sure = certify_nested(careful, rewards, 0.95, 0.9, coverage_samples=50, rng=0)
    assert (good.policy[60:] == REPLACE).all()
    assert not good.prior.outweighs
    assert "rests on the prior" not in repr(good)
    assert "prior" not in str(sure)
    assert_by_hand(good.prior, careful, good.policy, 0.95, seen, 1e-9)
    world = brmdp.TabularMDP(np.where(structure(), careful.mean(), 0.0), rewards, 0.95)
    loss = brmdp.evaluate_in_mdp(world, good.policy) - brmdp.evaluate_in_mdp(world, bad.policy)
    assert loss.max() > 5.0


# --- figures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [None, 3, np.eye(6)[2]])
@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99])
def test_figures_by_hand(start, discount):
    belief = problem("riverswim").belief
    policy = np.array([1, 1, 0, 1, 0, 1])
    found = brmdp.prior_reliance(belief, policy, discount, start=start)
    begin = {type(None): belief.counts().sum(axis=(1, 2)) / 200, int: np.eye(6)[3]}.get(
        type(start), np.eye(6)[2]
    )
    assert found.start == ("observed states" if start is None else "given")
    assert_by_hand(found, belief, policy, discount, begin, 1e-9)


@pytest.mark.parametrize("discount", [0.6, 0.95, 0.99])
def test_many_states_are_looked_at_iteratively(discount):
    n, rng = 300, np.random.default_rng(3)
    near = (np.arange(n)[:, None, None] + np.array([[-1, 0, 1], [1, 2, 5]])) % n
    rows = np.repeat(np.arange(2 * n), 3)
    possible = sparse.csr_array((np.ones(6 * n), (rows, near.reshape(-1))), (2 * n, n))
    belief = brmdp.DirichletBelief.uniform(n, 2, 2.0, possible=possible)
    states = rng.integers(n // 2, size=2000)
    belief.observe(states, np.zeros(2000, dtype=int), (states + rng.integers(-1, 2, 2000)) % n)
    policy = np.zeros(n, dtype=int)
    found = brmdp.prior_reliance(belief, policy, discount)
    assert found.accuracy <= 5e-3
    assert_by_hand(
        found, belief, policy, discount, np.bincount(states, minlength=n) / 2000, found.accuracy
    )


def test_known_rows_need_no_data():
    belief = brmdp.DirichletBelief.uniform(
        3, 1, possible=np.array([[[0, 1, 0]], [[0, 0, 1]], [[1, 0, 0]]])
    )
    found = brmdp.prior_reliance(belief, [0, 0, 0], 0.9)
    assert (found.share, found.outweighed, found.never_observed.size) == (0.0, 0.0, 0)
    assert not found.outweighs
    assert "None of its pairs was observed" not in str(found)


def test_data_inside_a_concentration_count_as_prior_and_it_says_so():
    belief = brmdp.DirichletBelief(np.full((2, 1, 2), 500.0))
    found = brmdp.prior_reliance(belief, [0, 0], 0.9)
    assert found.share == pytest.approx(1.0)
    assert found.start == "uniform"
    text = " ".join(str(found).split())
    assert "Data already included in a concentration count as prior: pass them to observe" in text


def test_a_shared_disturbance_teaches_about_all_pairs():
    case = disturbance(14)
    policy = case.admissible.argmax(axis=1)
    assert brmdp.prior_reliance(case.belief, policy, 0.8).share == pytest.approx(1.0)
    belief = case.belief.copy()
    belief.observe_disturbance(np.zeros(1000, dtype=int))
    found = brmdp.prior_reliance(belief, policy, 0.8)
    total = case.belief.concentration().sum()
    assert found.share == pytest.approx(total / (total + 1000))
    assert found.start == "uniform"
    assert found.never_observed.size == 0
    # rows whose outcomes all agree are known
    outcomes = np.tile(np.array([[[1, 1]], [[0, 0]]]), (1, 1, 1))
    assert brmdp.prior_reliance(brmdp.DisturbanceBelief(outcomes), [0, 0], 0.8).share == 0.0


def test_beliefs_that_do_not_tell_have_none():
    for case in (scenarios(15), known(3)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert case.plan(brmdp.Quantile(0.2)).prior is None
    assert brmdp.prior_reliance(Jittered(np.ones((2, 1, 2))), [0, 0], 0.9) is None

    class Telling(Jittered):
        def evidence(self, pairs):
            return np.full(len(pairs), 3.0), np.full(len(pairs), 1.0)

    assert brmdp.prior_reliance(Telling(np.ones((2, 1, 2))), [0, 0], 0.9).share == pytest.approx(
        0.75
    )

    class Mistaken(Jittered):
        def evidence(self, pairs):
            return np.ones(1), np.ones(1)

    with pytest.raises(
        brmdp.InvalidInputError, match=r"Mistaken\.evidence must return one number per state"
    ):
        brmdp.prior_reliance(Mistaken(np.ones((2, 1, 2))), [0, 0], 0.9)


@pytest.mark.parametrize(
    ("evidence", "observed", "message"),
    [
        (
            lambda n: np.ones(n),
            np.ones,
            r"evidence must return two arrays, for prior and data; got ndarray",
        ),
        (
            lambda n: (np.zeros(n), np.zeros(n)),
            np.ones,
            r"evidence must not be zero in both arrays, but is for .* state 0",
        ),
        (lambda n: (np.ones(n), -np.ones(n)), np.ones, r"evidence must not be negative; got -1"),
        (
            lambda n: (np.ones(n), np.ones(n)),
            lambda n: np.ones(n + 1),
            r"observed_states must return one number per state",
        ),
        (
            lambda n: (np.ones(n), np.ones(n)),
            lambda n: -np.ones(n),
            r"observed_states must not be negative",
        ),
        (
            lambda n: (np.ones(n), np.ones(n)),
            lambda n: np.full(n, np.nan),
            r"observed_states must be finite",
        ),
    ],
)
def test_what_a_belief_of_ones_own_tells_is_checked(evidence, observed, message):
    class Telling(Jittered):
        def evidence(self, pairs):
            return evidence(len(pairs))

        def observed_states(self):
            return observed(2)

    with pytest.raises(brmdp.InvalidInputError, match=message):
        brmdp.prior_reliance(Telling(np.ones((2, 1, 2))), [0, 0], 0.9)


def test_a_long_chain_is_followed_to_its_end():
    """Data from all but the end of a river that takes thousands of steps.

    Sweeps alone never get there.
    """
    n = 4000
    possible = sparse.diags_array([np.ones(n), np.ones(n - 1)], offsets=[0, 1]).tocsr()
    belief = brmdp.DirichletBelief.uniform(n, 1, possible=possible)
    states = np.repeat(np.arange(n - 100), 20)
    belief.observe(states, 0 * states, states + 1)
    policy = np.zeros(n, dtype=int)
    found = brmdp.prior_reliance(belief, policy, 0.9999, start=0)
    # In a chain with mean step p, the time in state s is
    # (1 − γ) Π_{r<s} γp_r/(1 − γ(1 − p_r)) / (1 − γ(1 − p_s)).
    step = np.r_[np.full(n - 100, 21 / 22), np.full(99, 0.5), 0.0]
    leave = 1 - 0.9999 * (1 - step)
    time = 1e-4 * np.cumprod(np.r_[1.0, 0.9999 * step[:-1] / leave[:-1]]) / leave
    assert found.outweighed == pytest.approx(time[n - 100 : n - 1].sum(), abs=1e-6)
    assert found.accuracy <= 5e-3
    assert found.never_observed_visits == found.outweighed


def test_a_certificate_names_pairs_never_observed_that_the_rule_lets_pass():
    """A costly state that the policy rarely meets: half a percent of its time, all of the loss."""
    kernel = np.array([[0.99, 0.005, 0, 0.005], [0.5, 0, 0.5, 0], [1, 0, 0, 0], [1, 0, 0, 0]])[
        :, None
    ]
    rewards = np.ones((4, 1, 4))
    rewards[1, 0, 2] = -10_000.0
    belief = brmdp.DirichletBelief.uniform(4, 1, possible=kernel > 0)
    belief.observe([0] * 1000, [0] * 1000, [0] * 990 + [1] * 5 + [3] * 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certificate = certify_nested(belief, rewards, 0.95, coverage_samples=50, rng=0)
    assert (
        "Never observed: 1 of its 4 pairs, in which it spends 0.56 % of its time; there, only the "
        "prior supports the bounds."
    ) in " ".join(str(certificate).split())


# --- the rule -------------------------------------------------------------------------------------


def split(outweighed_time, observations):
    """With γ = 0 all time is spent in the first state, which is one of two.

    ``outweighed_time`` is spent in a pair never observed, the rest in an observed one.
    """
    belief = brmdp.DirichletBelief.uniform(2, 1)
    belief.observe([0] * observations, [0] * observations, [0] * observations)
    return brmdp.prior_reliance(belief, [0, 0], 0.0, start=[1 - outweighed_time, outweighed_time])


def test_the_rule():
    assert not split(0.999 * MAX_OUTWEIGHED_TIME, 100_000).outweighs
    assert split(1.001 * MAX_OUTWEIGHED_TIME, 100_000).outweighs
    # two successors of weight one: the prior's share is 2/(2 + n), a quarter at n = 6
    assert MAX_PRIOR_SHARE == 0.25
    assert split(0.0, 5).outweighs
    assert not split(0.0, 6).outweighs


def test_start_is_checked_and_matters():
    belief, rewards = problem("riverswim").belief, problem("riverswim").rewards
    for call in (
        lambda start: brmdp.plan(belief, rewards, 0.9, risk=brmdp.Mean(), start=start),
        lambda start: certify_nested(belief, rewards, 0.9, coverage_samples=0, start=start),
        lambda start: brmdp.evaluate_under_belief(
            belief, rewards, 0.9, [1] * 6, risk=brmdp.Mean(), start=start
        ),
    ):
        with pytest.raises(brmdp.InvalidInputError, match="start must"):
            call(6)
        with pytest.raises(brmdp.InvalidInputError, match="start must"):
            call([0.5] * 6)
        first, last = call(0).prior, call(5).prior
        assert first.start == last.start == "given"
        assert first.share < last.share


# --- who warns ------------------------------------------------------------------------------------


def test_a_value_warns_too_and_agents_do_not():
    bare = brmdp.DirichletBelief.uniform(6, 2)
    world = brmdp.World("brmdp/RiverSwim-v0", 0.9)
    with pytest.warns(brmdp.PriorWarning, match="this value rests heavily on the prior"):
        brmdp.evaluate_under_belief(bare, world.rewards, 0.9, [1] * 6, risk=brmdp.Quantile(0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent = brmdp.agents.aq_brmdp(bare, world.rewards, 0.9, delta=5, rng=0)
        brmdp.simulate(
            agent,
            world,
            40,
            seed=0,
            diagnostics=brmdp.Diagnostics(robust_level=0.2, quantile_level=0.1),
        )
        theory.exact_caution_cost(bare, world.rewards, 0.9, [1] * 6, 0.1)
    assert agent.report.solution.prior is None
    assert brmdp.prior_reliance(agent.belief, agent.policy, 0.9).outweighs


@pytest.mark.parametrize(("accuracy", "outweighs"), [(1e-9, False), (0.1, True)])
def test_shares_that_are_not_known_well_do_not_reassure(accuracy, outweighs):
    found = brmdp.prior_reliance(brmdp.DirichletBelief.uniform(2, 2), [0, 0], 0.9)
    known = replace(found, share=0.02, outweighed=0.0, accuracy=accuracy)
    assert known.outweighs == outweighs
