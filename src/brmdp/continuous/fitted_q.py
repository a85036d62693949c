"""Fitted Q iteration with a risk measure over posterior draws, as one compiled loop.

An iteration computes the targets of a batch of states under all draws and the current network, reduces them over the draws, clips
them and takes a few steps of Adam on the mean squared difference. The reduction is the mean (posterior mean; a single draw is its
own mean, which is posterior sampling) or, for a quantile, the order statistic of the pair's rank among its first draws. Training
states, ranks and numbers of draws are chosen outside, in NumPy: the compiled loop is a plain function of arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax

from brmdp._validation import as_number, as_positive_int, as_positive_number
from brmdp.continuous.device import compiled
from brmdp.continuous.model import ParametricModel, Value
from brmdp.continuous.network import Network, forward
from brmdp.continuous.order_statistic import order_statistics
from brmdp.errors import InvalidInputError

__all__ = ["FittedQ", "Learner", "Ranks", "fit", "initial_learner", "q_values", "targets", "uncertainty"]

BATCH = 16
"""States whose targets are computed together: with hundreds of draws for each, few enough to stay in the processor's cache."""


@dataclass(frozen=True)
class FittedQ:
    """How the network is fitted at the start of each pseudo-episode.

    Parameters
    ----------
    hidden : tuple of int
        Units of the hidden layers.
    learning_rate : float
        Of Adam, whose moments live on from one pseudo-episode to the next, like the network.
    states : int
        Training states per iteration.
    iterations : int
        Fitted Q iterations per pseudo-episode.
    gradient_steps : int
        Steps of Adam per iteration.
    first_rounds : int
        The k-th pseudo-episode has ⌈first_rounds/k⌉ times the iterations: the first begins with a random network, and while data
        are few each posterior, and with it the targets, is far from the last.
    replay_share : float in [0, 1]
        Part of the training states taken from those visited; the rest is spread over all states.
    replay_capacity : int
        Most recent visits kept.
    draws : int
        Posterior draws per pseudo-episode, shared by all pairs.
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
            raise InvalidInputError(f"hidden must be a tuple of positive integers; got {self.hidden!r}")
        object.__setattr__(self, "hidden", tuple(as_positive_int(units, "hidden") for units in self.hidden))
        object.__setattr__(self, "learning_rate", as_positive_number(self.learning_rate, "learning_rate"))
        for name in ("states", "iterations", "gradient_steps", "first_rounds", "replay_capacity", "draws"):
            object.__setattr__(self, name, as_positive_int(getattr(self, name), name))
        share = as_number(self.replay_share, "replay_share", "a number in [0, 1]")
        if not 0.0 <= share <= 1.0:
            raise InvalidInputError(f"replay_share must lie in [0, 1]; got {self.replay_share!r}")
        object.__setattr__(self, "replay_share", share)


class Learner(NamedTuple):
    """What goes from one fit to the next: the network, and the state of its optimiser."""

    network: Network
    optimiser: Any


class Ranks(NamedTuple):
    """Which order statistic each pair takes: number ``rank``, from the smallest, of its first ``count`` draws."""

    rank: Any
    count: Any


def initial_learner(settings: FittedQ, network: Network) -> Learner:
    """A new optimiser for a network."""
    return Learner(network, _optimiser(settings).init(network))


def _optimiser(settings: FittedQ) -> Any:
    return optax.adam(settings.learning_rate)


def _in_batches(function: Callable[[Any], jax.Array], arrays: Any) -> jax.Array:
    """``function`` of arrays that share their first axis, a few entries of it at a time."""
    n = len(jax.tree.leaves(arrays)[0])
    size = min(n, BATCH)

    def cut(array: jax.Array) -> jax.Array:
        padded = jnp.pad(array, [(0, -n % size)] + [(0, 0)] * (array.ndim - 1), mode="edge")
        return padded.reshape(-1, size, *array.shape[1:])

    results: jax.Array = lax.map(function, jax.tree.map(cut, arrays))
    return results.reshape(-1, *results.shape[2:])[:n]


def _value(model: ParametricModel, network: Network) -> Value:
    return lambda states: forward(network, model.features(states)).max(axis=-1)


@compiled("model")
def q_values(model: ParametricModel, network: Network, states: Any) -> jax.Array:
    """(n, A) Q-values of states (n, D)."""
    return forward(network, model.features(states))


@compiled("model", "discount")
def targets(model: ParametricModel, network: Network, states: Any, draws: Any, discount: float) -> jax.Array:
    """(n, A, B) targets G(s, a; θ, Q) of every draw, before clipping."""
    return model.targets(_value(model, network), states, draws, discount)


@compiled("model", "discount")
def uncertainty(model: ParametricModel, network: Network, states: Any, draws: Any, discount: float) -> jax.Array:
    """(n, A) standard deviation of the targets over the draws."""
    value = _value(model, network)

    def deviation(batch: jax.Array) -> jax.Array:
        sampled = model.targets(value, batch, draws, discount)
        # from the first draw, so that draws that all agree deviate by nothing at all
        return (sampled - sampled[..., :1]).std(axis=-1)

    return _in_batches(deviation, states)


@compiled("model", "settings", "discount")
def fit(
    model: ParametricModel,
    settings: FittedQ,
    learner: Learner,
    states: Any,
    draws: Any,
    ranks: Ranks | None,
    discount: float,
) -> tuple[Learner, jax.Array]:
    """Fitted Q iteration from ``learner`` on.

    Parameters
    ----------
    model, settings
        Compiled once for each.
    learner : Learner
    states : (iterations, n, D) array
        Training states.
    draws : tree of arrays
        As ``belief.sample`` gave them.
    ranks : Ranks of (iterations, n, A) integers, or None
        None: the mean over the draws.
    discount : float

    Returns
    -------
    learner : Learner
    losses : (iterations,) array
        Mean squared difference between the network and its targets before the gradient steps of each iteration.
    """
    low, high = model.bounds(discount)
    optimiser = _optimiser(settings)

    def loss(network: Network, features: jax.Array, wanted: jax.Array) -> jax.Array:
        return jnp.mean((forward(network, features) - wanted) ** 2)

    def iteration(learner: Learner, batch: tuple[jax.Array, Ranks | None]) -> tuple[Learner, jax.Array]:
        value = _value(model, learner.network)

        def reduced(part: tuple[jax.Array, Ranks | None]) -> jax.Array:
            chosen, order = part
            sampled = model.targets(value, chosen, draws, discount)
            return sampled.mean(axis=-1) if order is None else order_statistics(sampled, order.rank, order.count)

        wanted = jnp.clip(_in_batches(reduced, batch), low, high)
        features = model.features(batch[0])

        def step(learner: Learner, _: None) -> tuple[Learner, jax.Array]:
            difference, gradient = jax.value_and_grad(loss)(learner.network, features, wanted)
            updates, optimiser_state = optimiser.update(gradient, learner.optimiser)
            return Learner(optax.apply_updates(learner.network, updates), optimiser_state), difference

        learner, differences = lax.scan(step, learner, length=settings.gradient_steps)
        return learner, differences[0]

    return lax.scan(iteration, learner, (states, ranks))
