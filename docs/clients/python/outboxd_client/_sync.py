"""The calls on a psycopg.Connection. ``aio`` has the same on an AsyncConnection."""

from __future__ import annotations

import random
import selectors
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Optional, TypeVar, Union, cast, overload

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from . import _statements as sql
from ._action import BaseAction, P, made
from .errors import InTransaction, refused
from .receipt import Cancelled, Operation, Receipt, read_operation, read_receipt

T = TypeVar("T")
Database = Union["psycopg.Connection[Any]", "psycopg.Cursor[Any]"]


@contextmanager
def _own_errors() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        mine = refused(error)
        if mine is None:
            raise
        raise mine from error


def _connection(db: Database) -> psycopg.Connection[Any]:
    # A cursor of ours on the caller's connection: same transaction, whatever rows the caller likes.
    return db.connection if isinstance(db, psycopg.Cursor) else db


def _rows(db: Database, statement: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
    # Binary: times as text depend on the session's DateStyle.
    with _own_errors(), _connection(db).cursor(binary=True, row_factory=tuple_row) as cursor:
        # Never prepared: behind a pooler in transaction mode such a name belongs to somebody else.
        return cursor.execute(statement, parameters, prepare=False).fetchall()


def enqueue(
    db: Database,
    tool: str,
    arguments: Optional[Mapping[str, object]] = None,
    *,
    operation_id: Optional[str] = None,
    run_id: Optional[str] = None,
    occurrence: int = 1,
    priority: int = 0,
    run_at: Optional[datetime] = None,
    expires_at: Optional[datetime] = None,
    max_attempts: Optional[int] = None,
    traceparent: Optional[str] = None,
    labels: Optional[Mapping[str, str]] = None,
    retry_failed: bool = False,
) -> Receipt:
    """Records the intent in the caller's transaction; it exists when the caller commits.

    The id is ``operation_id``, or derived from tool, arguments and the run (``run_id``, or that of
    ``with run(…)``). What is known already is replayed: ``receipt.replayed``, nothing runs again.
    """
    request = sql.Request(
        tool, arguments, operation_id, run_id, occurrence, priority, run_at, expires_at,
        max_attempts, traceparent, labels, retry_failed,
    )
    return enqueue_request(db, request)


def enqueue_request(db: Database, request: sql.Request) -> Receipt:
    return read_receipt(_rows(db, sql.ENQUEUE, sql.enqueue_parameters(request))[0])


def enqueue_many(db: Database, requests: Iterable[sql.Request]) -> list[Receipt]:
    """All or none of them, answered in their order."""
    return [read_receipt(row) for row in _rows(db, sql.ENQUEUE_MANY, sql.many_parameters(requests))]


def get(db: Database, operation_id: str) -> Optional[Operation]:
    """The operation as it is now; None when the id is unknown."""
    rows = _rows(db, sql.GET, [operation_id])
    return read_operation(rows[0]) if rows else None


def cancel(db: Database, operation_id: str, reason: Optional[str] = None) -> Cancelled:
    """Takes back what has not been attempted. too_late: it may happen, or has happened."""
    return cast(Cancelled, _rows(db, sql.CANCEL, [operation_id, reason])[0][0])


def compensate(
    db: Database,
    operation_id: str,
    name: Optional[str] = None,
    arguments: Optional[Mapping[str, object]] = None,
    reason: Optional[str] = None,
) -> Receipt:
    """Undoes an operation by the tool's named compensation, itself an operation that runs once."""
    parameters = sql.compensate_parameters(operation_id, name, arguments, reason)
    return read_receipt(_rows(db, sql.COMPENSATE, parameters)[0])


def wait(
    db: psycopg.Connection[Any], operation_id: str, timeout: float = 30.0, *, poll: float = 1.0
) -> Optional[Operation]:
    """The operation when it is final, or as it is when ``timeout`` (seconds) has passed.

    Running out of time raises nothing: look at ``final``. None when the id is unknown to the end.
    Asks in short transactions of its own, at least every ``poll`` seconds, and is woken earlier by
    LISTEN where the session allows it. Raises InTransaction within an open transaction: one that
    has enqueued would wait for itself.
    """
    refuse_open_transaction(db, "wait")
    end = time.monotonic() + timeout
    pause = min(0.02, poll)
    with _listening(db, timeout > 0) as hints:
        while True:
            with db.transaction():
                seen = get(db, operation_id)
            left = end - time.monotonic()
            if (seen is not None and seen.final) or left <= 0:
                return seen
            _sleep(db, min(pause, left), hints)
            pause = min(pause * 1.5, poll)


def refuse_open_transaction(db: Any, what: str) -> None:
    if db.info.transaction_status != TransactionStatus.IDLE:
        raise InTransaction(
            f"{what} needs a connection without an open transaction: what this one has enqueued "
            "exists for the daemon when it is committed. Commit first (leave the `with "
            "db.transaction()` block), or pass another connection"
        )


@contextmanager
def _listening(db: psycopg.Connection[Any], wanted: bool) -> Iterator[bool]:
    ours = hints = False
    if wanted:
        try:
            with db.transaction():
                pid, already = _rows(db, sql.SESSION, [])[0]
                hints = bool(pid == db.info.backend_pid)
                ours = hints and not already
                if ours:
                    db.execute("LISTEN outbox_done")
        except psycopg.OperationalError:
            raise
        except psycopg.Error:
            ours = hints = False  # a standby, say: the poll is the truth
    db.add_notify_handler(_ignore)  # else a notification may wait for a later notifies() of the caller
    try:
        yield hints
    finally:
        db.remove_notify_handler(_ignore)
        if ours and not db.closed and db.info.transaction_status == TransactionStatus.IDLE:
            with db.transaction():
                db.execute("UNLISTEN outbox_done")


def _ignore(_: psycopg.Notify) -> None:
    """The poll that follows reads the truth."""


def _sleep(db: psycopg.Connection[Any], seconds: float, hints: bool) -> None:
    if not hints:
        time.sleep(seconds)
        return
    with selectors.DefaultSelector() as selector:
        selector.register(db.fileno(), selectors.EVENT_READ)
        if selector.select(seconds):
            time.sleep(min(0.01, seconds))  # at most a hundred looks a second, however much is done


RETRYABLE = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)


def retry_transaction(
    db: psycopg.Connection[Any], work: Callable[[psycopg.Connection[Any]], T], attempts: int = 10
) -> T:
    """Runs ``work(db)`` in a transaction, and again after 40001 and 40P01, as Postgres wants it.

    ``work`` must read anew what it decides on. The ids stay the same, so nothing happens twice.
    """
    refuse_open_transaction(db, "retry_transaction")
    for attempt in range(1, attempts):
        try:
            with db.transaction():
                return work(db)
        except RETRYABLE:
            time.sleep(retry_delay(attempt))
    with db.transaction():
        return work(db)


def retry_delay(attempt: int) -> float:
    return random.uniform(0.0, min(1.0, 0.01 * 2**attempt))


class Action(BaseAction[P]):
    def __call__(self, db: Database, /, *args: P.args, **kwargs: P.kwargs) -> Receipt:
        return enqueue_request(db, self.request(*args, **kwargs))


@overload
def action(tool: Callable[P, object]) -> Action[P]: ...
@overload
def action(tool: Optional[str] = None, **options: Any) -> Callable[[Callable[P, object]], Action[P]]: ...
def action(tool: Any = None, **options: Any) -> Any:
    """Makes a signature an outbox call: ``create_ticket(db, title="disk full")`` enqueues.

    The tool's name is the function's, or given. ``options`` are those of ``enqueue``. The body is
    not run; write ``...``.
    """
    return made(Action, tool, options)
