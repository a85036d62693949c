"""The random streams of a run, which depend on the experiment's seed and the run number alone.

An interaction has four: for the environment, the agent, the diagnostics, and the world itself where
that is drawn from the prior. They do not depend on the case, so run i of every case meets the same
world and the same luck.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["RunStreams", "run_seed", "streams_of"]


class RunStreams(NamedTuple):
    """The random streams of one interaction.

    Attributes
    ----------
    environment : int
        Seed of the environment.
    agent, diagnostics, world : numpy.random.SeedSequence
    """

    environment: int
    agent: np.random.SeedSequence
    diagnostics: np.random.SeedSequence
    world: np.random.SeedSequence


def run_seed(seed: int, run: int) -> np.random.SeedSequence:
    """The seed of run number ``run`` of an experiment with the seed ``seed``."""
    return np.random.SeedSequence(seed, spawn_key=(run,))


def streams_of(seed: np.random.SeedSequence) -> RunStreams:
    """The streams of the run whose :func:`run_seed` is ``seed``; the same at every call."""
    environment, *others = (
        np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, stream))
        for stream in range(4)
    )
    return RunStreams(int(environment.generate_state(1, np.uint64)[0]), *others)
