"""The table randomizer as a graph: the alias table of the label's row, sampled with its word."""

from __future__ import annotations

from labeldp_verify.artifact.alias_graph import add_alias_sample, add_word_bits
from labeldp_verify.artifact.alias_table import alias_entries, column_bits
from labeldp_verify.artifact.graph import INT64, UINT64, Graph, output_type
from labeldp_verify.forms import TableRandomizer

MAX_ENTRIES = 1 << 21  # 16 MB


def require_small_table(labels: int, outputs: int) -> None:
    """Raise ValueError if the alias tables would have more than ``MAX_ENTRIES`` entries."""
    if labels << column_bits(outputs) > MAX_ENTRIES:
        raise ValueError(
            f"a table of {labels:,} labels and {outputs:,} outputs would be too large; "
            "use fewer labels, or a mechanism without a table"
        )


def table_entries(randomizer: TableRandomizer) -> list[int]:
    """The alias tables of all rows, one behind the other; ValueError if they are too large."""
    require_small_table(len(randomizer.counts), randomizer.outputs)
    rows = (alias_entries(row, randomizer.word_bits) for row in randomizer.counts)
    return [entry for row in rows for entry in row]


def add_table(graph: Graph, row: str, word: str, randomizer: TableRandomizer) -> None:
    """Add the nodes from a row index [N] (int64) and a word [N] (uint64) to ``private_label``."""
    private = output_type(randomizer.values[0])
    graph.output("private_label", private, ["N"])
    bits = column_bits(randomizer.outputs)
    entries = graph.vector("table_entries", UINT64, table_entries(randomizer))
    columns = graph.scalar("columns", INT64, 1 << bits)
    start = graph.node("Mul", [row, columns], "row_start")
    high = add_word_bits(graph, "table", word, randomizer.word_bits)
    item = add_alias_sample(graph, "table", high, entries, bits, start)
    values = graph.vector("values", private, randomizer.values)
    graph.node("GatherElements", [values, item], "private_label", axis=0)
