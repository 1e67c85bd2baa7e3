"""A short run of benchmarks/one_release_audit.py, and the noise of a process that is copied."""

import pytest

pytest.importorskip("labeldp_trainer.one_release.plan")

from benchmarks.one_release_audit import cases, proved, with_noise
from runtime.tests.copied_process import COPIES, assert_unlike


@pytest.mark.parametrize("copy", COPIES)
def test_noise_of_a_copied_process(copying_process, copy):
    imports = "import numpy as np; from labeldp_trainer.discrete_gaussian.noise import noisy"
    assert_unlike(copying_process, copy, imports, "noisy(np.zeros((20, 2), np.int64), 1_000)")


@pytest.mark.parametrize("name", ["classes", "numbers", "users"])
def test_releases_of_neighbours_are_told_apart_as_stated_and_no_better(name):
    case = cases(1.0)[name]
    assert 0.2 < proved(case, case.plan(), 10_000) <= 1


def test_a_third_of_the_noise_is_found():
    case = cases(1.0)["classes"]
    plan = case.plan()
    assert proved(case, with_noise(plan, plan.facts.sigma // 3), 10_000) > 1.3
