"""A mechanism of a spec in words: its kind, and the options that are not the defaults."""

from __future__ import annotations

from labeldp_compile.spec.mechanism import (
    BiasSpec,
    Laplace,
    Mechanism,
    OptimalUnbiased,
    RRTopK,
    Staircase,
)


def mechanism_title(mechanism: Mechanism) -> str:
    """Short, and different for mechanisms that differ: ``laplace, clipped``, for instance."""
    return ", ".join([mechanism.kind, *_options(mechanism)])


def _options(mechanism: Mechanism) -> list[str]:
    if isinstance(mechanism, RRTopK):
        return [f"k {mechanism.k}"]
    if isinstance(mechanism, Laplace | Staircase):
        lattice = [] if mechanism.lattice is None else [f"lattice {mechanism.lattice}"]
        return [*(["clipped"] if mechanism.clip else []), *lattice]
    if isinstance(mechanism, OptimalUnbiased):
        outputs, options = mechanism.outputs, []
        if outputs != "exact" and outputs.grid is not None:
            options.append(f"grid {outputs.grid}")
        elif outputs != "exact":
            options.append(f"{len(outputs.values or [])} given outputs")
        return options if mechanism.bias is None else [*options, _budget(mechanism.bias)]
    return []


def _budget(bias: BiasSpec) -> str:
    if bias.max is not None:
        return f"max bias {bias.max}"
    if bias.sample_size is not None:
        return f"sample size {bias.sample_size}"
    assert bias.penalty is not None
    return f"penalty {float(bias.penalty):g}"
