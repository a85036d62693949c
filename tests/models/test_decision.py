"""Decisions against slow and obvious computations, and what their files hold."""

import dataclasses
import html
import json
import re
from pathlib import Path

import numpy as np
import pytest

from brmdp.errors import ConvergenceError, InvalidInputError
from brmdp.logs import Categories, StateSpace
from brmdp.models import Dynamics, Model, read_policy
from brmdp.models.costs import Costs
from brmdp.models.page.page import page_of
from brmdp.models.wording import bound_figure, figure, policy_in_words
from models.simulated import log_of

FILES = Path(__file__).parents[2] / "docs" / "reference" / "files.md"
GAMMA = 0.9
WEAR = np.array([0.5, 0.35, 0.15])


APART = Dynamics(prior="uniform")


def wearing_log(seed=0, units=15, steps=20, group=False):
    """A machine that wears by 0, 1 or 2 steps of five, and is renewed by action b."""
    rng = np.random.default_rng(seed)
    lines = []
    for unit in range(units):
        state = 0
        for _ in range(steps):
            action = int(rng.random() < (0.6 if state == 4 else 0.1))
            lines.append((unit, state, action, unit % 2))
            state = 0 if action else min(state + int(rng.choice(3, p=WEAR)), 4)
    unit, state, action, half = np.array(lines).T
    return log_of(unit, state, action, n_states=5, n_actions=2, group=half if group else None)


def a_model(log=None, **settings):
    given = {
        "costs": {"a": {"per": 1.0}, "b": 2.5},
        "discount": GAMMA,
        "start": 0,
        "reset": {"b": 0},
        "dynamics": Dynamics(draws=400),
        **settings,
    }
    return Model(wearing_log() if log is None else log, **given)


@pytest.fixture(scope="module")
def decision():
    return a_model().decide(checks=False, draws=400)


def values_of(kernel, amounts, policy):
    """Discounted sums under a policy, (S,) actions or (S, A) probabilities, by a plain system."""
    weights = np.eye(amounts.shape[1])[policy] if np.ndim(policy) == 1 else np.asarray(policy)
    paid = (weights * amounts).sum(axis=1)
    moves = np.einsum("sa,sat->st", weights, kernel)
    return np.linalg.solve(np.eye(paid.size) - GAMMA * moves, paid)


def test_values_against_draws_and_plain_systems(decision):
    model = a_model()
    (group,) = decision.groups
    rng = np.random.default_rng(5)
    kernels = model.belief().sample(800, rng=rng)
    practices = model.practice().draw(800, rng=rng)
    mine = np.array([values_of(kernel, model.amounts, group.policy)[0] for kernel in kernels])
    theirs = np.array(
        [
            values_of(kernel, model.amounts, policy)[0]
            for kernel, policy in zip(kernels, practices, strict=True)
        ]
    )
    chosen = group.policies[group.recommended]
    close = 5.0 * mine.std() / np.sqrt(400)
    assert chosen.mean.mean == pytest.approx(mine.mean(), abs=close)
    assert chosen.guaranteed == pytest.approx(np.quantile(mine, 0.9), abs=2 * close)
    wide = 5.0 * theirs.std() / np.sqrt(400)
    assert group.practice.mean == pytest.approx(theirs.mean(), abs=wide)
    gains = theirs - mine
    assert group.gain.mean == pytest.approx(gains.mean(), abs=5.0 * gains.std() / np.sqrt(400))
    assert group.gain.mean > 0
    # an upper bound on the cost: above the quantile that it stands for
    assert group.guarantee.value > np.quantile(mine, 0.88)
    assert group.guarantee.value < np.quantile(mine, 0.999) + close


def test_no_policy_is_better_by_the_draws_that_compared(decision):
    """All 32 policies, by the quantile at the confidence, in draws of the test."""
    model = a_model()
    kernels = model.belief().sample(500, rng=1)
    best, found = np.inf, {}
    for number in range(32):
        policy = np.array([number >> s & 1 for s in range(5)])
        worth = np.quantile([values_of(k, model.amounts, policy)[0] for k in kernels], 0.9)
        found[tuple(policy)] = worth
        best = min(best, worth)
    chosen = found[tuple(decision.groups[0].policy)]
    assert chosen <= best * 1.01


def test_visits_observations_and_thin_pairs_against_loops(decision):
    model = a_model()
    (group,) = decision.groups
    kernel = model.belief().mean()
    moves = kernel[np.arange(5), group.policy]
    share, now = np.zeros(5), np.eye(5)[0]
    for t in range(400):
        share += (1 - GAMMA) * GAMMA**t * now
        now = now @ moves
    assert group.visits == pytest.approx(share, abs=1e-6)
    assert (group.observations == model.counts()).all()
    for one in group.thin:
        assert one.observations == group.observations[one.state, one.action] < 5
        assert one.visits == pytest.approx(share[one.state], abs=1e-6)


def test_costs_and_rewards_are_mirror_images(decision):
    model = a_model()
    turned = a_model(costs=None, rewards=-model.amounts).decide(checks=False, draws=400)
    (one,), (other,) = decision.groups, turned.groups
    assert (one.policy == other.policy).all()
    assert one.guarantee.value == -other.guarantee.value
    assert one.practice.mean == -other.practice.mean
    assert one.gain.mean == other.gain.mean
    assert one.guarantee.nested_value == -other.guarantee.nested_value
    assert one.practice.low == pytest.approx(-other.practice.high)
    assert "at most" in one.guarantee.words[0]
    assert "at least" in other.guarantee.words[0]


@pytest.mark.parametrize(("word", "sign", "side"), [("cost", 1, "most"), ("reward", -1, "least")])
def test_the_guarantee_at_the_worst_ends_of_ranges(word, sign, side):
    stated = np.array([[s, 2.5] for s in range(5)], dtype=float)
    low, high = stated - np.array([0.5, 0.0]), stated + np.array([0.75, 0.4])
    ends = (low, high) if sign > 0 else (-high, -low)
    given = {"costs": None, f"{word}s": Costs(word, sign * stated, *ends)}
    model = a_model(**given, dynamics=APART, level=0.3)
    decided = model.decide(checks=False, draws=200, levels=[0.3])
    (group,) = decided.groups
    bound = sign * group.guarantee.worst_value
    assert bound > sign * group.guarantee.value
    kernels = model.belief().sample(1500, rng=3)
    values = np.array([values_of(kernel, high, group.policy)[0] for kernel in kernels])
    # the bound gives away up to a per cent of the quantile that it stands for
    assert np.quantile(values, 0.88) < bound < np.quantile(values, 0.92) + 0.02 * values.mean()
    # no other costs in the ranges are worse
    rng = np.random.default_rng(0)
    for other in rng.uniform(low, high, size=(5, 5, 2)):
        found = [values_of(kernel, other, group.policy)[0] for kernel in kernels[:200]]
        assert np.mean(np.array(found) > bound) <= 0.1
    assert decided.as_json()["certificate"]["worst_value"] == sign * bound
    shown = bound_figure(sign * bound, side)
    assert f"at {side} {shown} wherever they lie in their" in " ".join(str(decided).split())
    assert f"wherever {word}s lie in their ranges" in decided_page(decided)


def decided_page(decision):
    """The text of the page, spaces as one."""
    text = re.sub(r"<[^>]*>", "", page_of(decision))
    return " ".join(html.unescape(text).split())


def test_without_ranges_there_is_no_other_guarantee(decision):
    (group,) = decision.groups
    assert group.guarantee.worst_value is None
    assert decision.as_json()["certificate"]["worst_value"] is None
    assert "range" not in str(decision)
    assert "stated values" not in group.guarantee.words[0]


def test_doing_the_same_is_not_being_worth_the_same():
    """Where nothing costs anything, no policy gains; that does not mean that it was followed."""
    decided = a_model(costs=np.zeros((5, 2)), dynamics=APART).decide(
        checks=False, draws=200, levels=[0.3]
    )
    (group,) = decided.groups
    assert (group.gain.mean, group.followed) == (0.0, False)
    for text in (str(decided), decided_page(decided)):
        assert "wherever anything was logged" not in text
    assert "It is worth as much as today's practice." in decided_page(decided)


def test_costs_that_are_too_far_apart_are_named():
    costs = np.array([[1e-9, 1e12]] * 5)
    with pytest.raises(ConvergenceError, match=r"costs must not be too far apart.*1e-09 to 1e\+12"):
        a_model(costs=costs, dynamics=APART).decide(checks=False, draws=200, levels=[0.3])


def test_what_is_the_same_in_all_draws_is_no_narrow_interval():
    """The cost of a policy that does not depend on what happens: rounding must not be shown."""
    costs = np.array([[1.0, 2.0]] * 5)
    decided = a_model(costs=costs, dynamics=APART, reset=None).decide(draws=200, levels=[0.3])
    (group,) = decided.groups
    mean = group.policies[group.recommended].mean
    assert (mean.mean, mean.low, mean.high) == (10.0, 10.0, 10.0)
    page = decided_page(decided)
    assert "Perfect information would save 0 on average" in page
    assert not re.search(r"\de-(?!06)\d|10\.000|0\.00000", str(decided) + page.split("Figures")[0])
    coverage = next(check for check in decided.checks if check.name == "coverage")
    assert "difference" not in coverage.consequence


def test_a_log_of_one_decision_does_not_tell_what_is_done():
    """Nobody knows what is done in the other states, even if the recommendation agrees."""
    log = log_of([0, 0], [0, 1], [0, 0], n_states=5, n_actions=2)
    decided = a_model(log, dynamics=APART).decide(checks=False, draws=200, levels=[0.3])
    (group,) = decided.groups
    assert group.policy[0] == 0
    assert group.practice_inferred > 0.9
    for text in (str(decided), decided_page(decided)):
        assert "inferred from other states" in " ".join(text.split())


def test_a_group_without_transitions_gets_an_answer_that_says_so():
    """Its rows are those of the other groups, as far as these vary."""
    log = wearing_log(group=True)
    empty = dataclasses.replace(log, group_names=(*log.group_names, "g2"))
    for dynamics in (Dynamics(draws=400), Dynamics(prior="uniform"), APART):
        model = a_model(empty, dynamics=dynamics)
        decided = model.decide(draws=200, levels=[0.3])
        last = decided.groups[-1]
        assert (last.name, last.units, last.transitions) == ("g2", 0, 0)
        assert last.practice_inferred > 0.9
        coverage = next(check for check in decided.checks if check.name == "coverage")
        assert (coverage.group, coverage.verdict != "fine") == ("g2", True)


def test_the_same_seed_gives_the_same_decision(decision):
    again = a_model().decide(checks=False, draws=400)
    one, other = decision.as_json(), again.as_json()
    one["fingerprint"].pop("made")
    other["fingerprint"].pop("made")
    assert one == other


def test_a_level_of_ones_own_is_followed():
    model = a_model(level=0.9, dynamics=APART)
    curious = model.decide(checks=False, draws=200, levels=[0.1, 0.5])
    assert [stop.level for stop in curious.groups[0].dial] == [0.1, 0.5, 0.9]
    assert curious.groups[0].dial[-1].policy == curious.groups[0].recommended
    assert (
        a_model(dynamics=APART).decide(level=0.2, checks=False, draws=200, levels=[0.5]).level
        == 0.2
    )


def test_the_file_of_numbers(decision, tmp_path):
    decision.write(numbers=tmp_path / "decision.json")
    found = json.loads((tmp_path / "decision.json").read_text())
    (group,) = decision.groups
    assert found["policy"] == {str(s): "ab"[group.policy[s]] for s in range(5)}
    assert found["certificate"]["confidence"] == 0.9
    assert found["certificate"]["value"] == group.guarantee.value
    assert found["certificate"]["nested_value"] == group.guarantee.nested_value
    assert found["practice"]["value"] == group.practice.mean
    gain = found["comparison"]["gain"]
    assert gain["ci95"][0] < gain["mean"] < gain["ci95"][1]
    assert found["comparison"]["probability_better"] == group.probability_better[0]
    assert found["value_of_information"]["perfect"] == group.perfect_information.mean
    assert found["checks"] == []
    assert {"data", "versions", "command"} <= set(found["fingerprint"])


def test_the_reference_names_every_key_of_the_file():
    rows = re.findall(r"^\| (`.*) \|$", FILES.read_text(), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    decided = a_model(wearing_log(group=True)).decide(draws=200, levels=[0.2, 0.5]).as_json()

    def keys(part):
        if isinstance(part, dict):
            for key, value in part.items():
                yield key
                if key not in ("policy", "figures", "versions"):  # labels, and a check's own
                    yield from keys(value)
        elif isinstance(part, list):
            for one in part:
                yield from keys(one)

    assert {key for key in keys(decided) if key not in ("g0", "g1")} <= named


def test_groups_stand_by_name(tmp_path):
    decided = a_model(wearing_log(group=True), dynamics=APART).decide(
        checks=False, draws=200, levels=[0.2, 0.5]
    )
    found = decided.as_json()
    assert set(found["groups"]) == {"g0", "g1"}
    assert "policy" not in found
    assert set(found["groups"]["g0"]["policy"].values()) <= {"a", "b"}
    frame = decided.to_frame()
    assert list(frame.columns) == ["group", "state", "action", "observations", "visits"]
    assert len(frame) == 10
    decided.write(policy=tmp_path / "policy.csv")
    model = a_model(wearing_log(group=True))
    loaded = read_policy(tmp_path / "policy.csv", model)
    for group in decided.groups:
        assert (loaded[group.name] == group.policy).all()


def hostile(labels, actions):
    log = log_of([0] * 30, [0, 1, 2] * 10, [0, 1] * 15, n_states=3, n_actions=2)
    space = StateSpace((Categories("state", labels),))
    return Model(
        type(log)(**{**vars(log), "states": space, "actions": actions}),
        costs=np.ones((3, 2)) * [1.0, 2.0],
        discount=GAMMA,
        dynamics=Dynamics(prior="uniform"),
    )


def test_cells_that_look_like_formulas_are_text_and_come_back(tmp_path):
    labels = ('=HYPERLINK("http://x")', "@SUM(1)", "-1")
    model = hostile(labels, ("'quoted", "+cmd|' /C calc'!A0"))
    decided = model.decide(checks=False, draws=200, levels=[0.5])
    decided.write(policy=tmp_path / "policy.csv")
    text = (tmp_path / "policy.csv").read_text()
    assert "'@SUM(1)" in text
    assert "\n-1," in text  # a number stays one
    loaded = read_policy(tmp_path / "policy.csv", model)
    assert (loaded[None] == decided.groups[0].policy).all()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "columns"),
        ("state;action\n0;a\n", "columns"),
        ("state,action\n0,a\n", "no.*|has none"),
        ("state,action\n0,a\n0,a\n", "twice"),
        ("state,action\n0,z\n", "unknown action"),
        ("state,action\nq,a\n", "line 2"),
    ],
)
def test_a_policy_that_cannot_be_read_is_named(text, words, tmp_path):
    path = tmp_path / "policy.csv"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=words):
        read_policy(path, a_model())


def test_thresholds_are_recognised():
    space = StateSpace((Categories("age", ("0", "1", "2", "3", "4", "5")),))
    visits, none = np.full(6, 1 / 6), np.zeros(0, dtype=np.int64)

    def words(policy, visits=visits):
        return policy_in_words(space, ("keep", "replace"), np.array(policy), visits, none)

    assert words([0] * 6) == ("Always keep.",)
    assert words([0, 0, 0, 1, 1, 1]) == (
        "Keep while age is below 3; replace where it is 3 or more.",
    )
    assert words([1, 0, 0, 1, 1, 1]) == (
        "Replace while age is below 1; keep where it is from 1 to 2; "
        "replace where it is 3 or more.",
    )
    assert words([1, 0, 1, 1, 1, 1]) == (
        "Replace while age is below 1; keep where it is 1; replace where it is 2 or more.",
    )
    rough = words([0, 0, 1, 0, 1, 0], np.array([0.5, 0.4, 0.1, 0.0, 0.0, 0.0]))
    assert rough[0] == "Keep while age is below 2; replace where it is 2 or more."
    assert "otherwise" in rough[1]
    listed = words([0, 1, 0, 1, 0, 1])
    assert listed == ("keep: 0, 2, 4.", "replace: 1, 3, 5.")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (71.4178, "71.42"), (-0.012346, "-0.01235"), (1234567.8, "1,234,568")],
)
def test_figures(value, text):
    assert figure(value) == text


def test_too_few_draws_are_refused():
    with pytest.raises(InvalidInputError, match="at least 200"):
        a_model().decide(draws=10)


@pytest.mark.parametrize(
    ("value", "side", "text"),
    [
        (71.4178, "most", "71.42"),
        (71.4112, "most", "71.42"),
        (71.4178, "least", "71.41"),
        (-71.4178, "most", "-71.41"),
        (31_267.2, "most", "31,268"),
        (9.9999, "most", "10.00"),
        (0.0, "most", "0"),
    ],
)
def test_bounds_are_rounded_in_the_safe_direction(value, side, text):
    assert bound_figure(value, side) == text


def test_what_is_done_already_gains_nothing():
    """Practice that is followed everywhere is not doubted where it was seen."""
    rng = np.random.default_rng(0)
    state, lines = 0, []
    for _ in range(300):
        action = int(state == 1)
        lines.append((state, action))
        state = 0 if action else int(rng.random() < 0.1)
    states, actions = np.array(lines).T
    log = log_of([0] * 300, states, actions, n_states=2, n_actions=2)
    model = Model(log, costs=[[0.0, 4.0], [9.0, 4.0]], discount=GAMMA, dynamics=APART)
    decided = model.decide(checks=False, draws=400, levels=[0.2, 0.5])
    (group,) = decided.groups
    assert group.policy.tolist() == [0, 1]
    assert (group.gain.mean, group.gain.low, group.gain.high) == (0.0, 0.0, 0.0)
    assert group.probability_better[0] == 0.0
    assert group.practice.mean == group.policies[group.recommended].mean.mean
    assert "This is what was done so far" in str(decided)


def test_an_action_never_tried_is_avoided_by_caution_and_worth_trying():
    rng = np.random.default_rng(1)
    state = rng.integers(4, size=400)
    log = log_of(np.repeat(np.arange(20), 20), state, 0 * state, n_states=4, n_actions=2)
    paid = np.arange(4.0)
    model = Model(
        log, costs=np.stack((paid, paid), 1), discount=GAMMA, dynamics=Dynamics(draws=400)
    )
    decided = model.decide(checks=False, draws=400, levels=[0.05, 0.95])
    (group,) = decided.groups
    cautious, curious = (group.policies[stop.policy].actions for stop in group.dial)
    assert (cautious == 0).all()
    assert (curious == 1).all()
    assert group.more_data[0].action == 1
    assert group.more_data[0].gain.mean > 0


def test_matched_rows_have_the_spread_of_draws():
    model = a_model()
    drawn = model.belief().sample(4000, rng=0)
    matched = model.matched_belief()
    assert matched.mean() == pytest.approx(drawn.mean(axis=0), abs=0.01)
    other = matched.sample(4000, rng=1)
    mine, theirs = (one.var(axis=0).sum(axis=-1) for one in (other, drawn))
    assert mine == pytest.approx(theirs, rel=0.25, abs=1e-4)


def test_a_high_confidence_stores_more_draws_or_is_refused():
    sure = a_model(confidence=0.99, dynamics=None).decide(checks=False, draws=200, levels=[0.5])
    assert sure.groups[0].guarantee.confidence == 0.99
    with pytest.raises(InvalidInputError, match=r"confidence must be at most 0\.996"):
        a_model(confidence=0.999)
