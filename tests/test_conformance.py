"""Every belief × every risk measure × everything one can do with them, foreign ones included.

A new belief or measure joins by one line here. The reference is plain value iteration over
``brmdp.backup``; what must be refused is refused by name.
"""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import brmdp
from brmdp.decisions import learn_prior
from brmdp.planning import certify_nested
from brmdp.risk import BernsteinBound, Bonus, OptimisticBall, RootBonus
from foreign import Jittered, Storable, Sure
from problems import (
    Frozen,
    Problem,
    bootstrap,
    censored,
    dense,
    disturbance,
    drawn_policy,
    followed,
    inadmissible,
    known,
    outcomes,
    scenarios,
    sparse_rows,
)

sys.path.append(str(Path(__file__).parents[1] / "examples" / "extend"))
from own_belief import FadingBelief
from own_risk_measure import Entropic


class Certain(Sure):
    """Every draw is the mean."""

    def sample_entries(self, n, pairs=None, *, rng):
        mean = (
            self.mean_entries() if pairs is None else self.pattern.take(self.mean_entries(), pairs)
        )
        return np.tile(mean, (n, 1))


def _foreign(kind, seed=3, **settings):
    """A custom belief with the concentrations of the library's."""
    case = dense(seed)
    made = kind(case.belief.concentration("dense"), **settings)
    return Problem(made, case.rewards, case.discount)


def _fading(seed=3):
    case = dense(seed)
    return Problem(FadingBelief(case.belief, 0.9), case.rewards, case.discount)


def _learned(seed=3):
    """A prior learned from a log, with everything uncertain."""
    case = dense(seed)
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(12, rng.dirichlet(np.ones(case.n_states)), size=case.shape)
    learned = learn_prior(counts, shape="destinations", rng=rng)
    return Problem(learned.belief(), case.rewards, case.discount)


BELIEFS = {
    "dirichlet": lambda: dense(3),
    "dirichlet, sparse": lambda: sparse_rows(3),
    "dirichlet, inadmissible": lambda: inadmissible(3),
    "disturbance": lambda: disturbance(3),
    "censored": lambda: censored(3),
    "censored, nothing hidden": lambda: censored(3, hidden=0),
    "scenarios": lambda: scenarios(3),
    "outcomes": lambda: outcomes(3),
    "outcomes, bootstrap": lambda: bootstrap(3),
    "known": lambda: known(3),
    "learned": _learned,
    "own, draws": lambda: _foreign(Jittered),
    "own, storable": lambda: _foreign(Storable),
    "own, without doubt": lambda: _foreign(Certain),
    "own, Dirichlet rows": _fading,
}

MEASURES = {
    "mean": lambda: brmdp.Mean(),
    "posterior sample": lambda: brmdp.PosteriorSample(rng=12),
    "quantile": lambda: brmdp.Quantile(0.2),
    "saddlepoint": lambda: brmdp.Quantile(0.2, method="saddlepoint"),
    "sampled quantile": lambda: brmdp.Quantile(0.2, brmdp.MonteCarlo(samples=40, rng=11)),
    "reused draws": lambda: brmdp.Quantile(0.2, brmdp.MonteCarlo(samples=40, reuse=True, rng=11)),
    "cvar": lambda: brmdp.CVaR(0.3),
    "worst case": lambda: brmdp.risk.WorstCase(0.3),
    "own, entropic": lambda: Entropic(1.5, samples=60),
    "bonus": lambda: Bonus(RootBonus(0.5), brmdp.CVaR(0.3)),
    "ball": lambda: OptimisticBall(0.1, scale=0.1),
    "bernstein": lambda: BernsteinBound(0.1, span=100.0, ceiling=1e9, scale=0.1),
}

DIRICHLET = ("dirichlet", "dirichlet, sparse", "dirichlet, inadmissible", "disturbance")
REWARDS = ("outcomes", "outcomes, bootstrap")
EXACT_ROWS = (*DIRICHLET, *REWARDS, "censored, nothing hidden", "own, Dirichlet rows")
SADDLEPOINT = (*DIRICHLET, *REWARDS, "own, Dirichlet rows")
REUSABLE = ("dirichlet", "dirichlet, sparse", "dirichlet, inadmissible")
WITHOUT_DOUBT = ("known", "own, without doubt")
COUNTING = ("bonus", "ball", "bernstein")
COUNTED = (*DIRICHLET, *REWARDS, "censored, nothing hidden", "learned", "own, Dirichlet rows")
DRAWS_ALWAYS = ("posterior sample", "sampled quantile", "reused draws", "own, entropic")
LEARNING = tuple(name for name in BELIEFS if name not in ("known", "own, without doubt"))
SAVEABLE = tuple(name for name in LEARNING if name != "own, draws")

PAIRS = [
    (belief, measure)
    for belief in BELIEFS
    for measure in MEASURES
    # an approximation of the law of Dirichlet rows
    if (measure != "saddlepoint" or belief in (*SADDLEPOINT, *WITHOUT_DOUBT))
    and (measure != "reused draws" or belief in REUSABLE)
    and (measure not in COUNTING or belief in COUNTED)
]
every_pair = pytest.mark.parametrize(("belief", "measure"), PAIRS)


@cache
def case(name):
    return BELIEFS[name]()


def basis(belief, measure):
    """What a plan must say about itself."""
    if measure in DRAWS_ALWAYS:
        return "sampled"
    if belief in WITHOUT_DOUBT or measure in ("mean", "worst case", "ball", "bernstein"):
        return "converged"
    if measure == "saddlepoint":
        return "approximate"
    return "converged" if belief in (*EXACT_ROWS, "scenarios") else "sampled"


def iterated(problem, measure, near, policy=None):
    """Value iteration, started ``near`` its end; the contraction bound proves where it is."""
    risk = Frozen(MEASURES[measure](), problem.belief)
    values = near
    for _ in range(200):  # 0.8^200 is less than rounding, wherever it starts
        q = problem.backup(risk, values)
        following = q.max(axis=1) if policy is None else followed(policy, q)
        change = np.abs(following - values).max()
        values = following
        if problem.discount * change <= 1e-11 * (1 - problem.discount):
            return values
    raise AssertionError(f"value iteration did not end: last change {change}")


def some_policy(problem):
    return problem.admissible.argmax(axis=1)


@pytest.mark.long
@every_pair
def test_plan_is_the_fixed_point_and_says_what_it_rests_on(belief, measure):
    problem = case(belief)
    plan = problem.plan(MEASURES[measure]())
    assert plan.status == basis(belief, measure)
    near = 1e-6 if measure == "saddlepoint" else plan.error_bound + 1e-10
    assert near <= 1e-6
    assert np.abs(plan.values - iterated(problem, measure, plan.values)).max() <= near
    assert problem.admissible[np.arange(problem.n_states), plan.policy].all()
    assert np.isinf(plan.error_bound) == (plan.status == "approximate")


@pytest.mark.long
@every_pair
@pytest.mark.parametrize("draws", [False, True], ids=["actions", "probabilities"])
def test_evaluation_of_a_policy_is_its_fixed_point(belief, measure, draws):
    problem = case(belief)
    policy = drawn_policy(problem.admissible) if draws else some_policy(problem)
    found = problem.evaluate(policy, MEASURES[measure]())
    near = 1e-6 if measure == "saddlepoint" else found.error_bound + 1e-10
    assert near <= 1e-6
    assert np.abs(found.values - iterated(problem, measure, found.values, policy)).max() <= near
    assert found.status == basis(belief, measure)
    np.testing.assert_allclose(found.policy, policy, rtol=1e-15)


@every_pair
def test_the_operator_is_monotone_shifts_with_the_targets_and_has_its_rows(belief, measure):
    problem = case(belief)
    pattern = problem.belief.pattern
    operator = MEASURES[measure]().bind(problem.belief)
    pairs = pattern.pairs
    rng = np.random.default_rng(5)
    targets = rng.normal(size=pattern.n_transitions)

    def values(w):
        out = np.full(pattern.n_pairs, np.nan)
        operator.evaluate(w, pairs, out)
        return out[pairs]

    base = values(targets)
    rows = operator.rows(targets, _spread(pattern, pairs, base), pairs)
    assert rows.shape == (int(pattern.row_widths.sum()),)
    # an approximation may break these rules a little, and says so
    near = 2e-2 if measure == "saddlepoint" else 1e-7
    owner = np.repeat(np.arange(pairs.size), pattern.row_widths)
    assert np.bincount(owner, rows) == pytest.approx(np.ones(pairs.size), abs=near)
    assert values(targets + 3.0) == pytest.approx(base + 3.0, abs=1e-8)
    assert (values(targets + rng.random(targets.size)) >= base - 1e-8).all()
    if measure not in ("sampled quantile", "reused draws", "saddlepoint") and (
        basis(belief, measure) == "converged" and belief != "scenarios"
    ):
        step = 1e-5 * rng.normal(size=targets.size)
        change = np.bincount(owner, rows * step)
        assert values(targets + step) - base == pytest.approx(change, abs=2e-8)


def _spread(pattern, pairs, values):
    out = np.zeros(pattern.n_pairs)
    out[pairs] = values
    return out


@pytest.mark.parametrize("belief", BELIEFS)
def test_a_certificate_holds_or_is_refused_by_name(belief):
    problem = case(belief)
    arguments = (problem.belief, problem.rewards, problem.discount)
    if belief in ("learned", "own, draws", "own, storable", "censored", "outcomes, bootstrap"):
        with pytest.raises(brmdp.InvalidInputError, match=type(problem.belief).__name__):
            certify_nested(*arguments, confidence=0.8, rng=1)
        return
    found = certify_nested(*arguments, confidence=0.8, coverage_samples=400, rng=1)
    nested = problem.evaluate(found.policy, brmdp.Quantile(found.level)).values
    assert found.values == pytest.approx(nested, abs=1e-6)
    # an independent count: the policy's value in kernels drawn from the belief
    draws = problem.belief.sample_entries(200, rng=np.random.default_rng(2))
    pattern, rewards = problem.belief.pattern, problem.belief.gather_rewards(problem.rewards)
    states, held = np.arange(problem.n_states), 0
    for draw in draws:
        kernel = pattern.dense(draw)[states, found.policy]
        paid = np.bincount(pattern.pair_of_transition, draw * rewards, pattern.n_pairs)
        paid = paid[states * pattern.n_actions + found.policy]
        values = np.linalg.solve(np.eye(states.size) - problem.discount * kernel, paid)
        held += (values >= found.values - 1e-9).all()
    assert held >= 0.7 * len(draws)  # 0.8 but for chance
    assert len(str(found).splitlines()) <= 12


def with_agents(beliefs, measures):
    """Every agent of these parts that can learn; some measures need counts of observations."""
    pairs = [
        (belief, measure)
        for belief in beliefs
        for measure in measures
        if belief != "scenarios" and (measure not in COUNTING or belief in COUNTED)
    ]
    return pytest.mark.parametrize(("belief", "measure"), pairs)


def an_agent(belief, measure):
    problem = case(belief)
    restart = brmdp.agents.FixedLength(3)
    return brmdp.Agent(
        *(problem.belief, problem.rewards, problem.discount),
        risk=MEASURES[measure](),
        restart=restart,
        rng=4,
    )


def live(agent, steps, seed):
    """The agent's transitions, drawn at random from those that its belief holds possible."""
    pattern = agent.belief.pattern
    rng, done, state = np.random.default_rng(seed), [], 0
    for _ in range(steps):
        action = agent.act(state)
        pair = state * pattern.n_actions + action
        begin, end = pattern.indptr[pair : pair + 2]
        entry = int(rng.integers(begin, end))
        successor = int(pattern.next_states[entry])
        told = {}
        if isinstance(agent.belief, brmdp.OutcomeBelief):
            paid = agent.belief.outcome_rewards[entry]
            told["reward"] = paid if rng.random() < 0.5 else _another(agent.belief, entry, rng)
        if isinstance(agent.belief, brmdp.DisturbanceBelief):
            driving = np.flatnonzero(agent.belief.outcomes[state, action] == successor)
            told["disturbance"] = int(rng.choice(driving))
        agent.observe(state, action, successor, **told)
        done.append((state, action, successor))
        state = successor
    return done


def _another(belief, entry, rng):
    """Another reward of the same transition: a possible one, or one between the bounds."""
    pattern = belief.pattern
    same = pattern.next_states == pattern.next_states[entry]
    same &= pattern.pair_of_transition == pattern.pair_of_transition[entry]
    rewards = belief.outcome_rewards[same]
    return rng.uniform(rewards.min(), rewards.max()) if belief.is_bootstrap else rng.choice(rewards)


@with_agents(LEARNING, ["mean", "posterior sample", "quantile", "cvar", "own, entropic", *COUNTING])
def test_an_agent_learns_and_repeats_itself(belief, measure):
    first, second = (live(an_agent(belief, measure), 12, 1) for _ in range(2))
    assert first == second
    agent = an_agent(belief, measure)
    live(agent, 12, 1)
    assert agent.progress.steps == 12
    assert agent.episode == 4


@with_agents(SAVEABLE, ["posterior sample", "reused draws", "quantile", "own, entropic", *COUNTING])
def test_a_saved_agent_goes_on_as_it_would_have(belief, measure, tmp_path):
    if measure == "reused draws" and belief not in REUSABLE:
        with pytest.raises(brmdp.InvalidInputError, match="reuse=True needs a DirichletBelief"):
            live(an_agent(belief, measure), 1, 1)
        return
    agent = an_agent(belief, measure)
    live(agent, 7, 1)
    agent.save(tmp_path / "agent.npz")
    foreign = {}
    # a layer above the agents
    above = type(agent.belief).__module__.startswith("brmdp.decisions")
    if above or type(agent.belief).__module__.partition(".")[0] != "brmdp":
        foreign["belief"] = type(agent.belief)
    if measure.startswith("own"):
        foreign["risk"] = MEASURES[measure]()
    loaded = brmdp.Agent.load(tmp_path / "agent.npz", **foreign)
    assert live(loaded, 8, 2) == live(agent, 8, 2)
    for missing in foreign:
        others = {role: part for role, part in foreign.items() if role != missing}
        with pytest.raises(brmdp.InvalidInputError, match=f"load\\(path, {missing}="):
            brmdp.Agent.load(tmp_path / "agent.npz", **others)


@pytest.mark.parametrize("belief", [name for name in SAVEABLE if not name.startswith("own")])
def test_a_saved_belief_plans_the_same(belief, tmp_path):
    problem = case(belief)
    problem.belief.save(tmp_path / "belief.npz")
    loaded = type(problem.belief).load(tmp_path / "belief.npz")
    again = Problem(loaded, problem.rewards, problem.discount)
    assert np.array_equal(
        again.plan(brmdp.Quantile(0.3)).values, problem.plan(brmdp.Quantile(0.3)).values
    )


@pytest.mark.parametrize("belief", BELIEFS)
def test_how_far_a_plan_rests_on_the_prior_is_said_or_not_known(belief):
    problem = case(belief)
    prior = problem.plan(brmdp.Mean()).prior
    knows = callable(getattr(problem.belief, "evidence", None))
    assert (prior is not None) == knows
