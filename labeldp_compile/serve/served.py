"""The artifacts of a service: each is verified before it answers."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from labeldp_runtime import Key, Randomizer
from labeldp_runtime.artifact_file import row_rules
from labeldp_verify import OWN_FILES, check_bytes, read_artifact
from labeldp_verify.artifact import Artifact
from labeldp_verify.signature import read_signed_beside

from labeldp_compile.cli.options import require_prepared_rows
from labeldp_compile.errors import InputError
from labeldp_compile.page.document import page as page_of
from labeldp_compile.page.document import text_of
from labeldp_compile.serve.requests import ARROW
from labeldp_compile.tabular.formats import key_of


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
        """The facts that a caller must know, as JSON."""
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
    secret, artifacts = None if key is None else Key.load(key), dict[str, Served]()
    for path in paths:
        data = read_artifact(path)
        signed = None
        if public_key is not None:
            signed = read_signed_beside(path, public_key)
        artifact = check_bytes(data, budget=OWN_FILES, signed=signed).verified()
        key_context = (
            None if secret is None else context or key_of(artifact.certificate.label_columns)
        )
        require_prepared_rows(artifact.certificate, path, prepared=prepared)
        drawer = Randomizer(data, str(path), key=secret, context=key_context, prepared=True)
        one = Served(artifact, drawer, key_context)
        if one.name in artifacts:
            raise InputError(f"{path}: another file has the name {one.name!r}, too")
        artifacts[one.name] = one
    return artifacts


_TYPES = {"int64": "integer", "float64": "number", "string": "string"}
_ERRORS = {
    "400": "The request has a wrong shape.",
    "401": "The token is missing or wrong.",
    "404": "There is no artifact of this name.",
    "413": "The body is too large.",
    "415": "The body has an unknown type.",
    "421": "The host is not this machine's own, and the service has no token.",
    "429": "There were too many requests.",
}


def document(served: Iterable[Served], *, with_token: bool) -> dict[str, Any]:
    """The OpenAPI 3.1 document of a service with these artifacts."""
    text = text_of(
        Path(__file__).with_name("openapi.json.jinja"),
        artifacts=list(map(_operation, served)),
        version=version("labeldp"),
        with_token=with_token,
        arrow=ARROW,
        errors=_ERRORS,
    )
    openapi: dict[str, Any] = json.loads(text)
    return openapi


def _operation(one: Served) -> dict[str, Any]:
    """The facts of the template about one artifact: the columns of a request and of an answer."""
    drawer = one.randomizer
    types = dict(zip(drawer.label_columns, drawer.label_types, strict=True))
    types |= dict(zip(drawer.group_columns, drawer.group_types, strict=True))
    private = dict(zip(drawer.private_columns, drawer.output_types, strict=True))
    parameters = {"id": "the column of ids", "version": "of the labels"}
    return {
        "path": _path(one),
        "name": one.name,
        "epsilon": one.artifact.certificate.privacy.epsilon_label_bound,
        "keyed": drawer.is_keyed,
        "parameters": parameters if drawer.is_keyed else {},
        "given": {name: _array([_TYPES[kind], "null"]) for name, kind in types.items()},
        "private": {name: _array(_TYPES[kind]) for name, kind in private.items()},
    }


def _array(of: object) -> dict[str, Any]:
    return {"type": "array", "items": {"type": of}}


def page(served: Iterable[Served]) -> str:
    """A page that names the artifacts, and shows how to ask each; it loads nothing."""
    folder = Path(__file__).parent
    return page_of("served.html", "labeldp", folder, artifacts=list(map(_shown, served)))


def _shown(one: Served) -> dict[str, Any]:
    """Where an artifact is asked, what it is, in words, and what it is asked."""
    facts = one.described()
    asked: dict[str, Any] = {
        "columns": {name: [None] for name in {**facts["label_columns"], **facts["group_columns"]}}
    }
    if facts["keyed"]:
        asked["ids"] = ["an id of this label"]
    words = {key: _in_words(value) for key, value in facts.items() if value not in ({}, [], None)}
    return {"path": _path(one), "facts": words, "asked": asked}


def _path(one: Served) -> str:
    return f"/v1/artifacts/{quote(one.name, safe='')}/randomize"


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {kind}" for key, kind in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value)
