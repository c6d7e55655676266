"""History on pages: versions, lineage, moments, answers, records of decisions, searches, subjects and retired ids."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from consolidation import runner
from consolidation.aliases import request_alias
from consolidation.models import Operation
from consolidation.operations import Approval, Kind
from consolidation.review import Decision
from observations import prompting, store
from observations.embedding import embedder
from observations.models import GivenAnswer, Observation, Scope, database_now
from observations.normalise import key64
from observations.records import Claim, EvidenceRef, Turn, WrittenBy
from tests.building import observe, propose, scope, tell
from tests.desk import World, client_of, item_url, person, settle, world
from tests.engine import approve_and_apply

pytestmark = pytest.mark.django_db

HOSTILE = '<script>alert(1)</script> "><svg/onload=alert(2)> \u202eevil'
LONG_WORD = "x" * 300_000
OBSERVATION, AS_OF, AS_OF_SCOPE, HISTORY, SUBJECT, RECORD, ANSWER = 30, 11, 11, 7, 13, 18, 10


@pytest.fixture
def mine() -> World:
    """A memory of scope team-a/u1."""
    return world()


@pytest.fixture
def vera() -> Client:
    """A viewer of team-a: looking back needs no more than that."""
    return client_of(person("vera", "Viewer", "team-a/*"))


@pytest.fixture
def stan() -> Client:
    """Somebody of another team."""
    return client_of(person("stan", "Operator", "team-b/*"))


def page_of(row: Observation) -> str:
    """The address of an observation's page."""
    return reverse("admin:observations_observation_change", args=[row.pk])


def history(page: str, *arguments: object) -> str:
    """The address of one of the pages that look back."""
    return reverse(f"admin:observations_observation_{page}", args=arguments)


def seen(client: Client, address: str, **given: str) -> str:
    """What a page says; its posted answer where something is given."""
    answer = client.post(address, given) if given else client.get(address)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


def counted(client: Client, address: str) -> int:
    """How many queries a page runs."""
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


def record(operation: Operation, form: str = "") -> str:
    """The address of a record."""
    if form:
        return reverse("admin:consolidation_operation_recordfile", args=[operation.pk, form])
    return item_url(operation, "record")


def moved(mine: World) -> tuple[Observation, Observation]:
    """Ann's two cities, the older of which was superseded: rita decided it, olga applied it."""
    old, new = Observation.objects.filter(operation_sources__operation=mine.supersede).order_by("pk")
    approve_and_apply(mine.supersede, decision=Decision(keep=new.pk), reason="she moved in May")
    settle()
    return old, new


def erase(row: Observation) -> None:
    """Its words leave."""
    with transaction.atomic():
        store.erase(scope_id=row.scope_id, ids=[row.pk], by="ines", reason="she asked for it", request="forget:1")
    settle()


def rests_on(within: Scope, turns: int) -> Observation:
    """A claim that rests on that many episodes."""
    with transaction.atomic():
        told = [
            Turn(text=f"Turn {number}", external_id=f"many{number}", source_uri=f"m://{number}", happened_at=_SAID)
            for number in range(turns)
        ]
        store.add_episodes(scope=within, turns=told)
        refs = tuple(EvidenceRef(source_uri=f"m://{number}", episode=f"many{number}") for number in range(turns))
        claim = Claim(text="It rests on much", external_id="much", created_at=_SAID, evidence=refs)
        store.add_observations(scope=within, claims=[claim], written_by=WrittenBy.BACKGROUND)
    return Observation.objects.get(scope=within, external_id="much")


_SAID = datetime(2021, 5, 1, tzinfo=UTC)


# --- versions -------------------------------------------------------------------------------------------------------


def test_the_chain_says_who_replaced_what_why_and_which_words_changed(mine: World, vera: Client) -> None:
    """E.8: oldest first, with the operation, the people, their reason, the evidence and the difference of words."""
    old, new = moved(mine)
    for row in (old, new):
        page = seen(vera, page_of(row))
        chain = page[page.index('id="versions"') : page.index("How it was written")]
        assert chain.index(f"obs_{old.pk}") < chain.rindex(f">obs_{new.pk}<")
        assert "decided by rita, applied by olga: she moved in May" in chain
        assert "1 source, 1 independent" in chain
        assert re.search(r"<del>.*?Ghent</del><ins>.*?Lyon</ins>", chain)


def test_a_merged_row_shows_the_difference_to_what_stands_in_its_place(mine: World, vera: Client) -> None:
    """An automatic merge: nobody decided, the engine's reason stands there."""
    source = Observation.objects.filter(superseded_by=mine.derived).order_by("pk").last()
    assert source is not None
    page = seen(vera, page_of(source))
    assert f"merged into obs_{mine.derived.pk}" in page
    assert "applied by seed: made by a test" in page
    assert "What changed in the text" in page


# --- lineage --------------------------------------------------------------------------------------------------------


def test_the_lineage_is_drawn_with_links_and_stands_there_as_a_list(mine: World, vera: Client) -> None:
    """E.8: a real drawing, every box a link that says what it is in words, the same rows in a list."""
    page = seen(vera, page_of(mine.derived))
    drawing = page[page.index('<svg class="graph"') : page.index('class="hint legend"')]
    boxes = re.findall(r'<a href="([^"]+)" class="box[^"]*" aria-label="([^"]+)"', drawing)
    assert len(boxes) == 3
    assert boxes[-1][0] == page_of(mine.derived)
    assert "merge, active, this row, from obs_" in boxes[-1][1]
    assert [label.endswith("claim, archived") for _, label in boxes[:2]] == [True, True]
    assert "style=" not in drawing
    listed = page[page.index('<details class="aslist">') :]
    assert all(f'href="{address}"' in listed for address, _ in boxes)


def test_a_claim_is_drawn_under_the_episodes_it_rests_on(vera: Client) -> None:
    """Up to episodes, also where nothing was derived; at most forty boxes, the rest counted."""
    within = scope("team-a/u1")
    few = seen(vera, page_of(rests_on(within, 3)))
    assert few.count('class="box done') == 4
    assert few.count('class="rests"') == 3
    assert "more</text>" not in few
    many = seen(vera, page_of(rests_on(scope("team-a/u2"), 60)))
    assert many.count('class="box done') == 38
    assert "and 23 more</text>" in many


# --- moments --------------------------------------------------------------------------------------------------------


def test_a_row_is_shown_as_it_stood_at_a_moment(mine: World, vera: Client) -> None:
    """Before the decision the old city was believed; after it the new one, which the page of the old one names."""
    before = database_now()
    old, new = moved(mine)
    address = f"{history('asof')}?observation={old.pk}&at="
    then = seen(vera, address + before.isoformat().replace("+", "%2B"))
    assert re.search(r"Stood then as</dt><dd><span class=\"chip done\">active", then)
    assert re.search(r"Stands now as</dt><dd><span class=\"chip back\">superseded", then)
    assert "Read then</dt><dd>yes" in then
    later = seen(vera, address + (database_now() + timedelta(days=1)).date().isoformat())
    assert "Read then</dt><dd>no" in later
    assert f'href="{page_of(new)}"' in later
    assert "yet to come" in later
    assert "not written yet" in seen(vera, address + "2001-01-01")


def test_a_scope_is_shown_as_it_was_believed(mine: World, vera: Client) -> None:
    """The superseded row is in the list of before, and not in that of now."""
    before = database_now()
    old, _ = moved(mine)
    address = f"{history('asof')}?scope={mine.scope.pk}&at="
    assert f'href="{page_of(old)}"' in seen(vera, address + before.isoformat().replace("+", "%2B"))
    assert f'href="{page_of(old)}"' not in seen(vera, address + database_now().isoformat().replace("+", "%2B"))
    assert "Nothing was believed" in seen(vera, address + "1999-01-01")


@pytest.mark.parametrize("words", ["yesterday", "2026-13-01", "9" * 40, "<script>", "0001-01-01T00:00+23:59"])
def test_what_is_no_moment_is_said_to_be_none(words: str, mine: World, vera: Client) -> None:
    """One sentence, not a failure; and what was typed is not shown again."""
    page = vera.get(history("asof"), {"scope": str(mine.scope.pk), "at": words}).content.decode()
    assert "This is not a moment" in page
    assert words not in page


# --- what was the agent told ----------------------------------------------------------------------------------------


def test_an_answer_shows_how_its_rows_stood_then_and_stand_now(vera: Client) -> None:
    """From an answer to the exact rows: their words, their status then and now, and what stands in their place."""
    within = scope("team-a/u1")
    old = observe("The relay fix ships on Monday", within=within, key=("relay", "ships", "monday"))
    tell("Is it out?", within=within, session="s1")
    made = prompting.prompt(scope=within, about="relay fix", session="s1", embedder=embedder("hashing"))
    new = observe("The relay fix ships on Friday", within=within, key=("relay", "ships", "friday"))
    asked = propose(Kind.SUPERSEDE, [old, new], approval=Approval.NEEDS_HUMAN, keeper=new)
    approve_and_apply(asked, decision=Decision(keep=new.pk))
    settle()
    row = GivenAnswer.objects.get(answer=made.answer)
    page = seen(vera, reverse("admin:observations_givenanswer_change", args=[row.pk]))
    assert "The relay fix ships on Monday" in page
    assert "then active" in page
    assert "now superseded" in page
    assert f"obs_{new.pk} in its place" in page
    assert "what was told" in seen(vera, page_of(old))


def test_an_answer_is_found_by_its_id_and_by_scope_and_moment(vera: Client, stan: Client) -> None:
    """Each address can be shared; one of another team leads nowhere."""
    within = scope("team-a/u1")
    observe("The relay fix ships", within=within)
    made = prompting.prompt(scope=within, about="relay fix", embedder=embedder("hashing"))
    row = GivenAnswer.objects.get(answer=made.answer)
    wanted = reverse("admin:observations_givenanswer_change", args=[row.pk])
    find, missing = reverse("admin:observations_givenanswer_find"), reverse("admin:observations_givenanswer_changelist")
    shared = reverse("admin:observations_givenanswer_of", args=[row.answer])
    now = database_now().isoformat()
    assert vera.get(shared)["Location"] == wanted
    assert stan.get(shared).status_code == 404
    for given in ({"answer": str(row.answer)}, {"scope": str(within.pk), "at": now}):
        assert vera.get(find, given)["Location"] == wanted
        assert stan.get(find, given)["Location"] == missing
    for wrong in ({"answer": "x'"}, {"scope": "1", "at": "soon"}, {}, {"scope": str(within.pk), "at": "2001-01-01"}):
        assert vera.get(find, wrong)["Location"] == missing


# --- search ---------------------------------------------------------------------------------------------------------


def test_words_are_searched_over_current_and_past_rows(mine: World, vera: Client) -> None:
    """Statuses in words and a link to the successor; narrowed by status, kind, scope and days."""
    old, new = moved(mine)
    found = seen(vera, history("history"), q="Lives in")
    assert f'href="{page_of(old)}"' in found
    assert "superseded" in found
    assert f"now obs_{new.pk}" in found
    past = seen(vera, history("history"), q="Lives in", status="past")
    assert f'href="{page_of(old)}"' in past
    assert f'<a href="{page_of(new)}" data-open>' not in past
    for narrowed in ({"kind": "identity"}, {"until": "2001-01-01"}, {"status": "retracted"}):
        assert "No row holds" in seen(vera, history("history"), q="Lives in", **narrowed)


def test_no_address_of_a_search_holds_what_was_typed(mine: World, vera: Client) -> None:
    """ASVS 14.2.1: it is posted, it is never redirected to, and a search in an address is not carried out."""
    answer = vera.post(history("history"), {"q": "Lives in Ghent"})
    page = answer.content.decode()
    assert answer.status_code == 200
    assert not re.search(r'(href|action)="[^"]*Ghent', page)
    assert "Type words" in vera.get(history("history"), {"q": "Lives in Ghent"}).content.decode()


def test_a_search_of_another_team_finds_nothing(mine: World, stan: Client) -> None:
    """I2p: its scope is not offered, nor any of its rows."""
    page = seen(stan, history("history"), q="Lives in", scope=str(mine.scope.pk))
    assert "No row holds" in page
    assert "team-a" not in page


# --- subjects -------------------------------------------------------------------------------------------------------


def test_a_subject_has_all_its_claims_under_every_name_by_predicate(mine: World, vera: Client) -> None:
    """Current and past, aliases taken into account, with the questions that are open and the time they are true."""
    observe("Annie plays the cello", within=mine.scope, key=("annie", "plays", "cello"))
    alias = request_alias(scope=mine.scope, subject="annie", name="ann", by="rob")
    first = seen(vera, history("subject", mine.scope.pk, key64("ann")))
    assert "2 values are current" in first
    assert item_url(mine.supersede) in first
    assert "cello" not in first
    approve_and_apply(alias)
    old, new = moved(mine)
    for name in ("ann", "annie"):
        page = seen(vera, history("subject", mine.scope.pk, key64(name)))
        assert "cello" in page
        assert "2 values are current" not in page
        assert page.index(f">obs_{new.pk}<") < page.index(f">obs_{old.pk}<")  # what holds stands first
        assert f"replaced by obs_{new.pk}" in page


def test_a_subject_is_shown_as_of_a_day(mine: World, vera: Client) -> None:
    """Only what was believed then, with how it stood then."""
    before = database_now()
    old, _ = moved(mine)
    address = history("subject", mine.scope.pk, key64("ann"))
    then = vera.get(address, {"at": before.isoformat()}).content.decode()
    now = vera.get(address, {"at": database_now().isoformat()}).content.decode()
    assert f">obs_{old.pk}<" in then
    assert f">obs_{old.pk}<" not in now
    assert "Nothing was believed" in vera.get(address, {"at": "1999-01-01"}).content.decode()


@pytest.mark.parametrize("key", ["0", "x", "9223372036854775808", "-", "12" * 40, "5"])
def test_a_subject_nobody_spoke_of_is_not_there(key: str, mine: World, vera: Client) -> None:
    """Whatever stands in the address."""
    assert vera.get(f"/admin/observations/observation/subject/{mine.scope.pk}/{key}/").status_code == 404


# --- retired ids ----------------------------------------------------------------------------------------------------


def test_every_id_that_was_ever_given_out_leads_to_its_row(mine: World, vera: Client, stan: Client) -> None:
    """Merged, superseded and erased ones too, by number and by their writer's own id."""
    merged = Observation.objects.filter(superseded_by=mine.derived).first()
    old, _ = moved(mine)
    erase(old)
    assert merged is not None
    turn = tell("Hello", within=mine.scope)
    for row in (merged, old, mine.derived):
        for name in (f"obs_{row.pk}", row.external_id):
            assert vera.get(history("named", name))["Location"] == page_of(row)
            assert stan.get(history("named", name)).status_code == 404
    named = vera.get(history("named", f"ep_{turn.pk}"))
    assert named["Location"] == reverse("admin:observations_episode_change", args=[turn.pk])
    for nothing in ("obs_99999999", "obs_x", "nobody/said", "ep_", "a" * 300):
        assert vera.get(history("named", nothing)).status_code == 404


def test_an_erased_row_keeps_its_page_without_its_words(mine: World, vera: Client) -> None:
    """The tombstone: that it was erased, by whom, when and why; no text of it anywhere on the page."""
    old, _ = moved(mine)
    erase(old)
    page = seen(vera, page_of(old))
    assert "<strong>Erased</strong> by ines" in page
    assert "she asked for it" in page
    assert "Ghent" not in page


def test_an_own_id_that_two_scopes_use_offers_both(vera: Client, stan: Client) -> None:
    """Unique within a scope only; somebody who may see one of them is led to that one."""
    for name in ("team-a/u1", "team-a/u2", "team-b/u1"):
        observe(f"Said in {name}", within=scope(name), external_id="crm/42")
    page = seen(vera, history("named", "crm/42"))
    assert "Said in team-a/u1" in page
    assert "Said in team-a/u2" in page
    assert "team-b" not in page
    assert stan.get(history("named", "crm/42")).status_code == 302


# --- every page -----------------------------------------------------------------------------------------------------


def test_nobody_sees_the_history_of_another_team(mine: World, stan: Client) -> None:
    """I2p: as if it did not exist."""
    answer = GivenAnswer.objects.create(scope=mine.scope, answer="00000000-0000-4000-8000-000000000001", call_site="x")
    for address in (
        page_of(mine.derived),
        f"{history('asof')}?observation={mine.derived.pk}&at=2026-01-01",
        f"{history('asof')}?scope={mine.scope.pk}&at=2026-01-01",
        history("subject", mine.scope.pk, key64("ann")),
        record(mine.merge),
        record(mine.merge, "json"),
        record(mine.merge, "txt"),
        reverse("admin:observations_givenanswer_change", args=[answer.pk]),
    ):
        assert stan.get(address).status_code == 404, address


def test_hostile_and_endless_words_are_text_on_every_page(vera: Client) -> None:
    """O2, F5: markup, a right-to-left override and a word of 300 kB, in texts and keys."""
    within = scope("team-a/u1")
    key = (HOSTILE[:400], "p", HOSTILE[:400])
    rows = [observe(f"{HOSTILE} {LONG_WORD} {number}", within=within, key=key) for number in range(2)]
    asked = propose(Kind.SUPERSEDE, rows, approval=Approval.NEEDS_HUMAN, keeper=rows[1])
    approve_and_apply(asked, decision=Decision(keep=rows[1].pk), reason=HOSTILE)
    settle()
    for address in (
        page_of(rows[0]),
        f"{history('asof')}?observation={rows[0].pk}",
        f"{history('asof')}?scope={within.pk}&at=2030-01-01",
        history("subject", within.pk, rows[0].subject_key),
        record(asked),
    ):
        page = seen(vera, address)
        assert html.escape("<script>alert(1)</script>") in page, address
        assert "<script>alert" not in page, address
        assert "\u202e" not in page, address
        assert len(page) < 300_000, address
    assert html.escape("<script>alert(1)") in seen(vera, history("history"), q="alert")


def test_the_pages_run_a_fixed_number_of_queries(mine: World, vera: Client) -> None:
    """STYLE 20: the same for a short past and a longer one, and the numbers that are written here."""
    observe("The relay fix ships", within=mine.scope)
    made = prompting.prompt(scope=mine.scope, about="relay fix", embedder=embedder("hashing"))
    answer = GivenAnswer.objects.get(answer=made.answer)
    row = Observation.objects.filter(superseded_by=mine.derived).order_by("pk")[0]
    pages = {
        page_of(row): OBSERVATION,
        f"{history('asof')}?observation={row.pk}&at=2030-01-01": AS_OF,
        f"{history('asof')}?scope={mine.scope.pk}&at=2030-01-01": AS_OF_SCOPE,
        history("history"): HISTORY,
        history("subject", mine.scope.pk, key64("ann")): SUBJECT,
        record(mine.applied): RECORD,
        reverse("admin:observations_givenanswer_change", args=[answer.pk]): ANSWER,
    }
    few = [counted(vera, address) for address in pages]
    for number in range(3):
        observe(f"Plays {number}", within=mine.scope, key=("ann", f"plays {number}", "x"))
    more = [observe(f"The relay restarts {number}", within=mine.scope) for number in range(3)]
    later = propose(Kind.MERGE, [mine.derived, *more])
    assert runner.apply(operation=later, by="seed").outcome == runner.Outcome.APPLIED
    settle()
    assert [counted(vera, address) for address in pages] == few == list(pages.values())
