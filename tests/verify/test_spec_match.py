"""``--spec``: the certificate names the spec and agrees with it."""

import hashlib

import pytest
from labeldp_verify.claims import parse_certificate

from labeldp_compile.errors import InputError
from labeldp_compile.spec.agreement import spec_disagreements
from tests.fixtures.compiled import INTEGER_SPEC, compile_text


def disagreements(spec, certificate):
    return spec_disagreements(spec, parse_certificate(certificate))


def certificate_for(text):
    certificate = compile_text(text).certificate.to_json()
    certificate["digests"]["spec"] = hashlib.sha256(text.encode()).hexdigest()
    return certificate


def test_agreement():
    assert disagreements(INTEGER_SPEC.encode(), certificate_for(INTEGER_SPEC)) == []


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("name: example", "name: other", "name"),
        ("loss: squared", "loss: absolute", "loss"),
        ("epsilon: 1.0", "epsilon: 0.9", "privacy.epsilon"),
        ("max: 9", "max: 8", "label.domain.max"),
        ("column: y", "column: z", "label.column"),
        ("kind: rr_on_bins", "kind: randomized_response", "mechanism"),
        ("kind: public", "kind: uniform", "prior.kind"),
    ],
)
def test_a_forged_digest_does_not_hide_a_difference(old, new, key):
    certificate = certificate_for(INTEGER_SPEC)
    other = INTEGER_SPEC.replace(old, new)
    certificate["digests"]["spec"] = hashlib.sha256(other.encode()).hexdigest()
    found = disagreements(other.encode(), certificate)
    assert len(found) == 1 and found[0].startswith(key)


def test_a_changed_comment_changes_the_digest():
    found = disagreements(INTEGER_SPEC.encode() + b"# x\n", certificate_for(INTEGER_SPEC))
    assert found == ["compiled from another spec, or another version of it (the digest differs)"]


@pytest.mark.parametrize("spec", [b"a: [", b"- a", b""])
def test_no_spec_at_all(spec):
    with pytest.raises(InputError, match="spec"):
        disagreements(spec, certificate_for(INTEGER_SPEC))
