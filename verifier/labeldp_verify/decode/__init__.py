"""From the bytes of a file to its certificate, its domain and its integers."""

from labeldp_verify import kernel
from labeldp_verify.claims import Certificate
from labeldp_verify.claims.sets import SetsClaims
from labeldp_verify.decode.additive import AdditiveFile
from labeldp_verify.decode.file import (
    DecodeError,
    FileForm,
    demand,
    read_certificate,
    read_domain,
    read_model,
    refuse_vanishing_nodes,
    require_output_type,
)
from labeldp_verify.decode.table import TableFile
from labeldp_verify.decode.window import WindowFile
from labeldp_verify.forms import (
    AdditiveRandomizer,
    ClassSets,
    Domain,
    GroupColumn,
    GroupedWindows,
    Groups,
    TableRandomizer,
    WindowRandomizer,
)
from labeldp_verify.forms.groups import check_groups
from labeldp_verify.graph.alias_table import MAX_ENTRIES
from labeldp_verify.graph.messages import ModelProto

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


def read_form(
    name: str,
    model: ModelProto,
    data: bytes,
    domain: Domain,
    groups: Groups = _NO_GROUPS,
    sets: ClassSets | None = None,
) -> FileForm:
    """Decode the randomizer from the integers that the kernel reads from a file and its model.

    Raises DecodeError if the kernel refuses the file, or it is not one of the form that is named.
    """
    if (name == GroupedWindows.form) != bool(groups.columns):
        raise DecodeError("the certificate's form does not fit its groups")
    if sets is not None and name != TableRandomizer.form:
        raise DecodeError("the certificate's form does not fit its sets")
    refuse_vanishing_nodes(model)
    require_output_type(model, domain, sets)
    try:
        read = kernel.integers_of(data)
        ratio = read.ratio()
    except kernel.Refused as refusal:
        raise DecodeError(f"the kernel refuses the file: {refusal}") from None
    form: FileForm
    if name == AdditiveRandomizer.form:
        form = AdditiveFile.read(read, model, domain)
    elif name == TableRandomizer.form:
        form = TableFile.read(read, domain, sets)
    elif name in (WindowRandomizer.form, GroupedWindows.form):
        form = WindowFile.read(read, domain, groups)
    else:
        raise DecodeError(f"the certificate names an unknown form of randomizer: {name[:40]!r}")
    form.proved = ratio
    return form


def read_sets(claims: SetsClaims | None, classes: int) -> ClassSets | None:
    """The sets that the outputs are claimed to be; None where they are the labels themselves.

    Raises DecodeError unless they are sets of some of the classes.
    """
    if claims is None or claims.blocks is None:
        return None
    texts = claims.blocks
    # A design has no fewer sets than labels (Fisher 1940), and a table at most MAX_ENTRIES entries.
    # Anything larger is refused first.
    few = classes <= len(texts) and classes * len(texts) <= MAX_ENTRIES
    digits = -(-classes // 4)
    if not few or not all(type(text) is str and len(text) == digits for text in texts):
        raise DecodeError("not a valid artifact: the sets are malformed")
    try:
        return ClassSets.from_hex(classes, texts)
    except ValueError:
        raise DecodeError("not a valid artifact: the sets are malformed") from None


def read_groups(certificate: Certificate) -> Groups:
    """The map from columns to tables that a certificate states; the rebuilt graph proves it."""
    stated = certificate.groups
    if stated is None:
        return Groups()
    columns = tuple(
        GroupColumn(
            column.name,
            None if column.values is None else tuple(column.values),
            None if column.bands is None else tuple(column.bands),
        )
        for column in stated.columns
    )
    demand(len(columns) > 0, "there are groups, but no column")
    own = len(certificate.tables) - 1
    try:
        listed = stated.table_of_cell
        cells = range(own) if listed is None else listed
        demand(
            all(type(table) is int for table in cells), "the table of a group is not a whole number"
        )
        groups = Groups(columns, tuple(cells), own)
        check_groups(groups)
    except ValueError as error:
        raise DecodeError(f"the groups: {error}") from None
    demand(
        listed is None or not groups.is_plain,
        "the map of groups to tables must be omitted where each group has its own table",
    )
    return groups
