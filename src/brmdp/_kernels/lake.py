"""Sweeps over the grid of the continuous lake: integrals along rows and columns, and backups.

Arrays over nodes are indexed [row, column], that is [y, x]; directions are Left, Right, Up, Down. A
node has a kind (0 ordinary, 1 hole, 2 goal). ``movement[kind, action]`` holds the probabilities of
a move in each direction, and ``staying[kind]`` the probability of no move. See
``brmdp.continuous.grid`` for the geometry.
"""

from __future__ import annotations

import numpy as np

from brmdp._kernels.compiled import kernel


@kernel
def accumulate(values, kinds, discount, lengths, share_x, share_y, along_x, along_y):
    """Integrals of h = 1[goal] + γV along rows and columns, from the border to every node.

    Between a node and the next lies a stretch of length ``lengths``; its first part, ``share``, is
    worth as much as the node itself, and the rest as much as the next node.
    """
    n = values.shape[0]
    worth, above = np.empty(n), np.empty(n)
    for j in range(n):
        for i in range(n):
            worth[i] = discount * values[j, i] + (kinds[j, i] == 2)
        total = 0.0
        along_x[j, 0] = 0.0
        for i in range(n - 1):
            total += lengths[i] * (worth[i + 1] + share_x[j, i] * (worth[i] - worth[i + 1]))
            along_x[j, i + 1] = total
        for i in range(n):
            if j == 0:
                along_y[j, i] = 0.0
            else:
                stretch = lengths[j - 1] * (worth[i] + share_y[j - 1, i] * (above[i] - worth[i]))
                along_y[j, i] = along_y[j - 1, i] + stretch
        worth, above = above, worth


@kernel
def contributions(j, begins, begin_parts, ends, end_parts, scale, along_x, along_y, out):
    """Contributions of the landing places in each direction, for the nodes of row j: (4, n).

    Each is ``scale`` times the integral between two points, which lie at the fraction ``parts`` of
    the stretch after a node. Index 0 is for Left and Up, 1 for Right and Down.
    """
    n = along_x.shape[0]
    for side in range(2):
        begin, end = begins[side, j], ends[side, j]
        begin_part, end_part = begin_parts[side, j], end_parts[side, j]
        for i in range(n):
            upper = along_y[begin, i] + begin_part * (along_y[begin + 1, i] - along_y[begin, i])
            lower = along_y[end, i] + end_part * (along_y[end + 1, i] - along_y[end, i])
            out[2 + side, i] = scale * (lower - upper)
        for i in range(n):
            begin, end = begins[side, i], ends[side, i]
            total = along_x[j, end] - along_x[j, begin]
            # zero nearly everywhere if the grid matches the lengths
            if end_parts[side, i] != 0.0:
                total += end_parts[side, i] * (along_x[j, end + 1] - along_x[j, end])
            if begin_parts[side, i] != 0.0:
                total -= begin_parts[side, i] * (along_x[j, begin + 1] - along_x[j, begin])
            out[side, i] = scale * total


@kernel
def times(kind, action, j, i, movement, staying, blocked, discount):
    """1/(1 − γ Pr(stay)), the discounted number of visits to a node before it is left."""
    moves = movement[kind, action]
    stay = staying[kind] + moves[0] * blocked[0, i] + moves[1] * blocked[1, i]
    return 1.0 / (1.0 - discount * (stay + moves[2] * blocked[0, j] + moves[3] * blocked[1, j]))


@kernel
def follow(weights, kinds, restart, discount, geometry, along_x, along_y, values):
    """Back up the actions described by ``weights``, in place; returns the largest change."""
    n = values.shape[0]
    begins, begin_parts, ends, end_parts, scale = geometry
    parts = np.empty((4, n))
    change = 0.0
    restarted = 0.0
    for j in range(n):
        contributions(j, begins, begin_parts, ends, end_parts, scale, along_x, along_y, parts)
        for i in range(n):
            value = weights[0, j, i] * parts[0, i] + weights[1, j, i] * parts[1, i]
            value += weights[2, j, i] * parts[2, i] + weights[3, j, i] * parts[3, i]
            if kinds[j, i] != 2:
                change = max(change, abs(value - values[j, i]))
                restarted += restart[j, i] * value
                values[j, i] = value
    return max(change, fill_goal(kinds, discount * restarted, values))


@kernel
def improve(
    movement, staying, blocked, kinds, restart, discount, geometry, along_x, along_y, values
):
    """Back up the best actions, in place; returns the largest change."""
    n = values.shape[0]
    begins, begin_parts, ends, end_parts, scale = geometry
    parts = np.empty((4, n))
    change = 0.0
    restarted = 0.0
    for j in range(n):
        contributions(j, begins, begin_parts, ends, end_parts, scale, along_x, along_y, parts)
        for i in range(n):
            kind = kinds[j, i]
            if kind == 2:
                continue
            best = 0.0
            for action in range(4):
                moves = movement[kind, action]
                value = (
                    moves[0] * parts[0, i]
                    + moves[1] * parts[1, i]
                    + moves[2] * parts[2, i]
                    + moves[3] * parts[3, i]
                )
                best = max(
                    best, value * times(kind, action, j, i, movement, staying, blocked, discount)
                )
            change = max(change, abs(best - values[j, i]))
            restarted += restart[j, i] * best
            values[j, i] = best
    return max(change, fill_goal(kinds, discount * restarted, values))


@kernel
def fill_goal(kinds, value, values):
    """Set the value of the goal; returns the change."""
    n = values.shape[0]
    change = abs(value - values[n - 1, n - 1])
    for j in range(n):
        for i in range(n):
            if kinds[j, i] == 2:
                values[j, i] = value
    return change


@kernel
def weigh(actions, kinds, movement, staying, blocked, discount, out):
    """Weights of the four contributions under a policy, (4, n, n)."""
    n = actions.shape[0]
    for j in range(n):
        for i in range(n):
            kind, action = kinds[j, i], actions[j, i]
            factor = times(kind, action, j, i, movement, staying, blocked, discount)
            for direction in range(4):
                out[direction, j, i] = factor * movement[kind, action, direction]


@kernel
def lead(preferences, out):
    """The first of the most preferred actions, for preferences (rows, columns, 4)."""
    for j in range(preferences.shape[0]):
        for i in range(preferences.shape[1]):
            action = 0
            for other in range(1, 4):
                if preferences[j, i, other] > preferences[j, i, action]:
                    action = other
            out[j, i] = action


@kernel
def share(preferences, actions, out):
    """The part of the stretch between two neighbours in a row that belongs to the first.

    Where their actions differ, the lead of one action over the other is assumed to change linearly.
    """
    for j in range(actions.shape[0]):
        for i in range(actions.shape[1] - 1):
            one, two = actions[j, i], actions[j, i + 1]
            part = 0.5
            if one != two:
                lead_here = preferences[j, i, one] - preferences[j, i, two]
                lead_there = preferences[j, i + 1, two] - preferences[j, i + 1, one]
                if lead_here + lead_there > 0.0:
                    part = lead_here / (lead_here + lead_there)
            out[j, i] = part
