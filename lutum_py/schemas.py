"""JSON schemas, for authors of dialects and of other code that reads the schemas of tools.

A reader opens references and branches; a checker holds values against a schema, in bounded time and
with the package `jsonschema`.

Example:
    >>> from lutum_py.schemas import branches, types_in
    >>> schema = {"anyOf": [{"$ref": "#/$defs/id"}, {"type": "null"}]}
    >>> schema["$defs"] = {"id": {"type": "integer"}}
    >>> sorted(kind for each in branches(schema, [schema]) for kind in types_in(each))
    ['integer', 'null']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._text.on_demand import exported, on_demand

if TYPE_CHECKING:
    from ._schema.schema_check import SchemaChecker as SchemaChecker
    from ._schema.schema_check import schema_checker as schema_checker
    from ._schema.schema_check import schema_faults as schema_faults
    from ._schema.schema_reader import UNIONS as UNIONS
    from ._schema.schema_reader import Node as Node
    from ._schema.schema_reader import SchemaFault as SchemaFault
    from ._schema.schema_reader import alternatives as alternatives
    from ._schema.schema_reader import branches as branches
    from ._schema.schema_reader import fault_in as fault_in
    from ._schema.schema_reader import follow as follow
    from ._schema.schema_reader import is_before_2019 as is_before_2019
    from ._schema.schema_reader import localized as localized
    from ._schema.schema_reader import matches_pattern as matches_pattern
    from ._schema.schema_reader import meant_by_name as meant_by_name
    from ._schema.schema_reader import merged_part as merged_part
    from ._schema.schema_reader import parts_of as parts_of
    from ._schema.schema_reader import reference_to as reference_to
    from ._schema.schema_reader import subschemas as subschemas
    from ._schema.schema_reader import type_of as type_of
    from ._schema.schema_reader import types_in as types_in
    from ._schema.schema_reader import unchecked_patterns as unchecked_patterns
    from ._schema.schema_reader import with_subschemas as with_subschemas
else:
    # Each on demand: a dialect reads schemas, and only few programs check values against one.
    __getattr__, __dir__ = on_demand(
        globals(),
        {
            "_schema.schema_check": ("SchemaChecker", "schema_checker", "schema_faults"),
            "_schema.schema_reader": (
                *("UNIONS", "Node", "SchemaFault", "alternatives", "branches", "fault_in"),
                *("follow", "is_before_2019", "localized", "matches_pattern", "meant_by_name"),
                *("merged_part", "parts_of", "reference_to", "subschemas", "type_of", "types_in"),
                *("unchecked_patterns", "with_subschemas"),
            ),
        },
    )
    __all__ = list(exported(__dir__()))
