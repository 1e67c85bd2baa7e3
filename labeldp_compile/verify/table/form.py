"""The table randomizer of a file."""

from __future__ import annotations

import onnx

from labeldp_compile.randomizer import Domain
from labeldp_compile.verify.form import Form


class TableForm(Form):
    """The table randomizer of a file."""

    @classmethod
    def read(cls, model: onnx.ModelProto, domain: Domain) -> TableForm:
        """Decode the constants of the graph."""
        raise NotImplementedError
