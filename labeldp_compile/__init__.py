"""A declarative compiler for label differential privacy.

These functions do what the commands of the same names do; everything else is internal. They, and
the types that they return, are loaded when they are asked for: ``__init__.pyi`` lists them.
"""

from functools import cache


@cache
def _homes() -> dict[str, str]:
    """{public name: its module}, from the imports of the stub, which type checkers read."""
    import ast  # noqa: PLC0415  # none of this is needed by the command
    from pkgutil import get_data  # noqa: PLC0415

    lines = ast.parse(get_data(__name__, "__init__.pyi") or b"").body
    imports = [line for line in lines if isinstance(line, ast.ImportFrom)]
    return {name.name: str(line.module) for line in imports for name in line.names}


def __getattr__(name: str) -> object:
    """The public names, and the list of them."""
    if name == "__all__":
        return list(_homes())
    if name.startswith("_") or name not in _homes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(_homes()[name]), name)
