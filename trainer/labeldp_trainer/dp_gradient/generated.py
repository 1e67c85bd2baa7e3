"""Projecting onto the hull of many vertices, few of which are ever computed.

Column generation with partial pricing: a quadratic program over a working set of vertices, then a
JVP over a part of the rows. The vertices with the least slopes in that part replace unused ones,
and the next part is looked at from the new solution. Where a part has no slope that is too small,
the next one is looked at from the same solution, until all were. The projection of a noisy gradient
has some hundred vertices, however many the hull has.

One JVP gives ⟨∇ℓ, z − g̃⟩ of every vertex before clipping. The clipping factor of a vertex is only
bounded: it is at most C over the norm of a part of its gradient that is cheap to compute. So a
negative slope, times that bound, is at most the vertex's slope. The certificate of `projection.py`
needs no more than a lower bound of min r: it holds for all vertices, computed or not.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, PyTree

from labeldp_trainer.dp_gradient.hull import (
    HullRows,
    MatrixFree,
    gradient_vectors,
    matrix_free,
)
from labeldp_trainer.dp_gradient.least_norms import least_norms
from labeldp_trainer.dp_gradient.projection import Projection, solve_simplex_qp
from labeldp_trainer.dp_gradient.tree import Loss, flat, tiny, unflat

WORKING_SET = 1024  # vertices in memory; a hull with no more is materialised
_PARTS = 8  # of the rows
_ROWS = 1  # at a time on a CPU, so that intermediate results fit its cache (4 to 32 took longer)
_ROUNDS = 192  # at most: 15 to 30 are usual
_ROUNDING = 1e-5  # of a bound, in float32
_STEPS = 32 * WORKING_SET  # of a quadratic program, as in `project_gram`


class _Vertices(NamedTuple):
    """Those of the working set, in two halves.

    Most solutions have 100 to 300, and need the first half only. The second has copies of the first
    vertex, without weight, until it is used. Until then, nothing is computed with it.
    """

    first: Array  # [h, d]
    second: Array  # [w - h, d]
    used: Array  # whether the second half is

    def put(self, places: Array, vertices: Array) -> "_Vertices":
        """With vertices in some places."""
        h, w = len(self.first), len(self.first) + len(self.second)
        later = jnp.where(places < h, w, places - h)  # a place beyond the end is left out
        return _Vertices(
            self.first.at[places].set(vertices, mode="drop"),
            self.second.at[later].set(vertices, mode="drop"),
            self.used | jnp.any(places >= h),
        )

    def combine(self, a: Array) -> Array:
        """Σ a_j·v_j."""
        h, d = self.first.shape
        zero = jnp.zeros(d, a.dtype)
        later = lax.cond(self.used, lambda v: a[h:] @ v, lambda v: zero, self.second)
        return a[:h] @ self.first + later

    def products(self, others: Array) -> Array:
        """⟨v_j, o⟩ for each of the others o: [others, w], or [w] for a single one."""
        first = others @ self.first.T
        copies = jnp.broadcast_to(first[..., :1], (*first.shape[:-1], len(self.second)))
        later = lax.cond(self.used, lambda v: others @ v.T, lambda v: copies, self.second)
        return jnp.concatenate([first, later], axis=-1)


class _Look(NamedTuple):
    """What was seen from one solution."""

    part: Array  # the next one to look at
    seen: Array  # parts
    bounds: Array  # [p]: at most the slopes of the last part; infinite for the working set
    least: Array  # at most all slopes that were seen


class _Round(NamedTuple):
    """The working set, and the solution on it."""

    chosen: Array  # [w] of all vertices
    vertices: _Vertices
    gram: Array  # [w, w]
    linear: Array  # [w]
    a: Array  # [w] in the simplex
    tight: Array  # [m]: true factors over their bounds where they are known, otherwise 1
    look: _Look
    gap: Array
    square: Array
    rounds: Array
    steps: Array

    def distance(self) -> Array:
        """A bound of ‖z − projection‖/‖z‖, if all parts were seen."""
        square = jnp.maximum(self.square, tiny(self.square.dtype))
        return jnp.sqrt(jnp.maximum(self.gap, 0.0) / square)


@dataclass(frozen=True)
class _Generator:
    """What makes vertices of `rows`, and improves the working set."""

    free: MatrixFree  # with bounds of the clipping factors as weights
    rows: HullRows
    aim: Array
    tolerance: float
    most: int

    @property
    def size(self) -> int:
        """Rows of a part."""
        return -(-len(self.free.weights) // _PARTS)

    @property
    def parts(self) -> int:
        """How many there are."""
        return -(-len(self.free.weights) // self.size)

    def vertices_of(self, chosen: Array) -> tuple[Array, Array]:
        """The vertices, and their factors over the bounds of these."""
        free, labels = self.free, len(self.free.labels)
        i, bounds = chosen // labels, free.weights.reshape(-1)[chosen]
        x = jax.tree.map(lambda leaf: leaf[i], free.x)
        found = gradient_vectors(free.loss, free.params, x, free.labels[chosen % labels])
        length = jnp.linalg.norm(found, axis=1)
        factors = bounds
        if self.rows.scales is None and self.rows.clip_norm is not None:
            factors = jnp.where(length > self.rows.clip_norm, self.rows.clip_norm / length, 1.0)
        # What overflows in spite of a finite bound is left out; that puts zero into the hull.
        usable = jnp.isfinite(length) & (bounds != 0)
        kept = jnp.where(usable[:, None], found * factors[:, None], jnp.zeros_like(found))
        return kept, jnp.where(usable, factors / bounds, jnp.ones_like(bounds))

    def vertices_in(self, part: Array) -> tuple[Array, Array]:
        """The rows of a part, and its vertices. The last part has copies of the first rows."""
        labels = len(self.free.labels)
        i = (part * self.size + jnp.arange(self.size, dtype=jnp.int32)) % len(self.free.weights)
        return i, (i[:, None] * labels + jnp.arange(labels, dtype=jnp.int32)[None]).reshape(-1)

    def slopes(self, part: Array, along: PyTree, tight: Array, chosen: Array) -> Array:
        """Bounds of the slopes of a part's vertices."""
        i, vertices = self.vertices_in(part)
        free = self.free
        x = jax.tree.map(lambda leaf: leaf[i], free.x)
        bounds = tight[vertices] * replace(free, x=x, weights=free.weights[i]).correlate(along)
        if self.rows.scales is None and self.rows.clip_norm is not None:
            bounds = jnp.minimum(bounds, jnp.zeros_like(bounds))  # no factor is negative
        inside = jnp.zeros(tight.shape, bool).at[chosen].set(True)
        return jnp.where(inside[vertices], jnp.inf, bounds)

    def solved(self, state: _Round) -> _Round:
        """The state with its program solved, looked around until a part can improve it.

        While the distance is large, the program need not be solved well.
        """
        free = self.free
        a, steps = solve_simplex_qp(
            state.gram,
            state.linear,
            start=state.a,
            # The rest is for vertices outside the working set.
            tolerance=jnp.maximum(0.7 * self.tolerance, state.distance() / 4),
            max_iterations=_STEPS,
        )
        z = state.vertices.combine(a)
        r = state.vertices.products(z - self.aim)
        along, level, square = unflat(z - self.aim, free.params), jnp.dot(a, r), jnp.dot(z, z)

        def goes_on(look: _Look) -> Array:
            enough = level - look.least <= self.tolerance**2 * square
            more = (look.seen < self.parts) & (enough | (state.rounds >= self.most))
            return more | (look.seen == 0)

        def looked(look: _Look) -> _Look:
            bounds = self.slopes(look.part, along, state.tight, state.chosen)
            outside = jnp.min(bounds)
            outside = outside * jnp.where(outside < 0, 1 + _ROUNDING, 1 - _ROUNDING)
            return _Look(
                (look.part + 1) % self.parts,
                look.seen + 1,
                bounds,
                jnp.minimum(look.least, outside),
            )

        none = jnp.zeros_like(state.look.seen)
        look = state.look._replace(seen=none, least=jnp.min(r))
        look = lax.while_loop(goes_on, looked, look)
        return state._replace(
            a=a,
            look=look,
            gap=level - look.least,
            square=square,
            rounds=state.rounds + 1,
            steps=state.steps + steps,
        )

    def improved(self, state: _Round) -> _Round:
        """The least slopes of the last part replace the largest of those without weight."""
        r = state.gram @ state.a - state.linear
        _, candidates = self.vertices_in((state.look.part - 1) % self.parts)
        new = min(max(len(r) // 16, 1), len(candidates))
        # The second half is used once the first one is full of weights. Its copies need place 0.
        places = jnp.arange(len(r))
        last = (places >= len(state.vertices.first)) & ~state.vertices.used
        order = jnp.where(last, -float(np.finfo(r.dtype).max), r)
        kept = (state.a > 0) | (places == 0)
        _, leaves = lax.top_k(jnp.where(kept, -jnp.inf, order), new)
        _, least = lax.top_k(-state.look.bounds, new)
        enters = jnp.where(kept[leaves], state.chosen[leaves], candidates[least])
        found, tight = self.vertices_of(enters)
        vertices = state.vertices.put(leaves, found)
        products = vertices.products(found)
        gram = state.gram.at[leaves].set(products)
        return self.solved(
            state._replace(
                chosen=state.chosen.at[leaves].set(enters),
                vertices=vertices,
                gram=gram.at[:, leaves].set(products.T),
                linear=state.linear.at[leaves].set(found @ self.aim),
                tight=state.tight.at[enters].set(tight),
            )
        )

    def centre(self, some: int) -> Array:
        """An estimate of the mean of all vertices, corrected on about `some` of them."""
        free, labels = self.free, len(self.free.labels)
        first = jnp.arange(some // labels * labels or some, dtype=jnp.int32)
        vertices, tight = self.vertices_of(first)
        correction = _equal(free.uniform[: first.size]) * (1 - 1 / tight)
        return flat(free.combine(free.uniform)) + correction @ vertices

    def certified(self, state: _Round) -> Array:
        """Whether the gap is small enough."""
        return state.gap <= self.tolerance**2 * state.square

    def begun(self, working_set: int) -> _Round:
        """The state with a few vertices, all over the rows and labels; copies of one fill up the
        working set, which changes no hull."""
        labels, few = len(self.free.labels), max(working_set // 16, 1)
        i = jnp.arange(few, dtype=jnp.int32)
        first = i * len(self.free.weights) // few * labels + i % labels
        begin, tight = self.vertices_of(first)
        slots = jnp.arange(working_set)
        slots = jnp.where(slots < few, slots, jnp.zeros_like(slots))
        gram, linear = begin @ begin.T, begin @ self.aim
        best = jnp.argmin(0.5 * jnp.diagonal(gram) - linear)
        one, none = jnp.ones((), begin.dtype), jnp.zeros((), jnp.int32)
        look = _Look(none, none, jnp.zeros(self.size * len(self.free.labels), begin.dtype), one)
        return _Round(
            chosen=first[slots],
            vertices=_Vertices(
                begin[slots[: working_set // 2]],
                begin[slots[working_set // 2 :]],
                jnp.zeros((), bool),
            ),
            gram=gram[slots][:, slots],
            linear=linear[slots],
            a=(jnp.arange(working_set) == best).astype(begin.dtype),
            tight=jnp.ones_like(self.free.uniform).at[first].set(tight),
            look=look,
            gap=one,
            square=one,
            rounds=none,
            steps=none,
        )


def project_generated(
    loss: Loss,
    params: PyTree,
    rows: HullRows,
    target: PyTree,
    *,
    microbatch: int,
    smoothing: float = 1.0,
    tolerance: float = 1e-2,
    max_iterations: int | None = None,
    working_set: int = WORKING_SET,
) -> Projection:
    """Project `target` onto the hull of the vertices of `rows`, more than `working_set` of them.

    As `project_gram`, with two differences. `max_iterations` counts rounds. The centre that
    `smoothing` mixes in is an estimate of the mean of all vertices, unbiased for rows in random
    order: the mean with bounds in the place of clipping factors, plus the mean of what the bounds
    are wrong by on the first rows, as many as fill half the working set.
    """
    most = _ROUNDS if max_iterations is None else max_iterations
    if jax.default_backend() == "cpu":
        microbatch = min(microbatch, _ROWS)
    norms = least_norms(loss, params, rows, microbatch=microbatch)
    free = matrix_free(loss, params, rows, microbatch=microbatch, norms=norms)
    generator = _Generator(free, rows, flat(target), tolerance, most)
    last = lax.while_loop(
        # Not "~certified": in this form, a NaN ends the loop too.
        lambda state: (state.gap > tolerance**2 * state.square) & (state.rounds <= most),
        generator.improved,
        generator.solved(generator.begun(working_set)),
    )
    z = last.vertices.combine(last.a)
    a = jnp.zeros_like(free.uniform).at[last.chosen].add(last.a)
    if smoothing != 1.0:
        a = smoothing * a + (1 - smoothing) * free.uniform
        z = smoothing * z + (1 - smoothing) * generator.centre(working_set // 2)
    return Projection(unflat(z, params), a, last.steps, last.distance(), generator.certified(last))


def _equal(uniform: Float[Array, " c"]) -> Float[Array, " c"]:
    """Equal weights of the vertices that are used, adding up to 1; zero if none is."""
    used = (uniform > 0).astype(uniform.dtype)
    return used / jnp.maximum(jnp.sum(used), 1)
