"""Every page that a person can open, with its address in one world: the one list that tests of all pages share. A new
address, of whatever app, that is neither here nor in `NO_PAGES` fails tests/integration/test_admin_pages.py.

Pages that no address leads to a signed-in person (to sign in, to be signed out, what is refused) are in
tests/e2e/test_refusals.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse
from django.views.generic import RedirectView

from consolidation import aliases, calibrating, review
from consolidation.calibration import measure
from consolidation.calibration import propose as proposed
from consolidation.models import (
    BulkDecision,
    BulkItem,
    Demotion,
    Operation,
    Pause,
    Planning,
    Policy,
    Projection,
    Sample,
    Verdict,
)
from consolidation.operations import Approval, Kind
from consolidation.review import Decision
from observations import prompting, store
from observations.embedding import HASHING, embedder
from observations.models import GivenAnswer, Outbox, Scope, ScopeAccess, Tombstone
from observations.normalise import clean, key64
from tests.building import observe, propose
from tests.desk import World, item_url, person, settle, world
from tests.engine import Engine, approve_and_apply, call, engine, keyed, unusable
from tests.keeping import kept
from tests.probing import imported
from tests.writing import Writing, writing

# Addresses that a person opens no page at: they answer a program, lead on, or only take what a page posts.
NO_PAGES: Final = frozenset(
    {
        "(?P<url>.*)$",  # whatever else the admin is asked for: not there
        "healthz",
        "jsi18n",
        "login",
        "logout",
        "consolidation_calibration_enable",
        "consolidation_demotion_lift",
        "consolidation_operation_bulkask",
        "consolidation_operation_bulkconfirm",
        "consolidation_operation_bulkprogress",
        "consolidation_operation_comment",
        "consolidation_operation_decide",
        "consolidation_operation_decide_one",
        "consolidation_operation_focus_decide",
        "consolidation_operation_focus_open",
        "consolidation_operation_focus_undo",
        "consolidation_operation_named",
        "consolidation_operation_preview",
        "consolidation_operation_recordfile",
        "consolidation_pause_lift",
        "consolidation_pause_set",
        "consolidation_plan_decide",
        "consolidation_plan_explained",
        "consolidation_plan_impact",
        "consolidation_plan_json",
        "consolidation_plan_new",
        "consolidation_plan_printed",
        "consolidation_plan_progress",
        "consolidation_plan_signoff",
        "consolidation_sample_judge",
        "consolidation_suite_run",
        "observations_corememory_edit",
        "observations_corememory_settings",
        "observations_corememory_undo",
        "observations_givenanswer_find",
        "observations_givenanswer_of",
        "observations_intake_ask_again",
        "observations_intake_run",
        "observations_intake_settings",
        "observations_intakeitem_decide",
        "observations_observation_named",
        "observations_observation_search",
    }
)
ENDLESS: Final = "w" * 500  # one word, as long as a reason may be: it bursts what does not break it
FOR_PROGRAMS: Final = "api"  # whose addresses answer no person


def names() -> frozenset[str]:
    """The name of every address, the API's aside; of one without a name, its pattern."""
    return frozenset(_names(get_resolver().url_patterns))


def _names(patterns: list[URLPattern | URLResolver]) -> Iterator[str]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            if not str(pattern.namespace or "").startswith(FOR_PROGRAMS):
                yield from _names(pattern.url_patterns)
        elif not hasattr(pattern.callback, "view_class") or pattern.callback.view_class is not RedirectView:
            yield pattern.name or str(pattern.pattern)


@dataclass(frozen=True, slots=True)
class Memory:
    """One scope with a row of everything that has a page."""

    scope: Scope
    world: World
    engine: Engine
    written: Writing
    keys: Mapping[str, object]  # model, or model.page -> what its address names


def memory(name: str = "team-a/u1", *, mark: str = "") -> Memory:
    """The world; `mark` stands in every text of memory that it holds."""
    mark = clean(mark)[0]
    written, mine, kinds = writing(name, mark=mark), world(name, mark=mark), engine(name, mark=mark)
    within = mine.scope
    _decided(mine, kinds, mark)
    low, high, gone = (observe(f"{text} {mark}", within=within) for text in ("Left", "Right", "Gone"))
    with transaction.atomic():
        store.erase(scope_id=within.pk, ids=[gone.pk], by="seed", reason=f"asked {mark}"[:200], request="forget:1")
    call(within, purpose="promote")
    unusable(within)
    review.comment(operation=mine.merge, by="rita", text=f"Look again {mark}"[:900])
    review.comment(operation=mine.merge, by="rita", text=ENDLESS * 3)
    keys = {
        **_memory_of(written, mine, kinds),
        **_work_of(mine, name, mark),
        "verdict": Verdict.objects.create(scope=within, low=low, high=high, by="seed", operation="").pk,
        "tombstone": Tombstone.objects.get(scope=within).pk,
        "policy": Policy.objects.create(pattern=name, body={}).pk,
        "policy.holds": within.pk,
        "outbox": Outbox.objects.create(scope=within, task="t", key=name).pk,
    }
    settle()
    return Memory(within, mine, kinds, written, keys)


def of_no_scope() -> dict[str, object]:
    """What belongs to no scope: a calibration, a rule that lost its automatic status, somebody's access."""
    steps = [0.80 + number / 500 for number in range(100)]
    found = measure(
        duplicates=[True] * 100 + [False] * 300,
        cosines=[cosine**0.6 for cosine in steps] + steps * 3,
        objected=[number % 3 == 0 for number in range(100)] + [True] * 300,
        identical=[False] * 400,
    )
    somebody, viewer = person("somebody", "Viewer"), Group.objects.get(name="Viewer")
    LogEntry.objects.create(
        user=somebody,
        content_type=ContentType.objects.get_for_model(somebody),
        object_id=str(somebody.pk),
        action_flag=CHANGE,
        change_message='[{"changed": {"fields": ["Groups"]}}]',
    )
    return {
        "user": somebody.pk,
        "group": viewer.pk,
        "calibration": calibrating.store(
            profile=HASHING, measured=found, proposed=proposed(measured=found), by="carl"
        ).pk,
        "demotion": Demotion.objects.create(
            kind="merge", rule="merge", band="b", judged=20, wrong=9, lower=0.2, limit=0.005
        ).pk,
        "scopeaccess": ScopeAccess.objects.create(user=somebody, pattern="x/*").pk,
    }


def _decided(mine: World, kinds: Engine, mark: str) -> None:
    """Decisions of several kinds: an alias, several values, a summary, one put off."""
    approve_and_apply(kinds.alias, reason=f"one person {mark}"[:400])
    approve_and_apply(kinds.whole, reason=ENDLESS)
    keyed(mine.scope, mark)
    several = [
        observe(f"Plays {name} {mark}", within=mine.scope, key=("bo", f"plays {mark}"[:300], name)) for name in "ab"
    ]
    learnt = propose(Kind.SUPERSEDE, several, approval=Approval.NEEDS_HUMAN, plan=mine.plan)
    approve_and_apply(learnt, decision=Decision(many_valued=True), reason=f"both {mark}"[:400])
    aliases.request_alias(scope=mine.scope, subject="ann", name="bo", by="nora")


def _memory_of(written: Writing, mine: World, kinds: Engine) -> dict[str, object]:
    within = mine.scope
    made = prompting.prompt(scope=within, about="relay", session="trips", embedder=embedder("hashing"))
    return {
        "observation": mine.derived.pk,
        "observation.named": f"obs_{mine.derived.pk}",
        "episode": kinds.episodes[0].pk,
        "givenanswer": GivenAnswer.objects.get(answer=made.answer).pk,
        "givenanswer.of": str(made.answer),
        "intake": within.pk,
        "intakerun": written.run.pk,
        "corememory": written.core.pk,
        "token": written.token.pk,
        "scope": within.pk,
    }


def _work_of(mine: World, name: str, mark: str) -> dict[str, object]:
    within = mine.scope
    bulk = BulkDecision.objects.create(verb="reject", by="root", scopes=[within.pk], total=2, reason=mark[:500])
    for position, each in enumerate((mine.merge, mine.skipped)):
        BulkItem.objects.create(scope=within, bulk=bulk, operation=each, position=position)
    waits = _waiting_for_a_second(mine, mark)
    second = BulkDecision.objects.create(verb="second", by="root", scopes=[within.pk], total=1)
    BulkItem.objects.create(scope=within, bulk=second, operation=waits, position=0, digest=waits.approved_digest)
    coming = Planning.objects.create(by="seed", pattern=name, scopes=[within.pk])
    projected = {"records_before": 1, "records_after": 1, "fell": True, "operations": 1, "digest": "a" * 64}
    Projection.objects.create(scope=within, plan=mine.plan, by="seed", **projected)
    asked = [{"query": f"{word} {mark}"[:900], "expected": [mine.derived.external_id]} for word in "xyz"]
    sample = Sample.objects.create(scope=within, operation=mine.applied, kind="merge", rule="merge", band="b")
    return {
        "operation": mine.merge.pk,
        "operation.undo": mine.applied.pk,
        "operation.bulk": bulk.pk,
        "operation.agreeing": second.pk,
        "plan": mine.plan.pk,
        "plan.coming": coming.pk,
        "suite": imported(within, *asked).pk,
        "sample": sample.pk,
        "pause": Pause.objects.create(scope=within, by="seed", reason=f"holiday {mark}"[:150]).pk,
    }


def _waiting_for_a_second(mine: World, mark: str) -> Operation:
    pair = [observe(f"{text} {mark}", within=mine.scope) for text in ("Rye bread", "rye bread.")]
    merge = propose(Kind.MERGE, pair, approval=Approval.NEEDS_HUMAN, plan=mine.plan)
    return review.approve(operation=merge, by="rita", reason=f"the same {mark}"[:400], wide=True)


@dataclass(frozen=True, slots=True)
class Furnished:
    """A store in which every page has something to show."""

    mine: Memory
    shared: Mapping[str, object]

    @property
    def addresses(self) -> dict[str, str]:
        """Every page of it."""
        return pages(self.mine, self.shared)


@kept
def furnished() -> Furnished:
    """One scope, and what belongs to none."""
    shared = of_no_scope()
    return Furnished(memory(), shared)


# --- addresses --------------------------------------------------------------------------------------------------------


def pages(mine: Memory, shared: Mapping[str, object]) -> dict[str, str]:
    """Every page by name, about the rows of one scope, and further looks at those that have several."""
    found = {name: address(name, mine, shared) for name in sorted(names() - NO_PAGES)}
    return {**found, **_looks(mine)}


def address(name: str, mine: Memory, shared: Mapping[str, object]) -> str:
    """The address of one page."""
    if name == "app_list":
        return reverse(f"admin:{name}", args=["auth"])
    if name == "observations_observation_subject":
        return reverse(f"admin:{name}", args=[mine.scope.pk, key64("ann")])
    try:
        return reverse(f"admin:{name}")
    except NoReverseMatch:
        _, model, page = name.removeprefix("django_celery_").split("_", 2)
        keys = {**BEAT, **mine.keys, **shared}
        return reverse(f"admin:{name}", args=[keys.get(f"{model}.{page}", keys.get(model))])


BEAT: Final = {"periodictask": 1, "intervalschedule": 1, "crontabschedule": 1}  # of the migrations


def _looks(mine: Memory) -> dict[str, str]:
    """The page of each kind of operation, lists of what is over, and moments of the past."""
    kinds, where = mine.engine, mine.world
    items: tuple[Operation, ...] = (where.prune, where.never, where.applied, *kinds.open)
    past = reverse("admin:observations_observation_asof")
    listed = {model._meta.app_label for model in admin.site._registry}
    queue = reverse("admin:consolidation_operation_changelist")
    return {
        **{f"tables of {label}": reverse("admin:app_list", args=[label]) for label in sorted(listed)},
        "people like nobody": reverse("admin:auth_user_changelist") + "?is_active__exact=0",
        **{
            f"item {row.kind} {row.pk}": reverse("admin:consolidation_operation_change", args=[row.pk]) for row in items
        },
        "record of what was applied": item_url(where.applied, "record"),
        "record of a summary": item_url(kinds.whole, "record"),
        "undo of a summary": item_url(kinds.whole, "undo"),
        "observation with a key": reverse("admin:observations_observation_change", args=[kinds.given.pk]),
        "observation as of": f"{past}?observation={where.derived.pk}&at=2026-01-01",
        "scope as of": f"{past}?scope={mine.scope.pk}&at=2100-01-01",
        "queue, decided": f"{queue}?show=decided",
        "queue, waiting for a second person": f"{queue}?show=second",
        "agreeing together": reverse("admin:consolidation_operation_bulk", args=[mine.keys["operation.agreeing"]]),
        "run that failed": reverse("admin:observations_intakerun_change", args=[mine.written.failed.pk]),
    }
