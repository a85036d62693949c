"""Settings for fitting the network, as plain data that needs no JAX."""

from __future__ import annotations

from dataclasses import dataclass

from brmdp._validation import as_number, as_positive_int, as_positive_number
from brmdp.errors import InvalidInputError

__all__ = ["FittedQ"]


@dataclass(frozen=True)
class FittedQ:
    """How the network is fitted at the start of each pseudo-episode.

    Parameters
    ----------
    hidden : tuple of int
        Number of units in each hidden layer.
    learning_rate : float
        Learning rate of Adam. Its moments are kept from one pseudo-episode to the next, as is the
        network.
    states : int
        Number of training states per iteration.
    iterations : int
        Number of fitted Q iterations per pseudo-episode.
    gradient_steps : int
        Number of Adam steps per iteration.
    first_rounds : int
        The k-th pseudo-episode has ⌈first_rounds/k⌉ × ``iterations`` iterations. The first one
        starts from a random network, and while there are few data, each belief (and with it the
        targets) differs greatly from the last.
    replay_share : float in [0, 1]
        Share of the training states that are taken from the visited states; the others are spread
        over the whole state space.
    replay_capacity : int
        Number of visited states that are kept, the most recent ones.
    draws : int
        Number of posterior draws per pseudo-episode, shared by all pairs. Continuing PSRL always
        uses one.

    Examples
    --------
    >>> from brmdp.continuous import FittedQ
    >>> FittedQ(hidden=(32,), draws=200).iterations
    6
    """

    hidden: tuple[int, ...] = (64, 64)
    learning_rate: float = 3e-3
    states: int = 128
    iterations: int = 6
    gradient_steps: int = 16
    first_rounds: int = 20
    replay_share: float = 0.5
    replay_capacity: int = 10_000
    draws: int = 800

    def __post_init__(self) -> None:
        if not isinstance(self.hidden, tuple | list):
            raise InvalidInputError(
                f"hidden must be a tuple of positive integers; got {self.hidden!r}"
            )
        object.__setattr__(
            self, "hidden", tuple(as_positive_int(units, "hidden") for units in self.hidden)
        )
        object.__setattr__(
            self, "learning_rate", as_positive_number(self.learning_rate, "learning_rate")
        )
        for name in (
            "states",
            "iterations",
            "gradient_steps",
            "first_rounds",
            "replay_capacity",
            "draws",
        ):
            object.__setattr__(self, name, as_positive_int(getattr(self, name), name))
        share = as_number(self.replay_share, "replay_share", "a number in [0, 1]")
        if not 0.0 <= share <= 1.0:
            raise InvalidInputError(f"replay_share must lie in [0, 1]; got {self.replay_share!r}")
        object.__setattr__(self, "replay_share", share)
