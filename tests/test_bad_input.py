"""Bad input: a typed error whose message names the argument and what came.

The table has a row for every kind of bad input: (id, call, error, pattern of the message).
"""

from functools import partial

import numpy as np
import pytest
from scipy import sparse

import brmdp
from brmdp._validation import as_json
from brmdp.planning import certify_nested

KERNEL = np.array([[[0.3, 0.7], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]])
REWARDS = np.arange(8.0).reshape(2, 2, 2)
ADMISSIBLE = np.array([[True, True], [True, False]])
OUTCOMES = np.array([[[0, 1], [1, 1]], [[0, 1], [-1, -1]]])
INVALID = brmdp.InvalidInputError
IMPOSSIBLE = brmdp.ImpossibleTransitionError


def changed(array, index, value):
    """A copy with one entry replaced."""
    copy = np.array(array, dtype=float)
    copy[index] = value
    return copy


def mdp(transitions=KERNEL, rewards=REWARDS, discount=0.9, start=0, **options):
    return brmdp.TabularMDP(transitions, rewards, discount, start, **options)


def dirichlet():
    return brmdp.DirichletBelief(np.where(KERNEL > 0, 1.0, 0.0), admissible=ADMISSIBLE)


def disturbance():
    return brmdp.DisturbanceBelief(OUTCOMES)


def scenario():
    return brmdp.ScenarioBelief([KERNEL, KERNEL], [0.5, 0.5])


def plan(belief=None, rewards=REWARDS, discount=0.9, risk=None, **options):
    belief = dirichlet() if belief is None else belief
    return brmdp.plan(
        belief, rewards, discount, risk=brmdp.Quantile(0.2) if risk is None else risk, **options
    )


def evaluated(policy, **options):
    return brmdp.evaluate_under_belief(
        dirichlet(), REWARDS, 0.9, policy, risk=brmdp.Mean(), **options
    )


def cases():
    """Rows (id, call, error, message)."""
    # --- levels of 0, 1, NaN, wrong shape, wrong type
    for level, text in (
        (0, "0"),
        (1, "1"),
        (0.0, "0.0"),
        (1.0, "1.0"),
        (-0.1, "-0.1"),
        (1.2, "1.2"),
        (np.nan, "nan"),
    ):
        pattern = rf"alpha must lie strictly between 0 and 1; got .*{text}"
        yield f"quantile level {text}", lambda level=level: brmdp.Quantile(level), INVALID, pattern
        call = partial(brmdp.dirichlet.quantile, [1, 1], [0, 1], level)
        yield f"function level {text}", call, INVALID, pattern
        call = partial(brmdp.dirichlet.quantile_row, [1, 1], [0, 1], level)
        yield f"row level {text}", call, INVALID, pattern
        call = partial(brmdp.certified_level, level, 3)
        yield f"certified level {text}", call, INVALID, pattern
        call = partial(brmdp.posterior_quantile_value, dirichlet(), REWARDS, 0.9, [0, 0], level)
        yield f"posterior quantile level {text}", call, INVALID, pattern
        call = partial(certify_nested, dirichlet(), REWARDS, 0.9, level)
        yield (
            f"confidence {text}",
            call,
            INVALID,
            rf"confidence must lie strictly between 0 and 1; got .*{text}",
        )
        call = partial(brmdp.MonteCarlo().budget, level)
        yield f"budget level {text}", call, INVALID, pattern
    for level in (0.0, -0.5, 1.0001, np.nan, np.inf):
        pattern = rf"alpha must lie in \(0, 1\]; got .*{level}"
        yield f"cvar level {level}", lambda level=level: brmdp.CVaR(level), INVALID, pattern
        call = partial(brmdp.dirichlet.cvar, [1, 1], [0, 1], level)
        yield f"cvar function level {level}", call, INVALID, pattern
        call = partial(brmdp.dirichlet.cvar_row, [1, 1], [0, 1], level)
        yield f"cvar row level {level}", call, INVALID, pattern
    for bad in (0.0, 1.0, np.nan):
        levels = changed(np.full((2, 2), 0.5), (1, 0), bad)
        pattern = rf"alpha must lie strictly.*got {bad} at \(s=1, a=0\)"
        yield (
            f"level array with {bad}",
            lambda levels=levels: brmdp.Quantile(levels),
            INVALID,
            pattern,
        )
    for shape in ((2,), (3, 2), (2, 3), (1, 1), (2, 2, 2), (0,)):
        call = partial(plan, risk=brmdp.Quantile(np.full(shape, 0.5)))
        pattern = rf"alpha must .*shape \(2, 2\).*got \({', '.join(map(str, shape))},?\)"
        yield f"levels of shape {shape}", call, INVALID, pattern
        call = partial(plan, risk=brmdp.CVaR(np.full(shape, 0.5)))
        yield f"cvar levels of shape {shape}", call, INVALID, pattern
    for level in ("0.5", None, 0.5 + 0j, True, [0.5, [0.5]], {}):
        for name, make in (("quantile", brmdp.Quantile), ("cvar", brmdp.CVaR)):
            yield (
                f"{name} level {level!r}",
                lambda make=make, level=level: make(level),
                INVALID,
                "alpha must be a number",
            )
        call = partial(brmdp.dirichlet.quantile, [1, 1], [0, 1], level)
        yield f"function level {level!r}", call, INVALID, "alpha must be a number"
    call = partial(brmdp.dirichlet.quantile, [1, 1], [0, 1], [0.5, 1.0])
    yield "function levels", call, INVALID, r"alpha must lie strictly.*1\.0 at index \(1,\)"
    for name, call in (
        ("certify", lambda: certify_nested(dirichlet(), REWARDS, 0.9, [0.9, 0.9])),
        ("certified_level", lambda: brmdp.certified_level([0.1, 0.2], 3)),
        (
            "posterior_quantile_value",
            lambda: brmdp.posterior_quantile_value(dirichlet(), REWARDS, 0.9, [0, 0], [0.1, 0.2]),
        ),
    ):
        yield f"{name} with an array of levels", call, INVALID, "alpha|confidence"

    # --- rows that do not sum to one
    half = changed(KERNEL, (1, 0, 0), 0.4)
    pattern = r"must sum to one over s'; got 0\.9 at \(s=1, a=0\)"
    yield "row sum dense", lambda: mdp(half), INVALID, "transitions " + pattern
    yield (
        "row sum sparse",
        lambda: mdp(sparse.csr_array(half.reshape(4, 2))),
        INVALID,
        "transitions " + pattern,
    )
    yield (
        "row sum scenario",
        lambda: brmdp.ScenarioBelief([KERNEL, half], [0.5, 0.5]),
        INVALID,
        r"kernels\[1\] " + pattern,
    )
    yield (
        "row sum informative",
        lambda: brmdp.DirichletBelief.informative(half, 3.0),
        INVALID,
        "kernel " + pattern,
    )
    yield "row sum too large", lambda: mdp(2 * KERNEL), INVALID, r"got 2 at \(s=0, a=0\)"
    yield (
        "row of zeros",
        lambda: mdp(changed(KERNEL, (0, 1), 0)),
        INVALID,
        r"all zero.*\(s=0, a=1\)",
    )
    negative = changed(KERNEL, (0, 0), [-0.2, 1.2])
    yield (
        "negative probability",
        lambda: mdp(negative),
        INVALID,
        r"transitions.*negative.*-0\.2 at \(s=0, a=0, s'=0\)",
    )
    yield (
        "weights off",
        lambda: brmdp.ScenarioBelief([KERNEL] * 2, [0.5, 0.4]),
        INVALID,
        r"weights must sum.*0\.9",
    )
    yield (
        "weights negative",
        lambda: brmdp.ScenarioBelief([KERNEL] * 2, [1.5, -0.5]),
        INVALID,
        r"weights must not be negative; got -0\.5 at index 1",
    )
    yield (
        "weights shape",
        lambda: brmdp.ScenarioBelief([KERNEL] * 2, [1.0]),
        INVALID,
        r"weights.*\(2,\).*\(1,\)",
    )
    yield (
        "weights nan",
        lambda: brmdp.ScenarioBelief([KERNEL] * 2, [np.nan, 1.0]),
        INVALID,
        "weights.*nan",
    )
    for start in ([0.5, 0.4], [1.5, -0.5], [1.0], [[1.0, 0.0]], [np.nan, 1.0]):
        yield f"start {start}", lambda start=start: mdp(start=start), INVALID, "start must"

    # --- negative, all-zero, non-finite, oversized concentrations
    ones = np.ones((2, 2, 2))
    for bad in (-1.0, -1e-300):
        call = partial(brmdp.DirichletBelief, changed(ones, (1, 0, 1), bad))
        yield (
            f"concentration {bad}",
            call,
            INVALID,
            rf"concentration.*negative; got {bad} at \(s=1, a=0, s'=1\)",
        )
        call = partial(brmdp.dirichlet.quantile, [1.0, bad], [0, 1], 0.5)
        yield (
            f"function concentration {bad}",
            call,
            INVALID,
            rf"concentration.*negative; got {bad} at index \(1,\)",
        )
    for bad in (np.nan, np.inf, -np.inf):
        call = partial(brmdp.DirichletBelief, changed(ones, (1, 0, 1), bad))
        yield f"concentration {bad}", call, INVALID, rf"concentration must be finite; got {bad}"
        call = partial(brmdp.dirichlet.cdf, [1.0, bad], [0, 1], 0.5)
        yield (
            f"function concentration {bad}",
            call,
            INVALID,
            rf"concentration must be finite; got {bad}",
        )
        call = partial(brmdp.dirichlet.cdf, [1.0, 1.0], [0, bad], 0.5)
        yield (
            f"function values {bad}",
            call,
            INVALID,
            rf"values must be finite; got {bad} at index \(1,\)",
        )
        call = partial(brmdp.dirichlet.cdf, [1.0, 1.0], [0, 1], bad)
        yield f"function z {bad}", call, INVALID, rf"z must be finite; got {bad}"
    for bad in (0.0, -1.0, np.nan, np.inf, "1", None, 1j, [1.0]):
        call = partial(brmdp.DirichletBelief.uniform, 2, 2, bad)
        yield f"uniform concentration {bad!r}", call, INVALID, "concentration must be a positive"
        call = partial(brmdp.DirichletBelief.informative, KERNEL, bad)
        yield f"informative strength {bad!r}", call, INVALID, "strength must be a positive"
    zeros = changed(ones, (1, 1), 0.0)
    yield (
        "zero row",
        lambda: brmdp.DirichletBelief(zeros),
        INVALID,
        r"concentration.*all zero.*\(s=1, a=1\)",
    )
    yield (
        "all zeros",
        lambda: brmdp.DirichletBelief(0 * ones),
        INVALID,
        r"all zero.*\(s=0, a=0\)",
    )
    yield (
        "function zeros",
        lambda: brmdp.dirichlet.quantile([0.0, 0.0], [0, 1], 0.5),
        INVALID,
        "concentration.*zero",
    )
    for shape in ((2, 2), (2, 2, 3), (3, 2, 2), (0, 2, 0), (2, 0, 2), ()):
        call = partial(brmdp.DirichletBelief, np.ones(shape))
        yield (
            f"concentration of shape {shape}",
            call,
            INVALID,
            r"concentration must have shape \(S, A, S\)",
        )
    for bad in (0.0, -1.0, [1.0, 0.0], [1.0, -2.0], [1.0], [np.nan, 1.0], "1", None, [[1.0, 1.0]]):
        call = partial(brmdp.DisturbanceBelief, OUTCOMES, bad)
        yield f"disturbance concentration {bad!r}", call, INVALID, "concentration must"
    for bad in ("ab", None, [[1, 1], [1]], [1j, 1.0], [], 3.0):
        call = partial(brmdp.dirichlet.quantile, bad, [0, 1], 0.5)
        yield f"function concentration {bad!r}", call, INVALID, "concentration"
        call = partial(brmdp.dirichlet.quantile, [1, 1], bad, 0.5)
        yield f"function values {bad!r}", call, INVALID, "values"
        yield (
            f"belief from {bad!r}",
            lambda bad=bad: brmdp.DirichletBelief(bad),
            INVALID,
            "concentration",
        )
    call = partial(brmdp.dirichlet.quantile, [1, 1, 1], [0, 1], 0.5)
    yield "lengths differ", call, INVALID, "concentration and values.*3 and 2"
    call = partial(brmdp.dirichlet.quantile, np.ones((2, 2)), np.zeros((3, 2)), 0.5)
    yield "shapes do not broadcast", call, INVALID, r"\(2, 2\).*\(3, 2\)"
    call = partial(brmdp.dirichlet.quantile, [1e200, 1.0], [0, 1], 0.5)
    yield "concentration too large", call, INVALID, r"concentration.*1e\+200"
    call = partial(brmdp.dirichlet.quantile, [1.0, 1.0], [0, 1e200], 0.5)
    yield "values too large", call, INVALID, r"values.*1e\+200"
    call = partial(brmdp.DirichletBelief.uniform, 2, 2, 1e308)
    yield "belief concentration too large", call, INVALID, r"concentration.*1e\+308"
    for name in ("method", "Method"):
        yield (
            f"unknown {name}",
            lambda: brmdp.dirichlet.quantile([1], [1], 0.5, method="magic"),
            INVALID,
            "method.*magic",
        )
    call = partial(brmdp.dirichlet.quantile, [1], [1], 0.5, method=["exact"])
    yield "method of a wrong type", call, INVALID, "method"

    # --- discount outside [0, 1)
    for bad in (1.0, 1, -0.1, 1.5, np.nan, np.inf, -np.inf, "0.9", "x", None, 0.5j, [0.9], True):
        pattern = r"discount must (lie|be a number) in \[0, 1\); got"
        closed = r"discount must (lie|be a number) in \[0, 1\]; got"
        if bad is True or bad != 1:
            yield f"mdp discount {bad!r}", lambda bad=bad: mdp(discount=bad), INVALID, closed
        endless = closed if bad is True or bad != 1 else "discount must be below 1 here"
        yield f"plan discount {bad!r}", lambda bad=bad: plan(discount=bad), INVALID, endless
        call = partial(certify_nested, dirichlet(), REWARDS, bad)
        yield f"certify discount {bad!r}", call, INVALID, pattern
        call = partial(brmdp.posterior_quantile_value, dirichlet(), REWARDS, bad, [0, 0])
        yield f"quantile value discount {bad!r}", call, INVALID, pattern

    # --- states and actions out of range, wrong types
    for name, make in (
        ("dirichlet", dirichlet),
        ("disturbance", disturbance),
        ("scenario", scenario),
    ):
        for bad in (2, -1, 10**30, 0.0, "0", None, 1j, True, np.nan):
            for position, argument in enumerate(("state", "action", "next_state")):
                if bad is True and argument == "action":  # a boolean is one of two actions
                    continue

                def call(make=make, bad=bad, position=position):
                    item = [0, 0, 0]
                    item[position] = bad
                    make().observe(*item)

                yield f"{name} {argument} {bad!r}", call, INVALID, argument
        call = partial(make().observe, [0, 0], [0, 0, 0], [0, 0])
        yield f"{name} observations of different shapes", call, INVALID, "state|action|shape"
        call = partial(make().observe, [0, [0]], [0, 0], [0, 0])
        yield f"{name} ragged observations", call, INVALID, "state"
    yield "start out of range", lambda: mdp(start=2), INVALID, r"start must lie in 0\.\.1; got 2"
    yield "start negative", lambda: mdp(start=-1), INVALID, "start.*-1"
    for bad in ("0", None, 0.0, True):
        yield f"start {bad!r}", lambda bad=bad: mdp(start=bad), INVALID, f"start.*{bad!r}"
    for bad in (2, -2):
        call = partial(brmdp.DisturbanceBelief, np.where(OUTCOMES == 1, bad, OUTCOMES))
        yield f"outcome {bad}", call, INVALID, rf"outcomes.*got {bad} at \(s=0, a=0, d=1\)"
    partly = OUTCOMES.copy()
    partly[0, 1, 0] = -1
    yield (
        "outcome partly -1",
        lambda: brmdp.DisturbanceBelief(partly),
        INVALID,
        r"got -1 at \(s=0, a=1, d=0\)",
    )
    for bad in (OUTCOMES.astype(float), OUTCOMES[0], "x", None, OUTCOMES > 0, [[[0], [0, 1]]]):
        call = partial(brmdp.DisturbanceBelief, bad)
        yield (
            f"outcomes {type(bad).__name__} "
            f"{np.ndim(bad) if not isinstance(bad, list) else 'ragged'}",
            call,
            INVALID,
            ("outcomes must be integers"),
        )
    call = partial(brmdp.DisturbanceBelief.from_function, lambda s, a, d: 5, 2, 2, 2)
    yield "function out of range", call, INVALID, r"transition\(0, 0, 0\).*5"
    call = partial(brmdp.DisturbanceBelief.from_function, lambda s, a, d: 0.5, 2, 2, 2)
    yield "function not an integer", call, INVALID, r"transition\(0, 0, 0\).*0\.5"
    call = partial(brmdp.DisturbanceBelief.from_function, "f", 2, 2, 2)
    yield "not a function", call, INVALID, "transition.*(str|'f')"
    call = partial(
        brmdp.DisturbanceBelief.from_function, lambda s, a, d: 0, 2, 2, 2, admissible=[True]
    )
    yield "function admissible", call, INVALID, "admissible"
    for bad in (2, -1, "x", 0.5, None, [0, [1]]):
        yield (
            f"observed disturbance {bad!r}",
            lambda bad=bad: disturbance().observe_disturbance(bad),
            INVALID,
            "disturb",
        )
    for bad in (0, -1, 1.5, "2", None, True):
        for k, name in enumerate(("n_states", "n_actions")):

            def call(bad=bad, k=k):
                sizes = [2, 2]
                sizes[k] = bad
                brmdp.DirichletBelief.uniform(*sizes)

            yield (
                f"{name} {bad!r}",
                call,
                INVALID,
                rf"{name} must be a positive integer; got {bad!r}",
            )
        yield (
            f"samples {bad!r}",
            lambda bad=bad: dirichlet().sample(bad),
            INVALID,
            "n must be a positive integer",
        )
        yield f"riverswim {bad!r}", lambda bad=bad: brmdp.envs.riverswim(bad), INVALID, "n must be"
    for bad in (-0.1, 1.1, np.nan, "x", [0.5]):
        call = partial(brmdp.envs.frozenlake, bad)
        yield f"shortcut_risk {bad!r}", call, INVALID, "shortcut_risk"

    # --- inadmissible actions
    yield (
        "inadmissible observed",
        lambda: dirichlet().observe(1, 1, 0),
        INVALID,
        "action 1 is not admissible in state 1",
    )
    call = partial(dirichlet().observe, [0, 1], [0, 1], [0, 0])
    yield "inadmissible in a batch", call, INVALID, "action 1 is not admissible in state 1"
    yield (
        "inadmissible noise",
        lambda: disturbance().observe(1, 1, 0),
        INVALID,
        "action 1 is not admissible in state 1",
    )
    pattern = "policy takes action 1 in state 1, which is not admissible"
    yield "inadmissible policy", lambda: evaluated([0, 1]), INVALID, pattern
    yield (
        "inadmissible policy in an MDP",
        lambda: brmdp.evaluate_in_mdp(mdp(admissible=ADMISSIBLE), [0, 1]),
        INVALID,
        pattern,
    )
    call = partial(brmdp.posterior_quantile_value, dirichlet(), REWARDS, 0.9, [0, 1])
    yield "inadmissible policy sampled", call, INVALID, pattern
    for bad in (
        np.ones((2, 3), dtype=bool),
        np.ones((2, 2)),
        [True, True],
        "yes",
        [[True], [True, False]],
    ):
        yield (
            f"admissible {np.shape(bad) if not isinstance(bad, list) else bad}",
            lambda bad=bad: mdp(admissible=bad),
            (INVALID),
            "admissible must be booleans",
        )
    none = np.array([[True, True], [False, False]])
    yield (
        "no admissible action",
        lambda: mdp(admissible=none),
        INVALID,
        "state 1 has no admissible action",
    )
    different = [mdp(), mdp(admissible=ADMISSIBLE)]
    call = partial(brmdp.ScenarioBelief, different, [0.5, 0.5])
    yield "scenarios with different actions", call, INVALID, "admissible"

    # --- rewards not finite, of wrong shape or type
    for bad in (np.nan, np.inf, -np.inf):
        spoilt = changed(REWARDS, (1, 0, 1), bad)
        pattern = rf"rewards must be finite; got {bad}"
        yield f"mdp reward {bad}", lambda spoilt=spoilt: mdp(rewards=spoilt), INVALID, pattern
        yield (
            f"plan reward {bad}",
            lambda spoilt=spoilt: plan(rewards=spoilt),
            INVALID,
            pattern + r" at index \(1, 0, 1\)",
        )
        call = partial(plan, rewards=sparse.csr_array(spoilt.reshape(4, 2)))
        yield f"sparse reward {bad}", call, INVALID, pattern
        call = partial(certify_nested, dirichlet(), spoilt, 0.9)
        yield f"certify reward {bad}", call, INVALID, pattern
        call = partial(mdp, changed(KERNEL, (0, 0, 0), bad))
        yield f"transition {bad}", call, INVALID, rf"transitions must be finite; got {bad}"
    for shape in ((2,), (2, 3), (2, 2, 3), (4, 2), (2, 2, 2, 1), (), (0,)):
        call = partial(plan, rewards=np.zeros(shape))
        yield f"rewards of shape {shape}", call, INVALID, "rewards must have shape"
    call = partial(plan, rewards=sparse.csr_array((3, 2)))
    yield "sparse rewards shape", call, INVALID, r"rewards must have shape.*sparse \(3, 2\)"
    for bad in ("rewards", None, REWARDS * 1j, [[0, 1], [2]], object()):
        yield (
            f"rewards {type(bad).__name__}",
            lambda bad=bad: plan(rewards=bad),
            INVALID,
            "rewards must",
        )
        yield (
            f"mdp rewards {type(bad).__name__}",
            lambda bad=bad: mdp(rewards=bad),
            INVALID,
            "rewards must",
        )
    yield "rewards too large", lambda: plan(rewards=REWARDS * 1e300), INVALID, r"rewards.*e\+30"
    call = partial(brmdp.solve, mdp(rewards=REWARDS * 1e300))
    yield "mdp rewards too large", call, INVALID, r"rewards.*e\+30"
    call = partial(plan, dirichlet(), rewards=brmdp.DisturbanceRewards(REWARDS))
    yield "rewards of another belief", call, INVALID, "rewards must"
    call = partial(plan, disturbance(), rewards=brmdp.DisturbanceRewards(REWARDS[0]))
    yield "disturbance rewards shape", call, INVALID, "rewards must have shape"
    for bad in ("kernel", None, KERNEL * 1j, KERNEL[0], np.zeros((0, 1, 0)), [[1.0], [1.0, 2.0]]):
        yield (
            f"transitions {type(bad).__name__} "
            f"{np.shape(bad) if not isinstance(bad, list) else bad}",
            (lambda bad=bad: mdp(transitions=bad)),
            INVALID,
            "transitions must",
        )
    call = partial(mdp, transitions=sparse.csr_array((5, 2)))
    yield "sparse transitions shape", call, INVALID, r"transitions must be a sparse.*\(5, 2\)"
    yield (
        "state names",
        lambda: mdp(state_names=["a"]),
        INVALID,
        "state_names must hold 2 names; got 1",
    )
    yield (
        "action names",
        lambda: mdp(action_names=list("abc")),
        INVALID,
        "action_names must hold 2 names; got 3",
    )
    yield "names of a wrong type", lambda: mdp(action_names=5), INVALID, "action_names.*5"

    # --- impossible transitions observed
    pattern = r"state=0, action=1, next_state=1\)? is impossible|state=0, action=1, next_state=1"
    yield "impossible", lambda: dirichlet().observe(0, 1, 1), IMPOSSIBLE, pattern
    yield (
        "impossible in a batch",
        lambda: dirichlet().observe([0, 0], [0, 1], [1, 1]),
        IMPOSSIBLE,
        pattern,
    )
    yield "impossible scenario", lambda: scenario().observe(0, 1, 1), IMPOSSIBLE, pattern
    call = partial(disturbance().observe, 0, 1, 0)
    yield "impossible noise", call, IMPOSSIBLE, "state=0, action=1, next_state=0"
    call = partial(disturbance().observe, 0, 0, 1, disturbance=0)
    yield "impossible with this noise", call, IMPOSSIBLE, "disturbance 0.*next_state=1"
    call = partial(disturbance().observe, 0, 1, 1)
    yield "ambiguous noise", call, INVALID, r"\[0, 1\]; pass disturbance="

    # --- budgets of zero
    for bad in (0, 0.0, -1.0, np.nan, np.inf, "250", None):
        call = partial(brmdp.MonteCarlo, coefficient=bad)
        yield f"coefficient {bad!r}", call, INVALID, rf"coefficient must be a positive.*got {bad!r}"
    for bad in (0, -5, 1.5, "10", True):
        call = partial(brmdp.MonteCarlo, cap=bad)
        yield f"cap {bad!r}", call, INVALID, rf"cap must be a positive integer; got {bad!r}"
        call = partial(brmdp.MonteCarlo, samples=bad)
        yield f"budget {bad!r}", call, INVALID, rf"samples must be a positive integer; got {bad!r}"
        call = partial(
            brmdp.posterior_quantile_value, dirichlet(), REWARDS, 0.9, [0, 0], samples=bad
        )
        yield (
            f"posterior samples {bad!r}",
            call,
            INVALID,
            rf"samples must be a positive integer; got {bad!r}",
        )
        if bad != 0:  # zero switches the check off
            call = partial(certify_nested, dirichlet(), REWARDS, 0.9, coverage_samples=bad)
            yield (
                f"coverage samples {bad!r}",
                call,
                INVALID,
                rf"coverage_samples must be .*got {bad!r}",
            )
        call = partial(plan, max_iterations=bad)
        yield (
            f"max_iterations {bad!r}",
            call,
            INVALID,
            rf"max_iterations must be a positive integer; got {bad!r}",
        )
        call = partial(brmdp.solve, mdp(), max_iterations=bad)
        yield (
            f"solve max_iterations {bad!r}",
            call,
            INVALID,
            rf"max_iterations must be a positive integer; got {bad!r}",
        )
        yield (
            f"certified states {bad!r}",
            lambda bad=bad: brmdp.certified_level(0.1, bad),
            INVALID,
            "n_states must",
        )

    # --- tolerances, methods, measures, warm starts
    pattern = "tolerance must be a positive"
    yield (
        "evaluate tolerance None",
        lambda: brmdp.evaluate_in_mdp(mdp(), [0, 0], tolerance=None),
        INVALID,
        pattern,
    )
    for bad in (0, 0.0, -1e-8, np.nan, np.inf, "1e-8", 1j, [1e-8]):
        yield f"tolerance {bad!r}", lambda bad=bad: plan(tolerance=bad), INVALID, pattern
        yield (
            f"solve tolerance {bad!r}",
            lambda bad=bad: brmdp.solve(mdp(), tolerance=bad),
            INVALID,
            pattern,
        )
        call = partial(brmdp.evaluate_in_mdp, mdp(), [0, 0], tolerance=bad)
        yield f"evaluate tolerance {bad!r}", call, INVALID, pattern
        yield (
            f"evaluation tolerance {bad!r}",
            lambda bad=bad: evaluated([0, 0], tolerance=bad),
            INVALID,
            pattern,
        )
        call = partial(certify_nested, dirichlet(), REWARDS, 0.9, tolerance=bad)
        yield f"certify tolerance {bad!r}", call, INVALID, pattern
    for bad in ("Newton", "", None, 3, ["newton"]):
        yield (
            f"solver {bad!r}",
            lambda bad=bad: plan(method=bad),
            INVALID,
            "method must be one of.*got",
        )
        yield (
            f"solve with {bad!r}",
            lambda bad=bad: brmdp.solve(mdp(), method=bad),
            INVALID,
            "method must be one of",
        )
        yield (
            f"quantile method {bad!r}",
            lambda bad=bad: brmdp.Quantile(0.5, bad),
            INVALID,
            "method must be 'exact'",
        )
    yield "method class", lambda: brmdp.Quantile(0.5, brmdp.MonteCarlo), INVALID, "method must be"
    call = partial(plan, scenario(), risk=brmdp.Quantile(0.5, "saddlepoint"))
    yield "saddlepoint of scenarios", call, INVALID, "saddlepoint"
    call = partial(plan, scenario(), risk=brmdp.Quantile(0.5, brmdp.MonteCarlo(reuse=True, rng=0)))
    yield (
        "reuse of scenarios",
        call,
        INVALID,
        "reuse=True needs a DirichletBelief; got ScenarioBelief",
    )
    for bad in ("quantile", 0.5, object(), brmdp.Mean, brmdp.Quantile):
        name = getattr(bad, "__name__", type(bad).__name__)
        yield f"risk {name}", lambda bad=bad: plan(risk=bad), INVALID, "risk must be"
        call = partial(brmdp.evaluate_under_belief, dirichlet(), REWARDS, 0.9, [0, 0], risk=bad)
        yield f"evaluation risk {name}", call, INVALID, "risk must be"
        call = partial(brmdp.backup, dirichlet(), REWARDS, 0.9, [0.0, 0.0], risk=bad)
        yield f"backup risk {name}", call, INVALID, "risk must be"
    for bad in (
        [0.0],
        [np.nan, 0.0],
        [np.inf, 0.0],
        "zero",
        [[0.0, 0.0]],
        0.0,
        [0.0, 1e300],
        [1j, 0],
    ):
        yield f"initial {bad!r}", lambda bad=bad: plan(initial=bad), INVALID, "initial must"
        call = partial(brmdp.backup, dirichlet(), REWARDS, 0.9, bad, risk=brmdp.Mean())
        yield f"backup values {bad!r}", call, INVALID, "values must"
    for bad in ("seed", -1, 1.5, [0.5]):
        yield f"rng {bad!r}", lambda bad=bad: dirichlet().sample(1, rng=bad), INVALID, "rng must be"
        yield (
            f"draw rng {bad!r}",
            lambda bad=bad: brmdp.PosteriorSample(rng=bad),
            INVALID,
            "rng must be",
        )
        yield (
            f"Monte Carlo rng {bad!r}",
            lambda bad=bad: brmdp.MonteCarlo(rng=bad),
            INVALID,
            "rng must be",
        )

    # --- policies
    for bad in ([0], [0, 0, 0], [[0, 0]], 0, [], None, "01"):
        pattern = r"policy must hold one action per state, shape \(2,\)"
        yield f"policy {bad!r}", lambda bad=bad: evaluated(bad), INVALID, pattern
        yield (
            f"mdp policy {bad!r}",
            lambda bad=bad: brmdp.evaluate_in_mdp(mdp(), bad),
            INVALID,
            pattern,
        )
        call = partial(brmdp.posterior_quantile_value, dirichlet(), REWARDS, 0.9, bad)
        yield f"sampled policy {bad!r}", call, INVALID, pattern
    for bad in (
        [0, 2],
        [0, -1],
        [0.0, 0.0],
        [True, False],
        ["a", "b"],
        [0, None],
        [0j, 0],
        [0, [0]],
    ):
        yield f"policy {bad!r}", lambda bad=bad: evaluated(bad), INVALID, "policy"
        yield (
            f"mdp policy {bad!r}",
            lambda bad=bad: brmdp.evaluate_in_mdp(mdp(), bad),
            INVALID,
            "policy",
        )

    # --- beliefs
    for bad in (None, KERNEL, "belief", 3, brmdp.Mean()):
        name = type(bad).__name__
        pattern = f"belief must be.*{name}"
        options = {"risk": brmdp.Mean()}
        call = partial(brmdp.plan, bad, REWARDS, 0.9, **options)
        yield f"plan from {name}", call, INVALID, pattern
        call = partial(brmdp.evaluate_under_belief, bad, REWARDS, 0.9, [0, 0], **options)
        yield f"evaluate_under_belief from {name}", call, INVALID, pattern
        yield (
            f"certify {name}",
            lambda bad=bad: certify_nested(bad, REWARDS, 0.9),
            INVALID,
            pattern,
        )
        call = partial(brmdp.posterior_quantile_value, bad, REWARDS, 0.9, [0, 0])
        yield f"posterior_quantile_value of {name}", call, INVALID, pattern
        call = partial(brmdp.backup, bad, REWARDS, 0.9, [0.0, 0.0], **options)
        yield f"backup of {name}", call, INVALID, pattern
        yield (
            f"solve {name}",
            lambda bad=bad: brmdp.solve(bad),
            INVALID,
            f"mdp must be a brmdp.TabularMDP; got {name}",
        )
        yield (
            f"evaluate {name}",
            lambda bad=bad: brmdp.evaluate_in_mdp(bad, [0, 0]),
            INVALID,
            "mdp must be a brmdp.TabularMDP",
        )
    yield (
        "solve a belief",
        lambda: brmdp.solve(dirichlet()),
        INVALID,
        "mdp must be.*DirichletBelief",
    )
    for bad in (
        [],
        "abc",
        None,
        3,
        np.array(3.0),
        KERNEL,
        [KERNEL, KERNEL[:1]],
        [None],
        {0: KERNEL},
    ):
        call = partial(brmdp.ScenarioBelief, bad, [1.0])
        yield (
            f"kernels {type(bad).__name__} {np.size(bad) if isinstance(bad, np.ndarray) else ''}",
            call,
            INVALID,
            "kernels",
        )
    larger = np.full((3, 2, 3), 1 / 3)
    call = partial(brmdp.ScenarioBelief, [KERNEL, larger], [0.5, 0.5])
    yield "kernels of different sizes", call, INVALID, r"kernels.*same states.*\(2, 2\).*\(3, 2\)"
    yield (
        "possible of another size",
        lambda: brmdp.DirichletBelief.uniform(3, 2, possible=KERNEL),
        INVALID,
        "possible must describe 3 states and 2 actions; got 2 and 2",
    )
    for bad in ("DENSE", None, 3, ["dense"]):
        pattern = "format must be"
        yield f"kernel format {bad!r}", lambda bad=bad: mdp().kernel(bad), INVALID, pattern
        yield f"mean format {bad!r}", lambda bad=bad: dirichlet().mean(bad), INVALID, pattern
        yield (
            f"sample format {bad!r}",
            lambda bad=bad: dirichlet().sample(2, rng=0, format=bad),
            INVALID,
            pattern,
        )
        yield f"solution format {bad!r}", lambda bad=bad: plan().kernel(bad), INVALID, pattern
    yield (
        "csr of many kernels",
        lambda: dirichlet().sample(2, rng=0, format="csr"),
        INVALID,
        "format must be",
    )


def parameters():
    return [pytest.param(call, error, message, id=name) for name, call, error, message in cases()]


@pytest.mark.parametrize(("call", "error", "message"), parameters())
def test_bad_input_is_a_typed_error_that_names_the_culprit(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, brmdp.BrmdpError)
    assert isinstance(caught.value, ValueError)


def test_impossible_transitions_and_bad_input_are_told_apart():
    assert issubclass(brmdp.ImpossibleTransitionError, brmdp.InvalidInputError)
    with pytest.raises(brmdp.InvalidInputError) as caught:
        dirichlet().observe(1, 1, 0)
    assert not isinstance(caught.value, brmdp.ImpossibleTransitionError)


# --- non-convergence ------------------------------------------------------------------------------


def problem():
    mdp = brmdp.envs.riverswim(6)
    belief = brmdp.DirichletBelief.uniform(6, 2)
    return belief, mdp


def calls():
    belief, world = problem()
    for method in ("newton", "value-iteration"):
        yield (
            f"plan {method}",
            lambda method=method, **options: brmdp.plan(
                belief, world.rewards, 0.9, risk=brmdp.Quantile(0.3), method=method, **options
            ),
        )
        yield (
            f"mean {method}",
            lambda method=method, **options: brmdp.plan(
                belief, world.rewards, 0.9, risk=brmdp.Mean(), method=method, **options
            ),
        )
        yield (
            f"evaluate_under_belief {method}",
            lambda method=method, **options: brmdp.evaluate_under_belief(
                belief,
                world.rewards,
                0.9,
                [0, 1, 0, 1, 0, 1],
                risk=brmdp.CVaR(0.3),
                method=method,
                **options,
            ),
        )
        yield (
            f"solve {method}",
            lambda method=method, **options: brmdp.solve(world, method=method, **options),
        )


@pytest.mark.long
@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in calls()])
def test_too_few_iterations_raise_and_carry_the_last_iterate(call):
    with pytest.raises(
        brmdp.ConvergenceError, match=r"error bound .* after .*raise max_iterations=1\b"
    ) as caught:
        call(max_iterations=1)
    assert isinstance(caught.value, RuntimeError)
    truth = call(tolerance=1e-9)
    for solution in (caught.value.solution, call(max_iterations=1, raise_on_failure=False)):
        assert isinstance(solution, brmdp.Solution)
        assert solution.status == "not converged"
        assert np.isfinite(solution.values).all()
        assert solution.error_bound > solution.tolerance >= 0.999e-8 * np.abs(solution.values).max()
        # even then the certificate is true
        assert (
            np.abs(solution.values - truth.values).max() <= solution.error_bound + truth.error_bound
        )
        assert solution.iterations >= 1


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in calls()])
@pytest.mark.parametrize("limit", [2, 3, 5])
def test_the_limit_on_iterations_is_kept(call, limit):
    solution = call(max_iterations=limit, tolerance=1e-13, raise_on_failure=False)
    assert solution.iterations <= limit
    assert solution.status in ("converged", "not converged")
    assert (solution.status == "converged") == (solution.error_bound <= 1e-13)


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in calls()])
def test_a_tolerance_beyond_arithmetic_raises_with_the_remedy(call):
    with pytest.raises(brmdp.ConvergenceError, match=r"loosen tolerance") as caught:
        call(tolerance=1e-30)
    solution = caught.value.solution
    assert solution.status == "not converged"
    assert solution.error_bound < 1e-9


def test_certify_passes_non_convergence_on():
    belief, world = problem()
    with pytest.raises(brmdp.ConvergenceError, match="loosen tolerance"):
        certify_nested(belief, world.rewards, 0.9, tolerance=1e-30)


# --- damaged files (test_storage.py has many more) ------------------------------------------------


@pytest.mark.parametrize("make", [dirichlet, disturbance, scenario])
@pytest.mark.parametrize("damage", ["truncated", "altered", "empty", "foreign"])
def test_damaged_files_are_named(tmp_path, make, damage):
    path = tmp_path / "belief.npz"
    belief = make()
    belief.save(path)
    whole = path.read_bytes()
    altered = bytearray(whole)
    altered[whole.index(b"counts" if b"counts" in whole else b"weights") + 150] ^= 0x10
    content = {
        "truncated": whole[: len(whole) // 2],
        "altered": bytes(altered),
        "empty": b"",
        "foreign": b"hello",
    }
    path.write_bytes(content[damage])
    with pytest.raises(brmdp.CorruptFileError, match=r"belief\.npz"):
        type(belief).load(path)


# --- sparse matrices whose arrays do not fit their shape: refused before compiled code reads them -


def good_matrix(form="csr"):
    """A kernel of three states and one action in which no block is empty."""
    kernel = np.array([[0.25, 0.75, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]])
    return getattr(sparse, f"{form}_array")(kernel)


def with_arrays(form="csr", **changes):
    """The same matrix with some of its arrays replaced, as SciPy allows."""
    matrix = good_matrix(form)
    for name, change in changes.items():
        setattr(matrix, name, change(np.array(getattr(matrix, name))))
    return matrix


def put(position, value):
    def change(array):
        array = array.copy()
        array[position] = value
        return array

    return change


def from_one():
    """A matrix from a program that counts from 1; SciPy's constructor accepts it."""
    good = good_matrix()
    return sparse.csr_array((good.data, good.indices + 1, good.indptr), shape=good.shape)


def lists_with(row, columns, entries):
    matrix = good_matrix("lil")
    matrix.rows[row] = columns
    matrix.data[row] = entries
    return matrix


def dictionary_with(key):
    matrix = good_matrix("dok")
    matrix._dict[key] = 1.0
    return matrix


BROKEN_SPARSE = {
    "csr from one": (
        from_one,
        r"indices must lie in 0\.\.2; got 3 at position \d; indices are counted from 0",
    ),
    "csr huge index": (
        lambda: with_arrays(indices=put(0, 10**9)),
        r"indices must lie in 0\.\.2; got 1000000000",
    ),
    "csr huge index int64": (
        lambda: with_arrays(indices=lambda a: put(0, 2**40)(a.astype(np.int64))),
        r"indices must lie in 0\.\.2; got 1099511627776 at position 0",
    ),
    "csr unsigned index": (
        lambda: with_arrays(indices=lambda a: a.astype(np.uint64) + 2**63),
        "indices must lie in",
    ),
    "csr negative index": (
        lambda: with_arrays(indices=put(2, -1)),
        r"indices must lie in 0\.\.2; got -1 at position 2",
    ),
    "csr fractional index": (
        lambda: with_arrays(indices=lambda a: a + 0.5),
        "indices must be integers; got dtype",
    ),
    "csr fewer indices": (
        lambda: with_arrays(indices=lambda a: a[:-1]),
        r"indices must be 6 integers; got shape \(5,\)",
    ),
    "csr more indices": (
        lambda: with_arrays(indices=lambda a: np.append(a, 0)),
        "indices must be 6 integers",
    ),
    "csr flat index table": (
        lambda: with_arrays(indices=lambda a: a.reshape(2, 3)),
        "indices must be 6 integers",
    ),
    "csr fewer data": (lambda: with_arrays(data=lambda a: a[:-1]), "indices must be 5 integers"),
    "csr more data": (
        lambda: with_arrays(data=lambda a: np.append(a, 1.0)),
        "indices must be 7 integers",
    ),
    "csr data in a table": (
        lambda: with_arrays(data=lambda a: a.reshape(2, 3)),
        "data must have one axis",
    ),
    "csr masked data": (lambda: masked_data(), "kernel must be.*without masked"),
    "csr pointer beyond": (
        lambda: with_arrays(indptr=put(-1, 10**6)),
        "indptr must rise from 0 to 6",
    ),
    "csr pointer below": (
        lambda: with_arrays(indptr=put(-1, 5)),
        "indptr must rise from 0 to 6.*got 0 to 5",
    ),
    "csr pointer start": (
        lambda: with_arrays(indptr=put(0, 1)),
        "indptr must rise from 0 to 6.*got 1 to 6",
    ),
    "csr pointer falls": (
        lambda: with_arrays(indptr=put(1, 10**8)),
        "indptr must rise from 0 to 6.*decreasing",
    ),
    "csr pointer negative": (
        lambda: with_arrays(indptr=put(1, -5)),
        "indptr must rise from 0 to 6.*decreasing",
    ),
    "csr pointer wrapped": (
        lambda: with_arrays(indptr=put(2, -(2**31))),
        "indptr must rise.*decreasing",
    ),
    "csr pointers too few": (
        lambda: with_arrays(indptr=lambda a: a[:-1]),
        "indptr must be 4 integers",
    ),
    "csr pointers too many": (
        lambda: with_arrays(indptr=lambda a: np.append(a, 6)),
        "indptr must be 4 integers",
    ),
    "csr no pointers": (lambda: with_arrays(indptr=lambda a: a[:0]), "indptr must be 4 integers"),
    "csr fractional pointers": (
        lambda: with_arrays(indptr=lambda a: a * 1.0),
        "indptr must be integers; got dtype",
    ),
    "csc huge index": (
        lambda: with_arrays("csc", indices=put(0, 10**9)),
        r"indices must lie in 0\.\.2",
    ),
    "csc pointer falls": (lambda: with_arrays("csc", indptr=put(1, 10**8)), "indptr must rise"),
    "bsr huge index": (
        lambda: with_arrays("bsr", indices=put(0, 10**9)),
        r"indices must lie in 0\.\.\d",
    ),
    "bsr pointer beyond": (lambda: with_arrays("bsr", indptr=put(-1, 10**6)), "indptr must rise"),
    "bsr blocks too large": (
        lambda: with_arrays("bsr", data=lambda a: np.ones((len(a), 2, 2))),
        "whole blocks",
    ),
    "bsr without height": (
        lambda: with_arrays("bsr", data=lambda a: np.ones((len(a), 0, 1))),
        "data must have one axis",
    ),
    "coo huge row": (
        lambda: with_arrays("coo", row=put(0, 10**9)),
        r"row must lie in 0\.\.2; got 1000000000",
    ),
    "coo huge column": (
        lambda: with_arrays("coo", col=put(0, 10**9)),
        r"col must lie in 0\.\.2; got 1000000000",
    ),
    "coo negative": (
        lambda: with_arrays("coo", col=put(3, -1)),
        r"col must lie in 0\.\.2; got -1 at position 3",
    ),
    "coo fewer": (lambda: with_arrays("coo", row=lambda a: a[:-1]), "row must be 6 integers"),
    "coo fewer data": (lambda: with_arrays("coo", data=lambda a: a[:-1]), "row must be 5 integers"),
    "lil huge column": (
        lambda: lists_with(1, [10**9], [1.0]),
        r"col must lie in 0\.\.2; got 1000000000",
    ),
    "lil negative column": (lambda: lists_with(1, [-2], [1.0]), r"col must lie in 0\.\.2; got -2"),
    "lil lengths": (lambda: lists_with(1, [0, 1], [1.0]), "a column for every entry"),
    "lil column of another kind": (lambda: lists_with(1, ["x"], [1.0]), "col must be integers"),
    "dok huge column": (lambda: dictionary_with((0, 10**9)), r"col must lie in 0\.\.2"),
    "dok negative row": (lambda: dictionary_with((-4, 0)), r"row must lie in 0\.\.2"),
    "dia offset": (
        lambda: with_arrays("dia", offsets=put(0, -(2**31))),
        r"offsets must lie in -2\.\.2",
    ),
    "dia fewer offsets": (
        lambda: with_arrays("dia", offsets=lambda a: a[:-1]),
        r"offsets must be \d integers",
    ),
}


def masked_data():
    matrix = good_matrix()
    matrix.data = np.ma.array(matrix.data, mask=[0, 0, 1, 0, 0, 0])
    return matrix


BEYOND_KERNELS = {
    "transitions": lambda bad: brmdp.TabularMDP(bad, np.zeros((3, 1)), 0.9),
    "concentration": lambda bad: brmdp.DirichletBelief(bad),
    "possible": lambda bad: brmdp.DirichletBelief.uniform(3, 1, possible=bad),
    "kernel": lambda bad: brmdp.DirichletBelief.informative(bad, 5.0),
    r"kernels\[1\]": lambda bad: brmdp.ScenarioBelief([good_matrix(), bad], [0.5, 0.5]),
    "rewards": lambda bad: brmdp.TabularMDP(good_matrix(), bad, 0.9),
}


@pytest.mark.parametrize("role", [*BEYOND_KERNELS, "planned rewards"])
@pytest.mark.parametrize("case", BROKEN_SPARSE)
def test_sparse_arrays_that_do_not_fit_are_refused_by_name(case, role):
    make, message = BROKEN_SPARSE[case]
    name = role.removeprefix("planned ")
    belief = brmdp.DirichletBelief.uniform(3, 1)
    call = BEYOND_KERNELS.get(role, lambda bad: brmdp.plan(belief, bad, 0.9, risk=brmdp.Mean()))
    with pytest.raises(brmdp.InvalidInputError, match=message.replace("kernel", name)) as caught:
        call(make())
    assert str(caught.value).startswith(name.replace("\\", ""))


@pytest.mark.parametrize("role", BEYOND_KERNELS)
@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
def test_sparse_arrays_that_fit_are_taken(form, role):
    assert BEYOND_KERNELS[role](good_matrix(form)).pattern.n_transitions == 6
    wide = good_matrix(form)
    for name in ("indices", "indptr"):
        if hasattr(wide, name):
            setattr(wide, name, getattr(wide, name).astype(np.uint64))
    assert BEYOND_KERNELS[role](wide).pattern.n_transitions == 6


def test_columns_out_of_order_are_put_in_order_even_if_the_matrix_says_they_are():
    matrix = good_matrix()
    assert matrix.has_sorted_indices
    matrix.indices[:2] = [1, 0]
    matrix.data[:2] = [0.75, 0.25]
    mdp = brmdp.TabularMDP(matrix, matrix, 0.9)
    np.testing.assert_array_equal(mdp.kernel()[:, 0], good_matrix().toarray())
    np.testing.assert_array_equal(mdp.transition_rewards, good_matrix().data)


def test_sparse_sums_are_taken_in_double_precision():
    doubled = sparse.csr_array(
        (np.full(4, 100, dtype=np.int8), [0, 0, 1, 1], [0, 2, 4]), shape=(2, 2)
    )
    mdp = brmdp.TabularMDP(np.eye(2)[:, None], doubled, 0.9)
    np.testing.assert_array_equal(mdp.transition_rewards, [200.0, 200.0])
    huge = sparse.csr_array((np.full(4, 1e308), [0, 0, 1, 1], [0, 2, 4]), shape=(2, 2))
    with pytest.raises(brmdp.InvalidInputError, match="rewards must be finite"):
        brmdp.TabularMDP(np.eye(2)[:, None], huge, 0.9)


# --- masked arrays --------------------------------------------------------------------------------


def masked(array, index):
    result = np.ma.array(array)
    result[index] = np.ma.masked
    return result


MASKED = {
    "transitions": lambda: mdp(masked(KERNEL, (0, 0, 0))),
    "rewards": lambda: mdp(rewards=masked(REWARDS, (0, 0, 1))),
    "start": lambda: mdp(start=masked([0.5, 0.5], 0)),
    "admissible": lambda: mdp(admissible=masked(ADMISSIBLE, (0, 0))),
    "concentration": lambda: brmdp.DirichletBelief(masked(np.ones((2, 2, 2)), (0, 0, 0))),
    "possible": lambda: brmdp.DirichletBelief.uniform(
        2, 2, possible=masked(np.ones((2, 2, 2)), (0, 0, 0))
    ),
    "kernel": lambda: brmdp.DirichletBelief.informative(masked(KERNEL, (0, 0, 0)), 5.0),
    "outcomes": lambda: brmdp.DisturbanceBelief(masked(OUTCOMES, (0, 0, 0))),
    "disturbance": lambda: disturbance().observe_disturbance(masked([0, 1], 0)),
    r"kernels\[1\]": lambda: brmdp.ScenarioBelief(
        np.ma.stack([KERNEL, masked(KERNEL, (0, 0, 0))]), [0.5, 0.5]
    ),
    "weights": lambda: brmdp.ScenarioBelief([KERNEL, KERNEL], masked([0.5, 0.5], 0)),
    "alpha": lambda: brmdp.Quantile(masked(np.full((2, 2), 0.5), (0, 0))),
    "policy": lambda: evaluated(masked([0, 0], 1)),
    "discount": lambda: plan(discount=np.ma.masked),
    "demand": lambda: brmdp.envs.inventory(demand=masked([0.5, 0.5], 0)),
    "state": lambda: dirichlet().observe(masked([0, 0], 1), [0, 0], [0, 0]),
    "action": lambda: dirichlet().observe(0, masked(np.array(0), ()), 0),
    "next_state": lambda: scenario().observe(0, 0, masked([0, 0], 1)),
}


@pytest.mark.parametrize("name", MASKED)
def test_masked_entries_are_refused_by_name(name):
    with pytest.raises(brmdp.InvalidInputError, match=rf"^{name} must (be|hold|lie)"):
        MASKED[name]()


def test_masks_inside_lists_are_seen_too():
    with pytest.raises(brmdp.InvalidInputError, match=r"rewards must be.*without masked entries"):
        plan(rewards=[masked(REWARDS[0], (0, 1)), REWARDS[1]])


def test_masked_arrays_that_hide_nothing_are_plain_arrays():
    plain, dressed = mdp(), mdp(np.ma.array(KERNEL), np.ma.array(REWARDS))
    np.testing.assert_array_equal(plain.probabilities, dressed.probabilities)
    assert type(dressed.rewards) is np.ndarray


def test_more_than_memory_holds_is_refused_before_it_is_made():
    with pytest.raises(
        brmdp.InvalidInputError,
        match=r"possible must be given for 30,000 states .* 1,800,000,000 of them",
    ):
        brmdp.DirichletBelief.uniform(30_000, 2)
    belief = brmdp.DirichletBelief.uniform(3, 2)
    with pytest.raises(
        brmdp.InvalidInputError,
        match=r"samples × states must be at most 250,000,000; got 1,000,000,000,000",
    ):
        brmdp.posterior_quantile_value(belief, np.zeros((3, 2)), 0.9, [0, 0, 0], samples=10**12)


def test_what_numpy_cannot_read_is_told_in_its_words():
    with pytest.raises(INVALID, match=r"concentration must be .*; NumPy says: setting an array"):
        brmdp.DirichletBelief([[[1.0, 1.0]], [[1.0]]])


@pytest.mark.parametrize("value", [np.array("x" * 9), np.array(["{}"]), np.array(1.0)])
def test_what_is_not_json_text_is_named(value):
    with pytest.raises(INVALID, match=r"^parts must be text of at most 8 characters; got "):
        as_json(value, "parts", 8)
