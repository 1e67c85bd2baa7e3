"""``labeldp randomize``: replace the labels of a table by private labels."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click
from labeldp_runtime import (
    Key,
    KeyFileError,
    MissingExtraError,
    Randomizer,
    RuntimeArtifactError,
)
from labeldp_verify import OWN_FILES, check_bytes, read_artifact
from labeldp_verify.artifact import Artifact
from labeldp_verify.claims import Certificate, nulls_in_words
from labeldp_verify.forms import CategoricalDomain, columns_of
from labeldp_verify.rounded import at_most
from labeldp_verify.usefulness.shortcomings import relevant

from labeldp_compile.cli.booking import Booking, Drawing, ledger_options
from labeldp_compile.cli.command import DoesNotHoldError, command, verified
from labeldp_compile.cli.options import (
    PATH,
    Whole,
    gone_option,
    group_column_option,
    overwrite_option,
    text_options,
)
from labeldp_compile.cli.output import NUMBERS_OF_SETS, row_progress, tell
from labeldp_compile.cli.person_options import PersonOptions, bound_in_words, person_options
from labeldp_compile.column_names import key_of
from labeldp_compile.errors import InputError
from labeldp_compile.tabular.append import Selection, known_ids, seal
from labeldp_compile.tabular.artifact_columns import drawn_by, has_whole_outputs, renamed
from labeldp_compile.tabular.background import use_small_pool
from labeldp_compile.tabular.formats import is_stream
from labeldp_compile.tabular.parts_folder import ListedPart, PartsFolder
from labeldp_compile.tabular.provenance import Provenance
from labeldp_compile.tabular.reader import open_table
from labeldp_compile.tabular.writer import Rewriting, require_rewritten
from labeldp_compile.text_form import TextForm
from labeldp_compile.whole_file import require_folder, require_outside


@command(
    "randomize",
    "labeldp randomize build/doctor-visits.onnx visits.parquet -o private.parquet",
    "labeldp randomize build/doctor-visits.onnx visits.parquet -o private.parquet \\",
    "  --key labels.key --id-column visit_id  # repeatable without spending ε again",
)
@click.argument("artifact", type=PATH)
@click.argument("table", type=PATH)
@click.option(
    "-o",
    "--output",
    type=PATH,
    required=True,
    help="Parquet or CSV file to write; a folder if TABLE is one; - for CSV on stdout.",
)
@click.option(
    "--column",
    "given",
    multiple=True,
    help="The label column (default: the one in the spec). Repeat it for each column of a joint "
    "label.",
)
@click.option(
    "--add",
    "add_as",
    metavar="NAME",
    help="Add the private labels as column NAME and KEEP the true labels beside them. A joint "
    "label adds NAME_COLUMN for each column.",
)
@click.option(
    "--key",
    "key_file",
    type=PATH,
    help="Key file from labeldp keygen. Repeating the command for the same labels then gives "
    "the same private labels.",
)
@group_column_option
@click.option("--id-column", metavar="NAME", help="With --key: the column that names each label.")
@click.option(
    "--context",
    help="With --key: a name for this use of the label (default: the name of the private column).",
)
@click.option(
    "--version",
    type=Whole(0, 2**64 - 1),
    help="With --key: the version of the labels (default: 0). Raise it when labels change.",
)
@click.option(
    "--append",
    is_flag=True,
    help="With --key: add the rows that are new as one part to the folder OUTPUT. A row whose id "
    "is there, and a part that is there, stay as they are.",
)
@click.option(
    "--part",
    metavar="NAME",
    help="With --append: the name of the part, such as 2026-11-26 (default: TABLE's).",
)
@person_options
@ledger_options
@text_options
@gone_option("--jobs", "is gone: run one process for each part file, or use Spark")
@overwrite_option
@click.option("--quiet", is_flag=True, help="Show only errors, and what a killed run left.")
def randomize_command(
    artifact: Path,
    table: Path,
    output: Path,
    given: tuple[str, ...],
    add_as: str | None,
    key_file: Path | None,
    group_columns: dict[str, str],
    id_column: str | None,
    context: str | None,
    version: int | None,
    append: bool,
    part: str | None,
    persons: PersonOptions,
    booking: Booking | None,
    form: TextForm,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Randomize the labels of TABLE with ARTIFACT, which is verified first.

    TABLE is a Parquet or CSV file (.csv, .tsv, .csv.gz), a folder of such files, or - for CSV on
    standard input. A folder becomes a folder. All other columns are kept: drop those that are
    secret. The output appears under its name only when it is complete. Only users who can read
    TABLE can read it. Files that a killed run left are named and removed. If the artifact has
    groups, they are read from TABLE.

    Without --key, each run draws new random bits and spends the label's ε again: keep the output
    and do not repeat the run. With --key and --id-column, repeating it gives the same file and
    spends nothing. With --append, OUTPUT is a folder that grows by one part a run.

    If the spec says how many labels a person has, rows are counted by person before anything is
    drawn. With --ledger, what is drawn is booked before the output appears.
    """
    _require_possible(
        artifact,
        table,
        output,
        key_file,
        booking,
        part,
        persons.earlier,
        append=append,
        overwrite=overwrite,
    )
    use_small_pool()
    data = read_artifact(artifact)
    with verified(artifact), _runtime_errors():
        key = _key(key_file, id_column, context, version)
        # The user is about to give it true labels, so a large file is no attack here.
        decoded = check_bytes(data, budget=OWN_FILES).verified()
        certificate = decoded.certificate
        columns = _columns(given, certificate)
        stated = decoded.groups.columns
        there = renamed(stated, group_columns, {*certificate.label_columns, *columns})
        bound = persons.bound(certificate, [*columns, *certificate.label_columns], form)
        context = None if key is None else context or add_as or key_of(columns)
        version = version or 0
        randomize = drawn_by(
            Randomizer(data, str(artifact), key=key, context=context, prepared=True),
            dict(zip(columns, certificate.label_columns, strict=True)),
            {column.name: here.name for column, here in zip(stated, there, strict=True)},
            version,
        )
    reader = open_table(
        table,
        columns,
        decoded.label,
        all_columns=True,
        id_column=id_column,
        group_columns=there,
        form=form,
        stream=True,
        true_labels=True,
    )
    if not quiet:
        tell(*_doubts(artifact, columns, decoded, form))
    # A keyed run gives the same file each time, so it records no time.
    now = None if key is not None else f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    epsilon = certificate.privacy.epsilon_label
    selection = Selection(bound=bound)
    rewriting = Rewriting(
        reader,
        output,
        randomize,
        add_as=add_as,
        one_answer=len(columns) > 1 and decoded.answers_with_sets,
        whole=has_whole_outputs(decoded),
        provenance=Provenance(decoded.sha256, epsilon, now),
        text=form,
        found=partial(_say_left, keyed=key is not None),
        keep=selection if selection.leaves_out else None,
        unlabelled=None if bound is None or bound.beyond == "drop" else bound.unlabelled,
        as_one=append,
        is_resumed=append,
        overwrite=overwrite,
    )
    drawing = Drawing(
        decoded.sha256,
        certificate,
        columns,
        key,
        context or "",
        version,
        output.name,
        booking,
        bound=bound,
    )
    drawing.require()
    with ExitStack() as stack:
        if append:
            folder = stack.enter_context(PartsFolder.held(output))
            drawing = replace(drawing, folder=folder.name, part=folder.name_of(part, table))
            if lines := _aimed_at(folder, drawing, rewriting, selection, form):
                tell(*(() if quiet else lines))
                return
        else:
            rewriting.naming, rewriting.sealed = (
                drawing.naming,
                lambda path, rows: drawing.book(rows, rewriting.ids_name),
            )
        selection.measure(reader)
        output, rows = rewriting.output, _run(rewriting, quiet=quiet)
    if quiet:
        return
    tell(f"{output}: {nulls_in_words(decoded.label)}")
    tell(*_left_out(output, selection), *drawing.said)
    tell(*(f"{output}: {line}" for line in bound_in_words(certificate, bound)))
    tell(*(f"warning: {f.text}" for f in relevant(decoded.shortcomings, certificate.goal)))
    tell(f"{output}: {rows:,} rows, ε = {at_most(epsilon)} spent on each label")
    tell(*rewriting.without_label)
    if decoded.answers_with_sets:
        tell(
            f"{output}: {NUMBERS_OF_SETS}",
            f"{output}: labeldp report {artifact} --sets TABLE lists the sets",
        )
    if key is not None:
        tell(*_keyed(output, drawing, at_most(epsilon)))
    if add_as is not None:
        tell(f"{output}: still holds the true labels in {', '.join(map(repr, columns))}")


def _run(rewriting: Rewriting, *, quiet: bool) -> int:
    """Draw and write; returns the number of rows."""
    with row_progress("randomizing", rewriting.table.rows, quiet=quiet) as rewriting.progress:
        try:
            return rewriting.run()
        except InputError as error:
            if not is_stream(rewriting.output):
                raise
            raise InputError(f"{error}; the table on stdout is incomplete") from None


def _aimed_at(
    folder: PartsFolder,
    drawing: Drawing,
    rewriting: Rewriting,
    selection: Selection,
    form: TextForm,
) -> list[str]:
    """Have a part of the folder written: its new rows, listed and booked before it is visible.

    If the part is there already, the lines that say so, and nothing is to be written.
    """
    name, table = drawing.part, rewriting.table
    assert drawing.key is not None
    drawing.settle(folder, tell)
    rewriting.output = folder.path / name
    part = drawing.listed(rewriting.private_names, str(table.id_column))
    # Of line ends in cells was said when these were read.
    written = TextForm(form.delimiter, decimal=form.decimal, multiline_cells=True)
    selection.ids = known_ids(folder, table, drawing.key, part.columns, written)
    if selection.bound is not None:
        for path in folder.parts():
            selection.bound.earlier.seed(path, selection.bound.column, written)
    if name in folder.listed:
        found = folder.listed[name]
        return list(_stays(rewriting.output, found, part, selection.count(table)))
    rewriting.keep, rewriting.sealed = (
        selection,
        seal(
            folder,
            name,
            part,
            drawing.key,
            lambda rows, digest: drawing.book(rows, digest, folder.listed),
        ),
    )
    return []


def _keyed(output: Path, drawing: Drawing, epsilon: str) -> Iterator[str]:
    """Lines on what a repetition spends."""
    assert drawing.key is not None
    bound = (
        f"{output}: key {drawing.key.fingerprint}, context {drawing.context!r}, "
        f"version {drawing.version}"
    )
    if drawing.folder:
        yield f"{bound}: each id is drawn once, and keeps its private label if the true one changes"
        return
    yield (
        f"{bound}: with the same labels, ids, key, context, version and artifact, repeating this "
        "gives the same file and spends nothing more"
    )
    yield (
        f"{output}: a changed label gets a new output and spends ε = {epsilon} again. Under the "
        "same version, the new output also shows that the label changed: raise --version for all "
        "labels, or use --append, which draws each id once"
    )


@contextmanager
def _runtime_errors() -> Iterator[None]:
    """Turn the runtime's errors into errors of a command."""
    try:
        yield
    except RuntimeArtifactError as error:
        raise DoesNotHoldError(str(error)) from error
    except (MissingExtraError, KeyFileError) as error:
        raise InputError(str(error)) from None


def _require_possible(
    artifact: Path,
    table: Path,
    output: Path,
    key_file: Path | None,
    booking: Booking | None,
    part: str | None,
    earlier: Sequence[Path],
    *,
    append: bool,
    overwrite: bool,
) -> None:
    """Raise InputError unless such an output can be written; nothing is read."""
    if not append:
        if part is not None:
            raise InputError("--part needs --append")
        files = [path for path in earlier if not path.is_dir()]
        if output.exists() and output.absolute().parent.resolve() in {p.resolve() for p in earlier}:
            raise InputError(f"{output}: is the input: write to another file")
        require_rewritten(table, output, artifact, *files, key_file, overwrite=overwrite)
        if booking is not None and is_stream(output):
            raise InputError("--ledger needs an output that appears when it is complete, not -")
        return
    if overwrite:
        raise InputError("--append replaces nothing: remove --overwrite")
    if key_file is None:
        raise InputError("--append needs --key and --id-column: they make each draw repeatable")
    if is_stream(table) or is_stream(output):
        raise InputError("--append reads TABLE twice and adds a file: give a file or folder, not -")
    require_folder(output, grows=True)
    require_outside(output / "part", table)


def _left_out(output: Path, selection: Selection) -> Iterator[str]:
    """Lines on the rows that were not drawn; ids and public columns decided it."""
    if selection.ids is not None:
        yield f"{output}: {selection.known:,} rows have ids that parts hold already; they stay"


def _stays(output: Path, there: ListedPart, asked: ListedPart, rows: int) -> Iterator[str]:
    """Lines on a part that is there: it is neither drawn nor booked again."""
    yield f"{output}: is there already, and stays as it is; nothing was drawn"
    names = "artifact_sha256", "key", "context", "version", "data_set"
    if other := [name for name in names if getattr(there, name) != getattr(asked, name)]:
        yield f"{output}: was drawn with another {', '.join(other)}; see the manifest"
    if rows:
        yield f"{output}: {rows:,} rows of TABLE could be drawn: add them with another --part"


def _columns(given: Sequence[str], certificate: Certificate) -> list[str]:
    """The label columns of the table."""
    stated = certificate.label_columns
    if given and len(given) != len(stated):
        raise InputError(
            f"--column: got {len(given)}, but the label has "
            f"{'one column' if len(stated) == 1 else f'the {len(stated)} columns {stated}'}"
        )
    return list(given) or stated


def _doubts(
    artifact: Path, columns: Sequence[str], decoded: Artifact, form: TextForm
) -> Iterator[str]:
    """A line for each column whose name differs from the spec's, and one about decimal commas."""
    if not all(isinstance(domain, CategoricalDomain) for domain in columns_of(decoded.label)):
        yield from form.comma_warning()
    for stated, column in zip(decoded.certificate.label_columns, columns, strict=True):
        if column != stated:
            yield (
                f"{artifact}: was compiled for the column {stated!r} but randomizes {column!r}: "
                "check that it is the artifact for this label"
            )


def _say_left(left: Path, *, keyed: bool) -> None:
    """What a killed run may have spent. Nobody can know whether that run had a key."""
    cost = (
        "if its labels, ids, key, version and artifact were the same, it drew the same private "
        "labels, and spent nothing more"
        if keyed
        else "it may hold other private labels for the same labels. For anyone who has seen both "
        "that file and this output, ε was spent twice. With --key, repeating a run for the same "
        "labels spends nothing"
    )
    tell(f"labeldp: {left}: was left by a run that was killed, and is removed; {cost}")


def _key(
    file: Path | None, id_column: str | None, context: str | None, version: int | None
) -> Key | None:
    """The key, or None without ``--key``. Raises InputError if the options do not fit together."""
    if file is None:
        given = {"--id-column": id_column, "--context": context, "--version": version}
        alone = [name for name, value in given.items() if value is not None]
        if alone:
            raise InputError(f"{alone[0]} needs --key; create a key with labeldp keygen")
        return None
    if id_column is None:
        raise InputError("--key needs --id-column, the column that names each label")
    if context == "":
        raise InputError("--context must not be empty")
    return Key.load(file)
