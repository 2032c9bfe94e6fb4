"""The statements, and how a call becomes their parameters. Nothing here talks to a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Optional

from ._json import encode
from .runs import current_run

_RECEIPT = (
    "operation_id, status, replayed, result::text, error::text, message, created_at, "
    "compensated_by, result_expired"
)

ENQUEUE = (
    f"SELECT {_RECEIPT} FROM outbox.enqueue(tool => %s::text, arguments => %s::jsonb, "
    "operation_id => %s::text, run_id => %s::text, occurrence => %s::integer, "
    "priority => %s::smallint, run_at => %s::timestamptz, expires_at => %s::timestamptz, "
    "max_attempts => %s::integer, traceparent => %s::text, labels => %s::jsonb, "
    "retry_failed => %s::boolean)"
)
ENQUEUE_MANY = f"SELECT {_RECEIPT} FROM outbox.enqueue_many(%s::jsonb)"
GET = (
    f"SELECT {_RECEIPT}, tool, run_id, attempts, attempt_epoch, started_at, finished_at, "
    "compensates, attention FROM outbox.get(%s::text)"
)
CANCEL = "SELECT outbox.cancel(%s::text, %s::text)"
COMPENSATE = f"SELECT {_RECEIPT} FROM outbox.compensate(%s::text, %s::text, %s::jsonb, %s::text)"
# May this session be woken by LISTEN? Not behind a pooler, where the server's process is another
# one than the protocol named; and a caller who listens already stays subscribed afterwards.
SESSION = "SELECT pg_backend_pid(), 'outbox_done' IN (SELECT pg_listening_channels())"


@dataclass(frozen=True)
class Request:
    """One operation for ``enqueue_many``: the parameters of ``enqueue``."""

    tool: str
    arguments: Optional[Mapping[str, object]] = None
    operation_id: Optional[str] = None
    run_id: Optional[str] = None
    occurrence: int = 1
    priority: int = 0
    run_at: Optional[datetime] = None
    expires_at: Optional[datetime] = None
    max_attempts: Optional[int] = None
    traceparent: Optional[str] = None
    labels: Optional[Mapping[str, str]] = None
    retry_failed: bool = False

    def checked(self) -> dict[str, Any]:
        """The members as outbox.enqueue takes them; arguments and labels stay as they are."""
        members = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.run_id is None:
            members["run_id"] = current_run()
        for name in ("run_at", "expires_at"):
            time = members[name]
            if time is not None and time.tzinfo is None:
                raise ValueError(f"{name} has no time zone; pass e.g. datetime.now(timezone.utc)")
        return members


def json_object(value: Optional[Mapping[str, object]], name: str) -> str:
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{name} is a {type(value).__name__}: pass a mapping of names to values")
    return encode(value or {}, name)


def enqueue_parameters(request: Request) -> list[Any]:
    members = request.checked()
    members["arguments"] = json_object(request.arguments, "arguments")
    members["labels"] = None if request.labels is None else json_object(request.labels, "labels")
    return list(members.values())


def many_parameters(requests: Iterable[Request]) -> list[Any]:
    items = []
    for place, request in enumerate(requests):
        members = {k: v for k, v in request.checked().items() if v is not None}
        for name in ("run_at", "expires_at"):
            if name in members:
                members[name] = members[name].isoformat()
        items.append(encode(members, f"requests[{place}]"))
    return ["[" + ",".join(items) + "]"]


def compensate_parameters(
    operation_id: str, name: Optional[str], arguments: Optional[Mapping[str, object]], reason: Optional[str]
) -> list[Any]:
    return [operation_id, name, json_object(arguments, "arguments"), reason]
