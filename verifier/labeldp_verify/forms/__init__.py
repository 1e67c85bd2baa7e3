"""The exact forms: what a label is, and the integers that decide every probability."""

from labeldp_verify.forms.additive import AdditiveRandomizer
from labeldp_verify.forms.domain import (
    CategoricalDomain,
    Domain,
    IntegerDomain,
    RealDomain,
)
from labeldp_verify.forms.grouped_windows import GroupedWindows
from labeldp_verify.forms.groups import GroupColumn, Groups
from labeldp_verify.forms.joint import JointDomain
from labeldp_verify.forms.sets import Sets, are_numbers, sets_of
from labeldp_verify.forms.table import TableRandomizer
from labeldp_verify.forms.window import WindowRandomizer

Randomizer = WindowRandomizer | AdditiveRandomizer | TableRandomizer

__all__ = [
    "AdditiveRandomizer",
    "CategoricalDomain",
    "Domain",
    "GroupColumn",
    "GroupedWindows",
    "Groups",
    "IntegerDomain",
    "JointDomain",
    "Randomizer",
    "RealDomain",
    "Sets",
    "TableRandomizer",
    "WindowRandomizer",
    "are_numbers",
    "sets_of",
]
