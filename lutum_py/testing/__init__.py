"""Test a tool loop without a provider."""

from __future__ import annotations

from ._scripted_model import ScriptedModel, ScriptExhausted

__all__ = ["ScriptExhausted", "ScriptedModel"]
