"""The belief about the continuous lake: three independent conjugate distributions.

The modes M on ordinary cells have probabilities p_slip ~ Dir(φ), the mobility in holes is p_h ~
Beta(a, b), and the spread of the lengths is θ_L ~ Pareto(shape, scale), that is, Pr(θ_L > t) =
(scale/t)^shape for t ≥ scale. Each is updated by the latent primitive that it governs: φ_M += 1; a
+= 1 if E = 1, otherwise b += 1; and since U = L − ℓ0 is uniform on [0, θ_L],

    Pareto(shape, scale)  becomes  Pareto(shape + 1, max(scale, U)).

The reset from the goal is known and teaches nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from brmdp._validation import (
    FloatArray,
    Seed,
    as_float_array,
    as_index,
    as_number,
    as_positive_int,
    as_rng,
)
from brmdp.beliefs.gammas import LARGEST, SMALLEST, dirichlet_rows
from brmdp.beliefs.storage import Saveable, corrupt_if_invalid, require_arrays
from brmdp.continuous.checks import as_state
from brmdp.continuous.lake import GOAL, HOLES, MODES, SHORTEST, LakeParameters, cells
from brmdp.errors import InvalidInputError

__all__ = ["LakeBelief"]

_PRIMITIVES = ("mode", "mobile", "length")


class LakeBelief(Saveable):
    """A belief with Dirichlet slip, Beta mobility and Pareto spread; by default the paper's prior.

    Parameters
    ----------
    slip : (3,) positive numbers
        Dirichlet concentrations of the three modes.
    mobility : (2,) positive numbers
        Beta parameters (a, b); a counts activated movements.
    spread : (2,) positive numbers
        Pareto shape and scale of θ_L. The shape must exceed 1, so that θ_L has a mean.

    Attributes
    ----------
    slip, mobility, spread : arrays
        The current parameters; do not change them.

    Notes
    -----
    ``observe`` changes the belief in place; ``copy`` returns an independent copy.

    Examples
    --------
    >>> from brmdp.continuous import LakeBelief
    >>> belief = LakeBelief()
    >>> info = {"mode": 0, "mobile": None, "length": 1.1}
    >>> belief.observe((0.5, 0.5), 1, (1.6, 0.5), info)
    >>> belief
    LakeBelief(slip ~ Dir(2, 1, 1), mobility ~ Beta(1, 1), spread ~ Pareto(3, 0.35))
    """

    def __init__(
        self,
        slip: ArrayLike = (1.0, 1.0, 1.0),
        mobility: ArrayLike = (1.0, 1.0),
        spread: ArrayLike = (2.0, 0.25),
    ) -> None:
        self.slip = _positive(slip, 3, "slip")
        self.mobility = _positive(mobility, 2, "mobility")
        self.spread = _positive(spread, 2, "spread")
        if not self.spread[0] > 1.0:
            raise InvalidInputError(
                "spread must have a shape (its first number) above 1, so that the mean is finite; "
                f"got {self.spread[0]}"
            )

    # --- data -------------------------------------------------------------------------------------

    def observe(
        self,
        state: ArrayLike,
        action: int,
        next_state: ArrayLike,
        primitives: Mapping[str, Any],
    ) -> None:
        """Learn from one transition, in place.

        Parameters
        ----------
        state, next_state : (2,) numbers in [0, 4]²
            The states before and after the transition.
        action : int in 0..3
            The action.
        primitives : mapping
            The values of "mode", "mobile" and "length" as in the environment's ``info``. On an
            ordinary cell "mode" and "length" are numbers. In a hole "mobile" is a number, and so is
            "length" if the movement was activated. All others are None.

        Raises
        ------
        InvalidInputError
            If a primitive is missing or does not fit the cell of ``state``, or if a state or action
            does not exist. The belief is then unchanged.
        """
        cell = int(cells(as_state(state)))
        as_index(action, len(MODES), "action")
        as_state(next_state, "next_state")
        mode, mobile, length = _as_primitives(primitives, cell)
        if mode is not None:
            self.slip[mode] += 1.0
        if mobile is not None:
            self.mobility[1 - mobile] += 1.0
        if length is not None:
            shape, scale = self.spread
            self.spread[:] = shape + 1.0, max(scale, length - SHORTEST)

    def copy(self) -> LakeBelief:
        """An independent belief with the same parameters."""
        return LakeBelief(self.slip, self.mobility, self.spread)

    # --- belief -----------------------------------------------------------------------------------

    def mean(self) -> LakeParameters:
        """Posterior means of the slip probabilities, of p_h and of θ_L."""
        shape, scale = self.spread
        return LakeParameters(
            self.slip / self.slip.sum(),
            np.array(self.mobility[0] / self.mobility.sum()),
            np.array(shape * scale / (shape - 1.0)),
        )

    def sample(self, n: int, *, rng: Seed = None) -> LakeParameters:
        """``n`` independent draws: slip (n, 3), mobility (n,), spread (n,)."""
        n, stream = as_positive_int(n, "n"), as_rng(rng)
        shape, scale = self.spread
        return LakeParameters(
            dirichlet_rows(self.slip, n, stream, np.array([3])),
            dirichlet_rows(self.mobility, n, stream, np.array([2]))[:, 0],
            scale * np.exp(stream.standard_exponential(n) / shape),
        )

    # --- files ------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The current parameters as named arrays, for :meth:`save`."""
        return {"slip": self.slip, "mobility": self.mobility, "spread": self.spread}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], source: Any) -> Self:
        """The belief that :meth:`arrays` described."""
        require_arrays(arrays, ("slip", "mobility", "spread"), source)
        with corrupt_if_invalid(source):
            return cls(**arrays)

    def __repr__(self) -> str:
        slip, mobility, spread = (
            ", ".join(f"{value:g}" for value in part) for part in self.arrays().values()
        )
        return (
            f"LakeBelief(slip ~ Dir({slip}), mobility ~ Beta({mobility}), spread ~ "
            f"Pareto({spread}))"
        )


def _positive(value: ArrayLike, size: int, name: str) -> FloatArray:
    array = np.array(as_float_array(value, name))
    if array.shape != (size,) or (array < SMALLEST).any() or (array > LARGEST).any():
        raise InvalidInputError(
            f"{name} must be {size} numbers in [{SMALLEST:g}, {LARGEST:g}]; got {array.tolist()}"
        )
    return array


def _as_primitives(primitives: Any, cell: int) -> tuple[int | None, int | None, float | None]:
    """Mode, mobility indicator and length, checked for a transition out of ``cell``."""
    if not isinstance(primitives, Mapping):
        raise InvalidInputError(
            f"primitives must be a mapping with the keys {_PRIMITIVES}; got {primitives!r}"
        )
    for key in _PRIMITIVES:
        if key not in primitives:
            raise InvalidInputError(
                f"primitives must have the keys {_PRIMITIVES}; {key!r} is missing"
            )
    mode, mobile, length = (primitives[key] for key in _PRIMITIVES)
    where = (
        "in the goal" if cell == GOAL else "in a hole" if cell in HOLES else "on an ordinary cell"
    )
    if cell in HOLES:
        mobile = as_index(mobile, 2, "primitives['mobile'] in a hole")
        where += f" with mobile = {mobile}"
    else:
        _must_be_none(mobile, "mobile", where)
    if cell == GOAL or cell in HOLES:
        _must_be_none(mode, "mode", where)
    else:
        mode = as_index(mode, MODES.shape[1], f"primitives['mode'] {where}")
    if cell == GOAL or mobile == 0:
        _must_be_none(length, "length", where)
    else:
        name, allowed = (
            f"primitives['length'] {where}",
            f"a finite number of at least {SHORTEST}",
        )
        length = as_number(length, name, allowed)
        if not SHORTEST <= length < np.inf:
            raise InvalidInputError(f"{name} must be {allowed}; got {length}")
    return mode, mobile, length


def _must_be_none(value: Any, key: str, where: str) -> None:
    if value is not None:
        raise InvalidInputError(f"primitives[{key!r}] must be None {where}; got {value!r}")
