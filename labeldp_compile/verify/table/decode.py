"""The table randomizer in the constants of a graph.

Its counts are read from the very alias tables that the graph gathers from.
"""

from __future__ import annotations

import onnx

from labeldp_compile.artifact.alias_table import column_bits
from labeldp_compile.artifact.table_graph import MAX_ENTRIES
from labeldp_compile.randomizer import Domain, TableRandomizer
from labeldp_compile.verify.alias_layout import Entries, read_tables, read_word_bits
from labeldp_compile.verify.decode import Constants, check_outputs, demand


def read_table(model: onnx.ModelProto, domain: Domain) -> tuple[TableRandomizer, Entries]:
    """The randomizer that the graph's tables describe, and their entries [k, 2^c]."""
    constants = Constants(model)
    values = constants.values("values")
    demand(len(values) >= 1, "the outputs")
    check_outputs(values, domain)
    demand(domain.size << column_bits(len(values)) <= MAX_ENTRIES, "the size of the table")
    word_bits = read_word_bits(constants, "table")
    entries, counts = read_tables(constants, "table_entries", domain.size, len(values), word_bits)
    return TableRandomizer(word_bits, tuple(map(tuple, counts)), tuple(values)), entries
