"""From the bytes of a file to its certificate, its domain and its integers."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from labeldp_verify.decode.additive import AdditiveFile
from labeldp_verify.decode.file import (
    DecodeError,
    FileForm,
    read_certificate,
    read_domain,
    read_model,
    refuse_vanishing_nodes,
)
from labeldp_verify.decode.groups import GroupedFile, read_groups
from labeldp_verify.decode.table import TableFile
from labeldp_verify.decode.window import WindowFile
from labeldp_verify.forms import Domain, GroupedWindows, Groups

__all__ = [
    "DecodeError",
    "FileForm",
    "read_certificate",
    "read_domain",
    "read_form",
    "read_groups",
    "read_model",
]

_FORMS: dict[str, Callable[[onnx.ModelProto, Domain], FileForm]] = {
    "additive": AdditiveFile.read,
    "table": TableFile.read,
    "window": WindowFile.read,
}


def read_form(
    name: str, model: onnx.ModelProto, domain: Domain, groups: Groups | None = None
) -> FileForm:
    """Decode the randomizer from the constants of the graph; DecodeError if it is not one."""
    if (name == GroupedWindows.form) != (groups is not None):
        raise DecodeError("the certificate's form and its groups do not fit together")
    if groups is not None:
        refuse_vanishing_nodes(model)
        return GroupedFile.read(model, domain, groups)
    if name not in _FORMS:
        raise DecodeError(f"the certificate names an unknown form of randomizer: {name[:40]!r}")
    refuse_vanishing_nodes(model)
    return _FORMS[name](model, domain)
