"""Plans that compute only what may matter, against plans that compute everything.

The reference is the Python solver, without memory and without compiled iteration.
"""

import numpy as np
import pytest

import brmdp
from brmdp._kernels import dirichlet
from brmdp.planning.compiled import Memory
from brmdp.planning.planner import Problem

MEASURES = {
    "quantile": lambda levels: brmdp.Quantile(levels),
    "cvar": lambda levels: brmdp.CVaR(levels),
    "saddlepoint": lambda levels: brmdp.Quantile(levels, method="saddlepoint"),
}


class Python(Problem):
    """The specification: everything computed, nothing compiled but single sweeps."""

    def solve_compiled(self, *arguments):
        return None


def drawn_belief(rng):
    """A belief with or without impossible transitions, fractions, light rows and equal actions."""
    n, n_actions = int(rng.integers(2, 9)), int(rng.integers(1, 5))
    shape = (n, n_actions, n)
    kind = rng.integers(4)
    if kind == 0:
        prior = np.ones(shape)
    elif kind == 1:
        prior = rng.uniform(0.2, 4.0, shape)
    elif kind == 2:
        prior = np.full(shape, 0.5)
    else:
        prior = rng.integers(1, 30, shape).astype(float)
    possible = rng.random(shape) < rng.choice([0.4, 1.0])
    possible[..., 0] |= ~possible.any(axis=2)
    return brmdp.DirichletBelief(prior * possible)


def drawn_levels(rng, levels, how):
    """The next levels: the same, risen a little, or anything."""
    if levels is None:
        return np.full(how.shape, rng.uniform(0.05, 0.6))
    if how.kind == "fixed":
        return levels
    if how.kind == "rising":
        return np.minimum(levels + (rng.random(how.shape) < 0.4) * rng.uniform(0, 0.02), 0.95)
    return rng.uniform(0.02, 0.95, how.shape)


class How:
    def __init__(self, shape, kind):
        self.shape, self.kind = shape, kind


def steps_of(rng, measure, count):
    """Plans after a few new observations each: (with memory, reference) pairs."""
    belief = drawn_belief(rng)
    shape = belief.pattern.admissible.shape
    rewards = rng.choice([0.0, 0.0, 1.0, rng.random()], (*shape, shape[0]))
    discount = float(rng.choice([0.5, 0.8, 0.95]))
    fast = Problem.of(belief, rewards, discount)
    slow = Python.of(belief, rewards, discount)
    how = How(shape, rng.choice(["fixed", "rising", "anything"], p=[0.45, 0.45, 0.1]))
    levels = None
    before = None
    pattern = belief.pattern
    for _ in range(count):
        levels = drawn_levels(rng, levels, how)
        risk = MEASURES[measure](levels)
        start = None if before is None else before.values
        memory = None if before is None else before.memory
        now = fast.solve(belief, risk, start, memory=memory, remember=True)
        yield now, slow.solve(belief, risk, start), belief, risk
        before = now
        for _ in range(int(rng.choice([0, 1, 1, 1, 5]))):
            entry = int(rng.integers(pattern.n_transitions))
            state, action = divmod(int(pattern.pair_of_transition[entry]), pattern.n_actions)
            belief.observe(state, action, int(pattern.next_states[entry]))


def check(now, reference):
    """The same policy and ties, values within both bounds, a bound as good as promised."""
    np.testing.assert_array_equal(now.policy, reference.policy)
    np.testing.assert_array_equal(now.tied, reference.tied)
    np.testing.assert_array_equal(now.tied_actions(), reference.tied_actions())
    assert now.status == reference.status
    if now.status == "approximate":
        np.testing.assert_array_equal(now.values, reference.values)
        return
    assert now.error_bound <= now.tolerance
    allowed = now.error_bound + reference.error_bound
    assert np.abs(now.values - reference.values).max() <= allowed


def compare(seed, steps, per_world=25):
    rng = np.random.default_rng(seed)
    saved = done = 0
    while done < steps:
        measure = rng.choice(list(MEASURES), p=[0.6, 0.3, 0.1])
        for now, reference, _, _ in steps_of(rng, measure, min(per_world, steps - done)):
            check(now, reference)
            saved += int(np.isinf(now.known_q).sum() - np.isinf(reference.known_q).sum())
            done += 1
    return saved


def test_plans_with_memory_agree_with_full_plans():
    assert compare(20260, 250) > 500  # actions that were not computed


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_plans_with_memory_agree_over_100_000_agent_steps(part):
    assert compare(990 + part, 5000) > 5000


@pytest.mark.parametrize("measure", ["quantile", "cvar"])
def test_values_that_were_not_needed_are_computed_when_they_are_read(measure):
    """They are values, never bounds: those of a backup at V, which is off by the residual."""
    hidden = 0
    for seed in range(6):
        for now, reference, belief, risk in steps_of(np.random.default_rng(seed), measure, 8):
            q = now.q_values
            assert not q.flags.writeable
            admissible = belief.pattern.admissible
            np.testing.assert_array_equal(np.isfinite(q), admissible)
            known = np.isfinite(now.known_q)
            np.testing.assert_array_equal(q[known], now.known_q[known])
            missing = ~known & admissible
            hidden += int(missing.sum())
            allowed = now.error_bound + reference.error_bound + 2.0 * now.residual
            apart = np.abs(q - reference.q_values)[admissible].max()
            assert apart <= allowed + reference.residual + 1e-13 * np.abs(now.values).max()
            best = np.broadcast_to(q.max(axis=1, keepdims=True), q.shape)
            assert (q < best - now.tie_width)[missing].all()
            bound = risk.bind(belief)
            assert bound.basis == now.basis
    assert hidden > 50


@pytest.mark.parametrize("measure", MEASURES)
def test_the_compiled_solver_does_what_the_specification_says(measure):
    """The same sweeps and the same values, bit for bit, from cold and warm starts."""
    rng = np.random.default_rng(11)
    for _ in range(25):
        belief = drawn_belief(rng)
        shape = belief.pattern.admissible.shape
        rewards = rng.random((*shape, shape[0]))
        discount = float(rng.choice([0.5, 0.9]))
        risk = MEASURES[measure](rng.uniform(0.05, 0.9, shape))
        some = belief.pattern.admissible.argmax(axis=1)
        tolerance = rng.choice([None, 1e-4, 1e-9])
        fast = Problem.of(belief, rewards, discount, tolerance)
        slow = Python.of(belief, rewards, discount, tolerance)
        for start in (None, 5.0 * rng.random(shape[0])):
            for policy in (None, some):
                got = fast.solve(belief, risk, start, policy=policy)
                wanted = slow.solve(belief, risk, start, policy=policy)
                for name in ("values", "q_values", "policy", "tied"):
                    np.testing.assert_array_equal(getattr(got, name), getattr(wanted, name))
                for name in ("residual", "error_bound", "iterations", "tolerance", "tie_width"):
                    assert getattr(got, name) == getattr(wanted, name), name


def test_a_problem_that_the_compiled_solver_leaves_is_solved_as_if_it_had_not_tried(monkeypatch):
    """A chain on which Newton's steps do not halve the residual for long."""
    world = brmdp.envs.riverswim(300)
    belief = brmdp.DirichletBelief.informative(world, 50.0)
    risk = brmdp.Quantile(0.3)
    problem = Problem.of(belief, world.rewards, 0.99)
    tried = []
    original = Problem.solve_compiled

    def watched(self, *arguments):
        tried.append(original(self, *arguments))
        return tried[-1]

    monkeypatch.setattr(Problem, "solve_compiled", watched)
    start = np.zeros(300)
    got = problem.solve(belief, risk, start)
    assert tried == [None]
    wanted = Python.of(belief, world.rewards, 0.99).solve(belief, risk, start)
    np.testing.assert_array_equal(got.values, wanted.values)
    assert got.iterations == wanted.iterations


def test_a_memory_says_nothing_of_another_measure_or_size():
    rng = np.random.default_rng(1)
    belief = brmdp.DirichletBelief.uniform(4, 2)
    rewards = rng.random((4, 2))
    problem = Problem.of(belief, rewards, 0.9)
    first = problem.solve(belief, brmdp.Quantile(0.2), remember=True)
    other = brmdp.CVaR(0.2)
    got = problem.solve(belief, other, first.values, memory=first.memory, remember=True)
    wanted = problem.solve(belief, other, first.values)
    np.testing.assert_array_equal(got.values, wanted.values)
    larger = brmdp.DirichletBelief.uniform(5, 2)
    assert not first.memory.fits(brmdp.Quantile(0.2).bind(larger), 5)
    assert first.memory.measure == dirichlet.EXACT


def test_a_memory_survives_being_written_as_arrays():
    rng = np.random.default_rng(2)
    for now, _, belief, _ in steps_of(rng, "quantile", 3):
        memory = now.memory
        arrays = {name: np.array(array) for name, array in memory.arrays().items()}
        twin = Memory.from_arrays(arrays, memory.concentration, memory.offsets, belief.pattern)
        for name, array in twin.arrays().items():
            np.testing.assert_array_equal(array, memory.arrays()[name])


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("facts", lambda a: a[:-1]),
        ("facts", lambda a: a - 2.0),
        ("facts", lambda a: a + 2.0),
        ("known", lambda a: a[:, :-1]),
        ("known", lambda a: a * np.nan),
        ("chosen", lambda a: a[::-1]),
        ("chosen", lambda a: a[:-1]),
        ("kind", lambda a: a + 9),
    ],
)
def test_a_memory_that_no_plan_can_have_is_refused(name, spoil):
    belief = brmdp.DirichletBelief.uniform(4, 2)
    problem = Problem.of(belief, np.eye(4)[:, :2], 0.9)
    memory = problem.solve(belief, brmdp.Quantile(0.2), remember=True).memory
    arrays = dict(memory.arrays())
    arrays[name] = spoil(arrays[name])
    with pytest.raises(brmdp.errors.InvalidInputError, match=f"memory.{name}"):
        Memory.from_arrays(arrays, memory.concentration, memory.offsets, belief.pattern)
