"""A package ``icu_sepsis`` with the files of the real one, but three conditions and two actions."""

from __future__ import annotations

from pathlib import Path

import numpy as np

N_CONDITIONS, N_ACTIONS = 3, 2


def tables() -> dict[str, np.ndarray]:
    """Conditions, then death, survival and the end; survival pays one."""
    n = N_CONDITIONS + 3
    death, survival, end = range(N_CONDITIONS, n)
    rng = np.random.default_rng(0)
    kernel = np.zeros((n, N_ACTIONS, n))
    kernel[:N_CONDITIONS, :, :end] = rng.dirichlet(np.ones(end), size=(N_CONDITIONS, N_ACTIONS))
    kernel[[death, survival, end], :, end] = 1.0
    rewards = np.zeros((n, N_ACTIONS, n))
    rewards[:N_CONDITIONS, :, survival] = 1.0
    clinicians = np.zeros((n, N_ACTIONS))
    clinicians[:N_CONDITIONS] = [[1.0, 0.0], [0.3, 0.7], [0.5, 0.5]]
    start = np.zeros(n)
    start[:N_CONDITIONS] = 1.0 / N_CONDITIONS
    return {"tx_mat": kernel, "r_mat": rewards, "d_0": start, "expert_policy": clinicians}


def install(folder: Path) -> Path:
    """Write the package into a folder, which then belongs on the path; returns its tables' path."""
    assets = folder / "icu_sepsis" / "envs" / "assets"
    assets.mkdir(parents=True)
    (folder / "icu_sepsis" / "__init__.py").write_text("raise ImportError('not to be imported')\n")
    np.savez(assets / "dynamics.npz", **tables())
    metadata = folder / "icu_sepsis-2.0.1.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: icu-sepsis\nVersion: 2.0.1\n")
    return assets / "dynamics.npz"
