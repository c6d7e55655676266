"""One line of JSONL is understood, or refused with a reason that names the field and never quotes the text (C1)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from observations.ingest.lines import MAX_LINE, MAX_TEXT, Line, LineRefused, parse_line
from observations.records import Claim, EvidenceRef, Outcome, SourceRef, StatedBy, Status, Turn, WrittenBy

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def parsed(line: object, *, scope: str | None = "s", field: str | None = None) -> Line:
    raw = line if isinstance(line, bytes | str) else json.dumps(line)
    return parse_line(raw, scope=scope, scope_field=field, now=NOW)


def claim(**fields: object) -> Claim:
    item = parsed({"text": "Tea at four.", **fields}).item
    assert isinstance(item, Claim)
    return item


def turn(**fields: object) -> Turn:
    item = parsed({"text": "Hello.", "speaker": "Ivy", **fields}).item
    assert isinstance(item, Turn)
    return item


def refusal(line: object, *, scope: str | None = "s", field: str | None = None) -> str:
    with pytest.raises(LineRefused) as caught:
        parsed(line, scope=scope, field=field)
    return str(caught.value)


# --- what a line means ----------------------------------------------------------------------------------------------


def test_an_observation_line_of_a_data_file_is_understood_as_it_stands() -> None:
    line = parsed(
        {
            "id": "conv-1/S1O1",
            "scope": "chat/conv-1/Ana",
            "conversation": "conv-1",
            "subject": "Ana",
            "session": 1,
            "created_at": "2023-05-08T13:56:00+00:00",
            "source_uris": ["chat://conv-1/D1:3", "chat://conv-1/D1:4"],
            "text": "Ana grows tomatoes.",
        },
        scope=None,
    )
    assert line.scope == "chat/conv-1/Ana"
    assert line.item == Claim(
        text="Ana grows tomatoes.",
        external_id="conv-1/S1O1",
        subject="Ana",
        created_at=datetime(2023, 5, 8, 13, 56, tzinfo=UTC),
        evidence=(EvidenceRef("chat://conv-1/D1:3"), EvidenceRef("chat://conv-1/D1:4")),
    )


def test_a_line_with_a_speaker_is_an_episode() -> None:
    item = turn(
        id="e1", session=3, seq=7, created_at="2023-05-08", source_uri="chat://1", outcome="success", role="user"
    )
    assert item == Turn(
        text="Hello.",
        external_id="e1",
        speaker="Ivy",
        role="user",
        session="3",
        seq=7,
        happened_at=datetime(2023, 5, 8, tzinfo=UTC),
        source_uri="chat://1",
        outcome=Outcome.SUCCESS,
    )


def test_a_question_and_its_answer_are_one_episode_with_both_voices() -> None:
    item = parsed({"query": "Where is the key?", "response": "Under the mat.", "speaker": "Ivy"}).item
    assert isinstance(item, Turn)
    assert item.text == "Ivy: Where is the key?\nassistant: Under the mat."


@pytest.mark.parametrize("field", ["speaker", "source_uri", "query"])
def test_what_only_episodes_have_makes_an_episode(field: str) -> None:
    assert isinstance(parsed({"text": "t", field: "x"}).item, Turn)


@pytest.mark.parametrize("field", ["subject", "predicate", "object"])
def test_what_only_claims_have_makes_an_observation_in_spite_of_a_source(field: str) -> None:
    item = parsed({"text": "t", "source_uri": "doc://1", field: "x"}).item
    assert isinstance(item, Claim)
    assert item.evidence == (EvidenceRef("doc://1"),)


def test_kind_decides_where_it_is_given() -> None:
    assert isinstance(parsed({"text": "t", "speaker": "Ivy", "kind": "observation"}).item, Claim)
    assert isinstance(parsed({"text": "t", "kind": "episode"}).item, Turn)


def test_an_explicit_scope_wins_over_the_lines_own() -> None:
    assert parsed({"text": "t", "scope": "own"}, scope="given").scope == "given"


def test_the_scope_field_says_where_a_line_goes() -> None:
    assert parsed({"text": "t", "scope": "own", "conversation": "c-1"}, scope=None, field="conversation").scope == "c-1"


def test_fields_nobody_knows_are_left_alone() -> None:
    assert claim(image_caption="a cat", predicate_id="P466") == claim()


def test_null_is_the_same_as_absent() -> None:
    assert claim(subject=None, confidence=None, valid_to=None, source_uris=None, id=None) == claim()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2023-05-08T13:56:00+02:00", datetime(2023, 5, 8, 11, 56, tzinfo=UTC)),
        ("2023-05-08T13:56:00", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("2023-05-08T13:56:00Z", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("2023-05-08", datetime(2023, 5, 8, tzinfo=UTC)),
        ("2023-05", datetime(2023, 5, 1, tzinfo=UTC)),
        ("1811", datetime(1811, 1, 1, tzinfo=UTC)),
    ],
)
def test_times_are_read_as_utc_where_no_zone_is_given(written: str, meant: datetime) -> None:
    assert claim(created_at=written).created_at == meant
    assert claim(valid_from=written).valid_from == meant


def test_a_writers_clock_may_run_a_little_ahead() -> None:
    soon = NOW + timedelta(minutes=4)
    assert claim(created_at=soon.isoformat()).created_at == soon
    assert (
        refusal({"text": "t", "created_at": (NOW + timedelta(minutes=6)).isoformat()}) == "created_at is in the future"
    )


def test_validity_may_reach_into_the_future() -> None:
    assert claim(valid_to="2031-01-01").valid_to == datetime(2031, 1, 1, tzinfo=UTC)


def test_the_same_source_named_twice_is_one_piece_of_evidence_and_the_fuller_one() -> None:
    found = claim(
        source_uris=["doc://1", "doc://2"], evidence=[{"uri": "doc://1", "quote": "tea", "start": 3}]
    ).evidence
    assert found == (EvidenceRef("doc://1", quote="tea", quote_start=3), EvidenceRef("doc://2"))


def test_a_byte_order_mark_and_windows_line_ends_are_no_fault() -> None:
    assert parsed(b'\xef\xbb\xbf{"text": "t"}\r\n').item == parsed({"text": "t"}).item


@pytest.mark.parametrize("bad", ["\0", "\ud83d"])
def test_a_bad_character_in_a_field_that_is_not_kept_still_marks_the_line_as_cleaned(bad: str) -> None:
    """C1: the variant in a metadata value."""
    line = {"id": "a", "text": "Log tail: ok", "metadata": {"tags": ["fine", f"no{bad}t"]}}
    assert parsed(line).past.cleaned
    turn = parsed({**line, "kind": "episode", "speaker": "Ana"}).item
    assert isinstance(turn, Turn)
    assert turn.cleaned
    assert not parsed({**line, "metadata": {"tags": ["fine"]}}).past.cleaned


def test_a_text_with_nul_or_half_a_pair_is_taken_as_it_came_for_the_store_to_clean() -> None:
    assert claim(text="ok\0done").text == "ok\0done"
    assert claim(text="half \ud83d").text == "half \ud83d"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b'{"text": "ok\0done"}', "ok\0done"),
        (b'{"text": "half \xed\xa0\xbd"}', "half \ud83d"),
        (b'{"text": "a\ttab"}', "a\ttab"),
    ],
    ids=["nul", "half a pair", "tab"],
)
def test_a_bad_character_written_bare_in_the_line_is_taken_like_an_escaped_one(raw: bytes, text: str) -> None:
    """C1: a writer that escapes nothing loses no event over one character."""
    item = parsed(raw).item
    assert isinstance(item, Claim)
    assert item.text == text


# --- the past of exported rows --------------------------------------------------------------------------------------


def test_a_line_of_an_export_carries_the_rows_past() -> None:
    line = parsed(
        {
            "id": "m1",
            "text": "t",
            "status": "superseded",
            "superseded_by": "m2",
            "written_by": "consolidation",
            "derivation": "merge",
            "derived_at": "2026-01-01T00:00:00+00:00",
            "produced_by": "op_1#1",
            "chain": 2,
            "uses_inherited": 5,
            "cleaned": True,
            "lineage": [{"kind": "observation", "id": "a"}, {"kind": "episode", "id": "b"}],
        }
    )
    assert line.past.status == Status.SUPERSEDED
    assert line.past.superseded_by == "m2"
    assert line.past.written_by == WrittenBy.CONSOLIDATION
    assert line.past.lineage == (SourceRef("a"), SourceRef("b", episode=True))
    assert (line.past.chain, line.past.uses_inherited, line.past.cleaned) == (2, 5, True)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"status": "superseded"}, "superseded_by is missing: a superseded row names its successor"),
        ({"superseded_by": "x"}, "superseded_by cannot stand beside the status active"),
        ({"status": "retracted", "superseded_by": "x"}, "superseded_by cannot stand beside the status retracted"),
        ({"status": "erased"}, "erased stands in erased lines, and only there"),
        ({"derivation": "merge"}, "derivation, derived_at, produced_by and lineage stand together or not at all"),
        ({"lineage": [{"id": "x"}]}, "lineage.kind must be observation or episode"),
        ({"lineage": [{"kind": "observation"}]}, "lineage.id is missing or empty"),
        ({"lineage": "x"}, "lineage must be a list of objects"),
        (
            {"supersedes": "x", "status": "archived"},
            "supersedes cannot stand beside a status, a derivation or a given key: give one or the other",
        ),
        ({"status": "archived", "id": None}, "id is missing: a line with a status needs one"),
    ],
)
def test_half_a_past_is_refused(fields: dict[str, object], reason: str) -> None:
    assert refusal({"id": "a", "text": "t", **fields}) == reason


def test_an_erased_line_brings_no_text_back() -> None:
    erased = {"by": "Ana", "reason": "asked", "request": "forget:1"}
    line = parsed({"id": "a", "status": "erased", "erased": erased})
    assert isinstance(line.item, Claim)
    assert line.item.text == ""
    assert "text cannot stand" in refusal({"id": "a", "text": "t", "status": "erased", "erased": erased})


def test_an_erased_line_of_a_users_word_needs_a_forget_request() -> None:
    """I12: refused when it is read, because at the end of the file it would sink the whole import."""
    line = {"id": "a", "status": "erased", "stated_by": "user"}
    by_policy = {"by": "Ana", "reason": "old", "request": "op_1"}
    assert "must be a forget request" in refusal({**line, "erased": by_policy})
    assert parsed({**line, "erased": {**by_policy, "request": "forget:1"}}).past.status == Status.ERASED


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"text": ""}, "text is missing or empty"),
        ({"text": " \n\t"}, "text is missing or empty"),
        ({"text": None}, "text is missing or empty"),
        ({"text": 5}, "text must be a text, not a number"),
        ({"text": ["t"]}, "text must be a text, not a list"),
        ({"text": {"t": 1}}, "text must be a text, not an object"),
        ({"text": True}, "text must be a text, not true or false"),
        ({"text": "x" * (MAX_TEXT + 1)}, "text is longer than 100,000 characters"),
        ({"text": "x" * 1_000_000}, "text is longer than 100,000 characters"),
        ({"id": "x" * 201}, "id is longer than 200 characters"),
        ({"id": "a\0b"}, "id holds a character that cannot be stored in an id"),
        ({"id": "a\ud83d"}, "id holds a character that cannot be stored in an id"),
        ({"id": {}}, "id must be a text, not an object"),
        ({"id": True}, "id must be a text, not true or false"),
        ({"kind": "fact"}, "kind must be observation or episode"),
        ({"subject": "x" * 501}, "subject is longer than 500 characters"),
        ({"subject": 7}, "subject must be a text, not a number"),
        ({"object": "x" * 1001}, "object is longer than 1,000 characters"),
        ({"confidence": 1.01}, "confidence must be a number from 0 to 1"),
        ({"confidence": -0.1}, "confidence must be a number from 0 to 1"),
        ({"confidence": True}, "confidence must be a number from 0 to 1"),
        ({"confidence": "0.5"}, "confidence must be a number from 0 to 1"),
        ({"stated_by": "God"}, "stated_by must be one of user, operator, agent, tool, outside"),
        ({"stated_by": ["user"]}, "stated_by must be one of user, operator, agent, tool, outside"),
        ({"written_by": "me"}, "written_by must be one of deliberate, background, import, consolidation"),
        ({"created_at": "yesterday"}, "created_at must be a time such as 2024-05-31 or 2024-05-31T10:00:00Z"),
        ({"created_at": 1700000000}, "created_at must be a time such as 2024-05-31 or 2024-05-31T10:00:00Z"),
        (
            {"created_at": "0001-01-01T00:00:00+14:00"},
            "created_at must be a time such as 2024-05-31 or 2024-05-31T10:00:00Z",
        ),
        ({"created_at": "2030-01-01"}, "created_at is in the future"),
        ({"valid_from": "2020-02-30"}, "valid_from must be a time such as 2024-05-31 or 2024-05-31T10:00:00Z"),
        ({"valid_from": "0000"}, "valid_from must be a time such as 2024-05-31 or 2024-05-31T10:00:00Z"),
        ({"valid_from": "1985", "valid_to": "1848"}, "valid_to is before valid_from"),
        ({"source_uris": [7]}, "source_uris must be a text, not a number"),
        ({"source_uris": {"a": 1}}, "source_uris must be a text, not an object"),
        ({"source_uris": ["x" * 1001]}, "source_uris is longer than 1,000 characters"),
        ({"source_uris": ["ü" * 1000 + "x"]}, "source_uris is longer than 1,000 characters"),
        ({"source_uris": ["日" * 700]}, "source_uris is longer than 2,000 bytes"),
        ({"evidence": ["x"]}, "evidence must be a list of objects"),
        ({"evidence": [{"quote": "x"}]}, "evidence.uri is missing or empty"),
        ({"evidence": [{"uri": "x", "start": -1}]}, "start must be a whole number from 0 to 2147483647"),
        ({"chain": 1.5}, "chain must be a whole number from 0 to 1000"),
        ({"cleaned": "yes"}, "cleaned must be true or false"),
        ({"status": "gone"}, "status must be one of active, superseded, archived, retracted, quarantined, erased"),
    ],
)
def test_a_field_of_the_wrong_kind_is_refused_by_its_name(fields: dict[str, object], reason: str) -> None:
    assert refusal({"text": "t", **fields}) == reason


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"seq": 2**31}, "seq must be a whole number from -2147483647 to 2147483647"),
        ({"seq": 1.0}, "seq must be a whole number from -2147483647 to 2147483647"),
        ({"seq": "1"}, "seq must be a whole number from -2147483647 to 2147483647"),
        ({"session": 1.5}, "session must be a text, not a number"),
        ({"role": "x" * 41}, "role is longer than 40 characters"),
        ({"outcome": "great"}, "outcome must be one of success, claimed, partial, failure, unknown"),
        ({"status": "retracted"}, "status of an episode must be active or archived"),
        ({"text": None, "query": "only a question"}, "text is missing or empty (or give query and response)"),
    ],
)
def test_a_field_of_an_episode_is_refused_by_its_name(fields: dict[str, object], reason: str) -> None:
    assert refusal({"text": "t", "speaker": "Ivy", **fields}) == reason


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"nope", "the line is not JSON: Expecting value at character 1"),
        (b'{"text": "t"', "the line is not JSON: Expecting ',' delimiter at character 13"),
        (b"[1]", "the line is not a JSON object: each line is one {...}"),
        (b'"t"', "the line is not a JSON object: each line is one {...}"),
        (b"null", "the line is not a JSON object: each line is one {...}"),
        (b'{"text": "t", "confidence": NaN}', "NaN is not JSON: leave the field out"),
        (b'{"text": "t", "confidence": -Infinity}', "-Infinity is not JSON: leave the field out"),
        (b'{"text": "t", "confidence": 1e400}', "confidence must be a number from 0 to 1"),
        (b'{"text": "t", "seq": ' + b"9" * 5000 + b"}", "a number in the line is too long"),
        (b'{"text": "t", "text": "u"}', "the field 'text' stands twice in the line"),
        ("Grüße".encode("latin-1"), "the line is not UTF-8 (byte 3): save the file as UTF-8"),
        ('{"text": "t"}'.encode("utf-16"), "the line is not UTF-8 (byte 1): save the file as UTF-8"),
        (b'{"text": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", "the line is nested too deeply"),
        (b'{"text": ' + b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"}", "the line is nested too deeply"),
        (b"x" * (MAX_LINE + 1), "the line is longer than 8 MiB"),
        (b"\0\0\0", "the line is not JSON: Expecting value at character 1"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_is_no_json_object_is_refused_without_a_traceback(raw: bytes, reason: str) -> None:
    assert refusal(raw) == reason


def test_a_line_without_a_scope_says_how_to_give_it_one() -> None:
    assert (
        refusal({"text": "t"}, scope=None) == "the line has no scope: give it a field 'scope', or name one with --scope"
    )
    assert "'conversation'" in refusal({"text": "t", "scope": "own"}, scope=None, field="conversation")


def test_a_scope_that_is_no_text_is_refused() -> None:
    assert refusal({"text": "t", "scope": ["a"]}, scope=None) == "scope must be a text, not a list"


def test_no_reason_ever_quotes_the_text() -> None:
    secret = "the harbour code is 4417"
    lines: list[object] = [
        {"text": secret, "confidence": secret},
        {"text": secret, "created_at": secret},
        {"text": secret, "stated_by": secret},
        {"text": secret, "kind": "fact"},
        f'{{"text": "{secret}", oops',
    ]
    assert not [reason for reason in map(refusal, lines) if secret in reason]


def test_origins_are_read() -> None:
    assert claim(stated_by="user").stated_by == StatedBy.USER
    assert claim().stated_by == StatedBy.AGENT


def test_offsets_become_utc() -> None:
    moment = claim(created_at=datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=5))).isoformat()).created_at
    assert moment is not None
    assert moment.utcoffset() == timedelta(0)
