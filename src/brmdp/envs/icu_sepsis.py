"""ICU-Sepsis: the treatment of sepsis, a tabular MDP estimated from hospital records.

The tables are those of the package ``icu-sepsis`` (Choudhary, Gupta and Thomas, "ICU-Sepsis: A
Benchmark MDP Built from Real Medical Data", 2024), which ``pip install 'brmdp[icu]'`` brings in.
They are read from its files; the package itself is not imported.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from brmdp._extras import require_extra
from brmdp._validation import FloatArray
from brmdp.errors import CorruptFileError
from brmdp.mdp import TabularMDP

__all__ = ["ICUSepsis", "icu_sepsis"]

TABLES = Path("envs") / "assets" / "dynamics.npz"
"""Where the package keeps its tables."""

_NAMES = ("tx_mat", "r_mat", "d_0", "expert_policy")


@dataclass(frozen=True, eq=False)
class ICUSepsis:
    """The treatment of sepsis, and what clinicians do.

    Attributes
    ----------
    mdp : TabularMDP
        716 states: 713 conditions of a patient, death, survival, and the end that follows both. 25
        actions: five doses of fluids × five doses of vasopressors. Survival pays 1, so without
        discounting the value is the probability of survival. Only actions that clinicians take in a
        state are admissible there.
    clinicians : (S, A) probabilities
        The estimated practice of clinicians.

    Examples
    --------
    >>> import brmdp
    >>> hospital = brmdp.envs.icu_sepsis()  # doctest: +SKIP
    >>> values = brmdp.evaluate_in_mdp(hospital.mdp, hospital.clinicians)  # doctest: +SKIP
    """

    mdp: TabularMDP
    clinicians: FloatArray


def icu_sepsis(*, discount: float = 0.99) -> ICUSepsis:
    """The MDP of the package ``icu-sepsis``, and the practice of clinicians.

    Parameters
    ----------
    discount : float in [0, 1)
        γ. The benchmark itself has no discount; episodes last nine steps on average.

    Returns
    -------
    ICUSepsis

    Raises
    ------
    MissingExtraError
        If the package is not installed.
    CorruptFileError
        If its tables are not as expected.

    Examples
    --------
    >>> import brmdp
    >>> brmdp.envs.icu_sepsis().mdp.n_states  # doctest: +SKIP
    716
    """
    require_extra("icu")
    spec = importlib.util.find_spec("icu_sepsis")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / TABLES
    try:
        with np.load(path, allow_pickle=False) as found:
            kernel, rewards, start, clinicians = (np.array(found[name]) for name in _NAMES)
    except (OSError, KeyError, ValueError) as error:
        raise CorruptFileError(
            f"the tables of icu-sepsis could not be read from {path.name}: {error}"
        ) from None
    n_states = start.size
    # nobody acts after death or survival, where every action leads to the end
    clinicians[clinicians.sum(axis=1) == 0.0, 0] = 1.0
    mdp = TabularMDP(
        sparse.csr_array(kernel.reshape(-1, n_states)),
        sparse.csr_array(rewards.reshape(-1, n_states)),
        discount,
        start=start,
        admissible=clinicians > 0.0,
    )
    return ICUSepsis(mdp, clinicians)
