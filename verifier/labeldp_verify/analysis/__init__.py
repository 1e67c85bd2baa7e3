"""The only exact analysis there is: from the integers of a randomizer to all that is claimed of it.

The compiler, the certificate, the tools and the verifier ask here. What it finds is checked by
enumeration from the definition alone (``tests/analysis``).
"""

from labeldp_verify.analysis.additive import AdditiveAnalysis
from labeldp_verify.analysis.analysis import Analysis, TooMuchWorkError
from labeldp_verify.analysis.table import TableAnalysis
from labeldp_verify.analysis.window import WindowAnalysis
from labeldp_verify.forms import AdditiveRandomizer, Randomizer, TableRandomizer

__all__ = [
    "AdditiveAnalysis",
    "Analysis",
    "TableAnalysis",
    "TooMuchWorkError",
    "WindowAnalysis",
    "analyse",
]


def analyse(randomizer: Randomizer) -> AdditiveAnalysis | TableAnalysis | WindowAnalysis:
    """The analysis of a randomizer of any form."""
    if isinstance(randomizer, AdditiveRandomizer):
        return AdditiveAnalysis(randomizer)
    if isinstance(randomizer, TableRandomizer):
        return TableAnalysis(randomizer)
    return WindowAnalysis(randomizer)
