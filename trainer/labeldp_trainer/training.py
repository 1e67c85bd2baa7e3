"""A training run from end to end: config → data → method → epochs → run folder."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float32

from labeldp_trainer.baselines import constant_metrics, worse_than_constant
from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.representation import FromFile
from labeldp_trainer.data import Dataset, Task, load_data
from labeldp_trainer.data.encoder import ArrayEncoder
from labeldp_trainer.epochs import Run, run_stages
from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.evaluation import make_evaluation
from labeldp_trainer.losses import Loss
from labeldp_trainer.methods import Method, MethodBuilder, Setting, Solved, Statement, open_method
from labeldp_trainer.methods.users import user_column, users_digest
from labeldp_trainer.models import Model, Params, build_model, fresh_params
from labeldp_trainer.one_release.release import FILE, Release, read_release
from labeldp_trainer.refine import Refinement, open_refinement, refined_statement, require_batch
from labeldp_trainer.representation import Representation, represented, save
from labeldp_trainer.representation.kind import Steps, silent
from labeldp_trainer.representation.store import vectors_digest
from labeldp_trainer.run import RunFolder, create_run, find_run
from labeldp_trainer.run.checkpoints import describe, load_params, save_params
from labeldp_trainer.run.folder import ENCODER, FITTED, FORMAT_VERSION, write_bytes, write_json
from labeldp_trainer.run.metrics import Line, draw_curve, for_json
from labeldp_trainer.run.program import environment, program_digest, repeats_bits
from labeldp_trainer.sharding import Devices

_PACKAGES = ("jax", "jaxlib", "labeldp", "labeldp-runtime", "labeldp-trainer", "numpy", "optax")
_TEST = "test_"
Tests = tuple[Any, Any] | None
"""Features of the test part as a model sees them, and targets."""


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
    """

    params: Params
    metrics: Line
    model: Model
    statement: Statement
    folder: Path
    notes: tuple[str, ...]


def train(
    loaded: LoadedConfig,
    output: Path,
    *,
    model: Model | None = None,
    resume: bool = False,
    progress: Callable[[Line], None] = lambda line: None,
    steps: Steps = silent,
    release: Path | None = None,
) -> Result:
    """Train as a config says and leave a run folder at ``output``.

    ``model`` takes the place of the config's. With ``resume``, a run that was interrupted goes on
    from its last checkpoint (and one that was not yet started starts); on the same kind and number
    of devices it ends with bitwise the same parameters. ``progress`` is called with the metrics of
    every epoch, ``steps`` with how far a representation is. ``release`` is a ``release.npz`` that
    method ``one_release`` fits, in the place of a new one.

    Raises InputError for whatever the user can mend; then no run folder has been made, unless
    training diverged.
    """
    folder = find_run(output, loaded.digest, resume=resume)
    released = _released(loaded, folder, release)
    builder = open_method(loaded)
    model_from = "config" if model is None else "python"
    labels = ("train", "test") if released is None else ("test",)
    dataset, loss = read(loaded, builder, labels)
    refinement = open_refinement(loaded, dataset, loss)
    dataset, representation = seen(loaded, dataset, output, steps)
    model = model or build_model(loaded, dataset.shape, loss.task.outputs)
    devices = Devices.for_batch(loaded.final.config.training.batch_size)
    params = fresh_params(loaded, model)
    _check_outputs(loaded, model, params, dataset, loss)
    tests = _test_arrays(dataset, loss, loaded, devices)
    stored = None if folder is None else folder.stored()
    spectrum = None if representation is None else representation.spectrum
    setting = Setting(loaded, dataset, model, loss, devices, stored, spectrum, released)
    method = builder.build(setting)
    _check_early_stopping(loaded, method)
    repeats_noise = isinstance(method, Method) and method.repeats_noise
    statement = refined_statement(loaded, method.statement)
    facts = _facts(loaded, dataset, representation, params, devices)
    encoder = _encoder(loaded.final, dataset, representation, loss, output, model_from)
    if repeats_noise:
        digest = program_digest(model, params, dataset.train.features)
        facts |= {"environment": environment(), "program_sha256": digest}

    def also(part: Path) -> None:
        if not (part / ENCODER).exists():  # resumed: what it was trained with stands there
            write_json(part / ENCODER, encoder)
        if representation is not None:
            save(part, representation, dataset)
        for name, data in method.files.items() if isinstance(method, Solved) else ():
            write_bytes(part / name, data)

    if folder is None:
        folder = create_run(output, loaded.text, facts, statement, method.keep, also)
    else:
        _require_same(folder, facts, devices, repeats_noise=repeats_noise)
        also(folder.path)
    by_steps = partial(_by_steps, folder, progress)
    if isinstance(method, Method):
        params, metrics = by_steps(setting, method, params, tests)
    elif refinement is None:
        params = method.solve()
        metrics = _tester(setting, tests)(params)
    else:
        params, model = _fitted(folder, model, method), refinement.model
        outputs = refinement.outputs(setting.model, params, dataset, representation, steps)
        params, metrics = _refined(refinement, outputs, setting, params, statement, tests, by_steps)
    result = _result(metrics, loss, tests, _notes(representation, method))
    save_params(folder.params, params)
    write_json(folder.result, result)
    return Result(params, metrics, model, statement, output, tuple(result.get("notes", ())))


def _refined(
    refinement: Refinement,
    outputs: Float32[np.ndarray, "n k"],
    setting: Setting,
    fitted: Params,
    statement: Statement,
    tests: Tests,
    by_steps: Callable[[Setting, Method, Params, Tests], tuple[Params, Line]],
) -> tuple[Params, Line]:
    """The network that has learnt these outputs of a fitted model, and metrics of both."""
    before = _of_test(for_json(_tester(setting, tests)(fitted)))
    own = refinement.setting(setting.devices)
    method, params = refinement.method(own, outputs, statement), refinement.start(outputs, fitted)
    params, metrics = by_steps(own, method, params, refinement.tests(tests, setting.devices))
    return params, {"before_refining": before, **metrics}


def _notes(representation: Representation | None, method: Method | Solved) -> tuple[str, ...]:
    """Those that no test label decides."""
    return (*(() if representation is None else representation.notes), *method.notes)


def _if_worse(metrics: Line) -> tuple[str, ...]:
    """A note where the test set speaks against refining."""
    before = metrics.get("before_refining")
    if not before:
        return ()
    name, sign = ("accuracy", -1) if "accuracy" in before else ("loss", 1)
    if sign * metrics[f"{_TEST}{name}"] <= sign * before[name]:
        return ()
    return (
        f"refining made the model worse: test {name} {metrics[f'{_TEST}{name}']:.4g}, "
        f"{before[name]:.4g} before: leave refine out, or train longer",
    )


def _by_steps(
    folder: RunFolder,
    progress: Callable[[Line], None],
    setting: Setting,
    method: Method,
    params: Params,
    tests: Tests,
) -> tuple[Params, Line]:
    """All epochs that are left: the parameters to keep, and the metrics."""
    test = _tester(setting, tests)
    run = Run(setting.loaded, method, folder, setting.devices, test, progress)
    seed_key = jax.random.key(setting.loaded.config.training.seed)
    params, epoch, lines = run_stages(run, setting.model, params, seed_key)
    draw_curve(folder.path / "learning_curve.png", lines)
    return params, {"epochs": len(lines), "epoch_of_parameters": epoch, **test(params)}


def _fitted(folder: RunFolder, model: Model, method: Solved) -> Params:
    """The model that is refined: of the run before it was interrupted, or fitted now."""
    path = folder.path / FITTED
    if not path.exists():
        save_params(path, method.solve())
    return load_params(path, jax.eval_shape(model.init, jax.random.key(0)))


def _require_same(
    folder: RunFolder, facts: dict[str, Any], devices: Devices, *, repeats_noise: bool
) -> None:
    folder.require_same(facts, machine=repeats_noise)
    if repeats_noise and not repeats_bits(devices.kind) and folder.metrics.exists():
        raise RunFolderError(
            f"{folder.path}: was run on a {devices.kind} without XLA_FLAGS="
            "--xla_gpu_deterministic_ops=true: repeated steps would not give the same bits, "
            "and the same noise on other sums shows labels; start another run"
        )


def read(
    loaded: LoadedConfig, builder: MethodBuilder, labels: Collection[str] = ("train", "test")
) -> tuple[Dataset, Loss]:
    """The data of a config, and its loss. Raises InputError.

    ``labels`` names the parts whose label column is read; in the others it need not be there.
    """
    return _data(loaded, builder, labels), Loss(loaded.config.loss, _task(loaded, builder))


def seen(
    loaded: LoadedConfig, dataset: Dataset, output: Path, steps: Steps = silent
) -> tuple[Dataset, Representation | None]:
    """The data as a model sees them. Raises InputError."""
    if loaded.config.representation is None:
        return dataset, None
    return represented(loaded, dataset, output, steps)


def _tester(setting: Setting, tests: Tests) -> Callable[[Params], Line]:
    evaluate = make_evaluation(setting.model, setting.loss)

    def test(params: Params) -> Line:
        means = {} if tests is None else evaluate(params, *tests)
        return {f"{_TEST}{name}": float(value) for name, value in means.items()}

    return test


def _result(metrics: Line, loss: Loss, tests: Tests, notes: Sequence[str]) -> Line:
    """The contents of ``result.json``: to these notes come those that the test set gives."""
    line = for_json(metrics)
    tested = _of_test(line)
    more: Line = {}
    if tests is not None:
        constant = for_json(constant_metrics(loss, np.asarray(tests[1])))
        more = {
            "test": tested,
            "rows_tested": len(tests[1]),
            "baselines": {"constant": constant},
        }
        notes = [*notes, *worse_than_constant(loss, tested, constant), *_if_worse(metrics)]
    if notes:
        more["notes"] = list(notes)
    return {"format_version": "1.0", **line, **more}


def _of_test(line: Line) -> Line:
    return {n.removeprefix(_TEST): v for n, v in line.items() if n.startswith(_TEST)}


def _released(loaded: LoadedConfig, folder: RunFolder | None, given: Path | None) -> Release | None:
    """A release that exists already: of the run that is resumed, or the one that is given."""
    if loaded.config.method.kind != "one_release":
        if given is not None:
            raise loaded.error(("method", "kind"), "a release is fitted by method one_release")
        return None
    if folder is not None:
        if given is not None:
            raise RunFolderError(f"{folder.path}: has a release: leave --from-release out")
        return read_release(folder.path / FILE)
    return None if given is None else read_release(given)


def _data(loaded: LoadedConfig, builder: MethodBuilder, labels: Collection[str]) -> Dataset:
    label = loaded.config.data.label
    others = tuple(name for name in builder.columns if name != label)
    dataset = load_data(
        loaded,
        builder.columns if "train" in labels else others,
        (label,) if "test" in labels else (),
    )
    require_batch(loaded, dataset.train.rows)
    return dataset


def _task(loaded: LoadedConfig, builder: MethodBuilder) -> Task:
    if loaded.config.loss != "cross_entropy":
        return Task()
    given, known = loaded.config.data.class_list, builder.classes
    if given is None and known is None:
        raise loaded.error(("data", "classes"), "cross_entropy needs the classes: a list, or K")
    if given is not None and known is not None and set(given) != set(known):
        raise loaded.error(
            ("data", "classes"), "are not the labels of the artifact: leave them out"
        )
    return Task(tuple(given if given is not None else known or ()))


def _check_outputs(
    loaded: LoadedConfig, model: Model, params: Params, dataset: Dataset, loss: Loss
) -> None:
    first = jax.tree.map(lambda leaf: leaf[:2], dataset.train.features)
    outputs = jax.eval_shape(model.apply, params, first)
    expected = (len(jax.tree.leaves(first)[0]), loss.task.outputs)
    if outputs.shape != expected:
        reason = f"gives outputs {list(outputs.shape)} for {expected[0]} examples"
        raise loaded.error(("model",), f"{reason}, expected {list(expected)}")


def _check_early_stopping(loaded: LoadedConfig, method: Method | Solved) -> None:
    if loaded.config.training.early_stopping is None or isinstance(method, Solved):
        return
    if method.training_loss is None:
        reason = f"method {loaded.config.method.kind} has no training loss that may be looked at"
        raise loaded.error(("training", "early_stopping"), reason)


def _test_arrays(dataset: Dataset, loss: Loss, loaded: LoadedConfig, devices: Devices) -> Tests:
    part, label = dataset.test, loaded.config.data.label
    if part is None:
        return None
    targets = loss.task.targets(part.columns[label], part.source, label)
    arrays: tuple[Any, Any] = devices.everywhere((part.features, targets))
    return arrays


def _encoder(
    loaded: LoadedConfig,
    dataset: Dataset,
    representation: Representation | None,
    loss: Loss,
    output: Path,
    model_from: str,
) -> dict[str, Any]:
    """What ``labeldp predict`` needs besides config and parameters."""
    classes, encoder = loss.task.classes, dataset.encoder
    if representation is not None and isinstance(loaded.config.representation, FromFile):
        encoder = ArrayEncoder((representation.shape.numeric,), bytes_=False)
    directory = os.path.relpath(loaded.directory.resolve(), output.parent.resolve() / output.name)
    return {
        "format_version": FORMAT_VERSION,
        "features": None if encoder is None else encoder.to_json(),
        "classes": None if classes is None else list(classes),
        "model_from": model_from,
        "data_directory": directory,  # from here
    }


def _facts(
    loaded: LoadedConfig,
    dataset: Dataset,
    representation: Representation | None,
    params: Params,
    devices: Devices,
) -> dict[str, Any]:
    versions = {}
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    users = user_column(loaded)
    owners = {} if users is None else {"users_sha256": users_digest(dataset.train, users)}
    vectors = {}
    if representation is not None:
        vectors = {
            "representation": dict(representation.facts),
            "representation_sha256": vectors_digest(dataset),
        }
    return {
        "config_sha256": loaded.digest,
        "features_sha256": dataset.digest(),
        **owners,
        "parameters": describe(params),
        "device": devices.kind,
        "devices": devices.count,
        "versions": versions,
        **vectors,
    }
