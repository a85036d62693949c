"""What finite and continuous agents share: a belief that is looked at once per pseudo-episode, and when these end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brmdp._streams import stream_from_state, stream_state
from brmdp._validation import as_index, as_index_array
from brmdp.agents.progress import Progress
from brmdp.agents.restarts import RestartRule
from brmdp.errors import CorruptFileError, InvalidInputError
from brmdp.posterior.storage import Stored

__all__ = ["EpisodicAgent", "check_restart", "meaningless_is_corrupt", "stored_below"]

MOST_STEPS = 2**53
LONGEST_PARTS = 10**8
"""Characters of the description of an agent's parts in a file, which may list levels for every pair."""


class EpisodicAgent(Stored):
    """Collects data under a plan until the restart rule ends the pseudo-episode; the next look makes a new plan.

    A subclass has ``_begin_episode``, which learns what was observed and plans.

    Parameters
    ----------
    belief, risk, schedule, restart
        The four parts; the belief is copied.
    admissible : (S, A) booleans
        The pairs whose visits are counted.
    restart_stream : numpy.random.Generator
        Of the restart rule.
    """

    def __init__(
        self,
        belief: Any,
        *,
        risk: Any,
        schedule: Any,
        restart: RestartRule,
        admissible: NDArray[np.bool_],
        restart_stream: np.random.Generator,
    ) -> None:
        self.risk = risk
        self.schedule = schedule
        self.restart = restart
        self.progress = Progress.none(admissible)
        self.belief: Any = belief.copy()
        """What was believed when the current plan was made (φ_k)."""
        self._latest: Any = belief.copy()
        self._restart_stream = restart_stream
        self._stale = True

    @property
    def episode(self) -> int:
        """Number of the current pseudo-episode; 0 before the first."""
        return self.progress.episode

    def _begin_episode(self) -> None:
        """Learn what was observed and plan; nothing changes if that fails."""
        raise NotImplementedError

    def _ensure_plan(self) -> None:
        if self._stale:
            self._begin_episode()

    def _count(self, state: int, action: int) -> None:
        """One more transition, after which the pseudo-episode may be over."""
        self.progress.add(state, action)
        if not self._stale and self.restart.ends(self.progress, self._restart_stream):
            self._stale = True

    # --- files -------------------------------------------------------------------------------------------------

    def _common_arrays(self) -> dict[str, NDArray[Any]]:
        """Beliefs, counts, what the measure remembers, and the stream of the restart rule."""
        progress = self.progress
        content: dict[str, NDArray[Any]] = {
            "counters": np.array(
                [progress.episode, progress.steps, progress.steps_in_episode, *progress.last_pair, self._stale]
            ),
            "visits": progress.visits,
            "visits_at_start": progress.visits_at_start,
            "restart_stream": stream_state(self._restart_stream),
        }
        content |= _prefixed("latest.", self._latest.arrays())
        if progress.episode > 0:
            content |= _prefixed("belief.", self.belief.arrays())
        if hasattr(self.risk, "memory"):
            content |= _prefixed("risk.", self.risk.memory())
        return content

    def _resume_common(self, arrays: dict[str, NDArray[Any]], source: Any) -> None:
        """Take over what :meth:`_common_arrays` described but for the latest belief, if it makes sense."""
        progress = self.progress
        shape = progress.visits.shape
        counters = arrays["counters"]
        if counters.shape != (6,) or counters.dtype.kind not in "iu" or (counters[:3] < 0).any():
            raise InvalidInputError(f"counters must be six integers, the first three not negative; got {counters!r}")
        if (counters > MOST_STEPS).any() or counters[2] > counters[1] or counters[5] not in (0, 1):
            raise InvalidInputError(
                f"counters must be possible numbers of steps, and the last 0 or 1; got {counters!r}"
            )
        progress.episode, progress.steps, progress.steps_in_episode, state, action, stale = counters.tolist()
        if (state, action) != (-1, -1):
            progress.last_pair = as_index(state, shape[0], "state"), as_index(action, shape[1], "action")
        for name in ("visits", "visits_at_start"):
            counts = as_index_array(arrays[name], progress.steps + 1, name)
            if counts.shape != shape or counts[~progress.admissible].any():
                raise InvalidInputError(f"{name} must have shape {shape}, without visits of what is not admissible")
            setattr(progress, name, counts)
        # as floating-point numbers, which do not wrap around
        if (progress.visits_at_start > progress.visits).any() or progress.visits.sum(dtype=float) != progress.steps:
            raise InvalidInputError("visits must sum to the number of steps and not be less than visits_at_start")
        self._stale = bool(stale)
        self._restart_stream = stream_from_state(arrays["restart_stream"])
        if progress.episode > 0:
            self.belief = type(self._latest).from_arrays(stored_below(arrays, "belief."), source)
        if hasattr(self.risk, "restore"):
            self.risk.restore(stored_below(arrays, "risk."))


def check_restart(restart: Any) -> None:
    """Refuse what cannot end pseudo-episodes."""
    if isinstance(restart, type) or not hasattr(restart, "ends"):
        raise InvalidInputError(f"restart must have a method ends(progress, rng); got {restart!r}")


@contextlib.contextmanager
def meaningless_is_corrupt(source: Any) -> Iterator[None]:
    """Report arrays of which no agent can be made as a corrupt file."""
    try:
        yield
    except InvalidInputError:
        raise
    except (KeyError, ValueError, IndexError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise CorruptFileError(f"{source} does not describe an agent: {error!r}") from error


def stored_below(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with ``prefix``, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _prefixed(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {f"{prefix}{name}": array for name, array in arrays.items()}
