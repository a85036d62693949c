"""Garnet: random MDPs with a given number of successors per pair."""

from __future__ import annotations

import numpy as np

from brmdp._sparse import kernel_of_moves
from brmdp._validation import as_index, as_positive_int, check_transition_count
from brmdp.envs.tabular_env import RenderMode, TabularEnv
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP

__all__ = ["GarnetEnv", "garnet"]


def garnet(
    n_states: int = 10,
    n_actions: int = 4,
    branching: int = 3,
    *,
    seed: int = 0,
    discount: float = 0.95,
) -> TabularMDP:
    """A random MDP of the family GARNET(S, A, b) (Archibald, McKinnon and Thomas 1995).

    Every pair has b different successors, drawn without replacement, with probabilities that are
    the gaps between b − 1 uniform cuts of [0, 1]. Rewards r(s, a) are uniform in [0, 1]; sources
    differ in them.

    Parameters
    ----------
    n_states, n_actions : int
        S and A.
    branching : int, at most ``n_states``
        b.
    seed : int
        Decides the MDP.
    discount : float in [0, 1]
        γ.

    Returns
    -------
    TabularMDP

    Examples
    --------
    >>> import brmdp
    >>> brmdp.envs.garnet(20, 3, 2, seed=7)
    TabularMDP(20 states, 3 actions, 120 possible transitions, discount=0.95)
    """
    states = as_positive_int(n_states, "n_states")
    actions = as_positive_int(n_actions, "n_actions")
    wide = as_positive_int(branching, "branching")
    if wide > states:
        raise InvalidInputError(f"branching must not exceed n_states={states}; got {wide}")
    check_transition_count(states * actions * wide, "n_states, n_actions and branching together")
    rng = np.random.default_rng(as_index(seed, 2**63, "seed"))
    pairs = states * actions
    successors = np.concatenate([rng.choice(states, wide, replace=False) for _ in range(pairs)])
    cuts = np.sort(rng.random((pairs, wide - 1)), axis=1)
    chances = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
    owners, acts = np.divmod(np.repeat(np.arange(pairs), wide), actions)
    kernel = kernel_of_moves((states, actions), owners, acts, successors, chances.ravel())
    return TabularMDP(kernel, rng.random((states, actions)), discount, start=0)


class GarnetEnv(TabularEnv):
    """A random MDP as an environment.

    Parameters
    ----------
    n_states, n_actions, branching, seed, discount
        As in :func:`brmdp.envs.garnet`.
    render_mode : {None, "ansi", "rgb_array"}
        As in :class:`TabularEnv`.

    Examples
    --------
    >>> from brmdp.envs import GarnetEnv
    >>> env = GarnetEnv(5, 2, 2, seed=3)
    >>> int(env.observation_space.n), int(env.action_space.n)
    (5, 2)
    """

    def __init__(
        self,
        n_states: int = 10,
        n_actions: int = 4,
        branching: int = 3,
        *,
        seed: int = 0,
        discount: float = 0.95,
        render_mode: RenderMode | None = None,
    ) -> None:
        mdp = garnet(n_states, n_actions, branching, seed=seed, discount=discount)
        super().__init__(mdp, render_mode)
