"""The map from the columns of public groups to tables, as a certificate states it."""

from labeldp_verify.claims import Certificate
from labeldp_verify.decode.file import DecodeError, demand
from labeldp_verify.forms import GroupColumn, Groups
from labeldp_verify.forms.groups import check_groups


def read_groups(certificate: Certificate) -> Groups:
    """The map from columns to tables that a certificate states; the rebuilt graph proves it."""
    stated = certificate.groups
    if stated is None:
        return Groups()
    columns = tuple(
        GroupColumn(
            column.name,
            None if column.values is None else tuple(column.values),
            None if column.bands is None else tuple(column.bands),
        )
        for column in stated.columns
    )
    demand(len(columns) > 0, "there are groups, but no column")
    own = len(certificate.tables) - 1
    try:
        listed = stated.table_of_cell
        cells = range(own) if listed is None else listed
        demand(
            all(type(table) is int for table in cells), "the table of a group is not a whole number"
        )
        groups = Groups(columns, tuple(cells), own)
        check_groups(groups)
    except ValueError as error:
        raise DecodeError(f"the groups: {error}") from None
    demand(
        listed is None or not groups.is_plain,
        "the map of groups to tables must be omitted where each group has its own table",
    )
    return groups
