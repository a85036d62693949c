"""Plans with memory where a wrong memory, or a wrong use of a right one, would go unnoticed."""

from dataclasses import replace

import numba
import numpy as np
import pytest

import brmdp
from brmdp._kernels import dirichlet
from brmdp.errors import ConvergenceError, InvalidInputError
from brmdp.planning import Problem, many
from brmdp.planning.compiled import Memory


def one_state(rewards, concentration=3.0):
    """A state, in which the actions differ in what they pay, and a second one without rewards."""
    rewards = np.asarray(rewards, dtype=float)
    possible = np.zeros((2, len(rewards), 2))
    possible[0] = concentration
    possible[1, :, 1] = 1.0
    paid = np.zeros((2, len(rewards), 2))
    paid[0] = rewards
    return brmdp.DirichletBelief(possible), paid


def assert_ties_are_those_of_a_full_plan(problem, belief, risk, before):
    full = problem.solve(belief, risk, before.values)
    lazy = problem.solve(belief, risk, before.values, memory=before.memory, remember=True)
    np.testing.assert_array_equal(lazy.policy, full.policy)
    np.testing.assert_array_equal(lazy.tied, full.tied)
    np.testing.assert_array_equal(lazy.tied_actions(), full.tied_actions())
    assert np.abs(lazy.values - full.values).max() <= lazy.error_bound + full.error_bound
    assert 0.5 <= lazy.tie_width / full.tie_width <= 2.0
    return lazy


@pytest.mark.parametrize("level", [0.1, 0.2, 0.3])
def test_an_action_that_is_not_computed_counts_in_the_width_of_a_tie(level):
    # the third action is bad, but its numbers are large, and so is its numerical error
    belief, rewards = one_state([[0.0, 1.0], [2e-12, 1.0 + 2e-12], [-1e4, -2e4]])
    problem = Problem.of(belief, rewards, 0.5)
    before = problem.solve(belief, brmdp.Quantile(0.2), remember=True)
    for _ in range(3):
        lazy = assert_ties_are_those_of_a_full_plan(problem, belief, brmdp.Quantile(level), before)
        if level <= 0.2:
            assert lazy.known_q[0, 2] == -np.inf
        assert lazy.policy[0] == 0
        before = lazy


def test_ties_that_become_wider_while_they_are_settled_are_settled_again():
    # Ever larger errors: of the best action none to speak of; of the next, within the first slack,
    # so much that the third must be computed, whose error makes the fourth one tied.
    def errors(size):
        belief, rewards = one_state([[-size, size]])
        bound = brmdp.Quantile(0.5).bind(belief)
        return bound.evaluate(rewards[belief.pattern.admissible][:1].ravel(), np.array([0]), out)

    out = np.zeros(8)
    first, second = 1e9, 3e9
    widths = [2.0 * errors(size) for size in (first, second)]
    distance = 0.5 * sum(widths)
    belief, rewards = one_state(
        [
            [1.0 - distance, 1.0 - distance],
            [1.0 - second, 1.0 + second],
            [1.0 - first, 1.0 + first],
            [1.0, 1.0],
        ]
    )
    problem = Problem.of(belief, rewards, 0.0)
    risk = brmdp.Quantile(0.5)
    before = problem.solve(belief, risk, remember=True)
    facts = before.memory.facts.copy()
    facts[:4, 0] = [1.0 - distance, 1.0 - 0.5 * widths[0], 1.0, 1.0]
    facts[:4, 1] = 0.0
    memory = replace(before.memory, facts=facts, chosen=np.array([3, 4]))
    lazy = problem.solve(belief, risk, before.values, memory=memory, remember=True)
    assert np.isfinite(lazy.known_q[np.arange(2), lazy.policy]).all()
    np.testing.assert_array_equal(lazy.tied, lazy.tied_actions().sum(axis=1) > 1)
    full = problem.solve(belief, risk, before.values)
    np.testing.assert_array_equal(lazy.policy, full.policy)


@pytest.mark.parametrize("spoilt", [1e300, -1e300, 1e12])
@pytest.mark.parametrize("n", [3, 60])
def test_a_start_that_misleads_fails_no_plan(spoilt, n):
    rng = np.random.default_rng(4)
    belief = brmdp.DirichletBelief(rng.uniform(1.0, 4.0, (n, 2, n)))
    problem = Problem.of(belief, rng.random((n, 2, n)), 0.9)
    before = problem.solve(belief, brmdp.Quantile(0.2), remember=True)
    memory = replace(before.memory, corrections=np.full(before.memory.corrections.size, spoilt))
    start = before.values + 1.0
    lazy = problem.solve(belief, brmdp.Quantile(0.21), start, memory=memory, remember=True)
    full = problem.solve(belief, brmdp.Quantile(0.21), start)
    assert lazy.status == "converged"
    assert np.abs(lazy.values - full.values).max() <= lazy.error_bound + full.error_bound
    np.testing.assert_array_equal(lazy.policy, full.policy)


def test_a_plan_that_computes_everything_decides_whether_a_plan_fails():
    rng = np.random.default_rng(5)
    belief = brmdp.DirichletBelief(rng.uniform(1.0, 4.0, (4, 3, 4)))
    rewards = rng.random((4, 3, 4))
    first = Problem.of(belief, rewards, 0.9).solve(belief, brmdp.Quantile(0.3), remember=True)
    for most in (1, 2, 3, 4):
        problem = Problem.of(belief, rewards, 0.9, None, "newton", most)
        for risk in (brmdp.Quantile(0.01), brmdp.Quantile(0.9), brmdp.CVaR(0.9)):
            start = first.values + 5.0
            full = problem.solve(belief, risk, start, raise_on_failure=False)
            lazy = problem.solve(
                belief, risk, start, memory=first.memory, remember=True, raise_on_failure=False
            )
            if full.status == "converged":
                assert lazy.status == "converged"
            if lazy.status == "converged":
                assert lazy.error_bound <= lazy.tolerance


class Regrouped:
    """A belief in which pairs share one of three rows; which one may change."""

    def __init__(self, pattern, entries, offsets):
        self.pattern, self.entries, self.offsets = pattern, entries, offsets

    @property
    def concentration_entries(self):
        return self.entries

    @property
    def concentration_offsets(self):
        return self.offsets

    def observe(self, state, action, next_state):
        raise NotImplementedError

    def copy(self):
        return Regrouped(self.pattern, self.entries.copy(), self.offsets.copy())

    def gather_rewards(self, rewards):
        return brmdp.DirichletBelief.uniform(2, 2).gather_rewards(rewards)

    def mean_entries(self):
        rows = [self.entries[self.offsets[pair] :][:2] for pair in self.pattern.pairs]
        return np.concatenate([row / row.sum() for row in rows])

    def sample_entries(self, n, pairs=None, *, rng):
        raise NotImplementedError


def regrouped(offsets):
    pattern = brmdp.DirichletBelief.uniform(2, 2).pattern
    return Regrouped(pattern, np.array([1.0, 9.0, 3.0, 7.0, 9.0, 1.0]), np.array(offsets))


def test_the_same_concentrations_at_other_pairs_are_another_belief():
    rewards = np.array([[[0.0, 1.0]] * 2] * 2)
    belief = regrouped([0, 4, 0, 4])
    problem = Problem.of(belief, rewards, 0.5)
    risk = brmdp.Quantile(0.1)
    before = problem.solve(belief, risk, remember=True)
    np.testing.assert_array_equal(before.policy, [0, 0])
    # in place, as a belief may learn
    belief.offsets[:] = [2, 0, 2, 0]
    now = problem.solve(belief, risk, before.values, memory=before.memory, remember=True)
    np.testing.assert_array_equal(now.policy, [1, 1])
    np.testing.assert_allclose(now.values, before.values, rtol=1e-9)


def test_a_solution_keeps_its_belief_whatever_becomes_of_that():
    belief = regrouped([0, 4, 0, 4])
    rewards = np.array([[[0.0, 1.0]] * 2] * 2)
    problem = Problem.of(belief, rewards, 0.5)
    solution = problem.solve(belief, brmdp.Quantile(0.1), remember=True)
    again = problem.solve(
        belief, brmdp.Quantile(0.1), solution.values, memory=solution.memory, remember=True
    )
    assert (again.known_q[:, 1] == -np.inf).all()
    kernel = solution.kernel()
    belief.offsets[:] = [2, 0, 2, 0]
    belief.entries[:] = 5.0
    np.testing.assert_allclose(again.q_values, solution.q_values, rtol=1e-9)
    np.testing.assert_array_equal(solution.kernel(), kernel)


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        # a good action would never be looked at again
        ("facts", lambda facts, n: facts - 0.3 * np.eye(n, 5)),
        ("facts", lambda facts, n: facts + 0.3 * np.eye(n, 5)),
        # true at its own level, but not at a higher one
        ("facts", lambda facts, n: facts + 0.2 * np.eye(5)[2]),
        ("facts", lambda facts, n: facts - 0.5 * np.eye(5)[3]),
        ("known", lambda known, n: known + np.array([[0.3], [0.0]])),
        ("known", lambda known, n: known + np.array([[0.0], [9.0]])),
    ],
)
@pytest.mark.parametrize("measure", [brmdp.Quantile, brmdp.CVaR])
def test_a_memory_that_is_not_true_is_refused(name, spoil, measure):
    rng = np.random.default_rng(1)
    belief = brmdp.DirichletBelief(rng.uniform(0.2, 4.0, (4, 2, 4)))
    problem = Problem.of(belief, rng.random((4, 2, 4)), 0.9)
    memory = problem.solve(belief, measure(0.3), remember=True).memory
    arrays = dict(memory.arrays())
    found = Memory.from_arrays(arrays, memory.concentration, memory.offsets, belief.pattern)
    np.testing.assert_array_equal(found.facts, memory.facts)
    arrays[name] = spoil(arrays[name], 8)
    with pytest.raises(InvalidInputError, match=f"memory.{name}|memory.facts"):
        Memory.from_arrays(arrays, memory.concentration, memory.offsets, belief.pattern)
    with pytest.raises(InvalidInputError, match=r"memory\.facts"):
        # the concentrations of another belief, or rounded ones
        Memory.from_arrays(
            memory.arrays(), memory.concentration + 0.1, memory.offsets, belief.pattern
        )


@numba.njit
def halfway_below(pair, rows, values, limit, scratch):
    return dirichlet.halfway_below(pair, rows, values, limit, scratch)


@pytest.mark.parametrize("exponent", [-12, -3, -1])
def test_a_bound_of_the_distribution_function_is_one(exponent):
    # for the uniform law F(z) = z, exactly
    belief, _ = one_state([[0.0, 1.0]], 1.0)
    levels = np.full(2, 0.2)
    entries = belief.concentration_entries
    rows = dirichlet.Rows.of(
        belief.pattern.indptr, belief.concentration_offsets, entries, levels, 2
    )
    targets = np.array([0.0, 1.0, 0.0])
    scratch = dirichlet.workspace(2)
    gap = 10.0**exponent
    for limit in [*np.linspace(0.21, 0.99, 40), *(1.0 - gap * np.linspace(0.1, 0.9, 40))]:
        z, level = halfway_below(0, rows, targets, limit, scratch)
        assert z < limit
        assert 0.2 <= level <= z


def test_a_bound_next_to_one_is_not_rounded_up():
    # F(z) = 1 − (1 − z)^n with few values of z next to 1
    for n in (20.0, 30.0, 40.0):
        belief, _ = one_state([[0.0, 1.0]], 1.0)
        rows = dirichlet.Rows.of(
            belief.pattern.indptr,
            belief.concentration_offsets,
            np.array([n, 1.0, 1.0]),
            np.full(2, 0.5),
            2,
        )
        scratch = dirichlet.workspace(2)
        for limit in np.linspace(0.5, 1.9, 200):
            z, level = halfway_below(0, rows, np.array([0.0, 1.0, 0.0]), limit, scratch)
            if level > 0.0:
                assert 1.0 - level >= (1.0 - z) ** n


# --- many plans -----------------------------------------------------------------------------------

BELIEF = brmdp.DirichletBelief(np.array([[[9.0, 1.0], [1.0, 9.0]]] * 2))
REWARDS = np.array([[0.0, 0.2], [1.0, 0.7]])
LEVELS = [0.5, 0.1, 0.1, 0.9, 0.1 + 1e-17, np.nextafter(0.1, 1.0), 1.0 - 1e-16, 1e-100]


@pytest.mark.parametrize("discount", [np.array(0.9), np.float64(0.9), [0.9], (0.9,)])
def test_a_discount_may_come_in_any_form(discount):
    (found,) = brmdp.plan_many(BELIEF, REWARDS, discount, risk=brmdp.Quantile(0.2))
    wanted = brmdp.plan(BELIEF, REWARDS, 0.9, risk=brmdp.Quantile(0.2))
    np.testing.assert_array_equal(found.values, wanted.values)


@pytest.mark.parametrize("discount", [[[0.9]], [[0.9, 0.9]], np.ones((1, 1, 1)) / 2])
def test_a_table_of_discounts_is_refused(discount):
    with pytest.raises(InvalidInputError, match="discount must be a number, or one for each plan"):
        brmdp.plan_many(BELIEF, REWARDS, discount, risk=brmdp.Quantile(0.2))


def test_levels_that_are_equal_or_nearly_so_in_any_order():
    risks = [kind(level) for level in LEVELS for kind in (brmdp.Quantile, brmdp.CVaR)]
    for found, risk in zip(brmdp.plan_many(BELIEF, REWARDS, 0.9, risk=risks), risks, strict=True):
        wanted = brmdp.plan(BELIEF, REWARDS, 0.9, risk=risk)
        assert np.abs(found.values - wanted.values).max() <= found.error_bound + wanted.error_bound
        np.testing.assert_array_equal(found.tied_actions(), wanted.tied_actions())
        np.testing.assert_allclose(found.q_values, wanted.q_values, rtol=1e-7)


def test_one_of_many_fails_only_if_it_would_alone(monkeypatch):
    solve = Problem.solve

    def failing(self, belief, risk, initial=None, **options):
        if initial is not None:
            found = solve(self, belief, risk, initial, **options)
            raise ConvergenceError("from here, it does not", found)
        return solve(self, belief, risk, initial, **options)

    monkeypatch.setattr(Problem, "solve", failing)
    risks = [brmdp.Quantile(level) for level in LEVELS]
    for found, risk in zip(brmdp.plan_many(BELIEF, REWARDS, 0.9, risk=risks), risks, strict=True):
        wanted = brmdp.plan(BELIEF, REWARDS, 0.9, risk=risk)
        np.testing.assert_array_equal(found.values, wanted.values)


def test_what_a_plan_remembers_is_not_kept_with_its_result():
    problem = Problem.of(BELIEF, REWARDS, 0.9)
    tasks = [many.Task(problem, BELIEF, brmdp.Quantile(level)) for level in LEVELS]
    assert all(found.memory is None for found in many.solve_all(tasks))
