"""Worlds drawn from the prior, and the study of Bayesian regret in them."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import brmdp
from brmdp import agents, theory
from brmdp.envs import TabularEnv
from brmdp.errors import InvalidInputError
from brmdp.report.claims import Verdict
from brmdp.runs import Case, CaseRecords, execute, load_sweep, run_experiment
from brmdp.runs.execution import build
from brmdp.studies.bayesian_regret import STUDIES
from brmdp.studies.bayesian_regret.analysis import (
    BOUNDED,
    NAMES,
    bound_growth,
    bound_of,
    claims,
    growth,
    summary,
    table,
)
from brmdp.studies.bayesian_regret.experiment import EXPERIMENT
from oracles import analysis, bayesian_regret, online

pytestmark = pytest.mark.long

TINY = EXPERIMENT.adjusted(runs=3, steps=60)

# --- worlds ---------------------------------------------------------------------------------------

AGENTS = {
    "aq-brmdp": (agents.aq_brmdp, {"delta": 0.3}),
    "fixed-quantile": (agents.fixed_quantile, {"alpha": 0.9}),
    "continuing-psrl": (agents.continuing_psrl, {}),
}


def drawn(
    agent="fixed-quantile", parameters=None, n_states=3, n_actions=2, steps=25, level=0.25, **more
):
    """A case in worlds from the prior."""
    parameters = AGENTS[agent][1] if parameters is None else parameters
    world = {"n_states": n_states, "n_actions": n_actions, **more}
    return Case("one", "prior", agent, 0.6, steps, world, parameters, robust_level=level)


@pytest.mark.parametrize(
    ("name", "concentration"),
    [("aq-brmdp", 1.0), ("fixed-quantile", 0.4), ("continuing-psrl", 0.4)],
)
def test_regrets_in_a_world_from_the_prior(name, concentration):
    """The same agent driven by hand in the world of run 11, with regrets computed anew."""
    steps, gamma, floor = 10, 0.6, 0.25
    found = execute(
        drawn(name, steps=steps, level=floor, concentration=concentration), 7, 11
    ).history
    environment, agent_stream, world = (
        np.random.SeedSequence(7, spawn_key=(11, stream)) for stream in (0, 1, 3)
    )
    truth = theory.draw_mdp(3, 2, gamma, concentration=concentration, rng=world)
    make, parameters = AGENTS[name]
    prior = brmdp.DirichletBelief.uniform(3, 2, concentration)
    agent = make(prior, truth.rewards, gamma, **parameters, rng=agent_stream)
    env = TabularEnv(truth)
    state, _ = env.reset(seed=int(environment.generate_state(1, np.uint64)[0]))
    states, policies, beliefs = [], [], []
    for _ in range(steps):
        action = agent.act(state)
        states.append(state)
        policies.append(agent.policy)
        beliefs.append(agent.belief.concentration())
        following = env.step(action)[0]
        agent.observe(state, action, following)
        state = following
    kernel, rewards = truth.kernel(), np.repeat(truth.rewards[:, :, None], 3, axis=2)
    best, _ = online.policy_iteration(kernel, rewards, gamma)
    true = [
        (best - online.policy_values(kernel, rewards, gamma, p))[s]
        for s, p in zip(states, policies, strict=True)
    ]
    phi = np.array(beliefs)
    optimum, _ = online.quantile_value_iteration(phi, rewards, gamma, floor)
    robust = optimum - online.quantile_policy_values(phi, rewards, gamma, np.array(policies), floor)
    np.testing.assert_array_equal(found.state, states)
    np.testing.assert_allclose(found.true_regret, true, rtol=0, atol=1e-7)
    np.testing.assert_allclose(
        found.robust_regret, robust[np.arange(steps), states], rtol=0, atol=1e-7
    )
    assert min(found.true_regret.sum(), found.robust_regret.sum()) > 0.01
    assert found.episode[-1] == agent.episode


def test_runs_have_worlds_of_their_own_and_cases_share_them():
    """The truth is read off the rewards of the steps: r(s,a), known and drawn with the kernel."""

    def paid(case, run):
        history = execute(case, 3, run).history
        return {
            (s, a): r for s, a, r in zip(history.state, history.action, history.reward, strict=True)
        }

    first, other, later = paid(drawn(), 0), paid(drawn("continuing-psrl"), 0), paid(drawn(), 1)
    common = set(first) & set(other)
    assert common
    assert all(first[pair] == other[pair] for pair in common)
    assert all(first[pair] != later[pair] for pair in set(first) & set(later))
    assert set(first) & set(later)


def test_other_environments_do_not_notice_the_fourth_stream():
    case = Case("river", "riverswim", "continuing-psrl", 0.8, 40, {"n": 4})
    streams = [np.random.SeedSequence(5, spawn_key=(1, stream)) for stream in range(3)]
    world, agent = build(case, rng=streams[1])
    by_hand = brmdp.simulate(agent, world, 40, seed=int(streams[0].generate_state(1, np.uint64)[0]))
    np.testing.assert_array_equal(execute(case, 5, 1).history.state, by_hand.state)


def test_the_robust_plan_has_no_robust_regret():
    robust, curious = (
        execute(
            drawn("fixed-quantile", {"alpha": alpha}, n_states=4, steps=200, level=0.2), 3, 0
        ).history
        for alpha in (0.2, 0.8)
    )
    np.testing.assert_allclose(robust.robust_regret, 0.0, atol=1e-7)
    assert curious.robust_regret.sum() > 1e-3
    np.testing.assert_array_equal(curious.episode, robust.episode)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"environment_parameters": {}},
            "case 'one': .* needs n_states, n_actions",
        ),
        ({"environment_parameters": {"n_states": 3}}, "'prior' needs n_actions"),
        (
            {"environment_parameters": {"states": 3}},
            "unknown parameter of prior 'states'; did you mean 'n_states'",
        ),
        (
            {"environment_parameters": {"n_states": 0, "n_actions": 2}},
            "n_states must be a positive integer; got 0",
        ),
        (
            {"environment_parameters": {"n_states": 3, "n_actions": 2, "concentration": -1.0}},
            "concentration must be a positive finite number",
        ),
        ({"environment": "priors"}, "unknown environment 'priors'; did you mean 'prior'"),
    ],
)
def test_worlds_that_cannot_be_drawn_are_refused_before_anything_is_run(changes, message, tmp_path):
    experiment = replace(TINY, name="bad", cases=(replace(drawn(), **changes),))
    with pytest.raises(InvalidInputError, match=message):
        run_experiment(experiment, tmp_path, workers=1)
    assert not list(tmp_path.iterdir())


def test_sweeps_over_priors(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(
        'name = "priors"\nruns = 1\nsteps = 5\n[[environment]]\nname = "prior"\nn_states = [2, '
        '3]\nn_actions = 2\n[[agent]]\nname = "continuing-psrl"\n'
    )
    experiment = load_sweep(path)
    assert [case.name for case in experiment.cases] == [
        f"prior-n_states{n}/continuing-psrl" for n in (2, 3)
    ]
    store = run_experiment(experiment, tmp_path, workers=1)
    assert store.records("prior-n_states3/continuing-psrl").n_states == 3


# --- growth ---------------------------------------------------------------------------------------


def made_up(case, runs=40, true=0.5, robust=0.5, size=1.0, spread=0.5, seed=0):
    """Records whose regrets grow as size·T^exponent, times the luck of the run and of its steps."""
    rng = np.random.default_rng(seed)
    steps = case.steps
    clock = np.arange(steps + 1)
    luck = rng.lognormal(sigma=spread, size=(runs, 1)) * rng.lognormal(
        sigma=spread, size=(runs, steps)
    )
    zeros = np.zeros((runs, steps), dtype=np.int64)
    return CaseRecords(
        case=case,
        run=np.arange(runs),
        state=zeros,
        action=zeros,
        episode=zeros + 1,
        reward=zeros.astype(float),
        next_state=None,
        disturbance=None,
        true_regret=size * np.diff(clock**true) * luck,
        robust_regret=size * np.diff(clock**robust) * luck,
        quantile_step=np.empty(0, dtype=np.int64),
        quantile_value=np.empty((runs, 0)),
        seconds=np.ones(runs),
        n_states=5,
    )


def test_growth_exponents_against_moments_and_jackknife():
    case = replace(EXPERIMENT.cases[0], steps=300, reported_steps=300)
    records = made_up(case, runs=60, true=0.6, robust=0.9)
    for benchmark, regrets in (("true", records.true_regret), ("robust", records.robust_regret)):
        early, late = ([sum(row[:n]) for row in regrets.tolist()] for n in (30, 300))
        found = growth(records, benchmark)
        wanted = bayesian_regret.growth_interval(early, late, 10.0)
        np.testing.assert_allclose([found.mean, found.low, found.high], wanted, rtol=1e-9)
        error = bayesian_regret.growth_error(early, late, 10.0)
        assert float(found.standard_error) == pytest.approx(error, rel=1e-10)
        # the two differ in second order
        assert float(found.standard_error) == pytest.approx(
            bayesian_regret.jackknife_error(early, late, 10.0), rel=0.05
        )


def test_intervals_of_the_exponent_hold_the_truth():
    """400 repetitions of 40 runs: 95 % coverage or more, to 4 standard errors (0.011 each)."""
    case = replace(EXPERIMENT.cases[0], steps=20, reported_steps=20)
    held = 0
    for seed in range(400):
        found = growth(made_up(case, true=0.7, seed=seed, spread=0.3), "true")
        held += bool(found.low < 0.7 < found.high)
    assert held / 400 > 0.95 - 4 * 0.011


def test_no_regret_has_no_exponent():
    case = replace(EXPERIMENT.cases[0], steps=300, reported_steps=300)
    records = replace(made_up(case), robust_regret=np.full((40, 300), 1e-8))
    assert np.isnan(growth(records, "robust").mean)
    assert growth(replace(records, robust_regret=None), "robust") is None
    assert [row[4] for row in table({"a": records}).rows] == ["–"]
    assert np.isnan(growth(made_up(replace(case, steps=1, reported_steps=1)), "true").mean)


# --- claims ---------------------------------------------------------------------------------------


def verdicts(story, experiment=EXPERIMENT):
    records = {
        case.name: made_up(case, **story.get(case.name, {}))
        for case in experiment.cases
        if isinstance(case, Case)
    }
    return {claim.identifier: claim for claim in claims(experiment, records)}


SHORT = EXPERIMENT.adjusted(steps=400)


@pytest.mark.parametrize(
    ("exponent", "sublinear", "root"),
    [
        (0.3, Verdict.REPRODUCED, Verdict.REPRODUCED),
        (0.8, Verdict.REPRODUCED, Verdict.CONTRADICTED),
        (1.0, Verdict.NOT_RESOLVED, Verdict.CONTRADICTED),
        (1.3, Verdict.CONTRADICTED, Verdict.CONTRADICTED),
    ],
)
@pytest.mark.parametrize("benchmark", NAMES)
def test_growth_decides_the_claims(exponent, sublinear, root, benchmark):
    found = verdicts(
        {BOUNDED[1]: {benchmark: exponent}, BOUNDED[0]: {"true": 0.3, "robust": 0.3}}, SHORT
    )
    for identifier, wanted in (("sublinear", sublinear), ("square-root", root)):
        comparisons = found[f"bayesian-regret/{identifier}"].comparisons
        of_the_story = [
            c
            for c in comparisons
            if BOUNDED[1] in c.quantity and f"of {NAMES[benchmark]} " in c.quantity
        ]
        assert [c.verdict for c in of_the_story] == [wanted]
        assert all(c.verdict is Verdict.REPRODUCED for c in comparisons if BOUNDED[0] in c.quantity)


def test_the_allowance_for_logarithms_is_that_of_the_bound():
    for name in BOUNDED:
        case = EXPERIMENT.case(name)
        for benchmark in NAMES:
            early, late = (bound_of(case, benchmark, steps).terms for steps in (450, 4500))
            logarithmic = {"doubled counts", "concentration failures", "long episodes"}
            slope = math.log10(
                sum(late[t] for t in late if t not in logarithmic)
                / sum(early[t] for t in early if t not in logarithmic)
            )
            assert bound_growth(case, benchmark) == pytest.approx(slope, rel=1e-12)
            assert 0.5 < slope < 0.6


def test_a_bound_that_says_nothing_is_not_judged():
    (claim,) = (c for c in claims(EXPERIMENT, {}) if c.identifier.endswith("below-the-bound"))
    assert [c.region for c in claim.comparisons] == [None] * 4
    first = theory.first_informative_horizon(5, 2, 0.9, 1 / math.sqrt(10), 0.2)
    assert f"from about T = {first:.2g} (BR, {BOUNDED[0]})" in claim.test


@pytest.mark.parametrize(
    ("size", "verdict"), [(1.0, Verdict.REPRODUCED), (1e3, Verdict.CONTRADICTED)]
)
def test_a_bound_that_says_something_is_judged(size, verdict):
    small = {"n_states": 1, "n_actions": 1}
    cases = tuple(
        replace(case, discount=0.01, environment_parameters=small) for case in SHORT.cases
    )
    experiment = replace(SHORT, cases=cases)
    assert bound_of(cases[0], "true", 400).informative
    found = verdicts({name: {"size": size} for name in BOUNDED}, experiment)[
        "bayesian-regret/below-the-bound"
    ]
    first = found.comparisons[0]
    assert first.claimed == "below 1"
    assert first.verdict is verdict


# --- the whole ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return run_experiment(TINY, tmp_path_factory.mktemp("one"), workers=1)


def records_of(store):
    return {case.name: store.records(case.name) for case in store.experiment.cases}


def test_numbers(store):
    records = records_of(store)
    found = summary(TINY, records)
    for case in TINY.cases:
        regrets = records[case.name].true_regret.tolist()
        totals, early = [sum(row) for row in regrets], [sum(row[:6]) for row in regrets]
        total = found["agents"][case.name]["true_regret"]
        np.testing.assert_allclose(
            [total["mean"], *total["ci95"]], analysis.interval(totals), rtol=1e-9
        )
        slope = found["growth"][case.name]["true"]
        np.testing.assert_allclose(
            [slope["mean"], *slope["ci95"]],
            bayesian_regret.growth_interval(early, totals, 10.0),
            rtol=1e-8,
        )
    assert found["growth"]["brmdp-0.2"]["robust"]["mean"] is None
    for name in BOUNDED:
        bounds = found["bounds"][name]
        assert bounds["true"]["total"] == pytest.approx(
            sum(bounds["true"]["terms"].values()), rel=1e-12
        )
        assert "lost optimism" in bounds["true"]["terms"]
        assert "robust deviation" in bounds["robust"]["terms"]
        assert bounds["true"]["trivial"] == pytest.approx(600.0)
        assert not bounds["true"]["informative"]
        assert bounds["true"]["first_informative_horizon"] > 10**9
    mine, theirs = (records[name].true_regret.tolist() for name in (BOUNDED[0], "continuing-psrl"))
    gap = [sum(first) - sum(second) for first, second in zip(mine, theirs, strict=True)]
    judged = {claim.identifier: claim for claim in claims(TINY, records)}
    first = judged["bayesian-regret/against-sampling"].as_json()["comparisons"][0]
    assert first["quantity"].startswith(f"{BOUNDED[0]} − continuing-psrl: cumulative true regret")
    np.testing.assert_allclose(
        [first["estimate"], *first["ci95"]], analysis.interval(gap), rtol=1e-9
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("left", [("brmdp-0.5", "brmdp-0.2"), BOUNDED[:1]])
def test_one_run_and_missing_cases_can_be_reported(store, left):
    records = {}
    for name in left:
        found = store.records(name)
        arrays = {key: value for key, value in vars(found).items() if isinstance(value, np.ndarray)}
        records[name] = replace(
            found, **{key: value[:1] for key, value in arrays.items() if key != "quantile_step"}
        )
    (study,) = (one.of(TINY) for one in STUDIES)
    found = study.findings(records)
    json.dumps([found.summary, [claim.as_json() for claim in found.claims]], allow_nan=False)
    notes = [comparison.note for claim in found.claims for comparison in claim.comparisons]
    assert any(note.startswith("no runs of ") for note in notes)
    assert "an interval needs 3 runs" in notes
    for figure in study.draw(records).values():
        figure.draw_without_rendering()


def test_two_workers_give_the_same_bits_and_files(store, workers, tmp_path):
    other = run_experiment(TINY, tmp_path / "two", executor=workers)
    assert other.digest() == store.digest()
    for case in TINY.cases:
        np.testing.assert_array_equal(
            other.records(case.name).state, store.records(case.name).state
        )


def test_the_default_lies_above_the_horizons_of_the_theorem():
    for name in BOUNDED:
        bound = bound_of(EXPERIMENT.case(name), "true", EXPERIMENT.case(name).steps)
        assert bound.steps >= bound.order_horizon
        assert bound.steps >= bound.dominant_horizon
