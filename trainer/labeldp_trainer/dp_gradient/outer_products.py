"""Gradients of one example for many labels, with what a matrix multiplies taken into account.

The program of a loss (its jaxpr) shows which leaves of the parameters are used once, as a matrix
that multiplies vectors that do not depend on the label: the input of a dense layer, or the patches
of a convolution. The gradient in such a leaf is Σ_t vector_t ⊗ slope_t, the slopes being those in
the products. With one vector it is an outer product and need not be multiplied out; with several
the sum is one product of matrices for all labels, in which no slopes must be transposed.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from jaxtyping import Float, PyTree, Real, Shaped

from labeldp_trainer.dp_gradient.tree import Loss

_GAIN = 8  # smaller matrices are multiplied out: what is saved must be worth another product
_SHORT = 32  # vectors of which copies for every label cost less than other orders of the slopes


class LayerUse(NamedTuple):
    """Where a leaf multiplies vectors: equation `place`, the vectors being its operand `vector`.

    `matrix`: its shape there; `swapped`: that is [slope, vector], not [vector, slope]; `outer`:
    there is one vector, and the leaf is large enough not to be multiplied out.
    """

    leaf: int
    place: int
    vector: int
    matrix: tuple[int, int]
    swapped: bool
    outer: bool


class ExampleGradients(NamedTuple):
    """Gradients of one example for K labels: of leaves that are `whole`, in order, and of others.

    The gradients of the others, in the order of `LossProgram.outer`, are inputs ⊗ slopes.
    """

    whole: tuple[Float[Array, "K _"], ...]
    inputs: tuple[Float[Array, " _"], ...]
    slopes: tuple[Float[Array, "K _"], ...]


class LossProgram:
    """The program of `loss(params, x, label)` for one example: gradients for many labels.

    Attributes:
        outer: the leaves of params whose gradient stays an outer product.
    """

    def __init__(
        self, loss: Loss, params: PyTree, x: PyTree[Shaped[Array, "..."]], label: Real[Array, ""]
    ) -> None:
        """Trace the loss. The arguments may be tracers: of x and label only types matter."""
        leaves, structure = jax.tree.flatten(params)

        def flat(leaves: list[Array], x: PyTree, label: Array) -> Array:
            return loss(jax.tree.unflatten(structure, leaves), x, label)

        self._closed: ClosedJaxpr = jax.make_jaxpr(flat)(leaves, x, label)
        self._leaves = leaves
        self._uses = _uses(self._closed.jaxpr, len(leaves))
        self._parts = _parts(self._closed.jaxpr, self._uses)
        self.outer = tuple(use for use in self._uses if use.outer)

    def gradients(
        self, x: PyTree[Shaped[Array, "..."]], labels: Real[Array, " K"]
    ) -> ExampleGradients:
        """Return the gradients of the example with features x for all `labels`.

        Work that does not depend on the label is not repeated for every label.
        """
        used = {use.leaf for use in self._uses}
        free = {i: leaf for i, leaf in enumerate(self._leaves) if i not in used}
        products = [self._closed.jaxpr.eqns[use.place].outvars[0].aval for use in self._uses]
        added = [jnp.zeros(product.shape, product.dtype) for product in products]

        def of_label(label: Array) -> Any:
            gradient = jax.grad(lambda f: self._evaluate(f[0], f[1], x, label), has_aux=True)
            return gradient((free, added))

        # The vectors do not depend on the label, so that they come out once.
        (gradients, slopes), vectors = jax.vmap(of_label, out_axes=(0, None))(labels)
        whole = {i: _rows(gradient) for i, gradient in gradients.items()}
        inputs, outer = [], []
        for use, vector, slope in zip(self._uses, vectors, slopes, strict=True):
            if use.outer:
                inputs.append(vector.reshape(-1))
                outer.append(_rows(slope))
            else:
                whole[use.leaf] = _rows(_product(use, vector, slope))
        return ExampleGradients(tuple(whole[i] for i in sorted(whole)), tuple(inputs), tuple(outer))

    def _evaluate(
        self, free: dict[int, Array], added: list[Array], x: PyTree, label: Array
    ) -> tuple[Array, list[Array]]:
        """Return the loss, with `added` to the products, and the vectors that are multiplied."""
        leaves = [free.get(i, leaf) for i, leaf in enumerate(self._leaves)]
        jaxpr = self._closed.jaxpr
        values = dict(zip(jaxpr.constvars, self._closed.consts, strict=True))
        values |= zip(jaxpr.invars, [*leaves, *jax.tree.leaves(x), label], strict=True)
        vectors = []
        for part, use, addend in zip(self._parts, [*self._uses, None], [*added, None], strict=True):
            given = [values[variable] for variable in part.invars]
            values |= zip(part.outvars, jax.core.eval_jaxpr(part, (), *given), strict=True)
            if use is not None:
                product = jaxpr.eqns[use.place].outvars[0]
                values[product] = values[product] + addend
                vectors.append(values[jaxpr.eqns[use.place].invars[use.vector]])
        return values[jaxpr.outvars[0]], vectors


def _product(use: LayerUse, vectors: Array, slopes: Array) -> Array:
    """Return Σ_t vector_t ⊗ slope_t for each label, [K, *use.matrix].

    On a CPU XLA would write the transposed slopes first, computed anew. Where vectors are short one
    product a label needs no other order; else the vectors are put first, which moves whole slopes.
    """
    length, others = use.matrix[::-1] if use.swapped else use.matrix
    v, s = vectors.reshape(-1, length), slopes.reshape(slopes.shape[0], -1, others)
    if length <= _SHORT:
        copies = jnp.broadcast_to(v, (len(s), *v.shape))
        found = lax.dot_general(copies, s, (((1,), (1,)), ((0,), (0,))))
    else:
        found = lax.dot_general(v, s, (((0,), (1,)), ((), ()))).transpose(1, 0, 2)
    return found.transpose(0, 2, 1) if use.swapped else found


def _rows(leaf: Array) -> Array:
    return leaf.reshape(leaf.shape[0], -1) if leaf.size else leaf.reshape(leaf.shape[0], 0)


def _uses(jaxpr: Jaxpr, leaves: int) -> tuple[LayerUse, ...]:
    """Return the leaves that are used once, as a matrix times vectors, whatever the label."""
    atoms = [atom for equation in jaxpr.eqns for atom in equation.invars]
    times = Counter(atom for atom in [*atoms, *jaxpr.outvars] if not isinstance(atom, Literal))
    index = {v: i for i, v in enumerate(jaxpr.invars[:leaves]) if times[v] == 1}
    of_label = {jaxpr.invars[-1]}
    found = []
    for place, equation in enumerate(jaxpr.eqns):
        variables = _variables(equation.invars)
        name = equation.primitive.name
        if of_label.intersection(variables):
            of_label.update(equation.outvars)
        elif name == "reshape" and len(variables) == 1:
            (operand,), result = variables, equation.outvars[0]
            leaf = index.get(operand)
            if leaf is not None and times[result] == 1 and not _reorders(equation):
                index[result] = leaf
        elif name == "dot_general" and len(variables) == 2:
            for matrix, atom in enumerate(equation.invars):
                if not isinstance(atom, Literal) and atom in index:
                    use = _matrix_times_vectors(equation, index[atom], place, matrix)
                    found += [] if use is None else [use]
    # With two matrices of parameters in one product neither is a constant vector.
    counts = Counter(use.place for use in found)
    return tuple(use for use in found if counts[use.place] == 1)


def _reorders(equation: Any) -> bool:
    return equation.params.get("dimensions") is not None


def _matrix_times_vectors(equation: Any, leaf: int, place: int, matrix: int) -> LayerUse | None:
    contracted, batched = equation.params["dimension_numbers"]
    operands: Sequence[Any] = [atom.aval for atom in equation.invars]
    whole, vectors = operands[matrix], operands[1 - matrix]
    if batched[0] or whole.ndim != 2 or len(contracted[matrix]) != 1 or not vectors.size:
        return None
    axis, other = contracted[matrix][0], contracted[1 - matrix][0]
    length, others = whole.shape[axis], whole.shape[1 - axis]
    # Vectors are rows, and so are the products: no transposition is needed to tell them apart.
    if other != vectors.ndim - 1 or (matrix == 0 and vectors.size != length):
        return None
    one = vectors.size == length
    if one and length * others <= _GAIN * (length + others):
        return None
    return LayerUse(leaf, place, 1 - matrix, whole.shape, axis == 1, one)


def _parts(jaxpr: Jaxpr, uses: Sequence[LayerUse]) -> list[Jaxpr]:
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
