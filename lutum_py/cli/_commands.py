"""The commands of `lutum`, their options, and their exit codes."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from errno import ENOSPC
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from .. import __version__
from ..dialects import DIALECTS, Change, Violation
from ..errors import MissingExtraError
from ._conversation_file import Conversation, read_conversation, write_file
from ._inbox import decide, make_store, read_stored, store_at, waiting_data, waiting_lines, wish_of
from ._inspect import print_schemas, report_on, view_of
from ._loading import load_named, load_toolset, showing
from ._lock import DEFAULT_FILE, check_lock, write_lock
from ._mcp import inspect_server, serve_toolset
from ._screen import (
    Failure,
    answer,
    complain,
    counted,
    failing,
    render,
    silence,
    stand_in_for_closed,
    text,
    unwritten,
    write,
    write_bytes,
    write_json,
    write_traceback,
)
from ._show import new_page, page_of, screen_of, shown_file, shown_stored

_PLAIN: dict[str, Any] = {
    "no_args_is_help": True,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}
app = typer.Typer(
    add_completion=False,
    help="Look at toolsets and conversations, check and repair them, lock the schemas of tools, "
    "decide on calls that wait.",
    **_PLAIN,
)

_TOOLSET = "module:Toolset, path/to/file.py:Toolset or module:Outer.Inner."
_DIALECTS = ", ".join(DIALECTS)


def _argument(metavar: str, about: str) -> Any:
    """Describe a positional argument."""
    return typer.Argument(metavar=metavar, help=about)


def _option(about: str, metavar: str, *names: str) -> Any:
    """Describe an option that takes a value."""
    return typer.Option(*names, metavar=metavar, help=about)


def _flag(name: str, about: str) -> Any:
    """Describe an option that takes no value."""
    return typer.Option(name, help=about)


def _dialect(name: str) -> str:
    if name in DIALECTS:
        return name
    raise typer.BadParameter(f"{name!r} is not one of {_DIALECTS}.")


def _dialect_option(about: str) -> Any:
    about = f"{about}: {_DIALECTS}."
    return typer.Option(metavar="DIALECT", parser=_dialect, help=about)


def _file_argument(saved: str) -> Any:
    about = f"{saved}, or a request body, as JSON; - for standard input."
    return _argument("FILE", f"{about} With ID: a store, as `inbox` takes it.")


ToolsetArgument = Annotated[str, _argument("TOOLSET", _TOOLSET)]
AsJson = Annotated[bool, _flag("--json", "Print JSON for programs.")]
OfStore = Annotated[str | None, _argument("[ID]", "Names a conversation in a store.")]
KeyEnv = Annotated[str | None, _option("Where the store's key is, such as LUTUM_KEY.", "VARIABLE")]
RulesOf = Annotated[str | None, _dialect_option("Whose rules apply, if the content does not show")]
WithTraceback = Annotated[bool, _flag("--traceback", "Show all of a failing import's traceback.")]


def run(arguments: Sequence[str] | None) -> int:
    """Run one command and give its exit code; what is wrong goes to standard error."""
    stand_in_for_closed()
    given = None if arguments is None else list(arguments)
    try:
        typer.main.get_command(app).main(args=given, prog_name="lutum")
    except (Failure, MissingExtraError) as failure:
        complain(text(f"lutum: {failure}"))
    except RecursionError:
        complain(text("lutum: the input is nested too deeply."))
    # Typer ends every command so, also one that did its work, and gives 2 for wrong options.
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 2 if end.code else 0
    except Exception as error:  # noqa: BLE001 - 1 is taken: it says that something was found
        if isinstance(error, OSError) and error.errno == ENOSPC:  # typer wrote, as for `--help`
            silence(sys.stdout)
            complain(text(f"lutum: {unwritten(error)}"))
        else:
            write_traceback(error)
            complain(text("lutum: this is an error in lutum itself."))
    return 2


def _of_file(key_env: str | None) -> None:
    if key_env is not None:
        raise Failure("`--key-env` is for a conversation in a store: name its ID after the store.")


def _show_version(is_asked: bool) -> None:
    if is_asked:
        write(sys.stdout, f"lutum_py {__version__}\n")
        raise typer.Exit


def _violation_lines(violations: Iterable[Violation]) -> Iterator[Text]:
    """Show where each violation is, what is wrong and what fixes it."""
    for violation in violations:
        yield text("")
        yield text(f"{violation.position}  {violation.rule}", "bold")
        yield text(f"  problem: {violation.problem}")
        yield text(f"  remedy:  {violation.remedy}")


def _about(file: str, conversation: Conversation, left: list[Violation]) -> dict[str, Any]:
    """Return what programs read first about a conversation."""
    return {
        "file": file,
        "is_transcript": conversation.is_saved,
        "dialect": conversation.dialect,
        "clean": not left,
    }


def _report_repair(name: str, changes: list[Change], left: list[Violation]) -> None:
    """Show on standard error what a repair changed, and what it left."""
    count = counted(len(changes), "change") if changes else "nothing to repair"
    complain(text(f"{name}: {count}" if changes or not left else f"{name}: nothing was repaired"))
    for change in changes:
        complain(text(f"  {change.position}: {change.what} ({change.rule})"))
    if left:
        complain(text(f"Not repaired: {counted(len(left), 'violation')}"))
        complain(*_violation_lines(left))


@app.callback(epilog="`lutum COMMAND --help` explains the exit codes of a command.")
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Look at toolsets, check and repair conversations, lock the schemas of tools."""


@app.command(
    epilog="Exit codes: 0 printed; 1 a tool has no form in the dialect; 2 the toolset was not "
    "found, or could not be imported."
)
def inspect(
    toolset: ToolsetArgument,
    schema: Annotated[str | None, _dialect_option("Print what a provider is sent instead")] = None,
    strict: Annotated[bool, _flag("--strict/--no-strict", "With --schema: strict mode.")] = False,
    everything: Annotated[bool, _flag("--all", "With --schema: also tools that are off.")] = False,
    as_json: AsJson = False,
    with_traceback: WithTraceback = False,
) -> None:
    """Show the tools of a toolset.

    For each tool: what it does, its input with types and defaults, its output, whether it is on,
    what it declares of effects and limits, and an estimate of the tokens that it costs.
    """
    with showing(with_traceback):
        found = load_toolset(toolset)
    if schema is not None:
        print_schemas(found, schema, strict, everything, as_json)
        return
    report = report_on(found, toolset)
    answer(as_json, report, view_of(report))


@app.command(
    epilog="Exit codes: 0 clean; 1 violations found; 2 the file cannot be read, is not JSON, or of "
    "another dialect; there is no such conversation, or it is under another key."
)
def check(
    file: Annotated[str, _file_argument("A saved transcript or session")],
    id: OfStore = None,
    dialect: RulesOf = None,
    key_env: KeyEnv = None,
    as_json: AsJson = False,
) -> None:
    """Find what a provider would refuse.

    The conversation is what `dump_json()` or `dump_session` saved, the body of a request, or one in
    a store: `lutum check STORE ID`.
    """
    if id is None:
        _of_file(key_env)
        conversation = read_conversation(file, dialect)
    else:
        conversation, _ = read_stored(file, id, key_env, dialect)
    violations = conversation.check()
    stored = {} if id is None else {"id": id}
    found = {"violations": list(map(asdict, violations))}
    data = _about(file, conversation, violations) | stored | found
    count = counted(len(violations), "violation") if violations else "clean"
    answer(
        as_json,
        data,
        text(f"{conversation.name} ({conversation.what}): {count}", "bold"),
        *_violation_lines(violations),
    )
    raise typer.Exit(1 if violations else 0)


@app.command(
    epilog="Exit codes: 0 clean now; 1 something is left that could not be repaired; 2 the file "
    "cannot be read, is not JSON, or of another dialect."
)
def repair(
    file: Annotated[
        str,
        _argument("FILE", "A saved transcript or a request body, as JSON; - for standard input."),
    ],
    dialect: RulesOf = None,
    as_json: AsJson = False,
) -> None:
    """Fix what a provider would refuse.

    The result goes to standard output, as JSON; what was changed goes to standard error.
    """
    conversation = read_conversation(file, dialect)
    repaired, changes, left = conversation.repair()
    write_bytes(f"{repaired}\n".encode())
    if as_json:
        said = [{"position": c.position, "rule": c.rule, "what": c.what} for c in changes]
        report = {"changes": said, "violations_left": list(map(asdict, left))}
        write_json(sys.stderr, _about(file, conversation, left) | report)
    else:
        _report_repair(f"{conversation.name} ({conversation.what})", changes, left)
    raise typer.Exit(1 if left else 0)


@app.command(
    epilog="Exit codes: 0 shown; 1 shown, and something is wrong with it; 2 the file cannot be "
    "read, is nothing that is shown, or the page cannot be written; there is no such conversation, "
    "or it is under another key."
)
def show(
    file: Annotated[str, _file_argument("A saved transcript, plan or session")],
    id: OfStore = None,
    dialect: RulesOf = None,
    key_env: KeyEnv = None,
    html: Annotated[str | None, _option("Write a page; - for standard output.", "OUT")] = None,
    open_page: Annotated[bool, _flag("--open", "Open the page in the browser.")] = False,
) -> None:
    """Show a conversation, a plan or a request, with all that is wrong with it.

    On the terminal, or as one page of HTML that needs no network and runs no script. What was not
    masked when it was saved is not masked here.
    """
    if id is None:
        _of_file(key_env)
        shown = shown_file(file, dialect)
    else:
        shown = shown_stored(*read_stored(file, id, key_env, dialect))
    if html is None and not open_page:
        render(*screen_of(shown))
    elif html == "-":
        if open_page:
            raise Failure("`--open` does not go with standard output: name a file.")
        write_bytes(page_of(shown).encode())
    else:
        page = Path(html or new_page())
        if file != "-" and page.exists() and page.samefile(file):
            raise Failure(f"`{html}` is what is shown: name another file for the page.")
        write_file(page, page_of(shown).encode())
        complain(text(f"Written to `{page}`."))
        if open_page and not webbrowser.open(page.absolute().as_uri()):
            raise Failure(f"There is no browser to open `{page}`.")
    raise typer.Exit(1 if shown.faults else 0)


@app.command(
    epilog="Exit codes: 0 written, or nothing changed; 1 with --check: a tool was added, removed, "
    "renamed or changed; 2 a toolset or the lock file cannot be read."
)
def lock(
    toolsets: Annotated[
        list[str] | None, _argument("[TOOLSET]...", f"{_TOOLSET} By default those in the file.")
    ] = None,
    file: Annotated[Path, typer.Option(help="The lock file.")] = DEFAULT_FILE,
    drop: Annotated[list[str] | None, _option("Lock this one no longer.", "TOOLSET")] = None,
    is_check: Annotated[bool, _flag("--check", "Write nothing; show what differs.")] = False,
    as_json: AsJson = False,
    with_traceback: WithTraceback = False,
) -> None:
    """Keep tool schemas in a file, to see changes.

    Commit the file. Toolsets that are named are written again or added; the others in it stay. With
    --check, each tool that was added, removed or changed is shown field by field, and whether a
    call that was valid before would still decode.
    """
    named, dropped = toolsets or (), drop or ()
    if is_check and dropped:
        raise Failure("`--drop` does not go with `--check`, which writes nothing.")
    with showing(with_traceback):
        if is_check:
            raise typer.Exit(check_lock(named, file, as_json))
        write_lock(named, file, dropped, as_json)


@app.command(
    epilog="Exit codes: 0 shown, or decided; 2 refused: nothing waits by that name, it is not what "
    "was shown, or the store, the tools or the hooks cannot be used."
)
def inbox(
    store: Annotated[str, _argument("STORE", "A SQLite file, or postgresql://…")],
    action: Annotated[str | None, _argument("[approve|edit|cancel]", "What is decided.")] = None,
    which: Annotated[str | None, _argument("[CONVERSATION/CALL]", "Of which call.")] = None,
    digest: Annotated[str | None, _option("What was shown: 8 digits, or more.", "DIGITS")] = None,
    ticket: Annotated[str | None, _option("Which question was shown: its ticket.", "ID")] = None,
    changes: Annotated[
        list[str] | None, _option("With edit: another argument.", "NAME=JSON", "--set")
    ] = None,
    result: Annotated[str | None, _option("What the question asks for.", "JSON")] = None,
    reason: Annotated[str | None, _option("Why.", "TEXT")] = None,
    by: Annotated[str | None, _option("Who decides.", "WHO")] = None,
    tools: Annotated[str | None, _option(f"To decide: {_TOOLSET}", "TOOLSET")] = None,
    hooks: Annotated[str | None, _option("To edit: module:hooks.", "HOOKS")] = None,
    key_env: KeyEnv = None,
    as_json: AsJson = False,
    with_traceback: WithTraceback = False,
) -> None:
    """Show the calls that wait in a store, or decide on one.

    An approval is of what was shown: it names the digest, and other arguments are refused.
    """
    given = {"digest": digest, "ticket": ticket, "reason": reason, "by": by}
    wish = None if action is None else wish_of(action, which, changes, result, **given)
    with showing(with_traceback), failing(), store_at(store, key_env) as opened:
        if wish is None:
            waiting = opened.waiting()
            lines = waiting_lines(waiting) or [text("Nothing waits for a decision.")]
            answer(as_json, waiting_data(waiting), *lines)
            return
        outcome, lines = decide(opened, wish, tools, hooks)
    answer(as_json, {"call": wish.which, "action": wish.action, "outcome": outcome}, *lines)


store_commands = typer.Typer(help="Make a store.", **_PLAIN)
app.add_typer(store_commands, name="store")


@store_commands.callback()
def of_store() -> None:
    """Make a store."""


@store_commands.command(
    epilog="Exit codes: 0 the tables are there; 2 they cannot be made, or are of another version."
)
def init(
    address: Annotated[str, _argument("ADDRESS", "postgresql://…, or a SQLite file.")],
    as_json: AsJson = False,
) -> None:
    """Make the tables of a store, if they are not there.

    For a role that may create tables: with them, `open_store` needs no such right.
    """
    with failing(), make_store(address) as opened:
        name = opened.name
    answer(as_json, {"store": name}, text(f"The tables of the store are there: {name}"))


mcp = typer.Typer(
    help="Serve a toolset by MCP, or look at what a server offers (extra `mcp`).", **_PLAIN
)
app.add_typer(mcp, name="mcp")


@mcp.command(
    epilog="Exit codes: 0 served until it was stopped; 2 the toolset cannot be served so, or no "
    "transport or both were named."
)
def serve(
    toolset: ToolsetArgument,
    stdio: Annotated[bool, _flag("--stdio", "Serve the program that started this.")] = False,
    port: Annotated[
        int | None,
        typer.Option(
            "--http", metavar="PORT", min=0, max=65535, help="Serve this machine; 0 for any."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="An address of this machine alone: there is no authorisation.")
    ] = "127.0.0.1",
    hooks: Annotated[str | None, _option("module:HOOKS, who decides about calls.", "HOOKS")] = None,
    with_traceback: WithTraceback = False,
) -> None:
    """Serve the tools of a toolset that are on.

    What tools print goes to standard error. A tool that waits for a decision asks the user of the
    client.
    """
    with showing(with_traceback):
        found = load_toolset(toolset)
        decides = None if hooks is None else load_named(hooks)
    serve_toolset(found, hooks=decides, stdio=stdio, port=port, host=host)


@mcp.command(
    "inspect",
    epilog="Exit codes: 0 listed; 1 a tool of the server is refused; 2 the server was not reached, "
    "or what it lists is not a listing.",
    context_settings={"allow_interspersed_args": False},
)
def inspect_mcp(
    server: Annotated[
        list[str], _argument("SERVER...", "Its http address, or the command that runs it.")
    ],
    trusted: Annotated[bool, _flag("--trusted", "Believe the server about its risks.")] = False,
    only: Annotated[list[str] | None, _option("Take this tool; may be repeated.", "NAME")] = None,
    seconds: Annotated[float, _option("How long it may take.", "SECONDS", "--timeout")] = 30,
    as_json: AsJson = False,
) -> None:
    """Show what a server offers: its tools, their risks, what is refused and why, the digest.

    Options come before the server; what stands after it is its command line.
    """
    raise typer.Exit(inspect_server(server, trusted, only, seconds, as_json))
