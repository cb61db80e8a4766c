"""What stands beside the names of parameters and fields, also where some of it has no value yet.

Python 3.14 evaluates annotations when somebody asks for them, and fails where one names what comes
later in its module, or what is imported for type checkers only. Here that is a reference, as if it
were written in quotes.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, Final

from typing_extensions import Format

__all__ = ["annotations_of", "signature_of"]

_IS_LAZY: Final = sys.version_info >= (3, 14)
_FORMAT: Final[dict[str, Any]] = {"format": Format.FORWARDREF} if _IS_LAZY else {}
_ANNOTATION_FORMAT: Final = {f"annotation_{key}": value for key, value in _FORMAT.items()}


def annotations_of(owner: Callable[..., Any]) -> dict[str, Any]:
    """Give the annotations of a function, or those in the body of a class.

    >>> def greet(name: "Later", loud: bool) -> None: ...
    >>> annotations_of(greet)
    {'name': 'Later', 'loud': <class 'bool'>, 'return': None}
    """
    return inspect.get_annotations(owner, **_FORMAT)


def signature_of(function: Callable[..., Any], **options: Any) -> inspect.Signature:
    """Give the signature of whatever can be called.

    Args:
        function: The function.
        **options: What `inspect.signature` takes.

    Raises:
        TypeError: It cannot be called.
        ValueError: It does not tell, as some functions of C do not.

    >>> str(signature_of(lambda metadata, input: None))
    '(metadata, input)'
    """
    return inspect.signature(function, **_ANNOTATION_FORMAT, **options)
