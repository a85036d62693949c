"""Custom beliefs and risk measures: planned honestly, checked at the boundary, or refused."""

import re

import numpy as np
import pytest
from scipy import stats

import brmdp
from brmdp import agents
from brmdp.planning import certify_nested
from brmdp.risk.measures import DRAW_SEED, DRAWS
from foreign import Altered, Boastful, Jittered, MeanPlus, Storable, Sure
from problems import dense, disturbance, problem, scenarios

CASE = dense(1)
PHI = CASE.belief.concentration()
INVALID = brmdp.InvalidInputError


def plan_of(belief, risk, **options):
    return brmdp.plan(belief, CASE.rewards, CASE.discount, risk=risk, **options)


# --- beliefs: quantiles from draws ----------------------------------------------------------------


def empirical(draws, levels, lower_tail):
    """Oracle: the ⌈nα⌉-th smallest draw, or the mean of the lowest nα, the last counted in part."""

    def risk(pair, targets):
        begin, end = CASE.belief.pattern.indptr[pair : pair + 2]
        values = np.sort(draws[:, begin:end] @ targets[begin:end])
        wanted = levels * len(values)
        if not lower_tail:
            return values[int(np.ceil(wanted - 1e-9)) - 1]
        whole = int(wanted)
        return (
            values[:whole].sum() + (wanted - whole) * values[min(whole, len(values) - 1)]
        ) / wanted

    return risk


@pytest.mark.parametrize(("measure", "lower_tail"), [(brmdp.Quantile, False), (brmdp.CVaR, True)])
@pytest.mark.parametrize("level", [0.1, 0.37])
def test_a_belief_that_offers_draws_is_planned_from_draws(measure, lower_tail, level):
    got = plan_of(Jittered(PHI), measure(level))
    assert got.status == got.basis == "sampled"
    assert "of the sampled problem" in repr(got)
    mean, exact = CASE.plan(brmdp.Mean()), CASE.plan(measure(level))
    assert exact.status == "converged"
    assert "sampled" not in repr(exact)
    apart = np.abs(mean.values - exact.values).max()
    assert np.abs(got.values - exact.values).max() < 0.1 * apart, (
        "near the truth, far from the mean"
    )
    # the fixed point of the same draws, sorted by hand
    draws = Jittered(PHI).sample_entries(DRAWS, rng=np.random.default_rng(DRAW_SEED))
    risk = empirical(draws, level, lower_tail)
    rewards, next_states = CASE.rewards.reshape(-1), CASE.belief.pattern.next_states
    values = np.zeros(CASE.n_states)
    for _ in range(130):
        targets = rewards + CASE.discount * values[next_states]
        values = np.array([risk(pair, targets) for pair in range(12)]).reshape(4, 3).max(axis=1)
    np.testing.assert_allclose(got.values, values, rtol=0, atol=got.error_bound + 1e-10)
    np.testing.assert_array_equal(got.values, plan_of(Jittered(PHI), measure(level)).values)


def test_extreme_levels_take_more_draws_or_are_refused():
    low = brmdp.Quantile(1e-3).bind(Jittered(PHI))
    assert low._weights.size == 20_000
    assert brmdp.Quantile(1 - 1e-3).bind(Jittered(PHI))._weights.size == 20_000
    assert brmdp.CVaR(0.999).bind(Jittered(PHI))._weights.size == DRAWS
    with pytest.raises(
        INVALID, match=r"alpha=1e-09 is too small for a Jittered.*: 20,000,000,000 draws"
    ):
        plan_of(Jittered(PHI), brmdp.Quantile(1e-9))


def test_only_a_known_kernel_falls_back_on_the_mean():
    mean = CASE.plan(brmdp.Mean())
    for measure in (brmdp.Quantile(0.1), brmdp.CVaR(0.1), brmdp.Quantile(0.1, "saddlepoint")):
        got = plan_of(Sure(PHI), measure)
        assert got.status == "converged"
        np.testing.assert_allclose(got.values, mean.values, rtol=0, atol=1e-12)
    with pytest.raises(INVALID, match=r"saddlepoint.* needs Dirichlet rows; got a Jittered"):
        plan_of(Jittered(PHI), brmdp.Quantile(0.1, "saddlepoint"))

    class Silent(Jittered):
        sample_entries = None

    with pytest.raises(
        INVALID, match=r"method sample_entries\(\) to be planned from draws; Silent has none"
    ):
        plan_of(Silent(PHI), brmdp.Quantile(0.1))
    assert plan_of(Silent(PHI), brmdp.Mean()).status == "converged"


def test_certify_refuses_draws_and_errs_when_it_is_contradicted():
    problem = (CASE.rewards, CASE.discount, 0.9)
    with pytest.raises(
        INVALID, match="exact quantiles for a certificate; a Jittered offers only draws"
    ):
        certify_nested(Jittered(PHI), *problem)
    for kind in (Boastful, Sure):
        with pytest.raises(
            brmdp.ContradictionError,
            match=rf"held only in \d+ of 1000: the draws of the {kind.__name__} do not follow",
        ):
            certify_nested(kind(PHI), *problem, rng=1)
        assert certify_nested(kind(PHI), *problem, coverage_samples=0).coverage is None

    class Undecided(Boastful):
        rows_independent = None

    with pytest.raises(INVALID, match="rows_independent"):
        certify_nested(Undecided(PHI), *problem)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_contradiction_is_a_binomial_tail_below_one_in_a_million(confidence):
    """V = 1/(1 − γp) at state 0 and 0 at state 1, with p prescribed draw by draw.

    The bounds hold in exactly ``held`` of 200 draws.
    """
    law = stats.binom(200, confidence)
    least = int(np.flatnonzero(law.cdf(np.arange(201)) >= 1e-6)[0])

    class Prescribed(Sure):
        def sample_entries(self, n, pairs=None, *, rng):
            p = np.where(np.arange(n) < self.held, 0.9, 0.1)
            return np.stack([p, 1 - p, np.ones(n)], axis=1)

    belief = Prescribed([[[1.0, 1.0]], [[0.0, 1.0]]])
    rewards = np.array([[1.0], [0.0]])
    belief.held = least
    got = certify_nested(belief, rewards, 0.9, confidence, coverage_samples=200)
    assert got.coverage == least / 200
    belief.held = least - 1
    with pytest.raises(brmdp.ContradictionError, match=f"held only in {least - 1} of 200"):
        certify_nested(belief, rewards, 0.9, confidence, coverage_samples=200)


@pytest.mark.parametrize(
    ("method", "change", "message"),
    [
        ("mean_entries", lambda a: a[:-1], r"must have shape \(48,\); got \(47,\)"),
        ("mean_entries", lambda a: a * 1.01, r"must sum to one over s'; got 1.01 at \(s=0, a=0\)"),
        ("mean_entries", lambda a: a * np.nan, "must be finite"),
        ("sample_entries", lambda a: a[:, :-1], "must have shape"),
        ("sample_entries", lambda a: a[:-1], "must have shape"),
        ("sample_entries", lambda a: a - 1.0, "must not be negative"),
        ("sample_entries", lambda a: a.astype(complex), "real numbers"),
        ("gather_rewards", lambda a: a[:-1], "one number per possible transition"),
    ],
)
def test_what_a_belief_returns_is_checked(method, change, message):
    class Poor(Jittered):
        pass

    def poor(self, *arguments, **options):
        return change(getattr(Jittered, method)(self, *arguments, **options))

    setattr(Poor, method, poor)
    risks = [brmdp.Mean()] if method == "mean_entries" else [brmdp.Quantile(0.1), brmdp.CVaR(0.1)]
    if method == "sample_entries":
        risks += [
            brmdp.PosteriorSample(rng=1),
            brmdp.Quantile(0.1, brmdp.MonteCarlo(samples=5, rng=1)),
        ]
    for risk in risks:
        with pytest.raises(INVALID, match=rf"Poor.{method} .*{message}"):
            plan_of(Poor(PHI), risk)


def test_concentrations_and_patterns_of_ones_own_are_checked():
    class Short(Boastful):
        concentration_entries = property(lambda self: self._flat[:-1])

    class NoOffsets(Jittered):
        concentration_entries = property(lambda self: self._flat)

    class Beyond(Jittered):
        def __init__(self, phi):
            super().__init__(phi)
            self.pattern.next_states[3] = 10**9

    for kind, message in (
        (Short, "one number per successor"),
        (NoOffsets, "concentration_offsets"),
        (Beyond, "next_states must lie"),
    ):
        with pytest.raises(INVALID, match=f"{message}"):
            plan_of(kind(PHI), brmdp.Quantile(0.1))


# --- beliefs in agents ----------------------------------------------------------------------------


def agent_of(belief):
    return brmdp.Agent(
        belief,
        CASE.rewards,
        CASE.discount,
        risk=brmdp.Mean(),
        restart=agents.EveryStep(),
        ties="lowest",
        rng=0,
    )


def test_an_agent_with_a_belief_of_ones_own_is_saved_or_names_the_method(tmp_path):
    agent = agent_of(Jittered(PHI))
    agent.observe(0, agent.act(0), 1)
    with pytest.raises(
        INVALID, match=r"a Jittered cannot be saved: .* missing: arrays, from_arrays"
    ):
        agent.save(tmp_path / "agent.npz")
    assert not list(tmp_path.iterdir())
    agent = agent_of(Storable(PHI))
    agent.observe(0, agent.act(0), 1)
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(INVALID, match=r"belief was a Storable.*load\(path, belief=…\)"):
        brmdp.Agent.load(tmp_path / "agent.npz")
    twin = brmdp.Agent.load(tmp_path / "agent.npz", belief=Storable)
    np.testing.assert_array_equal(twin.policy, agent.policy)
    np.testing.assert_array_equal(twin.belief.mean_entries(), agent.belief.mean_entries())


def test_an_agent_names_what_its_belief_lacks():
    class Rigid(Jittered):
        @property
        def copy(self):
            raise AttributeError

    with pytest.raises(INVALID, match=r"belief must have all members .*; Rigid lacks copy"):
        agent_of(Rigid(PHI))


class Forgetful(brmdp.DirichletBelief):
    """Learns only from every other observation."""

    odd = False

    def observe(self, state, action, next_state):
        self.odd = not self.odd
        if self.odd:
            super().observe(state, action, next_state)


def test_an_agent_keeps_a_subclass_of_the_librarys_belief(tmp_path):
    agent = brmdp.Agent(
        Forgetful(np.ones((3, 2, 3))),
        np.eye(3)[:, :2],
        0.9,
        risk=brmdp.Mean(),
        restart=brmdp.agents.EveryStep(),
        rng=0,
    )
    for _ in range(10):
        agent.observe(0, agent.act(0), 1)
    agent.act(0)
    assert isinstance(agent.belief, Forgetful)
    assert agent.belief.counts().sum() == 5
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(INVALID, match=r"belief was a Forgetful"):
        brmdp.Agent.load(tmp_path / "agent.npz")
    assert isinstance(brmdp.Agent.load(tmp_path / "agent.npz", belief=Forgetful).belief, Forgetful)


@pytest.mark.parametrize(
    "belief",
    [disturbance(14).belief, scenarios(15).belief],
    ids=lambda belief: type(belief).__name__,
)
def test_a_copy_of_a_subclass_is_one(belief):
    named = type("Named", (type(belief),), {})
    named_belief = named.from_arrays(belief.arrays(), "here")
    named_belief.name = "mine"
    twin = named_belief.copy()
    assert type(twin) is named
    assert twin.name == "mine"


# --- measures -------------------------------------------------------------------------------------


def test_a_sound_measure_of_ones_own_is_planned_like_the_librarys():
    for inner in (
        brmdp.Quantile(0.2),
        brmdp.CVaR(0.3),
        brmdp.Mean(),
        brmdp.Quantile(0.2, "saddlepoint"),
    ):
        own, plain = CASE.plan(Altered(inner)), CASE.plan(inner)
        np.testing.assert_array_equal(own.values, plain.values)
        assert (own.status, own.error_bound, own.basis) == (
            plain.status,
            plain.error_bound,
            plain.basis,
        )
        np.testing.assert_allclose(own.kernel(), plain.kernel(), rtol=0, atol=1e-9)
    shifted = Altered(evaluate=lambda bound: lambda w, pairs, out: _shift(bound, w, pairs, out))
    np.testing.assert_allclose(
        CASE.plan(shifted).values, CASE.plan(brmdp.Quantile(0.2)).values - 5.0, atol=1e-7
    )


def _shift(bound, targets, pairs, out):
    """A constant fee for every decision keeps monotonicity and q(w + c) = q(w) + c."""
    error = bound.evaluate(targets, pairs, out)
    out[pairs] -= 1.0
    return error


@pytest.mark.parametrize("method", ["newton", "value-iteration"])
@pytest.mark.parametrize("weight", [4.0, 1.0, -4.0])
@pytest.mark.parametrize("honest", [True, False])
def test_mean_and_deviations_have_no_error_bound(method, weight, honest):
    """The measure is not monotone, so there are several fixed points.

    No result may say "converged", whether or not the rows show it.
    """
    with pytest.raises(brmdp.RiskMeasureError, match="MeanPlus"):
        CASE.plan(MeanPlus(weight, honest), method=method, tolerance=1e-4, max_iterations=300)


def rows_changed(change):
    return lambda bound: lambda *arguments, **options: change(bound.rows(*arguments, **options))


def evaluate_changed(after, result=None):
    def of(bound):
        def evaluate(targets, pairs, out):
            error = bound.evaluate(targets, pairs, out)
            after(out, pairs)
            return error if result is None else result

        return evaluate

    return of


def scribble(out, pairs):
    out[:] = np.where(np.isnan(out), 1.0, out)


def set_nan(out, pairs):
    out[pairs[0]] = np.nan


def nothing(out, pairs):
    """Leave the values unchanged."""


BAD_MEASURES = {
    "rows too short": (
        {"rows": rows_changed(lambda r: r[:-1])},
        "rows must hold one number per possible transition",
    ),
    "rows too long": (
        {"rows": rows_changed(lambda r: np.append(r, 0.0))},
        "rows must hold one number",
    ),
    "rows as a matrix": ({"rows": rows_changed(lambda r: r[:, None])}, "rows must hold one number"),
    "rows as a list": ({"rows": rows_changed(list)}, "rows must be an array"),
    "rows complex": (
        {"rows": rows_changed(lambda r: r * 1j)},
        "rows must be an array of real numbers",
    ),
    "rows not finite": ({"rows": rows_changed(lambda r: r * np.inf)}, "rows must be finite"),
    "rows negative": ({"rows": rows_changed(lambda r: 2 * r - 0.25)}, "rows must not be negative"),
    "rows too heavy": ({"rows": rows_changed(lambda r: 1.01 * r)}, "rows must sum to one"),
    "fixed too short": (
        {"fixed_entries": lambda b: lambda: np.ones(3)},
        "fixed_entries must hold one number",
    ),
    "fixed too light": (
        {"fixed_entries": lambda b: lambda: np.full(48, 0.2)},
        "fixed_entries must sum to one",
    ),
    "values elsewhere": (
        {"evaluate": evaluate_changed(scribble)},
        "write only the requested pairs",
    ),
    "values missing": (
        {"evaluate": evaluate_changed(set_nan)},
        "finite value for every requested pair",
    ),
    "error negative": (
        {"evaluate": evaluate_changed(nothing, -1e-9)},
        "finite, non-negative error bound",
    ),
    "error not a number": (
        {"evaluate": evaluate_changed(nothing, np.nan)},
        "finite, non-negative error bound",
    ),
    "error of another kind": (
        {"evaluate": evaluate_changed(nothing, "small")},
        "error bound, a number",
    ),
    "endless approximations": (
        {"approximation": lambda b: lambda: b},
        "must return None in the end",
    ),
    "basis unknown": ({"basis": "certain"}, "basis of Altered must be one of"),
    "evaluate missing": ({"without": ("evaluate",)}, r"lacks evaluate\(\)"),
    "rows missing": ({"without": ("rows", "basis")}, r"lacks rows\(\), basis"),
    "approximation missing": ({"without": ("approximation",)}, r"lacks approximation\(\)"),
}


@pytest.mark.parametrize("name", BAD_MEASURES)
def test_what_a_measure_returns_is_checked(name):
    changes, message = BAD_MEASURES[name]
    inner = SelfApproximating() if name == "endless approximations" else Altered(**changes)
    message = message.replace("Altered", type(inner).__name__)
    for method in (
        ("newton",) if name == "endless approximations" else ("newton", "value-iteration")
    ):
        with pytest.raises(brmdp.RiskMeasureError, match=message):
            # a policy does not use all the pairs that a plan would
            CASE.evaluate([0, 1, 2, 0], inner, method=method, max_iterations=300, tolerance=1e-6)


class SelfApproximating:
    def bind(self, belief):
        bound = brmdp.Quantile(0.2).bind(belief)
        bound.approximation = lambda: bound
        return bound


def test_bind_that_returns_nothing_useful():
    class Empty:
        def bind(self, belief):
            return None

    with pytest.raises(
        brmdp.RiskMeasureError, match=re.escape("Empty.bind must return an object with evaluate()")
    ):
        CASE.plan(Empty())
    with pytest.raises(brmdp.RiskMeasureError, match=r"Empty\.bind"):
        CASE.backup(Empty(), np.zeros(4))


def test_a_measure_of_another_belief_is_refused():
    class Elsewhere:
        def bind(self, belief):
            return brmdp.Mean().bind(problem("sparse-1").belief)

    with pytest.raises(brmdp.RiskMeasureError, match="measure on the transitions of the belief"):
        CASE.plan(Elsewhere())


def test_a_measure_cannot_change_what_it_is_shown():
    class Meddling:
        def bind(self, belief):
            bound = brmdp.Mean().bind(belief)
            evaluate = bound.evaluate

            def meddle(targets, pairs, out):
                error = evaluate(targets, pairs, out)
                targets[:] = 0.0
                pairs[:] = 0
                return error

            bound.evaluate = meddle
            return bound

    np.testing.assert_array_equal(CASE.plan(Meddling()).values, CASE.plan(brmdp.Mean()).values)


def test_translation_is_probed():
    """q(w) = 1.05·mean is monotone, and expands by 1.05.

    With γ = 0.8 it would still converge, to a wrong bound.
    """
    stretched = Altered(
        brmdp.Mean(),
        evaluate=evaluate_changed(lambda out, pairs: out.__setitem__(pairs, 1.05 * out[pairs])),
    )
    with pytest.raises(brmdp.RiskMeasureError, match="must grow by"):
        CASE.plan(stretched)


class Careless(brmdp.MonteCarlo):
    """A custom method inside the library's measure whose rows end too early."""

    def bind(self, belief, levels):
        bound = super().bind(belief, levels)
        rows = bound.rows
        bound.rows = lambda *arguments, **options: rows(*arguments, **options)[:-1]
        return bound


def test_a_method_of_ones_own_is_checked_inside_the_librarys_measure():
    with pytest.raises(
        brmdp.RiskMeasureError, match=r"Careless\.rows must hold one number per possible transition"
    ):
        CASE.plan(brmdp.Quantile(0.2, method=Careless(samples=50, rng=0)))


def seesaw(reach):
    """The mean plus three times the difference of two targets, up to ``reach``.

    It is not a contraction, though its rows look fine.
    """

    def leaning(bound):
        def evaluate(targets, pairs, out):
            error = bound.evaluate(targets, pairs, out)
            indptr = CASE.belief.pattern.indptr
            for pair in pairs:
                row = targets[indptr[pair] : indptr[pair + 1]]
                out[pair] += 3.0 * np.clip(row[1] - row[2], -reach, reach)
            return error

        return evaluate

    return Altered(brmdp.Mean(), evaluate=leaning, fixed_entries=lambda _: lambda: None)


@pytest.mark.parametrize("reach", [10.0, 0.2])
def test_no_target_moves_a_value_against_or_further_than_itself(reach):
    """Beyond the reach no small change shows it, but the rise by the whole range does."""
    with pytest.raises(brmdp.RiskMeasureError, match="must grow by 0 to"):
        CASE.plan(seesaw(reach), raise_on_failure=False)


@pytest.mark.parametrize("scale", [1.0, 1e-11, 1e-13, 1e-30])
def test_a_contradiction_is_found_at_any_scale_of_rewards(scale):
    class Overconfident(brmdp.DirichletBelief):
        """Claims Dir(φ), and draws from Dir(φ/1000)."""

        def sample_entries(self, n, pairs=None, *, rng):
            wide = brmdp.DirichletBelief(self.concentration() / 1000)
            return wide.sample_entries(n, pairs, rng=rng)

    belief = Overconfident(1000.0 * PHI)
    with pytest.raises(brmdp.ContradictionError):
        certify_nested(belief, scale * np.asarray(CASE.rewards), CASE.discount, rng=0)


def test_concentrations_in_a_list_are_taken():
    class Listed(brmdp.DirichletBelief):
        @property
        def concentration_entries(self):
            return PHI.reshape(-1).tolist()

        @concentration_entries.setter
        def concentration_entries(self, value):
            pass

    np.testing.assert_array_equal(
        plan_of(Listed(PHI), brmdp.Quantile(0.2)).values, CASE.plan(brmdp.Quantile(0.2)).values
    )


class Scenarios(brmdp.ScenarioBelief):
    """Kernels or weights that differ from those it was made with."""

    entries_now = weights_now = None

    @property
    def scenario_entries(self):
        return self._entries if self.entries_now is None else self.entries_now(self._entries)

    @scenario_entries.setter
    def scenario_entries(self, value):
        self._entries = value

    @property
    def weights(self):
        return self._weights if self.weights_now is None else self.weights_now(self._weights)

    @weights.setter
    def weights(self, value):
        self._weights = value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"entries_now": lambda e: 1.2 * e},
            r"Scenarios\.scenario_entries must sum to one over s'; got 1\.2",
        ),
        (
            {"entries_now": lambda e: 1.5 * e - 0.25},
            r"Scenarios\.scenario_entries must not be negative",
        ),
        (
            {"entries_now": lambda e: np.full((1, 1), np.nan)},
            r"Scenarios\.scenario_entries must be finite",
        ),
        (
            {"entries_now": lambda e: e[:, :-1]},
            r"Scenarios\.scenario_entries must have shape \(2, 48\); got \(2, 47\)",
        ),
        (
            {"weights_now": lambda w: w[:1] * 2},
            r"Scenarios\.scenario_entries must have shape \(1, 48\); got \(2, 48\)",
        ),
        ({"weights_now": lambda w: w / 2}, "weights must sum to one; got 0.5"),
        ({"weights_now": lambda w: w - [1, -1]}, "weights must not be negative"),
    ],
)
@pytest.mark.parametrize("risk", [brmdp.Quantile(0.1), brmdp.CVaR(0.9)])
def test_scenarios_of_a_subclass_are_checked_before_compiled_loops_read_them(change, message, risk):
    kernels = brmdp.DirichletBelief(PHI).sample(2, rng=0)
    belief = Scenarios(kernels, [0.5, 0.5])
    plain = brmdp.ScenarioBelief(kernels, [0.5, 0.5])
    np.testing.assert_allclose(
        plan_of(belief, risk).values, plan_of(plain, risk).values, rtol=1e-12
    )
    vars(belief).update(change)
    with pytest.raises(INVALID, match=message):
        plan_of(belief, risk)
    with pytest.raises(INVALID, match=message):
        brmdp.theory.downside_exposure(
            belief, CASE.rewards, CASE.discount, np.zeros(4, dtype=int), 0.5
        )


@pytest.mark.parametrize("offset", [2**63 - 1, 2**63 - 2, 48 - 3, -1])
def test_offsets_beyond_the_concentrations_are_refused(offset):
    class Astray(brmdp.DirichletBelief):
        @property
        def concentration_offsets(self):
            return np.full(12, offset)

    with pytest.raises(INVALID, match=r"Astray\.concentration_entries must hold, from each pair"):
        plan_of(Astray(PHI), brmdp.Quantile(0.1))


@pytest.mark.parametrize("penalty", [0.0, -1e6, -1e12, -1e13])
def test_a_state_of_huge_value_hides_no_contradiction(penalty):
    class Liar(brmdp.DirichletBelief):
        """All draws stay where they are, which its concentrations make very unlikely."""

        def sample_entries(self, n, pairs=None, *, rng):
            entries = super().sample_entries(n, pairs, rng=rng)
            entries[:, :2] = 1.0, 0.0
            return entries

    concentration = np.zeros((3, 1, 3))
    concentration[0, 0, :2] = 1.0, 50.0
    concentration[1, 0, 1] = concentration[2, 0, 2] = 1.0
    rewards = np.array([[0.0], [1.0], [penalty]])
    assert (
        certify_nested(brmdp.DirichletBelief(concentration), rewards, 0.9, 0.9, rng=0).coverage
        > 0.87
    )
    with pytest.raises(brmdp.ContradictionError):
        certify_nested(Liar(concentration), rewards, 0.9, 0.9, rng=0)


@pytest.mark.parametrize("discount", [0.9, 1 - 1e-5, 1 - 1e-9])
@pytest.mark.parametrize("offset", [0.0, 1e10])
@pytest.mark.parametrize("n", [3, 200])
def test_a_bound_met_exactly_is_no_contradiction(n, offset, discount):
    """All draws of a known kernel are that kernel, and each meets the bound up to rounding."""
    ring = np.roll(np.eye(n), 1, axis=1)[:, None]
    rewards = offset + np.random.default_rng(0).normal(size=(n, 1))
    certificate = certify_nested(
        brmdp.DirichletBelief(ring), rewards, discount, 0.9, rng=0, coverage_samples=100
    )
    assert certificate.coverage == 1.0


class Signed:
    """q = c·w in every row, with a negative weight that no half of the successors shows.

    Its rows are faked.
    """

    weights = np.array([-0.2, 0.5, 0.4, 0.3])

    def __init__(self):
        self.basis = "exact"

    def bind(self, belief):
        self.indptr = belief.pattern.indptr
        return self

    def evaluate(self, targets, pairs, out):
        for pair in pairs:
            out[pair] = self.weights @ targets[self.indptr[pair] : self.indptr[pair + 1]]
        return np.int64(0)

    def rows(self, targets, values, pairs, *, precise=True):
        return np.full(4 * len(pairs), 0.25)

    def fixed_entries(self):
        return None

    def approximation(self):
        return None


@pytest.mark.parametrize("place", range(4))
def test_no_linear_measure_with_a_negative_weight_passes(place):
    measure = Signed()
    measure.weights = np.roll(measure.weights, place)
    with pytest.raises(brmdp.RiskMeasureError, match="must grow by 0 to"):
        plan_of(
            brmdp.DirichletBelief(PHI), measure, method="value-iteration", raise_on_failure=False
        )


def test_beliefs_written_for_the_version_before_still_work():
    class Former(Jittered):
        without_doubt = True

        def sample_entries(self, n, rng, pairs=None):
            return super().sample_entries(n, pairs, rng=rng)

    problem = dense(3)
    belief = Former(problem.belief.concentration("dense"))
    arguments = (belief, problem.rewards, problem.discount)
    with pytest.warns(FutureWarning, match="Former.without_doubt is now kernel_known"):
        known = brmdp.plan(*arguments, risk=brmdp.Quantile(0.2))
    assert known.values == pytest.approx(brmdp.plan(*arguments, risk=brmdp.Mean()).values)
    sampled = brmdp.plan(*arguments, risk=brmdp.PosteriorSample(rng=1))
    assert sampled.status == "sampled"
