"""Random specs from plan to estimate, and every number of plan that says "at most"."""

import pytest

from benchmarks.random_specs import try_case


@pytest.mark.parametrize("number", range(6))
def test_a_random_spec(number, tmp_path):
    try_case(f"test-{number}", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6, 300))
def test_many_random_specs(number, tmp_path):
    try_case(f"test-{number}", tmp_path)
