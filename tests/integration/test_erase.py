"""Erasing reaches every place where a row's words stand, at once (J1, the logical half; I19).

A row's words are planted in every column the register calls memory text, the row is erased through the one function
that can, and then every column of every table is searched, whatever package it belongs to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction
from django.db.models.expressions import RawSQL

from consolidation import review, runner
from consolidation.models import BulkDecision, BulkItem, Comment, Operation, Policy, Probe, Suite
from consolidation.operations import Approval, Kind
from observations import store
from observations.models import (
    Embedding,
    Evidence,
    GivenKey,
    IntakeItem,
    IntakeRun,
    Observation,
    Scope,
    Tombstone,
    UnusableAnswer,
)
from observations.normalise import key_part
from observations.records import Claim, EvidenceRef, StatedBy, Status, WrittenBy
from observations.register import MEMORY_TEXT, NOT_MEMORY_TEXT, OF_THE_DATABASE, OTHER_TABLES, Erasing
from tests.building import embed, observe, propose, tell

pytestmark = pytest.mark.django_db

CANARY = "zirconium heron"
TEXT = f"The {CANARY} nests behind the boathouse"
KEY = (f"subject {CANARY}", f"predicate {CANARY}", f"object {CANARY}")
TEXTUAL = (
    "text",
    "character varying",
    "character",
    "json",
    "jsonb",
    "bytea",
    "ARRAY",
    "USER-DEFINED",
    "name",
    "xml",
    "inet",
)


def columns() -> Iterator[tuple[str, str, str]]:
    """(table, column, type) of every table in the schema."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.table_name, c.column_name, c.data_type FROM information_schema.columns c"
            " JOIN information_schema.tables t USING (table_schema, table_name)"
            " WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE' ORDER BY 1, 2"
        )
        yield from cursor.fetchall()


def places(needles: Sequence[str]) -> set[str]:
    """Every "table.column" in which one of the needles stands, whatever the column's type and letter case."""
    found = set()
    with connection.cursor() as cursor:
        for table, column, kind in columns():
            text = f"encode({column}, 'escape')" if kind == "bytea" else f'"{column}"::text'
            query = f'SELECT count(*) FROM "{table}" WHERE lower({text}) LIKE ANY (%s)'
            cursor.execute(query, [[f"%{needle.lower()}%" for needle in needles]])
            row = cursor.fetchone()
            if row and row[0]:
                found.add(f"{table}.{column}")
    return found


def column_of(name: str) -> str:
    """ "Model.column" of the register as PostgreSQL's "table.column"."""
    model, _, column = name.partition(".")
    app = "observations" if model.lower() in apps.all_models["observations"] else "consolidation"
    return f"{app}_{model.lower()}.{column}"


def planted(
    within: Scope, *, text: str = TEXT, external_id: str = "o1", stated_by: StatedBy = StatedBy.AGENT
) -> Observation:
    """An observation whose words stand in its text, its key and the quote of its evidence."""
    evidence = (EvidenceRef(source_uri="doc://boats", quote=text, quote_start=0),)
    claim = Claim(
        text=text,
        external_id=external_id,
        subject=KEY[0],
        predicate=KEY[1],
        object=f"{KEY[2]} {external_id}",
        stated_by=stated_by,
        evidence=evidence,
    )
    with transaction.atomic():
        [written] = store.add_observations(scope=within, claims=[claim], written_by=WrittenBy.BACKGROUND)
    assert written.id is not None
    embed([written.id], within=within)
    return Observation.objects.get(pk=written.id)


def corrected(within: Scope) -> tuple[Operation, list[Observation]]:
    """Two claims of one key replaced by a reviewer's own words and object, which repeat them, as does the reason."""
    rows = [planted(within), planted(within, text=f"{TEXT} no more", external_id="o2")]
    operation = propose(Kind.SUPERSEDE, rows, approval=Approval.NEEDS_HUMAN)
    decision = review.Decision(text=f"{TEXT}, but only in spring", object=f"{KEY[2]} in spring")
    review.approve(operation=operation, by="ines", decision=decision, reason=f"saw the {CANARY} myself")
    result = runner.apply(operation=operation, by="ines")
    assert result.outcome == runner.Outcome.APPLIED, result.sentence
    operation.refresh_from_db()
    assert operation.derived_id is not None
    Comment.objects.create(scope=within, operation=operation, by="ines", text=f"I heard the {CANARY} there")
    bulk = BulkDecision.objects.create(
        verb="reject", by="ines", reason=f"no {CANARY} at all", scopes=[within.pk], total=1
    )
    BulkItem.objects.create(scope=within, bulk=bulk, operation=operation, position=0)
    return operation, [*rows, Observation.objects.get(pk=operation.derived_id)]


def keyed(within: Scope) -> Observation:
    """A row whose writer gave no key, with the one that a model gave it."""
    row = observe(f"{TEXT} quietly", within=within, external_id="o3")
    GivenKey.objects.create(
        scope=within,
        observation=row,
        state=GivenKey.State.GIVEN,
        subject=KEY[0],
        predicate=KEY[1],
        object=KEY[2],
        subject_key=1,
        sp_key=2,
        spo_key=3,
        quote_start=0,
        quote_end=5,
        model="scripted",
        prompt_version="1",
    )
    return row


def promoted(within: Scope) -> Observation:
    """A fact that episodes agree on: its words stand in the operation, too."""
    episodes = [tell(f"Turn {number}", within=within) for number in range(3)]
    operation = propose(Kind.PROMOTE, episodes, text=f"{TEXT}, promoted", key=KEY, product={"discriminator": "d"})
    assert runner.apply(operation=operation, by="ines").outcome == runner.Outcome.APPLIED
    operation.refresh_from_db()
    assert operation.derived_id is not None
    return Observation.objects.get(pk=operation.derived_id)


def named(within: Scope, row: Observation) -> None:
    """An alias of the name that only that row holds."""
    subject = key_part(row.subject)
    operation = propose(Kind.ALIAS, [row], approval=Approval.NEEDS_HUMAN, key=(subject, "is", f"the {CANARY} itself"))
    review.approve(operation=operation, by="ines", reason="seen")
    assert runner.apply(operation=operation, by="ines").outcome == runner.Outcome.APPLIED


def considered(within: Scope, row: Observation) -> None:
    """What the pipeline kept of a claim, and an unusable answer about the turn that the row rests on."""
    turn = tell("Turn of the pipeline", within=within)
    Evidence.objects.create(scope=within, observation=row, episode=turn, source_uri=turn.source_uri, root_source="r")
    run = IntakeRun.objects.create(scope=within, trigger=IntakeRun.Trigger.HAND)
    item = {"scope": within, "run": run, "verdict": IntakeItem.Verdict.ADD}
    IntakeItem.objects.create(**item, text=TEXT, said=f"it says {CANARY}", observation=row)
    IntakeItem.objects.create(**item, said=f"unlike {CANARY}", text=TEXT, target=row)
    IntakeItem.objects.create(**item, said=f"unlike {CANARY}", text=TEXT, offered=[row.pk])
    IntakeItem.objects.create(**item, text=TEXT, episode=turn)
    UnusableAnswer.objects.create(
        scope=within,
        run=run,
        purpose=UnusableAnswer.Purpose.EXTRACT,
        episode_ids=[turn.pk],
        reply=f"[{TEXT}",
        reason="it is malformed",
        model="scripted",
        prompt_version="1",
    )


def probed(within: Scope, row: Observation) -> None:
    """A question of a suite that expects the row."""
    suite = Suite.objects.create(scope=within, name="everyday", by="ines")
    Probe.objects.create(
        scope=within, suite=suite, number=1, query=f"Where does the {CANARY} nest?", category=CANARY, expected=[row.pk]
    )


def erase(rows: Sequence[Observation], *, request: str = "forget:test") -> int:
    with transaction.atomic():
        ids = [row.pk for row in rows]
        return store.erase(scope_id=rows[0].scope_id, ids=ids, by="ines", reason="a test", request=request)


def hashes(rows: Sequence[Observation]) -> list[str]:
    return [hashlib.sha256((row.text or "").encode()).hexdigest() for row in rows]


def test_after_an_erase_no_column_of_any_table_holds_the_words_or_their_hash() -> None:
    """J1, I19. The search is shown to work first: before the erase it finds the words in every registered column."""
    within = store.open_scope(name="team-a/birds")
    operation, rows = corrected(within)
    rows += [keyed(within), promoted(within)]
    named(within, rows[0])
    considered(within, rows[0])
    probed(within, rows[0])
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # as the commits between would
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
    needles = [CANARY, "boathouse", *hashes(rows)]
    before = places(needles)
    keys = {name for name in MEMORY_TEXT if name.endswith("_key")}
    figures = {"Embedding.vector", "Embedding.bands"} | OF_THE_DATABASE | keys
    elsewhere = (Erasing.EPISODE, Erasing.CORE, Erasing.RESIDUE)  # of no observation
    reached = {name for name, way in MEMORY_TEXT.items() if way not in elsewhere} - figures
    assert before == {column_of(name) for name in reached}

    assert erase(rows) == 5

    assert places(needles) == set()
    operation.refresh_from_db()
    assert (operation.decision_text, operation.decision_object, operation.decision_reason) == ("", "", "")
    assert operation.decided_by == "ines"
    assert operation.approved_digest


def test_after_an_erase_no_number_is_left_from_which_the_words_could_be_guessed() -> None:
    """The keys planning compares by, the vector and the MinHash bands go too; shell, edges and tombstone stay."""
    row = planted(store.open_scope(name="team-a/birds"))
    codes = Observation.objects.filter(pk=row.pk).annotate(codes=RawSQL("words || words_head", ()))
    assert len(codes.values_list("codes", flat=True)[0]) > 26
    assert erase([row]) == 1
    assert bytes(codes.values_list("codes", flat=True)[0]) == b""
    row.refresh_from_db()
    assert (row.text_key, row.subject_key, row.sp_key, row.spo_key) == (0, 0, 0, 0)
    assert list(Embedding.objects.filter(observation=row).values_list("vector", "bands")) == [(None, None)]
    assert list(Evidence.objects.filter(observation=row).values_list("quote", "quote_start")) == [(None, None)]
    assert (row.status, row.external_id) == ("erased", "o1")
    assert Tombstone.objects.get(observation=row).erased_by == "ines"


def test_an_erase_empties_nothing_of_other_rows() -> None:
    within = store.open_scope(name="team-a/birds")
    operation, rows = corrected(within)
    bystander = planted(within, text="The lamp by the jetty is out", external_id="o9")
    other = planted(store.open_scope(name="team-b/birds"))
    erase([planted(within, text="A note nobody wants", external_id="o8")])
    operation.refresh_from_db()
    assert CANARY in operation.decision_text
    assert CANARY in operation.decision_object
    assert CANARY in operation.decision_reason
    erase(rows)
    bystander.refresh_from_db()
    other.refresh_from_db()
    assert bystander.text == "The lamp by the jetty is out"
    assert other.text == TEXT
    assert Embedding.objects.exclude(vector=None).filter(observation__in=[bystander.pk, other.pk]).count() == 2


@pytest.mark.parametrize("column", ["decision_text", "decision_object"])
def test_a_decisions_words_can_go_only_with_a_tombstone(column: str) -> None:
    """History stays history: without an erase, emptying or changing what a reviewer wrote is refused (habit 6)."""
    operation, rows = corrected(store.open_scope(name="team-a/birds"))
    for words in ("", "something else"):
        with pytest.raises(DatabaseError, match="is history"), transaction.atomic():
            Operation.objects.filter(pk=operation.pk).update(**{column: words})
    erase(rows)
    with pytest.raises(DatabaseError, match="is history"), transaction.atomic():
        Operation.objects.filter(pk=operation.pk).update(**{column: "back again"})


def test_what_a_user_said_is_not_erased_without_a_forget_request() -> None:
    """R47, I12: neither by a prune nor by anything else that is not a person's request to forget."""
    row = planted(store.open_scope(name="team-a/birds"), stated_by=StatedBy.USER)
    with pytest.raises(DatabaseError, match="only by a forget request"), transaction.atomic():
        erase([row], request="op_test")
    assert erase([row], request="forget:17") == 1


def test_an_erased_row_cannot_come_back() -> None:
    row = planted(store.open_scope(name="team-a/birds"))
    erase([row])
    with pytest.raises(DatabaseError), transaction.atomic():
        store.move(scope_id=row.scope_id, ids=[row.pk], to=Status.ACTIVE)
    assert erase([row]) == 0


def test_every_column_of_every_table_that_could_hold_words_is_in_the_register() -> None:
    """PostgreSQL's own catalogue, not Django's models: a column made by SQL or by another package counts too."""
    ours = {column_of(name) for name in MEMORY_TEXT}
    assert ours <= {f"{table}.{column}" for table, column, _ in columns()}
    for name in NOT_MEMORY_TEXT:
        model, _, column = name.partition(".")
        ours |= {f"observations_{model.lower()}.{column}", f"consolidation_{model.lower()}.{column}"}
    strangers = [
        f"{table}.{column}"
        for table, column, kind in columns()
        if kind in TEXTUAL
        and f"{table}.{column}" not in ours
        and not any(fnmatch(table, pattern) for pattern in OTHER_TABLES)
    ]
    assert not strangers, f"list in observations/register.py, with a reason: {', '.join(strangers)}"


def test_the_search_finds_words_in_every_kind_of_column() -> None:
    """The positive control of the search itself: text, JSON, bytes, arrays and other packages' tables."""
    User.objects.create_user(username="heron", first_name=CANARY)
    Policy.objects.create(pattern="*", body={"note": [CANARY]})
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE IF NOT EXISTS nothing (x int)")
        for value in (CANARY.encode(), CANARY.upper().encode()):
            cursor.execute("SELECT lower(encode(%s, 'escape')) LIKE %s", [value, f"%{CANARY}%"])
            assert cursor.fetchone() == (True,)
    assert places([CANARY.upper()]) == {
        "auth_user.first_name",
        "consolidation_policy.body",
        "consolidation_policyrevision.body",
    }


def test_an_id_made_of_the_content_goes_with_it_also_where_a_correction_went_back() -> None:
    """A short text can be guessed from its hash: the row of a claim that is written anew keeps none (J1)."""
    within = store.open_scope(name="team-a/birds")
    with transaction.atomic():
        [first] = store.add_observations(scope=within, claims=[Claim(text="nine")], written_by=WrittenBy.BACKGROUND)
        assert first.id is not None
        second = store.replace(scope=within, old_id=first.id, claim=Claim(text="ten"), written_by=WrittenBy.BACKGROUND)
        assert second.id is not None
        back = store.replace(scope=within, old_id=second.id, claim=Claim(text="nine"), written_by=WrittenBy.BACKGROUND)
    assert back.id is not None
    row = Observation.objects.get(pk=back.id)
    assert row.pk not in (first.id, second.id)
    erase([row])
    row.refresh_from_db()
    assert row.external_id == f"erased:{row.pk}"
