"""The public names of a package, each loaded when it is used (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache


def loaded_on_use(package: str) -> Callable[[str], object]:
    """The ``__getattr__`` of a package whose ``__init__.pyi``, a stub, imports its public names.

    Type checkers read the stub, too. ``__all__`` is the list of them.
    """

    @cache
    def homes() -> dict[str, str]:
        """{public name: its module}."""
        import ast  # noqa: PLC0415  # none of this is needed by a command
        from pkgutil import get_data  # noqa: PLC0415

        lines = ast.parse(get_data(package, "__init__.pyi") or b"").body
        imports = [line for line in lines if isinstance(line, ast.ImportFrom)]
        return {name.name: str(line.module) for line in imports for name in line.names}

    def loaded(name: str) -> object:
        """The public names, and the list of them."""
        if name == "__all__":
            return list(homes())
        if name.startswith("_") or name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module(homes()[name]), name)

    return loaded
