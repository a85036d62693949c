"""Your own environment: a machine that wears, as a known MDP.

A function that returns a :class:`brmdp.TabularMDP` is enough; it may also return a Gymnasium
environment or a :class:`brmdp.World`. In a sweep, write ``name = "own_environment:machine"``, with
``states`` and ``wear`` as parameters.
"""

from __future__ import annotations

import numpy as np

import brmdp

RUN, REPAIR = 0, 1


def machine(states: int = 5, wear: float = 0.3, discount: float = 0.9) -> brmdp.TabularMDP:
    """A machine in one of ``states`` conditions; condition 0 is new.

    It earns 1 − s/(S − 1) per period and wears with probability ``wear``. A repair costs 0.5 and
    makes it new.
    """
    kernel = np.zeros((states, 2, states))
    for s in range(states):
        worse = min(s + 1, states - 1)
        kernel[s, RUN, s] += 1.0 - wear
        kernel[s, RUN, worse] += wear
        kernel[s, REPAIR, 0] = 1.0
    earned = 1.0 - np.arange(states) / (states - 1)
    return brmdp.TabularMDP(kernel, np.column_stack([earned, np.full(states, -0.5)]), discount)


if __name__ == "__main__":
    print("repair from condition", int(brmdp.solve(machine()).policy.argmax()), "on")
