"""The additive randomizer of a file."""

from __future__ import annotations

import onnx

from labeldp_compile.randomizer import Domain
from labeldp_compile.verify.form import Form


class AdditiveForm(Form):
    """The additive randomizer of a file."""

    @classmethod
    def read(cls, model: onnx.ModelProto, domain: Domain) -> AdditiveForm:
        """Decode the constants of the graph."""
        raise NotImplementedError
