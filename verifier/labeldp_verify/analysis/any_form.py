"""The analysis of a randomizer of any form."""

from labeldp_verify.analysis.additive import AdditiveAnalysis
from labeldp_verify.analysis.table import TableAnalysis
from labeldp_verify.analysis.window import WindowAnalysis
from labeldp_verify.forms import AdditiveRandomizer, Randomizer, TableRandomizer


def analyse(randomizer: Randomizer) -> AdditiveAnalysis | TableAnalysis | WindowAnalysis:
    """Its exact probabilities, by the form that it has."""
    if isinstance(randomizer, AdditiveRandomizer):
        return AdditiveAnalysis(randomizer)
    if isinstance(randomizer, TableRandomizer):
        return TableAnalysis(randomizer)
    return WindowAnalysis(randomizer)
