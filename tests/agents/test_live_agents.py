"""Live agents: interruptions and concurrent use.

Every call takes effect completely or not at all.
"""

import copy
import functools
import sys
import threading

import numpy as np
import pytest

import brmdp
from brmdp import agents
from brmdp.agents import episodic
from brmdp.beliefs.storage import load_arrays
from brmdp.envs import riverswim
from interruptions import StopAt, moments_of

RIVER = riverswim(4)


def agent_of(kind, restart=None):
    belief = brmdp.DirichletBelief.uniform(4, 2)
    given = belief, RIVER.rewards, 0.9
    rest = {"rng": 5, "restart": restart}
    if kind == "psrl":
        return agents.continuing_psrl(*given, **rest)
    if kind == "quantile":
        return agents.aq_brmdp(*given, delta=5.0, method="saddlepoint", **rest)
    if kind == "draws":
        return agents.fixed_quantile(*given, alpha=0.3, method=brmdp.MonteCarlo(samples=9), **rest)
    if kind == "scenarios":
        # two kernels that tell every transition apart
        other = np.roll(RIVER.kernel(), 1, axis=2) * 0.5 + 0.125
        belief = brmdp.ScenarioBelief([0.5 * RIVER.kernel() + 0.125, other], [0.5, 0.5])
        return agents.Agent(
            belief,
            RIVER.rewards,
            0.9,
            risk=brmdp.CVaR(0.4),
            restart=restart or agents.EveryStep(),
            rng=3,
        )
    assert kind == "kept draws"
    return agents.fixed_quantile(
        *given, alpha=0.3, method=brmdp.MonteCarlo(samples=9, reuse=True), **rest
    )


KINDS = ("psrl", "quantile", "draws", "kept draws", "scenarios")


def lived(kind):
    """An agent in the middle of its life, with a pseudo-episode just over."""
    agent = agent_of(kind, agents.FixedLength(3))
    for state, action, following in (
        (0, 1, 1),
        (1, 1, 2),
        (2, 0, 1),
        (1, 1, 1),
        (1, 0, 0),
        (0, 0, 0),
    ):
        agent.act(state)
        agent.observe(state, action, following)
    return agent


def contents(agent):
    """The full state of an agent, as bytes."""
    return {
        name: (array.dtype.str, array.shape, array.tobytes())
        for name, array in agent.arrays().items()
    }


# --- an exception at every moment -----------------------------------------------------------------


CALLS = {
    "act": lambda agent: agent.act(1),
    "observe": lambda agent: agent.observe(1, 1, 2),
    "arrays": lambda agent: agent.arrays(),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_call_that_is_stopped_at_any_moment_happened_or_did_not(kind, name):
    call = CALLS[name]
    original = lived(kind)
    before = contents(original)
    whole = copy.deepcopy(original)
    call(whole)
    after = contents(whole)
    call(whole)
    later = contents(whole)
    # all moments for the measure that remembers most, some for the others
    seen, moment, step = set(), 0, 1 if kind == "kept draws" and name != "arrays" else 17
    while True:
        agent = copy.deepcopy(original)
        stop = StopAt(moment)
        if not stop.run(functools.partial(call, agent)):
            break
        found = contents(agent)
        assert found in (before, after), stop.where
        seen.add(found == after)
        if found == before and moment % 10 == 0:
            # and it goes on as if it had never been stopped
            call(agent)
            assert contents(agent) == after, stop.where
            call(agent)
            assert contents(agent) == later, stop.where
        moment += step
    assert moment > 100
    assert before == after or step > 1 or seen == {False, True}


@pytest.mark.long
def test_a_file_saved_after_any_interruption_can_be_read(tmp_path):
    path = tmp_path / "agent.npz"
    original = lived("kept draws")
    for name in ("act", "observe"):
        moment = 0
        while True:
            agent = copy.deepcopy(original)
            if not StopAt(moment).run(functools.partial(CALLS[name], agent)):
                break
            agent.save(path)
            twin = agents.Agent.load(path)
            assert contents(twin) == contents(agent)
            assert twin.belief.counts().sum() <= twin.progress.steps == twin.progress.visits.sum()
            moment += 23
        assert moment > 100


# a stream that an interruption loses closes itself, and Python says so
@pytest.mark.filterwarnings(
    "ignore:unclosed file", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_an_interrupted_save_leaves_a_file_that_can_be_read(tmp_path):
    path = tmp_path / "agent.npz"
    agent = lived("quantile")
    agent.save(path)
    before = contents(agent)
    moment = 0
    while StopAt(moment).run(lambda: agent.save(path)):
        assert contents(agents.Agent.load(path)) == before
        assert contents(agent) == before
        moment += 41
    assert moment > 300


@pytest.mark.long
def test_two_interruptions_one_after_the_other():
    """The second interruption stops the repair after the first."""
    original = lived("kept draws")
    before = contents(original)
    whole = copy.deepcopy(original)
    whole.act(1)
    after = contents(whole)
    moment = 0
    while True:
        agent = copy.deepcopy(original)
        assert StopAt(400).run(lambda agent=agent: agent.act(1))
        if not StopAt(moment).run(lambda agent=agent: agent.progress):
            break
        assert contents(agent) == before
        agent.act(1)
        assert contents(agent) == after
        moment += 5
    assert moment > 100


def test_a_plan_that_fails_moves_no_stream():
    class Failing(brmdp.PosteriorSample):
        fail = False

        def bind(self, belief):
            bound = super().bind(belief)
            if self.fail:
                raise RuntimeError("no plan today")
            return bound

    risk = Failing(rng=3)
    agent = agents.Agent(
        brmdp.DirichletBelief.uniform(4, 2),
        RIVER.rewards,
        0.9,
        risk=risk,
        restart=agents.EveryStep(),
        rng=1,
    )
    agent.act(0)
    agent.observe(0, 1, 1)
    before = contents(agent)
    risk.fail = True
    with pytest.raises(RuntimeError, match="no plan today"):
        agent.act(0)
    assert contents(agent) == before


def test_a_belief_that_breaks_off_in_the_middle_has_learnt_nothing():
    class Halfway(brmdp.DirichletBelief):
        broken = False

        def observe(self, state, action, next_state):
            super().observe(state, action, next_state)
            if Halfway.broken:
                raise OSError("the line is dead")

        def copy(self):
            twin = Halfway.__new__(Halfway)
            twin._set(self.pattern, self._prior, self._counts.copy())
            return twin

    agent = agents.Agent(
        Halfway(np.ones((4, 2, 4))),
        RIVER.rewards,
        0.9,
        risk=brmdp.Mean(),
        restart=agents.EveryStep(),
        rng=1,
    )
    agent.act(0)
    before = contents(agent)
    Halfway.broken = True
    with pytest.raises(OSError, match="the line is dead"):
        agent.observe(0, 1, 1)
    Halfway.broken = False
    assert contents(agent) == before


@pytest.mark.long
def test_a_signal_handler_may_look_and_save_in_the_middle_of_a_call(tmp_path):
    """Saving in a signal handler, as on SIGTERM.

    At any moment, the file is that of the agent before or after the call.
    """
    path = tmp_path / "agent.npz"
    original = lived("kept draws")
    before = contents(original)
    for name in ("act", "observe"):
        whole = copy.deepcopy(original)
        CALLS[name](whole)
        after = contents(whole)
        moment = 0
        while True:
            agent = copy.deepcopy(original)
            left = moment

            def handler(frame, event, argument, agent=agent):
                nonlocal left
                if moments_of(frame.f_code.co_filename) is None:
                    return None
                # Python calls handlers when a function begins or has returned
                left -= event in ("call", "return")
                if left == -1:
                    sys.settrace(None)
                    agent.save(path)
                return handler

            sys.settrace(handler)
            try:
                CALLS[name](agent)
            finally:
                sys.settrace(None)
            if left >= 0:
                break
            assert contents(agents.Agent.load(path)) in (before, after)
            assert contents(agent) == after
            moment += 1 if name == "observe" else 5
        assert moment > 10


# --- long journals --------------------------------------------------------------------------------


def test_the_journal_stays_short_and_changes_nothing(monkeypatch):
    def run(longest):
        monkeypatch.setattr(episodic, "MAX_JOURNAL", longest)
        agent = agent_of("psrl", agents.GeometricLength(0.97))
        rng = np.random.default_rng(0)
        state = 0
        for _ in range(300):
            action = agent.act(state)
            following = int(rng.integers(4))
            agent.observe(state, action, following)
            assert len(agent._record.journal) < longest
            state = following
        stopped = copy.deepcopy(agent)
        assert StopAt(60).run(lambda: stopped.observe(0, 1, 1))
        assert contents(stopped) == contents(agent)
        return contents(agent)

    assert run(5) == run(1000)


# --- threads --------------------------------------------------------------------------------------


@pytest.fixture
def hasty_threads():
    """Threads that take turns after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(*functions):
    """Run all calls at once and raise what failed."""
    failures = []

    def guarded(function):
        try:
            function()
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=guarded, args=(function,)) for function in functions]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(60)
        assert not thread.is_alive()
    for failure in failures:
        raise failure


def test_files_saved_while_another_thread_acts_can_be_read(hasty_threads, tmp_path):
    path = tmp_path / "agent.npz"
    agent = agent_of("psrl", agents.FixedLength(2))
    done = threading.Event()

    def live():
        state = 0
        for number in range(2000):
            action = agent.act(state)
            following = (state + action + number) % 4
            agent.observe(state, action, following)
            state = following
        done.set()

    def save():
        while not done.is_set():
            agent.save(path)
            arrays = load_arrays(path, "Agent")
            twin = agents.Agent.from_arrays(arrays, path)
            assert (
                arrays["latest.counts"].sum() == twin.progress.steps == twin.progress.visits.sum()
            )

    in_threads(live, save)
    assert agent.progress.steps == 2000


def test_observations_of_several_threads_are_all_counted(hasty_threads):
    agent = agent_of("quantile", agents.GeometricLength(0.9))

    def observe():
        for _ in range(400):
            agent.observe(1, 1, 2)

    def act():
        for _ in range(200):
            agent.act(1)

    in_threads(observe, observe, observe, act)
    assert agent.progress.steps == agent.progress.visits[1, 1] == 1200
    assert agent.arrays()["latest.counts"].sum() == 1200


class Slow(brmdp.Mean):
    """A measure in whose plans another thread gets its turn."""

    def __init__(self):
        self.planning = threading.Event()
        self.go_on = threading.Event()

    def bind(self, belief):
        bound = super().bind(belief)
        self.planning.set()
        self.go_on.wait(0.05)
        return bound


def test_what_is_observed_during_a_plan_is_in_the_next():
    risk = Slow()
    agent = agents.Agent(
        brmdp.DirichletBelief.uniform(4, 2),
        RIVER.rewards,
        0.9,
        risk=risk,
        restart=agents.EveryStep(),
        rng=1,
    )

    def observe():
        assert risk.planning.wait(10)
        agent.observe(1, 1, 2)
        risk.go_on.set()

    in_threads(lambda: agent.act(0), observe)
    agent.act(0)
    assert agent.belief.counts()[1, 1, 2] == 1
    assert agent.episode == 2


# --- copies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", KINDS)
def test_copies_are_agents_of_their_own(kind, duplicate):
    agent = lived(kind)
    before = contents(agent)
    twin = duplicate(agent)
    assert contents(twin) == before
    for _ in range(4):
        twin.act(1)
        twin.observe(1, 1, 2)
    assert contents(agent) == before
    in_threads(lambda: twin.act(1))
    for _ in range(4):
        agent.act(1)
        agent.observe(1, 1, 2)
    agent.act(1)
    assert contents(agent) == contents(twin)


def test_an_interrupt_inside_a_compiled_call_is_an_interrupt(monkeypatch):
    """Python turns an interrupt at the end of a compiled call into a SystemError."""
    agent = lived("quantile")
    before = contents(agent)

    def interrupted(*_):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise SystemError("CPUDispatcher(…) returned a result with an exception set") from error

    with monkeypatch.context() as patch:
        patch.setattr(agent, "_make_plan", interrupted)
        with pytest.raises(KeyboardInterrupt):
            agent.act(0)
        patch.setattr(agent, "_make_plan", lambda *_: exec("raise SystemError('another')"))
        with pytest.raises(SystemError, match="another"):
            agent.act(0)
    assert contents(agent) == before
    agent.act(0)
