"""The table of valid combinations is one: in the docs, in the code, and in what compiles."""

from pathlib import Path

import pytest
from labeldp_verify import check_bytes

from labeldp_compile.errors import SpecError
from labeldp_compile.mechanisms import KINDS as MECHANISMS
from labeldp_compile.spec import load, parse_spec
from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec

DOCS = Path(__file__).parents[2] / "docs" / "spec.md"
DOMAINS = ("integer", "real", "categorical")
LOSSES = ("squared", "absolute", "poisson", "zero_one")
DOMAIN_TEXT = {
    "integer": "{kind: integer, min: 1, max: 4}",
    "real": "{kind: real, min: 0.5, max: 2, points: 4}",
    "categorical": "{kind: categorical, values: [a, b, c, d]}",
}


def why_invalid(*combination):
    """The first reason why a combination cannot be compiled, or None."""
    return next(iter(load._reasons(*combination)), None)


def spec_text(domain, loss, mechanism):
    rule = "{default: a}" if domain == "categorical" else "clamp"
    outputs = {
        "absolute": ", outputs: {grid: 9}",
        "poisson": ", outputs: {values: [0.05, 0.1, 1, 2, 3, 4, 6]}",
    }
    options = outputs.get(loss, "") if mechanism == "optimal_unbiased" else ""
    options += ", k: 2" if mechanism == "rr_top_k" else ""
    kind, domain = f"{{kind: {mechanism}{options}}}", DOMAIN_TEXT[domain]
    chosen = {"domain": domain, "out_of_domain": rule, "loss": loss, "mechanism": kind}
    return spec(weights=[4, 3, 0, 1], epsilon=1.5, **chosen)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("domain", DOMAINS)
def test_what_the_table_allows_compiles_and_the_rest_is_refused(domain, loss, mechanism):
    reason = why_invalid(domain, loss, mechanism, None if domain == "categorical" else 0.5)
    text = spec_text(domain, loss, mechanism)
    if reason is None:
        assert check_bytes(compile_text(text).model).ok
    else:
        with pytest.raises(SpecError) as caught:
            parse_spec(text)
        assert reason in str(caught.value)


def test_poisson_looks_at_the_lowest_label():
    assert why_invalid("integer", "poisson", "rr_on_bins", 0) is None
    assert "infinite" in why_invalid("integer", "poisson", "randomized_response", 0)
    assert "at least 0" in why_invalid("integer", "poisson", "rr_on_bins", -1)


def test_the_table_in_the_docs_is_this_table():
    lines = DOCS.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| `")]
    documented = {}
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if cells[0].strip("`") in MECHANISMS and len(cells) == 1 + len(DOMAINS):
            for domain, cell in zip(DOMAINS, cells[1:], strict=True):
                documented[cells[0].strip("`"), domain] = cell
    for mechanism in MECHANISMS:
        for domain in DOMAINS:
            lowest = None if domain == "categorical" else 1.0
            valid = [x for x in LOSSES if why_invalid(domain, x, mechanism, lowest) is None]
            assert documented[mechanism, domain] == (", ".join(valid) or "–")
