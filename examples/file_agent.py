"""Ask a question about the files of a directory, in a tool loop that you own.

    python examples/file_agent.py --root . --question 'What is this, and where is "license"?'

The model is local by default (see `local_model.py`): no network, no key. `--model openai:NAME` and
the like ask a provider (see `models.py`). The loop is in `answer` and `take_round`; nothing is run,
asked or retried anywhere else. `--save` keeps the transcript.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from file_tools import (
    OutsideRootError,
    Written,
    inside,
    list_files,
    read_file,
    search_text,
    shown,
    write_file,
)
from models import LOCAL, make_model
from pydantic import BaseModel
from show import Show, clean

from lutum_py import (
    Finished,
    HookSet,
    NeedsTools,
    NoAnswer,
    Reject,
    RunNormally,
    Session,
    ToolAvailability,
    ToolDecision,
    ToolMetadata,
    ToolRound,
    Toolset,
    tool,
    toolset,
)
from lutum_py.errors import LutumError, RoundClosedError
from lutum_py.execution import run_sync
from lutum_py.typing import SyncModel

REPOSITORY: Final = Path(__file__).resolve().parent.parent
QUESTION: Final = 'What is this, and where does it say "own the loop"?'
INSTRUCTIONS: Final = (
    "Answer the user's question about the files of one directory, from what the tools give you and "
    "nothing else. All paths are relative to that directory. Call `answer` when you know it."
)
MAX_TURNS: Final = 20
AT_ONCE: Final = 4
"""Calls that run at once."""


class WriteTools(Toolset):
    """What changes files."""

    write_file = tool(write_file)


class FileTools(Toolset):
    """What the model may do; `edit` only where the user allows it."""

    list_files = tool(list_files)
    read_file = tool(read_file)
    search_text = tool(search_text)
    edit = toolset(WriteTools, off=True)


class Findings(BaseModel):
    """What the files say to the question, and which of them say so."""

    text: str
    files: list[str]


Ask = Callable[[str], bool | None]
"""Asks the user a question: yes, no, or None where nobody can be asked."""


def make_hooks(root: Path, ask: Ask) -> HookSet[FileTools]:
    """Decide about calls before they are run: where they may reach, and who is asked first."""
    hooks = FileTools.HookSet()

    def stay_inside(_: ToolMetadata, input: Any) -> ToolDecision[Any, Any]:
        """Let no path leave the root, and pass on the real one: what was checked is what runs."""
        try:
            real = inside(root, input.path)
        except OutsideRootError as error:
            return Reject(str(error))
        return RunNormally(input.model_copy(update={"path": shown(str(real.relative_to(root)))}))

    hooks.on(FileTools.list_files)(stay_inside)
    hooks.on(FileTools.read_file)(stay_inside)
    hooks.on(FileTools.search_text)(stay_inside)
    hooks.on(FileTools.edit.write_file)(stay_inside)

    @hooks.on(FileTools.edit.write_file)
    def ask_first(_: ToolMetadata, input: Any) -> ToolDecision[Any, Written]:
        """Write only what somebody at the terminal agreed to."""
        verb = "Replace" if (root / input.path).exists() else "Write"
        agreed = ask(f"{verb} {input.path} ({len(input.text):,} characters)?")
        if agreed is None:
            return Reject("there is nobody at a terminal who could allow it")
        return RunNormally(input) if agreed else Reject("the user does not want it")

    return hooks


def answer(
    session: Session,
    model: SyncModel,
    hooks: HookSet[FileTools],
    root: Path,
    available: ToolAvailability,
    show: Show,
) -> Findings | None:
    """Go from turn to turn until the model answers; None where it does not come to an end."""
    for _ in range(MAX_TURNS):
        turn = session.text_turn(model).tools(FileTools).available_tools(available)
        match turn.answer(Findings).collect_sync():
            case NeedsTools(round):
                take_round(round, session, hooks, root, show)
                if round.answer is not None:
                    return round.answer
            case Finished(result):
                return result.answer
            case NoAnswer(result, "refused"):
                return Findings(text=result.refusal or result.text, files=[])
            case NoAnswer(text=text):
                session.push_user(text)
    return None


def take_round(
    tool_round: ToolRound[FileTools, Findings],
    session: Session,
    hooks: HookSet[FileTools],
    root: Path,
    show: Show,
) -> None:
    """Decide about the calls of one turn, run what is allowed, and commit a result for each.

    Whatever interrupts it, the transcript gets an honest end of the round: the results there are,
    `cancelled` for what was not started, `indeterminate` for what was.
    """
    plan = tool_round.plan()
    try:
        show.turn(tool_round.turn)
        plan = plan.apply_hooks_sync(hooks)
        show.decisions(plan)
        # Reads run together; a write waits for what accesses its file or a folder above, and these
        # for it, so that everything is as if it had been done one after the other.
        run_sync(plan, in_order=True, limit=AT_ONCE, skipped={"root": root}, on_event=show.event)
        plan.commit(session)
    except BaseException as error:
        reason = "the user stopped it" if isinstance(error, KeyboardInterrupt) else str(error)
        with suppress(RoundClosedError):
            show.aborted(plan.abort(session, reason).results)
        raise


def ask_at_terminal(question: str) -> bool | None:
    """Ask, if there is a terminal to ask at; anything but a yes is a no."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    try:
        reply = input(f"    {clean(question)} [y/N] ")
    except (EOFError, KeyboardInterrupt) as error:
        print()
        if isinstance(error, KeyboardInterrupt):
            raise
        return False
    return reply.strip().lower() in ("y", "yes")


def read_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read and check the command line; what is wrong ends the program with one clear line."""
    parser = _Parser(
        prog="file_agent.py", description="Answer a question about the files of a directory."
    )
    parser.add_argument("--root", type=Path, default=REPOSITORY, help="the directory to look at")
    parser.add_argument("--question", default=QUESTION, help="what you want to know")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep the transcript, as JSON")
    parser.add_argument(
        "--allow-write", action="store_true", help="offer write_file too; each write asks first"
    )
    parser.add_argument("--model", default=LOCAL, help="openai:NAME, anthropic:NAME, gemini:NAME")
    parser.add_argument("--base-url", metavar="URL", help="where the model's server is")
    args = parser.parse_args(argv)
    try:
        args.chosen = make_model(args.model, args.base_url)
    except (ValueError, LutumError) as error:
        parser.error(f"--model: {error}")
    try:
        args.root = args.root.resolve(strict=True)
        os.scandir(args.root).close()
    except (OSError, RuntimeError) as error:
        parser.error(f"--root: {str(args.root)!r}: {_reason(error)}")
    if not args.question.strip():
        parser.error("--question: it is empty")
    if args.save is not None:
        folder = args.save.absolute().parent
        target = args.save if args.save.exists() else folder
        if args.save.is_dir() or not folder.is_dir() or not os.access(target, os.W_OK):
            parser.error(f"--save: {str(args.save)!r} cannot be written")
    return args


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {clean(message)} (see --help)\n")


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error).lower()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the agent; give the exit status."""
    args = read_arguments(argv)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    show = Show()
    show.head(root=args.root, question=args.question)
    session = Session()
    session.push_system(INSTRUCTIONS)
    session.push_user(args.question)
    hooks = make_hooks(args.root, ask_at_terminal)
    available = ToolAvailability.all() if args.allow_write else ToolAvailability.default()
    status = 1
    try:
        found = answer(session, args.chosen.model, hooks, args.root, available, show)
        if found is not None:
            status = 0
            show.answer(found.text, found.files)
        else:
            show.answer(f"None: the model had none after {MAX_TURNS} turns.")
    except KeyboardInterrupt:
        status = 130
        print("\nStopped.", file=sys.stderr)
    except (LutumError, *args.chosen.errors) as error:
        print(f"file_agent.py: {clean(str(error))}", file=sys.stderr)
    if args.save is not None:
        try:
            args.save.write_text(session.transcript.dump_json(), encoding="utf-8")
        except OSError as error:
            print(f"file_agent.py: --save: {_reason(error)}", file=sys.stderr)
            return 2
        show.head(saved=f"{args.save} ({len(session.transcript)} items)")
    return status


if __name__ == "__main__":
    try:
        ended = main()
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has seen enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        ended = 0
    sys.exit(ended)
