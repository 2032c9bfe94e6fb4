"""The calls on a psycopg.AsyncConnection; each is told in the module of the same names."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Optional, TypeVar, Union, cast, overload

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from . import _statements as sql
from ._action import BaseAction, P, made
from ._sync import RETRYABLE, _ignore, _own_errors, refuse_open_transaction, retry_delay
from .receipt import Cancelled, Operation, Receipt, read_operation, read_receipt
from .runs import current_run, run

__all__ = ["Action", "action", "cancel", "compensate", "current_run", "enqueue", "enqueue_many",
           "enqueue_request", "get", "retry_transaction", "run", "wait"]

T = TypeVar("T")
Database = Union["psycopg.AsyncConnection[Any]", "psycopg.AsyncCursor[Any]"]


async def _rows(db: Database, statement: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
    connection = db.connection if isinstance(db, psycopg.AsyncCursor) else db
    with _own_errors():
        async with connection.cursor(binary=True, row_factory=tuple_row) as cursor:
            await cursor.execute(statement, parameters, prepare=False)
            return await cursor.fetchall()


async def enqueue(
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
    request = sql.Request(
        tool, arguments, operation_id, run_id, occurrence, priority, run_at, expires_at,
        max_attempts, traceparent, labels, retry_failed,
    )
    return await enqueue_request(db, request)


async def enqueue_request(db: Database, request: sql.Request) -> Receipt:
    return read_receipt((await _rows(db, sql.ENQUEUE, sql.enqueue_parameters(request)))[0])


async def enqueue_many(db: Database, requests: Iterable[sql.Request]) -> list[Receipt]:
    rows = await _rows(db, sql.ENQUEUE_MANY, sql.many_parameters(requests))
    return [read_receipt(row) for row in rows]


async def get(db: Database, operation_id: str) -> Optional[Operation]:
    rows = await _rows(db, sql.GET, [operation_id])
    return read_operation(rows[0]) if rows else None


async def cancel(db: Database, operation_id: str, reason: Optional[str] = None) -> Cancelled:
    return cast(Cancelled, (await _rows(db, sql.CANCEL, [operation_id, reason]))[0][0])


async def compensate(
    db: Database,
    operation_id: str,
    name: Optional[str] = None,
    arguments: Optional[Mapping[str, object]] = None,
    reason: Optional[str] = None,
) -> Receipt:
    parameters = sql.compensate_parameters(operation_id, name, arguments, reason)
    return read_receipt((await _rows(db, sql.COMPENSATE, parameters))[0])


async def wait(
    db: psycopg.AsyncConnection[Any], operation_id: str, timeout: float = 30.0, *, poll: float = 1.0
) -> Optional[Operation]:
    refuse_open_transaction(db, "wait")
    end = time.monotonic() + timeout
    pause = min(0.02, poll)
    async with _listening(db, timeout > 0) as hints:
        while True:
            async with db.transaction():
                seen = await get(db, operation_id)
            left = end - time.monotonic()
            if (seen is not None and seen.final) or left <= 0:
                return seen
            await _sleep(db, min(pause, left), hints)
            pause = min(pause * 1.5, poll)


@asynccontextmanager
async def _listening(db: psycopg.AsyncConnection[Any], wanted: bool) -> AsyncIterator[bool]:
    ours = hints = False
    if wanted:
        try:
            async with db.transaction():
                pid, already = (await _rows(db, sql.SESSION, []))[0]
                hints = bool(pid == db.info.backend_pid)
                ours = hints and not already
                if ours:
                    await db.execute("LISTEN outbox_done")
        except psycopg.OperationalError:
            raise
        except psycopg.Error:
            ours = hints = False
    db.add_notify_handler(_ignore)
    try:
        yield hints
    finally:
        db.remove_notify_handler(_ignore)
        if ours and not db.closed and db.info.transaction_status == TransactionStatus.IDLE:
            async with db.transaction():
                await db.execute("UNLISTEN outbox_done")


async def _sleep(db: psycopg.AsyncConnection[Any], seconds: float, hints: bool) -> None:
    if not hints:
        await asyncio.sleep(seconds)
        return
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    descriptor = db.fileno()
    loop.add_reader(descriptor, readable.set)  # only while no statement runs: psycopg has its own
    try:
        await asyncio.wait_for(readable.wait(), seconds)
        await asyncio.sleep(min(0.01, seconds))
    except asyncio.TimeoutError:
        pass
    finally:
        loop.remove_reader(descriptor)


async def retry_transaction(
    db: psycopg.AsyncConnection[Any],
    work: Callable[[psycopg.AsyncConnection[Any]], Awaitable[T]],
    attempts: int = 10,
) -> T:
    refuse_open_transaction(db, "retry_transaction")
    for attempt in range(1, attempts):
        try:
            async with db.transaction():
                return await work(db)
        except RETRYABLE:
            await asyncio.sleep(retry_delay(attempt))
    async with db.transaction():
        return await work(db)


class Action(BaseAction[P]):
    async def __call__(self, db: Database, /, *args: P.args, **kwargs: P.kwargs) -> Receipt:
        return await enqueue_request(db, self.request(*args, **kwargs))


@overload
def action(tool: Callable[P, object]) -> Action[P]: ...
@overload
def action(tool: Optional[str] = None, **options: Any) -> Callable[[Callable[P, object]], Action[P]]: ...
def action(tool: Any = None, **options: Any) -> Any:
    return made(Action, tool, options)
