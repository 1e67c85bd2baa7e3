"""``labeldp redrawn``: how many labels two private outputs drew twice, at least."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from labeldp_verify.console.colour import Marked

from labeldp_compile.cli.command import command
from labeldp_compile.cli.options import PATH, json_option, text_options
from labeldp_compile.cli.output import show, tell
from labeldp_compile.text_form import TextForm

if TYPE_CHECKING:
    from labeldp_compile.tools.redrawn import Redrawn


@command(
    "redrawn",
    "labeldp redrawn monday.parquet tuesday.parquet --id-column order_id --column returned",
)
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@click.option(
    "--id-column", required=True, metavar="NAME", help="The column that names each label."
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    required=True,
    help="The private column. For a label of several columns, give it once for each.",
)
@json_option
@text_options
def redrawn_command(
    old: Path, new: Path, id_column: str, columns: tuple[str, ...], form: TextForm, as_json: bool
) -> None:
    """Count the private labels that differ between two private outputs of the same ids.

    OLD and NEW are tables of private labels (Parquet, CSV or a folder of parts). A label whose
    outputs differ was drawn twice, and spent ε twice. Two draws of one label may also agree, so the
    count is a lower bound. Never give true labels: the count would tell how many changed.
    """
    from labeldp_compile.tools.redrawn import compare  # noqa: PLC0415  # pyarrow

    found = compare(old, new, id_column, columns, form)
    for path in found.unnoted:
        tell(Marked(f"warning: {path}: does not note that these labels are private", "warning"))
    show(as_json, found.to_json, lambda: _in_words(found))


def _in_words(found: Redrawn) -> list[str]:
    """The counts, and what they mean."""
    verdict = (
        f"at least {found.differ:,} labels were drawn twice, and spent ε twice (a lower bound)"
        if found.differ
        else "no private label differs: nothing shows that a label was drawn twice, but two draws "
        "can agree"
    )
    return [
        f"{found.both:,} ids are in both outputs ({found.old:,} and {found.new:,} rows; counted)",
        f"{found.differ:,} of their private labels differ (counted)",
        verdict,
    ]
