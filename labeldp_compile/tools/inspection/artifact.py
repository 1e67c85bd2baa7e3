"""From a file to the integers inside, verified before anything of it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from labeldp_verify import DEFAULT_BUDGET, Budget, check_bytes, read_artifact
from labeldp_verify.budget import naming
from labeldp_verify.certificate import Certificate
from labeldp_verify.decode import read_form
from labeldp_verify.decode.file import read_certificate, read_domain, read_model
from labeldp_verify.forms import Domain, Randomizer


@dataclass(frozen=True)
class Decoded:
    """A verified artifact: its label domain, its integers and its certificate."""

    domain: Domain
    randomizer: Randomizer
    certificate: Certificate


def decode_artifact(path: Path, budget: Budget = DEFAULT_BUDGET) -> Decoded:
    """The artifact of a file.

    Raises InputError if the file cannot be read (TooLargeError if verifying it would exceed the
    budget), and VerificationError if a check fails.
    """
    data = read_artifact(path)
    with naming(path):
        check_bytes(data, budget=budget).require()
    return decode_verified(data)


def decode_verified(data: bytes) -> Decoded:
    """What is in the bytes of a file that has passed every check."""
    model = read_model(data)
    certificate = read_certificate(model)
    domain = read_domain(certificate.label.domain)
    form = read_form(certificate.form, model, domain)
    return Decoded(domain, form.randomizer, certificate)
