"""What a reviewer is shown of promotions, summaries, aliases and archives, and that deciding them works."""

from __future__ import annotations

import re

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

from consolidation import review
from consolidation.admin.item.reading import Item
from consolidation.admin.reading import Row
from consolidation.models import Alias, Draft, Operation
from consolidation.operations import Approval, Kind, State
from observations import store
from observations.models import Episode, Observation
from observations.records import Status
from tests.building import propose, tell
from tests.desk import client_of, decide, item_url, person, settle, status_of
from tests.engine import MODEL, PROMPT, Engine, approve_and_apply, engine, promotion

pytestmark = pytest.mark.django_db

QUEUE = "admin:consolidation_operation_changelist"
DISTINCT = 'name="verb" value="distinct"'  # the button, not the filter


@pytest.fixture
def mine() -> Engine:
    """A memory of scope team-a/u1."""
    return engine()


@pytest.fixture
def ana() -> Client:
    """A reviewer of team-a."""
    return client_of(person("ana", "Reviewer", "team-a/*"))


@pytest.fixture
def olga() -> Client:
    """An operator of team-a."""
    return client_of(person("olga", "Operator", "team-a/*"))


def item(client: Client, operation: Operation) -> Item:
    """What the page of an operation is made of."""
    found: Item = client.get(item_url(operation)).context["item"]
    return found


def page(client: Client, operation: Operation) -> str:
    """The page as text."""
    return client.get(item_url(operation)).content.decode()


def words_of(text: str) -> list[str]:
    """What is marked on a page."""
    return re.findall(r"<mark>(.*?)</mark>", text)


def row_of(client: Client, operation: Operation) -> Row:
    """An operation's row in the queue."""
    rows: list[Row] = client.get(reverse(QUEUE), {"state": operation.status}).context["rows"]
    return next(row for row in rows if row.pk == operation.pk)


# --- promotions -----------------------------------------------------------------------------------------------------


def test_a_promotion_shows_the_fact_its_key_and_what_it_rests_on(mine: Engine, ana: Client) -> None:
    """R53, R75: the words, the key, the support in figures, and that no user said it."""
    fact = item(ana, mine.promote).fact
    assert fact is not None
    assert fact.text.plain == "Ana takes the night train to Graz."
    assert fact.key == "Ana · takes · the night train to Graz"
    assert fact.confidence == "0.60"
    assert "2 independent sources, 1 verified success" in fact.support
    assert "promoted, not user-stated" in page(ana, mine.promote)


def test_copies_of_one_source_are_shown_as_one_witness(mine: Engine, ana: Client) -> None:
    """C8: three episodes, two of them of one mail; the page says which."""
    fact = item(ana, mine.promote).fact
    assert fact is not None
    assert [(one.source, len(one.turns)) for one in fact.witnesses] == [("mail://1", 2), ("call://7", 1)]
    assert "2 episodes, one witness" in page(ana, mine.promote)


def test_the_words_that_say_a_fact_are_marked_in_each_episode(mine: Engine, ana: Client) -> None:
    """C3: the quoted words where they stand, with the words around them; once for each episode."""
    assert words_of(page(ana, mine.promote)).count("the night train to Graz") == 3
    fact = item(ana, mine.promote).fact
    assert fact is not None
    [first, *_] = fact.witnesses[0].turns
    assert first.text.plain == "I take the night train to Graz again this week."
    assert (first.speaker, first.role, first.session) == ("Ana", "user", "trips")


def test_a_verified_success_is_told_from_what_nobody_checked(mine: Engine, ana: Client) -> None:
    """R53: verified successes are counted, so the page shows which they are."""
    fact = item(ana, mine.promote).fact
    assert fact is not None
    outcomes = [turn.outcome and turn.outcome.word for one in fact.witnesses for turn in one.turns]
    assert outcomes == [None, None, "verified success"]


def test_the_model_and_the_prompt_behind_a_fact_are_named(mine: Engine, ana: Client) -> None:
    """The draft is found by the question that the operation's discriminator begins with."""
    fact = item(ana, mine.promote).fact
    assert fact is not None
    assert fact.asked is not None
    assert (fact.asked.model, fact.asked.prompt) == (MODEL, PROMPT)


def test_a_fact_without_its_draft_says_so(mine: Engine, ana: Client) -> None:
    """An imported or older operation has none; the page is no error."""
    assert item(ana, mine.compact).summary is not None
    assert "its answer is not kept here" in page(ana, mine.compact)
    assert not Draft.objects.filter(kind=Kind.COMPACT).exists()


def test_a_promotion_with_one_witness_is_shown_and_offers_no_approval(mine: Engine, ana: Client) -> None:
    """R103: skipped with the count; a reviewer sees it and cannot apply it."""
    shown = page(ana, mine.alone)
    assert "1 supporting, 2 needed" in shown
    assert 'value="approve' not in shown


def test_a_promotion_is_approved_applied_and_undone(mine: Engine, olga: Client) -> None:
    """The whole path in the admin; undo says first that the episodes never moved."""
    assert decide(olga, mine.promote, "approve_apply", reason="both say so")[0] == 200
    settle()
    made = Operation.objects.get(pk=mine.promote.pk)
    assert Observation.objects.get(pk=made.derived_id or 0).text == "Ana takes the night train to Graz."
    preview = olga.get(item_url(mine.promote, "undo")).content.decode()
    assert "promoting left the episodes as they were" in preview
    assert f"obs_{made.derived_id}" in preview
    assert decide(olga, mine.promote, "undo")[0] == 200
    assert status_of(mine.promote) == State.UNDONE
    assert Observation.objects.get(pk=made.derived_id or 0).status == Status.RETRACTED


def test_an_episode_that_changed_since_the_page_is_said(mine: Engine, ana: Client) -> None:
    """C11, D2: an episode was compacted between looking and clicking; the refusal names it."""
    digest = review.shown_digest(operation=mine.promote)
    turn = mine.episodes[0]
    approve_and_apply(propose(Kind.COMPACT, [turn], text="A trip."))
    for verb in ("approve", "reject"):
        status, shown = decide(ana, mine.promote, verb, digest=digest, reason="because")
        assert status == 409
        assert f"ep_{turn.pk} was archived" in shown
    assert status_of(mine.promote) == State.NEEDS_HUMAN


def test_a_fact_that_is_known_already_leads_to_the_row_that_says_it(mine: Engine, ana: Client) -> None:
    """A skip is a result: the page links to what stands in the way."""
    known = promotion(mine.episodes[:2], plan=mine.plan, skipped=f"already known as obs_{mine.given.pk}")
    assert item(ana, known).head.known == mine.given.pk
    assert f"/observation/{mine.given.pk}/" in page(ana, known)


def test_the_words_of_an_erased_fact_are_shown_as_erased(mine: Engine, ana: Client) -> None:
    """Erasing what a promotion wrote empties the operation too; its page stays readable, without a word of it."""
    done = approve_and_apply(mine.promote)
    assert done.derived_id is not None
    with transaction.atomic():
        store.erase(scope_id=mine.scope.pk, ids=[done.derived_id], by="test", reason="asked", request="forget:1")
    fact = item(ana, mine.promote).fact
    assert fact is not None
    assert fact.text.erased
    assert fact.key == ""
    assert "Ana takes" not in page(ana, mine.promote)


# --- summaries ------------------------------------------------------------------------------------------------------


def test_what_a_summary_loses_is_marked_in_the_episodes_and_what_it_adds_in_the_summary(
    mine: Engine, ana: Client
) -> None:
    """C9: the number that vanished, where it stood; the name that no episode says."""
    assert sorted(words_of(page(ana, mine.compact))[:2]) == ["120", "Ben"]
    summary = item(ana, mine.compact).summary
    assert summary is not None
    assert summary.text is not None
    assert [run.text for run in summary.text.words if run.own] == ["Ben"]


def test_what_is_lost_and_added_is_counted_by_sort(mine: Engine, ana: Client) -> None:
    """C9: a number lost, a name invented, an episode that no sentence mentions."""
    summary = item(ana, mine.compact).summary
    assert summary is not None
    assert [(one.sort, one.lost, one.invented) for one in summary.losses] == [("number", 1, 0), ("name", 0, 1)]
    assert summary.remarks == (f"No sentence of the summary mentions ep_{summary.turns[3].id}.",)


def test_a_summary_that_loses_nothing_says_so(mine: Engine, ana: Client) -> None:
    shown = page(ana, mine.whole)
    assert "All 1 numbers, dates, identifiers and names are kept" in shown
    assert not words_of(shown)[1:]


def test_a_compaction_shows_its_ratio_and_the_episodes_in_order_of_time(mine: Engine, ana: Client) -> None:
    """R107: 4:1, and that nothing is deleted."""
    summary = item(ana, mine.compact).summary
    assert summary is not None
    assert summary.ratio == "4:1"
    assert [turn.id for turn in summary.turns] == sorted(turn.id for turn in summary.turns)
    assert "archived, never deleted" in page(ana, mine.compact)


def test_undoing_a_compaction_shows_the_episodes_that_come_back(mine: Engine, olga: Client) -> None:
    """C13: the preview lists episodes, each with its text, and leads to their pages."""
    done = approve_and_apply(mine.compact)
    preview = olga.get(item_url(done, "undo")).content.decode()
    for source in done.sources.all():
        assert f'href="{reverse("admin:observations_episode_change", args=[source.episode_id])}"' in preview
    assert "Paid 120 euros for the ticket." in preview
    assert decide(olga, mine.compact, "undo")[0] == 200
    assert set(Episode.objects.filter(operation_sources__operation=done).values_list("status", flat=True)) == {"active"}


def test_a_compaction_over_the_limit_shows_its_episodes_without_a_summary(mine: Engine, ana: Client) -> None:
    """R107: refused; there are no words of a summary to show, and none is said to be erased."""
    turns = [tell(f"Turn {number}", within=mine.scope) for number in range(3)]
    skipped = propose(
        Kind.COMPACT, turns, approval=Approval.NEVER, skipped_reason="over the limit of 2 to 1: 3 episodes"
    )
    shown = page(ana, skipped)
    assert "No summary was written." in shown
    assert "text erased" not in shown
    assert "Turn 2" in shown


# --- aliases and archives -------------------------------------------------------------------------------------------


def test_an_alias_shows_both_subjects_with_their_newest_records_and_who_asked(mine: Engine, ana: Client) -> None:
    """R46: side by side, so that a person can say whether they are one."""
    names = item(ana, mine.alias).names
    assert names is not None
    assert (names.subject.name, names.main.name) == ("ana b", "anastasia brandt")
    assert [one.text.plain for one in names.subject.sources] == ["Ana B leads the lab"]
    assert [one.text.plain for one in names.main.sources] == ["Anastasia Brandt leads the lab"]
    assert "Asked by nora" in page(ana, mine.alias)


def test_an_alias_needs_a_reason_and_is_undone_in_the_admin(mine: Engine, olga: Client) -> None:
    """review.REASON_REQUIRED; no record comes back, because none moved."""
    assert decide(olga, mine.alias, "approve_apply")[0] == 409
    assert decide(olga, mine.alias, "approve_apply", reason="same person")[0] == 200
    assert Alias.objects.get(scope=mine.scope).removed_at is None
    assert "The two names are compared as two again" in olga.get(item_url(mine.alias, "undo")).content.decode()
    assert decide(olga, mine.alias, "undo")[0] == 200
    assert Alias.objects.get(scope=mine.scope).removed_at is not None


def test_an_archive_shows_how_strong_the_row_is_today(mine: Engine, ana: Client) -> None:
    """R25: age, half-life and strength as figures; the picture says the same in words."""
    faded = item(ana, mine.archive).faded
    assert faded is not None
    assert (faded.half_life, faded.strength, faded.below) == ("7 days", "under 0.01", "0.1")
    assert int(faded.age.split()[0].replace(",", "")) > 1_000
    assert 'aria-label="Strength under 0.01 of 1; archived below 0.1"' in page(ana, mine.archive)


# --- what all share -------------------------------------------------------------------------------------------------


def test_the_page_the_list_and_the_review_compute_one_digest_for_every_kind(mine: Engine, ana: Client) -> None:
    """D2: texts, keys and episodes are part of what was shown, wherever it was shown."""
    for operation in mine.open:
        shown = review.shown_digest(operation=operation)
        assert item(ana, operation).digest == shown
        assert row_of(ana, operation).digest == shown


def test_the_queue_shows_what_would_be_written(mine: Engine, ana: Client) -> None:
    """A row of the list tells a fact, a summary or two names, and what it rests on."""
    shown = ana.get(reverse(QUEUE)).content.decode()
    assert "Ana takes the night train to Graz." in shown
    assert "2 independent sources" in shown
    assert "Paid for the ticket with Ben" in shown
    assert "4 episodes become one summary" in shown
    assert "I take the night train to Graz again this week." in shown
    assert re.search(r"ana b.*is compared as.*anastasia brandt", shown)


def test_only_what_could_be_one_claim_is_told_apart(mine: Engine, ana: Client) -> None:
    """review.TELLS_APART: no such button on a promotion, a summary, an alias or an archive, nor in a list of them."""
    for operation in (mine.promote, mine.compact, mine.alias, mine.archive):
        assert DISTINCT not in page(ana, operation)
        assert decide(ana, operation, "distinct")[0] == 409
    assert DISTINCT in page(ana, mine.supersede)
    assert DISTINCT not in ana.get(reverse(QUEUE), {"kind": "promote"}).content.decode()
    assert DISTINCT in ana.get(reverse(QUEUE), {"kind": "supersede"}).content.decode()


def test_a_selection_of_promotions_is_approved_from_the_list(mine: Engine, ana: Client) -> None:
    """The digest of the list covers the fact and its episodes, so that a selection may be approved by it."""
    shown = ana.get(reverse(QUEUE), {"kind": "promote"})
    data = {"shown": shown.context["token"], "all": "1", "verb": "approve", "reason": ""}
    chosen = ana.post(reverse("admin:consolidation_operation_decide"), data, follow=True)
    assert chosen.context["bulk"].total == 1
    ana.post(reverse("admin:consolidation_operation_bulkconfirm", args=[chosen.context["bulk"].pk]))
    assert status_of(mine.promote) == State.APPROVED
