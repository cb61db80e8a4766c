"""JSON schemas of tools, for whoever writes a dialect or another edge: read, follow and check them.

Example:
    >>> from lutum_py.schemas import follow
    >>> root = {"$defs": {"City": {"type": "string"}}}
    >>> follow("#/$defs/City", root)
    {'type': 'string'}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._text.on_demand import exported, on_demand

if TYPE_CHECKING:
    from ._schema.definition import without_remarks as without_remarks
    from ._schema.field_issues import path_of as path_of
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
    from ._schema.secrets import MASK as MASK
    from ._schema.signature import signature_of as signature_of
    from ._text.names import stand_in as stand_in
    from ._toolsets.runtime_toolset import toolset_of_specs as toolset_of_specs
    from ._toolsets.tool_input import spec_from_definition as spec_from_definition
else:
    # Each on demand: a dialect reads schemas, and only few programs check values against one.
    __getattr__, __dir__ = on_demand(
        globals(),
        {
            "_schema.definition": ("without_remarks",),
            "_schema.field_issues": ("path_of",),
            "_schema.schema_check": ("SchemaChecker", "schema_checker", "schema_faults"),
            "_schema.schema_reader": (
                *("UNIONS", "Node", "SchemaFault", "alternatives", "branches", "fault_in"),
                *("follow", "is_before_2019", "localized", "matches_pattern", "meant_by_name"),
                *("merged_part", "parts_of", "reference_to", "subschemas", "type_of", "types_in"),
                *("unchecked_patterns", "with_subschemas"),
            ),
            "_schema.secrets": ("MASK",),
            "_schema.signature": ("signature_of",),
            "_text.names": ("stand_in",),
            "_toolsets.runtime_toolset": ("toolset_of_specs",),
            "_toolsets.tool_input": ("spec_from_definition",),
        },
    )
    __all__ = list(exported(__dir__()))
