"""The artifacts of a service: each is verified before it answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labeldp_runtime import Key, Randomizer
from labeldp_runtime.row_rules import row_rules
from labeldp_verify import OWN_FILES, check_bytes, read_artifact
from labeldp_verify.artifact import Artifact
from labeldp_verify.signature import read_signed_beside

from labeldp_compile.column_names import key_of
from labeldp_compile.errors import InputError
from labeldp_compile.prepared_rows import require_prepared_rows


@dataclass(frozen=True)
class Served:
    """One artifact.

    Attributes:
        artifact: what was verified.
        randomizer: which draws its private labels.
        context: the name that keyed words are drawn for; None without a key.
    """

    artifact: Artifact
    randomizer: Randomizer
    context: str | None

    @property
    def name(self) -> str:
        """That of the spec."""
        return self.artifact.certificate.name

    def draw(self, columns: dict[str, Any], ids: Any, version: int) -> dict[str, Any]:
        """Private columns by name, from label and group columns by name.

        Raises LabelError, GroupError or IdError, which say nothing about labels.
        """
        labels, groups = self.randomizer.label_columns, self.randomizer.group_columns
        given: Any = columns[labels[0]] if len(labels) == 1 else columns
        of_groups = {name: columns[name] for name in groups} if groups else None
        drawn: Any = self.randomizer(given, columns=of_groups, ids=ids, version=version)
        return drawn if isinstance(drawn, dict) else {self.randomizer.private_columns[0]: drawn}

    def described(self) -> dict[str, Any]:
        """What a caller must know, as JSON."""
        stated, drawer = self.artifact.certificate, self.randomizer
        return {
            "name": self.name,
            "sha256": self.artifact.sha256,
            "epsilon_label": stated.privacy.epsilon_label_bound,
            "label_columns": dict(zip(drawer.label_columns, drawer.label_types, strict=True)),
            "group_columns": dict(zip(drawer.group_columns, drawer.group_types, strict=True)),
            "private_types": drawer.output_types,
            "keyed": drawer.is_keyed,
            "context": self.context,
            "row_rules": row_rules(drawer.certificate),
        }


def load(
    paths: Sequence[Path],
    key: Path | None,
    context: str | None,
    public_key: Path | None,
    *,
    prepared: bool = False,
) -> dict[str, Served]:
    """The artifacts by their names.

    With a key, words are drawn for ``context``, or for the label's columns where it is None.
    ``prepared`` says that callers send rows that meet what the artifacts demand of them together.

    Raises VerificationError if one does not verify, a RuntimeArtifactError if this platform
    computes wrongly, and InputError or KeyFileError if the input is wrong.
    """
    secret, found = None if key is None else Key.load(key), dict[str, Served]()
    for path in paths:
        data = read_artifact(path)
        signed = None
        if public_key is not None:
            signed = read_signed_beside(path, public_key)
        artifact = check_bytes(data, budget=OWN_FILES, signed=signed).verified()
        own = None if secret is None else context or key_of(artifact.certificate.label_columns)
        require_prepared_rows(artifact.certificate, path, prepared=prepared)
        drawer = Randomizer(data, str(path), key=secret, context=own, prepared=True)
        one = Served(artifact, drawer, own)
        if one.name in found:
            raise InputError(f"{path}: another file has the name {one.name!r}, too")
        found[one.name] = one
    return found
