"""Alias tables, and the two forms that sample from them: table and additive randomizers."""

from collections.abc import Sequence

from labeldp_verify.forms import AdditiveRandomizer, TableRandomizer
from labeldp_verify.graph.nodes import DOUBLE, INT64, UINT64, Graph, output_type

# ---- Alias tables: an integer distribution sampled with one gather and one Min (Walker 1977).
#
# Weights that sum to 2^B are dealt to 2^c columns of 2^(B − c) words each: column j holds t words
# of item j itself and the rest of one other item a, its alias. A B-bit word w lies in column
# j = w mod 2^c at height w >> c. One entry a column decides:
#
#     P = ((t − [j < a]) << c) | a          item(w) = min(w, P[j]) mod 2^c
#
# because w ≤ P exactly for the t lowest heights. A column that is full of its own item has P = j.
# Every item has a weight of at least 1 and keeps at least one word of its own column, so t − [j <
# a] is never negative; columns behind the last item have t = 0 and an alias below j.


def column_bits(items: int) -> int:
    """c: the least number of bits, at least 1, that tell the items apart."""
    return max((items - 1).bit_length(), 1)


def alias_entries(weights: Sequence[int], word_bits: int) -> list[int]:
    """[2^c] the entries P; a pure function of the weights.

    ``weights`` are ≥ 1 and sum to 2^word_bits; ValueError otherwise, or if there are more columns
    than words.
    """
    c = column_bits(len(weights))
    if c > word_bits:
        raise ValueError(f"{len(weights)} items do not fit a word of {word_bits} bits")
    if min(weights) < 1 or sum(weights) != 1 << word_bits:
        raise ValueError("the weights must be at least 1 and fill the word")
    height = 1 << (word_bits - c)
    own = [*weights, *[0] * ((1 << c) - len(weights))]
    entries = list(range(1 << c))
    lacking = [j for j, weight in enumerate(own) if weight < height]
    donors = [j for j, weight in enumerate(own) if weight > height]
    while lacking:
        j, a = lacking.pop(), donors[-1]
        entries[j] = ((own[j] - (j < a)) << c) | a
        own[a] -= height - own[j]
        if own[a] <= height:
            donors.pop()
            if own[a] < height:
                lacking.append(a)
    return entries


def sample(entries: Sequence[int], word: int) -> int:
    """The item of a B-bit word: what the graph computes."""
    columns = len(entries)
    return min(word, entries[word % columns]) % columns


# The nodes that sample from an alias table: one gather and one Min.
#
# uint64 shifts and Min, and int64 additions, compute exactly in every version of onnxruntime
# that was tested.


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
    where there are several.
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


# The table randomizer as a graph: the item of a word in the alias table of the row.


MAX_ENTRIES = 1 << 21  # 16 MB


def require_small_table(labels: int, outputs: int) -> None:
    """Raise ValueError if the alias tables would have more than ``MAX_ENTRIES`` entries."""
    if labels << column_bits(outputs) > MAX_ENTRIES:
        raise ValueError(
            f"a table of {labels:,} labels and {outputs:,} outputs would be too large; "
            "use fewer labels, or a mechanism without a table"
        )


def table_entries(randomizer: TableRandomizer) -> list[int]:
    """The alias tables of all rows, one after the other; ValueError if they are too large."""
    require_small_table(len(randomizer.counts), randomizer.outputs)
    rows = (alias_entries(row, randomizer.word_bits) for row in randomizer.counts)
    return [entry for row in rows for entry in row]


def add_table(graph: Graph, row: str, word: str, randomizer: TableRandomizer, answer: str) -> None:
    """Add the nodes from a row index [N] (int64) and a word [N] (uint64) to the ``answer``."""
    private = output_type(randomizer.values[0])
    bits = column_bits(randomizer.outputs)
    entries = graph.vector("table_entries", UINT64, table_entries(randomizer))
    columns = graph.scalar("columns", INT64, 1 << bits)
    start = graph.node("Mul", [row, columns], "row_start")
    high = add_word_bits(graph, "table", word, randomizer.word_bits)
    item = add_alias_sample(graph, "table", high, entries, bits, start)
    values = graph.vector("values", private, randomizer.values)
    graph.node("GatherElements", [values, item], answer, axis=0)


# ---- The additive randomizer as a graph.
#
#     word ────────► block ─┐
#     second word ► i ──────┴► t = row·S + block·D + i − (J + 1)·D ──► clamp ──► t·unit + origin
#
# The block and i come from alias tables; that of i is chosen by the block's side of zero. Products
# and sums are exact: all points are below 2^52, where float64 is exact, too. Points are float64,
# whose ``Clip`` takes a sixth of the time of comparisons and ``Where`` on int64.


MAX_PERIOD = 1 << 20  # two tables of 8 MB


def add_additive(
    graph: Graph, row: str, word: str, second_word: str, randomizer: AdditiveRandomizer
) -> None:
    """Add the nodes from a row [N] (float64) and words [N] (uint64) to ``private_label``.

    Raises ValueError if the tables would be too large.
    """
    r = randomizer
    if r.period > MAX_PERIOD:
        raise ValueError(
            f"additive noise on {r.period:,} lattice steps would need too large tables; "
            f"use a coarser lattice or fewer labels (at most {MAX_PERIOD:,} steps)"
        )
    blocks = graph.vector("block_entries", UINT64, alias_entries(r.blocks, r.word_bits))
    high = add_word_bits(graph, "block", word, r.word_bits)
    block = add_alias_sample(graph, "block", high, blocks, column_bits(len(r.blocks)))
    entries = [entry for shape in r.shapes for entry in alias_entries(shape, r.word_bits)]
    shapes = graph.vector("shape_entries", UINT64, entries)
    # By the block, the shape of its side of zero: half of the blocks lie on each.
    starts = [0] * (r.reach + 1) + [1 << column_bits(r.period)] * (r.reach + 1)
    by_block = graph.vector("shape_starts", INT64, starts)
    start = graph.node("GatherElements", [by_block, block], "shape_start", axis=0)
    high = add_word_bits(graph, "shape", second_word, r.word_bits)
    inside = add_alias_sample(graph, "shape", high, shapes, column_bits(r.period), start)

    period = graph.scalar("period", INT64, r.period)
    lowest = graph.scalar("noise_shift", INT64, -(r.reach + 1) * r.period)
    block_point = graph.node("Mul", [block, period], "block_point")
    above = graph.node("Add", [block_point, inside], "noise_above_lowest")
    noise = graph.node("Add", [above, lowest], "noise")
    noise_number = graph.node("Cast", [noise], "noise_number", to=DOUBLE)
    spacing = graph.scalar("spacing", DOUBLE, float(r.spacing))
    label_point = graph.node("Mul", [row, spacing], "label_point")
    point = graph.node("Add", [label_point, noise_number], "point")
    ends = [graph.scalar("low", DOUBLE, float(r.low)), graph.scalar("high", DOUBLE, float(r.high))]
    clamped = graph.node("Clip", [point, *ends], "point_clamped")
    scaled = graph.product(clamped, "unit", r.unit, "point_scaled")
    graph.node("Add", [scaled, graph.scalar("origin", DOUBLE, r.origin)], "private_label")
