"""Your own agent: Q-learning, which uses no belief at all.

The methods ``act`` and ``observe`` are enough. This agent also takes the reward, and has a policy,
so that true regret can be measured. In a sweep, write ``name = "own_agent:QLearning"``; the class
is then called with the same arguments as the library's presets.
"""

from __future__ import annotations

import numpy as np

import brmdp


class QLearning:
    """ε-greedy Q-learning.

    Parameters
    ----------
    belief, rewards
        What the library's agents plan with. Q-learning takes only the numbers of states and actions
        from the belief.
    discount : float
        γ.
    rate, epsilon : float
        Learning rate and probability of a random action.
    rng : numpy.random.Generator or seed, optional
        Source of the random actions.
    """

    def __init__(self, belief, rewards, discount, *, rate=0.1, epsilon=0.1, rng=None) -> None:
        self.q = np.zeros((belief.pattern.n_states, belief.pattern.n_actions))
        self.discount, self.rate, self.epsilon = discount, rate, epsilon
        self.rng = np.random.default_rng(rng)

    @property
    def policy(self):
        """(S, A) probabilities of the actions, for which true regret is measured."""
        n_states, n_actions = self.q.shape
        probabilities = np.full((n_states, n_actions), self.epsilon / n_actions)
        probabilities[np.arange(n_states), self.q.argmax(axis=1)] += 1.0 - self.epsilon
        return probabilities

    def act(self, state: int) -> int:
        """A random action with probability ε, otherwise the greedy one."""
        if self.rng.random() < self.epsilon:
            return int(self.rng.integers(self.q.shape[1]))
        return int(self.q[state].argmax())

    def observe(self, state: int, action: int, next_state: int, *, reward: float) -> None:
        """Move Q(s, a) one step towards r + γ max Q(s', ·)."""
        target = reward + self.discount * self.q[next_state].max()
        self.q[state, action] += self.rate * (target - self.q[state, action])


if __name__ == "__main__":
    world = brmdp.World("brmdp/RiverSwim-v0", discount=0.9)
    agent = QLearning(world.prior(), world.rewards, 0.9, rng=1)
    print(brmdp.simulate(agent, world, 2000, seed=1))
