"""What the outbox answers, as data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Optional

Status = Literal["pending", "scheduled", "attempting", "unknown", "succeeded", "failed", "cancelled"]
Cancelled = Literal["cancelled", "too_late", "already_cancelled", "already_failed", "not_found"]

FINAL = frozenset(("succeeded", "failed", "cancelled"))


@dataclass(frozen=True)
class Receipt:
    """One operation as the outbox knows it. failed means: there was no effect."""

    operation_id: str
    status: Status
    replayed: Optional[bool]  # True: it was known already, nothing was executed again; None from get
    result: Any  # what the tool answered, when succeeded
    error: Any  # {"code": …, "message": …}, when failed
    message: str  # one sentence for a model
    created_at: datetime
    compensated_by: Optional[str]
    result_expired: bool

    @property
    def final(self) -> bool:
        """Nothing more will happen by itself. Otherwise: do not send it again, do not assume failure."""
        return self.status in FINAL

    def for_model(self) -> dict[str, Any]:
        """What a tool call should return to the model: the truth, and the sentence that explains it."""
        told: dict[str, Any] = {"status": self.status, "message": self.message}
        if self.result is not None:
            told["result"] = self.result
        if self.error is not None:
            told["error"] = self.error
        return told


@dataclass(frozen=True)
class Operation(Receipt):
    """What ``get`` and ``wait`` answer."""

    tool: str
    run_id: Optional[str]
    attempts: int
    attempt_epoch: Optional[int]
    started_at: Optional[datetime]
    finished_at: Optional[datetime]
    compensates: Optional[str]
    attention: Optional[str]  # why a person must look


def _fields(row: Sequence[Any]) -> list[Any]:
    values = list(row)
    for place in (3, 4):  # result, error: as text, whatever loader the connection has for jsonb
        values[place] = None if values[place] is None else json.loads(values[place])
    return values


def read_receipt(row: Sequence[Any]) -> Receipt:
    return Receipt(*_fields(row))


def read_operation(row: Sequence[Any]) -> Operation:
    return Operation(*_fields(row))
