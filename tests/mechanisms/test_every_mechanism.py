"""What holds for every mechanism: exact counts in the running graph, and never more than ε."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify import check_bytes
from labeldp_verify.analysis.probabilities import row, value
from labeldp_verify.forms.exact_numbers import exp_lower

from labeldp_compile.build.assembly import assemble
from labeldp_compile.prior.priors import Prior
from labeldp_compile.spec import parse_spec
from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec
from verifier.tests.analysed import realised_ratio
from verifier.tests.files import all_words, run

OPTIONS = {
    "randomized_response": "",
    "rr_top_k": ", k: 2",
    "rr_with_prior": "",
    "rr_on_bins": "",
    "optimal_unbiased": "",
    "debiased_rr": "",
    "laplace": "",
    "staircase": ", clip: true, lattice: 0.5",
    "exponential": "",
}


def text_of(mechanism, epsilon, domain="{kind: integer, min: -1, max: 3}"):
    kind = f"{{kind: {mechanism}{OPTIONS[mechanism]}}}"
    return spec(name="every", domain=domain, epsilon=epsilon, mechanism=kind)


@pytest.mark.parametrize("epsilon", ["0.7", "3"])
@pytest.mark.parametrize("mechanism", sorted(OPTIONS))
def test_every_word_gives_the_certified_counts(mechanism, epsilon):
    additive = mechanism in ("laplace", "staircase")
    bits = 6 if additive else 13
    artifact = compile_text(text_of(mechanism, epsilon), word_bits=bits)
    assert check_bytes(artifact.model).ok
    words = all_words(bits)
    if additive:  # every pair of words
        words = np.stack([np.repeat(words, len(words)), np.tile(words, len(words))], axis=1)
    r = artifact.randomizer
    for index, label in enumerate(range(-1, 4)):
        got = Counter(run(artifact.model, np.full(len(words), label), words))
        counts = {value(r, i): n for i, n in enumerate(row(r, index)) if n}
        assert got == counts


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.sampled_from(sorted(OPTIONS)),
    st.integers(2, 12).flatmap(
        lambda k: st.tuples(
            st.integers(-30, 30),
            st.just(k),
            st.lists(st.integers(0, 1000), min_size=k, max_size=k).filter(any),
        )
    ),
    st.fractions(Fraction(1, 100), 12, max_denominator=100),
    st.booleans(),
)
def test_random_domains_priors_and_epsilons(mechanism, domain, epsilon, real):
    low, k, weights = domain
    stated = f"{{kind: integer, min: {low}, max: {low + k - 1}}}"
    if real:
        stated = f"{{kind: real, min: {low}, max: {low + 1}, points: {k}}}"
    wanted = parse_spec(text_of(mechanism, "1", stated))
    prior = Prior.of({"kind": "public", "weights": weights}, epsilon)
    artifact = assemble(wanted, prior, "0" * 64)  # verifies its own output
    assert realised_ratio(artifact.randomizer) <= exp_lower(epsilon)
    # The bound is the least multiple of 10^-12 above.
    assert artifact.certificate.privacy.epsilon_label_bound <= float(epsilon) + 1e-12
