"""What tests of the whole engine share: episodes, a scripted model, plans of every kind, and what must not change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from consolidation import planner, rollout, runner
from consolidation.models import Operation, Plan, Policy
from consolidation.operations import Kind
from consolidation.runner import Outcome, Result
from observations import outbox, spending, store
from observations.embedding import HASHING, embedder
from observations.llm import Request
from observations.minhash import stored_bands
from observations.models import Episode, Observation, Scope, Use, database_now
from observations.normalise import normalised
from observations.records import Outcome as Ending
from observations.records import StatedBy
from tests.acceptance.acting import apply
from tests.building import LONG_AGO, first_confirms, observe, propose, scope, tell
from tests.scripted import ScriptedCompleter

FACT = "Ana takes the night train to Graz"
KEY = ("Ana", "takes", "the night train to Graz")
WORDS = "took the night train to Graz"
RELAY = ("relay", "sits in", "rack 4")
SAID_ALIKE = ("The relay sits in rack 4", "the relay sits in rack 4.", "The relay sits in rack 4.")

# --- memory ---------------------------------------------------------------------------------------------------------


def weeks(within: Scope, *, roots: Sequence[str] = ("doc://1", "doc://2", "doc://3"), first: int = 1) -> list[Episode]:
    """One turn a week about the same train, in one session; each its own witness by its root."""
    return [
        tell(f"In week {at} Ana {WORDS} again.", within=within, root=root, session="s1", outcome=Ending.SUCCESS)
        for at, root in enumerate(roots, start=first)
    ]


def alike(within: Scope, *, texts: Sequence[str] = SAID_ALIKE, **more: Any) -> list[Observation]:
    """Near-duplicates with one key that the rules merge by themselves."""
    return [observe(text, within=within, key=RELAY, **more) for text in texts]


def pairs(within: Scope, *, count: int) -> list[tuple[Observation, Observation]]:
    """So many pairs that the rules merge by themselves; no two pairs share a word."""
    syllables = ("ba", "ko", "mi", "ru", "ta", "ve", "zo", "lu", "ne", "si")
    found = []
    for at in range(count):
        stem = f"{syllables[at // 10 % 10]}{syllables[at % 10]}"
        said = f"{stem}mar {stem}lin {stem}dor {stem}fen".capitalize()
        found.append((observe(said, within=within), observe(f"{said.lower()}.", within=within)))
    return found


def contradiction(within: Scope, *, places: Sequence[str] = ("Oslo", "Bergen")) -> list[Observation]:
    """Live values of one key in nearly the same words."""
    return [
        observe(f"Ann lives in the old town of {place} since spring", within=within, key=("ann", "lives in", place))
        for place in places
    ]


def use(row: Observation) -> None:
    """As if a prompt had been given the row."""
    Use.objects.create(scope_id=row.scope_id, observation_id=row.pk, call_site="context", answer="0" * 32)


def merged(within: Scope, name: str, *, stated_by: StatedBy = StatedBy.AGENT) -> tuple[list[Observation], Observation]:
    """Three old copies of one claim, and what an applied merge made of them."""
    said = database_now() - timedelta(days=400)
    rows = [observe(f"The {name} stands in hall 2", within=within, created_at=said, stated_by=stated_by) for _ in "abc"]
    merge = propose(Kind.MERGE, rows)
    apply(merge)
    derived = Operation.objects.get(pk=merge.pk).derived_id
    assert derived is not None
    return rows, Observation.objects.get(pk=derived)


def put_bands(within: Scope) -> None:
    """The MinHash bands of a scope's observations, as a worker computes them."""
    model = embedder("hashing")
    rows = list(Observation.objects.filter(scope=within).order_by("pk"))
    texts = [row.text or "" for row in rows]
    with transaction.atomic():
        store.put_embeddings(
            profile=model.profile,
            rows=[(within.pk, row.pk) for row in rows],
            vectors=model.embed(texts),
            bands=stored_bands([normalised(text) for text in texts]),
        )


EVERY_KIND = {
    "compact": True,
    "compact_after_days": 1,
    "archive": True,
    "prune": True,
    "retention": [{"stated_by": "tool", "older_than_days": 30}],
    "review_budget": None,
}


def a_store_for_every_kind() -> Scope:
    """A scope, and a second one, whose plan holds a merge, a promotion, a summary, a contradiction, rows that faded and
    rows to prune, and something that is skipped; with the policy that allows all of it.
    """
    within = scope()
    alike(within)
    contradiction(within)
    for week, day in enumerate((1, 2, 3), start=1):
        words = f"In week {week} Ana {WORDS} again."
        tell(words, within=within, root=f"doc://{week}", session=f"day {day}", happened_at=LONG_AGO)
    for at in range(2):
        said = LONG_AGO + timedelta(days=40, minutes=at)
        tell(f"The crane was greased on round {at}.", within=within, session="rounds", happened_at=said, root="log://1")
    maria = "Maria volunteers at the homeless shelter downtown"
    observe(maria, within=within), observe(f"{maria} happily", within=within)
    observe("The build took 41 minutes", within=within, stated_by=StatedBy.TOOL, created_at=database_now())
    observe("The nightly build took 52 minutes", within=within, stated_by=StatedBy.TOOL)
    observe("Lunch is served until two", within=within)  # faded by now, and no retention names it
    _, used = merged(scope("team-b"), "crane")
    use(used)
    Policy.objects.create(pattern="*", body=EVERY_KIND)
    return within


# --- a model that answers from a script -----------------------------------------------------------------------------


def fact(labels: Sequence[int], *, words: str = WORDS, text: str = FACT, key: Sequence[str] = KEY) -> dict[str, Any]:
    """One fact of an answer, with a quote for each episode that it names."""
    quotes = [{"episode": label, "words": words} for label in labels]
    subject, predicate, value = key
    named = {"subject": subject, "predicate": predicate, "object": value}
    return {"text": text, **named, "supported_by": list(labels), "quotes": quotes}


def promoting(labels: Sequence[int] = (0, 1, 2), **more: Any) -> ScriptedCompleter:
    """A model that finds one fact in these episodes, and has no summaries to give."""
    return ScriptedCompleter(by_purpose={"promote": {"facts": [fact(labels, **more)]}, "compact": {"sentences": []}})


def summary(*sentences: str, labels: Sequence[int] | None = None) -> dict[str, Any]:
    """A summary as an answer: each sentence of its own episode, unless `labels` says that each is of all these."""
    return {
        "sentences": [
            {"text": text, "episodes": [at] if labels is None else list(labels)} for at, text in enumerate(sentences)
        ]
    }


def echoing(request: Request) -> dict[str, Any]:
    """A summary that keeps every word: the texts of the question, one after the other."""
    lines = [json.loads(line) for line in request.text.splitlines() if line.startswith('{"label"')]
    return {"sentences": [{"text": line["text"], "episodes": [line["label"]]} for line in lines]}


def compacting(said: Any) -> ScriptedCompleter:
    """A model that promotes nothing and gives this summary, or what a function of the request gives."""
    return ScriptedCompleter(by_purpose={"promote": {"facts": []}, "compact": said})


def seeing_the_train(request: Request) -> dict[str, Any]:
    """What a model says that reads the episodes: the fact, with those that hold its words."""
    lines = [json.loads(line) for line in request.text.splitlines() if line.startswith('{"label"')]
    labels = [line["label"] for line in lines if WORDS in line["text"]]
    return {"facts": [fact(labels)] if labels else []}


def whole_model() -> ScriptedCompleter:
    """A model that finds the fact of the train and keeps every word of every session."""
    return ScriptedCompleter(by_purpose={"promote": seeing_the_train, "compact": echoing})


@contextmanager
def configured(completer: ScriptedCompleter) -> Iterator[None]:
    """The scripted model in the place of the one that the settings name: for doors that take no completer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spending, "door", lambda *, scope_id: completer)
        patch.setattr(spending, "configured", lambda: True)
        patch.setattr("django.conf.settings.PALIMPSEST_MODEL", completer.model)
        yield


# --- planning and applying ------------------------------------------------------------------------------------------


def plan(*scopes: Scope, completer: ScriptedCompleter | None = None, **more: Any) -> Plan:
    """A plan of these scopes, or of all, by the real planner."""
    wanted = scopes or tuple(Scope.objects.all())
    values = {"pattern": "*", "by": "ann", "trigger": "command", "profile": HASHING, **more}
    return planner.plan(scopes=wanted, completer=completer, **values)


def items(made: Plan, kind: Kind | None = None) -> list[Operation]:
    """The operations of a plan in its order."""
    rows = Operation.objects.filter(plan_items__plan=made).select_related("scope").order_by("plan_items__position")
    return list(rows if kind is None else rows.filter(kind=kind))


def apply_all(made: Plan) -> list[Result]:
    """Apply a plan as people do, two of whom confirmed its width."""
    first_confirms(made)
    return rollout.apply_plan(plan=made, by="ann", confirmed=True)


def counted(results: Sequence[Result]) -> dict[str, int]:
    """How many results of each outcome."""
    found: dict[str, int] = {}
    for result in results:
        found[str(result.outcome)] = found.get(str(result.outcome), 0) + 1
    return found


def product(operation: Operation) -> Observation:
    """What an applied operation wrote."""
    pk = Operation.objects.get(pk=operation.pk).derived_id
    assert pk is not None
    return Observation.objects.get(pk=pk)


def applied(operation: Operation) -> Observation:
    """Apply one operation by itself; what it wrote."""
    result = runner.apply(operation=Operation.objects.select_related("scope").get(pk=operation.pk), by="ann")
    assert result.outcome == Outcome.APPLIED, result.sentence
    return product(operation)


# --- what must not change -------------------------------------------------------------------------------------------

# What planning may write: plans, operations, the model's answers, and the audit of both.
PLANNING = {
    *(
        "consolidation_plan",
        "consolidation_planning",
        "consolidation_planitem",
        "consolidation_operation",
        "consolidation_operationsource",
    ),
    "consolidation_draft",
}
AUDIT = {"observations_event", "observations_outbox"}


def everything() -> dict[str, object]:
    """A digest of every row, counters and timestamps included, of every table but those that planning may write."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            " AND (tablename LIKE 'observations_%' OR tablename LIKE 'consolidation_%') ORDER BY 1"
        )
        tables = [str(table) for (table,) in cursor.fetchall()]
        digests: dict[str, object] = {}
        for table in sorted({*tables} - PLANNING - AUDIT):
            cursor.execute(f"SELECT count(*), md5(string_agg(t::text, '|' ORDER BY t.id)) FROM {table} t")
            digests[table] = cursor.fetchone()
    return digests


def moments_of(*years: int) -> list[datetime]:
    """New year's noon of these years."""
    return [datetime(year, 1, 1, 12, tzinfo=UTC) for year in years]


# --- no worker -----------------------------------------------------------------------------------------------------


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker runs in these tests: nobody has to be woken, and no broker asked."""
    monkeypatch.setattr(outbox, "wake", lambda: None)
