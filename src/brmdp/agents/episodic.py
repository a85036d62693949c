"""What tabular and continuous agents share: pseudo-episodes, interruptible calls, files.

Several threads may use an agent, and any call may be interrupted by an exception such as Ctrl-C. A
lock makes the calls take turns. The state of an agent is held by a :class:`Record`: a snapshot,
usually taken at the last plan, and a journal of the transitions since then. Nothing in a record
changes except its journal, which grows by one append per transition; a new plan replaces the record
in a single assignment. What changes at every step (:class:`Working`) can always be rebuilt from the
record, and is rebuilt whenever a call was interrupted. So every call takes effect completely or not
at all.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brmdp._streams import stream_from_state, stream_state
from brmdp._validation import BoolArray, as_index, as_index_array
from brmdp.agents.parts import is_own
from brmdp.agents.progress import Progress
from brmdp.agents.restarts import RestartRule
from brmdp.beliefs.outcomes import OutcomeBelief
from brmdp.beliefs.storage import Saveable
from brmdp.errors import BrmdpError, CorruptFileError, InvalidInputError

__all__ = [
    "EpisodicAgent",
    "Record",
    "Working",
    "arrays_with_prefix",
    "check_restart",
    "corrupt_if_undecodable",
    "make_record",
]

MAX_JOURNAL = 4096
"""Longest journal; a longer one is folded into a new record even if no plan is made."""

UNSETTLED = -1


@dataclass(slots=True, eq=False)
class Working:
    """The state after the last transition.

    Attributes
    ----------
    latest : Belief
        The belief with all data.
    progress : Progress
        The counts with all data.
    streams : dict
        The agent's random streams by name.
    stale : bool
        Whether the pseudo-episode has ended, so that the next action needs a new plan.
    applied : int
        Number of transitions of the record's journal taken into account; ``UNSETTLED`` during a
        change.
    undo : function, optional
        Restores the risk measure to its state before the plan that is being made.
    """

    latest: Any
    progress: Progress
    streams: dict[str, np.random.Generator]
    stale: bool
    applied: int = 0
    undo: Callable[[], Any] | None = None


@dataclass(slots=True, eq=False)
class Record:
    """A snapshot of the agent, and the transitions observed since.

    Attributes
    ----------
    belief : Belief
        The belief of the current plan (φ_k).
    plan : any
        The current plan, in the subclass's own form.
    base : Belief
        The belief with the data up to this record.
    progress : Progress
        The counts at this record.
    states : dict
        States of the random streams at this record, by name.
    stale : bool
        Whether the pseudo-episode had ended.
    working : Working
        The state after the journal.
    journal : list of tuples
        Arguments of the belief's ``observe``, one tuple per transition.
    """

    belief: Any
    plan: Any
    base: Any
    progress: Progress
    states: dict[str, Any]
    stale: bool
    working: Working
    journal: list[tuple[Any, ...]] = field(default_factory=list)


MAX_STEPS = 2**53
MAX_PARTS_LENGTH = 10**8
"""Longest description of an agent's parts in a file, in characters.

It is large because a description may list a level for every pair.
"""


class EpisodicAgent(Saveable):
    """Follows a plan and collects data until the restart rule ends the pseudo-episode.

    The next action then makes a new plan. Subclasses implement ``_make_plan`` and ``_take_in``.

    Parameters
    ----------
    belief, risk, schedule, restart
        The four parts. The belief is copied.
    admissible : (S, A) booleans
        The pairs whose visits are counted.
    streams : dict
        Random streams by name; the restart rule uses "restart".
    plan : any
        Placeholder for the plan before the first one.
    discount, horizon, episode_length
        As in :class:`Progress`.
    """

    def __init__(
        self,
        belief: Any,
        *,
        risk: Any,
        schedule: Any,
        restart: RestartRule,
        admissible: BoolArray,
        streams: dict[str, np.random.Generator],
        plan: Any = None,
        discount: float | None = None,
        horizon: int | None = None,
        episode_length: int | None = None,
    ) -> None:
        self.risk = risk
        self.schedule = schedule
        self.restart = restart
        self._lock = threading.RLock()
        before = belief.copy()
        progress = Progress.initial(
            admissible, discount=discount, horizon=horizon, episode_length=episode_length
        )
        working = Working(belief.copy(), progress, streams, True)
        self._record = make_record(before, plan, working, before)

    @property
    def belief(self) -> Any:
        """The belief that the current plan is based on (φ_k)."""
        return self._record.belief

    @property
    def episode(self) -> int:
        """Number of the current pseudo-episode; 0 before the first."""
        return self._record.progress.episode

    @property
    def progress(self) -> Progress:
        """What the agent has done so far, as a copy."""
        with self._lock:
            _, working = self._settled()
            progress = working.progress.copy()
        progress.visits_at_start = progress.visits_at_start.copy()
        progress.admissible = progress.admissible.copy()
        return progress

    # --- acting and learning ----------------------------------------------------------------------

    def _make_plan(
        self, belief: Any, record: Record, working: Working
    ) -> tuple[Any, tuple[str, ...]]:
        """A plan for ``belief``, and the names of the streams of ``working`` that it used.

        Nothing else may change.
        """
        raise NotImplementedError

    def _take_in(self, working: Working, transition: tuple[Any, ...]) -> None:
        """Add a transition to the belief and counts of ``working``, and ask the restart rule."""
        raise NotImplementedError

    def _ask_restart(self, working: Working) -> None:
        """Ask the restart rule whether the pseudo-episode ends, unless it has ended already."""
        if working.stale:
            return
        rule, progress = self.restart, working.progress
        # the library's own rules change nothing
        shown = progress if is_own(rule) else progress.shown()
        answer: Any = rule.ends(shown, rng=working.streams["restart"])
        if not isinstance(answer, bool | np.bool_):
            raise InvalidInputError(
                f"{type(rule).__name__}.ends must return True or False; got {answer!r}"
            )
        working.stale = bool(answer)

    def _settled(self) -> tuple[Record, Working]:
        """The record and its working state, rebuilt if a call was interrupted.

        The caller must hold the lock.
        """
        record = self._record
        working = record.working
        if working.applied != len(record.journal):
            if working.undo is not None:
                working.undo()
            working = record.working = self._replay(record)
        return record, working

    def _replay(self, record: Record) -> Working:
        """Rebuild the working state from a record and its journal."""
        streams = {
            name: _stream_at(stream, record.states[name])
            for name, stream in record.working.streams.items()
        }
        working = Working(record.base.copy(), record.progress.copy(), streams, record.stale)
        for transition in record.journal:
            self._take_in(working, transition)
        working.applied = len(record.journal)
        return working

    def _learn(self, transition: tuple[Any, ...]) -> None:
        """Learn from a transition; if that fails, nothing changes."""
        with self._lock:
            while True:
                record = self._record
                working = record.working
                if working.applied != len(record.journal):
                    record, working = self._settled()
                working.applied = UNSETTLED
                self._take_in(working, transition)
                # a signal handler may have used the agent meanwhile, and replaced the working state
                if self._record is record and record.working is working:
                    break
            record.journal.append(transition)
            working.applied = number = len(record.journal)
            if number >= MAX_JOURNAL:
                self._start_journal(record, working)

    def _start_journal(self, record: Record, working: Working) -> None:
        """Start a new journal under the same plan."""
        moved_on = dataclasses.replace(working, applied=0)
        self._record = make_record(record.belief, record.plan, moved_on, working.latest.copy())

    def _planned(self) -> Record:
        """The record of the current plan; plans first if there is none."""
        record = self._record
        working = record.working
        # no lock if there is nothing to do: a record that has been replaced no longer changes
        if not working.stale and working.applied == len(record.journal):
            return record
        with self._lock:
            record, working = self._settled()
            while working.stale:
                self._begin_episode(record, working)
                record, working = self._settled()
            return record

    def _begin_episode(self, record: Record, working: Working) -> None:
        """Update the belief and plan; if that fails, nothing changes."""
        undo = _rollback(self.risk)
        working.undo = undo
        working.applied = UNSETTLED
        belief = working.latest.copy()
        try:
            plan, drawn = self._make_plan(belief, record, working)
        except SystemError as error:
            # Python raises this if a compiled call is interrupted between two instructions, once
            # for each call that it ends
            cause: BaseException | None = error
            while isinstance(cause, SystemError):
                cause = cause.__cause__
            if isinstance(cause, KeyboardInterrupt):
                raise KeyboardInterrupt from error
            raise
        progress, streams = working.progress, working.streams
        progress.begin_episode()
        states = record.states.copy()
        for name in ("restart", *drawn):
            states[name] = streams[name].bit_generator.state
        begun = make_record(
            belief, plan, Working(working.latest, progress, streams, False), belief, states
        )
        if self._record is not record:
            return
        if record.working is working:
            self._record = begun
        elif undo is not None:
            undo()

    # --- copies -----------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            self._settled()
            return copy.deepcopy(
                {name: value for name, value in self.__dict__.items() if name != "_lock"}
            )

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    # --- files ------------------------------------------------------------------------------------

    def _common_arrays(self, record: Record, working: Working) -> dict[str, NDArray[Any]]:
        """Beliefs, counts, the memory of the risk measure, and the stream of the restart rule."""
        progress = working.progress
        content: dict[str, NDArray[Any]] = {
            "counters": np.array(
                [
                    progress.episode,
                    progress.steps,
                    progress.steps_in_episode,
                    *progress.last_pair,
                    working.stale,
                ]
            ),
            "visits": progress.visits.copy(),
            "visits_at_start": progress.visits_at_start.copy(),
            "restart_stream": stream_state(working.streams["restart"]),
        }
        content |= _copies("latest.", working.latest.arrays())
        if progress.episode > 0:
            content |= _copies("belief.", record.belief.arrays())
        if hasattr(self.risk, "memory"):
            content |= _copies("risk.", self.risk.memory())
        return content

    def _resumed(
        self, arrays: dict[str, NDArray[Any]], source: Any, streams: dict[str, np.random.Generator]
    ) -> tuple[Any, Working]:
        """The plan's belief and the working state that :meth:`_common_arrays` stored, checked.

        The agent already has the latest belief; ``streams`` are all streams except that of the
        restart rule.
        """
        working = self._record.working
        progress = working.progress
        shape = progress.visits.shape
        counters = arrays["counters"]
        if counters.shape != (6,) or counters.dtype.kind not in "iu" or (counters[:3] < 0).any():
            raise InvalidInputError(
                f"counters must be six integers, the first three not negative; got {counters!r}"
            )
        if (counters > MAX_STEPS).any() or counters[2] > counters[1] or counters[5] not in (0, 1):
            raise InvalidInputError(
                "counters must be consistent numbers of steps, and the last 0 or 1; got "
                f"{counters!r}"
            )
        progress.episode, progress.steps, progress.steps_in_episode, state, action, stale = (
            counters.tolist()
        )
        if progress.episode > progress.steps + 1 or (progress.episode == 0 and not stale):
            raise InvalidInputError(
                "counters must not have more plans than the steps allow, nor a current plan before "
                f"the first one; got {counters!r}"
            )
        if (state, action) != (-1, -1):
            progress.last_pair = (
                as_index(state, shape[0], "state"),
                as_index(action, shape[1], "action"),
            )
        for name in ("visits", "visits_at_start"):
            counts = as_index_array(arrays[name], progress.steps + 1, name)
            if counts.shape != shape or counts[~progress.admissible].any():
                raise InvalidInputError(
                    f"{name} must have shape {shape}, without visits to inadmissible pairs"
                )
            setattr(progress, name, counts)
        # sums as floats, which do not wrap around
        if (progress.visits_at_start > progress.visits).any() or progress.visits.sum(
            dtype=float
        ) != progress.steps:
            raise InvalidInputError(
                "visits must sum to the number of steps and be at least visits_at_start"
            )
        if (progress.visits - progress.visits_at_start).sum(
            dtype=float
        ) != progress.steps_in_episode:
            raise InvalidInputError(
                "visits minus visits_at_start must sum to the number of steps in the pseudo-episode"
            )
        streams = {"restart": stream_from_state(arrays["restart_stream"])} | streams
        belief = self._record.belief
        if progress.episode > 0:
            belief = type(working.latest).from_arrays(arrays_with_prefix(arrays, "belief."), source)
            here, there = _possible(belief), _possible(working.latest)
            if here is not None and not here.same_as(there):
                raise InvalidInputError("belief must have the same possible transitions as latest")
        if hasattr(self.risk, "restore"):
            self.risk.restore(arrays_with_prefix(arrays, "risk."))
        return belief, Working(working.latest, progress, streams, bool(stale))


def _possible(belief: Any) -> Any:
    """The possible transitions of a belief; if it learns rewards, its outcomes may grow."""
    if isinstance(belief, OutcomeBelief):
        return belief.transitions
    return getattr(belief, "pattern", None)


def make_record(
    belief: Any, plan: Any, working: Working, base: Any, states: dict[str, Any] | None = None
) -> Record:
    """A record of ``working``.

    ``base`` is a separate belief with the same data; ``states`` are those of the streams, if known.
    """
    if states is None:
        states = {name: stream.bit_generator.state for name, stream in working.streams.items()}
    return Record(belief, plan, base, working.progress.copy(), states, working.stale, working)


def _stream_at(stream: np.random.Generator, state: Any) -> np.random.Generator:
    """Another stream like ``stream``, at ``state``."""
    twin = copy.deepcopy(stream)
    twin.bit_generator.state = state
    return twin


def _rollback(risk: Any) -> Callable[[], Any] | None:
    """A function that restores the current state of a measure with a memory; None without one.

    It may be called twice.
    """
    if hasattr(risk, "checkpoint"):
        back: Callable[[], Any] | None = risk.checkpoint()
        return back
    if hasattr(risk, "memory") and hasattr(risk, "restore"):
        return partial(risk.restore, copy.deepcopy(risk.memory()))
    return None


def check_restart(restart: Any) -> None:
    """Raise unless ``restart`` is a restart rule."""
    if isinstance(restart, type) or not hasattr(restart, "ends"):
        raise InvalidInputError(
            f"restart must be an object with a method ends(progress, *, rng); got {restart!r}"
        )


@contextlib.contextmanager
def corrupt_if_undecodable(source: Any) -> Iterator[None]:
    """Raise CorruptFileError if the arrays of a file cannot be turned into an agent."""
    try:
        yield
    except BrmdpError:
        raise
    except (
        KeyError,
        ValueError,
        IndexError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise CorruptFileError(f"{source} does not describe an agent: {error!r}") from error


def arrays_with_prefix(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with ``prefix``, which is removed."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _copies(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {f"{prefix}{name}": np.array(array) for name, array in arrays.items()}
