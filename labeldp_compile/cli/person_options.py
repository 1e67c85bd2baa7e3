"""The options of ``labeldp randomize`` that bound the rows of one person."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import click
from labeldp_verify.claims import Certificate, person_epsilon
from labeldp_verify.rounded import at_most

from labeldp_compile.cli.options import PATH, Decorated
from labeldp_compile.column_names import is_among
from labeldp_compile.errors import InputError
from labeldp_compile.tabular.person_bound import Beyond, PersonBound
from labeldp_compile.tabular.persons import PersonCounts
from labeldp_compile.text_form import TextForm


@dataclass(frozen=True)
class PersonOptions:
    """What was typed: see ``person_options``."""

    column: str | None
    beyond: Beyond
    order: str | None
    earlier: tuple[Path, ...]

    def bound(
        self, certificate: Certificate, labels: list[str], form: TextForm
    ) -> PersonBound | None:
        """The bound on the rows of a person; None if nothing bounds them.

        ``labels`` are the label columns of the table and of the spec. Counts the persons of earlier
        tables. Raises InputError.
        """
        stated = person_epsilon(certificate)
        column = self.column or (None if stated is None else stated.column)
        if stated is None or column is None:
            given = {
                "--person-column": self.column,
                "--order-column": self.order,
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
        for name, what in ((column, "person"), (self.order, "order of rows")):
            if name is not None and is_among(name, labels):
                raise InputError(f"{name!r} is the label, which cannot be the {what}: it is secret")
        if self.beyond == "drop" and self.order is None:
            raise InputError(
                "--beyond drop needs --order-column: a public column says which rows of a person "
                "are the later ones"
            )
        if self.beyond == "refuse" and self.order is not None:
            raise InputError("--order-column needs --beyond null or --beyond drop")
        counts = PersonCounts()
        for path in self.earlier:
            counts.seed(path, column, form, labels)
        return PersonBound(
            column, stated.labels, beyond=self.beyond, order=self.order, earlier=counts
        )


def person_options(command: Decorated) -> Decorated:
    """Adds the options, which the command gets as ``persons``."""

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
    @functools.wraps(command)
    def with_persons(
        person_column: str | None,
        beyond: Beyond,
        order_column: str | None,
        earlier: tuple[Path, ...],
        **others: Any,
    ) -> Any:
        options = PersonOptions(person_column, beyond, order_column, earlier)
        return command(persons=options, **others)

    return with_persons


def bound_in_words(certificate: Certificate, bound: PersonBound | None) -> Iterator[str]:
    """Lines on what a person spends, and on the rows beyond the bound."""
    stated = person_epsilon(certificate)
    if stated is None:
        return
    if bound is None:
        yield (
            f"warning: the certificate says that a person has up to {stated.labels:,} labels, but "
            "no column of persons was given, so nothing checked it: give --person-column"
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
