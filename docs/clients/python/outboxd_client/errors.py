"""What the outbox refuses, as exceptions. DETAIL says what is wrong, HINT the way out."""

from __future__ import annotations

from typing import Optional

import psycopg


class OutboxError(psycopg.DatabaseError):
    """A request that the outbox refused.

    Like every SQL error it aborts the transaction: roll back, or to a savepoint
    (``with db.transaction():`` around the call). A duplicate is not an error.
    """

    def __init__(self, message: str, detail: Optional[str] = None, hint: Optional[str] = None):
        super().__init__("\n".join(part for part in (message, detail, hint) if part))
        self.message = message
        self.detail = detail
        self.hint = hint


class BadRequest(OutboxError):
    """OB400: neither operation_id nor run_id, a limit, a missing member."""

    sqlstate = "OB400"


class UnknownTool(OutboxError):
    """OB404: no daemon has published such a tool, the tool has no such compensation, or nothing is recorded under the id to compensate."""

    sqlstate = "OB404"


class ResultExpired(OutboxError):
    """OB410: a compensation needs the original's result, and that was pruned."""

    sqlstate = "OB410"


class TooLarge(OutboxError):
    """OB413: the arguments exceed their limit."""

    sqlstate = "OB413"


class IdConflict(OutboxError):
    """OB422: this explicit id is recorded with another tool or other arguments."""

    sqlstate = "OB422"


class InTransaction(RuntimeError):
    """The call needs a connection without an open transaction."""


_BY_STATE: dict[str, type[OutboxError]] = {
    str(kind.sqlstate): kind for kind in (BadRequest, UnknownTool, ResultExpired, TooLarge, IdConflict)
}


def refused(error: psycopg.Error) -> Optional[OutboxError]:
    """The outbox's own error in place of the driver's; None if it is not the outbox's."""
    state = error.diag.sqlstate or ""
    if not state.startswith("OB"):
        return None
    kind = _BY_STATE.get(state, OutboxError)
    mine = kind(error.diag.message_primary or str(error), error.diag.message_detail, error.diag.message_hint)
    mine.sqlstate = state
    return mine
