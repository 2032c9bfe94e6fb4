"""A function's signature as an outbox call: what sync and async have in common."""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar

from typing import ParamSpec

from ._statements import Request

P = ParamSpec("P")
Self = TypeVar("Self", bound="BaseAction[Any]")

# What the compiler makes of a body that is a docstring, `...` or `pass`.
_EMPTY = {"RESUME", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST", "NOP", "POP_TOP", "COPY_FREE_VARS",
          "GEN_START", "RETURN_GENERATOR"}


class BaseAction(Generic[P]):
    """Binds a call's arguments by name. The function's body is never run, so it must be empty."""

    def __init__(self, function: Callable[P, object], request: Request):
        for attribute in functools.WRAPPER_ASSIGNMENTS:  # what help() and inspect look at
            setattr(self, attribute, getattr(function, attribute, None))
        self.__wrapped__ = function
        self._signature = inspect.signature(function)
        self._request = request
        name = getattr(function, "__name__", repr(function))
        code = getattr(function, "__code__", None)
        if code is not None and any(i.opname not in _EMPTY for i in dis.get_instructions(code)):
            raise TypeError(f"{name} has a body, which would never be run: the daemon's tool does the "
                            "work. Leave the docstring and write `...`")
        for parameter in self._signature.parameters.values():
            if parameter.kind is parameter.VAR_POSITIONAL:
                raise TypeError(f"{name} takes *{parameter.name}: arguments of a tool have names")

    @property
    def tool(self) -> str:
        return self._request.tool

    def arguments(self, *args: P.args, **kwargs: P.kwargs) -> dict[str, object]:
        """The call as the tool's arguments, defaults filled in.

        What may be left out (``= None``) and is None is left out: said or not, it is one intent.
        """
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        named: dict[str, object] = {}
        for name, value in bound.arguments.items():
            parameter = self._signature.parameters[name]
            if parameter.kind is parameter.VAR_KEYWORD:
                named.update(value)
            elif value is not None or parameter.default is not None:
                named[name] = value
        return named

    def options(self: Self, **options: Any) -> Self:
        """The same action with parameters of ``enqueue``: run_id, occurrence, operation_id, …"""
        changed = type(self).__new__(type(self))
        changed.__dict__.update(self.__dict__)
        changed._request = replace(self._request, **options)
        return changed

    def request(self, *args: P.args, **kwargs: P.kwargs) -> Request:
        """The call as one item of ``enqueue_many``."""
        return replace(self._request, arguments=self.arguments(*args, **kwargs))


def made(kind: Callable[[Callable[P, object], Request], Any], tool: Any, options: dict[str, Any]) -> Any:
    """``@action``, ``@action()`` and ``@action("tool", …)``."""
    if callable(tool):
        return kind(tool, Request(tool.__name__))

    def decorate(function: Callable[P, object]) -> Any:
        return kind(function, Request(tool or function.__name__, **options))

    return decorate
