"""A stock gate that goes by what tools declare to do to the world.

It checks four things, in this order: may the tool run where no user is present; is this a dry run,
which does less; was a dry run made if one is required; and what does the policy say about the
risk. In which order all gates review a call is in `pipeline`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast, get_args

from .._call.call import AnyToolCall
from .._call.decisions import Block, Complete, Suspend
from .._context.context import RunIdentity
from .._context.suspension import Decision, SuspendTicket
from .._schema.capabilities import DryRun, RiskLevel, ToolCapabilities, ToolEffect, risk_of
from .._text.json import canonical_json, shorten
from .._transcript.result import ToolResult
from ..errors import HookError, MisuseError
from .registered_hook import CallGate

GateAction: TypeAlias = Literal["allow", "suspend", "block"]

GatePolicy: TypeAlias = Mapping[Any, GateAction] | Callable[[AnyToolCall, RiskLevel], Any]
"""An action for each `RiskLevel` or its name, or a function of the call and its risk that decides
like a gate."""

_DEFAULT: Mapping[RiskLevel, GateAction] = {
    RiskLevel.ALLOW: "allow",
    RiskLevel.REVIEW: "allow",
    RiskLevel.REQUIRE_CONFIRMATION: "suspend",
    RiskLevel.BLOCK: "block",
}


@dataclass(eq=False, repr=False)
class _CapabilityGate(CallGate):
    __qualname__ = "capability_gate"  # what errors and records call it

    policy: Callable[[AnyToolCall, RiskLevel], Any]
    run: RunIdentity | None
    dry_run_done: Callable[[AnyToolCall], bool] | None
    dry_run_argument: str

    def __call__(
        self, call: AnyToolCall, _decision: Decision | None, /
    ) -> Block | Suspend | Complete[Any] | ToolResult | None:
        capabilities = call.selector.definition.capabilities
        if self.run is not None and self.run.is_background and not capabilities.background_safe:
            return Block(
                f"Tool `{call.name}` is not declared safe for the background, where no user is "
                "present."
            )
        effects = capabilities.effects
        if self._is_dry_run(call):
            # An effect that has no dry run happens in spite of the argument.
            effects = tuple(e for e in effects if e.dry_run is DryRun.NOT_SUPPORTED)
        elif self._lacks_dry_run(call, effects):
            return Block(self._try_first(call))
        answer: Block | Suspend | Complete[Any] | ToolResult | None
        answer = self.policy(call, risk_of(ToolCapabilities(effects=effects)))
        return answer

    def _has_dry_run(self, call: AnyToolCall) -> bool:
        return bool(call.spec.arguments.keys_of(self.dry_run_argument))

    def _is_dry_run(self, call: AnyToolCall) -> bool:
        name = self.dry_run_argument
        return self._has_dry_run(call) and _is_set(call, _arguments(call), name)

    def _lacks_dry_run(self, call: AnyToolCall, effects: Iterable[ToolEffect]) -> bool:
        if all(e.dry_run is not DryRun.REQUIRED_BEFORE_EXECUTE for e in effects):
            return False
        return self.dry_run_done is None or not self.dry_run_done(call)

    def _try_first(self, call: AnyToolCall) -> str:
        text = f"Tool `{call.name}` has to be tried first"
        if not self._has_dry_run(call):
            return f"{text}, and no dry run with these arguments is known."
        return (
            f"{text}: call it with the same arguments and `{self.dry_run_argument}` set to true, "
            "then call it again."
        )


def capability_gate(
    policy: GatePolicy | None = None,
    *,
    run: RunIdentity | None = None,
    dry_run_done: Callable[[AnyToolCall], bool] | None = None,
    dry_run_argument: str = "dry_run",
) -> CallGate:
    """Make a gate of what tools declare in `capabilities=`.

    Register it with `hooks.gate()(capability_gate())`. What becomes of a call depends on the risk
    of its tool's effects. In a dry run (its argument `dry_run` is true) only those effects count
    whose tool does not declare a dry run for them.

    Args:
        policy: `allow`, `suspend` or `block` for each risk, or a function of the call and its risk
            that decides like a gate. By default what requires confirmation is suspended and what
            is to be blocked is blocked. What a mapping leaves out is decided as by default.
        run: In which run the calls are made: in the background only tools that are declared safe
            for it pass.
        dry_run_done: Whether a call was tried before, for effects that require it;
            `dry_run_in(session.transcript)` makes such a function. Without one, what requires a
            dry run is blocked.
        dry_run_argument: The argument that makes a tool do a dry run.

    Raises:
        HookError: The policy names an unknown risk or action, or is not a policy.
        MisuseError: `run` is not a `RunIdentity`, `dry_run_done` not a function, or the argument
            not the name of one.

    Example:
        >>> from lutum_py import ToolMetadata, Toolset, tool, tool_fn
        >>> from lutum_py.capabilities import ToolCapabilities
        >>> @tool_fn(capabilities=ToolCapabilities(effects=["spend_money"]))
        ... def pay(amount: int) -> str:
        ...     return f"paid {amount}"
        >>> class Tools(Toolset):
        ...     pay = tool(pay)
        >>> hooks = Tools.HookSet()
        >>> gate = hooks.gate()(capability_gate({"block": "suspend"}))
        >>> call = Tools.parse_tool_call(
        ...     ToolMetadata(id="c1", name="pay", arguments='{"amount": 5}')
        ... )
        >>> call.hook_sync(hooks).ticket.action
        'confirm'
    """
    MisuseError.check("capability_gate", "run", "a `RunIdentity` or None", run, RunIdentity | None)
    if not (dry_run_done is None or callable(dry_run_done)):
        remedy = "Pass `dry_run_in(session.transcript)`."
        place = ("capability_gate", "dry_run_done", "a function of a call or None")
        raise MisuseError.of_field(*place, dry_run_done, remedy)
    _check_argument("capability_gate", dry_run_argument)
    return _CapabilityGate(_decider(policy), run, dry_run_done, dry_run_argument)


def _check_argument(owner: str, name: object) -> None:
    MisuseError.check(owner, "dry_run_argument", "the name of an argument", name, str)


def _decider(policy: GatePolicy | None) -> Callable[[AnyToolCall, RiskLevel], Any]:
    actions = {**_DEFAULT}
    if isinstance(policy, Mapping):
        given = cast("Mapping[Any, Any]", policy)
        for risk, action in given.items():
            known = RiskLevel(_known("risk", risk, tuple(RiskLevel)))
            actions[known] = _known("action", action, get_args(GateAction))
    elif callable(policy):
        return policy
    elif policy is not None:
        raise HookError(
            f"A policy is a mapping of risks to actions, or a function of a call and its risk, not "
            f"{shorten(policy)}. Pass {{'block': 'suspend'}}, for example."
        )

    def by_risk(call: AnyToolCall, risk: RiskLevel) -> Block | Suspend | None:
        if actions[risk] == "block":
            return Block(f"Tool `{call.name}` is too risky to be run here: {_effects(call)}.")
        return Suspend(_ticket(call, risk)) if actions[risk] == "suspend" else None

    return by_risk


def _known(what: str, name: Any, known: tuple[str, ...]) -> Any:
    """Return what a policy names, if it is known."""
    if name not in known:
        raise HookError(
            f"Unknown {what} {shorten(name)} in the policy. There are: {', '.join(known)}."
        )
    return name


def dry_run_in(
    items: Iterable[Any], dry_run_argument: str = "dry_run"
) -> Callable[[AnyToolCall], bool]:
    """Make a function that looks for a successful dry run among transcript items.

    The arguments of the call, as hooks left them, are compared with those that the model sent for
    the dry run; one that was run with others, which a hook or person gave it, does not count. If
    hooks change arguments, pass a `dry_run_done` of your own.

    Args:
        items: A transcript; it is read whenever the function is called.
        dry_run_argument: The argument that makes a tool do a dry run.

    Raises:
        MisuseError: It is not a transcript, or the argument is not the name of one.
    """
    MisuseError.check(
        "dry_run_in", "items", "a transcript", items, Iterable, "Pass `session.transcript`."
    )
    _check_argument("dry_run_in", dry_run_argument)

    def done(call: AnyToolCall) -> bool:
        # As JSON with sorted keys: a dry run of {"b": 2, "a": 1} is one of {"a": 1, "b": 2}.
        keys = call.spec.arguments.keys_of(dry_run_argument)
        wanted = _without(_arguments(call), keys)
        return any(
            _is_set(call, tried, dry_run_argument) and _without(tried, keys) == wanted
            for item in items
            if isinstance(item, ToolResult) and item.is_success and item.name == call.name
            if item.ran_with is None  # else something else was tried than was sent
            for tried in [call.selector.arguments_of(item)]
        )

    return done


def _is_set(call: AnyToolCall, arguments: Any, name: str) -> bool:
    values = call.spec.arguments.values_of(arguments, name)
    return bool(values) and all(value is True for value in values)


def _without(arguments: dict[str, Any], keys: Iterable[str]) -> str:
    return canonical_json({key: arguments[key] for key in arguments.keys() - keys})


def _arguments(call: AnyToolCall) -> dict[str, Any]:
    arguments: dict[str, Any] = call.final_arguments
    return arguments


def _effects(call: AnyToolCall) -> str:
    arguments = call._record.shown
    told = [
        _tell(effect, call.spec.arguments.values_of(arguments, effect.target or ""))
        for effect in call.selector.definition.capabilities.effects
    ]
    return "; ".join(told) or "it declares no effects"


def _tell(effect: ToolEffect, targets: list[Any]) -> str:
    on = f" on {', '.join(map(shorten, targets))}" if targets else ""
    return f"{effect.kind.value}{on} ({effect.reversibility.value})"


def _ticket(call: AnyToolCall, risk: RiskLevel) -> SuspendTicket:
    asked = call._record.question
    return SuspendTicket(
        action="confirm",
        message=f"Tool `{call.name}` asks for a decision: {_effects(call)}. {asked}",
        parameters={
            "tool": call.name,
            "risk": risk.value,
            "arguments": call._record.shown,
        },
    )
