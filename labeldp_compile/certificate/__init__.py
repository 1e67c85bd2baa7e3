"""The certificate: what is claimed of an artifact, as JSON."""

from labeldp_compile.certificate.build import Provenance, build_certificate

__all__ = ["Provenance", "build_certificate"]
