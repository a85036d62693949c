"""The two illustrative examples and Propositions 2 and 3.

They are checked against rational arithmetic, at the atoms, and outside the conditions.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brmdp
from brmdp import agents, theory
from brmdp.theory.examples import EXPLOIT, EXPLORE, RISKY, SAFE
from oracles import online, planning, theory_examples

relaxed = settings(derandomize=True, deadline=None, max_examples=60)


# --- Proposition 2 --------------------------------------------------------------------------------


@st.composite
def robust_parameters(draw):
    """Parameters for which Proposition 2 holds, a level and the position of a threshold.

    All are decimal numbers; the level is often at the atom 1 − μ.
    """
    mu = draw(st.integers(55, 99)) / 100
    gamma = draw(st.integers(10, 99)) / 100
    loss = draw(st.integers(1, 90)) / 100 * mu / (1 - mu)
    low, high = max(gamma * (1 - loss) / 2, 0.0), gamma * (mu - (1 - mu) * loss)
    c = low + draw(st.integers(2, 98)) / 100 * (high - low)
    share = draw(st.one_of(st.just(1.0), st.floats(0.01, 1.0)))
    alpha = round(1 - mu, 2) if share == 1.0 else share * (1 - mu)
    return mu, c, loss, gamma, alpha, draw(st.one_of(st.just(1.0), st.floats(0.01, 1.0)))


@pytest.mark.long
@relaxed
@given(robust_parameters())
def test_proposition_2(parameters):
    mu, c, loss, gamma, alpha, position = parameters
    example = theory.robustness_example(mu, c, loss, gamma)
    low, high = example.thresholds
    threshold = high if position == 1.0 else low + position * (high - low)
    check = theory.check_robustness(example, alpha, threshold)
    assert check.holds
    assert check.mean_policy[0] == RISKY
    assert check.quantile_policy[0] == SAFE
    assert check.mean_exposure.exact
    # regret of both policies in both kernels, in rational arithmetic
    exact = [Fraction(value) for value in (c, loss, gamma)]
    tables = theory_examples.robustness_tables(*exact[:2])
    for policy, found in (("risky", check.mean_exposure), ("safe", check.quantile_exposure)):
        chosen = {"s0": policy, "g": "safe", "b": "safe"}
        expected = [
            float(theory_examples.regret(tables[kernel], chosen, exact[2])) for kernel in "GB"
        ]
        np.testing.assert_allclose(found.regret, expected, rtol=1e-9, atol=1e-9)
    assert check.mean_exposure.probability == pytest.approx(1 - mu, abs=1e-14)
    assert check.quantile_exposure.probability == 0.0


@settings(relaxed, max_examples=25)
@given(robust_parameters())
def test_the_policies_of_example_1_are_those_of_value_iteration(parameters):
    mu, c, loss, gamma, alpha, _ = parameters
    example = theory.robustness_example(mu, c, loss, gamma)
    kernels, rewards, admissible = theory_examples.dense(
        theory_examples.robustness_tables(Fraction(c), Fraction(loss)), ("safe", "risky")
    )
    weights = np.array([mu, 1 - mu])
    measures = {
        "mean": planning.mean_risk(np.tensordot(weights, kernels, 1)),
        "quantile": planning.scenario_risk(kernels, weights, alpha, lower_tail=False),
    }
    measure = {"mean": brmdp.Mean(), "quantile": brmdp.Quantile(alpha)}
    for name, risk in measures.items():
        values = planning.value_iteration(risk, rewards, gamma, 1e-10, admissible)
        best = max((risk(0, a, rewards[0, a] + gamma * values), a) for a in (0, 1))[1]
        assert example.best_policy(measure[name])[0] == best


def test_the_thresholds_are_sharp():
    """At the lower end the safe policy is exposed too; above the upper end nothing is."""
    example = theory.robustness_example(0.7, 0.3, 0.5, 0.9)
    low, high = example.thresholds
    gamma, c, loss = Fraction(9, 10), Fraction(3, 10), Fraction(1, 2)
    assert low == pytest.approx(float((gamma - c) / (1 - gamma)), rel=1e-14)
    assert high == pytest.approx(float((c + gamma * loss) / (1 - gamma)), rel=1e-14)
    inside = theory.check_robustness(example, 0.3)
    assert inside.holds
    assert inside.threshold == high
    below = theory.check_robustness(example, 0.3, low, strict=False)
    assert not below.holds
    assert below.quantile_exposure.probability == pytest.approx(0.7)
    above = theory.check_robustness(example, 0.3, high + 1e-6, strict=False)
    assert not above.holds
    assert above.mean_exposure.probability == 0.0


@pytest.mark.parametrize(("loss", "resolved"), [(0.5, 2e-8), (0.99, 2e-8)])
def test_thresholds_that_cannot_be_resolved_are_refused(loss, resolved):
    """Just above an end of the interval; what is accepted is judged rightly on either side."""
    example = theory.robustness_example(0.9, 0.3, loss, 0.9)
    low, high = example.thresholds
    for end, beyond in ((low, True), (high, False)):
        for share in (1e-4, 0.05, 0.99):
            with pytest.raises(INVALID, match=r"threshold must not exceed .* by 2e-08 or less"):
                theory.check_robustness(example, 0.1, end + share * resolved, strict=False)
        assert (
            theory.check_robustness(example, 0.1, end + 1.01 * resolved, strict=False).holds
            is beyond
        )
        assert (
            theory.check_robustness(example, 0.1, end - 1.01 * resolved, strict=False).holds
            is not beyond
        )
    assert not theory.check_robustness(example, 0.1, low, strict=False).holds
    assert theory.check_robustness(example, 0.1, high).holds


@pytest.mark.parametrize("mu", [0.6, 0.7, 0.8, 0.9, 0.95, 0.99])
def test_the_atom_belongs_to_caution(mu):
    """α = 1 − μ as a decimal is cautious, however 1 − μ is rounded; a little more is curious."""
    example = theory.robustness_example(mu, 0.5 * 0.9 * (mu - (1 - mu) * 0.9), 0.9, 0.9)
    alpha = round(1 - mu, 2)
    assert theory.check_robustness(example, alpha).holds
    more = theory.check_robustness(example, alpha + 1e-9, strict=False)
    assert not more.holds
    assert more.quantile_policy[0] == RISKY


# --- Proposition 3 --------------------------------------------------------------------------------


@st.composite
def trap_parameters(draw):
    mu = draw(st.integers(1, 99)) / 100
    gamma = draw(st.integers(10, 99)) / 100
    c = draw(st.integers(2, 98)) / 100 * gamma**2
    share = draw(st.one_of(st.just(1.0), st.floats(0.01, 1.0)))
    return mu, c, gamma, round(1 - mu, 2) if share == 1.0 else share * (1 - mu)


@relaxed
@given(trap_parameters(), st.integers(1, 25))
def test_proposition_3(parameters, steps):
    mu, c, gamma, alpha = parameters
    check = theory.check_trap(theory.probing_example(mu, c, gamma), alpha, steps)
    assert check.holds
    assert (check.run.state == 0).all()
    assert (check.run.action == SAFE).all()
    assert check.run.escape_step is None
    assert check.run.good_probability == pytest.approx(mu, abs=1e-15)
    table = theory_examples.probing_tables(Fraction(c))["G"]
    policy = {"s0": "safe", "y_G": "safe", "y_B": "safe", "g": "safe", "b": "safe"}
    each = theory_examples.regret(table, policy, Fraction(gamma))
    np.testing.assert_allclose(check.run.regret, float(each), rtol=1e-9, atol=1e-9)
    assert check.regret == pytest.approx(float(steps * each), rel=1e-9)
    assert check.stated_regret == pytest.approx(float(steps * each), rel=1e-12)


def test_the_regret_of_the_trap_is_linear():
    example = theory.probing_example(0.7, 0.5, 0.9)
    regrets = [theory.check_trap(example, 0.3, steps).regret for steps in (1, 10, 100, 400)]
    np.testing.assert_allclose(
        regrets, np.array([1, 10, 100, 400]) * (0.81 - 0.5) / 0.1, rtol=1e-12
    )


@pytest.mark.parametrize("mu", [0.1, 0.3, 0.7, 0.9])
def test_above_the_atom_there_is_no_trap(mu):
    example = theory.probing_example(mu, 0.4, 0.9)
    check = theory.check_trap(example, round(1 - mu, 2) + 1e-9, 20, strict=False)
    assert not check.holds
    assert check.run.escape_step == 0
    assert check.run.good_probability == 1.0
    assert check.regret == pytest.approx(0, abs=1e-8)
    np.testing.assert_array_equal(check.run.action[:3], [EXPLORE, EXPLOIT, SAFE])
    np.testing.assert_array_equal(check.run.state[:4], [0, 1, 3, 3])


def test_without_value_in_probing_there_is_no_regret():
    """With c ≥ γ² the agent stays, and is right."""
    example = theory.probing_example(0.7, 0.82, 0.9, strict=False)
    check = theory.check_trap(example, 0.2, 30, strict=False)
    assert (check.run.action == SAFE).all()
    assert check.regret == pytest.approx(0, abs=1e-8)
    assert not check.holds  # the stated regret is negative
    assert check.stated_regret < 0


# --- the adaptive schedule in the trap ------------------------------------------------------------


def explored(example, delta, floor, truth, steps, restart=None, rng=1):
    agent = agents.aq_brmdp(
        example.belief,
        example.rewards,
        example.discount,
        delta=delta,
        floor=floor,
        restart=restart,
        rng=rng,
    )
    return theory.follow_example(example, agent, steps, truth=truth)


def scanned_escape(example, delta, floor):
    """The schedule's level at an untried exploitation, k by k, by the oracle's loops over pairs."""
    visits = np.zeros((5, 3), dtype=int)
    for k in range(1, 100_000):
        level = online.adaptive_levels(visits, k, delta, floor, example.good.admissible)[1, EXPLOIT]
        if level > 1 - example.good_probability + 1e-12:
            return k
        visits[0, SAFE] += 1
    raise AssertionError("no escape")


@pytest.mark.parametrize(
    ("mu", "delta", "floor"),
    [
        (0.7, 5.0, 0.2),
        (0.7, 10.0, 0.2),
        (0.7, 0.1, 0.2),
        (0.3, 2.0, 0.2),
        (0.9, 0.5, 0.05),
        (0.2, 3.0, 0.81),
        (0.2, 3.0, 0.8),
    ],
)
def test_the_adaptive_schedule_leaves_the_trap(mu, delta, floor):
    """Planning after every step, the agent leaves when the formula says and has no regret after."""
    c, gamma = 0.5, 0.9
    example = theory.probing_example(mu, c, gamma)
    k = theory.adaptive_escape_episode(example, agents.AdaptiveLevel(delta, floor))
    assert k == scanned_escape(example, delta, floor)
    good = explored(example, delta, floor, "good", k + 10, agents.EveryStep())
    assert (good.escape_episode, good.escape_step) == (k, k - 1)
    assert good.good_probability == 1.0
    assert good.regret.sum() == pytest.approx((k - 1) * (gamma**2 - c) / (1 - gamma), abs=1e-7)
    assert (good.state[-8:] == 3).all()
    bad = explored(example, delta, floor, "bad", k + 10, agents.EveryStep())
    assert bad.escape_step == k - 1
    assert bad.good_probability == 0.0
    # the plan to explore and exploit is worth nothing under P^B; a step later the agent knows, and
    # stays at y_B
    assert bad.regret.sum() == pytest.approx(c / (1 - gamma), abs=1e-7)
    assert (bad.state[-8:] == 2).all()


@pytest.mark.parametrize("rng", range(3))
def test_the_adaptive_schedule_leaves_the_trap_with_geometric_pseudo_episodes(rng):
    example = theory.probing_example(0.7, 0.5, 0.9)
    run = explored(example, 5.0, 0.2, "good", 500, rng=rng)
    assert run.escape_step is not None
    assert run.regret.sum() == pytest.approx(run.escape_step * (0.81 - 0.5) / 0.1, abs=1e-7)
    assert run.state[-1] == 3


def test_a_large_delta_postpones_the_escape():
    example = theory.probing_example(0.7, 0.5, 0.9)
    episodes = [
        theory.adaptive_escape_episode(example, agents.AdaptiveLevel(delta, 0.2))
        for delta in (1, 5, 20, 100, 1e4)
    ]
    assert episodes == sorted(episodes)
    assert episodes[-1] > 1000


@pytest.mark.parametrize(
    ("mu", "delta"),
    [
        (0.7, 1e12),
        (0.7, 1.7e308),
        (2e-12, 5.0),
        (1e-6, 5.0),
        (0.5, 1e-300),
        (0.75, 1e5),
        (0.999, 1e5),
    ],
)
def test_late_escapes_are_found(mu, delta):
    """In multiple precision, the level is too low before k and high enough after it."""
    example = theory.probing_example(mu, 0.5, 0.9)
    k = theory.adaptive_escape_episode(example, agents.AdaptiveLevel(delta, 0.2))
    needed = 1.0 - mu + 1e-12

    def level(episode):
        with mpmath.workdps(400):
            relative = mpmath.mpf(8) / (max(episode - 1, 1) + 7)
            return 1 - mpmath.mpf(delta) * mpmath.log(2 * episode) / mpmath.sqrt(episode) * relative

    assert int(example.good.admissible.sum()) == 8
    rounding = 4e-16
    assert max(level(k), 0.2) > needed - rounding
    assert k == 1 or max(level(k - 1), 0.2) <= needed + rounding


@pytest.mark.parametrize("mu", [1e-14, 9e-13])
def test_a_trap_that_is_never_left_is_named(mu):
    """No level below one sees the good kernel, and an agent does not leave."""
    example = theory.probing_example(mu, 0.5, 0.9)
    with pytest.raises(INVALID, match="good_probability must exceed 1e-12"):
        theory.adaptive_escape_episode(example, agents.AdaptiveLevel(5.0, 0.2))
    assert example.best_policy(brmdp.Quantile(np.nextafter(1.0, 0.0)))[0] == SAFE
    assert (
        theory.probing_example(2e-12, 0.5, 0.9).best_policy(brmdp.Quantile(np.nextafter(1.0, 0.0)))[
            0
        ]
        == EXPLORE
    )


# --- the examples themselves ----------------------------------------------------------------------


def test_the_examples_are_those_of_the_paper():
    c, loss = Fraction(3, 10), Fraction(1, 2)
    for example, tables in (
        (theory.robustness_example(0.7, 0.3, 0.5, 0.9), theory_examples.robustness_tables(c, loss)),
        (theory.probing_example(0.7, 0.3, 0.9), theory_examples.probing_tables(c)),
    ):
        states, actions = example.good.state_names, example.good.action_names
        assert list(states) == list(tables["G"])
        kernels, rewards, admissible = theory_examples.dense(tables, actions)
        for mdp, kernel in ((example.good, kernels[0]), (example.bad, kernels[1])):
            np.testing.assert_array_equal(mdp.kernel(), kernel)
            np.testing.assert_array_equal(mdp.admissible, admissible)
            assert mdp.start == 0
            assert mdp.discount == example.discount == 0.9
        np.testing.assert_array_equal(np.where(admissible, example.rewards, 0.0), rewards[:, :, 0])
        np.testing.assert_allclose(example.belief.weights, [0.7, 0.3])
        assert (example.good_probability, example.safe_reward) == (0.7, 0.3)
        assert example.violations == ()


def test_probing_tells_the_kernel_and_staying_nothing():
    example = theory.probing_example(0.7, 0.3, 0.9)
    for observed, weights in (
        ((0, SAFE, 0), [0.7, 0.3]),
        ((0, EXPLORE, 1), [1, 0]),
        ((0, EXPLORE, 2), [0, 1]),
    ):
        belief = example.belief.copy()
        belief.observe(*observed)
        np.testing.assert_allclose(belief.weights, weights)


# --- conditions that are violated -----------------------------------------------------------------

INVALID = brmdp.InvalidInputError


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            (0.4, 0.3, 0.5, 0.9),
            r"Proposition 2 are violated: it needs μ > 1/2 \(μ = 0\.4\); "
            r"c < γ\(μ − \(1 − μ\)L\) \(c = 0\.3",
        ),
        ((0.7, 0.1, 0.5, 0.9), r"γ\(1 − L\)/2 < c \(γ\(1 − L\)/2 = 0\.225, c = 0\.1\)"),
        (
            (0.7, 0.6, 0.5, 0.9),
            r"c < γ\(μ − \(1 − μ\)L\) \(c = 0\.6, γ\(μ − \(1 − μ\)L\) = 0\.495\)",
        ),
    ],
)
def test_violated_conditions_of_proposition_2_are_named(parameters, message):
    with pytest.raises(INVALID, match=message):
        theory.robustness_example(*parameters)
    example = theory.robustness_example(*parameters, strict=False)
    assert len(example.violations) > 0
    with pytest.raises(INVALID, match=message):
        theory.check_robustness(example, 0.1)
    assert not theory.check_robustness(example, 0.1, strict=False).holds


def test_violated_conditions_of_the_statements_are_named():
    example, trap = (
        theory.robustness_example(0.7, 0.3, 0.5, 0.9),
        theory.probing_example(0.7, 0.3, 0.9),
    )
    low, _ = example.thresholds
    with pytest.raises(INVALID, match=r"Proposition 2 .* α ≤ 1 − μ \(α = 0\.31, 1 − μ = 0\.3\)"):
        theory.check_robustness(example, 0.31)
    with pytest.raises(
        INVALID, match=r"\(γ − c\)/\(1 − γ\) < Λ \(\(γ − c\)/\(1 − γ\) = 6, Λ = 6\)"
    ):
        theory.check_robustness(example, 0.3, low)
    with pytest.raises(INVALID, match=r"Λ ≤ \(c \+ γL\)/\(1 − γ\) \(Λ = 8, "):
        theory.check_robustness(example, 0.3, 8.0)
    with pytest.raises(INVALID, match=r"Proposition 3 .* α ≤ 1 − μ \(α = 0\.5, 1 − μ = 0\.3\)"):
        theory.check_trap(trap, 0.5)
    with pytest.raises(INVALID, match=r"Proposition 3 .* c < γ² \(c = 0\.85, γ² = 0\.81\)"):
        theory.probing_example(0.7, 0.85, 0.9)
    unprofitable = theory.probing_example(0.7, 0.85, 0.9, strict=False)
    assert unprofitable.violations == ("c < γ² (c = 0.85, γ² = 0.81)",)
    for call in (
        lambda: theory.check_trap(unprofitable, 0.3),
        lambda: theory.adaptive_escape_episode(unprofitable, agents.AdaptiveLevel(1.0)),
    ):
        with pytest.raises(INVALID, match="c < γ²"):
            call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: theory.robustness_example(1.0, 0.3, 0.5, 0.9),
            "good_probability must lie strictly between 0 and 1",
        ),
        (
            lambda: theory.robustness_example(0.7, 0.9, 0.5, 0.9),
            r"safe_reward must lie strictly between 0 and discount = 0\.9",
        ),
        (
            lambda: theory.robustness_example(0.7, math.nan, 0.5, 0.9, strict=False),
            "safe_reward must lie strictly",
        ),
        (
            lambda: theory.robustness_example(0.7, 0.3, 0.0, 0.9, strict=False),
            "loss must be a positive finite number",
        ),
        (
            lambda: theory.robustness_example(0.7, 0.3, math.inf, 0.9),
            "loss must be a positive finite number",
        ),
        (lambda: theory.probing_example(0.7, 0.3, 1.0), r"discount must lie in \[0, 1\)"),
        (
            lambda: theory.probing_example(0.7, 0.0, 0.9),
            "safe_reward must lie strictly between 0 and discount",
        ),
        (
            lambda: theory.check_trap(theory.probing_example(0.7, 0.3, 0.9), 1.0),
            "alpha must lie strictly between 0 and 1",
        ),
        (
            lambda: theory.check_trap(theory.probing_example(0.7, 0.3, 0.9), 0.1, 0),
            "steps must be a positive integer; got 0",
        ),
        (
            lambda: theory.check_trap(theory.robustness_example(0.7, 0.3, 0.5, 0.9), 0.1),
            r"example must come from probing_example\(…\); got the robustness example",
        ),
        (
            lambda: theory.check_robustness(None, 0.1),
            r"example must come from robustness_example\(…\); got NoneType",
        ),
        (
            lambda: theory.check_robustness(
                theory.robustness_example(0.7, 0.3, 0.5, 0.9), 0.1, -1.0
            ),
            "threshold must be a positive finite number",
        ),
        (
            lambda: theory.follow_example(theory.probing_example(0.7, 0.3, 0.9), None, 5),
            "agent must be a brmdp.Agent",
        ),
        (
            lambda: theory.follow_example(
                theory.probing_example(0.7, 0.3, 0.9), None, 5, truth="ugly"
            ),
            "truth must be 'good' or 'bad'; got 'ugly'",
        ),
        (
            lambda: theory.adaptive_escape_episode(theory.probing_example(0.7, 0.3, 0.9), 5.0),
            "schedule must be a brmdp.agents.AdaptiveLevel",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(INVALID, match=message):
        call()
