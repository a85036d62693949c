"""The hospital's tables, read from the files of a package that is not imported."""

import sys

import numpy as np
import pytest

import brmdp
import tiny_hospital
from brmdp import envs


@pytest.fixture
def assets(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    return tiny_hospital.install(tmp_path)


def test_the_tables_are_those_of_the_package(assets):
    hospital = envs.icu_sepsis(discount=0.5)
    mdp, tables = hospital.mdp, tiny_hospital.tables()
    assert "icu_sepsis" not in sys.modules
    assert mdp.discount == 0.5
    admissible = tables["expert_policy"] > 0.0
    admissible[tiny_hospital.N_CONDITIONS :, 0] = True
    assert np.array_equal(mdp.admissible, admissible)
    kernel = np.where(admissible[:, :, None], tables["tx_mat"], 0.0)
    assert np.allclose(mdp.kernel(), kernel, rtol=0, atol=1e-15)
    assert np.array_equal(mdp.start, tables["d_0"])
    assert np.array_equal(hospital.clinicians.sum(axis=1), np.ones(mdp.n_states))


def test_the_value_is_the_discounted_probability_of_survival(assets):
    hospital = envs.icu_sepsis(discount=0.9)
    tables = tiny_hospital.tables()
    n = tiny_hospital.N_CONDITIONS
    policy = np.zeros(n + 3, dtype=int)
    policy[1] = 1
    chosen = tables["tx_mat"][np.arange(n), policy[:n]]
    expected = np.linalg.solve(np.eye(n) - 0.9 * chosen[:, :n], chosen[:, n + 1])
    found = brmdp.evaluate_in_mdp(hospital.mdp, policy)
    assert found[:n] == pytest.approx(expected, rel=1e-12)
    assert not found[n:].any()


def test_a_missing_package_and_unreadable_tables_are_named(tmp_path, monkeypatch, assets):
    assets.write_bytes(b"nothing of the kind")
    with pytest.raises(brmdp.CorruptFileError, match=r"icu-sepsis .* dynamics\.npz"):
        envs.icu_sepsis()
    np.savez(assets, tx_mat=np.ones((2, 1, 2)))
    with pytest.raises(brmdp.CorruptFileError, match="r_mat"):
        envs.icu_sepsis()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(brmdp.MissingExtraError, match=r"icu_sepsis is missing; .*brmdp\[icu\]"):
        envs.icu_sepsis()
