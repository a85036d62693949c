"""Your own level schedule and restart rule.

The schedule is as curious as the data are strong; the rule plans again after every doubling of the
steps. In a sweep, write ``schedule = { name = "own_schedule:FollowTheData", highest = 0.8 }`` and
``restart = { name = "own_schedule:Doubling" }`` for an ``agent``.
"""

from __future__ import annotations

from dataclasses import dataclass

import brmdp


@dataclass(frozen=True)
class FollowTheData:
    """From ``lowest`` towards ``highest`` as observations outweigh the prior of a pair."""

    lowest: float = 0.1
    highest: float = 0.9

    def levels(self, progress: brmdp.agents.Progress):
        """One level per pair, (S, A)."""
        share = progress.visits / (progress.visits + progress.prior_strength)
        return self.lowest + (self.highest - self.lowest) * share


@dataclass(frozen=True)
class Doubling:
    """Ends a pseudo-episode when the number of steps is a power of two."""

    def ends(self, progress: brmdp.agents.Progress, *, rng) -> bool:
        """Whether to learn and plan again; ``rng`` is not needed here."""
        return progress.steps & (progress.steps - 1) == 0


if __name__ == "__main__":
    world = brmdp.World("brmdp/RiverSwim-v0", discount=0.9)
    agent = brmdp.Agent(
        world.prior(),
        world.rewards,
        0.9,
        risk=brmdp.Quantile(0.1),
        schedule=FollowTheData(),
        restart=Doubling(),
        rng=0,
    )
    print(brmdp.simulate(agent, world, 500, seed=0))
    agent.save("own-schedule.npz")
    print(brmdp.Agent.load("own-schedule.npz", schedule=FollowTheData(), restart=Doubling()))
