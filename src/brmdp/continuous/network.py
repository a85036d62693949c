"""The Q-network: a multi-layer perceptron with rectified linear units and one output per action."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["Layer", "Network", "forward", "initial_network"]


class Layer(NamedTuple):
    """The affine map x ↦ x·weight + bias."""

    weight: jax.Array
    bias: jax.Array


Network = tuple[Layer, ...]


def initial_network(sizes: tuple[int, ...], *, rng: np.random.Generator) -> Network:
    """A random network with zero biases and weights of variance 2/inputs.

    This variance preserves the scale of rectified signals from layer to layer.

    Parameters
    ----------
    sizes : tuple of int
        Number of features, of units in each hidden layer, and of actions.
    rng : numpy.random.Generator
        Source of the weights.
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
