"""A dialect outside of the library is written with public names alone."""

from __future__ import annotations

import ast
from importlib import import_module

from .conftest import EXAMPLES
from .every_dialect import OF_PAGE


def test_the_dialect_of_the_page_imports_public_names_alone() -> None:
    """No file of the dialect in `examples` imports a private module or a private name."""
    imported = [
        (node.module or "", alias.name)
        for file in (EXAMPLES / OF_PAGE).glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and not node.level
        for alias in node.names
    ]
    ours = [(module, name) for module, name in imported if module.startswith("lutum_py")]
    assert len(ours) > 20
    assert [
        each for each in ours if any(part[0] == "_" for part in ".".join(each).split("."))
    ] == []
    listed = import_module("lutum_py.dialects.authoring").__all__
    used = {name for module, name in ours if module == "lutum_py.dialects.authoring"}
    assert used <= set(listed)
