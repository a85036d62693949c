"""Candidates compared by how well they predict transitions that they were not fitted to.

Units (buses, patients) are dealt to folds at random; without units, single transitions are. Every
fold is predicted by all candidates fitted to the others, at the mode of their hyperparameters; a
candidate's score is the sum of ln p̂(s' | s, a) over all transitions. Likelihoods at a fitted law
are not compared: the shape with most parameters would win. The possible transitions are given, not
read off the log, and are the same for all candidates.

**Clearly better.** The difference between two candidates is a sum over units (or folds), whose
standard error follows from how it varies between them. It is clear if it exceeds the standard error
by a factor that chance exceeds in 2.3 % of cases (Student's t: 2.0 for many units, 2.9 for five
folds). Chosen is the simplest candidate that no other is clearly better than.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, stdtrit

from brmdp._validation import FloatArray, IntArray
from brmdp.decisions.transitions import Cells, assigned
from brmdp.mdp import counted
from brmdp.planning.text import WIDTH, call_like, wrapped

__all__ = ["Candidate", "Evidence", "compare_held_out", "without_data"]

CLEAR = float(ndtr(2.0))


@dataclass(frozen=True)
class Candidate:
    """One candidate of a comparison.

    Attributes
    ----------
    name : str
    parameters : int
        Number of free parameters of its laws; fewer is simpler.
    score : float
        Held-out log predictive score of all transitions; NaN if it was left out.
    difference : float
        Score of the best candidate minus this one.
    standard_error : float
        Standard error of the difference, over units or folds; 0 for the best.
    clearly_worse : bool
        Whether some candidate is clearly better.
    note : str
        Why the candidate was left out, if it was.

    Examples
    --------
    >>> from brmdp.decisions import Candidate
    >>> Candidate("uniform", 0, -120.0, 4.0, 1.0, True).clearly_worse
    True
    """

    name: str
    parameters: int
    score: float
    difference: float
    standard_error: float
    clearly_worse: bool
    note: str = ""


@dataclass(frozen=True, repr=False)
class Evidence:
    """Held-out comparison of candidates, from the simplest to the richest; printing gives a table.

    Attributes
    ----------
    candidates : tuple of Candidate
    chosen : str
        The simplest candidate that no other is clearly better than.
    basis : str
        What was dealt to folds, and over what standard errors are taken: "units" or "transitions".
    blocks : int
        Number of units, or of folds of transitions, over which standard errors are taken.
    folds : int
        Number of folds; 0 if there was nothing to compare with.
    transitions : int
        Number of transitions scored.
    factor : float
        How many standard errors make a difference clear.

    Examples
    --------
    >>> import numpy as np
    >>> from brmdp.decisions import learn_prior
    >>> steps = np.random.default_rng(0).multinomial(10, [0.2, 0.5, 0.3], size=20)
    >>> counts = np.zeros((20, 1, 20), dtype=int)
    >>> for s in range(20):
    ...     np.add.at(counts[s, 0], np.clip([s - 1, s, s + 1], 0, 19), steps[s])
    >>> learn_prior(counts, rng=0).evidence.chosen
    'increments'
    """

    candidates: tuple[Candidate, ...]
    chosen: str
    basis: str
    blocks: int
    folds: int
    transitions: int
    factor: float

    def __getitem__(self, name: str) -> Candidate:
        """The candidate of a name."""
        for candidate in self.candidates:
            if candidate.name == name:
                return candidate
        raise KeyError(name)

    @property
    def settled(self) -> bool:
        """Whether the choice is also the one with the best score."""
        return self[self.chosen].difference == 0.0

    def __str__(self) -> str:
        if not self.folds:
            return wrapped(
                f"Nothing to compare by: the log has {counted(self.transitions, 'transition')}. "
                f"Chosen by default: {self.chosen}, the simplest."
            )
        over = f"{self.blocks} units" if self.basis == "units" else f"{self.folds} folds"
        lines = [
            wrapped(
                f"Held-out log predictive score of {self.transitions:,} transitions ({self.folds} "
                f"folds of {self.basis}; standard errors over {over}):"
            ),
            f"{'':14}{'parameters':>10}{'score':>12}{'below best':>12}{'± s.e.':>9}",
        ]
        for found in self.candidates:
            mark = "→ " if found.name == self.chosen else "  "
            start = f"{mark}{found.name:<12}{found.parameters:>10}"
            if found.note:
                text = f"{mark}{found.name:<12}  left out: {found.note}"
                lines.append(textwrap.fill(text, WIDTH, subsequent_indent=" " * 16))
            else:
                lines.append(
                    f"{start}{found.score:>12.1f}{found.difference:>12.1f}"
                    f"{found.standard_error:>9.1f}{'  clearly worse' * found.clearly_worse}"
                )
        lines.append(
            wrapped(
                f"Chosen: {self.chosen}, the simplest that no other beats by more than "
                f"{self.factor:.2g} standard errors."
            )
        )
        return "\n".join(lines)

    def __repr__(self) -> str:
        scores = (
            f"{c.name} {'left out' if c.note else f'{-c.difference:.1f} ± {c.standard_error:.1f}'}"
            for c in self.candidates
        )
        return call_like("Evidence", (f"chosen={self.chosen!r}", *scores, f"basis={self.basis!r}"))


def without_data(names: Mapping[str, int], notes: Mapping[str, str], transitions: int) -> Evidence:
    """The outcome if the log is too short to hold anything out."""
    kept = [name for name in names if name not in notes]
    made = tuple(
        Candidate(name, size, math.nan, math.nan, math.nan, False, notes.get(name, ""))
        for name, size in names.items()
    )
    return Evidence(made, kept[0], "transitions", 0, 0, transitions, math.nan)


def compare_held_out(
    cells: Cells,
    names: Mapping[str, int],
    predictors: Mapping[str, Callable[[IntArray], FloatArray]],
    notes: Mapping[str, str],
    folds: int,
    rng: np.random.Generator,
) -> Evidence:
    """Compare candidates, named from the simplest to the richest with their parameters.

    Parameters
    ----------
    cells : Cells
    names : mapping
        Number of parameters by name.
    predictors : mapping
        For every candidate that was not left out, a function from the counts of each cell that it
        may be fitted to, (cells,), to ln p̂ of the transition in every cell.
    notes : mapping
        Why candidates were left out.
    folds : int
    rng : numpy.random.Generator
    """
    by_unit = cells.n_units >= 2
    blocks = cells.n_units if by_unit else folds
    folds = min(folds, blocks)
    split = assigned(cells, folds, rng)
    scores: dict[str, FloatArray] = {}
    for name, predictor in predictors.items():
        found = np.zeros(blocks)
        for fold in range(folds):
            scored = split[:, fold]
            held = np.flatnonzero(scored)
            if not held.size:
                continue
            logs = predictor(cells.count - scored)[held] * scored[held]
            place = cells.unit[held] if by_unit else np.full(held.size, fold)
            found += np.bincount(place, logs, blocks)
        scores[name] = found
    factor = float(stdtrit(blocks - 1, CLEAR))
    totals = {name: float(found.sum()) for name, found in scores.items()}
    best = max(totals, key=lambda name: totals[name])

    def error(one: str, other: str) -> float:
        return float(math.sqrt(blocks) * (scores[one] - scores[other]).std(ddof=1))

    def beaten(name: str) -> bool:
        return any(
            totals[other] - totals[name]
            > max(factor * error(other, name), 1e-9 * abs(totals[name]))
            for other in scores
            if other != name
        )

    made = tuple(
        Candidate(name, size, math.nan, math.nan, math.nan, False, notes[name])
        if name in notes
        else Candidate(
            name, size, totals[name], totals[best] - totals[name], error(best, name), beaten(name)
        )
        for name, size in names.items()
    )
    # the best is never clearly worse, so one is left
    chosen = next(found.name for found in made if not found.note and not found.clearly_worse)
    basis = "units" if by_unit else "transitions"
    return Evidence(made, chosen, basis, blocks, folds, cells.n_transitions, factor)
