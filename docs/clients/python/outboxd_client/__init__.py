"""A thin client of outboxd on psycopg 3. ``outboxd_client.aio`` is the same for asyncio.

Every call but ``wait`` and ``retry_transaction`` joins the transaction of the connection (or cursor)
it is given, and neither commits nor opens one.
"""

from . import aio
from ._statements import Request
from ._sync import (
    Action, action, cancel, compensate, enqueue, enqueue_many, enqueue_request, get,
    retry_transaction, wait,
)
from .errors import BadRequest, IdConflict, InTransaction, OutboxError, ResultExpired, TooLarge, UnknownTool
from .receipt import FINAL, Cancelled, Operation, Receipt, Status
from .runs import current_run, run

__all__ = [
    "Action", "BadRequest", "Cancelled", "FINAL", "IdConflict", "InTransaction", "Operation",
    "OutboxError", "Receipt", "Request", "ResultExpired", "Status", "TooLarge", "UnknownTool",
    "action", "aio", "cancel", "compensate", "current_run", "enqueue", "enqueue_many",
    "enqueue_request", "get", "retry_transaction", "run", "wait",
]
