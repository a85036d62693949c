"""The sampled certificate: its rule, its claim, its choice of a policy."""

import math
from fractions import Fraction

import numpy as np
import pytest
from cases import KINDS, dense_kernel, random_policy
from scipy import stats

import brmdp
from brmdp.decisions import (
    Sampler,
    candidate_policies,
    certificate,
    certify,
    draws_needed,
    order_statistic,
    practice,
    values_in_draws,
)
from brmdp.decisions.certificate import _rank
from oracles import decisions as oracle
from problems import problem

ALPHA = 0.1

# --- the rule -------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", ["1/10", "1/2", "1/100", "9/10"])
@pytest.mark.parametrize("beta", ["1/1000000", "1/20", "49/100"])
def test_rank_against_exact_sums(alpha, beta):
    level, failure = Fraction(alpha), Fraction(beta)
    for n in (1, 2, 7, 43, 100, 131, 132, 133, 200):
        got = order_statistic(n, float(level), float(failure))
        assert got == oracle.largest_rank(n, level, failure), n


def test_rank_for_many_draws():
    """Against sums of logarithms, since exact fractions are slow here."""
    assert order_statistic(10_000, 0.1, 1e-6) == 860
    for n, alpha, beta in ((10_000, 0.1, 1e-6), (50_000, 0.05, 1e-9), (3_000, 0.7, 0.01)):
        law = stats.binom(n, alpha)
        rank = order_statistic(n, alpha, beta)
        assert law.cdf(rank - 1) <= beta < law.cdf(rank)


def test_fewest_draws():
    assert draws_needed(0.1) == 132
    assert draws_needed(0.01) == 1375
    for alpha in (0.003, 0.1, 0.5, 0.999):
        for beta in (1e-9, 0.01, 0.5):
            n = draws_needed(alpha, beta)
            assert order_statistic(n, alpha, beta) >= 1
            assert n == 1 or order_statistic(n - 1, alpha, beta) == 0


# --- the numbers ----------------------------------------------------------------------------------


@pytest.mark.long
def test_bound_is_the_order_statistic_of_fresh_draws(monkeypatch):
    """Recompute bound, quantile and gap from the draws that the certificate saw."""
    from brmdp.decisions import certificate

    seen = []

    class Spy(Sampler):
        def blocks(self, n):
            for block in super().blocks(n):
                seen.append((id(self), block.values, block.errors))
                yield block

    monkeypatch.setattr(certificate, "Sampler", Spy)
    case = KINDS["dense"](3)
    policy = random_policy(case, 1, stochastic=True)
    start = np.array([0.5, 0.25, 0.25, 0.0])
    got = certify(case.belief, case.rewards, case.discount, 0.8, policy=policy, start=start, rng=2)
    last = seen[-1][0]
    values = np.concatenate([v[:, 0] @ start - e[:, 0] for i, v, e in seen if i == last])
    assert any(i != last for i, _, _ in seen), "the pilot uses a sampler of its own"
    ordered = np.sort(values)
    assert got.draws == values.size
    law, beta = stats.binom(got.draws, 0.2), 1e-6 / got.looks
    assert law.cdf(got.rank - 1) <= beta < law.cdf(got.rank)
    assert got.value == ordered[got.rank - 1]
    assert got.quantile == ordered[math.ceil(0.2 * got.draws) - 1]
    assert got.share == got.rank / got.draws
    spread = np.subtract(*np.quantile(ordered, (0.75, 0.25)))
    assert got.gap == pytest.approx(
        (got.quantile - got.value) / max(abs(got.quantile), 0.1 * spread), rel=1e-12
    )
    assert got.values is None
    np.testing.assert_array_equal(got.policy, policy)

    seen.clear()
    got = certify(case.belief, case.rewards, case.discount, 0.8, policy=policy, rng=2)
    last = seen[-1][0]
    values = np.concatenate([v[:, 0] - e for i, v, e in seen if i == last])
    failed = (values < got.values - 1e-12).any(axis=1).sum()
    assert failed == got.rank - 1
    assert got.value is None


def test_more_draws_bring_the_gap_below_what_is_wanted():
    case = problem("riverswim")
    policy = np.ones(6, int)
    arguments = (case.belief, case.rewards, case.discount, 0.9)
    rough = certify(*arguments, policy=policy, start=0, draws=500, rng=1)
    assert rough.draws == 500
    assert not rough.gap_reached
    assert "the draws ended" in " ".join(str(rough).split())
    fine = certify(*arguments, policy=policy, start=0, draws=200_000, gap=0.06, nested=False, rng=1)
    assert fine.gap_reached
    assert 500 < fine.draws < 200_000
    assert rough.value < fine.value <= fine.quantile
    assert "the draws ended" not in " ".join(str(fine).split())


@pytest.mark.long
def test_known_kernels_and_absorbing_states():
    mdp = brmdp.envs.riverswim(6)
    best = brmdp.solve(mdp).values
    few = {"draws": 1000, "rng": 1}
    got = certify(mdp, mdp.rewards, mdp.discount, **few)
    np.testing.assert_allclose(got.values, best, rtol=1e-5)
    assert (got.values <= best).all()
    there = certify(mdp, mdp.rewards, mdp.discount, start=3, **few)
    assert there.value == pytest.approx(best[3], rel=1e-9)
    assert there.gap <= 1e-9
    case = KINDS["absorbing"](1)
    got = certify(case.belief, case.rewards, case.discount, **few)
    assert -1e-5 < got.values[-1] <= 0.0
    nothing = certify(case.belief, 0 * case.rewards, case.discount, **few)
    np.testing.assert_allclose(nothing.values, 0.0, atol=1e-12)


@pytest.mark.long
def test_the_bound_of_one_uncertain_row():
    """V(0) = 1/(1 − 0.9 p) with p ~ Beta(3, 2): the quantile is known."""
    belief = brmdp.DirichletBelief(np.array([[[3.0, 2.0]], [[0.0, 1.0]]]))
    rewards = [[1.0], [0.0]]
    got = certify(belief, rewards, 0.9, 0.8, start=0, draws=100_000, gap=0.003, rng=5)
    wanted = 1 / (1 - 0.9 * stats.beta(3, 2).ppf(0.2))
    assert 0.99 * wanted < got.value < wanted
    assert got.quantile == pytest.approx(wanted, rel=0.01)
    assert got.nested_value < wanted
    alone = certify(belief, rewards, 0.9, 0.8, draws=100_000, gap=0.003, rng=5)
    assert 0.98 * wanted < alone.values[0] < wanted


@pytest.mark.long
@pytest.mark.parametrize("trials", [160, pytest.param(400, marks=pytest.mark.slow)])
def test_failures_of_the_simulation_are_as_rare_as_stated(trials):
    """With β = 0.2, the bound exceeds the exact quantile in at most a fifth of the simulations."""
    belief = brmdp.DirichletBelief(np.array([[[3.0, 2.0]], [[0.0, 1.0]]]))
    wanted = 1 / (1 - 0.9 * stats.beta(3, 2).ppf(0.2))
    options = {"policy": [0, 0], "start": 0, "failure": 0.2, "nested": False}
    for draws, gap, several in ((400, 0.01, False), (4000, 0.02, True)):
        failed, looks = 0, set()
        for seed in range(trials):
            got = certify(
                belief, [[1.0], [0.0]], 0.9, 0.8, draws=draws, gap=gap, rng=seed, **options
            )
            failed += got.value > wanted
            looks.add(got.looks)
        assert (max(looks) > 1) == several
        assert stats.binomtest(failed, trials, 0.2, alternative="greater").pvalue > 1e-3
        if not several:
            assert failed > 0.1 * trials, "the rule is sharp with one look"


# --- the claim ------------------------------------------------------------------------------------


def violations(kinds, seeds, confidence, joint, **options):
    """How often the truth, drawn from the belief, lies below its certificate."""
    count = 0
    for kind in kinds:
        for seed in seeds:
            case = KINDS[kind](1000 + seed)
            start = None if joint else seed % case.n_states
            got = certify(
                case.belief,
                case.rewards,
                case.discount,
                confidence,
                start=start,
                nested=False,
                rng=seed,
                **{k: v(case, seed) for k, v in options.items() if callable(v)},
                **{k: v for k, v in options.items() if not callable(v)},
            )
            truth = case.belief.sample_entries(1, rng=np.random.default_rng([seed, 77]))[0]
            weights = np.asarray(got.policy)
            if weights.ndim == 1:
                weights = oracle.one_hot(weights, case.shape[1])
            values = oracle.policy_value(
                dense_kernel(case, truth), case.rewards, weights, case.discount
            )
            bound = got.values if joint else got.value
            count += bool((values < bound - 1e-12).any() if joint else values[start] < bound)
    return count


@pytest.mark.long
@pytest.mark.parametrize("joint", [False, True])
def test_truths_lie_above_their_certificates(joint):
    seeds = range(16)
    failed = violations(
        KINDS,
        seeds,
        0.7,
        joint,
        draws=2000,
        policy=lambda case, seed: random_policy(case, seed, stochastic=seed % 2 == 0),
    )
    n = len(KINDS) * len(seeds)
    assert stats.binomtest(failed, n, 0.3, alternative="greater").pvalue > 1e-3
    assert failed > 0.1 * n, "and not by being useless"


@pytest.mark.slow
@pytest.mark.parametrize(("confidence", "joint"), [(0.9, False), (0.9, True), (0.6, False)])
@pytest.mark.parametrize("chosen", [False, True])
def test_truths_lie_above_their_certificates_often(confidence, joint, chosen):
    """More than 2,000 posteriors for each way to certify; the choice of a policy does no harm."""
    seeds = range(300)
    options = {} if chosen else {"policy": lambda case, seed: random_policy(case, seed)}
    failed = violations(KINDS, seeds, confidence, joint, draws=3000, gap=0.05, **options)
    n = len(KINDS) * len(seeds)
    print(f"{failed} of {n} violations at 1 − {confidence}, joint={joint}, chosen={chosen}")
    assert stats.binomtest(failed, n, 1 - confidence, alternative="greater").pvalue > 1e-3


# --- draws that are not all fresh -----------------------------------------------------------------


class Stored(brmdp.DirichletBelief):
    """Says that its draws are worth only so many independent ones."""

    independent_draws = 500.0


def test_draws_that_are_not_fresh_count_for_what_they_are_worth():
    case = KINDS["dense"](6)
    belief = Stored(case.belief.concentration())
    policy = random_policy(case, 0)
    arguments = (case.rewards, case.discount, 0.9)
    fresh = certify(case.belief, *arguments, policy=policy, start=0, rng=0)
    got = certify(belief, *arguments, policy=policy, start=0, rng=0)
    assert got.draws == 10_000
    # 1/n = 1/10,000 + 1/500, and e for a sum of shares
    rank = order_statistic(476, 0.1, 1e-6 / np.e)
    assert got.rank == (rank - 1) * 10_000 // 476 + 1
    assert got.value < fresh.value
    assert fresh.independent_draws == np.inf
    text = " ".join(str(got).split())
    assert "worth about 500 independent ones" in text
    assert "learn_prior: draws=" in text
    joint = certify(belief, *arguments, policy=policy, rng=0)
    assert joint.rank == got.rank


@pytest.mark.parametrize(
    ("worth", "settings", "message"),
    [
        (0.0, {}, "its chains disagree"),
        (100.0, {}, "worth at least 149 independent ones for confidence 0.9"),
        (200.0, {"draws": 140}, "draws must be at least 490 for confidence 0.9"),
        ("many", {}, "independent_draws must be a number"),
        (np.nan, {}, "independent_draws must be a number"),
    ],
)
def test_draws_worth_too_little_are_refused(worth, settings, message):
    case = KINDS["dense"](6)
    belief = Stored(case.belief.concentration())
    belief.independent_draws = worth
    with pytest.raises(brmdp.InvalidInputError, match=message):
        certify(
            belief, case.rewards, case.discount, policy=random_policy(case, 0), start=0, **settings
        )


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_bounds_from_reused_draws_fail_as_rarely_as_they_say(share):
    """Values that depend on the stored draw wholly or in part; the quantile is known."""
    rng = np.random.default_rng(7)
    stored, reuse, failure = 300, 20, 0.05
    rank = _rank(stored * reuse, ALPHA, failure, float(stored))
    naive = order_statistic(stored * reuse, ALPHA, failure)
    quantile = stats.norm.ppf(ALPHA)
    wrong = {"counted": 0, "naive": 0}
    for _ in range(1000):
        common = np.repeat(rng.standard_normal(stored), reuse)
        own = rng.standard_normal(stored * reuse)
        values = np.sort(np.sqrt(share) * common + np.sqrt(1 - share) * own)
        wrong["counted"] += values[rank - 1] > quantile
        wrong["naive"] += values[naive - 1] > quantile
    assert stats.binomtest(wrong["counted"], 1000, failure, alternative="greater").pvalue > 1e-3
    if share == 1.0:
        assert wrong["naive"] > 0.2 * 1000


# --- the choice -----------------------------------------------------------------------------------


def test_candidates():
    case = problem("riverswim")
    found = candidate_policies(case.belief, case.rewards, case.discount)
    assert "mean" in found
    assert len({tuple(p) for p in found.values()}) == len(found)
    np.testing.assert_array_equal(found["mean"], case.plan(brmdp.Mean()).policy)
    own = KINDS["blend"](1)
    assert candidate_policies(own.belief, own.rewards, own.discount, rng=0)
    got = certify(own.belief, own.rewards, own.discount, start=0, rng=0)
    assert got.nested is None
    assert got.prior is None


def test_candidates_of_large_problems_are_planned_roughly(monkeypatch):
    rng = np.random.default_rng(1)
    belief = brmdp.DirichletBelief.uniform(6, 3)
    belief.observe(rng.integers(6, size=60), rng.integers(3, size=60), rng.integers(6, size=60))
    rewards = rng.normal(size=(6, 3))
    monkeypatch.setattr(certificate, "MANY_TRANSITIONS", 0)
    monkeypatch.setattr(certificate, "DRAWN_PLAN_TRANSITIONS", 0)
    found = candidate_policies(belief, rewards, 0.9)
    assert set(found) <= {"mean", "quantile 0.3", "quantile 0.1"}
    for level in (0.3, 0.1):
        risk = brmdp.Quantile(level)
        best = brmdp.plan(belief, rewards, 0.9, risk=risk).values
        values = np.max(
            [
                brmdp.evaluate_under_belief(belief, rewards, 0.9, p, risk=risk).values
                for p in found.values()
            ],
            axis=0,
        )
        assert (values >= best - 0.02 * np.abs(best).max()).all()


def test_the_best_candidate_is_certified():
    case = KINDS["dense"](6)
    best = case.plan(brmdp.Mean()).policy
    worst = case.evaluate(best, brmdp.Mean()).q_values.argmin(axis=1)
    toss = np.full(case.shape, 1 / 3)
    got = certify(
        case.belief,
        case.rewards,
        case.discount,
        candidates={"worst": worst, "toss": toss, "best": best, "again": best},
        start=0,
        draws=2000,
        rng=0,
    )
    assert got.name == "best"
    assert set(got.candidates) == {"worst", "toss", "best"}, "equal candidates count once"
    assert "best of 3 candidates" in str(got)
    np.testing.assert_array_equal(got.policy, best)
    alone = certify(
        case.belief, case.rewards, case.discount, candidates=[toss], start=0, draws=2000, rng=0
    )
    np.testing.assert_array_equal(alone.policy, toss)
    assert alone.prior.n_pairs == toss.size


def enumeration(seed, confidence=0.9):
    """What the chosen policy loses against the best of all, in quantiles of the value at state 0.

    It is relative to the difference between the best and the worst policy.
    """
    kind = ("dense", "sparse", "inadmissible", "disturbance", "scenarios", "absorbing")[seed % 6]
    case = KINDS[kind](2000 + seed, 4, 3 if kind == "inadmissible" else 2)
    got = certify(
        case.belief,
        case.rewards,
        case.discount,
        confidence,
        start=0,
        nested=False,
        draws=2000,
        rng=seed,
    )
    policies = list(oracle.all_policies(case.admissible))
    drawn = values_in_draws(
        case.belief, case.rewards, case.discount, policies, start=0, draws=8000, rng=seed + 5
    )
    low = np.quantile(drawn.values, 1 - confidence, axis=0, method="inverted_cdf")
    mine = next(k for k, p in enumerate(policies) if np.array_equal(p, got.policy))
    return (low.max() - low[mine]) / max(np.ptp(low), 1e-12)


@pytest.mark.long
def test_chosen_policy_against_all_policies():
    gaps = np.array([enumeration(seed) for seed in range(24)])
    assert (gaps < 0.01).mean() > 0.8
    assert gaps.mean() < 0.02


@pytest.mark.slow
def test_chosen_policy_against_all_policies_often():
    gaps = np.array([enumeration(seed) for seed in range(240)])
    print(
        f"hits {(gaps == 0).mean():.3f}, within 1 % {(gaps < 0.01).mean():.3f}, mean gap "
        f"{gaps.mean():.4f}, worst {gaps.max():.3f}"
    )
    assert (gaps < 0.01).mean() > 0.9
    assert gaps.mean() < 0.01


# --- words and bad input --------------------------------------------------------------------------


def test_a_confidence_is_never_rounded_up():
    case = problem("riverswim")
    # with such a failure 17,329 draws are enough
    options = {"policy": [0] * 6, "start": 0, "failure": 0.5, "draws": 18_000, "rng": 0}
    with pytest.warns(brmdp.PriorWarning):
        got = certify(case.belief, case.rewards, case.discount, 0.99996, **options)
    assert "probability at least 0.99996, the" in " ".join(str(got).split())
    assert "confidence=0.99996" in repr(got)


def test_words():
    case = problem("riverswim")
    with pytest.warns(brmdp.PriorWarning, match="this certificate rests heavily on the prior"):
        got = certify(case.belief, case.rewards, case.discount, start=0, draws=50_000, rng=0)
    text = " ".join(str(got).split())
    for part in (
        "With posterior probability at least 0.9",
        "its prior",
        "state and action alone",
        "nothing changes over time",
        "1e-06",
        "Proposition 1",
        f"{got.nested_value:.4g}",
        "rests heavily on the prior",
    ):
        assert part in text, part
    assert got.value > got.nested_value
    assert max(map(len, str(got).splitlines())) <= 100
    assert len(repr(got)) < 600
    everywhere = certify(case.belief, case.rewards, case.discount, draws=50_000, rng=0)
    assert "every state at once" in " ".join(str(everywhere).split())
    assert (everywhere.values > everywhere.nested.values).all()
    dependent = certify(
        *[getattr(KINDS["disturbance"](1), n) for n in ("belief", "rewards", "discount")],
        draws=50_000,
        rng=0,
    )
    assert "union bound" in " ".join(str(dependent).split())


def test_what_is_given_away_is_a_share_of_the_quantile_unless_that_is_close_to_zero():
    stay, lose = [[[1.0, 0.0]], [[0.0, 1.0]]], [[[0.0, 1.0]], [[0.0, 1.0]]]
    worlds = [(1.0 - p) * np.array(stay) + p * np.array(lose) for p in np.linspace(0.0, 1.0, 101)]
    belief = brmdp.ScenarioBelief(worlds, np.full(101, 1 / 101))

    def text_for(shift):
        rewards = np.zeros((2, 1, 2))
        rewards[0, 0, 1] = -1.0
        got = certify(belief, rewards + shift, 0.5, 0.8, start=0, draws=4000, rng=1)
        size = abs(got.quantile)
        return got, (got.quantile - got.value) / size if size else math.inf

    far, share = text_for(5.0)
    assert far.gap == pytest.approx(share)
    assert "close to zero" not in str(far)
    # the 20 % quantile of the value is about 2 * shift - 0.89
    near, share = text_for(0.445)
    assert near.gap < share
    assert "close to zero" in " ".join(str(near).split())


def test_gaps_next_to_zero_are_finite():
    """Nearly always worth nothing, rarely a loss: the quantile and the quartiles are zero."""
    stay, lose = [[[1.0, 0.0]], [[0.0, 1.0]]], [[[0.0, 1.0]], [[0.0, 1.0]]]
    belief = brmdp.ScenarioBelief([stay, lose], [0.9, 0.1])
    rewards = np.zeros((2, 1, 2))
    rewards[0, 0, 1] = -1.0
    found = set()
    for confidence in (0.85, 0.89, 0.91):
        got = certify(belief, rewards, 0.5, confidence, start=0, draws=3000, rng=1)
        assert np.isfinite(got.gap)
        assert "inf" not in str(got)
        found.add(round(got.value))
        joint = certify(belief, rewards, 0.5, confidence, draws=3000, rng=1)
        assert np.isfinite(joint.gap)
    assert found == {-1, 0}


def test_a_practice_is_certified_at_its_mean():
    case = KINDS["dense"](1)
    logged = practice(np.arange(12).reshape(4, 3))
    got = certify(case.belief, case.rewards, 0.8, policy=logged, start=0, draws=2000, rng=0)
    np.testing.assert_allclose(got.policy, logged.mean)


def test_how_far_a_policy_with_probabilities_rests_on_the_prior_is_said():
    case = problem("riverswim")
    weights = np.tile([0.25, 0.75], (6, 1))
    with pytest.warns(brmdp.PriorWarning, match="this certificate rests heavily on the prior"):
        got = certify(
            *(case.belief, case.rewards, case.discount),
            policy=weights,
            start=0,
            draws=2000,
            rng=0,
        )
    wanted = brmdp.prior_reliance(case.belief, weights, case.discount, start=0)
    assert str(got.prior) == str(wanted)
    assert str(wanted).splitlines()[0] in str(got)
    assert "rests on the prior" in repr(got)


def test_bad_arguments():
    case = KINDS["dense"](1)
    policy = random_policy(case, 1)

    def call(confidence=0.9, **named):
        certify(case.belief, case.rewards, 0.8, confidence, **{"rng": 0, **named})

    for confidence in (0.0, 1.0, float("nan"), 1.5, "high"):
        with pytest.raises(brmdp.InvalidInputError, match="confidence"):
            call(confidence)
    for named, message in (
        ({"draws": 131}, "draws must be at least 132"),
        ({"draws": 0}, "draws"),
        ({"confidence": 0.99, "draws": 1374}, "at least 1,375"),
        ({"failure": 0.0}, "failure"),
        ({"failure": 1.0}, "failure"),
        ({"gap": 0.0}, "gap"),
        ({"gap": float("nan")}, "gap"),
        ({"start": 4}, "start"),
        ({"start": -1}, "start"),
        ({"start": [0.5, 0.5, 0.5, 0.0]}, "start"),
        ({"policy": [[0.5, 0.4, 0.0]] * 4}, "sum to one"),
        ({"policy": [np.nan] * 4}, "policy"),
        ({"policy": policy, "candidates": [policy]}, "not both"),
        ({"candidates": []}, "at least one"),
        ({"candidates": {"mine": [9, 9, 9, 9]}}, "mine"),
    ):
        with pytest.raises(brmdp.InvalidInputError, match=message):
            call(**named)
    smallest = certify(case.belief, case.rewards, 0.8, draws=132, start=0, rng=0)
    assert smallest.rank == 1
    assert smallest.draws == 132
