import clarabel
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from labeldp_trainer.dp_gradient.generated import project_generated
from labeldp_trainer.dp_gradient.projection import (
    HullRows,
    Materialised,
    materialise,
    matrix_free,
    project_gram,
    project_onto_span,
    solve_simplex_qp,
)
from scipy import sparse

from trainer.tests.models import (
    cross_entropy,
    examples,
    flat,
    parameters,
    slow_clip,
    slow_gradient,
)

ROWS, CLASSES = 6, 3


def build(kind, params, rows, loss=cross_entropy):
    """Call inside jit, where building is one compilation instead of a hundred."""
    if kind == "gram":
        return materialise(loss, params, rows)
    return matrix_free(loss, params, rows, microbatch=4)


def project_in_hull(kind, params, rows, target, **options):
    """By each way to project. 12 of 18 vertices are a working set, 6 of them at first."""
    if kind == "generated":
        choices = {"microbatch": 4, "working_set": 12, **options}
        return project_generated(cross_entropy, params, rows, target, **choices)
    return project_gram(build(kind, params, rows), target, **options)


HULLS = ["gram", "generated"]
SLOW = pytest.mark.slow


def reference(vertices, target):
    """min ‖G·a − target‖² over the simplex by Clarabel; vertices are the rows of Gᵀ."""
    m = len(vertices)
    scale = 1.0 / np.abs(vertices @ target).max()
    settings_ = clarabel.DefaultSettings()
    settings_.verbose = False
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        setattr(settings_, name, 1e-13)
    solver = clarabel.DefaultSolver(
        sparse.triu(sparse.csc_matrix(scale * vertices @ vertices.T), format="csc"),
        -scale * (vertices @ target),
        sparse.csc_matrix(np.vstack([np.ones((1, m)), -np.eye(m)])),
        np.concatenate([[1.0], np.zeros(m)]),
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(m)],
        settings_,
    )
    solution = solver.solve()
    assert "Solved" in str(solution.status)
    a = np.maximum(np.array(solution.x), 0)
    return vertices.T @ (a / a.sum())


def setting(dtype=np.float64, clip_norm=0.6, mask=None, seed=0):
    params = parameters(dtype=dtype, seed=seed)
    x = examples(ROWS, dtype=dtype, seed=seed + 1)
    labels = jnp.arange(CLASSES, dtype=jnp.int32)
    mask = jnp.ones(ROWS, bool) if mask is None else jnp.asarray(mask)
    rows = HullRows(x, labels, mask, clip_norm)
    slow = np.stack(
        [slow_gradient(cross_entropy, params, xi, k) for xi in x for k in range(CLASSES)]
    )
    return params, rows, slow


def noisy_target(params, slow, noise, seed=5):
    rng = np.random.default_rng(seed)
    vector = slow[::4].mean(axis=0) + noise * rng.normal(size=slow.shape[1])
    leaves, structure = jax.tree.flatten(params)
    parts = np.split(vector, np.cumsum([leaf.size for leaf in leaves])[:-1])
    shaped = [jnp.asarray(p.reshape(q.shape), q.dtype) for p, q in zip(parts, leaves, strict=True)]
    return vector, jax.tree.unflatten(structure, shaped)


@pytest.mark.parametrize("scaling", ["clipped", pytest.param("raw", marks=SLOW)])
def test_products_against_materialised_vertices(x64, scaling):
    """JVP and VJP (Appendix C), the Jacobian and the Gram matrix against a loop of gradients."""
    bound = 0.6 if scaling == "clipped" else None
    params, rows, slow = setting(clip_norm=bound)
    if scaling == "clipped":
        expected = np.stack([slow_clip(g, 0.6) for g in slow])
        assert np.linalg.norm(slow, axis=1).min() < 0.6 < np.linalg.norm(slow, axis=1).max()
    else:
        expected = slow
    vector, tree = noisy_target(params, slow, 1.0)
    a = np.random.default_rng(2).normal(size=len(slow))
    gram = jax.jit(lambda: materialise(cross_entropy, params, rows).gram())()
    np.testing.assert_allclose(gram, expected @ expected.T, rtol=1e-10, atol=1e-12)
    for kind in ("gram", "matrix_free"):

        def products(tree, a, kind=kind):
            vertices = build(kind, params, rows)
            return vertices.correlate(tree), vertices.combine(a)

        correlated, combined = jax.jit(products)(tree, jnp.asarray(a))
        np.testing.assert_allclose(correlated, expected @ vector, rtol=1e-9)
        np.testing.assert_allclose(flat(combined), expected.T @ a, rtol=1e-9)


@pytest.mark.parametrize(
    ("clip_norm", "noise"),
    [(0.6, 3.0), *(pytest.param(*c, marks=SLOW) for c in ((0.6, 0.0), (None, 0.0), (None, 3.0)))],
)
@pytest.mark.parametrize("how", HULLS)
def test_projection_against_a_qp_solver(x64, how, clip_norm, noise):
    params, rows, slow = setting(clip_norm=clip_norm)
    vertices = slow if clip_norm is None else np.stack([slow_clip(g, clip_norm) for g in slow])
    vector, tree = noisy_target(params, slow, noise)
    expected = reference(vertices, vector)
    choices = {"tolerance": 3e-6, "max_iterations": 30_000}
    found = jax.jit(lambda t: project_in_hull(how, params, rows, t, **choices))(tree)
    assert bool(found.certified)
    assert float(found.distance) <= 3e-6
    error = np.linalg.norm(flat(found.value) - expected) / np.linalg.norm(expected)
    assert error <= 1e-5
    a = np.asarray(found.coefficients)
    assert a.min() >= 0
    assert a.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("how", HULLS)
def test_the_certificate_is_true_wherever_it_stops(x64, how):
    params, rows, slow = setting()
    vertices = np.stack([slow_clip(g, 0.6) for g in slow])
    vector, tree = noisy_target(params, slow, 1.0)
    expected = reference(vertices, vector)
    choices = {"tolerance": 1e-9}
    run = jax.jit(
        lambda most: project_in_hull(how, params, rows, tree, max_iterations=most, **choices)
    )
    for most in (0, 1, 2, 4, 8):
        found = run(most)
        value = flat(found.value)
        error = np.linalg.norm(value - expected) / np.linalg.norm(value)
        assert error <= float(found.distance) * (1 + 1e-9) + 1e-12
        if how != "generated":  # a round can end at the solution
            assert not bool(found.certified)


def hull_of(vertices):
    """Vertices as gradients of one leaf."""
    m, d = vertices.shape
    like = jax.ShapeDtypeStruct((d,), vertices.dtype)
    return Materialised(jnp.asarray(vertices), like, jnp.full(m, 1 / m, vertices.dtype))


@pytest.mark.parametrize("size", [1, 2, 5])
def test_degenerate_hulls(x64, size):
    """One vertex, equal vertices, all zero: the answer is in the hull and nothing is NaN."""
    run = jax.jit(lambda h, b: solve_simplex_qp(h, b, tolerance=1e-6, max_iterations=100)[0])
    for vertex in (np.zeros(3), np.ones(3)):
        vertices = np.tile(vertex, (size, 1))
        target = np.array([1.0, 2.0, -4.0])
        a = np.asarray(run(jnp.asarray(vertices @ vertices.T), jnp.asarray(vertices @ target)))
        assert a.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(vertices.T @ a, vertex, atol=1e-12)
        found = jax.jit(lambda t, v=vertices: project_gram(hull_of(v), t))(jnp.asarray(target))
        assert bool(found.certified)


@pytest.mark.parametrize("kind", ["gram", "generated"])
def test_smoothing_mixes_with_the_uniform_coefficients(x64, kind):
    params, rows, slow = setting(mask=[True] * 4 + [False] * 2)
    _, tree = noisy_target(params, slow, 1.0)
    plain, smooth = jax.jit(
        lambda t: tuple(
            project_in_hull(kind, params, rows, t, smoothing=weight) for weight in (1.0, 0.75)
        )
    )(tree)
    centre = np.stack([slow_clip(g, 0.6) for g in slow[:12]])
    if kind == "generated":  # bounds of the factors, corrected on the first two rows
        matrices = [leaf.ndim == 2 for leaf in jax.tree.leaves(params) for _ in range(leaf.size)]
        lengths = np.linalg.norm(slow[:12, np.array(matrices)], axis=1)
        bounded = slow[:12] * np.minimum(1, 0.6 / lengths)[:, None]
        assert np.abs(bounded - centre).max() > 1e-3
        centre = bounded.mean(axis=0) + (centre - bounded)[:6].mean(axis=0)
    else:
        centre = centre.mean(axis=0)
    assert np.asarray(smooth.coefficients).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(
        flat(smooth.value), 0.75 * flat(plain.value) + 0.25 * centre, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("kind", HULLS)
def test_rows_left_out_or_not_finite_do_not_take_part(x64, kind):
    params, rows, slow = setting()
    x = rows.x.at[4].set(jnp.nan).at[5].set(1e300)
    mask = jnp.asarray([False, True, True, True, True, False])
    rows = HullRows(x, rows.labels, mask, 0.6)
    vector, tree = noisy_target(params, slow, 0.5)
    vertices = np.stack([slow_clip(g, 0.6) for g in slow[3:12]])
    choices = {"tolerance": 3e-6, "max_iterations": 30_000}
    found = jax.jit(lambda t: project_in_hull(kind, params, rows, t, **choices))(tree)
    expected = reference(vertices, vector)
    np.testing.assert_allclose(flat(found.value), expected, atol=1e-5 * np.linalg.norm(expected))


@pytest.mark.parametrize("kind", HULLS)
def test_no_usable_row_gives_zero(kind):
    params, rows, slow = setting(dtype=np.float32, mask=[False] * ROWS)
    _, tree = noisy_target(params, slow, 0.5)

    def both(target):
        value = project_in_hull(kind, params, rows, target).value
        vertices = build("gram" if kind == "generated" else kind, params, rows)
        return value, project_onto_span(vertices, target).value

    values = jax.jit(both)(tree)
    for value in values:
        assert not flat(value).any()


@pytest.mark.parametrize("kind", ["gram", "matrix_free"])
def test_span_against_least_squares(x64, kind):
    """A span of 18 vertices in 39 dimensions, of lower rank; the projection is unique anyway."""
    params, rows, slow = setting()
    vector, tree = noisy_target(params, slow, 1.0)
    found = jax.jit(
        lambda t: project_onto_span(
            build(kind, params, rows), t, tolerance=1e-10, max_iterations=500
        )
    )(tree)
    expected = slow.T @ np.linalg.lstsq(slow.T, vector, rcond=None)[0]
    assert bool(found.certified)
    np.testing.assert_allclose(flat(found.value), expected, atol=1e-6 * np.linalg.norm(expected))
    assert np.linalg.norm(expected) < 0.95 * np.linalg.norm(vector)
