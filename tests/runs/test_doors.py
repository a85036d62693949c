"""Parts of your own in sweeps and cases: what is accepted, what is refused, and in what words."""

import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import brmdp
from brmdp.runs import Case, Experiment, load_sweep, run_experiment
from brmdp.runs.catalogue import make_setting, references_of
from brmdp.runs.execution import build, digest_of, parts_of, validate
from brmdp.runs.references import is_reference, load, loaded_already
from brmdp.studies import Study

PARTS = """
    import numpy as np
    import gymnasium
    import brmdp

    class Lazy:
        def __init__(self, belief, rewards, discount, *, action=0, rng=None):
            self.action = action
            self.n = belief.pattern.n_states
        @property
        def policy(self):
            return np.full(self.n, self.action)
        def act(self, state):
            return self.action
        def observe(self, state, action, next_state):
            pass

    class Mute:
        def __init__(self, belief, rewards, discount, *, rng=None):
            pass
        def act(self, state):
            return 0
        def observe(self, state, action, next_state):
            pass

    class Half:
        def __init__(self, level=0.5):
            self.level = level
        def levels(self, progress):
            assert progress.discount == 0.9 and progress.belief is not None
            return np.clip(self.level / (1 + progress.prior_strength / 100), 0.01, 0.99)

    class Thirds:
        def __init__(self, length):
            self.length = length
        def ends(self, progress, rng):
            return progress.steps_in_episode >= self.length

    def chain(n=3, discount=0.9):
        return brmdp.envs.riverswim(n, discount=discount)

    def world(discount):
        return brmdp.World(brmdp.envs.TabularEnv(brmdp.envs.riverswim(3)), discount)

    def stubborn(world, weight):
        return world.prior(weight)

    NOTHING = None

    class Chain(brmdp.envs.TabularEnv):
        def __init__(self, render_mode=None):
            super().__init__(brmdp.envs.riverswim(3))

    gymnasium.register(__name__.title(), entry_point=Chain)  # without a version
"""


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """A module of somebody's parts, named anew for every test."""
    name = f"parts_{os.path.basename(tmp_path).replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(PARTS))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    sys.modules.pop(name, None)


def sweep(tmp_path, text):
    path = tmp_path / "sweep.toml"
    head = 'name = "doors"\nruns = 1\nsteps = 20\n'
    path.write_text(head + textwrap.dedent(text))
    return path


def case(agent="continuing-psrl", environment="riverswim", **more):
    return Case("one", environment, agent, 0.9, 20, **more)


def test_references_have_a_module_and_an_attribute():
    assert is_reference("a.b:c")
    assert is_reference("a:b.c")
    for other in ("a", ":a", "a:", "module:MyEnv-v0", "a b:c", 3, None, "1a:b"):
        assert not is_reference(other)


def test_what_cannot_be_loaded_is_named(parts):
    with pytest.raises(brmdp.InvalidInputError, match=r"agent 'nowhere:X' .* No module named"):
        load("nowhere:X", "agent")
    with pytest.raises(brmdp.InvalidInputError, match=f"{parts} has no attribute 'Missing'"):
        load(f"{parts}:Missing", "agent")
    assert loaded_already("nowhere:X") is None
    assert loaded_already("brmdp.studies.coverage.experiment:COVERAGE") is not None


def test_every_role_can_be_filled_from_outside(parts, tmp_path):
    path = sweep(
        tmp_path,
        f"""
        [[environment]]
        name = "{parts}:chain"
        n = [3, 4]
        label = "Chain"
        [[agent]]
        name = "{parts}:Lazy"
        action = 1
        label = "Lazy"
        [[agent]]
        name = "agent"
        risk = {{ name = "quantile", alpha = 0.2 }}
        schedule = {{ name = "{parts}:Half", level = 0.4 }}
        restart = {{ name = "{parts}:Thirds", length = 3 }}
        prior = {{ name = "{parts}:stubborn", weight = 2.0 }}
        """,
    )
    experiment = load_sweep(path)
    names = [one.name for one in experiment.cases]
    assert names == ["chain-n3/Lazy", "chain-n3/agent", "chain-n4/Lazy", "chain-n4/agent"]
    assert experiment.cases[0].label == "Chain (n3)/Lazy"
    assert set(references_of(experiment.cases[1])) == {
        *("environment", "schedule", "restart", "prior"),
    }
    store = run_experiment(experiment, tmp_path, workers=1)
    records = store.records("chain-n3/agent")
    assert records.episode.max() == 7  # twenty steps in threes
    levels = store.to_arrow(["chain-n3/agent"])["levels"].drop_null().to_pylist()
    assert levels[0] == pytest.approx([0.4 / 1.06] * 6)  # three successors of weight 2 a pair
    assert (store.records("chain-n4/Lazy").action == 1).all()


def test_an_agent_that_does_not_tell_its_policy_has_no_regret(parts, tmp_path):
    experiment = Experiment("mute", "Mute", (case(f"{parts}:Mute"),), runs=1)
    records = run_experiment(experiment, tmp_path, workers=1).records("one")
    assert records.true_regret is None
    assert records.reward.shape == (1, 20)
    findings = Study(experiment).findings({"one": records})
    assert findings.table.header == ("agent", "reward, total", "s/run")


def test_an_environment_is_a_world_an_mdp_or_a_gymnasium_environment(parts):
    for name in ("chain", "world"):
        world, _ = build(case(environment=f"{parts}:{name}"), rng=0)
        assert world.n_states == 3
    with pytest.raises(brmdp.InvalidInputError, match="must give a World, a Gymnasium environment"):
        build(case(environment=f"{parts}:NOTHING"))


def test_an_id_that_a_module_registers_may_look_like_an_attribute(parts, tmp_path, monkeypatch):
    """Gymnasium's ids need no version, and then read as an attribute that is not there."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    one = case(environment=f"{parts}:{parts.title()}")
    assert build(one)[0].n_states == 3
    assert parts_of(one) == ()
    store = run_experiment(Experiment("id", "Id", (one,), runs=2), tmp_path / "out", workers=2)
    assert store.records("one").reward.shape == (2, 20)


def test_only_parts_are_references():
    """A parameter of an agent of your own is whatever that agent makes of it."""
    one = case("my:Agent", agent_parameters={"mode": "slow:steady", "restart": "my:Rule"})
    assert references_of(one) == {"agent": "my:Agent", "restart": "my:Rule"}


def test_the_prior_is_what_the_case_says():
    plain = make_setting(case(environment_parameters={"n": 4}), 0).belief
    known = make_setting(
        case(environment_parameters={"n": 4}, prior={"known_successors": True}), 0
    ).belief
    strong = make_setting(
        case(environment_parameters={"n": 4}, prior={"concentration": 3.0}), 0
    ).belief
    assert plain.pattern.n_transitions == 4 * 2 * 4 > known.pattern.n_transitions
    assert (strong.concentration_entries == 3.0).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"agent": "nobody"}, "unknown agent 'nobody'"),
        ({"prior": {"strength": 2}}, "unknown key of prior 'strength'"),
        ({"prior": {"concentration": -1.0}}, "concentration must be"),
        ({"agent": "agent", "agent_parameters": {"risk": "no"}}, "unknown risk 'no'"),
        ({"agent": "agent"}, "agent needs risk"),
        ({"agent": "agent", "agent_parameters": {"risk": {"alpha": 1}}}, "a table with a name"),
        ({"agent": "agent", "agent_parameters": {"risk": "quantile"}}, "'quantile' cannot be made"),
        ({"agent": "nowhere:Agent"}, "No module named 'nowhere'"),
        ({"agent": "os:sep"}, "'os:sep' must be a class or a function"),
        ({"agent": "types:SimpleNamespace"}, "cannot be made"),
        ({"environment": "nowhere:env"}, "No module named 'nowhere'"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_case(settings, message):
    with pytest.raises(brmdp.InvalidInputError, match=message) as caught:
        validate(case(**settings))
    assert "case 'one'" in str(caught.value)


def test_a_part_that_changed_is_another_origin(parts, tmp_path):
    one = case(f"{parts}:Lazy", agent_parameters={"action": 1})
    before = digest_of(one)
    assert before != digest_of(case())
    path = Path(sys.modules[parts].__file__)
    path.write_text(path.read_text().replace("return self.action", "return 0"))
    code = f"""
    import sys
    sys.path.insert(0, {str(tmp_path)!r})
    from brmdp.runs.execution import digest_of
    from brmdp.runs import Case
    case = Case("one", "riverswim", "{parts}:Lazy", 0.9, 20, agent_parameters={{"action": 1}})
    print(digest_of(case))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() != before


def test_what_workers_cannot_import_is_named_before_anything_runs(tmp_path):
    """A part that only this process has, because its file is not on the path."""
    (tmp_path / "only_here.py").write_text(textwrap.dedent(PARTS))
    spec = importlib.util.spec_from_file_location("only_here", tmp_path / "only_here.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["only_here"] = module
    spec.loader.exec_module(module)
    try:
        experiment = Experiment("here", "Here", (case("only_here:Lazy"),), runs=4)
        with pytest.raises(brmdp.ExperimentError, match=r"only_here.*PYTHONPATH"):
            run_experiment(experiment, tmp_path, workers=2)
        assert not list((tmp_path / "here" / "runs").glob("*.parquet"))
    finally:
        del sys.modules["only_here"]


def test_the_agent_of_parts_has_the_luck_of_the_presets():
    preset = build(case("fixed-quantile", agent_parameters={"alpha": 0.3}), rng=5)[1]
    parts_of_it = build(
        case(
            "agent",
            agent_parameters={
                "risk": {"name": "quantile", "alpha": 0.3},
                "schedule": {"name": "fixed-level", "alpha": 0.3},
            },
        ),
        rng=5,
    )[1]
    world = brmdp.World(brmdp.envs.TabularEnv(brmdp.envs.riverswim(6)), 0.9)
    first, second = (brmdp.simulate(agent, world, 200, seed=1) for agent in (preset, parts_of_it))
    assert np.array_equal(first.state, second.state)
    assert np.array_equal(first.episode, second.episode)


def test_former_names_of_agents_still_work(tmp_path):
    path = sweep(
        tmp_path, '[[environment]]\nname = "riverswim"\n[[agent]]\nname = "brmdp"\nalpha = 0.2\n'
    )
    with pytest.warns(FutureWarning, match="'brmdp' is now called 'fixed-quantile'"):
        assert load_sweep(path).cases[0].agent == "fixed-quantile"


def test_a_results_folder_runs_nothing(parts, tmp_path):
    """Not even where a belief is made again: what the folder names must be trusted first."""
    experiment = Experiment("own", "Own", (case(environment=f"{parts}:chain"),), runs=1)
    store = run_experiment(experiment, tmp_path, workers=1)
    with pytest.raises(brmdp.InvalidInputError, match=f"{parts}:chain.*pass trust=True"):
        store.belief_after("one", 0)
    assert store.belief_after("one", 0, trust=True).counts("flat").sum() == 20


def test_a_prior_that_gives_the_same_object_is_not_shared(parts, tmp_path):
    path = Path(tmp_path) / f"{parts}_shared.py"
    path.write_text(
        "import functools\nimport brmdp\n\n\n@functools.lru_cache\ndef table(n):\n"
        "    return brmdp.DirichletBelief.uniform(n, 2)\n\n\ndef prior(world):\n"
        "    return table(world.n_states)\n"
    )
    shared = case(prior={"name": f"{parts}_shared:prior"})
    first, second = (make_setting(shared, 0).belief for _ in range(2))
    first.observe(0, 0, 0)
    assert second.counts("flat").sum() == 0


@pytest.mark.parametrize(
    ("settings", "reserved"),
    [
        ({"agent": "{}:Lazy", "agent_parameters": {"rng": 3}}, "rng"),
        ({"environment": "{}:chain", "environment_parameters": {"discount": 0.5}}, "discount"),
        ({"prior": {"name": "{}:stubborn", "world": 5, "weight": 1.0}}, "world"),
    ],
)
def test_what_the_library_passes_cannot_be_given(parts, settings, reserved):
    named = {
        key: value.format(parts)
        if isinstance(value, str)
        else {k: v.format(parts) if isinstance(v, str) else v for k, v in value.items()}
        for key, value in settings.items()
    }
    with pytest.raises(brmdp.InvalidInputError, match=f"is given {reserved} by the library"):
        validate(case(**named))


BASE = """
class Base:
    def __init__(self, *given, rng=None):
        pass
    def act(self, state):
        return {number}
    def observe(self, state, action, next_state):
        pass
"""
OTHER_FILES = {
    "the base of an agent": "from own_base import Base\nclass Part(Base):\n    pass\n",
    "a function that gives a class of another file": "from own_base import Base\n"
    "def Part(*given, rng):\n    return Base()\n",
}


@pytest.mark.parametrize("kind", OTHER_FILES)
def test_an_edit_of_another_file_that_makes_the_agent_counts(kind, tmp_path):
    digests = []
    for number in (0, 1):
        (tmp_path / "own.py").write_text(OTHER_FILES[kind])
        (tmp_path / "own_base.py").write_text(BASE.format(number=number))
        code = (
            "from brmdp.runs import Case; from brmdp.runs.execution import digest_of;"
            "print(digest_of(Case('one', 'riverswim', 'own:Part', 0.9, 20)))"
        )
        done = subprocess.run(
            [sys.executable, "-B", "-c", code],
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.append(done.stdout)
    assert digests[0] != digests[1]


def test_a_constant_edited_after_the_module_was_loaded_is_found(parts):
    one = case(f"{parts}:Lazy")
    digest_of(one)
    path = Path(sys.modules[parts].__file__)
    path.write_text(path.read_text() + "\nCONSTANT = 1\n")
    with pytest.raises(brmdp.BrmdpError, match="was edited after it was loaded"):
        digest_of(one)


def test_a_module_that_ends_python_is_named(tmp_path, monkeypatch):
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(brmdp.InvalidInputError, match="importing leaving failed: SystemExit"):
        validate(case("leaving:Agent"))


def test_diagnostics_that_an_agent_cannot_have_are_refused_before_anything_runs(parts):
    with pytest.raises(brmdp.InvalidInputError, match="robust_level needs an agent"):
        validate(case(f"{parts}:Lazy", robust_level=0.2))
