"""What tools declare that they do to the world, its risk, and a ready gate for it.

Example:
    >>> from lutum_py.capabilities import ToolCapabilities, risk_of
    >>> risk_of(ToolCapabilities(effects=["send_message"])).value
    'require_confirmation'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._schema.capabilities import EFFECT_DEFAULTS as EFFECT_DEFAULTS
from ._schema.capabilities import Confirmation as Confirmation
from ._schema.capabilities import DryRun as DryRun
from ._schema.capabilities import EffectKind as EffectKind
from ._schema.capabilities import ResourceAccess as ResourceAccess
from ._schema.capabilities import Reversibility as Reversibility
from ._schema.capabilities import RiskLevel as RiskLevel
from ._schema.capabilities import ToolCapabilities as ToolCapabilities
from ._schema.capabilities import ToolEffect as ToolEffect
from ._schema.capabilities import risk_of as risk_of
from ._text.on_demand import exported, on_demand

if TYPE_CHECKING:
    from ._hooks.capability_gate import GateAction as GateAction
    from ._hooks.capability_gate import capability_gate as capability_gate
    from ._hooks.capability_gate import dry_run_in as dry_run_in
    from ._round.sorted_calls import waits_for as waits_for
else:
    __getattr__, __dir__ = on_demand(
        globals(),
        {
            "_hooks.capability_gate": ("GateAction", "capability_gate", "dry_run_in"),
            "_round.sorted_calls": ("waits_for",),
        },
    )
    __all__ = list(exported(__dir__()))
