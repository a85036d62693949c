"""What fitted Q iteration needs to know about a parametric model of transitions.

And about what is believed of its parameters.

A *model* is the mathematics: for a parameter θ and a function Q, the Bellman target of every state
and action,

    G(s, a; θ, Q) = E_{s' ~ P_θ(·|s,a)}[R(s,a,s') + γ max_a' Q(s',a')],

for many θ at once, and how a state looks to the network. A *belief* is a distribution over θ that
learns from transitions. Any two objects with these methods will do; ``examples/drifting.py`` shows
a pair of some fifty lines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self

import jax
import numpy as np
from numpy.typing import NDArray

from brmdp._validation import FloatArray

__all__ = ["ParametricBelief", "ParametricModel"]

Value = Callable[[jax.Array], jax.Array]
"""max_a Q(s, a) of states (n, D), as (n,)."""


class ParametricModel(Protocol):
    """Transitions known up to a parameter; D numbers make a state.

    It must be hashable, and equal to another of the same making, as a frozen dataclass of numbers
    is: compiled functions are kept for each model. ``features`` and ``targets`` are compiled by
    JAX; the others work on NumPy arrays.
    """

    @property
    def n_actions(self) -> int:
        """A."""
        ...

    @property
    def centres(self) -> FloatArray:
        """(C, D) states over which the level schedule averages; D is read from here."""
        ...

    def as_states(self, value: Any, name: str) -> FloatArray:
        """``value`` as states (n, D).

        An :class:`~brmdp.InvalidInputError` that calls it ``name`` if it is something else.
        """
        ...

    def known(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        """At which states.

        (n, D) the transition does not depend on the parameter, whatever the action.
        """
        ...

    def sample_states(self, n: int, *, rng: np.random.Generator) -> FloatArray:
        """(n, D) states spread over all of the model's, for training."""
        ...

    def bounds(self, discount: float) -> tuple[float, float]:
        """Least and largest value possible; targets are clipped to them."""
        ...

    def features(self, states: jax.Array) -> jax.Array:
        """(n, F) what the network sees of states (n, D)."""
        ...

    def targets(self, value: Value, states: jax.Array, draws: Any, discount: float) -> jax.Array:
        """(n, A, B) targets G(s, a; θ, Q) for states (n, D) and the B parameters ``draws``."""
        ...


class ParametricBelief(Protocol):
    """What is believed about the parameter.

    To be saved with an agent, it must be ``Saveable`` like the library's posteriors.
    """

    def observe(self, state: Any, action: int, next_state: Any, primitives: Any) -> None:
        """Learn from a transition, in place, or raise and change nothing.

        ``primitives`` is what the simulator reveals of how it came about; a belief that sees enough
        from the states ignores it.
        """
        ...

    def sample(self, n: int, *, rng: np.random.Generator) -> Any:
        """``n`` independent draws.

        A named tuple (or any other tree known to JAX) of arrays with n as their first axis.
        """
        ...

    def copy(self) -> Self:
        """An independent belief that knows the same."""
        ...
