"""Fitted Q iteration with a risk measure over posterior draws, as one compiled loop.

An iteration computes the targets of a batch of states under all draws and the current network,
reduces them over the draws, clips them, and takes a few Adam steps on the mean squared difference.
The reduction is the mean (posterior mean, or posterior sampling if there is a single draw) or, for
a quantile, an order statistic of the pair's first draws. Training states, ranks and numbers of
draws are chosen outside, in NumPy, so the compiled loop is a plain function of arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax

from brmdp.continuous.device import compiled
from brmdp.continuous.model import ParametricModel, Value
from brmdp.continuous.network import Network, forward
from brmdp.continuous.order_statistic import STRIPES, order_statistics
from brmdp.continuous.settings import FittedQ

__all__ = ["Learner", "Ranks", "fit", "initial_learner", "q_values", "targets", "uncertainty"]

BATCH = 16
"""Number of states whose targets are computed together.

With hundreds of draws per state, they still fit into the processor's cache.
"""


class Learner(NamedTuple):
    """What is carried from one fit to the next: the network and the state of its optimiser."""

    network: Network
    optimiser: Any


class Ranks(NamedTuple):
    """The order statistic of each pair: the ``rank``-th smallest of its first ``count`` draws."""

    rank: Any
    count: Any


def initial_learner(settings: FittedQ, network: Network) -> Learner:
    """A learner with this network and a new optimiser."""
    return Learner(network, _optimiser(settings).init(network))


def _optimiser(settings: FittedQ) -> Any:
    return optax.adam(settings.learning_rate)


def _in_batches(function: Callable[[Any], jax.Array], arrays: Any) -> jax.Array:
    """Apply ``function`` to arrays that share their first axis, a few entries at a time."""
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
def targets(
    model: ParametricModel, network: Network, states: Any, draws: Any, discount: float
) -> jax.Array:
    """(n, A, B) targets G(s, a; θ, Q) of every draw, before clipping."""
    return model.targets(_value(model, network), states, draws, discount)


@compiled("model", "discount")
def uncertainty(
    model: ParametricModel, network: Network, states: Any, draws: Any, discount: float
) -> jax.Array:
    """(n, A) standard deviation of the targets over the draws."""
    value = _value(model, network)

    def deviations(batch: jax.Array) -> jax.Array:
        # loop over states: with one long array, XLA would compute the targets again for each sum
        found: jax.Array = lax.map(_deviation, model.targets(value, batch, draws, discount))
        return found

    return _in_batches(deviations, states)


def _deviation(rows: jax.Array) -> jax.Array:
    """(m,) standard deviations of rows (m, B).

    Both moments are computed in one pass, in stripes that suit vector instructions.
    """
    n = rows.shape[-1]
    # relative to the first entry, so that equal numbers have deviation exactly zero
    shifted = jnp.pad(rows - rows[:, :1], ((0, 0), (0, -n % STRIPES))).reshape(
        len(rows), STRIPES, -1
    )
    nothing = jnp.zeros((), rows.dtype)
    sums = lax.reduce(
        (shifted, shifted * shifted),
        (nothing, nothing),
        lambda a, b: (a[0] + b[0], a[1] + b[1]),
        dimensions=(1,),
    )
    mean, square = (part.sum(axis=-1) / n for part in sums)
    return jnp.sqrt(jnp.maximum(square - mean * mean, 0.0))


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
    """Run fitted Q iteration, starting from ``learner``.

    Parameters
    ----------
    model, settings
        The model and the settings of the fit; the loop is compiled once for each.
    learner : Learner
        Network and optimiser to start from.
    states : (iterations, n, D) array
        Training states.
    draws : tree of arrays
        Parameters, as ``belief.sample`` returned them.
    ranks : Ranks of (iterations, n, A) integers, or None
        Order statistics to use as targets; None for the mean over the draws.
    discount : float
        Discount factor γ.

    Returns
    -------
    learner : Learner
        Network and optimiser after the fit.
    losses : (iterations,) array
        Mean squared difference between the network and its targets, before the gradient steps of
        each iteration.
    """
    low, high = model.bounds(discount)
    optimiser = _optimiser(settings)

    def loss(network: Network, features: jax.Array, wanted: jax.Array) -> jax.Array:
        return jnp.mean((forward(network, features) - wanted) ** 2)

    def iteration(
        learner: Learner, batch: tuple[jax.Array, Ranks | None]
    ) -> tuple[Learner, jax.Array]:
        value = _value(model, learner.network)

        def reduced(part: tuple[jax.Array, Ranks | None]) -> jax.Array:
            chosen, order = part
            sampled = model.targets(value, chosen, draws, discount)
            return (
                sampled.mean(axis=-1)
                if order is None
                else order_statistics(sampled, order.rank, order.count)
            )

        wanted = jnp.clip(_in_batches(reduced, batch), low, high)
        features = model.features(batch[0])

        def step(learner: Learner, _: None) -> tuple[Learner, jax.Array]:
            difference, gradient = jax.value_and_grad(loss)(learner.network, features, wanted)
            updates, optimiser_state = optimiser.update(gradient, learner.optimiser)
            return Learner(
                optax.apply_updates(learner.network, updates), optimiser_state
            ), difference

        learner, differences = lax.scan(step, learner, length=settings.gradient_steps)
        return learner, differences[0]

    return lax.scan(iteration, learner, (states, ranks))
