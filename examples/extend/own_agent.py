"""An agent of one's own: Q-learning, which knows no belief at all.

Two methods are enough, ``act`` and ``observe``. This one also asks for the reward and tells its
policy, so that true regret can be measured. In a sweep it is ``name = "own_agent:QLearning"``; it
is then called as the library's presets are.
"""

from __future__ import annotations

import numpy as np

import brmdp


class QLearning:
    """ε-greedy Q-learning.

    Parameters
    ----------
    belief, rewards
        What the library's agents plan with; Q-learning takes the numbers of states and actions
        from the belief and ignores the rest.
    discount : float
    rate, epsilon : float
        Learning rate, and share of random actions.
    rng : numpy.random.Generator or seed
    """

    def __init__(self, belief, rewards, discount, *, rate=0.1, epsilon=0.1, rng=None) -> None:
        self.q = np.zeros((belief.pattern.n_states, belief.pattern.n_actions))
        self.discount, self.rate, self.epsilon = discount, rate, epsilon
        self.rng = np.random.default_rng(rng)

    @property
    def policy(self):
        """The greedy action in every state, for which true regret is measured."""
        return self.q.argmax(axis=1)

    def act(self, state: int) -> int:
        """A random action with probability ε, otherwise the greedy one."""
        if self.rng.random() < self.epsilon:
            return int(self.rng.integers(self.q.shape[1]))
        return int(self.q[state].argmax())

    def observe(self, state: int, action: int, next_state: int, *, reward: float) -> None:
        """One step towards r + γ max Q(s', ·)."""
        target = reward + self.discount * self.q[next_state].max()
        self.q[state, action] += self.rate * (target - self.q[state, action])


if __name__ == "__main__":
    world = brmdp.World("brmdp/RiverSwim-v0", discount=0.9)
    agent = QLearning(world.prior(), world.rewards, 0.9, rng=1)
    print(brmdp.simulate(agent, world, 2000, seed=1))
