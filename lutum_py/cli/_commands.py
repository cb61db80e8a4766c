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
from ..dialects import DIALECTS, Change, Loss, Violation
from ..errors import HistoryError, MissingExtraError
from ._atomic_write import write_file
from ._conversation_file import encoded_for, read_conversation, read_transcript, reading
from ._exact_json import exact_text
from ._inbox import decide, waiting_data, waiting_lines, wish_of
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
from ._stored import make_store, read_stored, store_at

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
_FILE = "A saved transcript or a request body, as JSON; - for standard input."
_DIALECTS = ", ".join(DIALECTS)


def _option(about: str, metavar: str, *names: str) -> Any:
    """Describe an option that takes a value."""
    return typer.Option(*names, metavar=metavar, help=about)


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Output = Annotated[str | None, _option("Write to this file.", "OUT", "--output", "-o")]
OfStore = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="Names a conversation in a store.")
]
KeyEnv = Annotated[str | None, _option("Where the store's key is, such as LUTUM_KEY.", "VARIABLE")]
WithTraceback = Annotated[
    bool, typer.Option("--traceback", help="Show the whole traceback of a failing import.")
]


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


def _write_out(target: str | None, data: bytes) -> str | None:
    """Write to the file that is named, and give its name; without one to standard output."""
    if target is None or target == "-":
        write_bytes(data)
        return None
    write_file(Path(target), data)
    return target


def _show_version(is_asked: bool) -> None:
    if is_asked:
        write(sys.stdout, f"lutum_py {__version__}\n")
        raise typer.Exit


def _dialect(name: str) -> str:
    if name in DIALECTS:
        return name
    raise typer.BadParameter(f"{name!r} is not one of {_DIALECTS}.")


def _dialect_option(about: str, *names: str) -> Any:
    return typer.Option(*names, metavar="DIALECT", parser=_dialect, help=about)


def _file_argument(saved: str) -> Any:
    store = "With ID: a store, as `inbox` takes it."
    text = f"{saved}, or a request body, as JSON; - for standard input. {store}"
    return typer.Argument(metavar="FILE", help=text)


def _violation_lines(violations: Iterable[Violation]) -> Iterator[Text]:
    """Show where each violation is, what is wrong and what fixes it."""
    for violation in violations:
        yield text("")
        yield text(f"{violation.position}  {violation.rule}", "bold")
        yield text(f"  problem: {violation.problem}")
        yield text(f"  remedy:  {violation.remedy}")


def _tell_repair(
    name: str, changes: list[Change], left: list[Violation], written: str | None
) -> None:
    """Say on standard error what a repair changed, and what it left."""
    count = counted(len(changes), "change") if changes else "nothing to repair"
    complain(text(f"{name}: {count}" if changes or not left else f"{name}: nothing was repaired"))
    for change in changes:
        complain(text(f"  {change.position}: {change.what} ({change.rule})"))
    if written is not None:
        complain(text(f"Written to `{written}`."))
    if left:
        complain(text(f"Not repaired: {counted(len(left), 'violation')}"))
        complain(*_violation_lines(left))


_MAY_TELL = "May be left out if the content tells."
RulesOf = Annotated[str | None, _dialect_option(f"Whose rules apply: {_DIALECTS}. {_MAY_TELL}")]


@app.callback(epilog="`lutum COMMAND --help` tells what the exit codes of a command mean.")
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
    toolset: Annotated[str, typer.Argument(metavar="TOOLSET", help=_TOOLSET)],
    schema: Annotated[
        str | None, _dialect_option(f"Print what a provider is sent instead: {_DIALECTS}.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict/--no-strict", help="With --schema: for the strict mode.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="With --schema: also the tools that are off.")
    ] = False,
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
    data = {
        "file": file,
        **({} if id is None else {"id": id}),
        "is_transcript": conversation.is_saved,
        "dialect": conversation.dialect,
        "clean": not violations,
        "violations": [asdict(violation) for violation in violations],
    }
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
    "cannot be read or written, is not JSON, or of another dialect."
)
def repair(
    file: Annotated[str, typer.Argument(metavar="FILE", help=_FILE)],
    dialect: RulesOf = None,
    output: Output = None,
    in_place: Annotated[bool, typer.Option("--in-place", help="Write to FILE itself.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fix what a provider would refuse.

    The result goes to standard output unless a file is named; what was changed goes to standard
    error. Whatever needs no repair stays as it is.
    """
    if in_place and (output is not None or file == "-"):
        what = "--output" if output is not None else "standard input"
        raise Failure(f"`--in-place` does not go with {what}.")
    conversation = read_conversation(file, dialect)
    data, changes, left = conversation.repair()
    # A file that needs no repair is not touched: not even its time changes.
    is_due = bool(changes) or not in_place
    written = _write_out(file if in_place else output, data) if is_due else None
    report = {
        "file": file,
        "is_transcript": conversation.is_saved,
        "dialect": conversation.dialect,
        "written": written,
        "clean": not left,
        "changes": [{"position": c.position, "rule": c.rule, "what": c.what} for c in changes],
        "violations_left": [asdict(violation) for violation in left],
    }
    if as_json:
        write_json(sys.stderr, report)
    else:
        _tell_repair(f"{conversation.name} ({conversation.what})", changes, left, written)
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
    html: Annotated[
        str | None,
        typer.Option(metavar="OUT", help="Write a page to this file; - for standard output."),
    ] = None,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
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
        raise typer.Exit(1 if shown.faults else 0)
    if html == "-" and open_page:
        raise Failure("`--open` does not go with standard output: name a file.")
    target = new_page() if html is None else html
    if "-" not in (file, target) and Path(target).exists() and Path(target).samefile(file):
        raise Failure(f"`{html}` is what is shown: name another file for the page.")
    written = _write_out(target, page_of(shown).encode())
    if written is not None:
        complain(text(f"Written to `{written}`."))
    if open_page and not webbrowser.open(Path(written or "").absolute().as_uri()):
        raise Failure(f"There is no browser to open `{written}`.")
    raise typer.Exit(1 if shown.faults else 0)


@app.command(
    epilog="Exit codes: 0 converted; 1 the provider of FILE would refuse it; 2 the file cannot be "
    "read or written, is not JSON, or of another dialect."
)
def convert(
    file: Annotated[str, typer.Argument(metavar="FILE", help=_FILE)],
    to: Annotated[str, _dialect_option(f"What to write a request of: {_DIALECTS}.")],
    dialect: Annotated[
        str | None, _dialect_option(f"What FILE is a request of. {_MAY_TELL}", "--from")
    ] = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Write a conversation as the body of another provider's request.

    What is written are the messages and instructions, without tools and parameters; to standard
    output unless a file is named. What could not be carried over goes to standard error.
    """
    conversation = read_conversation(file, dialect, "--from")
    asked = {"file": file, "from": conversation.dialect, "to": to}
    try:
        transcript, lost = read_transcript(conversation)
    except HistoryError as error:
        if as_json:
            violations = [asdict(violation) for violation in error.violations]
            write_json(sys.stderr, {**asked, "violations": violations})
        else:
            told = f"{conversation.name} ({conversation.what}) would be refused. Repair it first:"
            complain(text(told), *_violation_lines(error.violations))
        raise typer.Exit(1) from error
    if conversation.has_plan:
        why = "the open round, with its turn and calls, is left out: it is not committed yet"
        lost.append(Loss("plan", why))
    with reading(conversation.name):
        body = encoded_for(to, transcript)
        data = exact_text(dict(body), conversation.style).encode()
    _write_out(output, data)
    losses = [
        *({"of": "reading", **asdict(each)} for each in lost),
        *({"of": "writing", **asdict(each)} for each in body.losses),
    ]
    if as_json:
        write_json(sys.stderr, {**asked, "losses": losses})
        return
    count = counted(len(losses), "loss") if losses else "nothing was lost"
    complain(text(f"{conversation.name} ({conversation.what}) as {to}: {count}"))
    for each in losses:
        complain(text(f"  {each['of']} {each['where']}: {each['text']}"))


@app.command(
    epilog="Exit codes: 0 written, or nothing changed; 1 with --check: a tool was added, removed "
    "or changed; 2 a toolset or the lock file cannot be read."
)
def lock(
    toolsets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TOOLSET]...", help=f"{_TOOLSET} By default those in the file."),
    ] = None,
    file: Annotated[Path, typer.Option(help="The lock file.")] = DEFAULT_FILE,
    drop: Annotated[
        list[str] | None, _option("Lock this one no longer, as the file names it.", "TOOLSET")
    ] = None,
    is_check: Annotated[
        bool, typer.Option("--check", help="Write nothing; say what differs from the file.")
    ] = False,
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
    store: Annotated[str, typer.Argument(metavar="STORE", help="A SQLite file, or postgresql://…")],
    action: Annotated[
        str | None, typer.Argument(metavar="[approve|edit|cancel]", help="What is decided.")
    ] = None,
    which: Annotated[
        str | None, typer.Argument(metavar="[CONVERSATION/CALL]", help="Of which call.")
    ] = None,
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
    said = {"digest": digest, "ticket": ticket, "reason": reason, "by": by}
    wish = None if action is None else wish_of(action, which, changes, result, **said)
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
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="postgresql://…, or a SQLite file.")
    ],
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
    toolset: Annotated[str, typer.Argument(metavar="TOOLSET", help=_TOOLSET)],
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Serve the program that started this process.")
    ] = False,
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
        list[str],
        typer.Argument(metavar="SERVER...", help="Its http address, or the command that runs it."),
    ],
    trusted: Annotated[
        bool, typer.Option("--trusted", help="Believe what the server says about its risks.")
    ] = False,
    only: Annotated[list[str] | None, _option("Take this tool; may be repeated.", "NAME")] = None,
    seconds: Annotated[float, _option("How long it may take.", "SECONDS", "--timeout")] = 30,
    as_json: AsJson = False,
) -> None:
    """Show what a server offers: its tools, their risks, what is refused and why, the digest.

    Options come before the server; what stands after it is its command line.
    """
    raise typer.Exit(inspect_server(server, trusted, only, seconds, as_json))
