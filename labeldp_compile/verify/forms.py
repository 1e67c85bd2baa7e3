"""From the name of a form in a certificate to the code that reads it."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from labeldp_compile.randomizer import Domain
from labeldp_compile.verify.additive import AdditiveForm
from labeldp_compile.verify.decode import DecodeError, refuse_vanishing_nodes
from labeldp_compile.verify.form import Form
from labeldp_compile.verify.table import TableForm
from labeldp_compile.verify.window import WindowForm

_FORMS: dict[str, Callable[[onnx.ModelProto, Domain], Form]] = {
    "additive": AdditiveForm.read,
    "table": TableForm.read,
    "window": WindowForm.read,
}


def read_form(name: str, model: onnx.ModelProto, domain: Domain) -> Form:
    """Decode the randomizer from the constants of the graph; DecodeError if it is not one."""
    if name not in _FORMS:
        raise DecodeError(f"the certificate names an unknown form of randomizer: {name[:40]!r}")
    refuse_vanishing_nodes(model)
    return _FORMS[name](model, domain)
