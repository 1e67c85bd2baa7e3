"""The names that a package hands out, each loaded when it is used (PEP 562)."""

import ast
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import get_data


def loaded_on_use(package: str) -> Callable[[str], object]:
    """The ``__getattr__`` of a package whose ``__init__.pyi``, a stub, imports its public names.

    Type checkers read the stub, too. ``__all__`` is the list of them. No module of the package may
    have the name of a function in it.
    """

    @cache
    def homes() -> dict[str, tuple[str, str]]:
        """{public name: its module, and its name there}; "" is that of a module of the package."""
        lines = ast.parse(get_data(package, "__init__.pyi") or b"").body
        imports = [(line.module, line.names) for line in lines if isinstance(line, ast.ImportFrom)]
        return {str(one.asname): (module or "", one.name) for module, own in imports for one in own}

    def loaded(name: str) -> object:
        """The public names, and the list of them."""
        if name == "__all__":
            return list(homes())
        if name.startswith("_") or name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, own = homes()[name]
        return getattr(import_module(module), own) if module else import_module(f"{package}.{own}")

    return loaded
