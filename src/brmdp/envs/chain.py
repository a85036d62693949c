"""Chain: five states, two actions that are confused one time in five (Dearden; Strens)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from brmdp._sparse import kernel_of_moves
from brmdp._validation import as_number, as_positive_int, check_transition_count
from brmdp.envs.rendering import GridPainter
from brmdp.envs.tabular_env import RenderMode, TabularEnv
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP
from brmdp.pattern import DENSE_REWARDS

__all__ = ["ChainEnv", "chain"]


def chain(n: int = 5, *, slip: float = 0.2, discount: float = 0.99) -> TabularMDP:
    """The chain of Dearden, Friedman and Russell (AAAI 1998) and Strens (ICML 2000).

    Action forward moves one state on, from the last state to itself; action back returns to the
    first. With probability ``slip`` the other one happens. Going back pays 2 and staying at the
    last state pays 10, whichever action was meant.

    Parameters
    ----------
    n : int
        Number of states, at least 2.
    slip : float in [0, 1]
        Probability that the actions are confused.
    discount : float in [0, 1]
        γ.

    Returns
    -------
    TabularMDP

    Examples
    --------
    >>> import brmdp
    >>> chain = brmdp.envs.chain()
    >>> chain.kernel()[4]
    array([[0.2, 0. , 0. , 0. , 0.8],
           [0.8, 0. , 0. , 0. , 0.2]])
    >>> brmdp.solve(chain).policy
    array([0, 0, 0, 0, 0])
    """
    n = as_positive_int(n, "n")
    if n < 2:
        raise InvalidInputError(f"n must be at least 2; got {n}")
    check_transition_count(4 * n, "n")
    confused = as_number(slip, "slip", "a number in [0, 1]")
    if not 0.0 <= confused <= 1.0:
        raise InvalidInputError(f"slip must lie in [0, 1]; got {slip!r}")
    states = np.arange(n)
    ahead, first = np.minimum(states + 1, n - 1), np.zeros(n, dtype=np.int64)
    next_states = np.column_stack([ahead, first, ahead, first]).ravel()
    owners, actions = np.divmod(np.repeat(np.arange(2 * n), 2), 2)
    meant = 1.0 - confused
    chances = np.tile([meant, confused, confused, meant], n)
    kernel = kernel_of_moves((n, 2), owners, actions, next_states, chances)
    paid = np.concatenate([np.full(2 * n, 2.0), [10.0, 10.0]])
    where = (
        np.concatenate([np.arange(2 * n), [2 * n - 2, 2 * n - 1]]),
        np.concatenate([np.zeros(2 * n, dtype=np.int64), [n - 1, n - 1]]),
    )
    rewards: Any = sparse.coo_array((paid, where), shape=(2 * n, n))
    if 2 * n * n <= DENSE_REWARDS:
        rewards = rewards.toarray().reshape(n, 2, n)
    return TabularMDP(kernel, rewards, discount, start=0, action_names=("forward", "back"))


class ChainEnv(TabularEnv):
    """The chain as an environment, drawn from the start S to the goal G.

    Parameters
    ----------
    n, slip, discount
        As in :func:`brmdp.envs.chain`.
    render_mode : {None, "ansi", "rgb_array"}
        As in :class:`TabularEnv`.

    Examples
    --------
    >>> from brmdp.envs import ChainEnv
    >>> env = ChainEnv(render_mode="ansi")
    >>> state, _ = env.reset(seed=1)
    >>> print(env.render().rstrip())
    state 0
    [S] .  .  .  G
    """

    def __init__(
        self,
        n: int = 5,
        *,
        slip: float = 0.2,
        discount: float = 0.99,
        render_mode: RenderMode | None = None,
    ) -> None:
        mdp = chain(n, slip=slip, discount=discount)
        super().__init__(mdp, render_mode, GridPainter((f"S{'.' * (mdp.n_states - 2)}G",)))
