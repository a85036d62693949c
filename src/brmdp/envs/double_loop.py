"""Double loop: two deterministic loops that meet in the start; the better one needs persistence."""

from __future__ import annotations

import numpy as np

from brmdp._sparse import kernel_of_moves
from brmdp._validation import as_positive_int, check_transition_count
from brmdp.envs.rendering import GridPainter
from brmdp.envs.tabular_env import RenderMode, TabularEnv
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP

__all__ = ["DoubleLoopEnv", "double_loop"]


def double_loop(length: int = 5, *, discount: float = 0.99) -> TabularMDP:
    """The loop of Dearden, Friedman and Russell (AAAI 1998) and Strens (ICML 2000): nine states.

    From the start 0, action a leads into the loop 1, …, length − 1 and action b into the loop
    length, …, 2·length − 2. The first loop goes on with either action, and its last step pays 1. In
    the second one only b goes on, while a returns to the start; the step from its last state pays
    2.

    Parameters
    ----------
    length : int
        Number of steps of each loop, at least 2.
    discount : float in [0, 1]
        γ.

    Returns
    -------
    TabularMDP

    Examples
    --------
    >>> import brmdp
    >>> loop = brmdp.envs.double_loop()
    >>> loop.kernel().argmax(axis=2).T  # next states for a and for b
    array([[1, 2, 3, 4, 0, 0, 0, 0, 0],
           [5, 2, 3, 4, 0, 6, 7, 8, 0]])
    >>> brmdp.solve(loop).policy[[0, 5, 6, 7]]
    array([1, 1, 1, 1])
    """
    steps = as_positive_int(length, "length")
    if steps < 2:
        raise InvalidInputError(f"length must be at least 2; got {steps}")
    n = 2 * steps - 1
    check_transition_count(2 * n, "length")
    following = np.zeros((n, 2), dtype=np.int64)
    following[0] = 1, steps
    following[1 : steps - 1] = np.arange(2, steps)[:, None]
    following[steps : n - 1, 1] = np.arange(steps + 1, n)
    rewards = np.zeros((n, 2))
    rewards[steps - 1] = 1.0
    rewards[n - 1] = 2.0
    states, actions = np.divmod(np.arange(2 * n), 2)
    kernel = kernel_of_moves((n, 2), states, actions, following.ravel(), np.ones(2 * n))
    return TabularMDP(kernel, rewards, discount, start=0, action_names=("a", "b"))


class DoubleLoopEnv(TabularEnv):
    """The double loop as an environment; each loop is a line that ends where it pays.

    Parameters
    ----------
    length, discount
        As in :func:`brmdp.envs.double_loop`.
    render_mode : {None, "ansi", "rgb_array"}
        As in :class:`TabularEnv`.

    Examples
    --------
    >>> from brmdp.envs import DoubleLoopEnv
    >>> env = DoubleLoopEnv(render_mode="ansi")
    >>> state, _ = env.reset(seed=1)
    >>> state, *_ = env.step(1)
    >>> for line in env.render().splitlines():
    ...     print(line.rstrip())
    state 5, after b
     S  .  .  .  J
    [.] .  .  G
    """

    def __init__(
        self, length: int = 5, *, discount: float = 0.99, render_mode: RenderMode | None = None
    ) -> None:
        mdp = double_loop(length, discount=discount)
        steps = (mdp.n_states + 1) // 2
        rows = (f"S{'.' * (steps - 2)}J", f"{'.' * (steps - 2)}G ")
        super().__init__(mdp, render_mode, GridPainter(rows))
