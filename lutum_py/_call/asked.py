"""What is asked about a call that waits, and what can be decided, wherever it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._text.escaping import visible, visible_json
from .._text.json import compact_json, cut, shorten
from ..errors import InvalidValueError, MisuseError

if TYPE_CHECKING:
    from .._context.suspension import Decision, DecisionAction
    from .call_state import CallState

_LONGEST = 2000
_LONGEST_WORD = 200


def question_of(tool: str, arguments: Any) -> str:
    """Ask about a call for which nobody wrote a question: by its arguments, as they are shown."""
    return f"{visible(tool)} {cut(visible_json(compact_json(arguments)), _LONGEST)}?"


def question_about(call: CallState) -> str:
    """Say what a person is asked about a call: its arguments as they are shown, secrets masked."""
    template = call.selector.options.approval_message
    shown = call.spec.shown(call._input)
    if template is None:
        return question_of(call.name, shown)
    from string import Formatter  # most programs have no such message

    arguments: dict[str, Any] = shown or {}
    return "".join(
        text + ("" if name is None else _word(arguments.get(name)))
        for text, name, _, _ in Formatter().parse(template)
    )


def _word(value: Any) -> str:
    return cut(visible(value if isinstance(value, str) else compact_json(value)), _LONGEST_WORD)


class Asked:
    """Make decisions about a call as it is shown; what shows it says which call that is."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def arguments(self) -> Any: ...

        def _of(self) -> tuple[str, str, str, str | None]:
            """Return the id of the call, its tool, the digest of what is shown, and who asks.

            That is the name of the round, where it is known.
            """
            ...

    @property
    def question(self) -> str:
        """What is asked, safe to print: the ticket's message, else the tool and its arguments.

        Arguments are cut after 2,000 characters; `arguments` has all of them.
        """
        shown: Any = self  # a checker would have the field of each class override a property
        message: str | None = shown.ticket.message
        return visible(message) if message else question_of(self._of()[1], self.arguments)

    def approve(
        self, *, by: str | None = None, result: Any = None, reason: str | None = None
    ) -> Decision:
        """Make the decision to let the call go on, as it is shown here.

        Args:
            by: Who decides.
            result: An answer for the tool, or in its place, where the ticket asks for one.
            reason: Why.
        """
        return self._decision("resume", by, reason, result)

    def cancel(self, reason: str | None = None, *, by: str | None = None) -> Decision:
        """Make the decision not to run the call.

        Args:
            reason: Why; the model reads it.
            by: Who decides.
        """
        return self._decision("cancel", by, reason, None)

    def edit(
        self,
        changes: Mapping[str, Any],
        *,
        by: str | None = None,
        result: Any = None,
        reason: str | None = None,
    ) -> Decision:
        """Make the decision to let the call go on with other arguments; see `plan.amend`.

        Args:
            changes: The arguments that are to change, each whole, by their names in `arguments`.
                What stays masked as it is shown there stays what it is.
            by: Who decides.
            result: An answer for the tool, where the ticket asks for one.
            reason: Why.

        Raises:
            InvalidValueError: The changes are not a mapping of names.
        """
        if not isinstance(changes, Mapping):
            id, tool, *_ = self._of()
            raise InvalidValueError(
                f"The changes to call {id!r} of tool `{tool}` are a value of type "
                f"{type(changes).__name__}. Pass a dict of arguments by their names."
            )
        return self._decision("resume", by, reason, result, {**self.arguments, **changes})

    def decide(self, yes: bool, *, by: str | None = None, reason: str | None = None) -> Decision:
        """Make the decision that someone answered yes or no: `approve` or `cancel`.

        Args:
            yes: Whether the call may go on.
            by: Who decides.
            reason: Why; the model reads it where the answer is no.

        Raises:
            MisuseError: The answer is not a bool.
        """
        if not isinstance(yes, bool):
            id, tool, *_ = self._of()
            raise MisuseError(
                f"Whether call {id!r} of tool `{tool}` may go on is {shorten(yes)}. Pass True or "
                "False, such as `answer == 'yes'`."
            )
        return self.approve(by=by, reason=reason) if yes else self.cancel(reason, by=by)

    def _decision(
        self,
        action: DecisionAction,
        by: str | None,
        reason: str | None,
        result: Any,
        edit: Mapping[str, Any] | None = None,
    ) -> Decision:
        from .._context.suspension import Decision  # needed by few, at the first question

        id, _, digest, asked_in = self._of()
        shown: Any = self
        return Decision(
            call_id=id,
            action=action,
            result=result,
            reason=reason,
            digest=digest,
            edit=edit,
            by=by,
            ticket=shown.ticket.id,
            asked_in=asked_in,
        )
