"""The ledger in which ``randomize`` books what it draws, before anybody sees it."""

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.book import Ledger, in_transaction
from labeldp_compile.ledger.draws import OUTPUT, Draw
from labeldp_compile.ledger.entries import Entry, require_name
from labeldp_compile.ledger.store import Store

_MAX_NOTE = 1000


class DrawAccount:
    """The ledger in which one run books what it draws."""

    def __init__(self, store: Store, draw: Draw) -> None:
        """Raises InputError for a name or note that the ledger cannot hold; opens nothing."""
        require_name("--data-set", draw.data_set)
        if len(draw.note) > _MAX_NOTE or any("\ud800" <= c <= "\udfff" for c in draw.note):
            raise InputError(f"--note: expected at most {_MAX_NOTE:,} characters of valid UTF-8")
        self._store, self._draw = store, draw

    @property
    def name(self) -> str:
        """The ledger's, for messages: without a password."""
        return self._store.name

    def require(self) -> None:
        """Raise InputError unless the ledger can be used; before anything is drawn."""
        in_transaction(self._store, lambda ledger: None)

    def book(self, rows: int, persons: int = 0) -> Entry | None:
        """Append the draw of these rows; None if the ledger has it already. Raises InputError.

        It is on the disk when this returns.
        """
        facts = {**self._draw.facts(), "rows": rows, "persons": persons}

        def append(ledger: Ledger) -> Entry | None:
            if self._draw.key:
                for entry in ledger.entries:
                    same = entry.kind == "draw" and all(
                        entry.facts[name] == facts[name] for name in OUTPUT
                    )
                    if same and entry.facts["rows"] >= rows and entry.facts["persons"] >= persons:
                        return None
            return ledger.append("draw", facts)

        return in_transaction(self._store, append)
