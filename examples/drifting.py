"""Bring your own continuous model: a boat in an unknown current.

The boat is at x in [−1, 1] and pushes left or right by 0.15. The current θ moves it, with some
noise, and walls stop it at both ends. At its new place x it earns 1 − x². The belief about θ is a
normal distribution, which is updated in closed form. Transitions that end at a wall say little
about θ and are ignored, a small approximation. :mod:`brmdp.continuous` needs only this belief and
the model, together about eighty lines. Run it with ``python examples/drifting.py`` (this needs
``pip install 'brmdp[continuous]'``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brmdp import InvalidInputError, continuous
from brmdp.beliefs.storage import Saveable

PUSHES = (-0.15, 0.15)
NOISE = 0.1
CURRENT = 0.08
DISCOUNT = 0.9
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(7)


class Drift(NamedTuple):
    """The unknown parameter: one value, or an array of draws."""

    current: Any


class DriftBelief(Saveable):
    """The belief θ ~ N(mean, 1/precision)."""

    def __init__(self, mean: float = 0.0, precision: float = 25.0) -> None:
        self.mean, self.precision = mean, precision

    def observe(self, state: Any, action: int, next_state: Any, primitives: Any = None) -> None:
        """Learn from a noisy observation of θ, unless a wall stopped the boat."""
        if abs(next_state[0]) < 1.0:
            seen, weight = next_state[0] - state[0] - PUSHES[action], 1.0 / NOISE**2
            self.mean = float(
                (self.precision * self.mean + weight * seen) / (self.precision + weight)
            )
            self.precision += weight

    def sample(self, n: int, *, rng: np.random.Generator) -> Drift:
        """``n`` draws of θ."""
        return Drift(rng.normal(self.mean, self.precision**-0.5, n))

    def copy(self) -> DriftBelief:
        """An independent copy."""
        return DriftBelief(self.mean, self.precision)

    def arrays(self) -> dict[str, np.ndarray]:
        """The belief as named arrays, for saving."""
        return {"moments": np.array([self.mean, self.precision])}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], source: Any) -> DriftBelief:
        """The belief that :meth:`arrays` described."""
        return cls(*arrays["moments"].tolist())


@dataclass(frozen=True)
class DriftModel:
    """The boat, known up to θ."""

    n_actions: int = len(PUSHES)

    @property
    def centres(self) -> np.ndarray:
        """(5, 1) places over which the schedule averages."""
        return np.linspace(-0.8, 0.8, 5)[:, None]

    def as_states(self, value: Any, name: str) -> np.ndarray:
        """``value`` as places (n, 1)."""
        states = np.asarray(value, dtype=np.float64)
        if states.ndim != 2 or states.shape[1] != 1 or not (abs(states) <= 1.0).all():
            raise InvalidInputError(
                f"{name} must have shape (n, 1) and lie in [-1, 1]; got {value!r}"
            )
        return states

    def known(self, states: np.ndarray) -> np.ndarray:
        """(n,) False: the current acts everywhere, so no transition is known."""
        return np.zeros(len(states), dtype=bool)

    def sample_states(self, n: int, *, rng: np.random.Generator) -> np.ndarray:
        """(n, 1) places, uniform on [−1, 1]."""
        return rng.uniform(-1.0, 1.0, (n, 1))

    def bounds(self, discount: float) -> tuple[float, float]:
        """Bounds on values, since rewards lie in [0, 1]."""
        return 0.0, 1.0 / (1.0 - discount)

    def features(self, states: jax.Array) -> jax.Array:
        """(n, 2) features: the place, and its distance from the middle."""
        return jnp.concatenate([states, abs(states)], axis=1)

    def targets(self, value: Any, states: jax.Array, draws: Drift, discount: float) -> jax.Array:
        """(n, 2, B) targets, by Gauss–Hermite quadrature over the noise."""
        drift = (
            states[:, :, None, None] + jnp.asarray(PUSHES)[:, None, None] + draws.current[:, None]
        )
        following = jnp.clip(drift + NOISE * jnp.asarray(NODES, states.dtype), -1.0, 1.0)
        paid = (
            1.0 - following**2 + discount * value(following.reshape(-1, 1)).reshape(following.shape)
        )
        return paid @ jnp.asarray(WEIGHTS / WEIGHTS.sum(), states.dtype)


def main() -> None:
    """Let two agents learn to keep the boat in the middle."""
    fitting = continuous.FittedQ(hidden=(32, 32), states=64, draws=200)
    for name, preset in (
        ("AQ-BRMDP", continuous.aq_brmdp),
        ("Continuing PSRL", continuous.continuing_psrl),
    ):
        agent = preset(DriftBelief(), DriftModel(), DISCOUNT, fitting=fitting, rng=0)
        rng, state, paid = np.random.default_rng(2), np.array([-0.9]), 0.0
        for _ in range(200):
            action = agent.act(state)
            following = np.clip(
                state + PUSHES[action] + CURRENT + NOISE * rng.normal(size=1), -1.0, 1.0
            )
            agent.observe(state, action, following)
            paid += 1.0 - following[0] ** 2
            state = following
        print(f"\n{name}: mean reward {paid / 200:.3f}, {agent.episode} pseudo-episodes")
        print(
            f"  believes the current is {agent.belief.mean:.3f} ± "
            f"{agent.belief.precision**-0.5:.3f} (it is {CURRENT})"
        )
        for report in agent.explain([0.5]):
            level = "" if report.level is None else f" (quantile at level {report.level:.2f})"
            print(
                f"  at 0.5, push {PUSHES[report.action]:+.2f}: value "
                f"{report.value:.3f}{level}{'  *' * report.chosen}"
            )


if __name__ == "__main__":
    main()
