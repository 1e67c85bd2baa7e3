"""The theory, compiled once; tests that need Coq are left out where there is none, or fail."""

import os
import shutil

import pytest

from tests.proofs.theory import compile_theory


def _require(program):
    if shutil.which(program) is None:
        if os.environ.get("LABELDP_ALL"):
            pytest.fail(f"no {program}: see build/proofs/install.log")
        pytest.skip(f"no {program}: run tests/proofs/install")


@pytest.fixture(scope="session")
def coqc():
    _require("coqc")


@pytest.fixture(scope="session")
def theory(coqc, tmp_path_factory):
    """The folder of the theory, compiled in a clean place, without a word of Coq's."""
    folder = tmp_path_factory.mktemp("theory")
    assert not any(compile_theory(folder))
    return folder
