"""Stocks with lost sales: from a log to a decision."""

import json

import numpy as np
import pytest
from tests.models.shops import (
    CAPACITY,
    DISCOUNT,
    LARGEST_ORDER,
    LAW,
    PRICES,
    lines,
    model_of,
    truth,
)

import brmdp
from brmdp.decisions.draws import Sampler
from brmdp.errors import ImpossibleTransitionError, InvalidInputError
from brmdp.models import Stock, StockModel
from brmdp.models.checks.stock import StockBench, split, survivals
from brmdp.models.stock import DemandBelief, DemandQuantile

FILE = """\
discount = 0.95
start = 3

[log]
file = "log.csv"
unit = "unit"
time = "day"

[state]
column = "stock"

[action]
column = "order"
labels = [0, 1, 2, 3, 4, 5]

[dynamics]
kind = "stock"
capacity = 6
largest_demand = 7

[reward]
sold = 3.0
ordered = -1.2
order = -2.0
held = -0.2
lost = -0.5
"""


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    return model_of(lines(LAW, days=90, rng=rng) + lines(LAW, days=60, unit="b", rng=rng))


@pytest.fixture(scope="module")
def decision(model):
    return model.decide(levels=(0.1, 0.5), draws=300, checks=False)


@pytest.fixture
def load(tmp_path):
    """Load a model file with some text in place of other text."""

    def load(*changes, rows=None):
        text = FILE
        for before, after in changes:
            assert text.count(before) == 1
            text = text.replace(before, after)
        rows = rows or lines(LAW, days=60, rng=np.random.default_rng(1))
        table = "group,unit,day,stock,order\n"
        table += "".join(",".join(map(str, row)) + "\n" for row in rows)
        (tmp_path / "log.csv").write_text(table)
        (tmp_path / "model.toml").write_text(text)
        return brmdp.read_model(tmp_path / "model.toml")

    return load


# --- what is known --------------------------------------------------------------------------------


def test_outcomes_and_rewards_are_those_of_the_inventory(model):
    problem = truth(LAW)
    np.testing.assert_array_equal(model.outcomes, problem.outcomes)
    admissible = problem.mdp.admissible
    np.testing.assert_allclose(
        model.rewards.rewards[admissible], problem.disturbance_rewards[admissible]
    )


def test_costs_have_the_opposite_sign(model):
    rows = lines(LAW, days=40, rng=np.random.default_rng(3))
    costs = model_of(rows, costs={name: -price for name, price in PRICES.items()})
    rewards = model_of(rows)
    np.testing.assert_allclose(costs.rewards.rewards, rewards.rewards.rewards)
    np.testing.assert_allclose(costs.amounts, -rewards.amounts)


def test_the_capacity_is_by_default_what_was_ever_there():
    found = model_of(
        [("g", "a", 0, 2, 5), ("g", "a", 1, 4, 0), ("g", "a", 2, 0, 1)], stock=Stock(7, 9)
    )
    assert found.capacity == 7
    by_default = model_of(
        [("g", "a", 0, 2, 5), ("g", "a", 1, 4, 0), ("g", "a", 2, 0, 1)],
        stock=Stock(),
        prices={"sold": 1.0},
    )
    assert by_default.capacity == by_default.largest_demand == 7
    assert by_default.states.labels == tuple("01234567")


def test_lost_demand_with_a_price_needs_a_largest_demand():
    with pytest.raises(InvalidInputError, match="largest_demand must be given"):
        model_of([("g", "a", 0, 2, 5), ("g", "a", 1, 4, 0)], stock=Stock(7))


def test_contradictions_are_left_out_and_counted():
    rows = [
        ("g", "a", 0, 2, 1),
        ("g", "a", 1, 3, 0),
        ("g", "a", 2, 5, 0),  # grew without an order
        ("g", "a", 3, 5, 5),  # beyond the capacity
        ("g", "a", 4, 6, 0),
        ("g", "a", 5, 0, 0),  # 6 sold, at most 4
        ("g", "a", 6, 0, 0),
    ]
    model = model_of(rows, stock=Stock(6, 4))
    assert {why: found.tolist() for why, found in model.contradicted.items()} == {
        "the stock grew by more than was ordered": [1],
        "stock and order exceed the capacity": [3],
        "more was sold than the largest demand": [4],
    }
    assert model.contradictions.tolist() == [1, 3, 4]
    assert model.belief().n_observations == 2  # one day without sales, one with at least 0
    log = next(check for check in model.check() if check.name == "log")
    assert log.verdict == "stop"
    assert log.figures["contradictions"] == 3


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"stock": Stock(2, 7)}, "capacity must be at least the largest stock of the log, 5"),
        ({"prices": {"price": 1.0}}, "rewards must map one or more of sold"),
        ({"prices": {"sold": float("nan")}}, "must be finite"),
    ],
)
def test_wrong_settings_are_refused(settings, match):
    with pytest.raises(InvalidInputError, match=match):
        model_of([("g", "a", 0, 5, 0), ("g", "a", 1, 4, 1)], **settings)


def test_wrong_stocks_are_refused():
    for wrong in (
        {"capacity": 0},
        {"largest_demand": 5000},
        {"strength": 0.0},
        {"pooling": "both"},
    ):
        with pytest.raises(InvalidInputError, match=next(iter(wrong))):
            Stock(**wrong)


# --- the law of the demand ------------------------------------------------------------------------


def test_the_belief_is_that_of_the_library(model):
    log = model.log
    other = brmdp.CensoredDisturbanceBelief(model.outcomes, 1.0 / LAW.size)
    other.observe(log.state, log.action, log.next_state)
    assert type(model.belief()) is DemandBelief
    np.testing.assert_array_equal(model.belief().counts(), other.counts())
    np.testing.assert_array_equal(model.belief().at_least_counts(), other.at_least_counts())
    single = DemandBelief(model.outcomes, 1.0 / LAW.size)
    for s, a, t in zip(log.state, log.action, log.next_state, strict=True):
        single.observe(int(s), int(a), int(t))
    np.testing.assert_array_equal(single.counts(), other.counts())


def test_impossible_steps_are_refused_and_nothing_is_learned(model):
    belief = model.prior_belief()
    with pytest.raises(ImpossibleTransitionError):
        belief.observe([3, 2], [0, 0], [2, 4])
    for wrong in ([9], [-1]):
        with pytest.raises(InvalidInputError):
            belief.observe(wrong, [0], [0])
    with pytest.raises(InvalidInputError, match="not admissible"):
        belief.observe(np.array([CAPACITY]), np.array([5]), np.array([1]))
    assert belief.n_observations == 0


def test_quantiles_are_order_statistics_of_common_draws(model):
    belief, rng = model.belief(), np.random.default_rng(5)
    draws = belief.sample_disturbance(200, rng=rng)
    operator = DemandQuantile(draws, 0.3).bind(belief)
    pattern = belief.pattern
    values = rng.normal(size=pattern.n_states)
    targets = belief.gather_rewards(model.rewards) + 0.9 * values[pattern.next_states]
    out = np.full(pattern.n_pairs, np.nan)
    error = operator.evaluate(targets, pattern.pairs, out)
    rows = operator.rows(targets, out, pattern.pairs).reshape(-1, LAW.size)
    for k, pair in enumerate(pattern.pairs):
        own = targets[pattern.indptr[pair] : pattern.indptr[pair + 1]]
        assert out[pair] == pytest.approx(np.sort(draws @ own)[59], abs=error + 1e-12)
        assert rows[k] @ own == pytest.approx(out[pair], abs=1e-9)
    assert np.isnan(out[np.setdiff1d(np.arange(pattern.n_pairs), pattern.pairs)]).all()


def test_plans_are_close_to_those_of_the_library(model):
    belief = model.belief()
    for level in (0.1, 0.6):
        risks = (model.quantile(belief, level), brmdp.Quantile(level))
        one, other = (brmdp.plan(belief, model.rewards, DISCOUNT, risk=risk) for risk in risks)
        assert one.status == other.status == "sampled"
        np.testing.assert_allclose(one.values, other.values, rtol=0.03)
    exact = model.quantile(model.prior_belief(), 0.3)
    assert isinstance(exact, brmdp.Quantile)


def test_shortcuts_make_the_demand_look_smaller(model):
    numbers = np.arange(LAW.size)
    believed = model.belief().disturbance_mean() @ numbers
    for way in ("left out", "sales"):
        assert model.naive_belief(None, way).disturbance_mean() @ numbers < believed


def test_evidence_counts_steps_with_as_much_on_the_shelf(model):
    there = model.log.state + np.array([int(a) for a in model.actions])[model.log.action]
    found = model.evidence()
    for s in range(CAPACITY + 1):
        for a in range(LARGEST_ORDER + 1):
            assert found[s, a] == (there >= s + a).sum()


def test_groups_have_demands_of_their_own_unless_pooled():
    rng = np.random.default_rng(2)
    rows = lines(LAW, days=50, rng=rng) + lines(LAW[::-1], days=50, unit="b", group="h", rng=rng)
    apart = model_of(rows, groups=True)
    assert apart.belief("g").n_observations == apart.belief("h").n_observations == 49
    assert not np.allclose(
        apart.belief("g").disturbance_mean(), apart.belief("h").disturbance_mean()
    )
    pooled = model_of(rows, groups=True, stock=Stock(CAPACITY, 7, pooling="pooled"))
    assert pooled.belief("g") is pooled.belief("h")
    assert pooled.belief("g").n_observations == 98


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("orders", "words"),
    [
        ([4, 3, 2, 1, 0, 0, 0], "Order up to 4."),
        (
            [5, 4, 3, 0, 0, 0, 0],
            "Order up to 5 where stock is 2 or less, and nothing where it is more.",
        ),
        (
            [5, 5, 4, 0, 0, 0, 0],
            "Order up to 6 as far as orders allow (at most 5 at a time) where stock is 2 or less, "
            "and nothing where it is more.",
        ),
        ([0] * 7, "Never order anything."),
        (
            [2, 2, 2, 0, 0, 0, 0],
            "Order 2 while stock is below 3; order 0 where it is 3 or more.",
        ),
    ],
)
def test_order_up_to_rules_are_recognised(model, orders, words):
    assert model.words(np.array(orders), np.full(7, 1 / 7)) == (words,)


def test_states_without_visits_do_not_hide_a_rule(model):
    visits = np.array([0.5, 0.3, 0.2, 0, 0, 0, 0])
    rule, other = model.words(np.array([2, 1, 0, 3, 0, 1, 0]), visits)
    assert rule == "Order up to 2."
    assert "no time" in other


# --- the decision ---------------------------------------------------------------------------------


def test_a_decision_has_all_parts(model, decision):
    found = json.loads(json.dumps(decision.as_json()))
    assert set(found["policy"]) == set(map(str, range(CAPACITY + 1)))
    assert found["certificate"]["value"] < found["value"]["mean"]
    assert found["certificate"]["nested_value"] is None
    assert found["comparison"]["gain"]["mean"] > 0
    names = [one["assumption"] for one in found["sensitivity"]]
    assert "sold 2.7 instead of 3" in names
    assert "a prior worth 10 steps instead of 1" in names
    assert "Order up to" in found["words"][0]
    assert len(found["value_of_information"]["pairs"]) in (1, 2)
    assert any("lost" in one for one in found["assumptions"])


def test_the_recommended_value_is_that_of_the_mean_law(model, decision):
    group = decision.groups[0]
    sampler = Sampler(model.belief(), model.rewards, DISCOUNT, [group.policy], rng=0)
    values = np.concatenate([block.values[:, 0, 3] for block in sampler.blocks(2000)])
    mean = group.policies[group.recommended].mean
    assert mean.mean == pytest.approx(values.mean(), abs=5 * mean.error)


@pytest.mark.long
def test_costs_give_the_same_policy():
    rows = lines(LAW, days=60, rng=np.random.default_rng(3))
    costs = {name: -price for name, price in PRICES.items()}
    found = [
        model_of(rows, **paid).decide(levels=(0.5,), draws=200, checks=False).groups[0]
        for paid in ({"costs": costs}, {"prices": PRICES})
    ]
    np.testing.assert_array_equal(found[0].policy, found[1].policy)
    assert found[0].guarantee.value == pytest.approx(-found[1].guarantee.value)
    assert found[0].gain.mean == pytest.approx(found[1].gain.mean)


@pytest.mark.long
def test_a_log_without_empty_shelves_has_exact_quantiles_and_a_nested_bound():
    rows = [("g", "a", day, 4 if day % 2 == 0 else 3, 1 if day % 2 else 0) for day in range(40)]
    model = model_of(rows)
    assert model.belief().is_dirichlet
    group = model.decide(levels=(0.3,), draws=200, checks=False).groups[0]
    assert group.guarantee.nested_value < group.guarantee.value


# --- the model file -------------------------------------------------------------------------------


def test_a_model_file_makes_the_same_model(load):
    found = load()
    rows = lines(LAW, days=60, rng=np.random.default_rng(1))
    direct = model_of(rows)
    assert isinstance(found, StockModel)
    np.testing.assert_allclose(found.amounts, direct.amounts)
    np.testing.assert_array_equal(found.belief().counts(), direct.belief().counts())
    np.testing.assert_array_equal(found.start(), direct.start())


def test_bins_of_width_one_are_stocks(load):
    bins = 'column = "stock"\nbins = { start = 0, width = 1, count = 7 }'
    found = load(('column = "stock"', bins))
    np.testing.assert_array_equal(found.belief().counts(), load().belief().counts())
    assert found.states.labels == tuple("0123456")


def test_stocks_beyond_the_capacity_are_dropped_lines(load):
    rows = [("g", "a", day, day % 3, 0) for day in range(30)] + [("g", "a", 30, 99, 0)]
    found = load(rows=rows)
    assert [one.lines for one in found.log.report.dropped if one.reason == "unknown label"] == [1]


def test_prices_may_have_ranges(load):
    found = load(("sold = 3.0", "sold = { low = 2, high = 4, value = 3 }"))
    names = [one.words for one in found.costs.alternatives()]
    assert names == ["sold 2 instead of 3", "sold 4 instead of 3"]
    least, greatest = (amounts for _, amounts in extremes(found, sold=(2, 4)))
    np.testing.assert_allclose(found.costs.low, least)
    np.testing.assert_allclose(found.costs.high, greatest)
    assert found.costs.worst is found.costs.low
    assert load().costs.worst is None


def extremes(model, sold):
    """Amounts (S, A, D) with each price of a bulb sold, in loops over all the model knows."""
    prices = model.prices
    for price in sold:
        found = np.zeros((model.capacity + 1, len(model.orders), model.largest_demand + 1))
        for s, a, d in np.ndindex(found.shape):
            there = s + model.orders[a]
            taken = min(there, d)
            found[s, a, d] = (
                price * taken
                + prices.ordered.value * model.orders[a]
                + prices.order.value * (model.orders[a] > 0)
                + prices.held.value * (there - taken)
                + prices.lost.value * (d - taken)
            )
        yield price, found


@pytest.mark.parametrize(
    ("before", "after", "match"),
    [
        ("capacity = 6", "capacity = 0", r"line 18: \[dynamics\] capacity must be a whole number"),
        (
            "capacity = 6",
            'prior = "learned"',
            r"line 18: \[dynamics\] prior is unknown; it belongs",
        ),
        ("capacity = 6", "reach = 3", r"reach is unknown; it belongs to a model without kind"),
        ('kind = "stock"', 'kind = "shop"', r'kind must be "free" or "stock"'),
        ('kind = "stock"\n', "", r"capacity is unknown; it belongs to kind"),
        ("largest_demand = 7\n", "", r"lost needs largest_demand"),
        ("held = -0.2", "holding = -0.2", r"line 25: \[reward\] holding is unknown"),
        ("held = -0.2", 'file = "x.csv"', r"file is unknown; it belongs to a model without"),
        ("held = -0.2", 'held = "much"', r"held must be a finite number"),
        ("labels = [0, 1, 2, 3, 4, 5]", "labels = [1, 2]", r"\[action\] column does not fit .* 0"),
        ("labels = [0, 1, 2, 3, 4, 5]", 'labels = ["no", 2]', r"must be orders: whole numbers"),
        ("start = 3", "start = 9", r"line 2: start must be a state"),
        (
            'column = "stock"',
            'column = "stock"\nbins = { start = 0, width = 2, count = 4 }',
            r"\[state\] column does not fit .* width 1",
        ),
    ],
)
def test_errors_of_a_model_file_name_line_and_key(load, before, after, match):
    with pytest.raises(InvalidInputError, match=match):
        load((before, after))


def test_the_keys_of_a_stock_do_not_fit_other_models(load):
    with pytest.raises(
        InvalidInputError, match=r"sold is unknown; it belongs to \[dynamics\] kind"
    ):
        load(('kind = "stock"\ncapacity = 6\nlargest_demand = 7\n', 'prior = "uniform"\n'))


# --- checks ---------------------------------------------------------------------------------------


def test_survivals_are_those_of_the_belief(model):
    belief = model.belief()
    exact, beyond = belief.counts().astype(float), belief.at_least_counts().astype(float)
    found = survivals(np.full(LAW.size, 1.0 / LAW.size), exact, beyond)
    np.testing.assert_allclose(-np.diff(found), belief.disturbance_mean())
    assert found[-1] == 0.0


def test_a_right_model_passes(model):
    verdicts = {check.name: check.verdict for check in model.check()}
    assert "stop" not in verdicts.values()
    assert set(verdicts) == {
        *("log", "coverage", "prior", "units", "drift", "memory", "shelf", "week", "prediction")
    }


def test_classes_that_differ_are_told_apart():
    rng = np.random.default_rng(4)
    rows = lines(LAW, days=150, rng=rng) + lines(LAW[::-1], days=150, unit="b", rng=rng)
    verdicts = {check.name: check.verdict for check in model_of(rows).check()}
    assert verdicts["units"] in ("look", "stop")
    for laws, verdict in (([LAW[::-1], LAW], "stop"), ([LAW, LAW[::-1]], "look")):
        # falling demand breaks the guarantee, and rising demand does not
        drifting = model_of(lines(np.repeat(laws, 150, axis=0), days=300, rng=rng))
        found = {check.name: check for check in drifting.check()}
        assert found["drift"].verdict == verdict
        assert ("would be false" in found["drift"].consequence) == (verdict == "stop")


def test_the_worst_group_decides_what_was_seen_of_the_demand():
    """Two groups with long logs would hide a third with five days, most of them sold out."""
    rng = np.random.default_rng(8)
    rows = lines(LAW, days=150, rng=rng) + lines(LAW, days=150, unit="b", group="h", rng=rng)
    rows += [("i", "c", f"2026-01-0{day}", 0, 1) for day in range(3, 9)]
    found = {check.name: check for check in model_of(rows, groups=True).check()}
    for name in ("coverage", "prior"):
        assert found[name].verdict != "fine"
        assert found[name].group == "i"
        assert "of group i" in found[name].finding
    assert found["coverage"].figures["sold_out"] == 1.0
    # alone, the other two are fine
    alone = {check.name: check for check in model_of(rows[:-6], groups=True).check()}
    assert (alone["coverage"].verdict, alone["coverage"].group) == ("fine", None)
    assert alone["prior"].figures["share"] < found["prior"].figures["share"]


def test_groups_that_are_pooled_wrongly_are_found():
    rng = np.random.default_rng(6)
    rows = lines(LAW, days=150, rng=rng) + lines(LAW[::-1], days=150, unit="b", group="h", rng=rng)
    pooled = model_of(rows, groups=True, stock=Stock(CAPACITY, 7, pooling="pooled"))
    found = next(check for check in pooled.check() if check.name == "groups")
    assert found.verdict == "stop"
    apart = model_of(rows, groups=True)
    assert "groups" not in {check.name for check in apart.check()}


def test_days_of_the_week_are_compared():
    rng = np.random.default_rng(8)
    laws = np.array([LAW[::-1] if day % 7 >= 5 else LAW for day in range(400)])
    found = {check.name: check for check in model_of(lines(laws, days=400, rng=rng)).check()}
    assert found["week"].verdict in ("look", "stop")
    assert found["week"].figures["standard_errors"] > 3
    assert found["drift"].verdict == "fine"


def test_a_split_of_nothing_is_none(model):
    bench = StockBench(model)
    label = np.zeros(bench.rows.size, dtype=np.int64)
    assert split(bench, label, np.random.default_rng(0)) is None


@pytest.mark.long
def test_a_short_log_is_decided():
    model = model_of([("g", "a", 0, 2, 0), ("g", "a", 1, 0, 3), ("g", "a", 2, 1, 0)])
    group = model.decide(levels=(0.5,), draws=200).groups[0]
    assert group.transitions == 2
    assert np.isfinite(group.guarantee.value)
