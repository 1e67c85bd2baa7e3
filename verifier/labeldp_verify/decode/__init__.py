"""From the bytes of a file to its certificate, its domain and its integers."""

from __future__ import annotations

from collections.abc import Callable

from labeldp_verify.claims.sets import SetsClaims
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
from labeldp_verify.forms import ClassSets, Domain, GroupedWindows, Groups, TableRandomizer
from labeldp_verify.graph.messages import ModelProto
from labeldp_verify.graph.randomizer_graph import MAX_ENTRIES

__all__ = [
    "DecodeError",
    "FileForm",
    "read_certificate",
    "read_domain",
    "read_form",
    "read_groups",
    "read_model",
    "read_sets",
]

_NO_GROUPS = Groups()
_FORMS: dict[str, Callable[[ModelProto, Domain], FileForm]] = {
    "additive": AdditiveFile.read,
    "table": TableFile.read,
    "window": WindowFile.read,
}


def read_form(
    name: str,
    model: ModelProto,
    domain: Domain,
    groups: Groups = _NO_GROUPS,
    sets: ClassSets | None = None,
) -> FileForm:
    """Decode the randomizer from the constants of the graph; DecodeError if it is not one."""
    if (name == GroupedWindows.form) != bool(groups.columns):
        raise DecodeError("the certificate's form and its groups do not fit together")
    if groups.columns:
        refuse_vanishing_nodes(model)
        return GroupedFile.read(model, domain, groups)
    if sets is not None:
        if name != TableRandomizer.form:
            raise DecodeError("the certificate's form and its sets do not fit together")
        refuse_vanishing_nodes(model)
        return TableFile.read(model, domain, sets)
    if name not in _FORMS:
        raise DecodeError(f"the certificate names an unknown form of randomizer: {name[:40]!r}")
    refuse_vanishing_nodes(model)
    return _FORMS[name](model, domain)


def read_sets(claims: SetsClaims | None, classes: int) -> ClassSets | None:
    """The sets that the outputs are claimed to be; None where they are the labels themselves.

    Raises DecodeError unless they are sets of some of the classes.
    """
    if claims is None or claims.blocks is None:
        return None
    texts = claims.blocks
    # A design has no fewer sets than labels (Fisher 1940), and a table so many entries: whatever is
    # larger is not looked at.
    few = classes <= len(texts) and classes * len(texts) <= MAX_ENTRIES
    digits = -(-classes // 4)
    if not few or not all(type(text) is str and len(text) == digits for text in texts):
        raise DecodeError("not a valid artifact: the sets")
    try:
        return ClassSets.from_hex(classes, texts)
    except ValueError:
        raise DecodeError("not a valid artifact: the sets") from None
