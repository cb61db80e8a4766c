"""The laws of labels: said by a tool, kept wherever its result goes, and never sent."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import (
    Complete,
    Labels,
    Reply,
    Session,
    ToolResult,
    Toolset,
    Transcript,
    tool,
    tool_fn,
)
from lutum_py.dialects import anthropic_messages, gemini_generate_content, openai_chat
from lutum_py.dialects import openai_responses as responses
from lutum_py.errors import MisuseError, TranscriptError
from lutum_py.execution import run_sync
from lutum_py.store import Store, open_store
from lutum_py.tools import ResultCap
from lutum_py.window import View
from tests.cases import over
from tests.round_tools import opened

OURS = Labels(trusted=False, readers=("ann@a.com",))


@tool_fn
def mail(id: int, fail: bool = False) -> Reply[str]:
    """Read a mail."""
    if fail:
        return Reply("no such mail", status="error", labels=OURS)
    return Reply("x" * 1_000, labels=OURS)


@tool_fn
def plain(id: int) -> str:
    """Read something."""
    return "plain"


class Box(Toolset):
    mail = tool(mail)
    plain = tool(plain)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "store.db"), key=b"k" * 32) as made:
        yield made


READ = ("c1", "mail", {"id": 1})
OWN = st.builds(
    Labels, st.none() | st.booleans(), st.none() | st.lists(st.text(max_size=5), max_size=3)
)
LABELS = st.builds(
    lambda own, inner: Labels(own.trusted, own.readers, inner),
    OWN,
    st.lists(st.tuples(st.text(max_size=5), st.none() | OWN), max_size=3),
)


def result(**more: Any) -> ToolResult:
    return ToolResult(id="c1", name="mail", arguments="{}", result='"text"', **more)


def committed(**options: Any) -> Session:
    session = Session()
    session.push_user("What is new?")
    run_sync(opened(READ, toolset=Box).plan(), **options).commit(session)
    return session


def labels_in(transcript: Any) -> list[Labels | None]:
    return [item.labels for item in transcript if isinstance(item, ToolResult)]


@over("readers, kept", [(None, None), ((), ()), (["b", "a", "b"], ("a", "b")), ({"é": 1}, ("é",))])
def test_readers_are_kept_in_order_and_each_once(readers: Any, kept: Any) -> None:
    """Labels that say the same are the same value, and cannot be changed."""
    made = Labels(trusted=True, readers=readers)
    assert made.readers == kept
    assert made == Labels(True, kept) == copy.deepcopy(made) == pickle.loads(pickle.dumps(made))
    assert hash(made) == hash(Labels(True, kept))


def test_labels_are_shown_without_what_most_do_not_have() -> None:
    """What a result was made of is shown where it is known, each tool with the same labels once."""
    assert repr(OURS) == "Labels(trusted=False, readers=('ann@a.com',))"
    made = Labels(True, inner=[("mail", None), ("mail", None), ("mail", OURS)])
    assert made.inner == (("mail", None), ("mail", OURS))
    assert (
        repr(made)
        == f"Labels(trusted=True, readers=None, inner=(('mail', None), ('mail', {OURS})))"
    )
    assert hash(made) != hash(Labels(True)) != made


@over(
    "wrong",
    [
        {"trusted": 1},
        {"readers": "ann"},
        {"readers": b"ann"},
        {"readers": [1]},
        {"inner": [(1, None)]},
        {"inner": [("mail", True)]},
        {"inner": [("mail",)]},
        {"inner": "mail"},
        {"inner": None},
    ],
)
def test_what_are_no_labels_is_refused(wrong: dict[str, Any]) -> None:
    """A lone text is no list of readers, nor is a number a truth value."""
    with pytest.raises(MisuseError):
        Labels(**wrong)


def test_labels_are_read_of_a_mapping_alone() -> None:
    """What is no `_meta` is refused by its name."""
    wrong: Any = 3
    with pytest.raises(MisuseError, match="meta"):
        Labels.of_meta(wrong, believed=True)


def test_what_carries_labels_takes_nothing_else() -> None:
    """A result and a reply refuse what are no labels."""
    with pytest.raises(MisuseError, match="labels"):
        result(labels={"trusted": True})
    given: Any = "trusted"
    with pytest.raises(MisuseError, match="labels"):
        Reply("x", labels=given)


@given(LABELS | st.none())
def test_labels_are_saved_with_a_result(labels: Labels | None) -> None:
    """What is saved loads to the same; a result without labels is saved as ever."""
    made = result(labels=labels)
    assert ToolResult.load_json(made.dump_json()) == made == pickle.loads(pickle.dumps(made))
    assert ("labels" in made.dump_json()) is (labels is not None)


@over(
    "damaged",
    [
        '{"trusted":1}',
        '{"readers":"ann"}',
        '{"readers":[1]}',
        '{"inner":[7]}',
        '{"inner":[{"tool":1}]}',
        '{"inner":[{"tool":"a","labels":{"trusted":1}}]}',
        "7",
    ],
)
def test_damaged_labels_are_told_of(damaged: str) -> None:
    """A saved result says where its labels are damaged."""
    text = result(labels=OURS).dump_json()
    at = text.index('{"trusted"')
    with pytest.raises(TranscriptError, match=r"\$\.labels"):
        ToolResult.load_json(text[:at] + damaged + text[text.index("}", at) + 1 :])


@over("fails, status", [(False, "success"), (True, "error")])
def test_a_tool_says_them_by_its_reply(fails: bool, status: str) -> None:
    """The labels of a reply are those of the result, whatever its status."""
    with opened(("c1", "mail", {"id": 1, "fail": fails}), toolset=Box) as asked:
        made = asked.expect_one().call_sync()
        asked.discard()
    assert (made.status, made.labels) == (status, OURS)
    assert Reply("x", labels=OURS) == pickle.loads(pickle.dumps(Reply("x", labels=OURS)))
    assert repr(Reply("x", labels=OURS)) == f"Reply('x', labels={OURS!r})"


def test_a_hook_says_them_by_its_reply_too() -> None:
    """A call that a hook answers has the labels of that answer."""
    hooks = Box.HookSet()
    hooks.on(Box.mail)(lambda metadata, input: Complete(Reply("old", labels=OURS)))
    plan = opened(READ, toolset=Box).apply_hooks_sync(hooks)
    assert [each.labels for each in plan.resolve().results] == [OURS]


@over("own", [None, Labels(trusted=True)])
def test_another_result_in_its_place_has_them(own: Labels | None) -> None:
    """What an after-hook puts in the place of a result has its labels, unless it has its own."""
    hooks = Box.HookSet()

    @hooks.after()
    def shorten(call: Any, made: ToolResult) -> ToolResult:
        changed = made.labels and own
        return ToolResult(
            id=made.id, name=made.name, arguments=made.arguments, result='"x"', labels=changed
        )

    @hooks.after()
    def look(call: Any, made: ToolResult) -> None:
        assert made.labels == (own or OURS)

    plan = opened(READ, toolset=Box).apply_hooks_sync(hooks)
    (made,) = plan.apply_after_hooks_sync(hooks, [plan.pending[0].call_sync()])
    assert plan.resolve([made]).results[0].labels == (own or OURS)
    plan = opened(READ, toolset=Box).apply_hooks_sync(hooks)
    plan.record(plan.pending[0].call_sync())
    plan.apply_after_hooks_sync(hooks)
    assert plan.resolve().results[0].labels == (own or OURS)


def test_they_are_kept_wherever_the_conversation_goes(store: Store) -> None:
    """Caps, views, branches, a saved plan, session, transcript and store: the labels stay."""
    session = committed()
    transcript = session.transcript
    assert labels_in(transcript) == [OURS]
    assert labels_in(session.branch().transcript) == [OURS]
    assert labels_in(Transcript.load_json(transcript.dump_json())) == [OURS]
    capped = ResultCap(400).apply(transcript[2])  # type: ignore[arg-type]
    assert (capped.model_text != transcript[2].model_text, capped.labels) == (True, OURS)  # type: ignore[union-attr]
    view = View().clear_results(transcript, older_than=0)
    assert labels_in(view.of(transcript)) == [OURS]
    plan = opened(READ, toolset=Box).plan()
    plan.record(plan.pending[0].call_sync())
    loaded = Box.load_plan(plan.dump_json())
    store.save("one", loaded, session=session)
    stored = store.load("one", Box)
    assert stored.plan is not None
    assert labels_in(stored.session.transcript) == [OURS]
    assert [each.labels for each in stored.plan.resolve().results] == [OURS]


def test_a_store_keeps_them_of_what_it_runs(store: Store) -> None:
    """A result that a store puts on record has the labels of its tool's reply."""
    store.save("one", opened(READ, toolset=Box).plan())
    claim = store.claim(Box)
    assert claim is not None
    store.finish(claim, store.start(claim).call_sync())
    plan = store.load("one", Box).plan
    assert plan is not None
    assert [each.labels for each in plan.resolve().results] == [OURS]


@over("dialect", [anthropic_messages, gemini_generate_content, openai_chat, responses])
def test_they_are_never_sent(dialect: Any) -> None:
    """No dialect writes a word of them, and a history that is read has none."""
    messages = dialect.messages(committed().transcript)
    assert "ann@a.com" not in repr(messages)
    assert "trusted" not in repr(messages)


IFC: list[tuple[Any, Labels | None, Labels | None]] = [
    (None, None, None),
    ({}, None, None),
    ({"ifc": {}}, None, None),
    ({"ifc": {"other": 1}}, None, None),
    ({"ifc": {"integrity": "trusted"}}, Labels(trusted=True), None),
    (
        {"ifc": {"integrity": "trusted", "confidentiality": ["b"]}},
        Labels(True, ["b"]),
        Labels(None, ["b"]),
    ),
    ({"ifc": {"integrity": "untrusted"}}, Labels(False), Labels(False)),
    ({"ifc": {"integrity": "perhaps"}}, Labels(False), Labels(False)),
    ({"ifc": {"integrity": None}}, Labels(False), Labels(False)),
    ({"ifc": {"confidentiality": "public"}}, None, None),
    ({"ifc": {"confidentiality": "private"}}, Labels(None, ()), Labels(None, ())),
    ({"ifc": {"confidentiality": [1]}}, Labels(None, ()), Labels(None, ())),
    ({"ifc": {"confidentiality": None}}, Labels(None, ()), Labels(None, ())),
    ({"ifc": "trusted"}, Labels(False, ()), Labels(False, ())),
]


@over("meta, believed, doubted", IFC)
def test_a_server_that_is_not_believed_can_only_lower(
    meta: Any, believed: Labels | None, doubted: Labels | None
) -> None:
    """What nobody understands counts as the least trust, and as nobody's to read."""
    assert Labels.of_meta(meta, believed=True) == believed
    assert Labels.of_meta(meta, believed=False) == doubted
