"""``labeldp randomize``: replace the labels of a table by private labels.

A run is a request and seven steps, in this order:

    1  ask     the options fit together, and the output can be written; nothing is read
    2  verify  the artifact proves its ε; the key and the bound on a person's rows are read
    3  open    the table has the columns
    4  account the ledger would book the draw, and a folder of parts is whole
    5  measure no person has more rows than the bound; only public columns are read
    6  draw    and write; the draw is booked, and then the output gets its name
    7  tell    what was spent
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

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
from labeldp_verify.claims import Certificate, nulls_in_words, person_epsilon, rational
from labeldp_verify.forms import (
    AdditiveRandomizer,
    CategoricalDomain,
    GroupColumn,
    IntegerDomain,
    JointDomain,
    columns_of,
)
from labeldp_verify.forms import Randomizer as Table
from labeldp_verify.printable import at_most
from labeldp_verify.usefulness.shortcomings import relevant

from labeldp_compile.cli.command import (
    NUMBERS_OF_SETS,
    DoesNotHoldError,
    command,
    require_met,
    row_progress,
    tell,
    using_project,
    verified,
)
from labeldp_compile.cli.options import (
    PATH,
    Whole,
    group_column_option,
    overwrite_option,
    text_options,
)
from labeldp_compile.errors import InputError
from labeldp_compile.tabular.columns import group_columns_in_table
from labeldp_compile.tabular.formats import TextForm, files_of, is_among, is_stream, key_of
from labeldp_compile.tabular.provenance import ListedPart, PartsFolder, Provenance
from labeldp_compile.tabular.reader import TableReader, open_table
from labeldp_compile.tabular.selection import Beyond, Selection, known_ids
from labeldp_compile.tabular.writer import Randomize, Rewriting, require_rewritten, use_small_pool
from labeldp_compile.whole_file import require_folder, require_outside

if TYPE_CHECKING:
    from labeldp_compile.ledger.draw_account import Drawing
    from labeldp_compile.project import Project
    from labeldp_compile.tabular.persons import PersonBound

_KEYLESS = "keyless-draws.jsonl"  # beside the user's configuration
_EXACT_IN_FLOAT64 = 2**53  # whole numbers up to here


@dataclass(frozen=True)
class RandomizeRequest:
    """The command line; each field is an option or an argument of its name.

    ``by_project`` is whether a project file names the ledger.
    """

    artifact: Path
    table: Path
    output: Path
    columns: tuple[str, ...]
    add_as: str | None
    key_file: Path | None
    group_columns: dict[str, str]
    id_column: str | None
    context: str | None
    version: int | None
    append: bool
    part: str | None
    person_column: str | None
    beyond: Beyond
    order_column: str | None
    earlier: tuple[Path, ...]
    ledger: str | None
    data_set: str | None
    note: str | None
    form: TextForm
    overwrite: bool
    quiet: bool
    by_project: bool = False

    def within(self, project: Project | None) -> RandomizeRequest:
        """With the ledger of the project file beside the artifact. InputError if it differs."""
        if project is None or project.ledger is None:
            return self
        for key in ("ledger", "data_set"):
            if reason := project.misfit(key, getattr(self, key), Path()):
                raise InputError(f"--{key.replace('_', '-')}: {reason}")
        return replace(self, ledger=project.ledger, data_set=project.keys.data_set, by_project=True)

    def require_possible(self) -> None:
        """Raise InputError unless the options fit together, and such an output can be written."""
        if self.ledger is None and (self.data_set is not None or self.note is not None):
            raise InputError("--data-set and --note need --ledger")
        if self.ledger is not None and self.data_set is None:
            raise InputError("--ledger needs --data-set")
        self._require_key_options()
        output, earlier = self.output, self.earlier
        if self.append:
            self._require_appendable()
            return
        if self.part is not None:
            raise InputError("--part needs --append")
        files = [path for path in earlier if not path.is_dir()]
        if output.exists() and output.absolute().parent.resolve() in {p.resolve() for p in earlier}:
            raise InputError(f"{output}: is the input: write to another file")
        others = (self.artifact, *files, self.key_file)
        require_rewritten(self.table, output, *others, overwrite=self.overwrite)
        if self.ledger is not None and is_stream(output):
            raise InputError("a ledger needs an output that appears when it is complete, not -")

    def _require_appendable(self) -> None:
        if self.overwrite:
            raise InputError("--append replaces nothing: remove --overwrite")
        if self.key_file is None:
            raise InputError("--append needs --key and --id-column: they make each draw repeatable")
        if is_stream(self.table) or is_stream(self.output):
            raise InputError(
                "--append reads TABLE twice and adds a file: give a file or folder, not -"
            )
        require_folder(self.output, grows=True)
        require_outside(self.output / "part", self.table)

    def _require_key_options(self) -> None:
        if self.key_file is None:
            given = {
                "--id-column": self.id_column,
                "--context": self.context,
                "--version": self.version,
            }
            alone = [name for name, value in given.items() if value is not None]
            if alone:
                raise InputError(f"{alone[0]} needs --key; create a key with labeldp keygen")
        elif self.id_column is None:
            raise InputError("--key needs --id-column, the column that names each label")
        elif self.context == "":
            raise InputError("--context must not be empty")

    def label_columns(self, certificate: Certificate) -> list[str]:
        """The label columns of the table. Raises InputError."""
        stated = certificate.label_columns
        if self.columns and len(self.columns) != len(stated):
            raise InputError(
                f"--column: got {len(self.columns)}, but the label has "
                f"{'one column' if len(stated) == 1 else f'the {len(stated)} columns {stated}'}"
            )
        return list(self.columns) or stated

    def person_bound(self, certificate: Certificate, labels: Sequence[str]) -> PersonBound | None:
        """The bound on the rows of a person; None if nothing bounds them.

        ``labels`` are the label columns of the table and of the spec. Counts the persons of earlier
        tables. Raises InputError.
        """
        stated = person_epsilon(certificate)
        column = self.person_column or (None if stated is None else stated.column)
        if stated is None or column is None:
            given = {
                "--person-column": self.person_column,
                "--order-column": self.order_column,
                "--earlier": self.earlier,
                "--beyond": self.beyond != "refuse",
            }
            alone = [name for name, value in given.items() if value]
            if alone and stated is None:
                raise InputError(
                    f"{alone[0]} needs an artifact that says how many labels a person has: compile "
                    "it with unit: person, or labels_per_user"
                )
            if alone:
                raise InputError(f"{alone[0]} needs --person-column")
            return None
        for name, what in ((column, "person"), (self.order_column, "order of rows")):
            if name is not None and is_among(name, labels):
                raise InputError(f"{name!r} is the label, which cannot be the {what}: it is secret")
        if self.beyond == "drop" and self.order_column is None:
            raise InputError(
                "--beyond drop needs --order-column: a public column says which rows of a person "
                "are the later ones"
            )
        if self.beyond == "refuse" and self.order_column is not None:
            raise InputError("--order-column needs --beyond null or --beyond drop")
        from labeldp_compile.tabular.persons import PersonBound, PersonCounts  # noqa: PLC0415

        counts = PersonCounts()
        for path in self.earlier:
            counts.seed(path, column, self.form, labels)
        return PersonBound(
            column, stated.labels, beyond=self.beyond, order=self.order_column, earlier=counts
        )


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
    "columns",
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
@click.option(
    "--person-column",
    metavar="NAME",
    help="The public column that names the person of each row (default: the one in the spec). "
    "No person gets more labels than the certificate says.",
)
@click.option(
    "--beyond",
    type=click.Choice(get_args(Beyond)),
    default="refuse",
    show_default=True,
    help="If a person has more rows: refuse the table before anything is drawn, keep the rows "
    "beyond the bound with a null instead of a label, or drop them.",
)
@click.option(
    "--order-column",
    metavar="NAME",
    help="With --beyond null or drop: the public column by which the first rows of a person "
    "are within the bound (null without it: the order of TABLE).",
)
@click.option(
    "--earlier",
    type=PATH,
    multiple=True,
    help="A table, or output, whose rows of each person were randomized before and count, too. "
    "Repeat it for each. With --append, the parts of the folder count anyway.",
)
@click.option(
    "--ledger",
    metavar="FILE",
    help="Book ε of the labels that are drawn in this ledger (a file, or postgresql://…), "
    "before the output appears.",
)
@click.option("--data-set", metavar="NAME", help="With --ledger: whose total it adds to.")
@click.option("--note", metavar="TEXT", help="With --ledger: who draws, and why.")
@text_options
@overwrite_option
@click.option("--quiet", is_flag=True, help="Show only errors, and files that a killed run left.")
def randomize_command(**options: Any) -> None:
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
    drawn. With --ledger, or a labeldp.yaml beside ARTIFACT that names a ledger, every draw is
    booked before the output appears.
    """
    request = RandomizeRequest(**options)
    project = using_project(request.artifact.parent, quiet=request.quiet)
    request = request.within(project)
    request.require_possible()
    use_small_pool()
    loaded = _verify(request, None if project is None else project.policy)
    reader = _open(request, loaded)
    if not request.quiet:
        tell(*_doubts(request, loaded))
    selection = Selection(bound=loaded.bound)
    rewriting = _rewriting(request, loaded, reader, selection)
    drawing = _drawing(request, loaded)
    with ExitStack() as stack:
        if request.append:
            assert drawing is not None
            folder = stack.enter_context(PartsFolder.held(request.output))
            part = folder.name_of(request.part, request.table)
            drawing = replace(drawing, draw=replace(drawing.draw, folder=folder.name, part=part))
            stays = _write_part(folder, drawing, rewriting, selection, loaded, request.form)
            if stays:
                tell(*(() if request.quiet else stays))
                return
        elif drawing is not None:
            # Under one key, a row is drawn once, under any name of its output. But a person may
            # have as many rows again in an output with other ids: a secret names these.
            if loaded.certificate.person is not None and loaded.key is not None:
                rewriting.naming = loaded.key.secret
            book = drawing.book
            rewriting.sealed = lambda output, rows: book(rows, rewriting.ids_name)
        selection.measure(reader)
        keyless = _KeylessDraw.of(request, loaded)
        if keyless is not None and not request.quiet:
            tell(*keyless.warning())
        rows = _run(rewriting, quiet=request.quiet)
    if keyless is not None:
        keyless.remember()
    if not request.quiet:
        said = [] if drawing is None else drawing.said
        tell(*_spent(request, loaded, rewriting, selection, said, rows))


@dataclass(frozen=True)
class _Loaded:
    """An artifact that verifies, and what draws with it.

    Attributes:
        columns: the label columns of the table.
        groups: the artifact's group columns under the table's names.
        randomize: the function that ``Rewriting`` takes.
    """

    artifact: Artifact
    columns: list[str]
    groups: tuple[GroupColumn, ...]
    bound: PersonBound | None
    key: Key | None
    context: str
    randomize: Randomize

    @property
    def certificate(self) -> Certificate:
        return self.artifact.certificate


def _verify(request: RandomizeRequest, policy: Path | None) -> _Loaded:
    data = read_artifact(request.artifact)
    with verified(request.artifact), _runtime_errors():
        key = None if request.key_file is None else Key.load(request.key_file)
        # The user is about to give it true labels, so a large file is no attack here.
        report = check_bytes(data, budget=OWN_FILES)
        artifact = report.verified()
        if policy is not None:
            from labeldp_compile.check import load_policy  # noqa: PLC0415  # pydantic
            from labeldp_compile.check.verdicts import judge_artifact  # noqa: PLC0415

            rules = load_policy(policy)
            require_met(judge_artifact(request.artifact, data, report, rules), rules)
        certificate = artifact.certificate
        columns, stated = request.label_columns(certificate), certificate.label_columns
        groups = group_columns_in_table(
            artifact.groups.columns, request.group_columns, {*stated, *columns}
        )
        bound = request.person_bound(certificate, [*columns, *stated])
        context = None if key is None else request.context or request.add_as or key_of(columns)
        group_pairs = zip(artifact.groups.columns, groups, strict=True)
        randomize = draw_function(
            # Persons are counted here, as no other host does.
            Randomizer(data, str(request.artifact), key=key, context=context, prepared=True),
            dict(zip(columns, stated, strict=True)),
            {column.name: there.name for column, there in group_pairs},
            request.version or 0,
        )
    return _Loaded(artifact, columns, groups, bound, key, context or "", randomize)


def draw_function(
    randomizer: Callable[..., Any], labels: dict[str, str], groups: dict[str, str], version: int
) -> Randomize:
    """The function that ``Rewriting`` takes.

    ``labels`` has the artifact's label columns by the table's names, ``groups`` the table's columns
    of groups by the artifact's names; ``version`` is that of the labels, with a key.
    """

    def randomize(given: Any, columns: Any = None, ids: Any = None) -> Any:
        if len(labels) > 1:
            given = {name: given[column] for column, name in labels.items()}
        if columns is not None:
            columns = {name: columns[column] for name, column in groups.items()}
        private: Any = randomizer(given, columns=columns, ids=ids, version=version)
        if not isinstance(private, dict):
            return private
        return {column: private[name] for column, name in labels.items()}

    return randomize


def _open(request: RandomizeRequest, loaded: _Loaded) -> TableReader:
    return open_table(
        request.table,
        loaded.columns,
        loaded.artifact.label,
        all_columns=True,
        id_column=request.id_column,
        group_columns=loaded.groups,
        form=request.form,
        stream=True,
        true_labels=True,
    )


def _rewriting(
    request: RandomizeRequest, loaded: _Loaded, reader: TableReader, selection: Selection
) -> Rewriting:
    # A keyed run gives the same file each time, so it records no time.
    now = None if loaded.key is not None else f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    artifact, bound = loaded.artifact, loaded.bound
    return Rewriting(
        reader,
        request.output,
        loaded.randomize,
        add_as=request.add_as,
        one_answer=len(loaded.columns) > 1 and artifact.answers_with_sets,
        whole=_whole_outputs(artifact),
        provenance=Provenance(artifact.sha256, loaded.certificate.privacy.epsilon_label, now),
        text=request.form,
        found=partial(_say_left, keyed=loaded.key is not None),
        keep=selection if selection.leaves_out else None,
        unlabelled=None if bound is None or bound.beyond == "drop" else bound.unlabelled,
        as_one=request.append,
        is_resumed=request.append,
        overwrite=request.overwrite,
    )


def _whole_outputs(artifact: Artifact) -> list[bool]:
    """Of each private column whether all outputs are whole numbers that float64 and int64 hold."""
    domain = artifact.label
    if artifact.answers_with_sets or not isinstance(domain, JointDomain):
        return [all(map(_is_whole, artifact.tables))]
    return [isinstance(part, IntegerDomain) for part in domain.parts]


def _is_whole(table: Table) -> bool:
    if isinstance(table, AdditiveRandomizer):
        parts = table.origin, table.unit
        reach = max(abs(table.low), abs(table.high)) * abs(parts[1]) + abs(parts[0])
        return all(part.is_integer() for part in parts) and reach <= _EXACT_IN_FLOAT64
    return all(
        not isinstance(value, str) and value == int(value) and abs(value) <= _EXACT_IN_FLOAT64
        for value in table.values
    )


def _drawing(request: RandomizeRequest, loaded: _Loaded) -> Drawing | None:
    """The facts that a ledger or a folder of parts needs about a draw, before anything is drawn.

    None if nothing lists or books it. Raises InputError unless the draw can be booked.
    """
    if request.ledger is None and not request.append:
        return None
    from labeldp_compile.ledger.draw_account import Draw, Drawing  # noqa: PLC0415
    from labeldp_compile.ledger.store import open_store  # noqa: PLC0415

    ledger = request.ledger
    store = None if ledger is None else open_store(ledger, by_spec=request.by_project)
    label = rational(loaded.certificate.exact.epsilon_label)
    person = loaded.certificate.parts.get("person")
    draw = Draw(
        data_set=request.data_set or "",
        column=key_of(loaded.columns),
        artifact_sha256=loaded.artifact.sha256,
        key="" if loaded.key is None else loaded.key.fingerprint,
        context=loaded.context,
        version=request.version or 0,
        unit="label" if person is None else "person",
        epsilon=label if person is None else rational(person.epsilon_label),
        epsilon_label=label,
        folder="",
        part=request.output.name,
        note=request.note or "",
    )
    drawing = Drawing(draw, store, loaded.bound)
    drawing.require()
    return drawing


def _write_part(
    folder: PartsFolder,
    drawing: Drawing,
    rewriting: Rewriting,
    selection: Selection,
    loaded: _Loaded,
    form: TextForm,
) -> list[str]:
    """Have a part of the folder written: its new rows, listed and booked before it is visible.

    If the part is there already, the lines that say so, and nothing is to be written.
    """
    name, table, key = drawing.draw.part, rewriting.table, loaded.key
    assert key is not None
    drawing.settle(folder, tell)
    rewriting.output = folder.path / name
    part = drawing.listed(rewriting.private_names, str(table.id_column))
    # Of line ends in cells was said when these were read.
    written = TextForm(form.delimiter, decimal=form.decimal, multiline_cells=True)
    selection.ids = known_ids(folder, table, key, part.columns, written)
    if selection.bound is not None:
        for path in folder.parts():
            selection.bound.earlier.seed(path, selection.bound.column, written)
    if name in folder.listed:
        rows = selection.count(table)
        return list(_part_stays(rewriting.output, folder.listed[name], part, rows))
    rewriting.keep = selection
    rewriting.sealed = folder.seal(
        name, part, key, lambda rows, digest: drawing.book(rows, digest, folder.listed)
    )
    return []


def _run(rewriting: Rewriting, *, quiet: bool) -> int:
    """Draw and write; returns the number of rows."""
    with row_progress("randomizing", rewriting.table.rows, quiet=quiet) as rewriting.progress:
        try:
            return rewriting.run()
        except InputError as error:
            if not is_stream(rewriting.output):
                raise
            raise InputError(f"{error}; the table on stdout is incomplete") from None


@contextmanager
def _runtime_errors() -> Iterator[None]:
    """Turn the runtime's errors into errors of a command."""
    try:
        yield
    except RuntimeArtifactError as error:
        raise DoesNotHoldError(str(error)) from error
    except (MissingExtraError, KeyFileError) as error:
        raise InputError(str(error)) from None


def _spent(
    request: RandomizeRequest,
    loaded: _Loaded,
    rewriting: Rewriting,
    selection: Selection,
    booked: Sequence[str],
    rows: int,
) -> Iterator[str]:
    """Lines on what was drawn, and what that spent."""
    output, artifact, certificate = rewriting.output, loaded.artifact, loaded.certificate
    epsilon = at_most(certificate.privacy.epsilon_label)
    yield f"{output}: {nulls_in_words(artifact.label)}"
    if selection.ids is not None and selection.known:
        yield f"{output}: {selection.known:,} rows are already in the folder and keep their values"
    yield from booked
    yield from (f"{output}: {line}" for line in _bound_in_words(certificate, loaded.bound))
    yield from (f"warning: {f.text}" for f in relevant(artifact.shortcomings, certificate.goal))
    yield f"{output}: {rows:,} rows, ε = {epsilon} spent on each label"
    yield from rewriting.without_label
    if artifact.answers_with_sets:
        yield f"{output}: {NUMBERS_OF_SETS}"
        yield f"{output}: labeldp report {request.artifact} --sets TABLE lists the sets"
    if loaded.key is not None:
        yield from _repetition(request, output, loaded, epsilon)
    if request.add_as is not None:
        names = ", ".join(map(repr, loaded.columns))
        yield f"{output}: still holds the true labels in {names}"


def _repetition(
    request: RandomizeRequest, output: Path, loaded: _Loaded, epsilon: str
) -> Iterator[str]:
    """Lines on what a repetition spends."""
    assert loaded.key is not None
    bound = (
        f"{output}: key {loaded.key.fingerprint}, context {loaded.context!r}, "
        f"version {request.version or 0}"
    )
    if request.append:
        yield f"{bound}: each id is drawn once, and keeps its private label if the true one changes"
        return
    yield bound
    yield (
        f"{output}: running this again with the same inputs (labels, ids, key, context, version "
        "and artifact) gives the same file and costs nothing"
    )
    yield (
        f"{output}: if labels change, raise --version for all labels, or use --append, which draws "
        f"each id once. A changed label gets a new output, which spends ε = {epsilon} again. Under "
        "the same version, the new output also shows that the label changed"
    )


def _bound_in_words(certificate: Certificate, bound: PersonBound | None) -> Iterator[str]:
    """Lines on what a person spends, and on the rows beyond the bound."""
    stated = person_epsilon(certificate)
    if stated is None:
        return
    if bound is None:
        yield (
            "warning: give --person-column. The certificate says that a person has up to "
            f"{stated.labels:,} labels, and nothing checked this"
        )
        return
    labels = "1 label" if bound.most == 1 else f"{bound.most:,} labels"
    yield (
        f"at most {labels} for each person in {bound.column!r}: ε ≤ "
        f"{at_most(stated.label)} for them, and {at_most(stated.total)} with the prior (declared)"
    )
    if bound.extra:
        what = "were left out" if bound.beyond == "drop" else "have no label"
        yield f"{bound.extra:,} rows beyond that {what}; no label decided which"


def _part_stays(output: Path, there: ListedPart, asked: ListedPart, rows: int) -> Iterator[str]:
    """Lines on a part that is there: it is neither drawn nor booked again."""
    yield f"{output}: is there already, and stays as it is; nothing was drawn"
    names = "artifact_sha256", "key", "context", "version", "data_set"
    if other := [name for name in names if getattr(there, name) != getattr(asked, name)]:
        yield f"{output}: was drawn with another {', '.join(other)}; see the manifest"
    if rows:
        yield f"{output}: {rows:,} rows of TABLE could be drawn: add them with another --part"


def _doubts(request: RandomizeRequest, loaded: _Loaded) -> Iterator[str]:
    """A line for each column whose name differs from the spec's, and one about decimal commas."""
    domains = columns_of(loaded.artifact.label)
    if not all(isinstance(domain, CategoricalDomain) for domain in domains):
        yield from request.form.comma_warning()
    for stated, column in zip(loaded.certificate.label_columns, loaded.columns, strict=True):
        if column != stated:
            yield (
                f"{request.artifact}: was compiled for the column {stated!r} but randomizes "
                f"{column!r}: check that it is the artifact for this label"
            )


@dataclass(frozen=True)
class _KeylessDraw:
    """A draw without a key, as the list in the user's own folder names it: no label is in it.

    A table is its path and the time of its last change. A copy, or a changed table, is another one.

    Attributes:
        list: JSON Lines, readable by the user alone.
        line: of this draw.
        epsilon: of each label, in words.
    """

    list: Path
    line: str
    epsilon: str

    @classmethod
    def of(cls, request: RandomizeRequest, loaded: _Loaded) -> _KeylessDraw | None:
        """None with a key, for a stream, and where a file cannot be looked at."""
        from labeldp_compile.ledger.client_key import user_config  # noqa: PLC0415

        if loaded.key is None and not is_stream(request.table):
            with suppress(OSError, InputError):
                times = [file.stat().st_mtime_ns for file in files_of(request.table)]
                draw = [str(request.table.resolve()), max(times), *loaded.columns]
                spent = at_most(loaded.certificate.privacy.epsilon_label)
                return cls(user_config().path.parent / _KEYLESS, json.dumps(draw), spent)
        return None

    def warning(self) -> Iterator[str]:
        """A line if the table was drawn from before."""
        with suppress(OSError, ValueError):
            if self.line in self.list.read_text("ascii").splitlines():
                path, _, *columns = json.loads(self.line)
                yield (
                    f"warning: {path}: keep only one private output. {', '.join(columns)} was "
                    "randomized without a key before, so anyone who sees both outputs learns more: "
                    f"this run spends ε = {self.epsilon} on each label again. With --key, a "
                    "repetition spends nothing"
                )

    def remember(self) -> None:
        """Add the draw to the list; a folder that cannot be written keeps none."""
        with suppress(OSError):
            self.list.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            with os.fdopen(os.open(self.list, flags, 0o600), "a", encoding="ascii") as file:
                file.write(f"{self.line}\n")


def _say_left(left: Path, *, keyed: bool) -> None:
    """The warning about ε of a killed run. Nobody can know whether that run had a key."""
    cost = (
        "if its labels, ids, key, version and artifact were the same, it drew the same private "
        "labels, and spent nothing more"
        if keyed
        else "it may hold other private labels for the same labels. For anyone who has seen both "
        "that file and this output, ε was spent twice. With --key, repeating a run for the same "
        "labels spends nothing"
    )
    tell(f"labeldp: {left}: was left by a run that was killed, and is removed; {cost}")
