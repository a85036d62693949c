"""What fitted Q iteration needs: a parametric model of the transitions and a belief about it.

A *model* is the mathematics: for a parameter θ and a function Q, the Bellman target of every state
and action,

    G(s, a; θ, Q) = E_{s' ~ P_θ(·|s,a)}[R(s,a,s') + γ max_a' Q(s',a')],

for many θ at once, and the features of a state that the network sees. A *belief* is a distribution
over θ that learns from transitions. Any two objects with these methods can be used;
``examples/drifting.py`` shows a pair of about fifty lines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from brmdp._validation import BoolArray, FloatArray

__all__ = ["ParametricBelief", "ParametricModel"]

Value = Callable[[jax.Array], jax.Array]
"""Maps states (n, D) to max_a Q(s, a), (n,)."""


class ParametricModel(Protocol):
    """Transitions known up to a parameter; a state is D numbers.

    Models must be hashable, and two models with the same settings must be equal, as frozen
    dataclasses of numbers are: compiled functions are cached by model. JAX compiles ``features``
    and ``targets``; the other methods work on NumPy arrays.

    Examples
    --------
    >>> from brmdp.continuous import LakeModel, ParametricModel
    >>> model: ParametricModel = LakeModel()
    >>> model.n_actions, model.centres.shape
    (4, (15, 2))
    """

    @property
    def n_actions(self) -> int:
        """A."""
        ...

    @property
    def centres(self) -> FloatArray:
        """(C, D) states over which the level schedule averages; they also define D."""
        ...

    def as_states(self, value: ArrayLike, name: str) -> FloatArray:
        """``value`` as an array of states (n, D).

        Raises
        ------
        InvalidInputError
            If ``value``, which the message calls ``name``, is not an array of states.
        """
        ...

    def known(self, states: NDArray[Any]) -> BoolArray:
        """(n,) whether the transition from each state is known, that is, independent of θ."""
        ...

    def sample_states(self, n: int, *, rng: np.random.Generator) -> FloatArray:
        """(n, D) training states spread over the whole state space."""
        ...

    def bounds(self, discount: float) -> tuple[float, float]:
        """Smallest and largest possible value; targets are clipped to them."""
        ...

    def features(self, states: jax.Array) -> jax.Array:
        """(n, F) features of states (n, D), the input of the network."""
        ...

    def targets(self, value: Value, states: jax.Array, draws: Any, discount: float) -> jax.Array:
        """(n, A, B) targets G(s, a; θ, Q) for states (n, D) and the B parameters ``draws``."""
        ...


class ParametricBelief(Protocol):
    """A belief about the parameter of a model.

    To be saved with an agent, it also needs ``arrays`` and ``from_arrays``, like the library's
    beliefs.

    Examples
    --------
    >>> from brmdp.continuous import LakeBelief, ParametricBelief
    >>> belief: ParametricBelief = LakeBelief()
    >>> belief.sample(5, rng=1).slip.shape
    (5, 3)
    """

    def observe(
        self, state: ArrayLike, action: int, next_state: ArrayLike, primitives: Any
    ) -> None:
        """Learn from a transition, in place; must leave the belief unchanged if it raises an error.

        ``primitives`` is what the simulator reveals about the transition. A belief that can learn
        from the states alone ignores it.
        """
        ...

    def sample(self, n: int, *, rng: np.random.Generator) -> Any:
        """``n`` independent draws of the parameter.

        They form a named tuple (or any other JAX pytree) of arrays with first axis n.
        """
        ...

    def copy(self) -> Self:
        """An independent copy."""
        ...
