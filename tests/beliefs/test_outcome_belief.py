"""Beliefs over outcomes (s', r): the law of w·P, data, merging, files, and what is refused."""

import numpy as np
import pytest
from scipy.special import betaincinv

import brmdp
from brmdp import decisions
from brmdp.planning import Problem, certify_nested
from oracles import outcomes as oracle
from problems import dense, inadmissible, sparse_rows

MEASURES = {
    "mean": brmdp.Mean,
    "quantile": lambda: brmdp.Quantile(0.15),
    "saddlepoint": lambda: brmdp.Quantile(0.15, method="saddlepoint"),
    "cvar": lambda: brmdp.CVaR(0.3),
    "draw": lambda: brmdp.PosteriorSample(rng=3),
    "sampled": lambda: brmdp.Quantile(0.3, brmdp.MonteCarlo(samples=30, rng=4)),
}


def as_outcomes(problem):
    """The same belief with the known reward of every transition as its only possible one."""
    pattern = problem.belief.pattern
    states, actions = np.divmod(pattern.pair_of_transition, pattern.n_actions)
    rewards = problem.belief.gather_rewards(problem.rewards)
    table = np.column_stack([states, actions, pattern.next_states, rewards])
    order = np.random.default_rng(1).permutation(len(table))  # the order of the rows is no matter
    return brmdp.OutcomeBelief(
        table[order],
        problem.belief.concentration("flat")[order],
        n_states=pattern.n_states,
        n_actions=pattern.n_actions,
    )


def three_by_three(seed=5, observed=40):
    """Three states, two actions, three rewards; and its data."""
    belief = brmdp.OutcomeBelief.uniform(3, 2, [-1.0, 0.5, 2.0], 0.7)
    rng = np.random.default_rng(seed)
    columns = [rng.integers(n, size=observed) for n in (3, 2, 3)]
    paid = rng.choice([-1.0, 0.5, 2.0], size=observed, p=[0.2, 0.5, 0.3])
    belief.observe(*columns, paid)
    return belief, list(zip(*(c.tolist() for c in columns), paid.tolist(), strict=True))


# --- the law of w·P -------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [dense, sparse_rows, inadmissible])
@pytest.mark.parametrize("measure", MEASURES)
def test_with_one_reward_per_successor_it_is_the_plain_dirichlet_belief(make, measure):
    problem = make(7)
    belief = as_outcomes(problem)
    assert belief.pattern.same_as(problem.belief.pattern)
    plain = problem.plan(MEASURES[measure]())
    found = brmdp.plan(belief, None, problem.discount, risk=MEASURES[measure]())
    np.testing.assert_array_equal(found.values, plain.values)
    np.testing.assert_array_equal(found.q_values, plain.q_values)
    np.testing.assert_array_equal(found.policy, plain.policy)
    assert (found.status, found.error_bound, found.caveat) == (
        plain.status,
        plain.error_bound,
        "",
    )


def test_its_certificates_are_those_of_the_plain_dirichlet_belief():
    problem = dense(7)
    plain = certify_nested(problem.belief, problem.rewards, problem.discount, 0.8, rng=1)
    found = certify_nested(as_outcomes(problem), None, problem.discount, 0.8, rng=1)
    np.testing.assert_array_equal(found.values, plain.values)
    assert (found.rule, found.coverage) == (plain.rule, plain.coverage)
    again, sampled = (
        decisions.certify(
            *given, problem.discount, 0.8, policy=[0, 1, 2, 0], start=0, draws=500, rng=2
        )
        for given in ((problem.belief, problem.rewards), (as_outcomes(problem), None))
    )
    assert sampled.value == again.value
    assert sampled.nested_value == again.nested_value


@pytest.mark.parametrize("alpha", [0.02, 0.3, 0.9])
def test_quantiles_and_cvar_against_a_large_sample(alpha):
    belief, data = three_by_three()
    values, gamma, n = np.array([0.3, -1.0, 2.0]), 0.8, 40_000
    q = brmdp.backup(belief, None, gamma, values, risk=brmdp.Quantile(alpha)).q_values
    tail = brmdp.backup(belief, None, gamma, values, risk=brmdp.CVaR(alpha)).q_values
    mean = brmdp.backup(belief, None, gamma, values, risk=brmdp.Mean()).q_values
    rng = np.random.default_rng(17)
    prior = [(t, r, 0.7) for t in range(3) for r in (-1.0, 0.5, 2.0)]
    for s in range(3):
        for a in range(2):
            seen = [(t, r) for state, action, t, r in data if (state, action) == (s, a)]
            pair = oracle.atoms_of(prior, seen)
            drawn = oracle.draws(pair, values, gamma, n, rng)
            share = (drawn <= q[s, a]).mean()
            assert abs(share - alpha) < 4.5 * np.sqrt(alpha * (1 - alpha) / n)
            worst = np.sort(drawn)[: int(alpha * n)]
            assert abs(worst.mean() - tail[s, a]) < 6 * drawn.std() / np.sqrt(alpha * n)
            assert mean[s, a] == pytest.approx(oracle.moments(pair, values, gamma)[0], abs=1e-12)


@pytest.mark.parametrize("alpha", [1e-4, 0.1, 0.5, 0.95])
@pytest.mark.parametrize("discount", [0.0, 0.9])
def test_a_bandit_arm_is_worth_its_beta_quantile(alpha, discount):
    belief = brmdp.OutcomeBelief.uniform(1, 3, [0, 1])
    belief.observe(0, [0, 0, 0, 1, 1, 2], 0, reward=[1, 1, 0, 0, 0, 1])
    wins, losses = np.array([3, 1, 2]), np.array([2, 3, 1])
    quantiles = betaincinv(wins, losses, alpha)
    plan = brmdp.plan(belief, None, discount, risk=brmdp.Quantile(alpha))
    best = quantiles.max() / (1 - discount)
    np.testing.assert_allclose(plan.values, best, rtol=1e-8)
    np.testing.assert_allclose(plan.q_values[0], quantiles + discount * best, rtol=1e-8)
    assert plan.policy[0] == quantiles.argmax()


def test_values_of_policies_in_draws_and_under_the_mean():
    belief, _ = three_by_three()
    policy, gamma = np.array([1, 0, 1]), 0.7
    found = brmdp.posterior_quantile_value(belief, None, gamma, policy, 0.5, samples=51, rng=9)
    assert found.caveat == ""
    flat = belief.sample_entries(51, belief.pattern.pairs[[1, 2, 5]], rng=np.random.default_rng(9))
    rewards = np.tile(np.tile([-1.0, 0.5, 2.0], 3), (3, 1))
    reached = np.tile(np.repeat([0, 1, 2], 3), (3, 1))
    values = [oracle.policy_values(reached, rewards, row.reshape(3, 9), gamma) for row in flat]
    np.testing.assert_allclose(found.values, np.sort(values, axis=0)[25], rtol=1e-10)
    mean = brmdp.evaluate_under_belief(belief, None, gamma, policy, risk=brmdp.Mean())
    kernel, paid = belief.mean()[np.arange(3), policy], belief.mean_rewards()[np.arange(3), policy]
    np.testing.assert_allclose(
        mean.values, np.linalg.solve(np.eye(3) - gamma * kernel, paid), atol=1e-8
    )


def test_the_next_states_alone_have_their_dirichlet_law():
    belief, data = three_by_three()
    plain = brmdp.DirichletBelief.uniform(3, 2, 2.1)
    plain.observe(*map(list, list(zip(*data, strict=True))[:3]))
    np.testing.assert_allclose(belief.concentration(), plain.concentration(), rtol=1e-14)
    np.testing.assert_allclose(belief.mean(), plain.mean(), rtol=1e-14)
    np.testing.assert_array_equal(belief.counts(), plain.counts())
    np.testing.assert_array_equal(belief.observed_states(), plain.observed_states())
    np.testing.assert_allclose(
        belief.effective_sample_size(), plain.effective_sample_size(), rtol=1e-14
    )


@pytest.mark.parametrize("kind", ["sa", "sas", "flat"])
def test_known_rewards_are_added(kind):
    belief, _ = three_by_three()
    rng = np.random.default_rng(2)
    known = {"sa": rng.normal(size=(3, 2)), "sas": rng.normal(size=(3, 2, 3))}.get(kind)
    if known is None:
        known = rng.normal(size=belief.transitions.n_transitions)
    full = np.broadcast_to(known[..., None], (3, 2, 3)) if kind == "sa" else known.reshape(3, 2, 3)
    gathered = belief.gather_rewards(known).reshape(3, 2, 3, 3)
    np.testing.assert_allclose(gathered, full[..., None] + np.array([-1.0, 0.5, 2.0]))
    plan = brmdp.plan(belief, known, 0.8, risk=brmdp.Quantile(0.2))
    shifted = np.array([-1.0, 0.5, 2.0]) + full[..., None]
    table = [(s, a, t, shifted[s, a, t, k]) for s, a, t, k in np.ndindex(3, 2, 3, 3)]
    other = brmdp.OutcomeBelief(table, belief.concentration("flat"))
    again = brmdp.plan(other, None, 0.8, risk=brmdp.Quantile(0.2))
    np.testing.assert_allclose(plan.values, again.values, rtol=0, atol=1e-8)


# --- priors and data ------------------------------------------------------------------------------


def test_the_three_ways_to_list_possible_rewards_agree():
    lists = [[[0.0, 1.0], [2.0]], [[0.0, 1.0], [-1.0, 3.0, 5.0]]]
    nested = brmdp.OutcomeBelief.uniform(2, 2, lists)
    by_pair = brmdp.OutcomeBelief.uniform(
        2, 2, {(s, a): lists[s][a] for s in range(2) for a in range(2)}
    )
    table = [
        (s, a, t, r) for s in range(2) for a in range(2) for t in range(2) for r in lists[s][a]
    ]
    listed = brmdp.OutcomeBelief(table)
    for other in (by_pair, listed):
        np.testing.assert_array_equal(other.outcome_rewards, nested.outcome_rewards)
        assert other.pattern.same_as(nested.pattern)
        np.testing.assert_array_equal(other.concentration("flat"), nested.concentration("flat"))
    assert repr(nested) == "OutcomeBelief(2 states, 2 actions, 16 outcomes, 0 observed)"


def test_a_stated_total_is_spread_evenly():
    belief = brmdp.OutcomeBelief.uniform(
        2, 2, {(0, 0): [0, 1], (0, 1): [5], (1, 0): [0, 1, 2], (1, 1): [0]}, total=3.0
    )
    np.testing.assert_allclose(belief.effective_sample_size(), 3.0)
    np.testing.assert_allclose(belief.concentration("flat")[:4], 3.0 / 4)
    with pytest.raises(brmdp.InvalidInputError, match="concentration and total must not both"):
        brmdp.OutcomeBelief.uniform(1, 1, [0, 1], 2.0, total=3.0)


@pytest.mark.parametrize("bootstrap", [False, True])
def test_many_observations_at_once_are_the_same_as_one_by_one(bootstrap):
    rng = np.random.default_rng(8)
    rewards = (
        np.round(rng.normal(size=200), 1).clip(-1, 1) if bootstrap else rng.choice([0, 1], 200)
    )

    def prior():
        if bootstrap:
            return brmdp.OutcomeBelief.bootstrap(3, 2, -1.0, 1.0, max_atoms=4)
        return brmdp.OutcomeBelief.uniform(3, 2, [0, 1])

    columns = [rng.integers(n, size=200) for n in (3, 2, 3)]
    at_once, one_by_one = prior(), prior()
    at_once.observe(*columns, rewards)
    for s, a, t, r in zip(*columns, rewards, strict=True):
        one_by_one.observe(int(s), int(a), int(t), reward=r)
    for name, array in at_once.arrays().items():
        np.testing.assert_array_equal(one_by_one.arrays()[name], array)
    np.testing.assert_array_equal(at_once.concentration_entries, one_by_one.concentration_entries)
    grid = prior()
    grid.observe(*(c.reshape(20, 10) for c in columns), rewards.reshape(20, 10))
    np.testing.assert_array_equal(grid.concentration_entries, at_once.concentration_entries)
    untouched = prior()
    untouched.observe([], [], [], [])
    assert untouched.counts().sum() == 0


def test_single_numbers_apply_to_all():
    belief = brmdp.OutcomeBelief.uniform(2, 2, [0, 1])
    belief.observe(0, 1, [0, 1, 1], 1)
    belief.observe(0, 1, 1, reward=[0, 1])
    assert belief.counts()[0, 1].tolist() == [1, 4]
    assert belief.concentration("flat")[4:8].tolist() == [1.0, 2.0, 2.0, 4.0]


def test_rewards_match_up_to_rounding_and_no_further():
    belief = brmdp.OutcomeBelief.uniform(1, 1, [0.0, 0.3, 1.0])
    belief.observe(0, 0, 0, reward=[0.1 + 0.2, 1e-17, 1.0 - 1e-12])
    assert belief.concentration("flat").tolist() == [2.0, 2.0, 2.0]
    for wrong in (1e-8, 0.3 + 1e-8, 1.0 + 1e-8, np.float32(0.3), 0.15, -5.0):
        with pytest.raises(
            brmdp.ImpossibleTransitionError, match=r"reward must be one of \[0, 0.3, 1\] for \(st"
        ):
            belief.observe(0, 0, 0, reward=wrong)
    bounded = brmdp.OutcomeBelief.bootstrap(1, 1, -2.0, 1.0)
    bounded.observe(0, 0, 0, reward=[1.0 + 1e-12, -2.0 - 1e-12])
    assert bounded.pattern.n_transitions == 2
    assert bounded.concentration("flat").tolist() == [1.5, 1.5]


REFUSED = [
    ({"reward": None}, "reward must be given with every transition"),
    ({"reward": np.nan}, "reward must be finite; got nan"),
    ({"reward": np.inf}, "reward must be finite"),
    ({"reward": "1"}, "reward must be an array of real numbers"),
    ({"reward": [1, 0]}, r"reward must be one number, or have the shape.*\(2,\) and \(3,\)"),
    ({"reward": [0, 1, np.nan]}, "reward must be finite; got nan at index"),
    ({"reward": [0, 1, 7]}, r"reward must .*\(state=1, action=0, next_state=1\); got 7"),
    ({"state": [0, 1, 2]}, r"state must lie in 0\.\.1; got 2"),
    ({"next_state": [0, 0]}, "must have the same shape"),
    ({"action": 1}, "action 1 is not admissible in state 0"),
]


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_what_is_refused_changes_nothing(bootstrap, change, message):
    admissible = [[True, False], [True, True]]
    if bootstrap:
        belief = brmdp.OutcomeBelief.bootstrap(2, 2, 0.0, 1.0, admissible=admissible)
    else:
        belief = brmdp.OutcomeBelief.uniform(2, 2, [0, 1], admissible=admissible)
    given = {"state": [0, 0, 1], "action": 0, "next_state": [0, 1, 1], "reward": [0.0, 1.0, 1.0]}
    before = {name: array.copy() for name, array in belief.arrays().items()}
    with pytest.raises(brmdp.InvalidInputError, match=message):
        belief.observe(**given | change)
    for name, array in belief.arrays().items():
        np.testing.assert_array_equal(array, before[name])
    belief.observe(**given)
    assert belief.counts().sum() == 3


def test_impossible_transitions_are_refused():
    belief = brmdp.OutcomeBelief([(0, 0, 0, 1.0), (1, 0, 1, 0.0), (0, 0, 1, 2.0)])
    with pytest.raises(brmdp.ImpossibleTransitionError, match=r"state=1, action=0, next_state=0"):
        belief.observe([0, 1], 0, [0, 0], reward=[1.0, 0.0])
    with pytest.raises(brmdp.ImpossibleTransitionError, match=r"one of \[2\] for"):
        belief.observe(0, 0, 1, reward=1.0)  # a reward that the pair pays with another successor
    assert belief.counts().sum() == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: brmdp.OutcomeBelief([]), "outcomes must be rows"),
        (lambda: brmdp.OutcomeBelief([(0, 0, 0)]), "outcomes must be rows"),
        (lambda: brmdp.OutcomeBelief([(0, 0.5, 0, 1)]), "integers as action; got 0.5 in row 0"),
        (lambda: brmdp.OutcomeBelief([(0, 0, -1, 1)]), "next state in outcomes must lie in"),
        (lambda: brmdp.OutcomeBelief([(0, 0, 0, np.nan)]), "outcomes must be finite"),
        (lambda: brmdp.OutcomeBelief([(0, 0, 1, 1)]), "state 1 has no admissible action"),
        (lambda: brmdp.OutcomeBelief([(0, 0, 0, 1)] * 2), "must have rewards that differ"),
        (lambda: brmdp.OutcomeBelief([(0, 0, 0, 1)], n_states=0), "n_states must be a positive"),
        (lambda: brmdp.OutcomeBelief([(0, 0, 0, 1)], 0.0), "concentration must be a positive"),
        (lambda: brmdp.OutcomeBelief([(0, 0, 0, 1)], [1, 2]), "one per outcome"),
        (lambda: brmdp.OutcomeBelief([(0, 0, 0, 1)], [-1.0]), "concentration must be positive"),
        (lambda: brmdp.OutcomeBelief([(0, 0, 0, 1e141)]), "rewards must lie within"),
        (lambda: brmdp.OutcomeBelief.uniform(1, 1, []), "non-empty list"),
        (lambda: brmdp.OutcomeBelief.uniform(1, 1, [0, 1, 1 + 1e-10]), "must differ by more than"),
        (lambda: brmdp.OutcomeBelief.uniform(1, 1, [0, np.nan]), "rewards must be finite"),
        (lambda: brmdp.OutcomeBelief.uniform(2, 1, [[[0, 1]]]), "list for every state"),
        (lambda: brmdp.OutcomeBelief.uniform(1, 2, {(0, 0): [0]}), r"none for \(state=0, action=1"),
        (lambda: brmdp.OutcomeBelief.uniform(1, 1, {(0, 0): [0], (0, 1): [1]}), "alone; got"),
        (lambda: brmdp.OutcomeBelief.uniform(1, 1, [0, 1], -1.0), "concentration must be"),
        (lambda: brmdp.OutcomeBelief.bootstrap(1, 1, 1.0, 0.0), "lowest must not exceed highest"),
        (lambda: brmdp.OutcomeBelief.bootstrap(1, 1, np.nan, 0.0), "lowest must be finite"),
        (lambda: brmdp.OutcomeBelief.bootstrap(1, 1, [0.0], 1.0), "lowest must be a number or"),
        (lambda: brmdp.OutcomeBelief.bootstrap(1, 1, 0, 1, max_atoms=1), "max_atoms must be at"),
        (lambda: brmdp.OutcomeBelief.bootstrap(1, 1, 0, 1e141), "highest must lie within"),
    ],
)
def test_bad_priors_are_named(make, message):
    with pytest.raises(brmdp.InvalidInputError, match=message):
        make()


def test_rewards_may_be_left_out_only_for_a_belief_about_them():
    plain = brmdp.DirichletBelief.uniform(2, 1)
    for call in (
        lambda: brmdp.plan(plain, None, 0.5, risk=brmdp.Mean()),
        lambda: brmdp.evaluate_under_belief(plain, None, 0.5, [0, 0], risk=brmdp.Mean()),
        lambda: brmdp.backup(plain, None, 0.5, [0, 0], risk=brmdp.Mean()),
        lambda: certify_nested(plain, None, 0.5),
        lambda: brmdp.posterior_quantile_value(plain, None, 0.5, [0, 0]),
        lambda: brmdp.agents.posterior_mean(plain, None, 0.5),
        lambda: decisions.values_in_draws(plain, None, 0.5, [[0, 0]]),
    ):
        with pytest.raises(brmdp.InvalidInputError, match="rewards must be given for a Dirichlet"):
            call()


# --- the bootstrap --------------------------------------------------------------------------------


def bounded(values, max_atoms):
    """One pair with two successors and rewards within [−2, 3]; and all of its atoms."""
    belief = brmdp.OutcomeBelief.bootstrap(2, 1, -2.0, 3.0, 1.4, max_atoms=max_atoms)
    reached = np.arange(len(values)) % 2
    belief.observe(0, 0, reached, reward=values)
    prior = [(t, r, 0.7) for t in (0, 1) for r in (-2.0, 3.0)]
    data = list(zip(reached.tolist(), values, strict=True))
    return belief, oracle.atoms_of(prior, data)


@pytest.mark.parametrize("max_atoms", [2, 3, 8, 500])
@pytest.mark.parametrize("shape", ["normal", "heavy", "few values", "bounds"])
def test_merging_keeps_every_mean_and_states_what_it_adds(max_atoms, shape):
    rng = np.random.default_rng(3)
    values = {
        "normal": rng.normal(0.4, 0.1, 150),
        "heavy": rng.standard_cauchy(150),
        "few values": rng.choice([-1.0, 0.0, 0.1], 150),
        "bounds": rng.choice([-2.0, 3.0], 150),
    }[shape].clip(-2.0, 3.0)
    belief, pair = bounded(values.tolist(), max_atoms)
    assert np.diff(belief._pointers).max() <= max_atoms
    for v, gamma in (((0.0, 0.0), 0.0), ((5.0, -3.0), 0.9)):
        mean, variance = oracle.moments(pair, v, gamma)
        targets = belief.outcome_rewards + gamma * np.array(v)[belief.pattern.next_states]
        row = slice(0, int(belief.pattern.indptr[1]))
        p, w = belief.mean_entries()[row], targets[row]
        total = belief.effective_sample_size()[0, 0]
        found = float(p @ w)
        assert found == pytest.approx(mean, rel=1e-12, abs=1e-12)
        now = float(p @ w**2 - found**2) / (total + 1.0)
        added = float(belief.added_variance()[0, 0])
        assert now - added == pytest.approx(variance, rel=1e-9)
        assert added >= 0.0
    inner = [set(values[first::2].tolist()) - {-2.0, 3.0} for first in (0, 1)]
    assert (added > 0.0) == (max(map(len, inner)) + 2 > max_atoms)
    assert belief.counts()[0, 0].tolist() == [75, 75]
    prior, data = belief.evidence(np.array([0, 1]))
    assert prior == pytest.approx([2.8, 2.8])
    assert data.tolist() == [150.0, 0.0]


def test_merged_rewards_err_on_the_wide_side():
    """In CVaR at every level; and the spread of a merged law is not far off."""
    values = np.random.default_rng(4).normal(0.4, 0.5, 300).clip(-2.0, 3.0).tolist()
    exact, _ = bounded(values, 400)
    v = np.array([1.0, -1.0])
    for max_atoms, close in ((2, 3.0), (8, 1.25), (32, 1.02)):
        merged, _ = bounded(values, max_atoms)
        for level in (0.01, 0.1, 0.5, 0.9):
            low, high = (
                brmdp.backup(b, None, 0.9, v, risk=brmdp.CVaR(level)).q_values[0, 0]
                for b in (merged, exact)
            )
            assert low <= high + 1e-9
        wide, narrow = (
            np.subtract(
                *(
                    brmdp.backup(b, None, 0.9, v, risk=brmdp.Quantile(level)).q_values[0, 0]
                    for level in (0.9, 0.1)
                )
            )
            for b in (merged, exact)
        )
        assert narrow * 0.999 < wide < close * narrow


def test_what_was_seen_does_not_matter_to_a_far_bound():
    """Values far from wide bounds: what merging adds stays small beside their own spread."""
    rng = np.random.default_rng(6)
    values = rng.normal(0.0, 1.0, 500)
    belief = brmdp.OutcomeBelief.bootstrap(1, 1, -1000.0, 1000.0, 1e-6, max_atoms=32)
    belief.observe(0, 0, 0, reward=values)
    assert belief.added_variance()[0, 0] < 0.05 * values.var() / 502


def test_the_pattern_is_new_whenever_atoms_are_and_only_then():
    belief = brmdp.OutcomeBelief.bootstrap(1, 1, 0.0, 1.0, max_atoms=4)
    seen = [belief.pattern]
    for reward, new in ((0.0, False), (0.5, True), (0.5, False), (0.6, True), (0.61, True)):
        belief.observe(0, 0, 0, reward=reward)
        assert (belief.pattern is not seen[-1]) == new
        seen.append(belief.pattern)
    assert belief.copy().pattern is belief.pattern
    assert belief.transitions.n_transitions == 1
    finite = brmdp.OutcomeBelief.uniform(1, 1, [0, 1])
    before = finite.pattern
    finite.observe(0, 0, 0, 1)
    assert finite.pattern is before


def test_a_problem_made_before_new_atoms_is_refused():
    belief = brmdp.OutcomeBelief.bootstrap(1, 2, 0.0, 1.0, max_atoms=3)
    for reward in (0.9, 0.5):  # the second one replaces an atom, and the layout stays
        problem = Problem.of(belief, None, 0.5)
        problem.solve(belief, brmdp.Mean())
        problem.solve(belief.copy(), brmdp.Mean())
        belief.observe(0, 0, 0, reward=reward)
        with pytest.raises(brmdp.InvalidInputError, match="belief has other outcomes"):
            problem.solve(belief, brmdp.Mean())


def test_a_sampler_keeps_to_the_belief_it_was_made_for():
    belief = brmdp.OutcomeBelief.bootstrap(1, 2, 0.0, 1.0)
    sampler = decisions.Sampler(belief, None, 0.5, [[0], [1]], optimal=True, rng=1)
    twin = decisions.Sampler(belief.copy(), None, 0.5, [[0], [1]], optimal=True, rng=1)
    belief.observe(0, 0, 0, reward=[0.2, 0.4])
    (block,), (other,) = sampler.blocks(20), twin.blocks(20)
    np.testing.assert_array_equal(block.values, other.values)


def test_results_say_that_the_bootstrap_is_an_approximation():
    belief = brmdp.OutcomeBelief.bootstrap(1, 2, 0.0, 1.0)
    belief.observe(0, [0] * 30 + [1] * 30, 0, reward=np.random.default_rng(1).random(60))
    given, said = (belief, None, 0.5), "a working approximation, not a posterior"
    assert said in belief.caveat
    assert "bootstrap approximation" in repr(belief)
    plan = brmdp.plan(*given, risk=brmdp.Quantile(0.2))
    assert said in plan.caveat
    assert "of an approximate belief (see caveat)" in " ".join(repr(plan).split())
    value = brmdp.posterior_quantile_value(*given, [0], rng=1)
    gain = decisions.compare(*given, [1], [0], start=0, draws=200, rng=1)
    worth = decisions.value_of_information(
        *given, pairs=[(0, 0)], transitions=3, start=0, draws=100, rng=1
    )
    for found in (value, gain, worth):
        assert said in " ".join(str(found).split())
        assert "see caveat" in repr(found)
    assert said in decisions.values_in_draws(*given, [[0]], draws=10, rng=1).caveat
    agent = brmdp.agents.fixed_quantile(*given, alpha=0.2, rng=1)
    assert {report.caveat for report in agent.explain(0)} == {belief.caveat}
    for certify in (certify_nested, decisions.certify):
        with pytest.raises(brmdp.InvalidInputError, match=r"posterior for a certificate.*rounded"):
            certify(*given)


def test_rewards_rounded_down_allow_a_certificate():
    """What the refusal advises: a finite model whose values are below the true ones."""
    rng = np.random.default_rng(2)
    paid = rng.random(400)
    belief = brmdp.OutcomeBelief.uniform(1, 1, np.arange(10) / 10)
    belief.observe(0, 0, 0, reward=np.floor(10 * paid) / 10)
    found = certify_nested(belief, None, 0.5, 0.9, rng=1)
    assert 0.8 < found.values[0] < paid.mean() / 0.5


# --- evidence -------------------------------------------------------------------------------------


def test_an_unknown_reward_is_no_known_pair():
    """One successor, two rewards: nothing is known before data."""
    belief = brmdp.OutcomeBelief.uniform(1, 1, [0, 1], 5.0)
    found = brmdp.prior_reliance(belief, [0], 0.9)
    assert (found.share, found.outweighed, found.never_observed.tolist()) == (1.0, 1.0, [0])
    with pytest.warns(brmdp.PriorWarning):
        brmdp.plan(belief, None, 0.9, risk=brmdp.Mean())
    belief.observe(0, 0, 0, reward=[1] * 90)
    assert brmdp.prior_reliance(belief, [0], 0.9).share == pytest.approx(0.1)
    sure = brmdp.OutcomeBelief.uniform(1, 1, [1.0])
    assert brmdp.prior_reliance(sure, [0], 0.9).share == 0.0


# --- decisions ------------------------------------------------------------------------------------


@pytest.mark.long
def test_comparisons_and_information_for_arms():
    """The chance that one Beta exceeds another, and the value of knowing which, by numpy."""
    belief = brmdp.OutcomeBelief.uniform(1, 2, [0, 1])
    belief.observe(0, [0] * 10 + [1] * 4, 0, reward=[1] * 6 + [0] * 4 + [1, 1, 1, 0])
    rng = np.random.default_rng(3)
    first, second = rng.beta(7, 5, 200_000), rng.beta(4, 2, 200_000)
    gain = decisions.compare(belief, None, 0.5, [1], [0], start=0, draws=4000, rng=1)
    assert gain.caveat == ""
    low, high = gain.better_interval
    assert low - 0.01 < (second > first).mean() < high + 0.01
    assert gain.gain.mean == pytest.approx(2 * (4 / 6 - 7 / 12), abs=5 * gain.gain.error)
    worth = decisions.value_of_information(
        belief, None, 0.5, pairs=[(0, 1)], transitions=20, start=0, draws=1000, rng=1
    )
    perfect = 2 * (np.maximum(first, second) - second).mean()
    assert worth.perfect.mean == pytest.approx(perfect, abs=5 * worth.perfect.error)
    assert 0.0 < worth.sample.mean < worth.perfect.mean


def test_units_are_resampled_with_their_rewards():
    belief = brmdp.OutcomeBelief.uniform(1, 2, [0, 1])
    rng = np.random.default_rng(5)
    actions, paid = rng.integers(2, size=60), rng.integers(2, size=60)
    columns = (np.zeros(60, int), actions, np.zeros(60, int))
    log = decisions.UnitLog(belief.copy(), np.arange(60) % 6, *columns, paid)
    belief.observe(*columns, paid)
    found = decisions.compare(belief, None, 0.5, [1], [0], start=0, draws=200, units=log, rng=1)
    assert found.units.n_units == 6
    assert found.units.spread > 0.0
    for prior, rewards in (
        (belief, None),
        (brmdp.DirichletBelief.uniform(1, 2), paid),
        (brmdp.OutcomeBelief.bootstrap(1, 2, 0, 1), paid),
    ):
        with pytest.raises(brmdp.InvalidInputError, match="rewards must be given if and only if"):
            decisions.UnitLog(prior, np.arange(60), *columns, rewards)


# --- copies and files -----------------------------------------------------------------------------


def some(bootstrap):
    rng = np.random.default_rng(9)
    if bootstrap:
        belief = brmdp.OutcomeBelief.bootstrap(3, 2, -1.0, [[1.0, 2.0]] * 3, max_atoms=5)
        belief.observe(*(rng.integers(n, size=80) for n in (3, 2, 3)), rng.uniform(-1, 1, 80))
        return belief
    return three_by_three()[0]


@pytest.mark.parametrize("bootstrap", [False, True])
def test_copies_are_independent(bootstrap):
    belief = some(bootstrap)
    twin = belief.copy()
    before = belief.concentration("flat")
    twin.observe(0, 0, 0, reward=0.5)
    np.testing.assert_array_equal(belief.concentration("flat"), before)
    assert twin.counts().sum() == belief.counts().sum() + 1


@pytest.mark.parametrize("bootstrap", [False, True])
def test_files_keep_everything(bootstrap, tmp_path):
    belief = some(bootstrap)
    belief.save(tmp_path / "belief.npz")
    loaded = brmdp.OutcomeBelief.load(tmp_path / "belief.npz")
    assert (repr(loaded), loaded.max_atoms) == (repr(belief), belief.max_atoms)
    for other in (belief, loaded):
        other.observe(2, 1, 0, reward=[0.5, -1.0, 0.5])
    for name, array in belief.arrays().items():
        np.testing.assert_array_equal(loaded.arrays()[name], array)
    np.testing.assert_array_equal(loaded.added_variance(), belief.added_variance())


SPOILED = [
    ("prior", lambda a: a * -1.0),
    ("weights", lambda a: a + 0.25),
    ("weights", lambda a: a * np.nan),
    ("rewards", lambda a: a[::-1]),
    ("rewards", lambda a: a[:-1]),
    ("pointers", lambda a: a[:-1]),
    ("pointers", lambda a: np.minimum(a, 3)),
    ("next_states", lambda a: a + 1),
    ("shape", lambda a: a * 2),
]
BOOTSTRAP_SPOILED = [
    ("max_atoms", lambda a: a - 3),
    ("max_atoms", lambda a: np.array([5, 5])),
    ("added", lambda a: a - 1.0),
    ("added", lambda a: a[:2]),
]


@pytest.mark.parametrize(
    ("bootstrap", "name", "spoil"),
    [
        *((kind, *one) for kind in (False, True) for one in SPOILED),
        *((True, *one) for one in BOOTSTRAP_SPOILED),
    ],
)
def test_invalid_content_is_a_corrupt_file(bootstrap, name, spoil):
    arrays = some(bootstrap).arrays()
    with pytest.raises(brmdp.CorruptFileError):
        brmdp.OutcomeBelief.from_arrays(arrays | {name: spoil(arrays[name])}, "here")
