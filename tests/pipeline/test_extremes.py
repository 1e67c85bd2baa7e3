"""Domains and ε at the ends of what a spec allows: a file that verifies, or one clear error."""

import numpy as np
import pytest
from labeldp_verify import check_bytes

from labeldp_compile.errors import InputError
from tests.fixtures.compiled import INTEGER_SPEC, compile_text


@pytest.mark.parametrize("epsilon", ["40", "42", "50", "60"])
@pytest.mark.parametrize("labels", [2, 10])
def test_optimal_unbiased_at_a_very_large_epsilon(labels, epsilon):
    text = (
        INTEGER_SPEC.replace("rr_on_bins", "optimal_unbiased")
        .replace("1.0", epsilon)
        .replace("max: 9", f"max: {labels - 1}")
        .replace("{kind: public, weights: [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]}", "{kind: uniform}")
    )
    artifact = compile_text(text)
    assert check_bytes(artifact.model).ok
    assert artifact.certificate.utility.noisy_label_loss < 1e-9


@pytest.mark.parametrize("mechanism", ["optimal_unbiased", "rr_on_bins", "debiased_rr", "laplace"])
def test_labels_where_float64_has_only_integers(mechanism):
    low = -(2**53)
    text = INTEGER_SPEC.replace("min: 0, max: 9", f"min: {low}, max: {low + 9}")
    try:
        artifact = compile_text(text.replace("rr_on_bins", mechanism))
    except InputError as error:
        assert "nothing was written" in str(error)
    else:
        assert check_bytes(artifact.model).ok


def test_poisson_scores_tell_large_neighbours_apart():
    low = 100_000_001
    text = (
        INTEGER_SPEC.replace("min: 0, max: 9", f"min: {low}, max: {low + 9}")
        .replace("squared", "poisson")
        .replace("rr_on_bins", "exponential")
    )
    counts = np.array(compile_text(text).randomizer.counts, dtype=float)
    assert np.allclose(counts.argmax(axis=1)[1:9], np.arange(1, 9), atol=1)
    # Every label's most likely outputs move with it: no two rows are the same.
    assert len({tuple(row) for row in counts.tolist()}) == 10
