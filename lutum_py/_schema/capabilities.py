"""What a tool does to the world, and how much of a risk that is.

A tool declares its effects; each kind of effect has one row in `EFFECT_DEFAULTS`, which fills in
what the declaration leaves open and sets the lowest risk that the kind can have. Nothing here
decides anything: a gate reads `risk_of` and the user's policy says what follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, cast
from unicodedata import normalize

from .._text.escaping import meant_by
from .._text.immutable import dataclass
from .._text.json import is_array, is_sequence
from ..errors import ToolDefinitionError

if TYPE_CHECKING:
    from .arguments import Arguments

ANY_AREA: Final = "*"
FILES: Final = "files"


class EffectKind(StrEnum):
    """Name what a tool does; `EFFECT_DEFAULTS` says what follows from it."""

    READ_FILE = "read_file"
    INTROSPECT_RUNTIME = "introspect_runtime"
    NETWORK_REQUEST = "network_request"
    READ_SECRET = "read_secret"
    PERSIST_MEMORY = "persist_memory"
    GENERATE_MEDIA = "generate_media"
    WRITE_FILE = "write_file"
    RUN_PROCESS = "run_process"
    SCHEDULE_TASK = "schedule_task"
    DELEGATE_WORK = "delegate_work"
    SEND_MESSAGE = "send_message"
    PUBLISH_CONTENT = "publish_content"
    DELETE_FILE = "delete_file"
    SPEND_MONEY = "spend_money"
    DEPLOY = "deploy"
    MODIFY_CREDENTIAL = "modify_credential"


class Reversibility(StrEnum):
    """Say whether an effect can be undone."""

    REVERSIBLE = "reversible"
    PARTIALLY_REVERSIBLE = "partially_reversible"
    IRREVERSIBLE = "irreversible"


class Confirmation(StrEnum):
    """Say when somebody should be asked before the effect happens."""

    NEVER = "never"
    ON_RISK = "on_risk"
    ALWAYS = "always"


class DryRun(StrEnum):
    """Say whether the tool can show what it would do, and whether it has to."""

    NOT_SUPPORTED = "not_supported"
    SUPPORTED = "supported"
    REQUIRED_BEFORE_EXECUTE = "required_before_execute"


class RiskLevel(StrEnum):
    """Rank what a call may need before it runs, from nothing to never.

    Levels compare by severity, also with their plain names, and not by the alphabet.

    >>> RiskLevel.ALLOW < RiskLevel.REVIEW < RiskLevel.REQUIRE_CONFIRMATION < RiskLevel.BLOCK
    True
    >>> max(RiskLevel.REVIEW, RiskLevel.BLOCK)
    <RiskLevel.BLOCK: 'block'>
    """

    ALLOW = "allow"
    REVIEW = "review"
    REQUIRE_CONFIRMATION = "require_confirmation"
    BLOCK = "block"

    # `str` brings an alphabetical order of its own, which would be wrong without a sound, so all
    # four comparisons are replaced.
    def __lt__(self, other: str) -> bool:
        return _SEVERITY[self] < _SEVERITY[RiskLevel(other)]

    def __le__(self, other: str) -> bool:
        return _SEVERITY[self] <= _SEVERITY[RiskLevel(other)]

    def __gt__(self, other: str) -> bool:
        return _SEVERITY[self] > _SEVERITY[RiskLevel(other)]

    def __ge__(self, other: str) -> bool:
        return _SEVERITY[self] >= _SEVERITY[RiskLevel(other)]


_SEVERITY: Final = {level: rank for rank, level in enumerate(RiskLevel)}


@dataclass(frozen=True, slots=True)
class EffectDefaults:
    """One row of the effect table.

    Attributes:
        mutating: Whether the kind changes anything.
        reversibility: Used where an effect does not say.
        confirmation: Used where an effect does not say.
        risk_floor: The lowest risk that the kind can have.
        area: The part of the world that it accesses: `*` for any, None for nothing that could
            conflict with another call. Used where an effect does not say.
    """

    mutating: bool
    reversibility: Reversibility
    confirmation: Confirmation
    risk_floor: RiskLevel
    area: str | None


# Named by what they share: `read` changes nothing, `act` can be half undone, `final` cannot. A new
# kind of effect takes the row of one that it is like.
def _rows() -> dict[EffectKind, EffectDefaults]:
    kind, back, ask, risk = EffectKind, Reversibility, Confirmation, RiskLevel
    read = (False, back.REVERSIBLE, ask.ON_RISK, risk.ALLOW)
    request = (False, back.REVERSIBLE, ask.ON_RISK, risk.REVIEW)
    secret = (False, back.IRREVERSIBLE, ask.ALWAYS, risk.BLOCK)
    keep = (True, back.PARTIALLY_REVERSIBLE, ask.ALWAYS, risk.REVIEW)
    act = (True, back.PARTIALLY_REVERSIBLE, ask.ALWAYS, risk.REQUIRE_CONFIRMATION)
    tell = (True, back.IRREVERSIBLE, ask.ALWAYS, risk.REQUIRE_CONFIRMATION)
    final = (True, back.IRREVERSIBLE, ask.ALWAYS, risk.BLOCK)
    rows = {
        kind.READ_FILE: (read, FILES),
        kind.INTROSPECT_RUNTIME: (read, "runtime"),
        kind.NETWORK_REQUEST: (request, "network"),
        kind.READ_SECRET: (secret, "credentials"),
        kind.PERSIST_MEMORY: (keep, "memory"),
        kind.GENERATE_MEDIA: (keep, None),
        kind.WRITE_FILE: (act, FILES),
        kind.RUN_PROCESS: (act, ANY_AREA),
        kind.SCHEDULE_TASK: (act, "schedule"),
        kind.DELEGATE_WORK: (act, ANY_AREA),
        kind.SEND_MESSAGE: (tell, "messages"),
        kind.PUBLISH_CONTENT: (tell, "publications"),
        kind.DELETE_FILE: (final, FILES),
        kind.SPEND_MONEY: (final, "money"),
        kind.DEPLOY: (final, "deployments"),
        kind.MODIFY_CREDENTIAL: (final, "credentials"),
    }
    return {each: EffectDefaults(*said, area) for each, (said, area) in rows.items()}


EFFECT_DEFAULTS: Final[Mapping[EffectKind, EffectDefaults]] = MappingProxyType(_rows())
"""What each kind of effect implies."""

_E = TypeVar("_E", bound=StrEnum)


@dataclass(frozen=True, slots=True, init=False)
class ToolEffect:
    """Declare one thing that a tool does to the world.

    Attributes:
        kind: What it does.
        target: The name of the argument that says to what it does it, or None.
        reversibility: Whether it can be undone; by default as the kind has it.
        confirmation: When to ask first; by default as the kind has it.
        dry_run: Whether the tool can show what it would do.
        area: The part of the world that it accesses; by default as the kind has it. Calls whose
            effects are of one area and target keep the order of the turn where one changes it.

    >>> effect = ToolEffect("delete_file", target="path")
    >>> effect.reversibility, effect.risk
    (<Reversibility.IRREVERSIBLE: 'irreversible'>, <RiskLevel.BLOCK: 'block'>)
    """

    kind: EffectKind
    target: str | None
    reversibility: Reversibility
    confirmation: Confirmation
    dry_run: DryRun
    area: str | None

    def __init__(
        self,
        kind: EffectKind | str,
        target: str | None = None,
        reversibility: Reversibility | str | None = None,
        confirmation: Confirmation | str | None = None,
        dry_run: DryRun | str = DryRun.NOT_SUPPORTED,
        area: str | None = None,
    ) -> None:
        """Check each part, and fill in what is left open from the kind.

        Args:
            kind: An `EffectKind` or its name.
            target: Any name of an argument of the tool.
            reversibility: A `Reversibility` or its name; None for the kind's own.
            confirmation: A `Confirmation` or its name; None for the kind's own.
            dry_run: A `DryRun` or its name.
            area: A word for what several tools access, such as `orders`; `*` for anything, None for
                the kind's own.

        Raises:
            ToolDefinitionError: A name is unknown, `target` is not the name of an argument, or
                `area` is not a word.
        """
        known = _member(EffectKind, kind, "effect kind")
        defaults = EFFECT_DEFAULTS[known]
        if target is not None and not (isinstance(target, str) and target.strip()):
            raise ToolDefinitionError(
                f"The target of the effect '{known}' is {target!r}. Give the name of the tool's "
                "argument that says what it acts on, or leave it out."
            )
        if area is not None and not (isinstance(area, str) and area and area == area.strip()):
            raise ToolDefinitionError(
                f"The area of the effect '{known}' is {area!r}. Give a word without blanks around "
                "it, such as 'orders', or leave it out."
            )
        fill = object.__setattr__
        fill(self, "kind", known)
        fill(self, "target", target)
        back = defaults.reversibility if reversibility is None else reversibility
        fill(self, "reversibility", _member(Reversibility, back, "reversibility"))
        ask = defaults.confirmation if confirmation is None else confirmation
        fill(self, "confirmation", _member(Confirmation, ask, "confirmation"))
        fill(self, "dry_run", _member(DryRun, dry_run, "dry run"))
        fill(self, "area", defaults.area if area is None else area)

    @property
    def mutating(self) -> bool:
        """Whether the kind of effect changes anything."""
        return EFFECT_DEFAULTS[self.kind].mutating

    @property
    def risk(self) -> RiskLevel:
        """The floor of the kind, lifted where the effect is irreversible or always confirmed."""
        # A declaration can only lift the risk: `spend_money` with `confirmation="never"` still
        # blocks where the policy goes by risk.
        floor = EFFECT_DEFAULTS[self.kind].risk_floor
        if (
            self.confirmation is Confirmation.ALWAYS
            or self.reversibility is Reversibility.IRREVERSIBLE
        ):
            return max(floor, RiskLevel.REQUIRE_CONFIRMATION)
        return floor

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data, every key present, that `from_dict` reads back."""
        values = {name: getattr(self, name) for name in _EFFECT_KEYS}
        return {name: value and str(value) for name, value in values.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolEffect:
        """Read what `to_dict` gave; only `kind` has to be there.

        Raises:
            ToolDefinitionError: A key or a name is unknown, or `kind` is missing.
        """
        _check_keys(data, _EFFECT_KEYS, "An effect")
        if "kind" not in data:
            raise ToolDefinitionError(
                f"An effect has no 'kind'. Name one of {', '.join(EffectKind)}."
            )
        return cls(**data)


@dataclass(frozen=True, slots=True, init=False)
class ToolCapabilities:
    """Declare how a tool behaves, for the program around it; everything is off by default.

    Attributes:
        emits_progress: Whether it reports progress while it runs.
        emits_observer_text: Whether it writes to the observer's lane.
        background_safe: Whether it may run where no user is present.
        effects: What it does to the world.

    >>> capabilities = ToolCapabilities(effects=["network_request", ToolEffect("write_file")])
    >>> risk_of(capabilities)
    <RiskLevel.REQUIRE_CONFIRMATION: 'require_confirmation'>
    """

    emits_progress: bool
    emits_observer_text: bool
    background_safe: bool
    effects: tuple[ToolEffect, ...]

    def __init__(
        self,
        emits_progress: bool = False,
        emits_observer_text: bool = False,
        background_safe: bool = False,
        effects: Iterable[ToolEffect | EffectKind | str] = (),
    ) -> None:
        """Check each part.

        Args:
            emits_progress: Whether the tool reports progress.
            emits_observer_text: Whether the tool writes to the observer's lane.
            background_safe: Whether the tool may run in the background.
            effects: Effects, or kinds of effect where the kind's own defaults serve.

        Raises:
            ToolDefinitionError: A flag is not a bool, or an effect is unknown.
        """
        flags = {
            "emits_progress": emits_progress,
            "emits_observer_text": emits_observer_text,
            "background_safe": background_safe,
        }
        for name, flag in flags.items():
            if flag is not True and flag is not False:
                raise ToolDefinitionError(f"The capability '{name}' is {flag!r}. Give a bool.")
            object.__setattr__(self, name, flag)
        if not isinstance(effects, Iterable):
            raise ToolDefinitionError(
                f"The capability 'effects' is {effects!r}. Give a list of effects."
            )
        if isinstance(effects, str):
            raise ToolDefinitionError(
                f"The capability 'effects' is the text {str(effects)!r}. Give a list of effects: "
                f"[{str(effects)!r}]."
            )
        made = tuple(
            effect if isinstance(effect, ToolEffect) else ToolEffect(effect) for effect in effects
        )
        object.__setattr__(self, "effects", made)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data, every key present, that `from_dict` reads back."""
        values = {name: getattr(self, name) for name in _CAPABILITY_KEYS}
        return {**values, "effects": [effect.to_dict() for effect in self.effects]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolCapabilities:
        """Read what `to_dict` gave; a missing key stands for its default.

        Raises:
            ToolDefinitionError: A key or a name is unknown, or a value is of the wrong type.
        """
        _check_keys(data, _CAPABILITY_KEYS, "Capabilities")
        effects = data.get("effects", ())
        if not is_sequence(effects):
            raise ToolDefinitionError(
                f"The capability 'effects' is {effects!r}. Give a list of effects."
            )
        given: dict[str, Any] = {**data, "effects": [ToolEffect.from_dict(e) for e in effects]}
        return cls(**given)


_EFFECT_KEYS: Final = tuple(ToolEffect.__dataclass_fields__)
_CAPABILITY_KEYS: Final = tuple(ToolCapabilities.__dataclass_fields__)


def risk_of(capabilities: ToolCapabilities) -> RiskLevel:
    """Return the highest risk among a tool's effects; `ALLOW` where it has none.

    An effect is never below the floor of its kind, whatever its confirmation says; one that is
    irreversible or always confirmed is at least `REQUIRE_CONFIRMATION`.

    >>> risk_of(ToolCapabilities(effects=[ToolEffect("network_request", confirmation="always")]))
    <RiskLevel.REQUIRE_CONFIRMATION: 'require_confirmation'>
    """
    return max((effect.risk for effect in capabilities.effects), default=RiskLevel.ALLOW)


def _member(enum: type[_E], value: str, what: str) -> _E:
    try:
        return enum(value)
    except ValueError:
        names = [member.value for member in enum]
        raise ToolDefinitionError(
            f"Unknown {what} {value!r}.{meant_by(str(value), names)} There are: {', '.join(names)}."
        ) from None


def _check_keys(data: object, known: tuple[str, ...], what: str) -> None:
    if not isinstance(data, Mapping):
        raise ToolDefinitionError(f"{what} cannot be read from {data!r}. Give a mapping.")
    for key in cast("Mapping[object, object]", data):
        if key not in known:
            raise ToolDefinitionError(
                f"{what} cannot have {key!r}.{meant_by(str(key), known)} There are: "
                f"{', '.join(known)}."
            )


Place: TypeAlias = tuple[str, ...]


class ResourceAccess(NamedTuple):
    """Say that a call reads or changes something; `call.accesses` gives those of a call.

    Attributes:
        area: The part of the world, such as `files`; `*` for any.
        target: What of it, in the form in which targets are compared; None for all of it.
        mutating: Whether it is changed.

    >>> write = ResourceAccess("files", "src", mutating=True)
    >>> write.conflicts_with(ResourceAccess("files", "src/app.py", mutating=False))
    True
    >>> write.conflicts_with(ResourceAccess("files", "docs", mutating=True))
    False
    """

    area: str
    target: str | None
    mutating: bool

    def conflicts_with(self, other: ResourceAccess) -> bool:
        """Whether both may be of the same thing, and one of them changes it.

        Args:
            other: What another call accesses.
        """
        if not (self.mutating or other.mutating):
            return False
        one, two = place_of(self), place_of(other)
        shared = min(len(one), len(two))
        return one[:shared] == two[:shared] or beside(one) == two[:2]

    def may_be_in(self, area: str) -> bool:
        """Whether it may be a part of this area, as any access of area `*` may."""
        return self.area in (area, ANY_AREA)


EVERYTHING: Final = (ResourceAccess(ANY_AREA, None, mutating=True),)
"""What a tool accesses that does not say."""


def place_of(touch: ResourceAccess) -> Place:
    """Say where something is in the tree of all that can be accessed."""
    if touch.area == ANY_AREA:
        return ()
    if touch.target is None:
        return (touch.area,)
    if touch.area != FILES:
        return (touch.area, touch.target)
    anchor = "/" if touch.target.startswith("/") else "."
    return (FILES, anchor, *touch.target.strip("/").split("/"))


def beside(place: Place) -> Place | None:
    """Return what may hold the same files as a path: paths of the root, or those that are not."""
    if len(place) > 1 and place[0] == FILES:
        return (FILES, "." if place[1] == "/" else "/")
    return None


def accesses_of(
    effects: tuple[ToolEffect, ...], arguments: Arguments, data: object
) -> tuple[ResourceAccess, ...]:
    """Say what a call accesses.

    Args:
        effects: What its tool declares.
        arguments: The arguments of the tool.
        data: Those of the call, as plain data; None if they have no JSON form.
    """
    if not effects:
        return EVERYTHING
    found: dict[ResourceAccess, None] = {}
    for effect in effects:
        if effect.area is None:
            continue
        form: _Form = "NFC" if effect.area == FILES else "NFKC"
        for given in _given(arguments, data, effect.target) or [None]:
            for target in _targets(given, form):
                place = None if effect.area == ANY_AREA else target
                found[ResourceAccess(effect.area, place, effect.mutating)] = None
    return tuple(found)


def _given(arguments: Arguments, data: object, target: str | None) -> list[Any]:
    """Return the values of the argument that is a target, but for a secret."""
    masking = arguments.masking
    if target is None or (masking.found and masking.hides((target,))):
        return []
    return arguments.values_of(data, target)


_Form: TypeAlias = Literal["NFC", "NFKC"]


def _targets(value: object, form: _Form) -> Iterator[str | None]:
    """Yield the targets that an argument names; None if it may be any."""
    if is_array(value) and value:
        for part in value:
            yield from _targets(part, form)
    elif isinstance(value, str):
        yield (_path(value) if form == "NFC" else _folded(value, form).strip()) or None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(int(value) if isinstance(value, float) and value.is_integer() else value)
    else:
        yield None


def _folded(text: str, form: _Form) -> str:
    """Write texts alike that differ in their case or in how letters are put together."""
    return normalize(form, normalize(form, normalize("NFD", text).casefold()).casefold())


_ANYWHERE = re.compile(r"\s|~|[a-z][a-z0-9+.-]*:|.*(?:\s\Z|[$%])", re.DOTALL)
_PATTERN = re.compile(r"[*?\[{]")


def _path(text: str) -> str | None:
    """Resolve a path by its letters; None if nobody can tell by them where it is."""
    text = _folded(text, "NFC").replace("\\", "/")
    if _ANYWHERE.match(text):
        return None
    pattern = _PATTERN.search(text)
    if pattern is not None:
        if ".." in text[pattern.start() :]:
            return None
        text = text[: text.rfind("/", 0, pattern.start()) + 1]
    parts: list[str] = []
    for part in text.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return ("/" if text.startswith("/") else "") + "/".join(parts) if parts else None
