"""Checks of models: each piece against a slow second version, and whole checks on known truths."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import stdtrit

import brmdp
from brmdp.decisions.families import family_of
from brmdp.decisions.learned_prior import (
    _partial_predictor,
    _pooled_predictor,
    _Problem,
    _separate_predictor,
)
from brmdp.decisions.transitions import Transitions, cells_of
from brmdp.logs import Dropped, ReadingReport
from brmdp.models import Dynamics, Model
from brmdp.models.checks import check_model
from brmdp.models.checks.actions import check_actions
from brmdp.models.checks.bench import Bench
from brmdp.models.checks.coverage import check_coverage, thin_quantile
from brmdp.models.checks.drift import check_drift, halves
from brmdp.models.checks.groups import check_groups
from brmdp.models.checks.memory import check_memory, past_of, remembering
from brmdp.models.checks.prediction import check_prediction, logged, simulated
from brmdp.models.checks.prior import check_prior
from brmdp.models.checks.reading import check_reading
from brmdp.models.checks.splits import BOUNDS, Observed, Split, blocks_of
from brmdp.models.checks.units import check_units, spread_of
from brmdp.models.checks.verdicts import CLEAR, Sign, percentage, verdict_of
from brmdp.models.checks.walks import chains_of
from brmdp.models.checks.worlds import World
from brmdp.models.results import Check
from brmdp.pattern import full_pattern
from models.simulated import clinic, fleet, fork, log_of, machines
from oracles import checks as oracles

NAMES = ("log", "coverage", "prior", "groups", "units", "drift", "memory", "actions", "prediction")
LAW = [0.3, 0.4, 0.2, 0.1]
UNIFORM = Dynamics(prior="uniform")
SLOW, FAST = [0.6, 0.3, 0.1, 0.0], [0.05, 0.15, 0.3, 0.5]


@pytest.fixture(scope="module")
def wear() -> Model:
    """Machines that wear by one law."""
    return fleet([LAW], n=12, units=25, steps=25, rng=np.random.default_rng(3))


@pytest.fixture(scope="module")
def patients() -> Model:
    """Unordered states, three actions that differ."""
    return clinic(np.random.default_rng(1), units=60)


def by_name(checks: tuple[Check, ...]) -> dict[str, Check]:
    return {check.name: check for check in checks}


# --- verdicts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strong", "clear", "material", "verdict"),
    [
        (True, True, True, "stop"),
        (True, True, False, "look"),
        (False, True, True, "look"),
        (False, True, False, "look"),
        (False, False, True, "look"),
        (False, False, False, "fine"),
    ],
)
def test_a_verdict_needs_statistics_and_consequence(
    strong: bool, clear: bool, material: bool, verdict: str
) -> None:
    assert verdict_of(strong, clear, material) == verdict


@pytest.mark.parametrize(("gain", "error"), [(-4.0, 3.0), (0.0, 1.0), (2.0, 5.0)])
def test_a_detectable_difference_is_just_clear(gain: float, error: float) -> None:
    sign = Sign(gain, error, blocks=30, steps=100_000, tried=2)
    worth = 2.0 * sign.steps * sign.detectable**2
    t = stdtrit(29, 1.0 - CLEAR / 2)
    assert worth - max(0.0, -gain) == pytest.approx(t * math.sqrt(error**2 + 2.0 * worth))


def test_little_data_show_little() -> None:
    wide = Sign(0.0, 1.0, blocks=40, steps=10_000)
    narrow = dataclasses.replace(wide, steps=100)
    assert wide.detectable < narrow.detectable <= 1.0
    assert Sign(-math.inf, 0.0, 1, 1).chance == 1.0
    assert "too few" in Sign(-math.inf, 0.0, 1, 1).words("it differs")
    assert "extreme" in Sign(0.0, 5.0, 3, 20).words("it differs")
    assert "Only differences" in wide.words("it differs")
    assert "by 9.0 standard errors" in Sign(9.0, 1.0, 40, 100).words("it differs")


def test_chance_counts_all_models_tried() -> None:
    one = Sign(3.0, 1.0, 40, 1_000)
    assert dataclasses.replace(one, tried=2).chance == pytest.approx(2 * one.chance)
    assert percentage(1e-7) == "less than 0.01 %"
    assert percentage(0.0) == "0 %"
    assert percentage(0.123) == "12 %"


# --- worlds ---------------------------------------------------------------------------------------


def test_a_world_agrees_with_the_solver() -> None:
    rng = np.random.default_rng(0)
    kernel = rng.dirichlet(np.ones(7), size=(7, 3))
    rewards = rng.normal(size=(7, 3, 7))
    mdp = brmdp.TabularMDP(kernel, rewards, 0.9)
    world = World(mdp.pattern, mdp.probabilities, mdp.transition_rewards, 0.9)
    policy, values = world.best()
    solved = brmdp.solve(mdp)
    np.testing.assert_array_equal(policy, solved.policy)
    np.testing.assert_allclose(values, solved.values, rtol=1e-7)
    mixed = rng.dirichlet(np.ones(3), size=7)
    np.testing.assert_allclose(world.values(mixed), brmdp.evaluate_in_mdp(mdp, mixed), rtol=1e-9)
    start = rng.dirichlet(np.ones(7))
    visits = world.visits(policy, start)
    paid = world.paid.reshape(7, 3)[np.arange(7), policy]
    assert visits.sum() == pytest.approx(1.0)
    assert visits @ paid == pytest.approx(0.1 * start @ values)


def test_large_worlds_are_solved_by_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    mdp = brmdp.TabularMDP(rng.dirichlet(np.ones(9), size=(9, 2)), rng.normal(size=(9, 2)), 0.95)
    world = World(mdp.pattern, mdp.probabilities, mdp.transition_rewards, 0.95)
    exact = world.best()
    monkeypatch.setattr("brmdp.models.checks.worlds.SMALL", 0)
    monkeypatch.setattr("brmdp.models.checks.worlds.DENSE", 0)
    swept = world.best()
    np.testing.assert_array_equal(swept[0], exact[0])
    np.testing.assert_allclose(swept[1], exact[1], rtol=1e-5)


# --- splits ---------------------------------------------------------------------------------------


def columns_of(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Pair and next state of every transition."""
    log = model.log
    return log.state * len(model.actions) + log.action, log.next_state


@pytest.mark.parametrize("shape", ["uniform", "destinations", "staying", "actions"])
def test_predictions_are_those_of_learned_priors(patients: Model, shape: str) -> None:
    """On the entries that occur as on all of them."""
    log = patients.log
    label = log.unit % 3
    family = family_of(shape, full_pattern(8, 3))
    table = Transitions(
        log.state, log.action, log.next_state, unit=log.unit, group=label, n_states=8, n_actions=3
    )
    cells = cells_of(table, None, None)
    problem = _Problem(
        cells, family.pattern, cells.pair * 8 + cells.next_state, BOUNDS, np.random.default_rng(0)
    )
    pair, following = columns_of(patients)
    observed = Observed.of(pair * 8 + following, log.unit, label)
    split = Split(family, observed)
    entry = observed.seen[observed.place]
    mine = {
        key: k
        for k, key in enumerate(
            zip(
                observed.cells.unit.tolist(),
                observed.cells.group.tolist(),
                entry.tolist(),
                strict=True,
            )
        )
    }
    order = [
        mine[key]
        for key in zip(
            cells.unit.tolist(),
            cells.group.tolist(),
            problem.entry.tolist(),
            strict=True,
        )
    ]
    given = np.where(cells.unit % 5 == 0, 0, cells.count)
    own = np.where(observed.cells.unit % 5 == 0, 0, observed.cells.count)
    for how, engine in (
        ("pooled", _pooled_predictor),
        ("separate", _separate_predictor),
        ("partial", _partial_predictor),
    ):
        expected = engine(problem, family)(given)
        found = split.predictor(how)(own)[order]  # type: ignore[arg-type]
        np.testing.assert_allclose(found, expected, atol=0.02 if how == "partial" else 2e-3)


def test_pooled_predictions_by_hand(wear: Model) -> None:
    bench = Bench(wear)
    observed = Observed.of(bench.entries, bench.blocks)
    assert bench.family is not None
    split = Split(bench.family, observed)
    mode = split.mode(0, -1)
    shares = bench.family.shares(mode.law)
    n, pattern = wear.states.n_states, bench.pattern
    prior = np.zeros((n, n))
    strength = np.exp(mode.log_strength)
    for e in range(pattern.n_transitions):
        s, a = divmod(int(pattern.pair_of_transition[e]), 2)
        if a == 0:
            kind = bench.family.kind_of_entry[e]
            weight = strength[bench.family.strength_of_kind[kind]] * shares[kind]
            prior[s, pattern.next_states[e]] += weight
    rows = [
        (int(s), int(t))
        for s, a, t in zip(wear.log.state, wear.log.action, wear.log.next_state, strict=True)
        if a == 0
    ]
    seen = sorted(set(rows))
    expected = oracles.log_predictions(rows, seen, prior)
    order = {entry: k for k, entry in enumerate(observed.seen.tolist())}
    found = split.layout.logs(*split.layout.prior(mode), split._all[0, 0])
    for (s, t), value in zip(seen, expected, strict=True):
        entry = int(pattern.locate(s, 0, t))
        assert found[order[entry]] == pytest.approx(value)
    kernel = split.kernels(0, "pooled")[0]
    sums = np.bincount(pattern.pair_of_transition, kernel, pattern.n_pairs)
    np.testing.assert_allclose(sums, 1.0)


def test_classes_that_differ_are_found_and_others_are_not(wear: Model) -> None:
    bench = Bench(wear)
    change = wear.log.next_state[bench.free] - wear.log.state[bench.free]
    told = bench.split((change > 1).astype(np.int64))
    alike = bench.split(np.asarray(wear.log.unit[bench.free] % 2))
    assert told is not None
    assert alike is not None
    assert told.sign(np.random.default_rng(0))[0].strong
    assert not alike.sign(np.random.default_rng(0))[0].clear


def test_strata_are_fitted_one_by_one() -> None:
    rng = np.random.default_rng(0)
    model = fleet([SLOW, FAST], n=8, units=20, steps=20, rng=rng, dynamics=UNIFORM)
    bench = Bench(model)
    label = bench.model.log.unit[bench.free] // 2 % 2
    both = bench.split(label, bench.strata())
    assert both is not None
    for group in range(2):
        mine = np.where(bench.strata() == group, label, -1)
        alone = bench.split(mine)
        assert alone is not None
        for how in ("pooled", "separate"):
            for one, other in zip(
                both.kernels(group, how),  # type: ignore[arg-type]
                alone.kernels(0, how),  # type: ignore[arg-type]
                strict=True,
            ):
                np.testing.assert_allclose(one, other, atol=2e-3)


def test_few_units_are_cut_into_blocks() -> None:
    unit = np.repeat([0, 1, 2], [100, 50, 50])
    block = blocks_of(unit)
    assert 30 <= np.unique(block).size <= 45
    for k in np.unique(block):
        mine = np.flatnonzero(block == k)
        assert np.unique(unit[mine]).size == 1
        assert (np.diff(mine) == 1).all()
    many = np.repeat(np.arange(30), 3)
    np.testing.assert_array_equal(blocks_of(many), many)


# --- the log --------------------------------------------------------------------------------------


def test_what_reading_lost_is_said(wear: Model) -> None:
    report = ReadingReport(
        1_000, 900, 25, 600,
        (
            Dropped("outside the bins", 100, "100 lines lie outside the bins"),
            Dropped("gap", 20, "20 gaps", line_kept=True),
            Dropped("last line", 25, "25 last lines", line_kept=True),
        ),
    )  # fmt: skip
    log = dataclasses.replace(wear.log, report=report)
    model = Model(log, costs=wear.costs, discount=0.95, reset={"b": "0"}, dynamics=UNIFORM)
    found = check_reading(Bench(model))
    assert found.verdict == "look"
    assert found.figures["lost"] == 120
    assert "outside the bins 100" in found.finding
    assert check_reading(Bench(wear)).verdict == "fine"


def test_resets_that_are_none_are_a_stop(wear: Model) -> None:
    rng = np.random.default_rng(0)
    following = wear.log.next_state.copy()
    renewed = np.flatnonzero(wear.log.action == 1)
    following[renewed[rng.random(renewed.size) < 0.6]] = 9
    log = dataclasses.replace(wear.log, next_state=following)
    model = Model(log, costs=wear.costs, discount=0.95, reset={"b": "0"}, dynamics=UNIFORM)
    found = check_reading(Bench(model))
    assert found.verdict == "stop"
    assert found.figures["contradictions"] == model.contradictions.size > 0
    assert "contradict" in found.finding
    # a single slip of the pen is worth a look
    following = wear.log.next_state.copy()
    following[renewed[0]] = 9
    log = dataclasses.replace(wear.log, next_state=following)
    model = Model(log, costs=wear.costs, discount=0.95, reset={"b": "0"}, dynamics=UNIFORM)
    assert check_reading(Bench(model)).verdict == "look"


# --- coverage -------------------------------------------------------------------------------------


def test_value_with_uncertain_rows_is_exact(patients: Model) -> None:
    bench = Bench(patients)
    plan = bench.plans[0]
    thin = np.array([1, 4, 6])
    found = thin_quantile(bench, plan, thin)
    pairs = thin * 3 + plan.policy[thin]
    drawn = patients.belief().sample_entries(200, pairs, rng=patients.stream("checks", 9))
    kernel, paid = plan.world.chain(plan.policy)
    low = oracles.low_value(
        kernel.toarray(), paid, 0.9, plan.start, thin.tolist(), drawn.reshape(200, 3, 8), 0.1
    )
    assert found == pytest.approx(low, rel=1e-9)


def test_pairs_never_seen_call_for_a_look() -> None:
    model = fleet([LAW], n=12, units=3, steps=6, rng=np.random.default_rng(0))
    found = check_coverage(Bench(model))
    assert found.verdict in ("look", "stop")
    assert found.figures["thin_time"] > 0.05  # type: ignore[operator]
    assert found.picture is not None


# --- the prior ------------------------------------------------------------------------------------


def test_a_uniform_prior_on_ordered_bins_is_a_stop() -> None:
    rng = np.random.default_rng(0)
    model = fleet(
        [LAW], n=60, units=60, steps=40, rng=rng, renewals=0.2, dynamics=Dynamics(prior="uniform")
    )
    found = check_prior(Bench(model))
    assert found.verdict == "stop"
    assert found.figures["better"] == "increments"
    assert "learned" in found.remedy
    other = Model(
        model.log, costs=model.costs, discount=0.95, reset={"b": "0"}, dynamics=Dynamics(draws=100)
    )
    assert check_prior(Bench(other)).verdict == "fine"


@pytest.mark.long
def test_a_shape_that_is_named_is_compared() -> None:
    # three other shapes are tried, which a log must be long enough to tell from chance
    wear = fleet([LAW], n=12, units=50, steps=25, rng=np.random.default_rng(3))

    def with_shape(shape: str) -> Check:
        dynamics = Dynamics(shape=shape, draws=200)
        model = Model(wear.log, costs=wear.costs, discount=0.95, reset={"b": "0"},
                      dynamics=dynamics)  # fmt: skip
        return check_prior(Bench(model))

    assert with_shape("increments").verdict == "fine"
    found = with_shape("destinations")
    assert found.verdict != "fine"
    assert found.figures["standard_errors"] > 2  # type: ignore[operator]


def test_a_shape_that_is_never_tried_unasked_is_compared(patients: Model) -> None:
    model = Model(
        patients.log,
        rewards=patients.costs,
        discount=patients.discount,
        dynamics=Dynamics(shape="actions", draws=100),
    )
    found = check_prior(Bench(model))
    assert np.isfinite(found.figures["standard_errors"])  # type: ignore[arg-type]
    assert "in use" in found.finding or "No prior" in found.finding


def test_successors_read_off_the_log_are_not_foreseen() -> None:
    rng = np.random.default_rng(0)
    model = fleet(
        [[0.1] * 10], n=40, units=20, steps=15, rng=rng, dynamics=Dynamics(prior="observed")
    )
    found = check_prior(Bench(model))
    assert found.verdict != "fine"
    assert found.figures["better"] == "increments"


def test_a_prior_learned_over_successors_read_off_the_log_is_too_strong() -> None:
    """With many successors and few visits, whatever was seen looks uniform."""
    rng = np.random.default_rng(0)
    model = fleet(
        [[0.1] * 10],
        n=40,
        units=20,
        steps=15,
        rng=rng,
        dynamics=Dynamics(possible="observed", draws=100),
    )
    found = check_prior(Bench(model))
    assert "too strong" in found.finding
    assert found.verdict != "fine"
    assert "reach" in found.remedy


# --- groups, units, drift, memory, actions --------------------------------------------------------


@pytest.mark.long
def test_groups_that_differ_must_not_be_pooled() -> None:
    rng = np.random.default_rng(0)
    pooled = fleet(
        [SLOW, LAW, FAST],
        rng=rng,
        dynamics=Dynamics(pooling="pooled", shape="increments", draws=100),
    )
    found = check_groups(Bench(pooled))
    assert found is not None
    assert found.verdict == "stop"
    assert found.figures["units_with_false_guarantee"] >= 10  # type: ignore[operator]
    assert "partial" in found.remedy
    own = Model(
        pooled.log, costs=pooled.costs, discount=0.95, reset={"b": "0"},
        dynamics=Dynamics(prior="uniform", pooling="separate"),
    )  # fmt: skip
    found = check_groups(Bench(own))
    assert found is not None
    assert found.verdict == "fine"
    assert found.figures["loss_if_pooled"] > 0  # type: ignore[operator]


def test_groups_that_are_alike_may_be_pooled() -> None:
    model = machines(np.random.default_rng(5), groups=3, pooling="pooled", alike=True)
    found = check_groups(Bench(model))
    assert found is not None
    assert found.verdict == "fine"
    assert "Only differences" in found.finding


def test_surprises_against_a_loop(wear: Model) -> None:
    bench = Bench(wear)
    surprise, variance = bench.moments
    np.testing.assert_allclose(
        surprise, oracles.surprises(wear, bench.plans[0].policy), rtol=1e-6, atol=1e-9
    )
    assert (variance >= 0).all()


def test_units_that_differ_are_found_and_others_are_not() -> None:
    rng = np.random.default_rng(0)
    unit, pair = np.repeat(np.arange(40), 50), rng.integers(5, size=2_000)
    noise = rng.normal(size=2_000)
    alike = spread_of(noise, np.ones(2_000), unit, pair, 200, rng)
    shift = 0.5 * rng.normal(size=40)
    differ = spread_of(noise + shift[unit], np.ones(2_000), unit, pair, 200, rng)
    assert alike is not None
    assert differ is not None
    assert alike.chance > 0.01
    assert differ.chance < 1e-6
    assert differ.between == pytest.approx(shift.std(), rel=0.25)
    assert alike.between < alike.detectable * 1.5 < 0.5
    # what all units share is no difference
    shared = spread_of(noise + pair, np.ones(2_000), unit, pair, 200, np.random.default_rng(1))
    same = spread_of(noise, np.ones(2_000), unit, pair, 200, np.random.default_rng(1))
    assert shared is not None
    assert same is not None
    assert shared.chance == pytest.approx(same.chance)
    assert spread_of(noise[:100], np.ones(100), unit[:100], pair[:100], 50, rng) is None


@pytest.mark.long
def test_hidden_types_show_as_units_that_differ() -> None:
    dynamics = Dynamics(pooling="separate", shape="increments", draws=100)
    model = fleet([SLOW, FAST], units=40, rng=np.random.default_rng(0), dynamics=dynamics)
    hidden = dataclasses.replace(model.log, group=None, line_group=None, group_names=None)
    found = check_units(
        Bench(Model(hidden, costs=model.costs, discount=0.95, reset={"b": "0"},
                    dynamics=Dynamics(draws=100)))
    )  # fmt: skip
    assert found is not None
    assert found.verdict == "stop"
    known = check_units(Bench(model))
    assert known is not None
    assert known.verdict == "fine"


def test_halves_by_time_and_without(wear: Model) -> None:
    bench = Bench(wear)
    label, whose = halves(bench)
    assert wear.log.time is not None
    time = wear.log.time[bench.free]
    assert whose == "the log's time"
    assert time[label == 0].max() <= time[label == 1].min()
    bare = dataclasses.replace(wear.log, time=None)
    model = Model(bare, costs=wear.costs, discount=0.95, reset={"b": "0"}, dynamics=wear.dynamics)
    bench = Bench(model)
    label, whose = halves(bench)
    assert whose == "each unit's steps"
    for unit in range(25):
        mine = label[bare.unit[bench.free] == unit]
        assert (np.diff(mine) >= 0).all()
        assert abs(2 * mine.sum() - mine.size) <= 1


def test_drift_is_found() -> None:
    model = fleet([SLOW], drift=FAST, units=30, rng=np.random.default_rng(0))
    found = check_drift(Bench(model))
    assert found is not None
    assert found.verdict == "stop"
    assert "guarantee" in found.consequence
    picture = found.picture
    assert picture is not None
    curve = picture.curves[0]
    assert curve.x == ("first half", "second half")
    assert curve.high[0] < 0.0 < curve.low[1]  # cheaper than expected, then dearer


def test_the_past_is_classed_as_by_hand(wear: Model) -> None:
    bench = Bench(wear)
    past = past_of(bench)
    assert past is not None
    by_hand = oracles.classes_of_change(wear.log, wear.known)
    np.testing.assert_array_equal(past.label, np.array(by_hand)[bench.free])
    assert len(past.names) == max(by_hand) + 1
    # the class that a transition leads to is the one that the next row has
    follows = np.flatnonzero((past.label >= 0) & np.isin(wear.log.previous[bench.free], bench.free))
    before = np.searchsorted(bench.free, wear.log.previous[bench.free[follows]])
    np.testing.assert_array_equal(past.after[bench.entries[before]], past.label[follows])


def test_memory_world_against_dictionaries(patients: Model) -> None:
    bench = Bench(patients)
    past = past_of(bench)
    assert past is not None
    assert bench.family is not None
    split = bench.split(past.label)
    assert split is not None
    kernels = split.kernels(0, "separate")
    c = len(kernels)
    world = remembering(bench.pattern, kernels, bench.rewards, past.after, 0.7)
    policy = bench.plans[0].policy
    rank = oracles.ranks_of_states_before(patients.log)
    mine, best = oracles.value_with_memory(
        lambda k, s, a: kernels[k][(s * 3 + a) * 8 : (s * 3 + a) * 8 + 8],
        lambda s, a: patients.rewards[s, a],
        policy,
        lambda s, a, t: rank.get((t, s), 2),
        n_states=8,
        n_actions=3,
        n_classes=c,
        discount=0.7,
    )
    nodes = [(s, k) for s in range(8) for k in range(c)]
    np.testing.assert_allclose(
        world.values(np.repeat(policy, c)), [mine[node] for node in nodes], atol=1e-8
    )
    np.testing.assert_allclose(world.best()[1], [best[node] for node in nodes], atol=1e-8)


def test_memory_that_matters_is_a_stop() -> None:
    found = check_memory(Bench(fork(np.random.default_rng(0))))
    assert found is not None
    assert found.verdict == "stop"
    assert found.figures["loss_share"] > 0.2  # type: ignore[operator]


def test_memory_is_found_and_is_fine_where_it_changes_nothing() -> None:
    model = fleet([LAW], memory=0.7, units=60, rng=np.random.default_rng(0))
    found = check_memory(Bench(model))
    assert found is not None
    assert found.figures["standard_errors"] > 5  # type: ignore[operator]
    assert "There are signs" in found.finding
    assert found.figures["loss_share"] == 0.0
    assert found.verdict == "fine"


def test_actions_that_differ_and_actions_that_do_not(patients: Model) -> None:
    found = check_actions(Bench(patients))
    assert found is not None
    assert found.verdict == "fine"
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(60), 12)
    state = rng.integers(6, size=unit.size)
    log = log_of(unit, state, rng.integers(2, size=unit.size), n_states=6, n_actions=2,
                 ordered=False)  # fmt: skip
    model = Model(log, rewards=rng.random((6, 2)), discount=0.9, dynamics=Dynamics(draws=100))
    found = check_actions(Bench(model))
    assert found is not None
    assert found.verdict == "look"
    assert "No clear sign" in found.finding


# --- prediction -----------------------------------------------------------------------------------


def test_figures_of_the_log_against_a_loop(wear: Model) -> None:
    bench = Bench(wear)
    log = wear.log
    chains = chains_of(bench, 10**9, np.random.default_rng(0))
    assert chains.first.size == 25
    dear = np.zeros(12, dtype=bool)
    dear[7:] = True
    found = logged(bench, chains, dear)
    amounts = np.zeros(25)
    for s, a, u in zip(log.state, log.action, log.unit, strict=True):
        amounts[u] += wear.amounts[s, a]
    np.testing.assert_allclose(found.amounts[0], amounts)
    for unit in range(25):
        states = log.state[log.unit == unit]
        reached = np.flatnonzero(states >= 7)
        assert found.passage[0, unit] == (reached[0] if reached.size else states.size)
    np.testing.assert_array_equal(found.times[0], np.bincount(log.state, minlength=12))
    np.testing.assert_array_equal(found.taken[0], np.bincount(log.action, minlength=2))


def test_simulations_follow_the_belief(patients: Model) -> None:
    """Their means agree with powers of the mean kernel, up to what is uncertain."""
    bench = Bench(patients)
    rng = np.random.default_rng(0)
    chains = chains_of(bench, 10**9, rng)
    found = simulated(bench, chains, np.zeros(8, dtype=bool), 200, rng)
    assert found.times.sum(axis=1) == pytest.approx(chains.length.sum())
    plan = bench.plans[0]
    mixed = np.einsum("sa,sat->st", plan.practice, patients.plan_belief().mean())
    share = np.bincount(patients.log.state[chains.rows[chains.first]], minlength=8).astype(float)
    expected = np.zeros(8)
    for _ in range(int(chains.length[0])):
        expected += share
        share = share @ mixed
    np.testing.assert_allclose(found.times.mean(axis=0), expected, rtol=0.1)


def test_a_log_from_another_world_is_not_predicted(patients: Model) -> None:
    good = check_prediction(Bench(patients))
    assert good is not None
    assert good.verdict == "fine"
    rng = np.random.default_rng(0)
    model = fleet(
        [LAW], n=60, units=60, steps=40, rng=rng, renewals=0.2, dynamics=Dynamics(prior="uniform")
    )
    bad = check_prediction(Bench(model))
    assert bad is not None
    assert bad.verdict == "stop"
    assert "does not look like" in bad.finding


# --- all of them ----------------------------------------------------------------------------------


def require_sound(checks: tuple[Check, ...]) -> None:
    """Texts are sentences, figures are numbers, pictures have matching columns."""
    assert [check.name for check in checks] == [n for n in NAMES if n in by_name(checks)]
    for check in checks:
        assert check.verdict in ("fine", "look", "stop")
        assert check.question.endswith("?")
        for text in (check.finding, check.consequence):
            assert text.endswith(".")
            assert "nan" not in text.split()
            assert "inf" not in text.split()
        assert check.verdict == "fine" or check.remedy
        for value in check.figures.values():
            assert value is None or isinstance(value, int | float | str)
            assert not isinstance(value, float) or not math.isnan(value)
        if check.picture is not None:
            for curve in check.picture.curves:
                assert len(curve.x) == len(curve.y) > 0
                assert len(curve.low) == len(curve.high)
                assert len(curve.low) in (0, len(curve.x))
                assert np.isfinite(curve.y).all()


def test_all_checks_of_sound_models(wear: Model, patients: Model) -> None:
    for model in (wear, patients):
        checks = check_model(model)
        require_sound(checks)
        assert all(check.verdict != "stop" for check in checks)


def test_checks_do_not_depend_on_what_was_asked_before(wear: Model) -> None:
    first, second = check_model(wear), check_model(wear)
    assert [c.finding for c in first] == [c.finding for c in second]
    assert check_drift(Bench(wear)) == by_name(first)["drift"]


def tiny(lines: int, actions: int = 2, **settings: object) -> Model:
    unit = np.zeros(lines, dtype=np.int64)
    log = log_of(unit, np.arange(lines) % 3, np.zeros(lines), n_states=3, n_actions=actions)
    costs = np.arange(3.0 * actions).reshape(3, actions)
    return Model(log, costs=costs, discount=0.9, dynamics=Dynamics(draws=100), **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("lines", [2, 3, 4, 8])
def test_logs_of_a_few_lines_are_no_reason_to_be_sure(lines: int) -> None:
    checks = check_model(tiny(lines))
    require_sound(checks)
    found = by_name(checks)
    assert found["coverage"].verdict != "fine"
    for name in ("drift", "memory"):
        if name in found:
            assert found[name].verdict == "look"
    assert {check.name for check in checks if check.verdict == "stop"} <= {"coverage"}


def test_nothing_but_known_actions() -> None:
    model = tiny(7, actions=1, reset={"a": "1"})
    require_sound(check_model(model))


def test_groups_of_one_unit_each() -> None:
    dynamics = Dynamics(pooling="pooled", draws=100)
    rng = np.random.default_rng(0)
    model = fleet([LAW, FAST, SLOW], units=3, steps=60, rng=rng, dynamics=dynamics)
    checks = check_model(model)
    require_sound(checks)
    assert "groups" in by_name(checks)


def test_costs_of_transitions_and_ends() -> None:
    rng = np.random.default_rng(0)
    log = log_of(np.repeat(np.arange(20), 8), np.minimum(rng.integers(5, size=160), 4),
                 rng.integers(2, size=160), n_states=5, n_actions=2)  # fmt: skip
    model = Model(
        log,
        rewards=rng.normal(size=(5, 2, 5)),
        discount=0.8,
        ends=("4",),
        dynamics=Dynamics(draws=100),
    )
    require_sound(check_model(model))


def test_practice_that_leaves_out_an_action() -> None:
    rng = np.random.default_rng(0)
    log = log_of(np.repeat(np.arange(30), 8), rng.integers(4, size=240), np.zeros(240),
                 n_states=4, n_actions=2, ordered=False)  # fmt: skip
    costs = np.array([[5.0, 0.0]] * 4)  # the action never taken looks best
    model = Model(log, costs=costs, discount=0.9, dynamics=Dynamics(draws=100))
    found = by_name(check_model(model))
    assert found["coverage"].verdict in ("look", "stop")
    assert found["coverage"].figures["never_time"] == pytest.approx(1.0)
