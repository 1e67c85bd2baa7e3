"""Lower bounds of the norms of the gradients for every label: those of their matrices.

Weights of dense layers are matrices, those of convolutions are not; in the published networks they
come last, so their gradients need no pass back through a convolution.

Nor need most of them be multiplied out. Where a loss uses a matrix W once, for the product of a
single row a with W, the gradient of W is the outer product of a with the gradient δ of that
product, and has the norm ‖a‖·‖δ‖. The loss is traced once to find such products, then evaluated
with zeros added to them, whose gradients are the δ. All other matrices are multiplied out.
"""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.extend.core import Jaxpr, Literal
from jaxtyping import Float, PyTree

from labeldp_trainer.dp_gradient.hull import HullRows
from labeldp_trainer.dp_gradient.tree import Loss, norm


def least_norms(
    loss: Loss, params: PyTree, rows: HullRows, *, microbatch: int
) -> Float[Array, "r K"]:
    """Return at most the norm of each gradient; not finite where one of its matrices is not."""
    leaves, structure = jax.tree.flatten(params)

    def flat_loss(leaves: list[Array], x: PyTree, label: Array) -> Array:
        return loss(jax.tree.unflatten(structure, leaves), x, label)

    def of_example(x: PyTree) -> Array:
        traced = jax.make_jaxpr(flat_loss)(leaves, x, rows.labels[0])
        program = _Program(traced.jaxpr, traced.consts, len(leaves))
        outer = program.products()
        whole = [i for i, leaf in enumerate(leaves) if leaf.ndim == 2 and i not in outer.values()]

        def moved(some: list[Array], zeros: dict[int, Array], label: Array) -> Any:
            merged = list(leaves)
            for i, leaf in zip(whole, some, strict=True):
                merged[i] = leaf
            value, inputs = program.run([*merged, *jax.tree.leaves(x), label], zeros)
            return value, (value, {i: norm(a) for i, a in inputs.items()})

        def bound(label: Array) -> Array:
            zeros = {i: jnp.zeros(*program.shape(i)) for i in outer}
            some = [leaves[i] for i in whole]
            found, (value, lengths) = jax.grad(moved, (0, 1), has_aux=True)(some, zeros, label)
            parts = [*found[0], *(lengths[i] * found[1][i] for i in outer)]
            return norm(parts) if parts else jnp.where(jnp.isfinite(value), 0.0, value)

        return jax.vmap(bound)(rows.labels)

    norms: Array = lax.map(of_example, rows.x, batch_size=microbatch)
    return norms


@dataclass(frozen=True)
class _Program:
    """A loss as a list of equations; its first inputs are the `weights` leaves of the params."""

    jaxpr: Jaxpr
    constants: list[Any]
    weights: int

    def products(self) -> dict[int, int]:
        """The equations that multiply a single row with a matrix which nothing else uses, and
        which leaf it is."""
        jaxpr: Any = self.jaxpr
        used = [v for eqn in jaxpr.eqns for v in eqn.invars] + list(jaxpr.outvars)
        uses = Counter(v for v in used if not isinstance(v, Literal))
        place = {v: i for i, v in enumerate(jaxpr.invars[: self.weights])}
        found = {}
        for number, eqn in enumerate(jaxpr.eqns):
            if eqn.primitive is not lax.dot_general_p:
                continue
            row, matrix = eqn.invars
            if isinstance(matrix, Literal) or matrix not in place or uses[matrix] != 1:
                continue
            last = row.aval.ndim - 1
            plain = eqn.params["dimension_numbers"] == (((last,), (0,)), ((), ()))
            if plain and matrix.aval.ndim == 2 and math.prod(row.aval.shape[:-1]) == 1:
                found[number] = place[matrix]
        return found

    def shape(self, number: int) -> tuple[tuple[int, ...], Any]:
        """The shape and type of an equation's result."""
        result: Any = self.jaxpr.eqns[number].outvars[0].aval
        return result.shape, result.dtype

    def run(self, inputs: list[Any], added: dict[int, Array]) -> tuple[Array, dict[int, Array]]:
        """The loss with `added` on top of some products, and the rows in these products."""
        jaxpr: Any = self.jaxpr
        values = dict(zip(jaxpr.constvars, self.constants, strict=True))
        values |= dict(zip(jaxpr.invars, inputs, strict=True))

        def read(v: Any) -> Any:
            return v.val if isinstance(v, Literal) else values[v]

        rows = {}
        for number, eqn in enumerate(jaxpr.eqns):
            operands = [read(v) for v in eqn.invars]
            options = eqn.primitive.get_bind_params(eqn.params)
            functions, options = options if isinstance(options, tuple) else ((), options)
            result = eqn.primitive.bind(*functions, *operands, **options)
            results = result if eqn.primitive.multiple_results else [result]
            if number in added:
                rows[number] = operands[0]
                results = [results[0] + added[number]]
            values |= dict(zip(eqn.outvars, results, strict=True))
        return read(jaxpr.outvars[0]), rows
