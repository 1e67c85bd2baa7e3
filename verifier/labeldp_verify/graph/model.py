"""Canonical JSON, and the digest of the integers that decide what an artifact does."""

import hashlib
from collections.abc import Sequence
from typing import Any, TypeGuard

from labeldp_verify.forms import (
    AdditiveRandomizer,
    Domain,
    GroupedWindows,
    Groups,
    JointDomain,
    Randomizer,
    TableRandomizer,
    sets_of,
)
from labeldp_verify.forms.randomizers import Output
from labeldp_verify.graph.alias_table import add_additive, add_table
from labeldp_verify.graph.bucket_grid import (
    SINGLE_GRID_OF_GROUPS,
    BucketGrid,
    add_grouped_window,
    add_window,
    choose_grid,
)
from labeldp_verify.graph.inputs import (
    PRIVATE_NUMBER,
    add_columns,
    add_group_index,
    add_joint_index,
    add_row,
    add_words,
    declare_labels,
)
from labeldp_verify.graph.nodes import DOUBLE, INT32, INT64, Graph, output_type
from labeldp_verify.graph.self_test import self_test_vectors
from labeldp_verify.strict import canonical_json


def tables_digest(domain: Domain, randomizer: Randomizer | GroupedWindows) -> str:
    """SHA-256 (hex) over the domain and the randomizer's integers and values.

    It does not depend on the certificate, on tool versions or on how the lookup tables are laid
    out: two files with one digest are the same randomizer.
    """
    tables = {"domain": domain.to_json(), **randomizer.to_json()}
    return hashlib.sha256(canonical_json(tables).encode()).hexdigest()


# ---- Whole models: a randomizer of any form as an ONNX file, and the label part alone.
#
#     label ──► row ─┐   (a joint label has an input for each of its columns)
#     entropy ───────┼► the graph of the form ──► private_label
#     group ─► table ┘  (only where tables differ by group)
#
# There is no random operator: the caller brings uniform words, one a label (two for additive noise,
# and one more where the domain rounds unbiasedly).


PORTABLE = "portable"  # the part of a certificate whose file takes words in limbs
FORMAT_VERSION = "1.0"
# In which type a form needs rows: a cast from float64 to int32 takes a third of one to int64.
_ROW_KINDS = {"window": INT32, "additive": DOUBLE}


def write_model(
    domain: Domain,
    randomizer: Randomizer | GroupedWindows,
    certificate: dict[str, Any],
    grid: BucketGrid | None = None,
) -> bytes:
    """The artifact: a pure function of its arguments.

    ``grid`` lays out the lookup tables of a window randomizer (by default ``choose_grid``).
    The metadata holds the certificate, the format version, the vectors with which a runtime tests
    the platform before it trusts it, and a checksum over the file without the checksum.

    Raises ValueError if the tables would be too large.
    """
    graph = Graph(f"labeldp_{randomizer.form}")
    kind = _ROW_KINDS.get(randomizer.form, INT64)
    limbs = certificate[PORTABLE]["limbs_per_word"] if PORTABLE in certificate else 0
    row, words = _inputs(graph, domain, randomizer.words_per_label, kind, limbs)
    answer = PRIVATE_NUMBER
    if not answers_in_columns(domain, randomizer):
        answer = "private_label"
        graph.output(answer, _answer_type(randomizer), ["N"])
    if isinstance(randomizer, AdditiveRandomizer):
        add_additive(graph, row, words[0], words[1], randomizer)
    elif isinstance(randomizer, TableRandomizer):
        add_table(graph, row, words[0], randomizer, answer)
    elif isinstance(randomizer, GroupedWindows):
        grid = grid or choose_grid(randomizer.lines, single_entries=SINGLE_GRID_OF_GROUPS)
        if grid is None:
            raise ValueError("the lookup tables would be too large; use fewer groups or labels")
        table = add_group_index(graph, randomizer.groups, "label_shape")
        add_grouped_window(graph, row, table, words[0], randomizer, grid, answer)
    else:
        grid = grid or choose_grid(randomizer)
        if grid is None:
            raise ValueError("the lookup tables would be too large; use fewer labels")
        add_window(graph, row, words[0], randomizer, grid, answer)
    if answers_in_columns(domain, randomizer):
        add_columns(graph, domain)
    metadata = {
        "labeldp.certificate": canonical_json(certificate),
        "labeldp.format_version": FORMAT_VERSION,
        "labeldp.self_test": canonical_json(self_test_vectors(domain, randomizer)),
    }
    # A checksum over everything else: an accident in a declared field is found, too.
    content = hashlib.sha256(graph.to_bytes(metadata)).hexdigest()
    return graph.to_bytes({**metadata, "labeldp.content_sha256": content})


def answers_in_columns(
    domain: Domain, randomizer: Randomizer | GroupedWindows
) -> TypeGuard[JointDomain]:
    """Whether the graph has a private output for each column of a joint label.

    A set of combinations has no columns: it is answered by its number.
    """
    if not isinstance(domain, JointDomain):
        return False
    return isinstance(randomizer, GroupedWindows) or sets_of(randomizer) is None


def _answer_type(randomizer: Randomizer | GroupedWindows) -> int:
    if isinstance(randomizer, AdditiveRandomizer):
        return DOUBLE
    values: Sequence[Output]
    if isinstance(randomizer, GroupedWindows):
        values = randomizer.windows[0].values
    else:
        values = randomizer.values
    return output_type(values[0])


def write_index_model(domain: Domain) -> bytes:
    """The label part alone: from labels (and words) to row indices.

    The private prior counts labels with it, so that the histogram treats every label exactly as
    the artifact will.
    """
    graph = Graph("labeldp_index")
    row, _ = _inputs(graph, domain, 1, INT64)
    graph.output("index", INT64, ["N"])
    graph.node("Identity", [row], "index")
    return graph.to_bytes({})


def write_group_model(groups: Groups) -> bytes:
    """The group part alone: from rows (``label`` is any int64 [N]) to the indices of their tables.

    Rows are counted by group with it, as the artifact will find their tables.
    """
    graph = Graph("labeldp_group")
    label = graph.input("label", INT64, ["N"])
    shape = graph.node("Shape", [label], "label_shape")
    table = add_group_index(graph, groups, shape)
    graph.output("index", INT64, ["N"])
    graph.node("Identity", [table], "index")
    return graph.to_bytes({})


def _inputs(
    graph: Graph, domain: Domain, randomizer_words: int, kind: int, limbs: int = 0
) -> tuple[str, list[str]]:
    """Declare label and entropy; returns the names of the row, of this type, and of the words.

    ``limbs`` as in ``add_words``.
    """
    label = declare_labels(graph, domain)
    rounds = domain.words_per_label == 2
    names = ["word", "second_word"][:randomizer_words] + ["rounding_word"] * rounds
    shape = graph.node("Shape", [label], "label_shape")
    words = add_words(graph, names, shape, limbs)
    rounding_word = words.pop() if rounds else None
    if isinstance(domain, JointDomain):
        return add_joint_index(graph, domain, shape, portable=bool(limbs)), words
    return add_row(graph, domain, label, rounding_word, kind, portable=bool(limbs)), words
