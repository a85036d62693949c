"""learn_prior: what it takes, what it chooses, what it says."""

import numpy as np
import pytest
from scipy import sparse

import brmdp
from brmdp.decisions import LearnedPrior, Transitions, learn_prior
from brmdp.planning import certify_nested
from problems_of_priors import logged, pattern_within, simulated

QUICK = {"draws": 80}


def drifting(n_states, n, rng, law=(0.1, 0.4, 0.3, 0.2), kappa=None):
    """Counts of an ordered state whose increments −1 … 2 follow one law, exactly or nearly."""
    counts = np.zeros((n_states, 1, n_states), dtype=int)
    for s in range(n_states):
        p = law if kappa is None else rng.dirichlet(kappa * np.array(law))
        steps = rng.choice([-1, 0, 1, 2], size=n, p=p)
        np.add.at(counts, (s, 0, np.clip(s + steps, 0, n_states - 1)), 1)
    return counts


def as_log(counts, **columns):
    s, a, t = np.nonzero(counts)
    times = counts[s, a, t]
    n_states, n_actions, _ = counts.shape
    return Transitions(
        *(np.repeat(column, times) for column in (s, a, t)),
        n_states=n_states,
        n_actions=n_actions,
        **columns,
    )


# --- what it takes --------------------------------------------------------------------------------


@pytest.mark.long
def test_counts_sparse_counts_and_logs_say_the_same():
    counts = np.random.default_rng(0).poisson(2.0, (4, 2, 4))
    forms = (counts, counts.tolist(), sparse.csr_matrix(counts.reshape(8, 4)), as_log(counts))
    found = [learn_prior(form, shape="destinations", rng=0, **QUICK) for form in forms]
    for other in found[1:]:
        assert other.strength == found[0].strength
        np.testing.assert_array_equal(other.posterior().counts(), counts)
        np.testing.assert_array_equal(other.belief().counts(), counts)


@pytest.mark.long
def test_the_same_seed_gives_the_same_result():
    counts = np.random.default_rng(0).poisson(2.0, (3, 1, 3))
    one, two = (learn_prior(counts, rng=7, **QUICK) for _ in range(2))
    assert one.strength == two.strength
    assert one.evidence == two.evidence
    np.testing.assert_array_equal(one.posterior().concentration(), two.posterior().concentration())


BAD_COUNTS = [
    ([[[-1, 2]], [[1, 1]]], "whole numbers of transitions from 0 to 2⁵³; got -1 at"),
    ([[[2**60, 2]], [[1, 1]]], "whole numbers of transitions from 0 to 2⁵³; got 1.15"),
    ([[[2**53, 2**53]], [[1, 1]]], "must add up to at most 2⁵³ transitions"),
    ([[[0.5, 2]], [[1, 1]]], r"got 0.5 at \(s=0, a=0, s'=0\)"),
    ([[[np.nan, 2]], [[1, 1]]], "counts must be finite; got nan"),
    ([[[np.inf, 2]], [[1, 1]]], "counts must be finite; got inf"),
    ([[1, 2], [3, 4]], r"counts must have shape \(S, A, S\)"),
    ([[["a", "b"]], [["c", "d"]]], "counts must be an array of real numbers"),
    (sparse.csr_array(np.ones((3, 2))), r"sparse matrix of shape \(S·A, S\)"),
    (sparse.csr_array(np.full((2, 2), 0.5)), "got 0.5 at"),
    ({}, "at least one group"),
    ({"a": np.ones((2, 1, 2)), "b": np.ones((3, 1, 3))}, "the same states and actions"),
    ({"a": np.ones((2, 1, 2)), "b": -np.ones((2, 1, 2))}, r"counts\['b'\] must be whole"),
]


@pytest.mark.parametrize(("counts", "message"), BAD_COUNTS)
def test_bad_counts_are_refused_by_name(counts, message):
    with pytest.raises(brmdp.InvalidInputError, match=message):
        learn_prior(counts)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shape": "circles"}, "shape must be one of auto, uniform"),
        ({"shape": None}, "shape must be one of"),
        ({"pooling": "all"}, "pooling must be one of auto, pooled, partial, separate"),
        ({"pooling": "partial"}, "pooling must be 'auto' or 'pooled' without groups"),
        ({"folds": 1}, "folds must be at least 2; got 1"),
        ({"folds": 2.5}, "folds must be a positive integer"),
        ({"draws": 3}, "draws must be at least 40"),
        ({"draws": 0}, "draws must be a positive integer"),
        ({"reach": 0}, "reach must be a positive integer; got 0"),
        ({"reach": 1.5}, "reach must be a positive integer"),
        ({"reach": 1, "possible": np.ones((3, 1, 3))}, "reach must not be given together"),
        ({"possible": np.ones((2, 1, 2))}, "possible must describe 3 states and 1 actions"),
        ({"admissible": [[1], [1], [1]]}, "admissible must be booleans"),
        ({"admissible": np.zeros((3, 1), dtype=bool)}, "no admissible action"),
        ({"strength_range": (1.0, 1.0)}, "strength_range must satisfy"),
        ({"strength_range": 5.0}, "strength_range must be a pair"),
        ({"strength_range": (np.nan, 1.0)}, "strength_range must be a positive finite"),
        ({"groups": [0]}, "groups must be None unless counts is a Transitions record"),
        ({"units": [0]}, "units must be None unless"),
        ({"rng": "seed"}, "rng must be"),
    ],
)
def test_bad_settings_are_refused_by_name(settings, message):
    with pytest.raises(brmdp.InvalidInputError, match=message):
        learn_prior(np.ones((3, 1, 3), dtype=int), **settings)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"unit": [1, 2]}, r"unit must hold one label per transition, shape \(3,\)"),
        ({"group": [[1, 2, 3]]}, "group must hold one label per transition"),
        ({"unit": [1.0, np.nan, 2.0]}, "unit must hold labels, text or integers"),
        ({"unit": ["a", None, "b"]}, "labels of one kind"),
        ({"action": [0, 1]}, "columns of the same length"),
        ({"next_state": [0, 1, -1]}, "next_state must lie in"),
        ({"next_state": [0, 1, 2.5]}, "next_state must be integers"),
        ({"n_states": 1}, "state must lie in 0..0"),
        ({"n_actions": 0}, "n_actions must be a positive integer"),
    ],
)
def test_bad_logs_are_refused_by_name(columns, message):
    given = {"state": [0, 1, 0], "action": [0, 0, 1], "next_state": [1, 1, 0]} | columns
    with pytest.raises(brmdp.InvalidInputError, match=message):
        Transitions(**given)


def test_labels_must_match_the_log():
    log = Transitions([0, 1, 0], 0, [1, 1, 0], unit=[1, 1, 2])
    assert repr(log) == "Transitions(3 transitions, 2 states, 1 action, 2 units)"
    with pytest.raises(brmdp.InvalidInputError, match="units must not be given"):
        learn_prior(log, units=[1, 2, 3])
    with pytest.raises(brmdp.InvalidInputError, match="groups must hold one label per transition"):
        learn_prior(log, groups=["a", "b"])
    with pytest.raises(brmdp.InvalidInputError, match="without transitions"):
        Transitions([], [], [])


def test_impossible_transitions_are_named():
    counts = np.zeros((4, 1, 4), dtype=int)
    counts[0, 0, 3] = 2
    with pytest.raises(brmdp.ImpossibleTransitionError, match="state=0, action=0, next_state=3"):
        learn_prior(counts, reach=2)
    with pytest.raises(brmdp.InvalidInputError, match="shape='destinations' needs the same"):
        learn_prior(np.eye(4, dtype=int)[:, None], reach=1, shape="destinations")


# --- little or no data ----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1])
def test_without_data_the_simplest_shape_answers_and_says_so(n):
    counts = np.zeros((3, 2, 3), dtype=int)
    counts[0, 0, 1] = n
    learned = learn_prior(counts, rng=0, **QUICK)
    assert learned.shape == "uniform"
    assert learned.evidence.folds == 0
    assert "Nothing to compare by" in str(learned)
    assert "action 1: no data that bear on κ" in str(learned)
    belief = learned.belief()
    kernels = belief.sample(50, rng=0)
    np.testing.assert_allclose(kernels.sum(axis=-1), 1.0, atol=1e-12)
    assert np.isfinite(learned.posterior().concentration()).all()
    assert "(by default, without data)" in " ".join(str(learned).split())
    assert "held-out prediction" not in str(learned)


@pytest.mark.parametrize("shape", ["auto", "increments", "destinations", "staying", "actions"])
def test_a_single_state_is_no_trouble(shape):
    learned = learn_prior([[[5], [2]]], shape=shape, rng=0, **QUICK)
    np.testing.assert_allclose(learned.belief().mean(), [[[1.0], [1.0]]], rtol=1e-14)
    np.testing.assert_array_equal(learned.posterior().mean(), [[[1.0], [1.0]]])
    assert all(found.observations == 0 for found in learned.strength)


@pytest.mark.long
def test_huge_counts_are_no_trouble_and_settle_everything():
    shares = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]])
    counts = np.rint(1e9 * shares).astype(np.int64)[:, None]
    learned = learn_prior(counts, shape="destinations", rng=0, draws=40)
    drawn = learned.belief().sample(5, rng=0)[:, :, 0]
    np.testing.assert_allclose(drawn, shares[None].repeat(5, 0), atol=1e-4)
    assert learned.strength[0].high < 1e3
    # the prior is worth less than 1,000 of 10⁹ observations
    np.testing.assert_allclose(learned.posterior().mean()[:, 0], shares, rtol=1e-5)


@pytest.mark.parametrize("shape", ["uniform", "destinations", "increments"])
def test_a_single_row_or_a_single_category(shape):
    one = np.zeros((3, 1, 3), dtype=int)
    one[1, 0] = 5, 2, 0
    learned = learn_prior(one, shape=shape, rng=0, **QUICK)
    np.testing.assert_allclose(learned.belief().mean().sum(axis=-1), 1.0)
    same = np.zeros((3, 1, 3), dtype=int)
    same[:, 0, 1] = 9
    learned = learn_prior(same, shape=shape, rng=0, **QUICK)
    mean = learned.belief().mean()
    np.testing.assert_allclose(mean.sum(axis=-1), 1.0)
    assert (mean[:, 0, 1] > 0.5).all()


@pytest.mark.long
def test_inadmissible_actions_have_no_rows():
    admissible = np.array([[True, True], [True, False], [True, True]])
    counts = np.zeros((3, 2, 3), dtype=int)
    counts[admissible] = np.random.default_rng(0).poisson(3.0, (5, 3))
    for shape in ("increments", "destinations", "staying", "actions", "uniform"):
        learned = learn_prior(counts, shape=shape, admissible=admissible, rng=0, **QUICK)
        np.testing.assert_array_equal(learned.belief().pattern.admissible, admissible)
        found = learned.belief().sample_entries(4, np.array([0, 5]), rng=np.random.default_rng(0))
        np.testing.assert_allclose(found.reshape(4, 2, 3).sum(axis=2), 1.0)


# --- strength -------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_strength_is_found_and_its_interval_holds_it():
    rng = np.random.default_rng(4)
    _, _, counts, _ = simulated(
        "destinations", 40, 1, 15.0, 40, rng, law=np.full(40, 1 / 40), reach=None
    )
    learned = learn_prior(counts.reshape(40, 1, 40), shape="destinations", rng=rng)
    found = learned.strength[0]
    assert found.low < 15.0 < found.high < 25.0
    assert found.edge == ""
    assert found.low < found.value < found.high
    assert found.observations == 1600


@pytest.mark.long
def test_strengths_at_the_edge_of_the_search_say_so_and_still_answer():
    alike = np.tile([12, 6, 2], (3, 1)).reshape(3, 1, 3)
    learned = learn_prior(alike, shape="destinations", rng=0, **QUICK)
    assert learned.strength[0].edge == "upper"
    assert "the rows may all have one law" in " ".join(str(learned).split())
    assert "at the edge of the range" in repr(learned)
    plan = brmdp.plan(learned.posterior(), np.eye(3)[:, :1], 0.9, risk=brmdp.Quantile(0.1))
    assert plan.status == "converged"
    apart = 40 * np.eye(8, dtype=int)[np.random.default_rng(0).permutation(8)][:, None]
    learned = learn_prior(apart, shape="destinations", strength_range=(1.0, 1e5), rng=0, **QUICK)
    assert learned.strength[0].edge == "lower"
    assert "the rows may share nothing" in " ".join(str(learned).split())
    assert np.isfinite(learned.belief().mean()).all()


# --- choices --------------------------------------------------------------------------------------


@pytest.mark.long
def test_increments_are_chosen_where_the_data_are_made_so():
    rng = np.random.default_rng(5)
    learned = learn_prior(drifting(25, 8, rng), rng=rng, **QUICK)
    assert learned.shape == "increments" == learned.evidence.chosen
    assert learned.evidence["uniform"].clearly_worse
    assert learned.evidence["actions"].note == "there is only one action"
    assert learned.evidence.settled
    labels, law = learned.law()
    np.testing.assert_allclose(law[np.isin(labels, [-1, 0, 1, 2])], [0.1, 0.4, 0.3, 0.2], atol=0.1)


@pytest.mark.long
@pytest.mark.parametrize("shape", ["destinations", "staying", "actions"])
def test_other_shapes_are_chosen_where_the_data_are_made_so(shape):
    rng = np.random.default_rng(6)
    n_states, n_actions = 12, 6
    law = None
    if shape == "staying":
        law = np.tile(np.append(0.5, np.full(n_states, 0.5 / n_states)), n_actions)
    _, _, counts, _ = simulated(shape, n_states, n_actions, 100.0, 8, rng, law=law)
    learned = learn_prior(counts.reshape(n_states, n_actions, n_states), rng=rng, **QUICK)
    assert learned.shape == shape


@pytest.mark.long
@pytest.mark.parametrize("trials", [4, pytest.param(10, marks=pytest.mark.slow)])
def test_the_simplest_is_chosen_where_nothing_differs(trials):
    rng = np.random.default_rng(7)
    chosen = []
    for _ in range(trials):
        pattern = pattern_within(6, 2)
        counts = logged(pattern, np.full(pattern.n_transitions, 1 / 6), 10, rng)
        chosen.append(learn_prior(counts.reshape(6, 2, 6), rng=rng, **QUICK).shape)
    assert chosen.count("uniform") >= 0.9 * trials


@pytest.mark.long
def test_units_are_the_blocks_of_the_comparison():
    counts = drifting(20, 8, np.random.default_rng(8))
    n = int(counts.sum())
    found = learn_prior(as_log(counts, unit=np.arange(n) % 16), rng=0, **QUICK).evidence
    assert (found.basis, found.blocks, found.folds, found.transitions) == ("units", 16, 5, n)
    assert found.factor == pytest.approx(2.17, abs=0.05)
    few = learn_prior(as_log(counts, unit=np.arange(n) % 3), rng=0, **QUICK).evidence
    assert (few.basis, few.blocks, few.folds) == ("units", 3, 3)
    one = learn_prior(as_log(counts, unit=np.zeros(n, dtype=int)), rng=0, **QUICK).evidence
    assert (one.basis, one.blocks) == ("transitions", 5)
    scores = [c.score for c in found.candidates if not c.note]
    assert max(scores) == found[found.chosen].score
    assert all(c.difference >= 0 for c in found.candidates if not c.note)
    assert "standard errors over 16 units" in str(found)
    with pytest.raises(KeyError):
        found["circles"]


@pytest.mark.long
def test_scores_are_sums_of_predictions_of_transitions_left_out():
    """By hand, for two units: each is predicted from the other alone."""
    one, two = np.array([[3, 1], [0, 2]]), np.array([[1, 1], [2, 4]])
    log = {"state": [], "next_state": [], "unit": []}
    for unit, table in enumerate((one, two)):
        for s, t in np.ndindex(2, 2):
            for column, value in zip(log, (s, t, unit), strict=True):
                log[column] += [value] * int(table[s, t])
    record = Transitions(log["state"], 0, log["next_state"], unit=log["unit"])
    score = 0.0
    for scored, given in ((one, two), (two, one)):
        fitted = learn_prior(given[:, None], shape="uniform", rng=0, **QUICK)
        mean = fitted.posterior(point="mode").mean()[:, 0]
        score += float((scored * np.log(mean)).sum())
    found = learn_prior(record, rng=0, **QUICK).evidence
    assert found["uniform"].score == pytest.approx(score, rel=1e-6)


# --- groups ---------------------------------------------------------------------------------------


def grouped(rng, n_groups, n, kappa, n_states=6):
    """Counts by group: rows of a group vary about common rows with strength κ."""
    common = rng.dirichlet(np.ones(n_states), size=n_states)
    counts = {}
    for g in range(n_groups):
        rows = np.array([rng.dirichlet(kappa * row + 1e-9) for row in common])
        counts[f"g{g}"] = rng.multinomial(n, rows)[:, None, :]
    return counts


@pytest.mark.long
def test_equal_groups_are_pooled_and_every_group_gets_the_same_belief():
    counts = grouped(np.random.default_rng(9), 3, 20, 1e6)
    learned = learn_prior(counts, shape="uniform", rng=1, **QUICK)
    assert learned.pooling == "pooled"
    assert learned.groups == ("g0", "g1", "g2")
    one, other = learned.posterior("g1"), learned.posterior()
    np.testing.assert_array_equal(one.concentration(), other.concentration())
    assert one.counts().sum() == sum(table.sum() for table in counts.values())


@pytest.mark.long
def test_groups_that_differ_a_little_are_partially_pooled():
    counts = grouped(np.random.default_rng(10), 6, 12, 12.0)
    learned = learn_prior(counts, shape="uniform", rng=1, **QUICK)
    assert learned.pooling == "partial"
    assert learned.pooling_evidence["pooled"].clearly_worse
    names = [found.name for found in learned.strength]
    assert names[0] == "action 0, over groups"
    assert names[1:] == [f"group 'g{g}'" for g in range(6)]
    with pytest.raises(brmdp.InvalidInputError, match="group must be one of 'g0'"):
        learned.belief()
    with pytest.raises(brmdp.InvalidInputError, match="group must be one of"):
        learned.posterior("nobody")
    with pytest.raises(brmdp.InvalidInputError, match="group must be one of"):
        learned.posterior(["g0"])
    belief = learned.belief("g2")
    np.testing.assert_array_equal(belief.counts(), counts["g2"])
    kernels = belief.sample(100, rng=0)
    np.testing.assert_allclose(kernels.sum(axis=-1), 1.0, atol=1e-12)
    # draws and mean agree, and rows lie between the group's own and all groups' together
    np.testing.assert_allclose(kernels.mean(axis=0), belief.mean(), atol=0.1)


@pytest.mark.long
def test_groups_that_share_nothing_stay_apart():
    rng = np.random.default_rng(11)
    counts = {}
    for g in range(3):
        kernel = rng.dirichlet(np.full(8, 0.5))
        counts[g] = rng.multinomial(6, np.tile(kernel, (8, 1)))[:, None, :]
    learned = learn_prior(counts, shape="destinations", rng=1, **QUICK)
    assert learned.pooling == "separate"
    assert [found.name for found in learned.strength] == [f"action 0, group {g}" for g in range(3)]
    assert not np.allclose(learned.posterior(0).mean(), learned.posterior(1).mean(), atol=0.05)


@pytest.mark.long
def test_groups_without_transitions_may_be_named():
    columns = ([0, 1, 0], 0, [1, 1, 0])
    log = Transitions(*columns, group=["a", "a", "c"], groups=["c", "b", "a"])
    learned = learn_prior(log, shape="destinations", pooling="partial", draws=40, rng=0)
    assert learned.groups == ("a", "b", "c")
    assert learned.posterior("b").counts().sum() == 0
    assert repr(log) == "Transitions(3 transitions, 2 states, 1 action, 3 groups)"
    for settings, message in (
        ({"groups": ["a"]}, "only together with group"),
        ({"group": ["a", "a", "c"], "groups": ["a"]}, "missing.*c"),
        ({"group": ["a", "a", "c"], "groups": ["a", "c", "a"]}, "each label once"),
        ({"group": ["a", "a", "c"], "groups": [["a", "c"]]}, "groups"),
    ):
        with pytest.raises(brmdp.InvalidInputError, match=message):
            Transitions(*columns, **settings)


@pytest.mark.parametrize("pooling", ["pooled", "partial", "separate"])
def test_a_group_without_data_gets_a_belief(pooling):
    counts = grouped(np.random.default_rng(12), 2, 15, 20.0, n_states=3)
    counts["new"] = np.zeros((3, 1, 3), dtype=int)
    learned = learn_prior(counts, shape="uniform", pooling=pooling, rng=0, **QUICK)
    belief = learned.belief("new")
    np.testing.assert_allclose(belief.mean().sum(axis=-1), 1.0)
    assert np.isfinite(learned.posterior("new").concentration()).all()
    if pooling == "partial":
        both = counts["g0"] + counts["g1"]
        share = both / both.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(belief.mean(), share, atol=0.25)
    if pooling != "pooled":
        assert "no data that bear on κ" in str([*map(str, learned.strength)])


@pytest.mark.long
def test_partial_pooling_of_one_group_with_much_data_is_close_to_its_own_rows():
    rng = np.random.default_rng(13)
    counts = grouped(rng, 2, 400, 5.0, n_states=4)
    learned = learn_prior(counts, shape="uniform", pooling="partial", rng=rng, draws=120)
    own = counts["g0"] / counts["g0"].sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(learned.belief("g0").mean(), own, atol=0.02)
    np.testing.assert_allclose(learned.posterior("g0").mean(), own, atol=0.02)


@pytest.mark.long
def test_the_shape_is_chosen_first_and_on_all_groups_together():
    """Groups of one vehicle each would not show the shape; all of them do."""
    rng = np.random.default_rng(14)
    counts = {g: drifting(12, 3, rng) for g in range(4)}
    learned = learn_prior(counts, reach=3, rng=0, **QUICK)
    together = learn_prior(sum(counts.values()), reach=3, rng=0, **QUICK)
    assert learned.shape == together.shape == "increments"
    assert learned.evidence.transitions == 4 * 12 * 3
    assert learned.pooling == "pooled"
    assert [found.name for found in learned.pooling_evidence.candidates] == [
        "pooled",
        "partial",
        "separate",
    ]


# --- what comes out -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def learned() -> LearnedPrior:
    counts = drifting(10, 12, np.random.default_rng(20), kappa=20.0)
    return learn_prior(counts, shape="increments", reach=3, draws=400, rng=0)


def test_the_belief_at_point_values_is_a_plain_one_with_exact_plans(learned):
    for point in ("mean", "mode"):
        belief = learned.posterior(point=point)
        assert type(belief) is brmdp.DirichletBelief
        prior, data = belief.evidence(belief.pattern.pairs)
        wanted = learned.strength[0].value if point == "mean" else learned.strength[0].mode
        np.testing.assert_allclose(prior, wanted, rtol=1e-9)
        assert (data == 12).all()
    plan = brmdp.plan(belief, np.arange(10.0)[:, None], 0.9, risk=brmdp.Quantile(0.1))
    assert plan.status == "converged"
    assert plan.prior.observations == 120
    with pytest.raises(brmdp.InvalidInputError, match="point must be 'mean' or 'mode'"):
        learned.posterior(point="median")


def test_the_joint_belief_serves_planners_from_draws_and_gets_no_nested_certificate(learned):
    belief = learned.belief()
    assert not belief.rows_independent
    rewards = np.arange(10.0)[:, None]
    risk = brmdp.Quantile(0.1, method=brmdp.MonteCarlo(samples=200, rng=0))
    assert brmdp.plan(belief, rewards, 0.9, risk=risk).status == "sampled"
    assert brmdp.plan(belief, rewards, 0.9, risk=brmdp.Mean()).status == "converged"
    reliance = brmdp.prior_reliance(belief, [0] * 10, 0.9)
    assert reliance.observations == 120
    with pytest.raises(brmdp.InvalidInputError):
        certify_nested(belief, rewards, 0.9)
    found = brmdp.posterior_quantile_value(belief, rewards, 0.9, [0] * 10, rng=0)
    assert np.isfinite(found.values).all()


def test_the_mean_is_that_of_the_draws(learned):
    belief = learned.belief()
    draws = belief.sample_entries(20_000, rng=np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), belief.mean_entries(), atol=0.01)
    belief.mean_entries()[:] = 0.0
    assert belief.mean_entries().sum() == pytest.approx(10.0)


def test_rows_of_some_pairs_are_those_of_the_whole(learned):
    belief = learned.belief()
    pairs = np.array([7, 2])
    found = belief.sample_entries(5000, pairs, rng=np.random.default_rng(1))
    mean = belief.pattern.take(belief.mean_entries(), pairs)
    np.testing.assert_allclose(found.mean(axis=0), mean, atol=0.02)


def test_stored_draws_are_used_equally_often(learned):
    belief = learned.belief()
    used = []
    plain = belief._hyper

    class Watched:
        def __len__(self):
            return len(plain)

        def prior(self, draws, entries, rng):
            used.append(draws)
            return plain.prior(draws, entries, rng)

    belief._hyper = Watched()
    belief.sample_entries(1000, rng=np.random.default_rng(2))
    times = np.bincount(used[0], minlength=400)
    assert set(times) == {2, 3}


def test_too_large_a_sample_is_refused(learned, monkeypatch):
    monkeypatch.setattr("brmdp.decisions.hierarchical.LARGEST_SAMPLE", 1000)
    with pytest.raises(brmdp.InvalidInputError, match="n must be at most"):
        learned.belief().sample(100, rng=0)


def test_laws_by_number(learned):
    labels, law = learned.law(0)
    assert labels.tolist() == list(range(-3, 4))
    assert law.sum() == pytest.approx(1.0)
    for bad in (1, -1, "0", True):
        with pytest.raises(brmdp.InvalidInputError, match=r"number must be an integer in 0\.\.0"):
            learned.law(bad)
    plain = learn_prior(np.ones((2, 1, 2), dtype=int), shape="uniform", rng=0, **QUICK)
    with pytest.raises(brmdp.InvalidInputError, match="has no law"):
        plain.law()


@pytest.mark.long
def test_texts_fit_a_screen_and_say_what_they_rest_on(learned):
    for text in (str(learned), repr(learned), repr(learned.belief()), str(learned.mixing)):
        assert max(map(len, str(text).splitlines())) <= 200
    lines = str(learned).splitlines()
    assert max(map(len, lines)) <= 100
    assert "increments (given)" in lines[0]
    assert "prove with belief()" in " ".join(lines)
    many = learn_prior(np.ones((2, 12, 2), dtype=int), rng=0, **QUICK)
    assert "… and 7 more" in str(many)
    assert max(map(len, str(many).splitlines())) <= 100
    assert len(repr(many.evidence)) < 400


@pytest.mark.long
def test_chains_that_disagree_are_reported(monkeypatch):
    monkeypatch.setattr("brmdp.decisions.gibbs.LARGEST_R_HAT", 0.5)
    found = learn_prior(np.ones((3, 1, 3), dtype=int), shape="destinations", rng=0, **QUICK)
    assert not found.mixing.mixed
    assert "THE CHAINS DISAGREE" in str(found)
    assert "NOT MIXED" in repr(found.belief())


def test_large_laws_store_fewer_draws(monkeypatch):
    monkeypatch.setattr("brmdp.decisions.learned_prior.LARGEST_STORE", 500)
    found = learn_prior(np.ones((4, 1, 4), dtype=int), shape="destinations", rng=0)
    assert found.mixing.draws == 100
