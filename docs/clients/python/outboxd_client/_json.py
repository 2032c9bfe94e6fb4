"""JSON as the outbox wants it: exact numbers, and nothing that Postgres or a key would choke on."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, time
from decimal import Decimal


def encode(value: object, path: str = "arguments") -> str:
    """JSON text of plain data: None, bool, int, float, Decimal, str, list, tuple, mapping of str.

    Raises TypeError or ValueError with the place, before anything is sent: an error of the server
    would abort the caller's transaction.
    """
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{path} is {value}: JSON has no such number")
        return float.__repr__(value)
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"{path} is {value}: JSON has no such number")
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(_member(k, v, path) for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(encode(v, f"{path}[{i}]") for i, v in enumerate(value)) + "]"
    if isinstance(value, (date, time)):  # datetime is a date
        raise TypeError(
            f"{path} is a {type(value).__name__}: pass text. Fix it when the step is decided; "
            "a time taken anew at every retry makes every retry a new action"
        )
    raise TypeError(f"{path} is a {type(value).__name__}: pass str, int, float, Decimal, bool, None, list or dict")


def _member(key: object, value: object, path: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{path} has the key {key!r}: keys of a JSON object are str")
    return f"{_text(key, path)}:{encode(value, f'{path}.{key}')}"


def _text(value: str, path: str) -> str:
    if "\0" in value:
        raise ValueError(f"{path} contains a NUL character, which Postgres cannot store")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{path} contains half of a surrogate pair, which is no character") from None
    return json.dumps(value, ensure_ascii=False)
