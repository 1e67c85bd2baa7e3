"""Shapes are stated in annotations, everywhere, and the stated ones are right."""

import ast
import inspect
from functools import wraps
from pathlib import Path
from types import UnionType
from typing import Union, get_args, get_origin, get_type_hints

import jax
import jax.numpy as jnp
import labeldp_trainer
import numpy as np
import pytest
from jaxtyping import AbstractArray, PyTree, jaxtyped
from labeldp_trainer.data import FeatureShape
from labeldp_trainer.discrete_gaussian import sample
from labeldp_trainer.dp_gradient import (
    generated,
    hull,
    integer_sums,
    privacy_loss,
    problem,
    projection,
    step,
)
from labeldp_trainer.interactions import softmax as simplex
from labeldp_trainer.methods import method as users
from labeldp_trainer.models import layers, networks
from labeldp_trainer.models.linear import Linear
from labeldp_trainer.randomize import NoisyOneHot, RRWithRowPriors, dealt, exact

pytestmark = pytest.mark.slow

TRAINER = Path(labeldp_trainer.__file__).parent
FILES = [
    *sorted((TRAINER / "dp_gradient").glob("*.py")),
    *sorted((TRAINER / "models").glob("*.py")),
    *(TRAINER / name for name in ("losses.py", "evaluation.py", "randomize.py")),
    TRAINER / "methods" / "corrections.py",
]
BARE = {"Array", "NDArray", "ndarray"}
PLAIN = (int, float, type(None))


def bare(node, names):
    """Whether an annotation names an array without a shape."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        first, *rest = node.slice.elts
        if bare(first, BARE) and len(rest) == 1 and isinstance(rest[0], ast.Constant):
            return False
    if isinstance(node, ast.Name | ast.Attribute):
        return getattr(node, "id", getattr(node, "attr", None)) in names
    return any(bare(child, names) for child in ast.iter_child_nodes(node))


def public(body):
    """Public functions, methods and fields of classes, and type aliases."""
    for node in body:
        name = getattr(node, "name", None) or getattr(getattr(node, "target", None), "id", "")
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(node, ast.ClassDef):
            yield from public(node.body)
        elif isinstance(node, ast.FunctionDef):
            spec = node.args
            every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
            yield from ((f"{name}({a.arg})", a.annotation) for a in every if a.annotation)
            yield name, node.returns
        elif isinstance(node, ast.AnnAssign):
            yield name, node.annotation


def without_shapes(source):
    """Names of what takes, holds or returns an array of no stated shape."""
    body = ast.parse(source).body
    aliases = {
        node.targets[0].id
        for node in body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Subscript)
        and bare(node.value, BARE)
    }
    return [name for name, node in public(body) if node and bare(node, BARE | aliases)]


@pytest.mark.parametrize(
    "source",
    [
        "def f(x: Array): ...",
        "def f() -> dict[str, jax.Array] | None: ...",
        "class C:\n    x: np.ndarray",
        "class C:\n    def f(self, *, x: Callable[[Float[Array, '']], Array]): ...",
        "Floats = NDArray[np.float64]\ndef f(x: Floats): ...",
    ],
)
def test_the_test_finds_them(source):
    assert len(without_shapes(source)) == 1
    assert not without_shapes("def f(x: Float[Array, 'm m'], y: int) -> Bool[np.ndarray, '']: ...")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_public_arrays_have_shapes(path):
    assert without_shapes(path.read_text(encoding="utf-8")) == []


def fits(value, hint):
    """Whether a value has the shapes of a hint; sizes of axes are bound as they are met."""
    kind, inner = get_origin(hint), get_args(hint)
    if kind in (Union, UnionType):
        return any(isinstance(value, one) if one in PLAIN else fits(value, one) for one in inner)
    if kind in (list, dict):
        return all(fits(v, inner[-1]) for v in (value.values() if kind is dict else value))
    if kind is tuple:
        inner = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
        return all(fits(v, one) for v, one in zip(value, inner, strict=True))
    if hasattr(hint, "_fields"):
        fields = get_type_hints(hint).items()
        return isinstance(value, hint) and all(fits(getattr(value, f), one) for f, one in fields)
    shaped = isinstance(hint, type(AbstractArray) | type(PyTree))
    return not shaped or isinstance(value, hint)


def checker(function):
    """A type checker, as far as shapes go."""
    signature = inspect.signature(function)

    @wraps(function)
    def checked(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            hint = signature.parameters[name].annotation
            if not fits(value, hint):
                raise TypeError(f"{function.__qualname__}: {name} is no {hint}")
        result = function(*args, **kwargs)
        if not fits(result, signature.return_annotation):
            raise TypeError(f"{function.__qualname__} returns no {signature.return_annotation}")
        return result

    return checked


def with_checks(function):
    """The function, which now fails if an annotation of its arrays is wrong."""
    of_arrays = getattr(function, "registry", {object: function})[object]  # not that of tensors
    return jaxtyped(of_arrays, typechecker=checker)


def squared(params, x, y):
    """A loss of one example."""
    return 0.5 * jnp.square(jnp.dot(params["w"], x) - y)


B, D = 5, 3
W = {"w": jnp.ones(D)}
X, Y, MASK = jnp.ones((B, D)), jnp.arange(float(B)), jnp.arange(B) < 4
ENDS = jnp.array([0.0, 1.0])
ROWS = hull.HullRows(X, ENDS, MASK, 1.0)
KEY = jax.random.key(0)
IMAGES = FeatureShape(0, (), (9, 8, 2))


def simplex_calls(point):
    rows = np.ones((3, 2), np.float32)
    yield projection.project_onto_simplex, (point,), {}
    yield simplex.nearest_probabilities, (rows,), {}
    yield simplex.probabilities_moved, (rows, rows), {}


def calls():
    """(function, arguments, options) of each kind of shape that is stated."""
    whole, stream = (
        integer_sums.NoiseLattice(1.0, 2.0),
        sample.Words(np.arange(8, dtype=np.uint32), 0, 0),
    )
    clipping = {"lattice": whole, "microbatch": 2}
    free_ball = problem.LabelFree(problem.example_ball(squared, ENDS), 1.0, 1e-3)
    made = hull.materialise(squared, W, ROWS)
    free = hull.matrix_free(squared, W, ROWS, microbatch=2)
    gram, linear = made.gram(), made.correlate(W)
    order = np.broadcast_to(np.arange(4), (6, 4))
    labels, given = np.zeros(6, np.int32), np.arange(6, dtype=np.uint64)
    answering, noisy = RRWithRowPriors(4, exact(1.0)), NoisyOneHot(exact(1.0))
    numbers = np.arange(6)
    yield integer_sums.clipped_sum, (jax.grad(squared), W, X, Y, MASK), clipping
    yield integer_sums.in_microbatches, ((X, MASK), B, 2), {}
    yield problem.LabelFree.vector, (free_ball, squared, W, X[0], Y[0]), {}
    yield problem.LabelFree.vertex_scale, (free_ball, W, X[0]), {}
    yield problem.public_centre, (free_ball, W, X), {"microbatch": 2}
    yield integer_sums.user_mean, (X, MASK), {}
    yield hull.Materialised.gram, (made,), {}
    yield hull.Materialised.combine, (made, made.uniform), {}
    yield hull.MatrixFree.combine, (free, free.uniform), {}
    yield hull.MatrixFree.correlate, (free, W), {}
    yield projection.solve_simplex_qp, (gram, linear), {"tolerance": 0.1, "max_iterations": 9}
    yield projection.project_gram, (made, W), {}
    yield projection.project_matrix_free, (free, W), {}
    yield projection.project_onto_span, (free, W), {}
    yield from simplex_calls(linear)
    yield privacy_loss.gaussian_log_delta, (np.ones(3), 1.0), {}
    yield sample.secret_key, (), {}
    yield sample.Words.draw, (stream, 3), {}
    yield sample.Words.draw32, (stream, 3), {}
    yield sample.discrete_gaussian, (stream.draw, 9, 1000), {}
    yield integer_sums.NoiseLattice.integers, (whole, W), {}
    yield integer_sums.no_longer, (jnp.ones(D, jnp.int32), 3), {}
    yield integer_sums.add_rows, (integer_sums.zeros(W), jnp.ones((B, D), jnp.int32), MASK), {}
    yield step.poisson_batch, (stream,), {"units": 9, "batch": 3, "max_batch": 5}
    yield step.partition, (stream,), {"units": 9, "batch": 4}
    yield step.independent_batch, (stream,), {"units": 9, "size": 4}
    yield users.rows_of_users, (np.array([0, 1, 0]), 2, 0), {}
    yield integer_sums.norm, (W,), {}
    yield integer_sums.clip, (W, jnp.float32(1.0)), {}
    for model in (
        networks.mnist_cnn(IMAGES, 4),
        networks.cifar_cnn(IMAGES, 4),
        Linear(IMAGES, 4),
    ):
        params = model.init(KEY)
        yield type(model).apply, (model, params, jnp.ones((2, 9, 8, 2))), {}
    for stride in (1, 2):
        layer = layers.conv_init(KEY, 3, 2, 4)
        yield layers.conv, (jnp.ones((2, 9, 8, 2)), layer, stride), {}
    yield layers.pool_max, (jnp.ones((2, 9, 8, 2)),), {}
    yield RRWithRowPriors.choose_k, (answering, np.full((6, 4), 0.25)), {}
    yield RRWithRowPriors.answers, (answering, order, np.full(6, 4), labels, given), {}
    yield RRWithRowPriors.randomize, (answering, labels, np.full((6, 4), 0.25)), {}
    yield NoisyOneHot.randomize, (noisy, labels, 4), {}
    yield dealt, (numbers, numbers + 6, numbers + 1), {}


def test_annotations_are_true():
    for function, arguments, options in calls():
        with_checks(function)(*arguments, **options)
    projected = with_checks(generated.project_generated)
    projected(squared, W, ROWS, W, microbatch=2, working_set=4)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (projection.project_onto_simplex, (jnp.ones((2, 2)),)),
        (layers.group_norm, (jnp.ones((2, 4)), layers.norm_init(4), 2)),
        (dealt, (np.arange(3), np.arange(4), np.arange(3))),
    ],
)
def test_wrong_shapes_are_found(function, arguments):
    with pytest.raises(TypeError):
        with_checks(function)(*arguments)
