"""Files come in line by line, and one bad line never sinks the rest (C1)."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consolidation import invariants
from observations import ingest, store
from observations.ingest import ImportReport, ImportStopped
from observations.models import Episode, Evidence, Observation, Scope
from observations.records import Status
from tests.building import scope
from tests.jsonl import derived, imported, lines, observation, real

# --- one bad line ---------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_one_bad_character_does_not_sink_a_batch_and_sending_it_again_adds_nothing() -> None:
    """C1, with both variants: U+0000 in a text and in a field beside it, half an emoji pair."""
    batch = [
        {"id": "1", "text": "Standup moved to 09:30"},
        {"id": "2", "text": "Log tail: ok\0done"},
        {"id": "3", "text": "Retro is on Thursdays"},
        {"id": "4", "text": "Build is green", "subject": "bu\0ild"},
        {"id": "5", "text": "Thumb \ud83d up"},
        {"id": "6", "text": "Thumb \ud83d\udc4d up"},
        {"id": "7", "text": "Hello", "speaker": "Iv\0y", "role": "us\0er"},
    ]
    report = imported(*batch)
    assert (report.read, report.added, report.cleaned, report.refused) == (7, 7, 4, [])
    assert observation("2").text == "Log tail: ok\ufffddone"
    assert [observation(name).cleaned for name in "123456"] == [False, True, False, True, True, False]
    assert observation("6").text == "Thumb 👍 up"
    assert Episode.objects.get(external_id="7").cleaned
    again = imported(*batch)
    assert (again.added, again.already_there, again.cleaned, again.refused) == (0, 7, 0, [])


@pytest.mark.django_db
def test_a_refused_line_has_its_number_and_its_reason_and_its_neighbours_are_stored() -> None:
    report = imported({"text": "first"}, "{broken", "", {"text": 5}, {"text": "last"})
    assert report.refused == [
        (2, "the line is not JSON: Expecting property name enclosed in double quotes at character 2"),
        (4, "text must be a text, not a number"),
    ]
    assert (report.read, report.added) == (4, 2)
    assert set(Observation.objects.values_list("text", flat=True)) == {"first", "last"}


@pytest.mark.django_db
def test_a_line_that_only_the_store_can_refuse_sinks_nothing_else_of_its_batch() -> None:
    before, after = ([{"text": f"{part} {n}"} for n in range(40)] for part in "az")
    report = imported(*before, derived("bad", "nobody"), *after)
    assert report.added == 80
    assert report.refused == [(41, "lineage names 'nobody', which is neither stored nor on an earlier line")]


@pytest.mark.django_db
def test_an_id_that_is_there_with_another_text_is_refused() -> None:
    imported({"id": "1", "text": "Tea at four"})
    report = imported({"id": "1", "text": "Tea at five"})
    assert report.refused == [(1, "this id is already there with another text; a change is a new line with a new id")]
    assert observation("1").text == "Tea at four"


@pytest.mark.django_db
def test_a_scope_that_is_no_path_refuses_its_lines_only() -> None:
    report = imported(*({"scope": name, "text": "t"} for name in ("ok", "no/", "a*")), scope=None)
    assert report.added == 1
    assert [number for number, _ in report.refused] == [2, 3]
    assert all("is refused: give a path" in reason for _, reason in report.refused)


@pytest.mark.django_db
def test_lines_of_many_scopes_are_sorted_into_their_own() -> None:
    """C6, R90: the scope is the line's own, and no row can be without one."""
    report = imported(*({"scope": f"team/{n % 7}", "id": str(n), "text": f"t {n}"} for n in range(100)), scope=None)
    assert report.added == 100
    assert report.scopes == {f"team/{n}" for n in range(7)}
    assert Observation.objects.get(external_id="8").scope.name == "team/1"


@pytest.mark.django_db
def test_a_batch_costs_the_same_number_of_queries_however_many_lines_it_has() -> None:
    scope()
    counts = []
    for size in (10, 400):
        with CaptureQueriesContext(connection) as queries:
            imported(*({"text": f"t {size} {n}", "source_uris": ["doc://1"]} for n in range(size)))
        counts.append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.django_db
def test_lines_without_ids_are_known_by_their_content() -> None:
    tea = {"text": "Tea at four"}
    first = imported(tea, tea, {**tea, "created_at": "2024-01-01"})
    assert (first.added, first.already_there) == (2, 1)
    assert imported({"text": "Tea at four"}).already_there == 1


@pytest.mark.django_db
def test_two_short_answers_of_one_session_are_two_episodes() -> None:
    report = imported(*({"text": "yes", "speaker": "Ana", "session": "1", "seq": n} for n in (1, 2)))
    assert report.added == 2


FIELDS = (
    *(
        "id",
        "text",
        "kind",
        "subject",
        "object",
        "created_at",
        "valid_from",
        "confidence",
        "seq",
        "speaker",
        "source_uris",
    ),
    *("source_uri", "evidence", "status", "superseded_by", "lineage", "stated_by", "supersedes"),
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["a", "active", "2020-01-01"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["id", "uri", "kind"]), inner),
    max_leaves=4,
)


@pytest.mark.django_db
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=7), max_size=12))
def test_whatever_a_file_holds_every_line_is_counted_and_nothing_raises(rows: list[dict[str, object]]) -> None:
    """G1: no traceback, and read = added + already there + refused."""
    report = ingest.import_lines(lines(*rows), scope="fuzz")
    assert report.read == len(rows)
    assert report.read == report.added + report.already_there + len(report.refused)


# --- times, evidence, replacing -------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_what_a_line_says_is_stored() -> None:
    key = {"subject": "Ana", "predicate": "lives_in", "object": "Bonn", "confidence": 0.9, "stated_by": "user"}
    times = {"created_at": "2024-05-01", "valid_from": "2020-03", "valid_to": "2024"}
    evidence = [{"uri": "doc://2", "root": "doc://1", "quote": "in Bonn", "start": 9}]
    imported({"id": "1", "text": "Ana lives in Bonn", **key, **times, "evidence": evidence})
    stored = observation("1")
    assert stored.created_at == datetime(2024, 5, 1, tzinfo=UTC)
    assert (stored.valid_from, stored.valid_to) == (datetime(2020, 3, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC))
    assert (stored.subject, stored.predicate, stored.object) == ("Ana", "lives_in", "Bonn")
    assert (stored.confidence, stored.stated_by, stored.written_by) == (0.9, "user", "import")
    [rests] = Evidence.objects.filter(observation=stored).values_list(
        "source_uri", "root_source", "quote", "quote_start"
    )
    assert rests == ("doc://2", "doc://1", "in Bonn", 9)


@pytest.mark.django_db
def test_a_line_that_supersedes_takes_over_the_evidence_and_the_old_row_stays_as_history() -> None:
    """R12, R15, I15."""
    rows = (
        {"id": "old", "text": "Standup at nine", "source_uris": ["doc://1"]},
        {"id": "new", "text": "Standup at ten", "source_uris": ["doc://2"], "supersedes": "old"},
    )
    report = imported(*rows)
    assert (report.added, report.refused) == (2, [])
    assert observation("old").status == Status.SUPERSEDED
    assert observation("old").superseded_by == observation("new")
    uris = Evidence.objects.filter(observation=observation("new")).values_list("source_uri", flat=True)
    assert set(uris) == {"doc://1", "doc://2"}
    again = imported(*rows)
    assert (again.added, again.already_there, again.refused) == (0, 2, [])
    assert not invariants.check()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("nobody", "supersedes names 'nobody', which is neither stored nor on an earlier line"),
        ("old", "supersedes names 'old', which is superseded, not active"),
        ("later", "supersedes names 'later', which is neither stored nor on an earlier line"),
    ],
)
def test_only_a_current_row_can_be_superseded(target: str, reason: str) -> None:
    imported({"id": "old", "text": "a"}, {"id": "new", "text": "b", "supersedes": "old"})
    report = imported({"id": "x", "text": "c", "supersedes": target}, {"id": "later", "text": "d"})
    assert report.refused == [(1, reason)]
    assert report.added == 1
    assert not Observation.objects.filter(external_id="x").exists()


# --- other writers, other failures ----------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_two_imports_of_one_file_at_once_store_it_once() -> None:
    rows = [json.dumps({"id": str(n), "text": f"t {n}"}) for n in range(300)]
    reports: list[ImportReport] = []

    def run() -> None:
        try:
            reports.append(ingest.import_lines(rows, scope="both"))
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report.refused for report in reports] == [[], []]
    assert sum(report.added for report in reports) == 300 == Observation.objects.count()
    assert sum(report.already_there for report in reports) == 300


@pytest.mark.django_db
def test_a_database_that_goes_away_stops_the_import_with_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(**_: object) -> list[store.Written]:
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(store, "add_observations", gone)
    with pytest.raises(ImportStopped, match="nothing stored is lost; run it again to add the rest"):
        imported({"text": "t"})


# --- real files -----------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "added", "refused"),
    [
        ("locomo_observations.jsonl", 1_283, 0),
        ("memorybank_episodes.jsonl", 310, 0),
        ("facts_timeline.jsonl", 900, 2),  # two facts end before they begin
        ("memorybank_probes.jsonl", 0, 38),  # questions without answers are no memory
    ],
)
def test_data_files_import_as_they_stand(name: str, added: int, refused: int) -> None:
    with real(name).open("rb") as file:
        report = ingest.import_lines(file)
    assert (report.added, len(report.refused)) == (added, refused)


@pytest.mark.django_db
def test_real_episodes_and_observations_meet_in_one_scope_per_conversation() -> None:
    for name in ("locomo_observations.jsonl", "locomo_episodes.jsonl"):
        with real(name).open("rb") as file:
            ingest.import_lines(file, scope_field="conversation")
    assert Scope.objects.count() == 5
    first = Observation.objects.get(scope__name="conv-26", external_id="conv-26/S1O1")
    source = Evidence.objects.get(observation=first).source_uri
    assert Episode.objects.filter(scope=first.scope, source_uri=source).exists()
