"""Parts of your own in sweeps and cases: what is accepted, what is refused, and in what words."""

import importlib.util
import os
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

    def planner(belief, rewards, discount, *, rng, restart=None, **chosen):
        restart = restart or brmdp.agents.GeometricLength(discount)
        return brmdp.Agent(belief, rewards, discount, restart=restart, **chosen, rng=rng)

    class Moods:
        def __init__(self, *, rng=None):
            self.rng = np.random.default_rng(rng)
        def levels(self, progress):
            return self.rng.uniform(0.1, 0.9)

    class Whims(Moods):
        def ends(self, progress, rng):
            return self.rng.random() < 0.5

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


@pytest.mark.long
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
        ({"prior": {"known_successors": "no"}}, "known_successors must be True, False or None"),
        (
            {"environment": "inventory", "prior": {"known_successors": True}},
            "known_successors cannot be chosen in 'inventory'",
        ),
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


@pytest.mark.long
def test_a_part_that_changed_is_another_origin(parts, tmp_path, forks):
    one = case(f"{parts}:Lazy", agent_parameters={"action": 1})
    before = digest_of(one)
    assert before != digest_of(case())
    path = Path(sys.modules[parts].__file__)
    path.write_text(path.read_text().replace("return self.action", "return 0"))
    code = f"""
    from brmdp.runs.execution import digest_of
    from brmdp.runs import Case
    case = Case("one", "riverswim", "{parts}:Lazy", 0.9, 20, agent_parameters={{"action": 1}})
    print(digest_of(case))
    """
    done = forks.run(textwrap.dedent(code), paths=[tmp_path])
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() != before


@pytest.mark.long
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


DRAWING = {
    "a draw": ("planner", {"risk": "posterior-sample"}),
    "a sampled quantile": (
        "planner",
        {"risk": {"name": "quantile", "alpha": 0.7, "method": "monte-carlo", "coefficient": 20.0}},
    ),
    "a schedule": (
        "planner",
        {"risk": {"name": "quantile", "alpha": 0.3}, "schedule": "{}:Moods"},
    ),
    "a restart rule": ("planner", {"risk": "mean", "restart": "{}:Whims"}),
    "a schedule of the library's agent": (
        "agent",
        {"risk": {"name": "quantile", "alpha": 0.3}, "schedule": "{}:Moods"},
    ),
    "a restart rule of a preset": ("continuing-psrl", {"restart": "{}:Whims"}),
}


@pytest.mark.long
def test_parts_that_draw_do_so_from_the_seed(parts, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    cases = tuple(
        Case(
            name,
            "riverswim",
            f"{parts}:{agent}" if agent == "planner" else agent,
            0.9,
            40,
            agent_parameters={
                key: value.format(parts) if isinstance(value, str) else value
                for key, value in parameters.items()
            },
        )
        for name, (agent, parameters) in DRAWING.items()
    )
    experiment = Experiment("drawing", "Drawing", cases, runs=2)
    first, second, together = (
        run_experiment(experiment, tmp_path / str(attempt), workers=workers)
        for attempt, workers in enumerate((1, 1, 2))
    )
    assert first.digest() == second.digest() == together.digest()
    for one in cases:
        states = first.records(one.name).state
        assert not np.array_equal(states[0], states[1]), one.name


def test_parts_that_do_not_draw_leave_the_streams_of_an_agent_as_they_are(parts):
    made = build(case(f"{parts}:planner", agent_parameters={"risk": "mean"}), rng=5)[1]
    world = brmdp.World(brmdp.envs.TabularEnv(brmdp.envs.riverswim(6)), 0.9)
    alone = brmdp.agents.posterior_mean(world.prior(), world.rewards, 0.9, rng=5)
    first, second = (brmdp.simulate(agent, world, 100, seed=1) for agent in (made, alone))
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
        (
            {
                "agent": "agent",
                "agent_parameters": {"risk": {"name": "posterior-sample", "rng": 3}},
            },
            "rng",
        ),
    ],
)
def test_what_the_library_passes_cannot_be_given(parts, settings, reserved):
    named = {
        key: value.format(parts)
        if isinstance(value, str)
        else {k: v.format(parts) if isinstance(v, str) else v for k, v in value.items()}
        for key, value in settings.items()
    }
    with pytest.raises(brmdp.InvalidInputError, match=f"the library passes {reserved} to "):
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


@pytest.mark.long
@pytest.mark.parametrize("kind", OTHER_FILES)
def test_an_edit_of_another_file_that_makes_the_agent_counts(kind, tmp_path, forks):
    digests = []
    for number in (0, 1):
        (tmp_path / "own.py").write_text(OTHER_FILES[kind])
        (tmp_path / "own_base.py").write_text(BASE.format(number=number))
        code = (
            "from brmdp.runs import Case; from brmdp.runs.execution import digest_of;"
            "print(digest_of(Case('one', 'riverswim', 'own:Part', 0.9, 20)))"
        )
        done = forks.run(code, paths=[tmp_path])
        assert done.returncode == 0, done.stderr
        digests.append(done.stdout)
    assert digests[0] != digests[1]


HELPED = {
    "own/__init__.py": "from . import agents\nfrom .tools import unused\n",
    "own/agents.py": """
import collections.abc, own.rates
from typing import TYPE_CHECKING
from own.tools import factor
if TYPE_CHECKING:
    from own import plots
class Part:
    def __init__(self, *given, rng=None):
        pass
    def act(self, state):
        return int(factor() * own.rates.RATE > 7)
    def observe(self, state, action, next_state):
        import own.late
""",
    "own/tools.py": "from .deep.numbers import SEVEN\ndef factor():\n    return SEVEN\n"
    "unused = 3\n",
    "own/rates.py": "from numpy import pi\nRATE = 1\n",
    "own/deep/numbers.py": "SEVEN = 7\n",
    "own/plots.py": "COLOUR = 1\n",
    "own/late.py": "LATE = 1\n",
    "elsewhere.py": "",
}
DIGEST = """
import sys
from brmdp.runs import Case
from brmdp.runs.execution import digest_of, execute
case = Case('one', 'riverswim', 'own.agents:Part', 0.9, 20)
print(digest_of(case))
execute(case, 1, 0, world=digest_of(case))
"""


@pytest.fixture
def digest_in_another_process(forks):
    def digest(folder, *before, code=DIGEST):
        folders = [folder] if isinstance(folder, Path) else folder
        done = forks.run("\n".join([*before, code]), paths=folders)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return digest


@pytest.fixture
def helped(tmp_path):
    """A package whose agent uses files beside its own."""
    for place, text in HELPED.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    return tmp_path


@pytest.mark.long
def test_files_beside_a_part_that_it_uses_count(helped, digest_in_another_process):
    first = digest_in_another_process(helped)
    # neither the order of imports nor what else is loaded matters
    other = ("import own.plots, own.late, own.tools", "import own.deep.numbers, elsewhere")
    assert digest_in_another_process(helped, *other) == first
    for place, counts in (
        ("own/tools.py", True),
        ("own/rates.py", True),
        ("own/deep/numbers.py", True),
        ("own/plots.py", False),
        ("own/late.py", False),
        ("elsewhere.py", False),
    ):
        (helped / place).write_text(HELPED[place] + "MORE = 1\n")
        assert (digest_in_another_process(helped) != first) == counts, place
        (helped / place).write_text(HELPED[place])
    assert digest_in_another_process(helped) == first


@pytest.mark.long
def test_installed_packages_beside_a_part_do_not_count(tmp_path, digest_in_another_process):
    """Neither those in an environment below its folder, nor its neighbours if it is installed."""
    text = "import helper\n" + BASE.format(number=0).replace("Base", "Part")
    for own, installed in ((".", ".venv/site-packages"), ("site-packages", "site-packages")):
        for folder in (own, installed):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / own / "alone.py").write_text(text)
        digests = set()
        for number in (1, 2):
            (tmp_path / installed / "helper.py").write_text(f"NUMBER = {number}\n")
            code = DIGEST.replace("own.agents", "alone")
            folders = [tmp_path / own, tmp_path / installed]
            digests.add(digest_in_another_process(folders, code=code))
        assert len(digests) == 1


def test_a_file_beside_a_part_edited_after_it_was_loaded_is_refused(tmp_path, monkeypatch):
    (tmp_path / "helped_part.py").write_text(
        "import helping\n" + BASE.format(number=0).replace("Base", "Part")
    )
    (tmp_path / "helping.py").write_text("NUMBER = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    one = case("helped_part:Part")
    try:
        digest_of(one)
        (tmp_path / "helping.py").write_text("NUMBER = 22\n")
        with pytest.raises(
            brmdp.BrmdpError, match="of the module helping was edited after it was loaded: restart"
        ):
            digest_of(one)
    finally:
        for name in ("helped_part", "helping"):
            sys.modules.pop(name, None)


NUMBERED = """
import json
from pathlib import Path
import brmdp
def read():
    return json.loads((Path(__file__).parent / "weight.json").read_text())
def saved(world):
    return world.prior(read())
class Bare:
    def __init__(self, inner):
        self.inner, self.pattern = inner, inner.pattern
        self.rows_independent = True
    def __getattr__(self, name):
        if name in ("mean_entries", "sample_entries", "gather_rewards", "observe"):
            return getattr(self.inner, name)
        raise AttributeError(name)
    def copy(self):
        return Bare(self.inner.copy())
def bare(world):
    prior = world.prior(1.0)
    for _ in range(int(read())):
        prior.observe(0, 0, 0)
    return Bare(prior)
"""


@pytest.mark.parametrize("make", ["saved", "bare"])
def test_the_numbers_of_a_prior_count(make, tmp_path, monkeypatch):
    (tmp_path / "numbered.py").write_text(NUMBERED)
    monkeypatch.syspath_prepend(str(tmp_path))
    one = case("fixed-quantile", agent_parameters={"alpha": 0.3})
    own = case(
        "fixed-quantile", agent_parameters={"alpha": 0.3}, prior={"name": f"numbered:{make}"}
    )
    try:
        digests = []
        for weight in (1, 2, 1):
            (tmp_path / "weight.json").write_text(str(weight))
            digests.append((digest_of(own), digest_of(one)))
    finally:
        sys.modules.pop("numbered", None)
    assert digests[0] == digests[2]
    assert digests[0][0] != digests[1][0]
    assert digests[0][1] == digests[1][1]


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
