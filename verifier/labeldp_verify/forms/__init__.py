"""The exact forms: what a label is, and the integers that decide every probability."""

from labeldp_verify.forms.additive import WORD_BITS as ADDITIVE_WORD_BITS
from labeldp_verify.forms.additive import AdditiveRandomizer, check_additive
from labeldp_verify.forms.domain import (
    MAX_GRID_POINTS,
    CategoricalDomain,
    Category,
    Domain,
    GridDomain,
    IntegerDomain,
    RealDomain,
    Rounding,
    missing_label,
)
from labeldp_verify.forms.exact_numbers import ExactNumbers
from labeldp_verify.forms.grouped_windows import GroupedWindows
from labeldp_verify.forms.groups import (
    MAX_CELLS,
    MAX_COLUMNS,
    MAX_EDGES,
    GroupColumn,
    Groups,
    check_groups,
)
from labeldp_verify.forms.integers import Integers, Randomizer
from labeldp_verify.forms.joint import (
    MAX_COMBINATIONS,
    MAX_LABEL_COLUMNS,
    JointDomain,
    Part,
    columns_of,
    output_array,
    output_values,
)
from labeldp_verify.forms.sets import ClassSets, are_numbers, sets_of
from labeldp_verify.forms.table import WORD_BITS as TABLE_WORD_BITS
from labeldp_verify.forms.table import TableRandomizer, check_table
from labeldp_verify.forms.window import (
    MAX_WORD_BITS,
    Output,
    Segment,
    WindowRandomizer,
    check_form,
    word_sizes,
)

__all__ = [
    "ADDITIVE_WORD_BITS",
    "MAX_CELLS",
    "MAX_COLUMNS",
    "MAX_COMBINATIONS",
    "MAX_EDGES",
    "MAX_GRID_POINTS",
    "MAX_LABEL_COLUMNS",
    "MAX_WORD_BITS",
    "TABLE_WORD_BITS",
    "AdditiveRandomizer",
    "CategoricalDomain",
    "Category",
    "ClassSets",
    "Domain",
    "ExactNumbers",
    "GridDomain",
    "GroupColumn",
    "GroupedWindows",
    "Groups",
    "IntegerDomain",
    "Integers",
    "JointDomain",
    "Output",
    "Part",
    "Randomizer",
    "RealDomain",
    "Rounding",
    "Segment",
    "TableRandomizer",
    "WindowRandomizer",
    "are_numbers",
    "check_additive",
    "check_form",
    "check_groups",
    "check_table",
    "columns_of",
    "missing_label",
    "output_array",
    "output_values",
    "sets_of",
    "word_sizes",
]
