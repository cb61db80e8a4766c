"""What the SDKs of OpenAI and Anthropic share: one method `create`, whole or with `stream=True`."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from .._schema.signature import signature_of
from ._prepared import PreparedBody
from ._sdk_model import Methods, SdkModel


class CreateModel(SdkModel):
    """Answer requests by the method `create` of a resource of the client."""

    _required: ClassVar[frozenset[str]]
    """The request fields without which `create` cannot be called."""

    @abstractmethod
    def _create(self, client: Any) -> Any:
        """Find the method; an AttributeError where it is not."""

    def _methods(self, client: Any) -> tuple[Methods | None, Methods | None]:
        create = self._create(client)
        methods = Methods(create, partial(create, stream=True))
        parameters = signature_of(create).parameters
        self._known = frozenset(parameters)
        self._takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        return (None, methods) if _is_async(client, create) else (methods, None)

    def _arguments(self, prepared: PreparedBody) -> dict[str, Any]:
        """Share the body out between the parameters of `create` and `extra_body`.

        What the user gave as extras, and what this version of the SDK has no parameter for, goes
        into `extra_body`, which the SDK adds to the request as it is.
        """
        arguments: dict[str, Any] = {"model": self.model}
        rest: dict[str, Any] = {}
        for key, value in prepared.body.items():
            is_extra = key in prepared.extra
            # What the user replaced, such as `messages`, is given twice: `create` cannot be called
            # without it, and `extra_body` then puts the user's in its place.
            if key in self._required or (not is_extra and (self._takes_any or key in self._known)):
                arguments[key] = value
            if is_extra or key not in arguments:
                rest[key] = value
        if rest:
            arguments["extra_body"] = rest
        return arguments

    def _dump(self, sent: Any) -> Any:
        to_dict = getattr(sent, "to_dict", None)
        # The SDK would warn of every field in which a host departs from its types.
        return sent if to_dict is None else to_dict(mode="json", warnings=False)


def _is_async(client: Any, method: Callable[..., Any]) -> bool:
    """Tell whether a client is an async one, also where a tracer has wrapped its method."""
    # The SDK's own `create` of an async client; below, a stand-in or a wrapper that is not one by
    # name.
    if inspect.iscoroutinefunction(inspect.unwrap(method)):
        return True
    return hasattr(client, "__aenter__") and not hasattr(client, "__enter__")
