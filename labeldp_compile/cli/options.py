"""Options and arguments that several commands share, and how their texts are read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem
from labeldp_verify.budget import DEFAULT_BUDGET, Budget
from labeldp_verify.strict import read_decimal, read_whole

from labeldp_compile.errors import InputError
from labeldp_compile.tabular.formats import (
    TextForm,
    read_decimal_mark,
    read_delimiter,
    read_encoding,
)

if TYPE_CHECKING:
    from labeldp_verify import Certificate
    from labeldp_verify.signature import Signed

    from labeldp_compile.signing import PrivateKey

Decorated = Callable[..., Any]
PATH = click.Path(path_type=Path)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
quiet_option = click.option("--quiet", is_flag=True, help="Show results and errors only.")
verbose_option = click.option("--verbose", "-v", is_flag=True, help="Show all details.")
prepared_option = click.option(
    "--prepared",
    is_flag=True,
    help="For an artifact with a rule about rows (the most rows of a person): the rows meet it. "
    "Only labeldp randomize enforces it.",
)


def require_prepared_rows(certificate: Certificate, file: Path, *, prepared: bool) -> None:
    """Raise InputError if the artifact FILE has rules about rows, unless they are ``prepared``."""
    if prepared:
        return
    from labeldp_runtime import UnpreparedRowsError  # noqa: PLC0415  # numpy
    from labeldp_runtime.artifact_file import require_prepared  # noqa: PLC0415

    try:
        require_prepared(certificate.to_json(), str(file), "if your rows meet it, say --prepared")
    except UnpreparedRowsError as error:
        raise InputError(str(error)) from None


overwrite_option = click.option("--overwrite", is_flag=True, help="Replace an output that exists.")
written_option = click.option(
    "-o",
    "--output",
    "directory",
    type=PATH,
    required=True,
    help="Directory for NAME.onnx and NAME.certificate.json.",
)
sign_option = click.option(
    "--sign",
    "key",
    type=PATH,
    help="Also sign the whole file with this key (PEM). An Ed25519 key writes NAME.onnx.sig, a "
    "P-256 key NAME.onnx.sigstore.json (OpenSSF model signing).",
)


def signing_key(path: Path | None) -> PrivateKey | None:
    """The private key in this file, if one is given. Raises InputError."""
    if path is None:
        return None
    from labeldp_compile.signing import read_private_key  # noqa: PLC0415  # cryptography

    return read_private_key(path)


def any_file(ctx: click.Context, parameter: click.Parameter, start: str) -> list[CompletionItem]:
    """Let the shell complete an argument as a file, although it may hold more than a name."""
    return [CompletionItem(start, type="file")]


class Whole(click.IntRange):
    """A whole number in a range, in ASCII digits: click's own takes "1_0" as 10."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; a usage error for anything else."""
        try:
            whole = read_whole(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(f"{error}, got {value!r}", param, ctx)
        return super().convert(whole, param, ctx)


def decimal_of(option: str, text: str) -> Decimal:
    """The number of an option, exactly. Raises InputError, which names the option."""
    try:
        return read_decimal(text)
    except ValueError as error:
        raise InputError(f"{option}: {error}, got {text!r}") from None


def _reading(read: Callable[[str], Any], default: Any = None) -> Callable[..., Any]:
    """A callback that reads the text of an option; what ``read`` refuses is a usage error."""

    def callback(ctx: click.Context, parameter: click.Parameter, text: str | None) -> Any:
        try:
            return default if text is None else read(text)
        except (ValueError, InputError) as error:
            raise click.BadParameter(str(error).removeprefix("--budget: ")) from None

    return callback


budget_option = click.option(
    "--budget",
    metavar="SECONDS,BYTES",
    callback=_reading(Budget.parse, DEFAULT_BUDGET),
    help=f"Limits for verifying FILE, as in 60,8GB (default: {DEFAULT_BUDGET}).",
)
test_seed_option = click.option(
    "--insecure-test-seed",
    "test_seed",
    type=Whole(min=0),
    help="Seed the noise of the prior, for tests: the output says INSECURE and never verifies.",
)
private_columns_option = click.option(
    "--column",
    "columns",
    multiple=True,
    help="The private column. Default: the label column of the spec. For a label of several "
    "columns, give it once for each.",
)
group_option = click.option(
    "--group",
    metavar="VALUE[,VALUE…]",
    help="If the artifact has a table for each group: use the table of this group. other is the "
    "table of all rows that are not listed.",
)


def _by_name(
    ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, str]:
    if not given:
        return {}
    from labeldp_compile.tabular.columns import ONLY  # noqa: PLC0415  # pyarrow

    columns = {}
    for text in given:
        name, equals, column = text.partition("=")
        name, column = (name, column) if equals else (ONLY, text)
        if not column or name in columns:
            raise click.BadParameter(f"{text}: expected COLUMN, or NAME=COLUMN once for each NAME")
        columns[name] = column
    return columns


group_column_option = click.option(
    "--group-column",
    "group_columns",
    multiple=True,
    callback=_by_name,
    metavar="[NAME=]COLUMN",
    help="If the artifact has a table for each group: the column of TABLE that holds the groups "
    "(default: the name in the certificate). For several columns, repeat NAME=COLUMN.",
)


TEXT_FORM = ("delimiter", "encoding", "decimal", "multiline_cells")


def text_options(command: Decorated) -> Decorated:
    """Adds the options of a text table, which the command gets as ``form``."""

    @click.option(
        "--delimiter",
        metavar="C",
        callback=_reading(read_delimiter),
        help="CSV: the character between cells, such as ';' (default: a comma; a tab in .tsv).",
    )
    @click.option(
        "--encoding",
        metavar="NAME",
        callback=_reading(read_encoding),
        help="CSV: the encoding of TABLE, such as latin-1 (default: utf-8).",
    )
    @click.option(
        "--decimal",
        metavar="C",
        callback=_reading(read_decimal_mark),
        help="CSV: the decimal mark of numbers, . or , (default: a point).",
    )
    @click.option(
        "--multiline-cells",
        is_flag=True,
        help="CSV: quoted cells that are no label are meant to contain line ends. Without this "
        "they are named, and refused where they may hide rows.",
    )
    @functools.wraps(command)
    def with_form(
        delimiter: str | None,
        encoding: str | None,
        decimal: str | None,
        multiline_cells: bool,
        **others: Any,
    ) -> Any:
        return command(form=TextForm(delimiter, encoding, decimal, multiline_cells), **others)

    return with_form


@dataclass(frozen=True)
class SignatureFiles:
    """How to check an artifact's signature: not at all, with a key, or with a key and a file."""

    public_key: Path | None
    signature: Path | None

    def signed(self, file: Path) -> Signed | None:
        """The signature to check for this file; None without a key. Raises InputError."""
        if self.public_key is None:
            return None
        from labeldp_verify.signature import read_signed_beside  # noqa: PLC0415  # cryptography

        return read_signed_beside(file, self.public_key, self.signature)


def signature_options(command: Decorated) -> Decorated:
    """Adds ``--public-key`` and ``--signature``, which the command gets as ``signing``."""

    @click.option(
        "--public-key",
        type=PATH,
        help="Also check the signature of FILE with this key (PEM; Ed25519 or P-256).",
    )
    @click.option(
        "--signature",
        type=PATH,
        help="The signature file (default: FILE.sig, or FILE.sigstore.json for a P-256 key). Needs "
        "--public-key.",
    )
    @functools.wraps(command)
    def with_files(public_key: Path | None, signature: Path | None, **others: Any) -> Any:
        if signature is not None and public_key is None:
            raise click.UsageError("--signature needs --public-key")
        return command(signing=SignatureFiles(public_key, signature), **others)

    return with_files


def require_form(form: str, forms: Mapping[str, Collection[str]]) -> None:
    """Raise InputError if the running command was given an option of other forms only.

    ``forms`` has names of parameters for each form, which it describes in words.
    """
    ctx = click.get_current_context()
    for parameter in ctx.command.params:
        name = parameter.name or ""
        its_forms = [words for words, names in forms.items() if name in names]
        given = ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
        if its_forms and form not in its_forms and given:
            option = max(parameter.opts, key=len)
            raise InputError(f"{option} is for {' or '.join(its_forms)}, not for {form}")
