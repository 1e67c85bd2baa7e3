"""A randomizer as SQL: the integers of a verified file, and HMAC-SHA-256, in six dialects.

An artifact becomes a list of *steps*, each an expression over the columns before it: from the
label to its row, from id and row to secret bits, from both to the private label. A dialect says how
its database writes an expression, and wraps the steps in a function or a query.
"""

from labeldp_compile.export.sql.command import target

__all__ = ["target"]
