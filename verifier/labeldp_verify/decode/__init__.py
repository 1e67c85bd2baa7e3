"""From the bytes of a file to its certificate, its domain and its integers."""

from __future__ import annotations

import json
import math
from typing import Any

from labeldp_verify import kernel
from labeldp_verify.budget import TooLargeError
from labeldp_verify.claims import Certificate, parse_certificate
from labeldp_verify.claims.records import SetsClaims
from labeldp_verify.cost import charge_fields, charge_json
from labeldp_verify.decode.alias import AdditiveFile, TableFile
from labeldp_verify.decode.file import (
    FileForm,
    WindowFile,
    refuse_vanishing_nodes,
    require_output_type,
)
from labeldp_verify.errors import CheckFailedError, demand, short
from labeldp_verify.forms import (
    MAX_GRID_POINTS,
    AdditiveRandomizer,
    CategoricalDomain,
    ClassSets,
    Domain,
    GridDomain,
    GroupColumn,
    GroupedWindows,
    Groups,
    IntegerDomain,
    JointDomain,
    RealDomain,
    TableRandomizer,
    WindowRandomizer,
)
from labeldp_verify.forms.groups import check_groups
from labeldp_verify.forms.joint import MAX_LABEL_COLUMNS, Part
from labeldp_verify.graph import FORMAT_VERSION, canonical_json
from labeldp_verify.graph.alias_table import MAX_ENTRIES
from labeldp_verify.graph.nodes import ModelProto, is_taken_for
from labeldp_verify.strict import ShapeError

__all__ = [
    "FileForm",
    "read_certificate",
    "read_domain",
    "read_form",
    "read_groups",
    "read_model",
    "read_sets",
]

METADATA_KEYS = (
    "labeldp.certificate",
    "labeldp.content_sha256",
    "labeldp.format_version",
    "labeldp.self_test",
)
_EXACT_IN_FLOAT64 = 2**53
MAX_LABELS = 1_000_000
_MAX_NODES = 1_000
_NO_GROUPS = Groups()


def read_model(data: bytes) -> ModelProto:
    """Parse the protobuf."""
    try:
        charge_fields(data)
        model = ModelProto()
        model.ParseFromString(data)
    except TooLargeError:
        raise
    except Exception as error:
        raise CheckFailedError("the file is not an ONNX model") from error
    if not model.graph.node:
        raise CheckFailedError("the file is not an ONNX model: it has no graph")
    if max(len(model.graph.node), len(model.graph.initializer)) > _MAX_NODES:
        raise CheckFailedError("the graph has more nodes or constants than any artifact")
    return model


def read_certificate(model: ModelProto) -> Certificate:
    """The certificate: canonical JSON under the expected metadata keys, in a known format."""
    count = len(model.metadata_props)
    if any(prop.key.startswith("labeldp.model.") for prop in model.metadata_props):
        raise CheckFailedError(
            "it is a trained model of labeldp export: only randomizers have proofs"
        )
    if count != len(METADATA_KEYS) or {p.key for p in model.metadata_props} != set(METADATA_KEYS):
        raise CheckFailedError(f"the metadata must hold exactly {', '.join(METADATA_KEYS)}")
    metadata = {prop.key: prop.value for prop in model.metadata_props}
    version = metadata["labeldp.format_version"]
    if version != FORMAT_VERSION:
        raise CheckFailedError(
            f"the file has format {short(version)}, but this labeldp verifies {FORMAT_VERSION!r}: "
            "use the labeldp release that wrote the file, or compile the spec again"
        )
    text = metadata["labeldp.certificate"]
    charge_json(text)
    certificate = json.loads(text, parse_float=_float64)
    if not isinstance(certificate, dict) or canonical_json(certificate) != text:
        raise CheckFailedError("the certificate is not canonical JSON")
    try:
        read = parse_certificate(certificate)
    except ShapeError as error:
        raise CheckFailedError(
            f"the certificate has another shape than format {version}: {error}"
        ) from None
    demand(
        version == read.format_version,
        "the format of the file differs from that of its certificate",
    )
    return read


def read_domain(stated: dict[str, Any]) -> Domain:
    """The label domain that the certificate states; the rebuilt graph proves it."""
    domain: Domain
    if stated["kind"] == "joint":
        domain = _read_joint(stated)
        demand(
            canonical_json(domain.to_json()) == canonical_json(stated), "the domain is malformed"
        )
        return domain
    rule, null, keeps = _read_rules(stated["out_of_domain"])
    default = None if rule == "clamp" else rule["default"]
    own = [one for one in (default, null) if one is not None]
    if stated["kind"] == "integer":
        domain = IntegerDomain(stated["min"], stated["max"], default, null, keeps)
        numbers = [domain.min, domain.max, *own]
        demand(
            all(_is_int(n) and abs(n) <= _EXACT_IN_FLOAT64 for n in numbers),
            "the domain is malformed",
        )
    elif stated["kind"] in ("real", "grid"):
        rules = default, null, keeps
        if stated["kind"] == "real":
            ends = stated["min"], stated["max"], stated["points"]
            domain = RealDomain(*ends, stated["rounding"], *rules)
        else:
            domain = _read_grid(stated, rules)
        floats = [domain.min, domain.max, *own]
        demand(
            all(isinstance(x, float) and math.isfinite(x) for x in floats),
            "the domain is malformed",
        )
        demand(
            _is_int(domain.points) and 2 <= domain.points <= MAX_LABELS, "the domain is malformed"
        )
        demand(domain.rounding in ("nearest", "unbiased"), "the domain is malformed")
        demand(domain.min < domain.max and domain.is_faithful(), "the grid of labels is malformed")
        demand(
            isinstance(domain, GridDomain) or not is_taken_for(domain.min, 0.0),
            "onnxruntime would take the lowest label for 0",
        )
    else:
        values = tuple(stated["values"])
        kinds = {type(v) for v in values}
        demand(
            kinds in ({str}, {int}) and len(set(values)) == len(values),
            "the categories are malformed",
        )
        demand(default in values and type(default) in kinds, "the default category is not listed")
        if null is not None:
            known = null in values and type(null) in kinds
            demand(known, "the category of nulls is not listed")
        domain = CategoricalDomain(values, values[values.index(default)], null, keeps)
    if not isinstance(domain, CategoricalDomain):
        demand(domain.min < domain.max, "the domain is malformed")
        inside = all(domain.min <= one <= domain.max for one in own)
        demand(inside, "the default label is outside the domain")
    demand(canonical_json(domain.to_json()) == canonical_json(stated), "the domain is malformed")
    return domain


def _read_rules(stated: Any) -> tuple[Any, Any, bool]:
    """What labels outside the domain become, what nulls become (None: the same), and whether nulls
    stay null."""
    if not isinstance(stated, dict) or "nulls" not in stated:
        return stated, None, False
    nulls = stated["nulls"]
    return stated["others"], None if nulls == "public" else nulls["default"], nulls == "public"


def _read_grid(stated: dict[str, Any], rules: tuple[Any, Any, bool]) -> GridDomain:
    """A domain of listed numbers."""
    values, (default, null, keeps) = stated["values"], rules
    listed = isinstance(values, list) and 2 <= len(values) <= MAX_GRID_POINTS
    demand(listed and all(isinstance(one, float) for one in values), "the grid is malformed")
    return GridDomain.of(values, stated["rounding"], default, null, keeps_nulls=keeps)


def _read_joint(stated: dict[str, Any]) -> JointDomain:
    """A joint label of columns, none of which is joint itself."""
    columns = stated["columns"]
    listed = isinstance(columns, list) and 2 <= len(columns) <= MAX_LABEL_COLUMNS
    demand(listed, "the columns of the label are malformed")
    plain = all(isinstance(c, dict) and c.get("kind") != JointDomain.kind for c in columns)
    demand(plain, "a column of the label is itself a joint label")  # before it is built
    parts: list[Part] = []
    for column in columns:
        part = read_domain(column)
        demand(
            part.words_per_label == 1, "a column of the label is not rounded to the nearest point"
        )
        parts.append(part)
    return JointDomain.of(parts)


def _float64(text: str) -> float:
    """A number of the certificate; there is one zero."""
    number = float(text)
    demand(math.copysign(1, number) > 0 or number != 0, "a number of the certificate is −0")
    return number


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def read_form(
    name: str,
    model: ModelProto,
    data: bytes,
    domain: Domain,
    groups: Groups = _NO_GROUPS,
    sets: ClassSets | None = None,
) -> FileForm:
    """Decode the randomizer from the integers that the kernel reads from a file and its model.

    Raises CheckFailedError if the kernel refuses the file, or it is not of the named form.
    """
    if (name == GroupedWindows.form) != bool(groups.columns):
        raise CheckFailedError("the certificate's form does not fit its groups")
    if sets is not None and name != TableRandomizer.form:
        raise CheckFailedError("the certificate's form does not fit its sets")
    refuse_vanishing_nodes(model)
    require_output_type(model, domain, sets)
    try:
        read = kernel.integers_of(data)
        ratio = read.ratio()
    except kernel.Refused as refusal:
        raise CheckFailedError(f"the kernel refuses the file: {refusal}") from None
    form: FileForm
    if name == AdditiveRandomizer.form:
        form = AdditiveFile.read(read, model, domain)
    elif name == TableRandomizer.form:
        form = TableFile.read(read, domain, sets)
    elif name in (WindowRandomizer.form, GroupedWindows.form):
        form = WindowFile.read(read, domain, groups)
    else:
        raise CheckFailedError(
            f"the certificate names an unknown form of randomizer: {name[:40]!r}"
        )
    form.proved = ratio
    return form


def read_sets(claims: SetsClaims | None, classes: int) -> ClassSets | None:
    """The sets that the outputs are claimed to be; None where they are the labels themselves.

    Raises CheckFailedError unless they are sets of some of the classes.
    """
    if claims is None or claims.blocks is None:
        return None
    texts = claims.blocks
    # A design has no fewer sets than labels (Fisher 1940), and a table at most MAX_ENTRIES entries.
    # Anything larger is refused first.
    few = classes <= len(texts) and classes * len(texts) <= MAX_ENTRIES
    digits = -(-classes // 4)
    if not few or not all(type(text) is str and len(text) == digits for text in texts):
        raise CheckFailedError("the sets are malformed")
    try:
        return ClassSets.from_hex(classes, texts)
    except ValueError:
        raise CheckFailedError("the sets are malformed") from None


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
        raise CheckFailedError(f"the groups: {error}") from None
    demand(
        listed is None or not groups.is_plain,
        "the map of groups to tables must be omitted where each group has its own table",
    )
    return groups
