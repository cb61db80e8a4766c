"""The selector class of one toolset, which also is a field type for pydantic models."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic_core import PydanticCustomError, core_schema

from .._call.selector import FnSelector, Selector
from .._call.spec import FnSpec, ToolSpec


def selector_type(toolset: type[Any], base: type[Any] | None = None) -> type[Any]:
    """Make the class of a toolset's selectors.

    Args:
        toolset: The toolset, or the bound view of one.
        base: For a view, the class of the outer toolset's selectors.
    """
    return type(
        f"{toolset.__name__}Selector",
        (base or _ToolsetSelector,),
        {
            "__slots__": (),
            "__module__": toolset.__module__,
            "__qualname__": f"{toolset.__qualname__}.Selector",
            "of_toolset": toolset,
        },
    )


class _ToolsetSelector(Selector[Any, Any]):
    """Selector of one toolset: as a field, its values are wire names."""

    __slots__ = ()

    of_functions: ClassVar[type[Any] | None] = None
    """The subclass for function tools, made with the first of them."""

    @classmethod
    def kind_for(cls, spec: ToolSpec[Any, Any]) -> type[Any]:
        if not isinstance(spec, FnSpec):
            return cls
        if cls.of_functions is None:
            kept = {name: getattr(cls, name) for name in ("__module__", "__qualname__")}
            cls.of_functions = type(cls.__name__, (cls, FnSelector), {"__slots__": (), **kept})
        return cls.of_functions

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        toolset = cls.of_toolset
        names = list(toolset._by_name)

        def name_of(value: Any) -> Any:
            return value.name if value in toolset and not isinstance(value, str) else value

        def refuse(_: Any) -> Any:
            raise PydanticCustomError("no_tools", "this toolset has no tools to choose from")

        # A literal and no plain text, so that the JSON schema of the field lists the names, for a
        # model that is to choose a tool. It cannot be empty, hence the other branch.
        literal = (
            core_schema.literal_schema(names)
            if names
            else core_schema.no_info_before_validator_function(refuse, core_schema.str_schema())
        )
        return core_schema.no_info_after_validator_function(
            toolset.__getitem__,
            core_schema.no_info_before_validator_function(name_of, literal),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda selector: selector.name,
                return_schema=literal if names else core_schema.str_schema(),
            ),
        )
