"""Weights of dense layers: their gradient is input ⊗ slope, which need not be multiplied out.

The program of a loss (its jaxpr) shows which leaves of the parameters are used once, as a matrix
that multiplies one vector that does not depend on the label. The gradient in such a leaf is the
outer product of that vector and of the gradient in the product's result.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from jaxtyping import Float, PyTree, Real, Shaped

from labeldp_trainer.dp_gradient.tree import Loss

_GAIN = 8  # smaller matrices are multiplied out: what is saved must be worth another product


class Use(NamedTuple):
    """Where a leaf multiplies a vector: equation `place`, the vector being its operand `vector`.

    `swapped`: the leaf is [slope, input], not [input, slope].
    """

    leaf: int
    place: int
    vector: int
    swapped: bool


class ExampleGradients(NamedTuple):
    """Gradients of one example for K labels: of the leaves that are `whole`, and of the others."""

    whole: tuple[Float[Array, "K _"], ...]
    inputs: tuple[Float[Array, " _"], ...]
    slopes: tuple[Float[Array, "K _"], ...]


class LossProgram:
    """The program of `loss(params, x, label)` for one example: gradients for many labels.

    Attributes:
        uses: the leaves of params whose gradient is an outer product.
        whole: the indices of the other leaves.
    """

    def __init__(
        self, loss: Loss, params: PyTree, x: PyTree[Shaped[Array, "..."]], label: Real[Array, ""]
    ) -> None:
        """Trace the loss. The arguments may be tracers: shapes and types matter."""
        leaves, structure = jax.tree.flatten(params)

        def flat(leaves: list[Array], x: PyTree, label: Array) -> Array:
            return loss(jax.tree.unflatten(structure, leaves), x, label)

        self._closed: ClosedJaxpr = jax.make_jaxpr(flat)(leaves, x, label)
        self._leaves = leaves
        self.uses = _uses(self._closed, len(leaves))
        self._parts = _parts(self._closed.jaxpr, self.uses)
        factored = {use.leaf for use in self.uses}
        self.whole = tuple(i for i in range(len(leaves)) if i not in factored)

    def gradients(
        self, x: PyTree[Shaped[Array, "..."]], labels: Real[Array, " K"]
    ) -> ExampleGradients:
        """Return the gradients of the example with features x for all `labels`.

        Work that does not depend on the label is not repeated for every label.
        """
        equations = self._closed.jaxpr.eqns
        results = [equations[use.place].outvars[0].aval for use in self.uses]
        added = [jnp.zeros(aval.shape, aval.dtype) for aval in results]
        whole = [self._leaves[i] for i in self.whole]

        def of_label(label: Array) -> Any:
            free = jax.grad(lambda f: self._evaluate(f[0], f[1], x, label), has_aux=True)
            return free((whole, added))

        # The vectors do not depend on the label, so that they come out once.
        (gradients, slopes), inputs = jax.vmap(of_label, out_axes=(0, None))(labels)
        return ExampleGradients(
            tuple(_rows(g) for g in gradients),
            tuple(vector.reshape(-1) for vector in inputs),
            tuple(_rows(slope) for slope in slopes),
        )

    def _evaluate(
        self, whole: list[Array], added: list[Array], x: PyTree, label: Array
    ) -> tuple[Array, list[Array]]:
        """Return the loss, with `added` to the products, and the vectors that are multiplied."""
        leaves = list(self._leaves)
        for i, leaf in zip(self.whole, whole, strict=True):
            leaves[i] = leaf
        jaxpr = self._closed.jaxpr
        values = dict(zip(jaxpr.constvars, self._closed.consts, strict=True))
        values |= zip(jaxpr.invars, [*leaves, *jax.tree.leaves(x), label], strict=True)
        inputs = []
        for part, use, addend in zip(self._parts, [*self.uses, None], [*added, None], strict=True):
            given = [values[variable] for variable in part.invars]
            values |= zip(part.outvars, jax.core.eval_jaxpr(part, (), *given), strict=True)
            if use is not None:
                product = jaxpr.eqns[use.place].outvars[0]
                values[product] = values[product] + addend
                inputs.append(values[jaxpr.eqns[use.place].invars[use.vector]])
        return values[jaxpr.outvars[0]], inputs


def _rows(leaf: Array) -> Array:
    return leaf.reshape(leaf.shape[0], -1) if leaf.size else leaf.reshape(leaf.shape[0], 0)


def _uses(closed: ClosedJaxpr, leaves: int) -> tuple[Use, ...]:
    """Return the leaves that are used once, as a matrix times a vector, whatever the label."""
    jaxpr = closed.jaxpr
    atoms = [atom for equation in jaxpr.eqns for atom in equation.invars]
    times = Counter(atom for atom in [*atoms, *jaxpr.outvars] if not isinstance(atom, Literal))
    index = {variable: i for i, variable in enumerate(jaxpr.invars[:leaves])}
    of_label = {jaxpr.invars[-1]}
    found = []
    for place, equation in enumerate(jaxpr.eqns):
        variables = [atom for atom in equation.invars if not isinstance(atom, Literal)]
        if of_label.intersection(variables):
            of_label.update(equation.outvars)
        elif equation.primitive.name == "dot_general" and len(variables) == 2:
            for matrix in (0, 1):
                leaf = index.get(variables[matrix])
                if leaf is not None and times[variables[matrix]] == 1:
                    use = _matrix_times_vector(equation, leaf, place, matrix)
                    found += [] if use is None else [use]
    return tuple(found)


def _matrix_times_vector(equation: Any, leaf: int, place: int, matrix: int) -> Use | None:
    contracted, batched = equation.params["dimension_numbers"]
    operands: Sequence[Any] = [atom.aval for atom in equation.invars]
    whole, vector = operands[matrix], operands[1 - matrix]
    if batched[0] or whole.ndim != 2 or len(contracted[matrix]) != 1:
        return None
    axis = contracted[matrix][0]
    length, others = whole.shape[axis], whole.shape[1 - axis]
    if vector.size != length or length * others <= _GAIN * (length + others):
        return None
    return Use(leaf, place, 1 - matrix, axis == 1)


def _parts(jaxpr: Jaxpr, uses: Sequence[Use]) -> list[Jaxpr]:
    """Cut a program after the equations in use: every part hands on what is read later."""
    edges = [0, *(use.place + 1 for use in uses), len(jaxpr.eqns)]
    vectors = [jaxpr.eqns[use.place].invars[use.vector] for use in uses]
    parts = []
    for start, stop in pairwise(edges):
        equations = jaxpr.eqns[start:stop]
        made = _variables(v for equation in equations for v in equation.outvars)
        later = _read(jaxpr.eqns[stop:]) | _variables([*vectors, *jaxpr.outvars])
        parts.append(
            jaxpr.replace(  # type: ignore[no-untyped-call]
                constvars=[],
                invars=[v for v in _read(equations) if v not in made],
                outvars=[v for v in made if v in later],
                eqns=equations,
            )
        )
    return parts


def _read(equations: Iterable[Any]) -> dict[Any, None]:
    return _variables(atom for equation in equations for atom in equation.invars)


def _variables(atoms: Iterable[Any]) -> dict[Any, None]:
    """Without the constants, once each, in order."""
    return dict.fromkeys(atom for atom in atoms if not isinstance(atom, Literal))
