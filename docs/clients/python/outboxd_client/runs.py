"""The run: what makes the same call the same intent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Optional

_current: ContextVar[Optional[str]] = ContextVar("outboxd_run", default=None)


@contextmanager
def run(run_id: str) -> Iterator[str]:
    """Enqueues inside belong to this run, unless they name another. Follows asyncio tasks.

    The id must be the same when the run is resumed after a crash: store it with the run. A new one
    for each attempt would make every retry a new action.
    """
    if not isinstance(run_id, str) or not run_id:
        raise ValueError("run_id must be a text that names this run, the same whenever it is resumed")
    token = _current.set(run_id)
    try:
        yield run_id
    finally:
        _current.reset(token)


def current_run() -> Optional[str]:
    return _current.get()
