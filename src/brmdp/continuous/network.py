"""The Q-network: a plain multi-layer perceptron with rectified units, one output per action."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["Layer", "Network", "forward", "initial_network"]


class Layer(NamedTuple):
    """x ↦ x·weight + bias."""

    weight: jax.Array
    bias: jax.Array


Network = tuple[Layer, ...]


def initial_network(sizes: tuple[int, ...], *, rng: np.random.Generator) -> Network:
    """Weights of variance 2/inputs.

    Which keeps the size of rectified signals from layer to layer, and no biases.

    Parameters
    ----------
    sizes : (F, …, A)
        Number of features, of hidden units layer by layer, and of actions.
    rng : numpy.random.Generator
    """
    return tuple(
        Layer(
            jnp.asarray(rng.normal(0.0, np.sqrt(2.0 / inputs), (inputs, outputs)), jnp.float32),
            jnp.zeros(outputs, jnp.float32),
        )
        for inputs, outputs in itertools.pairwise(sizes)
    )


def forward(network: Network, features: jax.Array) -> jax.Array:
    """(n, A) Q-values of features (n, F)."""
    signal = features
    for layer in network[:-1]:
        signal = jax.nn.relu(signal @ layer.weight + layer.bias)
    return signal @ network[-1].weight + network[-1].bias
