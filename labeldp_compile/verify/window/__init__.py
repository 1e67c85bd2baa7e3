"""Window randomizers: decoded, analysed, and run at their boundaries."""

from labeldp_compile.verify.window.form import WindowForm

__all__ = ["WindowForm"]
