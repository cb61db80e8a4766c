"""What tools say that they do to the world, the risk of it, and a stock gate that goes by it.

Example:
    >>> from lutum_py.capabilities import ToolCapabilities, risk_of
    >>> risk_of(ToolCapabilities(effects=["send_message"])).value
    'require_confirmation'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._schema.capabilities import (
    EFFECT_DEFAULTS,
    Confirmation,
    DryRun,
    EffectKind,
    Reversibility,
    RiskLevel,
    ToolCapabilities,
    ToolEffect,
    risk_of,
)
from ._schema.touch import Touch
from ._text.on_demand import on_demand

if TYPE_CHECKING:
    from ._hooks.capability_gate import GateAction, capability_gate, dry_run_in
else:
    __getattr__, __dir__ = on_demand(
        globals(),
        {
            "_hooks.capability_gate": ("GateAction", "capability_gate", "dry_run_in"),
        },
    )

__all__ = [
    "EFFECT_DEFAULTS",
    "Confirmation",
    "DryRun",
    "EffectKind",
    "GateAction",
    "Reversibility",
    "RiskLevel",
    "ToolCapabilities",
    "ToolEffect",
    "Touch",
    "capability_gate",
    "dry_run_in",
    "risk_of",
]
