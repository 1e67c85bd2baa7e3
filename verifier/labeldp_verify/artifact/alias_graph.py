"""The nodes that sample from an alias table: one gather and one Min (see ``alias_table``).

uint64 shifts and Min, and int64 additions, compute exactly in every version of onnxruntime that was
tested.
"""

from __future__ import annotations

from labeldp_verify.artifact.graph import INT64, UINT64, Graph


def add_word_bits(graph: Graph, name: str, word: str, word_bits: int) -> str:
    """The highest B bits of a word [N]; the word itself if B is 64."""
    if word_bits == 64:
        return word
    shift = graph.scalar(f"{name}_word_shift", UINT64, 64 - word_bits)
    return graph.node("BitShift", [word, shift], f"{name}_word", direction="RIGHT")


def add_alias_sample(
    graph: Graph, name: str, word: str, entries: str, column_bits: int, start: str | None = None
) -> str:
    """The item [N] (int64) of each word [N] (uint64).

    ``entries`` names the table; ``start`` the first entry [N] (int64) of each word's own table,
    where several lie behind one another.
    """
    by = graph.scalar(f"{name}_column_shift", UINT64, 64 - column_bits)
    column = _low_bits(graph, f"{name}_column", word, by)
    if start is not None:
        column = graph.node("Add", [start, column], f"{name}_position")
    entry = graph.node("GatherElements", [entries, column], f"{name}_entry", axis=0)
    least = graph.node("Min", [word, entry], f"{name}_least")
    return _low_bits(graph, f"{name}_item", least, by)


def _low_bits(graph: Graph, name: str, word: str, by: str) -> str:
    """The lowest 64 − ``by`` bits, as int64."""
    raised = graph.node("BitShift", [word, by], f"{name}_raised", direction="LEFT")
    low = graph.node("BitShift", [raised, by], f"{name}_low", direction="RIGHT")
    return graph.node("Cast", [low], name, to=INT64)
