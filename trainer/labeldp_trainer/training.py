"""A training run from end to end: config → data → method → model → run folder."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from labeldp_compile.toolkit import weak_promise
from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.representation import SMALLEST, Announce, Steps, nowhere, silent
from labeldp_trainer.data import DataPart, Dataset, Task, load_data
from labeldp_trainer.data.encoders import EncoderFile
from labeldp_trainer.data.features import each_array
from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.losses import (
    Loss,
    area_under_curve,
    constant_metrics,
    predict,
    worse_than_constant,
)
from labeldp_trainer.methods import open_method
from labeldp_trainer.methods.method import (
    Fitted,
    Method,
    MethodBuilder,
    Setting,
    TestArrays,
    TrainingRun,
    limited_to_users,
    user_facts,
)
from labeldp_trainer.methods.statement import Statement
from labeldp_trainer.models import Model, Params, build_model, initial_params
from labeldp_trainer.run import create_run, find_run
from labeldp_trainer.run.folder import (
    ENCODER,
    Line,
    describe,
    for_json,
    save_params,
    write_bytes,
    write_json,
)

if TYPE_CHECKING:  # it imports JAX
    from pyspark.sql import SparkSession

    from labeldp_trainer.representations import Representation

T = TypeVar("T")
_PACKAGES = ("jax", "jaxlib", "labeldp", "labeldp-runtime", "labeldp-trainer", "numpy", "optax")


@dataclass(frozen=True)
class Tested:
    """Metrics on the test data by name; one that is not finite is None.

    Attributes:
        model: of the trained model.
        constant: of the best constant prediction for each metric.
        rows: rows of the test data.
    """

    model: Mapping[str, float | None]
    constant: Mapping[str, float | None]
    rows: int


@dataclass(frozen=True)
class Result:
    """A finished run.

    Attributes:
        params: the final parameters; with early stopping those of least private training loss.
        metrics: the final metrics: epochs, the epoch of the parameters, test metrics.
        model: whose ``apply`` takes the parameters.
        statement: the privacy statement.
        folder: where everything is.
        notes: sentences for the user.
        rows: rows of the training data.
        test: metrics on the test data, if there are any.
    """

    params: Params
    metrics: Line
    model: Model
    statement: Statement
    folder: Path
    notes: tuple[str, ...]
    rows: int
    test: Tested | None


def train(
    loaded: LoadedConfig,
    output: Path,
    *,
    model: Model | None = None,
    resume: bool = False,
    progress: Callable[[Line], None] = lambda line: None,
    steps: Steps = silent,
    announce: Announce = nowhere,
    release: Path | None = None,
    spark: SparkSession | None = None,
) -> Result:
    """Train as a config says and write a run folder at ``output``.

    ``model`` replaces the model of the config. With ``resume``, an interrupted run continues from
    its last checkpoint, or starts if it had not. On the same kind and number of devices it ends
    with bitwise the same parameters. ``progress`` is called with the metrics of every epoch,
    ``steps`` with the progress of a representation, ``announce`` with a warning before anything is
    spent. ``release`` is a ``release.npz`` that methods ``one_release`` and
    ``staged_release`` fit instead of a new one. With ``spark``, a cluster sums over the rows of a
    table for these methods.

    Raises InputError for everything that the user can fix. Then there is no run folder, unless
    training diverged, memory was too small for what follows a release, or a cluster failed between
    the parts of one.
    """
    try:
        return _trained(
            loaded, output, model, release, progress, steps, announce, spark, resume=resume
        )
    except MemoryError:
        kept = "--resume continues, where there is more" if output.exists() else "nothing was drawn"
        reason = f"{output}: this needs more memory than there is; {kept}"
        raise RunFolderError(reason) from None


def _trained(
    loaded: LoadedConfig,
    output: Path,
    model: Model | None,
    release: Path | None,
    progress: Callable[[Line], None],
    steps: Steps,
    announce: Announce,
    spark: SparkSession | None,
    *,
    resume: bool,
) -> Result:
    folder = find_run(output, loaded.digest, resume=resume)
    builder = open_method(loaded, folder, release)
    original, loss = read(loaded, builder, (loaded.config.data.label,), spark)
    loaded = suited(loaded, original)
    dataset, representation = _vectors(loaded, original, output, steps)
    model_from: Literal["config", "python"] = "config" if model is None else "python"
    model = model or build_model(loaded, dataset.shape, loss.task.outputs)
    params = initial_params(loaded, model)
    if not loaded.config.closed_form:
        _check_outputs(loaded, model, params, dataset, loss)
    tests = _test_arrays(dataset, loss, loaded)
    warned = weak(loaded, dataset)
    for line in warned:  # before anything is spent
        announce(f"warning: {line}")
    stored = None if folder is None else folder.stored()
    setting = Setting(loaded, dataset, model, loss, stored, representation, original, steps)
    if folder is not None:  # what it has kept is of these rows
        folder.require_same({"features_sha256": dataset.digest(), **user_facts(setting)})
    method = _computed(loaded, partial(builder.build, setting))
    facts = _facts(setting, params, method)
    encoder = _encoder(setting, output, model_from)

    def also(part: Path) -> None:
        if not (part / ENCODER).exists():  # a resumed run keeps what it was trained with
            write_json(part / ENCODER, encoder)
        _save(representation, dataset, part)
        for name, data in method.files.items():
            write_bytes(part / name, data)

    if folder is None:
        folder = create_run(output, loaded.text, facts, method.statement, method.keep, also)
    else:
        folder.require_same(facts, machine=method.repeats_noise)
        if method.repeats_noise:
            from labeldp_trainer.run.checkpoints import require_repeatable  # noqa: PLC0415

            require_repeatable(folder, str(facts["device"]))
        also(folder.path)
    notes = () if representation is None else representation.notes
    try:
        fitted = _computed(
            loaded, partial(method.fit, TrainingRun(setting, folder, params, tests, progress))
        )
        tested = _tested(fitted, loss, tests, dataset.test)
        if method.statement.epsilon is not None and not warned:  # of private labels
            warned = weak_promise(method.statement.epsilon)
        result = _result(fitted, loss, tested, (*notes, *warned, *method.notes))
        save_params(folder.params, fitted.params)
        write_json(folder.result, result)
    except BrokenPipeError:  # of who reads the progress
        raise
    except OSError as error:
        reason = error.strerror or error
        message = f"{output}: cannot be written: {reason}; --resume continues"
        raise RunFolderError(message) from error
    return Result(
        params=fitted.params,
        metrics=fitted.metrics,
        model=fitted.model,
        statement=method.statement,
        folder=output,
        notes=tuple(result.get("notes", ())),
        rows=dataset.train.all_rows,
        test=tested,
    )


def _computed(loaded: LoadedConfig, compute: Callable[[], T]) -> T:
    """For a model in closed form with one thread of linear algebra: its matrices are small, so
    others mostly wait, and wait longest on a machine that has other work."""
    if not loaded.config.closed_form:
        return compute()
    with threadpool_limits(1, user_api="blas"):
        return compute()


def read(
    loaded: LoadedConfig,
    builder: MethodBuilder[Any],
    test_columns: Sequence[str],
    spark: SparkSession | None = None,
) -> tuple[Dataset, Loss]:
    """The data of a config with the columns that its method needs, and its loss.

    Raises InputError.
    """
    dataset = load_data(loaded, builder.columns, test_columns, spark)
    loaded.require_batch(dataset.train.rows, "examples of the training data")
    return dataset, Loss(loaded.config.loss, _task(loaded, builder))


def public_setting(
    loaded: LoadedConfig,
    builder: MethodBuilder[Any],
    steps: Steps,
    spark: SparkSession | None = None,
) -> Setting:
    """That of a method that needs no labels, with at most the rows of a user that count.

    Raises InputError.
    """
    dataset, loss = read(loaded, builder, (), spark)
    model = build_model(loaded, dataset.shape, loss.task.outputs)
    return limited_to_users(Setting(loaded, dataset, model, loss, None, steps=steps))


def _vectors(
    loaded: LoadedConfig, dataset: Dataset, output: Path, steps: Steps
) -> tuple[Dataset, Representation | None]:
    """The data with vectors instead of features, if the config has a representation."""
    if loaded.config.representation is None:
        return dataset, None
    from labeldp_trainer.representations import represented  # noqa: PLC0415  # it needs JAX

    return represented(loaded, dataset, output, steps)


def _save(representation: Representation | None, dataset: Dataset, part: Path) -> None:
    if representation is not None:
        from labeldp_trainer.representations import save  # noqa: PLC0415

        save(part, representation, dataset)


def suited(loaded: LoadedConfig, dataset: Dataset) -> LoadedConfig:
    """The config, with the default representation of images if an archive holds images.

    They must be large enough for wavelets. Raises ConfigError if images are to have coefficients.
    """
    image = dataset.shape.image
    if image is not None and getattr(loaded.config.method, "goal", None) == "coefficients":
        raise loaded.error(("method", "goal"), "coefficients are for columns; these are images")
    return loaded.suited(images=image is not None and min(image[:2]) >= SMALLEST)


def weak(loaded: LoadedConfig, dataset: Dataset) -> list[str]:
    """Why the (ε, δ) of the config protects hardly anybody. Raises DataError."""
    method = loaded.config.method
    train = dataset.train
    units = train.all_rows if train.owners is None else int(train.owners.max()) + 1
    if train.whole is not None and train.whole.users is not None:
        units = train.whole.users.count
    return weak_promise(getattr(method, "epsilon", 0), getattr(method, "delta", 0), units)


def _tested(fitted: Fitted, loss: Loss, tests: TestArrays, part: DataPart | None) -> Tested | None:
    if tests is None or part is None:
        return None
    line = for_json(fitted.metrics)
    found = {name[5:]: value for name, value in line.items() if name.startswith("test_")}
    targets = np.asarray(tests[1])
    constant = for_json(constant_metrics(loss, targets, part.exposure, part.weights))
    if "auc" in constant:
        outputs = predict(fitted.model, fitted.params, part)
        found |= for_json({"auc": area_under_curve(outputs, targets, part.weights)})
    return Tested(found, constant, len(tests[1]))


def _result(fitted: Fitted, loss: Loss, tested: Tested | None, notes: Sequence[str]) -> Line:
    """The contents of ``result.json``. Adds the notes that the test data give."""
    more: Line = {}
    worse: Sequence[str] = ()
    if tested is not None:
        more = {
            "test": tested.model,
            "rows_tested": tested.rows,
            "baselines": {"constant": tested.constant},
        }
        worse = worse_than_constant(loss, tested.model, tested.constant)
    notes = [*notes, *worse, *fitted.notes]
    if notes:
        more["notes"] = list(notes)
    return {"format_version": "1.0", **for_json(fitted.metrics), **more, **fitted.facts}


def _task(loaded: LoadedConfig, builder: MethodBuilder[Any]) -> Task:
    if loaded.config.loss != "cross_entropy":
        return Task()
    given, known = loaded.config.data.class_list, builder.classes
    if given is None and known is None:
        raise loaded.error(
            ("data", "classes"),
            "this key is missing; cross_entropy needs a list of classes, or their number K",
        )
    if given is not None and known is not None and set(given) != set(known):
        raise loaded.error(
            ("data", "classes"), "are not the labels of the artifact; remove this key"
        )
    return Task(tuple(given if given is not None else known or ()))


def _check_outputs(
    loaded: LoadedConfig, model: Model, params: Params, dataset: Dataset, loss: Loss
) -> None:
    import jax  # noqa: PLC0415

    first = each_array(dataset.train.features, lambda leaf: leaf[:2])
    outputs = jax.eval_shape(model.apply, params, first)
    expected = (min(dataset.train.rows, 2), loss.task.outputs)
    if outputs.shape != expected:
        reason = f"gives outputs {list(outputs.shape)} for {expected[0]} examples"
        raise loaded.error(("model",), f"{reason}, expected {list(expected)}")


def _test_arrays(dataset: Dataset, loss: Loss, loaded: LoadedConfig) -> TestArrays:
    part, label = dataset.test, loaded.config.data.label
    if part is None:
        return None
    return part.features, loss.task.targets(part.columns[label], part.source, label)


def _encoder(
    setting: Setting, output: Path, model_from: Literal["config", "python"]
) -> dict[str, Any]:
    """The contents of ``encoder.json``."""
    loaded, classes, dataset = setting.loaded, setting.loss.task.classes, setting.dataset
    assert dataset.encoder is not None
    stated = EncoderFile(
        features=dataset.encoder,
        classes=None if classes is None else list(classes),
        model_from=model_from,
        data_directory=os.path.relpath(
            loaded.directory.resolve(), output.parent.resolve() / output.name
        ),
    )
    return stated.model_dump()


def _facts(setting: Setting, params: Params, method: Method) -> dict[str, Any]:
    versions, of_vectors = {}, dict[str, Any]()
    if setting.representation is not None:
        from labeldp_trainer.representations.representation import representation_facts  # noqa: PLC0415

        of_vectors = representation_facts(setting.representation, setting.dataset)
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return {
        "config_sha256": setting.loaded.digest,
        "features_sha256": setting.dataset.digest(),
        "parameters": describe(params),
        **method.machine(setting),
        "versions": versions,
        **user_facts(setting),
        **of_vectors,
    }
