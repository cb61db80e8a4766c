"""Run the calls of a round on a Dask cluster; the loop and the commit stay here.

    python examples/cluster.py
    python examples/cluster.py --kill-a-worker
    python examples/cluster.py --scheduler tcp://ADDRESS:8786

Needs `distributed` (`python -m pip install -e '.[examples]'`). Without `--scheduler` it starts
three worker processes of its own, on the loopback. With it, the workers need `lutum_py`, and must
be able to write to `--outbox`.

Calls and results are plain data: a call is pickled, run somewhere else, and its result comes back.
What is left to decide is what happens when a worker dies. Dask then runs again what was lost with
it, also tools that had finished and whose results were still with the worker. That is right for a
tool that is declared idempotent. Of any other call the scheduler holds a token: who takes it may
run the tool, and whoever comes second finds none. Such a call has no result, and becomes
`indeterminate`.
"""

# mypy: disallow-untyped-calls=false
# (`distributed` annotates only some of its functions.)

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import cluster_tools
from cluster_tools import Jobs

try:
    from distributed import Client, Future, LocalCluster, Queue
except ModuleNotFoundError as error:
    sys.exit(f"cluster.py needs the package {error.name!r}: python -m pip install -e '.[examples]'")

from lutum_py import (
    AnyToolCall,
    AssistantTurn,
    CallStatus,
    Finished,
    NeedsTools,
    Session,
    ToolResult,
    TurnRequest,
    execution,
    visible,
)
from lutum_py.testing import ScriptedModel

QUESTION = "How many primes are there below 40000? Tell Ada and Emmy that the count has begun."


def answer(client: Client, options: argparse.Namespace) -> Session:
    """Run the loop; only `run_on` knows of the cluster."""
    session = Session()
    session.push_user(QUESTION)
    model = ScriptedModel(scripted)
    while True:
        match session.text_turn(model).tools(Jobs).collect_sync():
            case Finished(result):
                print(visible(result.text, "\n"))
                return session
            case NeedsTools(round):
                plan = round.plan()
                results = run_on(client, plan.pending, options)
                if len(results) == len(plan.pending):
                    plan.commit(session, results)
                else:
                    # What was begun and has no result becomes `indeterminate`.
                    plan.abort(session, "The worker that ran it was lost.", results)


def run_on(
    client: Client, calls: Sequence[AnyToolCall], options: argparse.Namespace
) -> list[ToolResult]:
    """Run calls on the workers; give the results of those whose outcome is known."""
    run = uuid4().hex  # so that nothing meets the keys of another round
    queues: list[Queue] = []
    futures: list[Future[ToolResult | None]] = []
    doomed: dict[str, str] = {}

    def token(name: str) -> str:
        queues.append(Queue(name, client=client))
        queues[-1].put(1)
        return name

    for call in calls:
        key = f"{run}-{call.id}"
        permit = None if call.selector.definition.idempotent else token(f"{key}-permit")
        killer = None
        if options.kill_a_worker and call.name not in doomed:
            doomed[call.name] = call.id  # the first call of each tool loses its worker
            killer = token(f"{key}-killer")
        sent = call.again()
        call.move_to(CallStatus.RUNNING)  # from here on, without a result its outcome is unknown
        futures.append(client.submit(work, sent, options.outbox, permit, killer, key=key))
    results: list[ToolResult] = []
    for call, future in zip(calls, futures, strict=True):
        try:
            result = result_of(future, options.timeout)
            lost = "its worker was lost, and it may have had its effects"
        except Exception as error:  # noqa: BLE001 - whatever it was, the outcome is unknown
            result, lost = None, f"{type(error).__name__}: {error}"
            future.cancel()
        told = lost if result is None else result.model_text
        again = ", at the second try" if result and call.id in doomed.values() else ""
        print(visible(f"  {call.name} {call.metadata.arguments}: {told}{again}"))
        if result is not None:
            results.append(result)
    for queue in queues:
        queue.close()
    return results


def result_of(future: Future[ToolResult | None], timeout: float) -> ToolResult | None:
    """Wait for a result; what is not there in time can be cancelled, as nothing fetches it."""
    end = time.monotonic() + timeout
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    done.wait(timeout)
    left = end - time.monotonic()
    if left <= 0 or not done.is_set():
        raise TimeoutError(f"there was no result after {timeout:g} s")
    return future.result(timeout=left)


def work(
    call: AnyToolCall, outbox: Path, permit: str | None, killer: str | None
) -> ToolResult | None:
    """Run a call on a worker; None where another worker had begun it."""
    if permit is not None and not take(permit):
        return None
    outcome = execution.execute_sync(call, skipped={"outbox": outbox})
    if killer is not None and take(killer):
        os.kill(os.getpid(), signal.SIGKILL)  # the worst moment: done, and nobody knows
    assert isinstance(outcome, ToolResult)  # none of these tools suspends itself
    return outcome


def take(name: str) -> bool:
    """Take a token from the scheduler; only one taker in the whole cluster gets it."""
    queue = Queue(name)
    taken = bool(queue.get(batch=True))
    queue.close()
    return taken


def scripted(request: TurnRequest) -> AssistantTurn:
    """Stand in for a model: count in four parts, write two letters, and report."""
    results = [item for item in request.items if isinstance(item, ToolResult)]
    if not results:
        parts = [
            (f"part_{i}", "count_primes", {"start": i * 10_000, "stop": (i + 1) * 10_000})
            for i in range(4)
        ]
        letters = [
            (f"letter_{to}", "send_letter", {"recipient": to, "text": "The count has begun."})
            for to in ("Ada", "Emmy")
        ]
        return ScriptedModel.tool_calls(*parts, *letters)
    known = [item.output for item in results if item.name == "count_primes" and item.is_success]
    lines = [f"{len(known)} of 4 parts are counted: {sum(known)} primes."]
    lines += [f"{r.id}: {r.status}" for r in results if r.name == "send_letter"]
    return ScriptedModel.text("\n".join(lines))


@contextmanager
def connected(scheduler: str | None) -> Iterator[Client]:
    """Connect to a scheduler, or to a cluster of our own that ends with the block."""
    if scheduler is not None:
        try:
            client = Client(scheduler, timeout=10)
        except OSError as error:
            sys.exit(str(error))
        with client:
            client.upload_file(cluster_tools.__file__)
            yield client
        return
    with (
        LocalCluster(
            n_workers=3,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Run the calls of a round on a Dask cluster.")
    parser.add_argument("--scheduler", help="the address of a scheduler; else a cluster of its own")
    parser.add_argument("--kill-a-worker", action="store_true", help="lose workers on the way")
    parser.add_argument("--outbox", type=Path, help="the file that letters go to")
    parser.add_argument("--timeout", type=float, default=60, help="seconds to wait for a call")
    parser.add_argument("--save", type=Path, help="where to save the transcript")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder, connected(options.scheduler) as client:
        options.outbox = (options.outbox or Path(folder, "outbox.txt")).resolve()
        session = answer(client, options)
    if options.save is not None:
        options.save.write_text(session.transcript.dump_json(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
