"""Facts, summaries, names and keys are memory text too: as hostile as any, and shown as carefully (O2, F5, C3)."""

from __future__ import annotations

import html
import re

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from consolidation.models import Plan
from consolidation.operations import Approval, Json, Kind
from consolidation.review import Decision
from observations import store
from observations.normalise import clean
from tests.building import observe, propose, tell
from tests.desk import client_of, item_url, person
from tests.engine import MODEL, Engine, approve_and_apply, call, engine, keyed, unusable
from tests.integration.test_admin_hostile import INVISIBLE, PAYLOADS

pytestmark = pytest.mark.django_db

# Pages that show names and predicates as they are compared: without most punctuation, and no text as it was written.
COMPARED = ("aliases", "learnt")
AT_ONCE = 3  # payloads in one text: no longer than a page shows of it


@pytest.fixture
def root() -> Client:
    """A superuser, whom every page opens to."""
    return client_of(person("root", superuser=True))


def pages(text: str) -> dict[str, str]:
    """Every page that shows what the engine adds, with the text in each field that a writer or a model fills."""
    mark = clean(text)[0]
    mine = engine("team-a/hostile", mark=mark)
    made = approve_and_apply(mine.whole).derived_id
    turn = mine.compact.sources.order_by("position")[0].episode_id
    other = keyed(mine.scope, mark, model=f"m{mark}"[:80])
    approve_and_apply(mine.alias)
    several = [observe(f"{mark} {name}", within=mine.scope, key=("s", f"p {mark}", name)) for name in "ab"]
    learnt = propose(Kind.SUPERSEDE, several, approval=Approval.NEEDS_HUMAN)
    approve_and_apply(learnt, decision=Decision(many_valued=True))
    call(mine.scope, purpose=mark[:20])
    unusable(mine.scope)
    observation = "admin:observations_observation"
    return {
        "promote": item_url(mine.promote),
        "alone": item_url(mine.alone),
        "compact": item_url(mine.compact),
        "alias": item_url(mine.alias),
        "archive": item_url(mine.archive),
        "supersede": item_url(mine.supersede),
        "undo": item_url(mine.whole, "undo"),
        "queue": reverse("admin:consolidation_operation_changelist"),
        "plan": reverse("admin:consolidation_plan_change", args=[mine.plan.pk]),
        "trash": reverse("admin:consolidation_operation_trash"),
        "aliases": reverse("admin:consolidation_alias_changelist"),
        "learnt": reverse("admin:consolidation_cardinality_changelist"),
        "model": reverse("admin:observations_modelcall_changelist"),
        "given": reverse(f"{observation}_change", args=[other.pk]),
        "key": reverse(f"{observation}_key", args=[other.pk]),
        "about": f"{reverse(f'{observation}_changelist')}?about={other.pk}",
        "new alias": f"{reverse('admin:consolidation_alias_new')}?observation={other.pk}",
        "derived": reverse(f"{observation}_change", args=[made]),
        "episode": reverse("admin:observations_episode_change", args=[turn]),
    }


@pytest.mark.parametrize("start", range(0, len(PAYLOADS), AT_ONCE))
def test_no_fact_summary_name_or_key_becomes_markup(start: int, root: Client) -> None:
    """O2: on every page of the engine; each payload comes back escaped, and never as it was given."""
    payloads = PAYLOADS[start : start + AT_ONCE]
    for name, address in pages(" ".join(payloads)).items():
        page = root.get(address).content.decode()
        for payload in payloads:
            assert payload not in page or html.escape(payload) == payload, name
            if name not in (*COMPARED, "model"):  # the model's page holds figures and twenty characters of a purpose
                assert html.escape(payload) in page, name


@pytest.mark.parametrize("text", INVISIBLE)
def test_nothing_hidden_in_a_fact_summary_name_or_key_stays_hidden(text: str, root: Client) -> None:
    """F5: also where words are marked: a mark never cuts a word so that its look-alike letter stands alone."""
    hidden = [character for character in text if not character.isprintable() or character in "\u3164\u0430\u0339"]
    for name, address in pages(f"before {text} after").items():
        page = root.get(address).content.decode()
        for character in hidden:
            shown = page.replace("\n", "").replace("\r", "") if character in "\r\n" else page
            assert character not in shown, f"{character!r} on {name}"
        if name not in COMPARED:
            assert re.search(r"\\[xuU][0-9a-f]|\\r|\ufffd", page), name


def test_a_form_carries_a_hostile_subject_by_its_record_and_never_as_a_value(root: Client) -> None:
    """A subject with what nobody sees in it cannot be typed: the record's id stands for it, on both sides."""
    mine = engine()
    row = observe("x", within=mine.scope, key=("p\u0430ypal\u202e", "is", "x"))
    other = observe("y", within=mine.scope, key=("PayPal", "is", "y"))
    address = reverse("admin:consolidation_alias_new")
    page = root.get(address, {"observation": row.pk}).content.decode()
    assert "\u202e" not in page
    assert "\\u202e" in page
    answer = root.post(address, {"observation": row.pk, "name": f"obs_{other.pk}"})
    assert answer.status_code == 302
    assert "\u0430" not in root.get(answer["Location"]).content.decode()


def test_places_that_are_not_in_a_text_mark_nothing(root: Client) -> None:
    """G2: whatever a product says about places, its page opens."""
    mine = engine()
    turn = tell("Short.", within=mine.scope)
    outside: Json = [[turn.pk, -5, 3], [turn.pk, 4, 2], [turn.pk, 900, 950], [0, 1, 2]]
    other: Json = [[turn.pk], "x", None, [turn.pk, "a", "b"]]
    supports: tuple[Json, ...] = (outside, other, {"a": 1}, None, "text")
    for number, support in enumerate(supports):
        product: dict[str, Json] = {"discriminator": f"d.{number}", "support": support}
        operation = propose(Kind.PROMOTE, [turn], text="A fact.", product=product)
        page = root.get(item_url(operation)).content.decode()
        assert "Short." in page
        assert "<mark>Short" not in page
    signals: dict[str, Json] = {
        "lost_at": [{"episode": "x", "start": 1}, 7, {}],
        "invented_at": 3,
        "lost": [],
        "characters": [1],
    }
    summary = propose(Kind.COMPACT, [turn], text="Short.", signals=signals)
    assert root.get(item_url(summary)).status_code == 200


def test_erased_episodes_and_rows_are_shown_as_erased(root: Client) -> None:
    """The shell stays readable on the page of the operation, of the row and in the trash."""
    mine: Engine = engine(mark="umbrella")
    rows = [pk for pk in mine.alias.sources.values_list("observation_id", flat=True) if pk]
    with transaction.atomic():
        store.erase(scope_id=mine.scope.pk, ids=[*rows, mine.given.pk], by="test", reason="asked", request="forget:1")
    for address in (item_url(mine.alias), reverse("admin:observations_observation_change", args=[mine.given.pk])):
        page = root.get(address).content.decode()
        assert "leads the lab" not in page
        assert "works at" not in page
        assert "erased" in page


def test_the_model_page_shows_no_word_of_a_question_or_an_answer(root: Client) -> None:
    """A draft's reply is memory text: its figures are shown, never itself."""
    mine = engine()
    draft = unusable(mine.scope)
    type(draft).objects.filter(pk=draft.pk).update(reply="canary words of a model")
    Plan.objects.create(
        pattern=mine.scope.name,
        requested_by="t",
        trigger="command",
        failures=[{"scope": mine.scope.name, "step": "promote", "error": "promote: x", "failed": True}],
    )
    page = root.get(reverse("admin:observations_modelcall_changelist")).content.decode()
    assert "canary" not in page
    assert "unusable" in page
    assert MODEL not in page  # the configured model is named, not the one of a call


def test_looking_at_the_engine_changes_nothing(root: Client) -> None:
    """O3: every page asked for twice; the second time no row of ours changes."""
    addresses = list(pages("plain").values())

    def changes() -> list[tuple[object, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_xact_user_tables"
                " WHERE relname ~ '^(observations|consolidation|django_admin)' ORDER BY 1"
            )
            return list(cursor.fetchall())

    for address in addresses:
        root.get(address)
    before = changes()
    for address in addresses:
        root.get(address)
    assert changes() == before


def test_nothing_is_asked_or_withdrawn_without_the_forms_own_token() -> None:
    """ASVS 3.5.1: a form of another site, posted by a signed-in browser."""
    mine = engine()
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("root", superuser=True), backend="django.contrib.auth.backends.ModelBackend")
    for address in (
        reverse("admin:consolidation_alias_new"),
        reverse("admin:observations_observation_key", args=[mine.given.pk]),
    ):
        assert client.post(address, {"observation": mine.given.pk, "name": "x"}).status_code == 403


def test_what_is_drawn_has_no_style_of_its_own(root: Client) -> None:
    """Rules of INTEGRITY 4: pictures are SVG with attributes and classes, under the same strict policy."""
    mine = engine()
    for operation in (mine.supersede, mine.archive):
        answer = root.get(item_url(operation))
        page = answer.content.decode()
        assert "<svg" in page
        assert "style=" not in page
        assert "unsafe" not in answer["Content-Security-Policy"]
