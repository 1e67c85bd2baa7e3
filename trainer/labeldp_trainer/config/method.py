"""The part ``method`` of a config: how labels are protected."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from labeldp_trainer.config.base import Strict
from labeldp_trainer.config.central import DpSgd, LabelDpPro
from labeldp_trainer.config.label_methods import Alibi, Clusters, LpMst
from labeldp_trainer.config.users import UserLevel


class NoMethod(Strict):
    """Train on the true labels: no privacy."""

    kind: Literal["none"]


class Privatized(UserLevel):
    """Train on labels that a certified randomizer made private.

    With ``artifact`` alone, the true labels of ``column`` are randomized once, before training.
    With ``private_column``, they were already, with the artifact or certificate that is named.
    """

    kind: Literal["privatized"]
    artifact: StrictStr | None = None
    certificate: StrictStr | None = None
    column: StrictStr | None = Field(None, description="true labels; default: data.label")
    private_column: StrictStr | None = None
    key: StrictStr | None = Field(None, description="key file of labeldp keygen")
    id_column: StrictStr | None = None
    context: StrictStr | None = Field(None, description="default: the name of the label column")
    label_version: StrictInt = Field(0, ge=0, lt=2**64)
    debiased: StrictBool = False

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        problems = {
            "name an artifact, or private_column and its certificate": (
                self.artifact is None and self.certificate is None
            ),
            "artifact and certificate: one is enough, the artifact holds its certificate": (
                self.artifact is not None and self.certificate is not None
            ),
            "a certificate alone cannot randomize: name the artifact, or the private_column": (
                self.certificate is not None and self.private_column is None
            ),
            "column names true labels and private_column private ones: give one": (
                self.column is not None and self.private_column is not None
            ),
            "key and id_column belong together": (self.key is None) != (self.id_column is None),
            "context and label_version need a key": (
                self.key is None and (self.context is not None or self.label_version != 0)
            ),
            "the labels of private_column are private already: leave key and id_column out": (
                self.private_column is not None and self.key is not None
            ),
            "debiased needs the artifact: a certificate does not hold Pr[output | label]": (
                self.debiased and self.artifact is None
            ),
        }
        reason = next((text for text, applies in problems.items() if applies), None)
        if reason:
            raise ValueError(reason)
        return self


MethodConfig = Annotated[
    NoMethod | Privatized | LpMst | Alibi | Clusters | DpSgd | LabelDpPro,
    Field(discriminator="kind"),
]
