"""What finite and continuous agents share.

A belief that is looked at once per pseudo-episode, and when these end.

An agent may be used by several threads, and any of its calls may be cut short by an exception, such
as Ctrl-C. One lock makes the calls take turns. What an agent *is* lies in a :class:`Record`: how
everything stood at some moment, usually that of the last plan, and a journal of the transitions
since. A record never changes but for its journal, which grows by one append per transition; a new
plan is a new record, put in place by one assignment. What changes step by step (:class:`Working`)
can always be made again from the record, and is whenever a call was cut short. So every call has
happened completely or not at all.
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
from brmdp._validation import as_index, as_index_array
from brmdp.agents.progress import Progress
from brmdp.agents.restarts import RestartRule
from brmdp.beliefs.storage import Saveable
from brmdp.errors import BrmdpError, CorruptFileError, InvalidInputError

__all__ = [
    "EpisodicAgent",
    "Record",
    "Working",
    "check_restart",
    "corrupt_if_undecodable",
    "recorded",
    "stored_below",
]

LONGEST_JOURNAL = 4096
"""Transitions after which a record is renewed although no plan was made, so that it stays small."""

UNSETTLED = -1


@dataclass(slots=True, eq=False)
class Working:
    """How things stand after the last transition.

    Attributes
    ----------
    latest : belief
        With all data.
    progress : Progress
    streams : dict
        The agent's random streams by name.
    stale : bool
        Whether the pseudo-episode is over.
    applied : int
        Transitions of the record's journal that are in; ``UNSETTLED`` while something changes.
    undo : function, optional
        Takes the risk measure back to where it was before the plan that is being made.
    """

    latest: Any
    progress: Progress
    streams: dict[str, np.random.Generator]
    stale: bool
    applied: int = 0
    undo: Callable[[], Any] | None = None


@dataclass(slots=True, eq=False)
class Record:
    """How things stood, and what was observed since.

    Attributes
    ----------
    belief : belief
        What was believed when the current plan was made (φ_k).
    plan : any
        The current plan, in the form of the subclass.
    base : belief
        With the data up to this record.
    progress : Progress
    states : dict
        Where the random streams stood.
    stale : bool
    working : Working
    journal : list of tuples
        The arguments of the belief's ``observe``, transition by transition.
    """

    belief: Any
    plan: Any
    base: Any
    progress: Progress
    states: dict[str, Any]
    stale: bool
    working: Working
    journal: list[tuple[Any, ...]] = field(default_factory=list)


MOST_STEPS = 2**53
LONGEST_PARTS = 10**8
"""Characters of the description of an agent's parts in a file.

Which may list levels for every pair.
"""


class EpisodicAgent(Saveable):
    """Collects data under a plan until the restart rule ends the pseudo-episode.

    The next look makes a new plan.

    A subclass has ``_make_plan`` and ``_take_in``.

    Parameters
    ----------
    belief, risk, schedule, restart
        The four parts; the belief is copied.
    admissible : (S, A) booleans
        The pairs whose visits are counted.
    streams : dict
        Random streams by name; "restart" is that of the restart rule.
    plan : any
        What stands for the plan before the first one.
    discount, horizon
        What :class:`Progress` says of them.
    """

    def __init__(
        self,
        belief: Any,
        *,
        risk: Any,
        schedule: Any,
        restart: RestartRule,
        admissible: NDArray[np.bool_],
        streams: dict[str, np.random.Generator],
        plan: Any = None,
        discount: float | None = None,
        horizon: int | None = None,
    ) -> None:
        self.risk = risk
        self.schedule = schedule
        self.restart = restart
        self._lock = threading.RLock()
        before = belief.copy()
        progress = Progress.none(admissible, discount=discount, horizon=horizon)
        working = Working(belief.copy(), progress, streams, True)
        self._record = recorded(before, plan, working, before)

    @property
    def belief(self) -> Any:
        """What was believed when the current plan was made (φ_k)."""
        return self._record.belief

    @property
    def episode(self) -> int:
        """Number of the current pseudo-episode; 0 before the first."""
        return self._record.progress.episode

    @property
    def progress(self) -> Progress:
        """What the agent has lived through, as it stands: a copy."""
        with self._lock:
            _, working = self._settled()
            progress = working.progress.copy()
        progress.visits_at_start = progress.visits_at_start.copy()
        return progress

    # --- acting and learning ----------------------------------------------------------------------

    def _make_plan(
        self, belief: Any, record: Record, working: Working
    ) -> tuple[Any, tuple[str, ...]]:
        """A plan for ``belief``, and the names of the streams of ``working`` that it drew from.

        It changes nothing else.
        """
        raise NotImplementedError

    def _take_in(self, working: Working, transition: tuple[Any, ...]) -> None:
        """Add a transition to the belief and the counts of ``working``.

        And ask the restart rule.
        """
        raise NotImplementedError

    def _settled(self) -> tuple[Record, Working]:
        """The record and what follows from it, made again if a call was cut short.

        The lock must be held.
        """
        record = self._record
        working = record.working
        if working.applied != len(record.journal):
            if working.undo is not None:
                working.undo()
            working = record.working = self._made_again(record)
        return record, working

    def _made_again(self, record: Record) -> Working:
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
        """Take in a transition, or leave everything as it was."""
        with self._lock:
            while True:
                record = self._record
                working = record.working
                if working.applied != len(record.journal):
                    record, working = self._settled()
                working.applied = UNSETTLED
                self._take_in(working, transition)
                # a signal handler that used the agent meanwhile has made another working state
                if self._record is record and record.working is working:
                    break
            record.journal.append(transition)
            working.applied = number = len(record.journal)
            if number >= LONGEST_JOURNAL:
                self._renew(record, working)

    def _renew(self, record: Record, working: Working) -> None:
        """Begin another journal under the same plan."""
        moved_on = dataclasses.replace(working, applied=0)
        self._record = recorded(record.belief, record.plan, moved_on, working.latest.copy())

    def _planned(self) -> Record:
        """The record of a plan that is current; plans first when none is."""
        record = self._record
        working = record.working
        # without the lock where nothing is to be done: a record does not change once it has been
        # replaced
        if not working.stale and working.applied == len(record.journal):
            return record
        with self._lock:
            record, working = self._settled()
            while working.stale:
                self._begin_episode(record, working)
                record, working = self._settled()
            return record

    def _begin_episode(self, record: Record, working: Working) -> None:
        """Learn what was observed and plan; nothing changes if that fails."""
        undo = _way_back(self.risk)
        working.undo = undo
        working.applied = UNSETTLED
        belief = working.latest.copy()
        try:
            plan, drawn = self._make_plan(belief, record, working)
        except SystemError as error:
            # what Python makes of an interrupt between the instructions of a compiled call
            if isinstance(error.__cause__, KeyboardInterrupt):
                raise KeyboardInterrupt from error
            raise
        progress, streams = working.progress, working.streams
        progress.begin_episode()
        states = record.states.copy()
        for name in ("restart", *drawn):
            states[name] = streams[name].bit_generator.state
        begun = recorded(
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
        """Beliefs, counts, what the measure remembers, and the stream of the restart rule."""
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
        """The belief of the plan, and the working state that :meth:`_common_arrays` described.

        If it makes sense.

        The latest belief is the agent's already; ``streams`` are those beside that of the restart
        rule.
        """
        working = self._record.working
        progress = working.progress
        shape = progress.visits.shape
        counters = arrays["counters"]
        if counters.shape != (6,) or counters.dtype.kind not in "iu" or (counters[:3] < 0).any():
            raise InvalidInputError(
                f"counters must be six integers, the first three not negative; got {counters!r}"
            )
        if (counters > MOST_STEPS).any() or counters[2] > counters[1] or counters[5] not in (0, 1):
            raise InvalidInputError(
                f"counters must be possible numbers of steps, and the last 0 or 1; got {counters!r}"
            )
        progress.episode, progress.steps, progress.steps_in_episode, state, action, stale = (
            counters.tolist()
        )
        if progress.episode > progress.steps + 1 or (progress.episode == 0 and not stale):
            raise InvalidInputError(
                "counters must not have more plans than steps allow, nor a current plan before the "
                f"first; got {counters!r}"
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
                    f"{name} must have shape {shape}, without visits of what is not admissible"
                )
            setattr(progress, name, counts)
        # as floating-point numbers, which do not wrap around
        if (progress.visits_at_start > progress.visits).any() or progress.visits.sum(
            dtype=float
        ) != progress.steps:
            raise InvalidInputError(
                "visits must sum to the number of steps and not be less than visits_at_start"
            )
        if (progress.visits - progress.visits_at_start).sum(
            dtype=float
        ) != progress.steps_in_episode:
            raise InvalidInputError(
                "visits since visits_at_start must sum to the number of steps in the pseudo-episode"
            )
        streams = {"restart": stream_from_state(arrays["restart_stream"])} | streams
        belief = self._record.belief
        if progress.episode > 0:
            belief = type(working.latest).from_arrays(stored_below(arrays, "belief."), source)
            if hasattr(belief, "pattern") and not belief.pattern.same_as(working.latest.pattern):
                raise InvalidInputError("belief must have the same possible transitions as latest")
        if hasattr(self.risk, "restore"):
            self.risk.restore(stored_below(arrays, "risk."))
        return belief, Working(working.latest, progress, streams, bool(stale))


def recorded(
    belief: Any, plan: Any, working: Working, base: Any, states: dict[str, Any] | None = None
) -> Record:
    """A record of ``working``.

    ``base`` is another belief with the same data, ``states`` those of the streams if known.
    """
    if states is None:
        states = {name: stream.bit_generator.state for name, stream in working.streams.items()}
    return Record(belief, plan, base, working.progress.copy(), states, working.stale, working)


def _stream_at(stream: np.random.Generator, state: Any) -> np.random.Generator:
    """Another stream like ``stream``, at ``state``."""
    twin = copy.deepcopy(stream)
    twin.bit_generator.state = state
    return twin


def _way_back(risk: Any) -> Callable[[], Any] | None:
    """A function that takes a measure with a memory back to where it is now.

    It may be called twice.
    """
    if hasattr(risk, "checkpoint"):
        back: Callable[[], Any] | None = risk.checkpoint()
        return back
    if hasattr(risk, "memory") and hasattr(risk, "restore"):
        return partial(risk.restore, copy.deepcopy(risk.memory()))
    return None


def check_restart(restart: Any) -> None:
    """Refuse what cannot end pseudo-episodes."""
    if isinstance(restart, type) or not hasattr(restart, "ends"):
        raise InvalidInputError(f"restart must have a method ends(progress, rng); got {restart!r}")


@contextlib.contextmanager
def corrupt_if_undecodable(source: Any) -> Iterator[None]:
    """Report arrays of which no agent can be made as a corrupt file."""
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


def stored_below(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with ``prefix``, without it."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _copies(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {f"{prefix}{name}": np.array(array) for name, array in arrays.items()}
