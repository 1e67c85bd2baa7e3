"""From a file to the integers inside, verified before anything of it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labeldp_compile.randomizer import Domain, Randomizer
from labeldp_compile.verify import check_bytes, read_artifact
from labeldp_compile.verify.decode import read_certificate, read_domain, read_model
from labeldp_compile.verify.forms import read_form


@dataclass(frozen=True)
class Decoded:
    """A verified artifact: its label domain, its integers and its certificate."""

    domain: Domain
    randomizer: Randomizer
    certificate: dict[str, Any]


def decode_artifact(path: Path) -> Decoded:
    """The artifact of a file.

    Raises InputError if the file cannot be read, and VerificationError if a check fails.
    """
    data = read_artifact(path)
    check_bytes(data).require()
    return decode_verified(data)


def decode_verified(data: bytes) -> Decoded:
    """What is in the bytes of a file that has passed every check."""
    model = read_model(data)
    certificate = read_certificate(model)
    domain = read_domain(certificate)
    form = read_form(certificate["form"], model, domain)
    return Decoded(domain, form.randomizer, certificate)
