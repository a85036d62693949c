"""One run of one case, from a seed and a run number alone.

A run is an interaction of an agent with a world, or a replication of a program. Its :mod:`streams
<brmdp.runs.streams>` depend on nothing else, so neither the workers, nor the order of runs, nor
diagnostics change a result.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import gymnasium

from brmdp._columns import Columns
from brmdp._extras import require_extra
from brmdp._validation import Seed
from brmdp.continuous.lake import DIRECTIONS, SIDE
from brmdp.errors import BrmdpError, InvalidInputError, OtherOriginError
from brmdp.risk.threads import one_blas_thread
from brmdp.runs.catalogue import (
    DRAWN,
    Setting,
    make_agent,
    make_setting,
    numbers_of,
    references_of,
    sources_of,
)
from brmdp.runs.lake import EXTRA, LAKE, check_lake, run_lake
from brmdp.runs.origin import CONTINUOUS, UNKNOWN, case_digest, program_digest, short
from brmdp.runs.program import parameters_of, program_of
from brmdp.runs.spec import Case, Computation
from brmdp.runs.streams import run_seed, streams_of
from brmdp.simulation import Actor, Diagnostics, History, World, simulate
from brmdp.simulation.interaction import check_diagnostics

__all__ = [
    "Replication",
    "RunRecord",
    "build",
    "digest_of",
    "digests_of",
    "execute",
    "extra_of",
    "parts_of",
    "validate",
]


@dataclass(frozen=True, eq=False)
class RunRecord:
    """The result of one interaction, the size and digest of its world, and the time it took.

    Attributes
    ----------
    history : History
    n_states, n_actions : int
    seconds : float
        Processor time.
    world : str
        Digest of the world and of the parts of your own.

    Examples
    --------
    >>> from brmdp.runs import Case, execute
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6})
    >>> record = execute(case, seed=1, run=0)
    >>> record.n_states, record.history.reward.shape
    (6, (200,))
    """

    history: History
    n_states: int
    n_actions: int
    seconds: float
    world: str = UNKNOWN


@dataclass(frozen=True, eq=False)
class Replication:
    """The result of one replication of a computation, its program's digest, and the time taken.

    Examples
    --------
    >>> from brmdp.runs import execute
    >>> from brmdp.studies import find_study
    >>> case = find_study("lemmas").experiment.cases[0]
    >>> replication = execute(case, seed=1, run=0)
    >>> replication.columns.deviation.size > 0
    True
    """

    columns: Columns
    seconds: float
    world: str = UNKNOWN


def execute(
    case: Case | Computation, seed: int, run: int, *, world: str | None = None
) -> RunRecord | Replication:
    """Carry out run number ``run`` of ``case``.

    Parameters
    ----------
    case : Case or Computation
    seed : int
        The experiment's seed.
    run : int
    world : str, optional
        Digest that its world or program must have; see :func:`digest_of`.

    Raises
    ------
    OtherOriginError
        If it has another digest; nothing is carried out then.

    Examples
    --------
    >>> from brmdp.runs import Case, execute
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6})
    >>> record = execute(case, seed=1, run=0)
    >>> again = execute(case, seed=1, run=0)
    >>> bool((record.history.reward == again.history.reward).all())
    True
    """
    begin = time.process_time()
    with one_blas_thread:
        if isinstance(case, Computation):
            digest = digest_of(case)
            _require_digest(case, digest, world)
            columns = program_of(case)(case, run_seed(seed, run))
            return Replication(columns, time.process_time() - begin, digest)
        streams = streams_of(run_seed(seed, run))
        if case.environment == LAKE:
            _require_digest(case, CONTINUOUS, world)
            lake = run_lake(case, streams.environment, streams.agent)
            spent = time.process_time() - begin
            return RunRecord(lake.history, SIDE * SIDE, len(DIRECTIONS), spent, CONTINUOUS)
        setting, agent = _built(case, streams.agent, streams.world)
        # a drawn world differs from run to run: what counts is what it is drawn from
        digest = digest_of(case) if case.environment in DRAWN else _digest(case, setting, agent)
        _require_digest(case, digest, world)
        place = setting.world
        history = simulate(
            agent,
            place,
            case.steps,
            seed=streams.environment,
            diagnostics=_diagnostics(case),
            diagnostics_rng=streams.diagnostics,
        )
        spent = time.process_time() - begin
        return RunRecord(history, place.n_states, place.n_actions, spent, digest)


def _diagnostics(case: Case) -> Diagnostics:
    return Diagnostics(robust_level=case.robust_level, quantile_level=case.quantile_level)


def _require_digest(case: Case | Computation, digest: str, asked: str | None) -> None:
    if asked is None or asked == digest:
        return
    if isinstance(case, Computation):
        what = f"the program {case.program!r}"
    else:
        what = f"the environment {case.environment!r}, or a part of the agent,"
    raise OtherOriginError(
        f"{what} differs in this process: its digest is {short(digest)}, but {short(asked)} was "
        "expected"
    )


def validate(case: Case | Computation) -> None:
    """Refuse a case that cannot be carried out, before anything runs.

    Raises
    ------
    InvalidInputError
        If a name or parameter is not allowed; the message names the case.
    ExperimentError
        If a package is missing.
    """
    with _named(case):
        if isinstance(case, Computation):
            parameters_of(case)
        elif case.environment == LAKE:
            check_lake(case)
        else:
            setting, agent = _built(case, None, None)
            check_diagnostics(agent, setting.world, _diagnostics(case))
    extra = extra_of(case)
    if extra is not None:
        require_extra(extra)


def digest_of(case: Case | Computation) -> str:
    """Digest of what a case depends on other than the library's code, as it is in this process.

    For an interaction, that is the tables of its world and the parts of your own; for a
    computation, the file of its program; for the continuous lake, the code of the continuous part.
    """
    with _named(case):
        if isinstance(case, Computation):
            program = program_of(case)
            return program_digest(
                case.program,
                program.replicate,
                program.parameters,
                program.parts,
            )
        return CONTINUOUS if case.environment == LAKE else _digest(case, *_built(case, 0, 0))


def _digest(case: Case, setting: Setting, agent: Actor) -> str:
    return case_digest(
        setting.world, sources_of(case, setting, agent), numbers_of(case, setting.belief)
    )


def digests_of(cases: Iterable[Case | Computation]) -> dict[str, str]:
    """Digests of cases by name; each world is built once."""
    known: dict[str, str] = {}
    digests = {}
    for case in cases:
        if isinstance(case, Case):
            place = [case.environment, dict(case.environment_parameters), case.discount]
            named = references_of(case)
            parts = [dict(case.agent_parameters), dict(case.prior)] if named else []
            key = json.dumps([place, named, parts], sort_keys=True)
        else:
            key = case.program
        if key not in known:
            known[key] = digest_of(case)
        digests[case.name] = known[key]
    return digests


def parts_of(case: Case | Computation) -> tuple[str, ...]:
    """References that a process must be able to load to carry out a case.

    An environment may instead be a Gymnasium id, which its module registers when it is imported.
    """
    if isinstance(case, Computation):
        return (case.program,)
    return tuple(
        name
        for role, name in references_of(case).items()
        if role != "environment" or name.partition(":")[2] not in gymnasium.registry
    )


def extra_of(case: Case | Computation) -> str | None:
    """The extra of the package that a case needs besides the one for experiments."""
    if isinstance(case, Computation):
        return program_of(case).extra
    return EXTRA if case.environment == LAKE else None


@contextmanager
def _named(case: Case | Computation) -> Iterator[None]:
    """Name the case in errors about what is not allowed."""
    try:
        yield
    except OtherOriginError:
        raise
    except BrmdpError as error:
        raise InvalidInputError(f"case {case.name!r}: {error}") from error


def build(case: Case, *, world_rng: Seed = None, rng: Seed = None) -> tuple[World, Actor]:
    """The world of a finite case, and its agent.

    Parameters
    ----------
    case : Case
    world_rng : numpy.random.Generator or seed
        For a world that is drawn from the prior; others do not use it.
    rng : numpy.random.Generator or seed
        For the agent.

    Raises
    ------
    InvalidInputError
        If a name or parameter is not allowed; the message names the case.
    """
    with _named(case):
        setting, agent = _built(case, rng, world_rng)
    return setting.world, agent


def _built(case: Case, rng: Seed, world_rng: Seed) -> tuple[Setting, Actor]:
    setting = make_setting(case, world_rng)
    return setting, make_agent(case, setting, rng)
