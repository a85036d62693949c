"""Bayes-adaptive tree search with root sampling, and the rollouts below its leaves.

A node is a history of actions and next states below the root. Node v has the A slots v·A + a, each
with a list of children, one per next state that was met: ``first[slot]`` and then ``sibling``.
"""

from __future__ import annotations

import math

import numpy as np

from brmdp._kernels.compiled import kernel
from brmdp._kernels.groups import draw_log_gamma

NONE = -1


@kernel
def draw_row(begin, end, concentration, rows, rng):
    """A draw of one Dirichlet row into rows[begin:end]."""
    most = -np.inf
    for i in range(begin, end):
        rows[i] = draw_log_gamma(concentration[i], rng)
        most = max(most, rows[i])
    total = 0.0
    for i in range(begin, end):
        rows[i] = math.exp(rows[i] - most)
        total += rows[i]
    for i in range(begin, end):
        rows[i] /= total


@kernel
def draw_entry(pair, indptr, concentration, rows, drawn, simulation, rng):
    """An entry of a pair's row, which is drawn when a simulation first needs it."""
    begin = indptr[pair]
    end = indptr[pair + 1]
    if drawn[pair] != simulation:
        draw_row(begin, end, concentration, rows, rng)
        drawn[pair] = simulation
    rest = rng.random()
    for i in range(begin, end - 1):
        rest -= rows[i]
        if rest < 0.0:
            return i
    return end - 1


@kernel
def admissible_action(state, n_actions, indptr, rng):
    """An admissible action, uniformly at random."""
    count = 0
    for a in range(n_actions):
        pair = state * n_actions + a
        count += indptr[pair + 1] > indptr[pair]
    ticket = int(rng.random() * count)
    for a in range(n_actions):
        pair = state * n_actions + a
        if indptr[pair + 1] > indptr[pair]:
            if ticket == 0:
                return a
            ticket -= 1
    return 0


@kernel
def guided_action(state, n_actions, indptr, guide, epsilon, rng):
    """The ε-greedy action for ``guide``, (S·A,); ties are broken at random."""
    if rng.random() < epsilon:
        return admissible_action(state, n_actions, indptr, rng)
    best = -np.inf
    chosen = 0
    ties = 0
    for a in range(n_actions):
        pair = state * n_actions + a
        if indptr[pair + 1] == indptr[pair]:
            continue
        if guide[pair] > best:
            best = guide[pair]
            chosen = a
            ties = 1
        elif guide[pair] == best:
            ties += 1
            if rng.random() * ties < 1.0:
                chosen = a
    return chosen


@kernel
def tree_action(node, state, n_actions, indptr, visits, values, exploration, rng):
    """The action that UCB1 takes in a node that was visited; untried ones come first, at random."""
    total = 0
    untried = 0
    chosen = 0
    for a in range(n_actions):
        pair = state * n_actions + a
        if indptr[pair + 1] == indptr[pair]:
            continue
        count = visits[node * n_actions + a]
        total += count
        if count == 0:
            untried += 1
            if rng.random() * untried < 1.0:
                chosen = a
    if untried > 0:
        return chosen
    best = -np.inf
    log_total = math.log(total)
    for a in range(n_actions):
        pair = state * n_actions + a
        if indptr[pair + 1] == indptr[pair]:
            continue
        slot = node * n_actions + a
        bound = values[slot] + exploration * math.sqrt(log_total / visits[slot])
        if bound > best:
            best = bound
            chosen = a
    return chosen


@kernel
def bayes_adaptive_search(
    indptr,
    next_states,
    concentration,
    rewards,
    discount,
    n_actions,
    root,
    simulations,
    depth,
    rollout,
    exploration,
    epsilon,
    guide,
    leaf,
    rng,
):
    """Values (A,) and visits (A,) of the actions at the root after so many simulations.

    Each simulation draws a kernel (row by row, as rows are needed), goes down the tree by UCB1,
    adds one node, and then follows the ε-greedy policy of ``guide`` for at most ``rollout`` steps,
    but never beyond ``depth`` steps from the root. What comes after is worth ``leaf`` of the state
    reached.
    """
    slots = (simulations + 1) * n_actions
    visits = np.zeros(slots, np.int64)
    values = np.zeros(slots)
    first = np.full(slots, NONE)
    sibling = np.full(simulations + 1, NONE)
    where = np.zeros(simulations + 1, np.int64)
    where[0] = root
    nodes = 1
    rows = np.empty_like(concentration)
    drawn = np.full(indptr.shape[0] - 1, NONE)
    path = np.empty(depth, np.int64)
    paid = np.empty(depth)
    for simulation in range(simulations):
        node = 0
        state = root
        steps = 0
        inside = True
        while inside and steps < depth:
            action = tree_action(node, state, n_actions, indptr, visits, values, exploration, rng)
            pair = state * n_actions + action
            entry = draw_entry(pair, indptr, concentration, rows, drawn, simulation, rng)
            slot = node * n_actions + action
            path[steps] = slot
            paid[steps] = rewards[entry]
            steps += 1
            state = next_states[entry]
            child = first[slot]
            while child != NONE and where[child] != state:
                child = sibling[child]
            if child == NONE:
                child = nodes
                nodes += 1
                where[child] = state
                sibling[child] = first[slot]
                first[slot] = child
                inside = False
            node = child
        total = 0.0
        weight = 1.0
        for _ in range(min(rollout, depth - steps)):
            action = guided_action(state, n_actions, indptr, guide, epsilon, rng)
            pair = state * n_actions + action
            entry = draw_entry(pair, indptr, concentration, rows, drawn, simulation, rng)
            total += weight * rewards[entry]
            weight *= discount
            state = next_states[entry]
        total += weight * leaf[state]
        for k in range(steps - 1, -1, -1):
            total = paid[k] + discount * total
            slot = path[k]
            visits[slot] += 1
            values[slot] += (total - values[slot]) / visits[slot]
    return values[:n_actions], visits[:n_actions]
