"""Whole models: the window randomizer as an ONNX file, and the label part alone.

    label ──► row ──► offset ─┐
    entropy ► u ──► (u ≥ T ?) ┴► t = u + offset ──► bucket ──► segment ──► private_label

There is no random operator: the caller brings one uniform uint64 word a label (two where the domain
rounds unbiasedly), and u is its highest B bits. The words are reshaped to the labels' own shape, so
that a wrong number of words is an error and one word is never shared by several labels.

int64 comparisons, additions and Where, and uint64 shifts, compute exactly in every version of
onnxruntime that was tested; uint64 additions and comparisons are missing before 1.21.
"""

from __future__ import annotations

import hashlib
from typing import Any

from labeldp_compile.artifact.bucket_grid import BucketGrid, grid_entries
from labeldp_compile.artifact.canonical import canonical_json
from labeldp_compile.artifact.graph import DOUBLE, INT64, STRING, UINT64, Graph
from labeldp_compile.artifact.label_graph import add_label_to_index, label_type
from labeldp_compile.artifact.self_test import self_test_vectors
from labeldp_compile.randomizer import Domain, WindowRandomizer

FORMAT_VERSION = "1.0"


def write_window_model(
    domain: Domain, randomizer: WindowRandomizer, grid: BucketGrid, certificate: dict[str, Any]
) -> bytes:
    """The artifact: a pure function of its arguments.

    The metadata holds the certificate, the format version, the vectors with which a runtime tests
    the platform before it trusts it, and a checksum over the file without the checksum.
    """
    graph = Graph("labeldp_window")
    row, word = _inputs(graph, domain)
    private = _output_type(randomizer)
    graph.output("private_label", private, ["N"])

    u = _uniform(graph, word, randomizer.word_bits)
    base_total = graph.scalar("base_total", INT64, randomizer.base_total)
    in_extra = graph.node("GreaterOrEqual", [u, base_total], "in_extra")
    offsets = graph.vector("offsets", INT64, randomizer.offsets)
    offset = graph.node("GatherElements", [offsets, row], "offset", axis=0)
    moved = graph.node("Add", [u, offset], "u_moved")
    t = graph.node("Where", [in_extra, moved, u], "t")

    bucket = _bucket(graph, t, in_extra, randomizer, grid)
    entries = graph.vector("grid", INT64, grid_entries(randomizer, grid))
    entry = graph.node("GatherElements", [entries, bucket], "grid_entry", axis=0)
    raised = graph.node("Add", [t, entry], "t_raised")
    segment = _shift(graph, raised, "segment_shift", grid.segment_shift, "segment")

    values = [randomizer.values[i] for i in randomizer.segment_outputs()]
    segment_values = graph.vector("segment_values", private, values)
    graph.node("GatherElements", [segment_values, segment], "private_label", axis=0)
    metadata = {
        "labeldp.certificate": canonical_json(certificate),
        "labeldp.format_version": FORMAT_VERSION,
        "labeldp.self_test": canonical_json(self_test_vectors(domain, randomizer)),
    }
    # A checksum over everything else: an accident in a declared field is found, too.
    content = hashlib.sha256(graph.to_bytes(metadata)).hexdigest()
    return graph.to_bytes({**metadata, "labeldp.content_sha256": content})


def write_index_model(domain: Domain) -> bytes:
    """The label part alone: from labels (and words) to row indices.

    The private prior counts labels with it, so that the histogram treats every label exactly as
    the artifact will.
    """
    graph = Graph("labeldp_index")
    row, _ = _inputs(graph, domain)
    graph.output("index", INT64, ["N"])
    graph.node("Identity", [row], "index")
    return graph.to_bytes({})


def _inputs(graph: Graph, domain: Domain) -> tuple[str, str]:
    """Declare label and entropy; returns the names of the row index and of the first word."""
    words = domain.words_per_label
    label = graph.input("label", label_type(domain), ["N"])
    entropy = graph.input("entropy", UINT64, ["N"] if words == 1 else ["N", 2])
    shape = graph.node("Shape", [label], "label_shape")
    if words == 1:
        word = graph.node("Reshape", [entropy, shape], "word", allowzero=1)
        return add_label_to_index(graph, domain, label, None), word
    two = graph.vector("two", INT64, [2])
    pair_shape = graph.node("Concat", [shape, two], "entropy_shape", axis=0)
    pairs = graph.node("Reshape", [entropy, pair_shape], "word_pairs", allowzero=1)
    columns = [graph.scalar(f"column_{i}", INT64, i) for i in range(2)]
    first, second = (
        graph.node("Gather", [pairs, column], name, axis=1)
        for column, name in zip(columns, ["word", "rounding_word"], strict=True)
    )
    return add_label_to_index(graph, domain, label, second), first


def _uniform(graph: Graph, word: str, word_bits: int) -> str:
    shift = graph.scalar("word_shift", UINT64, 64 - word_bits)
    high = graph.node("BitShift", [word, shift], "word_high", direction="RIGHT")
    return graph.node("Cast", [high], "u", to=INT64)


def _bucket(
    graph: Graph, t: str, in_extra: str, randomizer: WindowRandomizer, grid: BucketGrid
) -> str:
    if grid.is_single:
        return _shift(graph, t, "bucket_shift", grid.base_shift, "bucket")
    base = _shift(graph, t, "base_bucket_shift", grid.base_shift, "base_bucket")
    extra = _shift(graph, t, "extra_bucket_shift", grid.extra_shift, "extra_bucket")
    start = graph.scalar("extra_start", INT64, grid.extra_start(randomizer))
    behind = graph.node("Add", [extra, start], "extra_bucket_behind")
    return graph.node("Where", [in_extra, behind, base], "bucket")


def _shift(graph: Graph, value: str, constant: str, bits: int, output: str) -> str:
    """``value >> bits`` for non-negative int64, by way of uint64."""
    unsigned = graph.node("Cast", [value], f"{output}_unsigned", to=UINT64)
    by = graph.scalar(constant, UINT64, bits)
    shifted = graph.node("BitShift", [unsigned, by], f"{output}_shifted", direction="RIGHT")
    return graph.node("Cast", [shifted], output, to=INT64)


def _output_type(randomizer: WindowRandomizer) -> int:
    first = randomizer.values[0]
    if isinstance(first, float):
        return DOUBLE
    return STRING if isinstance(first, str) else INT64
