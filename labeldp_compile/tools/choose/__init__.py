"""Which ε, and which mechanism: the least that reaches what private labels must be good for."""

from labeldp_compile.tools.choose.choose import Choice, choose_spec
from labeldp_compile.tools.choose.search import Standing
from labeldp_compile.tools.choose.targets import Belief, Demand, Wanted

__all__ = ["Belief", "Choice", "Demand", "Standing", "Wanted", "choose_spec"]
