"""``labeldp train`` (``python -m labeldp_trainer``), and what is done with a run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from labeldp_verify.printable import Marked, Status

from labeldp_compile.toolkit import (
    PATH,
    PLAIN,
    TEXT_FORM,
    TextForm,
    command,
    json_option,
    overwrite_option,
    quiet_option,
    require_form,
    row_progress,
    say,
    show,
    tell,
    text_options,
    verbose_option,
)
from labeldp_trainer.config import load_config
from labeldp_trainer.config.data import PairsData, TableData

# Progress: rates on a terminal; in a log, a line a stage, and a tenth of many epochs.

Line = dict[str, Any]  # the metrics of an epoch, by name
Progress = Callable[[Line], None]
_WIDTH = 24
_LOGGED = 10  # lines on epochs
_STAGES = "stages"


def epoch_progress(epochs: int, *, quiet: bool) -> Progress:
    """A function that is called with the metrics of every epoch."""
    show = step_progress(quiet=quiet)

    def told(line: Line) -> None:
        losses = [
            f"{name.replace('_', ' ')} {line[name]:.5g}"
            for name in ("training_loss", "batch_loss", "test_loss")
            if line.get(name) is not None
        ]
        rate = f"{line['examples_per_second']:,.0f} examples/s"
        show("epoch", int(line["epoch"]), epochs, f"  {rate}  {', '.join(losses)}")

    return told


def step_progress(*, quiet: bool) -> Callable[..., None]:
    """A function that is called with what is done, how much of it, and of how much; and words."""
    if quiet:
        return lambda what, done, total, words="": None
    if not sys.stderr.isatty():
        return _log
    began, first, before = 0.0, 0, ("", 0)

    def show(what: str, done: int, total: int, words: str = "") -> None:
        nonlocal began, first, before
        if what != before[0] or done <= before[1]:
            began, first = time.monotonic(), done
        before = (what, done)
        left = ""  # how long a step takes is not known before the second call
        if done > first:
            left = f"  {(total - done) * (time.monotonic() - began) / (done - first):.0f} s left"
        bar = "█" * (_WIDTH * done // max(total, 1))
        text = f"{bar:<{_WIDTH}} {done:,}/{total:,}  {what}{left}{words}"
        click.echo(f"\r\x1b[K{text}", err=True, nl=done == total)

    return show


def _log(what: str, done: int, total: int, words: str = "") -> None:
    """A line without a time, so that the same run prints the same; none of what is short."""
    del words
    every = {_STAGES: 1, "epoch": -(-total // _LOGGED)}.get(what, total)
    if done and done % every == 0 and (what == _STAGES or every > 1):
        click.echo(f"{what} {done:,} of {total:,}", err=True)


if TYPE_CHECKING:
    from labeldp_learn.toolkit import Target

_STATUS: dict[bool, Status] = {True: "ok", False: "failed"}


_RESULTS = (".onnx", ".html", ".parquet", ".csv", ".tsv", ".gz")
"""How the names of outputs end that no file of a run folder has."""


def require_outside_run(output: Path | None, run: Path) -> None:
    """Raise InputError if this output would replace a file of a run."""
    from labeldp_compile.toolkit import require_outside  # noqa: PLC0415

    if output is not None and output.is_file() and output.suffix.lower() not in _RESULTS:
        require_outside(output, run)


def _path(*names: str, **more: Any) -> Callable[[Any], Any]:
    return click.option(*names, type=PATH, **more)


# Names of the options of each form of labeldp train; --plan has none of its own.
_TRAIN_FORMS = {
    "training": ("output", "resume", "from_release", "verbose", "spark"),
    "--verify-release": ("vectors", "spark"),
}


@command("train", "labeldp train train.yaml -o runs/first")
@click.argument("config", type=PATH)
@_path(
    "-o", "--output", help="Run folder to write (default: runs/NAME, where NAME is in the config)."
)
@click.option("--resume", is_flag=True, help="Resume an interrupted run.")
@_path(
    "--from-release",
    help="Fit an existing release.npz; this spends nothing (one_release and staged_release).",
)
@_path(
    "--verify-release",
    help="Do not train; check a release.npz against the features of CONFIG. Exits with 1 if a "
    "check fails.",
)
@_path(
    "--vectors",
    help="With --verify-release: use the vectors of this run folder, which came with the release. "
    "Needed on a processor that computes different bits.",
)
@click.option(
    "--plan",
    is_flag=True,
    help="Do not train; estimate what a staged release may learn of CONFIG's table. Reads no label "
    "and spends nothing.",
)
@click.option(
    "--spark",
    is_flag=True,
    help="Sum over the rows on the Spark cluster of this session (one_release or staged_release, "
    "on Parquet files).",
)
@click.option(
    "--verbose", "-v", is_flag=True, help="Also print all metrics and the whole privacy statement."
)
@quiet_option
def train_command(
    config: Path,
    output: Path | None,
    resume: bool,
    from_release: Path | None,
    verify_release: Path | None,
    vectors: Path | None,
    plan: bool,
    spark: bool,
    verbose: bool,
    quiet: bool,
) -> None:
    """Train the model that CONFIG describes and write a run folder.

    The folder holds the parameters, metrics and checkpoints. Its privacy.txt and privacy.json say
    what is private and what must stay secret.
    """
    if plan and verify_release is not None:
        raise click.UsageError("use either --plan or --verify-release")
    verify = "--verify-release" if verify_release is not None else "training"
    require_form("--plan" if plan else verify, _TRAIN_FORMS)
    if plan:
        _plan(config, quiet=quiet)
        return
    if verify_release is not None:
        _verify_release(config, verify_release, vectors, spark=spark, quiet=quiet)
        return
    # Reading run folders takes a tenth of a second to import, so help does without it.
    from labeldp_trainer.run import find_run, require_new  # noqa: PLC0415

    if output is not None and not resume:
        require_new(output)
    loaded = load_config(config)
    output = output or Path("runs") / loaded.config.name
    find_run(output, loaded.digest, resume=resume)
    labels_are_true = getattr(loaded.config.method, "private_column", None) is None
    if not quiet and labels_are_true and loaded.config.loss != "cross_entropy":
        tell(*getattr(loaded.config.data, "form", PLAIN).comma_warning())
    # JAX takes seconds to import: check the config and the folder first.
    from labeldp_trainer.config.representation import nowhere  # noqa: PLC0415
    from labeldp_trainer.training import train  # noqa: PLC0415

    progress = epoch_progress(loaded.config.training.epochs, quiet=quiet)
    steps = step_progress(quiet=quiet)
    result = train(
        loaded,
        output,
        resume=resume,
        progress=progress,
        steps=steps,
        announce=nowhere if quiet else tell,
        release=from_release,
        spark=_session(spark),
    )
    if quiet:
        return
    from labeldp_trainer.outcomes.runs import (  # noqa: PLC0415
        all_metrics,
        summary,
        verdict,
        warnings,
    )

    say(*summary(loaded, result))
    if verbose:
        say("", f"All metrics: {all_metrics(result)}", "")
        say(*result.statement.text().splitlines(), "")
    tell(*warnings(result))
    say(verdict(result.statement))


def _plan(config: Path, *, quiet: bool) -> None:
    loaded = load_config(config)
    from labeldp_trainer.methods.statement import spent  # noqa: PLC0415
    from labeldp_trainer.outcomes.forecast import few_for_classes, forecasts  # noqa: PLC0415

    rows, found = forecasts(loaded, step_progress(quiet=quiet))
    method: Any = loaded.config.method  # a staged release, else that was an error
    say(
        f"{loaded.config.name}: {rows:,} rows, {spent(method.epsilon, method.delta)}. "
        "Estimated from features and made-up labels; nothing was spent:",
        "",
        "  features explain   the model explains   (of the variance of labels)",
        *(f"  {each.signal:16.0%}   {each.explained:18.0%}" for each in found),
        "",
        *_PLANNED,
    )
    data: Any = loaded.config.data
    if method.epsilon >= _MUCH:
        say("", *_OTHERS)
    if data.class_list and few_for_classes(rows, method):
        say("", *_FEW_ROWS)
    elif len(data.class_list or ()) > _TWO_CLASSES and not (data.categorical or data.dates):
        say("", *_ALL_NUMBERS)


_PLANNED = (
    "Made-up effects of columns and pairs fall as 1, 1/2, 1/3, …, and made-up numbers are normal.",
    "True labels are learned better if few columns matter, and worse if rare labels are large.",
)
_MUCH = 3.0  # measured: at ε = 2 the release was better on all of six tables, at 4 on three
_OTHERS = (
    "With so large an ε, gradient boosting on private labels may be better: at ε = 4 it was, on",
    "three of six tables, all of numbers. See labeldp init, labeldp compile and labeldp randomize.",
)

_TWO_CLASSES = 2
_ALL_NUMBERS = (
    "For three or more classes and columns that are all numbers, compare kind: one_release: it was",
    "between 6% worse and 5% better on tables with 8 or 20 such columns.",
)
_FEW_ROWS = (
    "With so few rows and so small an ε, compare kind: one_release: with 400 rows at ε = 0.25, its",
    "loss was 14% smaller to 0.3% larger on six tables of classes.",
)


def _session(spark: bool) -> Any:
    if not spark:
        return None
    from labeldp_trainer.spark import session  # noqa: PLC0415

    return session()


def _verify_release(
    config: Path, file: Path, vectors: Path | None, *, spark: bool, quiet: bool
) -> None:
    loaded = load_config(config)
    from labeldp_trainer.methods.statement import spent  # noqa: PLC0415
    from labeldp_trainer.outcomes.verified_release import verify_release  # noqa: PLC0415

    steps = step_progress(quiet=quiet)
    found = verify_release(loaded, file, steps, published=vectors, spark=_session(spark))
    holds = all(check.ok for check in found)
    if not quiet:
        for check in found:
            word = "ok" if check.ok else "FAILED"
            say(Marked(f"  {word:6} {check.words}", _STATUS[check.ok]))
        if holds:
            method: Any = loaded.config.method  # of a release, else that was an error
            promise = spent(method.epsilon, method.delta)
            ending = f"verified: its noise gives {promise}; no file can prove that it was drawn"
        else:
            failed = sum(not check.ok for check in found)
            ending = f"FAILED: {failed} check{'s do' if failed > 1 else ' does'} not hold"
        say(Marked(f"{file}: {ending}", _STATUS[holds]))
    if not holds:
        raise SystemExit(1)


# Names of the options of each form of labeldp predict.
_PREDICT_FORMS = {
    "a run on a table": TEXT_FORM,
    "a run on pairs of answers": ("relabel", "pair", "keep"),
}


@command("predict", "labeldp predict runs/first people.parquet -o predicted.parquet")
@click.argument("run", type=PATH)
@click.argument("table", type=PATH)
@_path(
    "-o",
    "--output",
    required=True,
    help="Parquet, CSV or npz file to write; a folder for a folder.",
)
@click.option("--probabilities", is_flag=True, help="Add the probability of each class.")
@click.option("--relabel", is_flag=True, help="Pairs: write private preferences of these answers.")
@click.option("--pair", nargs=2, multiple=True, help="Pairs: two columns to write, one an answer.")
@click.option("--keep", multiple=True, help="Pairs: a column to copy.")
@text_options
@overwrite_option
@quiet_option
def predict_command(
    run: Path,
    table: Path,
    output: Path,
    probabilities: bool,
    relabel: bool,
    pair: tuple[tuple[str, str], ...],
    keep: tuple[str, ...],
    form: TextForm,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Add the predictions of the finished run in RUN to the rows of TABLE.

    TABLE has the kind of data that the run was trained on: a table (Parquet, CSV, or a folder of
    such files), an npz archive, or an idx file of images. A table keeps all its columns and gets a
    last column "prediction". It needs the feature columns but no labels.

    For pairs of answers, only the named columns are written: those of --keep unchanged, and of
    --pair in the order of the private preference if the order of the file's columns is secret.
    """
    from labeldp_compile.toolkit import require_rewritten  # noqa: PLC0415

    require_rewritten(table, output, overwrite=overwrite)
    require_outside_run(output, run)
    # JAX takes seconds to import: check the names first.
    from labeldp_trainer.outcomes.predict import (  # noqa: PLC0415
        open_trained,
        predict_file,
    )

    trained = open_trained(run)
    data = trained.loaded.config.data
    of_pairs = isinstance(data, PairsData)
    of_table = "a run on a table" if isinstance(data, TableData) else "a run on arrays"
    require_form("a run on pairs of answers" if of_pairs else of_table, _PREDICT_FORMS)
    with row_progress("predicting", None, quiet=quiet) as progress:
        if of_pairs:
            from labeldp_trainer.preferences.relabel import predict_pairs  # noqa: PLC0415

            more: dict[str, Any] = {"relabel": relabel, "pairs": pair, "keep": keep}
            predict: Any = predict_pairs
        else:
            more, predict = {"form": None if form == PLAIN else form}, predict_file
        rows = predict(
            trained, table, output, probabilities=probabilities, progress=progress, **more
        )
    if not quiet:
        tell(f"{output}: {rows:,} rows")


@command("explain", "labeldp explain runs/first -o explained.html")
@click.argument("run", type=PATH)
@_path("-o", "--output", required=True, help="HTML page to write; it needs no other file.")
@verbose_option
@overwrite_option
@quiet_option
def explain_command(run: Path, output: Path, verbose: bool, overwrite: bool, quiet: bool) -> None:
    """Show what the model of interactions in RUN learned, with 95% bands.

    RUN is a finished run of method staged_release, or with model: {kind: interactions}. The page
    shows the strongest terms, the effects of columns, and pairs of columns as heat maps. It is
    computed from the run folder alone, and spends nothing.
    """
    from labeldp_compile.toolkit import replaced_when_whole, require_output  # noqa: PLC0415

    require_output(output, overwrite=overwrite)
    require_outside_run(output, run)
    # Pictures take a second to import: check the name first.
    from labeldp_trainer.outcomes.explained import open_explained  # noqa: PLC0415
    from labeldp_trainer.outcomes.explained_page import explained_page, summary  # noqa: PLC0415

    explained = open_explained(run)
    text = explained_page(explained)
    with replaced_when_whole(output) as part:
        part.write(text.encode())
    if not quiet:
        say(*summary(explained, output, verbose=verbose))


# Names of the options of each form of labeldp runs.
_RUNS_FORMS = {"a comparison": ("html", "overwrite"), "--coefficients": ("target",)}


@command("runs", "labeldp runs runs --html runs.html")
@click.argument("folders", nargs=-1, required=True, type=PATH)
@json_option
@_path("--html", help="Also write the comparison as an HTML page.")
@click.option(
    "--coefficients",
    is_flag=True,
    help="Show the regression coefficients of one run instead, with 95% intervals.",
)
@click.option(
    "--target",
    type=click.Choice(["rows", "population"]),
    help="With --coefficients: the intervals are about these rows (the default) or the "
    "population they were drawn from.",
)
@overwrite_option
def runs_command(
    folders: tuple[Path, ...],
    as_json: bool,
    html: Path | None,
    coefficients: bool,
    target: Target | None,
    overwrite: bool,
) -> None:
    """Compare the training runs in FOLDERS, which are run folders or contain some.

    Runs on the same data share a table, best run first. It also shows the best constant prediction
    and the best run without privacy. Unfinished and damaged runs are listed below.

    With --coefficients: the least-squares coefficients of one run of method one_release, or of
    privatized in closed form, with representation: {kind: pca}.
    """
    require_form("--coefficients" if coefficients else "a comparison", _RUNS_FORMS)
    if coefficients:
        if len(folders) > 1:
            raise click.UsageError("--coefficients takes one run folder")
        from labeldp_trainer.outcomes.coefficients import read_coefficients  # noqa: PLC0415

        found = read_coefficients(folders[0], target or "rows")
        show(as_json, found.to_json, found.text)
        return
    from labeldp_compile.toolkit import replaced_when_whole, require_output  # noqa: PLC0415
    from labeldp_trainer.outcomes.runs import find_runs, runs_page, runs_text, to_json  # noqa: PLC0415  # noqa: PLC0415

    require_output(html, overwrite=overwrite)
    runs = find_runs(folders)
    for run in runs:
        require_outside_run(html, Path(run.folder))
    show(as_json, lambda: to_json(runs), lambda: runs_text(runs))
    if html is not None:
        with replaced_when_whole(html) as part:
            part.write(runs_page(runs).encode())
