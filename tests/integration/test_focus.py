"""The focus view's addresses: one POST decides and brings the next item; what is refused advances nothing."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from consolidation import review, runner
from consolidation.admin.queue.focus_tokens import Named, token_of
from consolidation.models import Deferral, Drill, Operation
from consolidation.operations import Approval, Kind, State
from consolidation.review import drills
from observations.models import Observation, ScopeAccess
from tests.building import observe, propose, scope
from tests.desk import World, client_of, item_url, person, settle, status_of, world

pytestmark = pytest.mark.django_db

FOCUS = "/admin/consolidation/operation/focus/"
LOOK, DECIDE = 20, 31  # queries: two are the session and its person, two their permissions


@dataclass(frozen=True)
class Shown:
    """What one answer brought."""

    status: int
    sentence: str
    card: str
    side: str = ""

    def field(self, name: str) -> str:
        """A hidden field of the card's form."""
        found = re.search(rf'name="{name}" value="([^"]*)"', self.card)
        return found[1] if found else ""

    @property
    def kind(self) -> str:
        """The kind of the item in the middle; empty: there is none."""
        found = re.search(r'data-kind="(\w+)"', self.card)
        return found[1] if found else ""

    def verbs(self) -> dict[str, str]:
        """What each key's button sends."""
        return {key: value for value, key in re.findall(r'value="([^"]*)" class="[^"]*" data-key="(.)"', self.card)}


@pytest.fixture
def mine() -> World:
    """A memory of scope team-a/u1."""
    return world()


@pytest.fixture
def rita(mine: World) -> Client:
    """A reviewer of team-a."""
    return client_of(person("rita", "Reviewer", "team-a/*"))


def shown(answer: Any) -> Shown:
    """A script's answer."""
    settle()
    body = json.loads(answer.content)
    return Shown(answer.status_code, body["sentence"], body.get("card", ""), body.get("side", ""))


def look(client: Client, address: str = FOCUS) -> Shown:
    """The view, as its script asks for it."""
    return shown(client.get(address, headers={"accept": "application/json"}))


def press(client: Client, at: Shown, verb: str, *, page: str = "decide/", **fields: str) -> Shown:
    """One decision, as the script sends it."""
    data = {"item": at.field("item"), "digest": at.field("digest"), "verb": verb, **fields}
    return shown(client.post(f"{FOCUS}{page}", data, headers={"accept": "application/json"}))


def test_the_riskiest_comes_first_and_each_answer_brings_the_next(mine: World, rita: Client) -> None:
    """E.1: by risk, then uncertainty; every verb ends where the review leaves it, and approving applies nothing."""
    at, kinds = look(rita), []
    for verb, extra in (
        ("reject", {"preset_reject": "1"}),
        ("approve|many", {"preset_approve": "4"}),
        ("approve", {}),
        ("distinct", {}),
    ):
        kinds.append(at.kind)
        at = press(rita, at, verb, **extra)
        assert at.status == 200, at.sentence
    assert kinds == ["prune", "supersede", "merge", "merge"]
    assert "Nothing awaits you" in at.card
    wanted = (State.REJECTED, State.APPROVED, State.APPROVED, State.DISTINCT)
    got = [status_of(one) for one in (mine.prune, mine.supersede, mine.merge, mine.skipped)]
    assert sorted(got) == sorted(wanted)
    assert (Operation.objects.get(pk=mine.prune.pk).decision_reason) == "Still needed"
    assert Operation.objects.filter(status=State.APPLIED).count() == 1  # the world's own
    assert at.side.count("data-undo") == 4


def test_what_is_missing_or_moved_is_said_in_one_sentence_and_advances_nothing(mine: World, rita: Client) -> None:
    """E.1, C11, C16: 422 without a reason, 409 when another decided or the digest is old, 404 for a foreign item."""
    at = look(rita)
    assert (press(rita, at, "reject").status, press(rita, at, "approve").status) == (422, 422)
    assert press(rita, at, "apply").status == 422
    assert press(rita, at, "defer", days="400").status == 422
    assert status_of(mine.prune) == State.NEEDS_HUMAN
    old = press(rita, at, "approve", reason="old", digest="0" * 64)
    assert old.status == 409
    assert "not what was shown" in old.sentence
    review.reject(operation=mine.prune, by="ben", reason="mine")
    lost = press(rita, at, "approve", reason="old")
    assert (lost.status, lost.card) == (409, "")
    assert "ben decided it" in lost.sentence
    assert press(rita, Shown(200, "", 'name="item" value="forged"'), "approve").status == 409


def test_a_second_click_finds_the_first(rita: Client) -> None:
    """C16: the same decision sent twice is one decision, and both answers go on."""
    at = look(rita)
    first, second = (press(rita, at, "reject", preset_reject="2") for _ in range(2))
    assert (first.status, second.status) == (200, 200)
    assert "did that already" in second.sentence


def test_who_may_not_decide_is_told_and_a_foreign_item_is_not_there(mine: World, rita: Client) -> None:
    """I1p, I2p: 403 with one sentence for a viewer, 404 for another scope's item, even with its own token."""
    viewer = client_of(person("vera", "Viewer", "team-a/*"))
    at = look(rita)
    for page in ("", "decide/", "undo/"):
        answer = viewer.post(f"{FOCUS}{page}", {"item": at.field("item")}, headers={"accept": "application/json"})
        assert answer.status_code == 403
        assert json.loads(answer.content) == {"sentence": "Your account may read this, not decide it."}
    user = person("stan", "Reviewer", "team-b/*", "team-a/*")
    stan = client_of(user)
    theirs = look(stan)
    user.scope_access.filter(pattern="team-a/*").delete()
    assert press(stan, theirs, "reject", preset_reject="1").status == 404
    assert press(stan, at, "reject", preset_reject="1").status == 409  # a token of somebody else
    assert status_of(mine.prune) == State.NEEDS_HUMAN
    assert "Nothing awaits you" in look(stan).card


def test_what_is_put_off_comes_back_by_undo_and_so_does_a_decision(mine: World, rita: Client) -> None:
    """E.1: the side list takes back each of the last decisions; what was applied has its own page."""
    first = look(rita)
    at = press(rita, first, "defer", days="7")
    assert (at.kind, Deferral.objects.get().by) == ("supersede", "rita")
    at = press(rita, first, "", page="undo/")
    assert (at.kind, Deferral.objects.count()) == ("prune", 0)
    press(rita, at, "reject", preset_reject="1")
    at = press(rita, first, "", page="undo/")
    assert (at.status, at.kind, status_of(mine.prune)) == (200, "prune", State.NEEDS_HUMAN)
    assert press(rita, first, "", page="undo/").status == 422
    assert "taken back until it is applied" in at.side


def test_next_and_previous_decide_nothing_and_filters_stay(mine: World, rita: Client) -> None:
    """E.1: n and p walk the queue in its order and around its end; the address narrows it."""
    at, seen = look(rita), []
    for _ in range(4):
        seen.append(at.kind)
        at = look(rita, f"{FOCUS}?after={at.field('item')}")
    assert seen == ["prune", "supersede", "merge", "merge"]
    assert at.kind == "prune"
    assert look(rita, f"{FOCUS}?before={look(rita).field('item')}").kind == "merge"
    narrow = look(rita, f"{FOCUS}?kind=merge&risk=low&scope={mine.scope.pk}&age=bogus&x=1")
    assert narrow.kind == "merge"
    assert f"?kind=merge&amp;scope={mine.scope.pk}&amp;risk=low" in narrow.card
    assert look(rita, f"{FOCUS}?kind=alias").kind == ""
    assert look(rita, f"{FOCUS}?scope=999").kind == ""
    assert {status_of(one) for one in (mine.prune, mine.merge)} == {State.NEEDS_HUMAN}


def test_without_the_script_the_same_forms_decide(mine: World, rita: Client) -> None:
    """E.1: a plain POST goes to the next item; a refused one shows the item again, with the sentence and the words."""
    page = rita.get(FOCUS)
    at = Shown(200, "", page.content.decode())
    data = {"item": at.field("item"), "digest": at.field("digest"), "verb": "reject", "reason": ""}
    refused = rita.post(f"{FOCUS}decide/?kind=prune", data)
    assert refused.status_code == 422
    assert "A rejection needs a reason" in refused.content.decode()
    assert 'data-kind="prune"' in refused.content.decode()
    done = rita.post(f"{FOCUS}decide/", data | {"reason": "kept by rule"}, follow=True)
    assert 'data-kind="supersede"' in done.content.decode()
    assert f"{mine.prune.op_id} is rejected." in done.content.decode()
    assert Operation.objects.get(pk=mine.prune.pk).decision_reason == "kept by rule"


def test_a_contradiction_is_settled_by_two_keys(mine: World, rita: Client) -> None:
    """E.1: keep a, keep b, keep both, and the suggestion; each asks for a reason first."""
    at = look(rita, f"{FOCUS}?kind=supersede")
    verbs = at.verbs()
    ids = [source.observation_id for source in review.sources_of(mine.supersede)]
    assert {verbs["1"], verbs["2"]} == {f"approve|keep:{pk}" for pk in ids}
    assert verbs["a"] == f"approve|keep:{mine.supersede.keeper_id}"
    assert verbs["b"] == "approve|many"
    assert press(rita, at, verbs["1"], preset_approve="1").status == 200
    assert Operation.objects.get(pk=mine.supersede.pk).decision == {"keep": int(verbs["1"].partition(":")[2])}


def test_the_side_list_links_the_undo_of_what_was_applied_only_where_it_may_be_undone(mine: World) -> None:
    """E.1, E.7: by page and by script the same; an operator of a scope undoes there, one who only reviews it asks."""

    def sides(name: str, role: str = "") -> tuple[str, str]:
        user = person(name, "Operator")
        ScopeAccess.objects.create(user=user, pattern="team-a/*", role=role)
        made = propose(Kind.ARCHIVE, [observe(f"For {name}", within=mine.scope)], approval=Approval.NEEDS_HUMAN)
        review.approve(operation=made, by=name)
        assert runner.apply(operation=made, by="seed").outcome == runner.Outcome.APPLIED
        client = client_of(user)
        return look(client).side, client.get(FOCUS).content.decode()

    for side in sides("olga"):
        assert re.search(r'<a href="/admin/consolidation/operation/\d+/undo/">Undo…</a>', side)
        assert "an operator can undo it" not in side
    for side in sides("ron", "Reviewer"):
        assert "an operator can undo it" in side
        assert "Undo…" not in side


# --- drills -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_values(mine: World) -> list[Observation]:
    """Two rows that are different claims."""
    return [observe(f"Works in {city}", within=mine.scope, key=("bo", "works in", city)) for city in ("Oslo", "Bonn")]


def test_a_drill_is_told_at_once_and_changes_nothing(
    mine: World, rita: Client, two_values: list[Observation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """E.4: a merge like any other, with the same answers; approving it makes no operation and changes no memory."""
    monkeypatch.setattr(drills, "EVERY", 1)
    real = look(rita, f"{FOCUS}?kind=merge")
    before = set(Operation.objects.values_list("pk", "status"))
    at = press(rita, look(rita), "reject", preset_reject="1")
    drill = Drill.objects.get()
    assert (drill.by, {drill.low_id, drill.high_id}) == ("rita", {row.pk for row in two_values})
    assert set(at.verbs()) == set(real.verbs())
    assert "drill" not in at.card.lower()
    assert press(rita, at, "reject").status == 422
    told = press(rita, at, "approve")
    assert told.sentence.startswith("That was a drill, and you missed it")
    assert press(rita, at, "approve").sentence == told.sentence
    assert "0 of 1 drills caught" in told.side
    after = set(Operation.objects.values_list("pk", "status"))
    assert len(after - before) == 1  # the rejection of the prune
    assert set(Observation.objects.filter(pk__in=[r.pk for r in two_values]).values_list("version", flat=True)) == {1}


def bare(card: str) -> str:
    """A card without its words: no texts, ids, tokens, digests or moments."""
    card = re.sub(r'<q class="memory.*?</q>|<mark>.*?</mark>', "<q>", card, flags=re.DOTALL)
    card = re.sub(r'(value|href)="[^"]*?(gAAAA[\w-]{60,}=*|[0-9A-Za-z]{64})[^"]*"', r'\1="…"', card)
    card = re.sub(r"obs_\d+|keep:\d+|\d+ [A-Z][a-z]{2} \d{4}, \d\d:\d\d|\d{4}-\d\d-\d\dT[^\"]*", "#", card)
    return re.sub(r"test://\S+?(?=<)", "uri", card)


def test_the_source_of_a_drill_differs_from_that_of_an_item_in_nothing_but_words_and_ids(
    mine: World, rita: Client
) -> None:
    """E.4: two pairs of equal words, one proposed by a rule and one planted, and the two pages of them: the same
    elements, attributes, fields, figures and buttons, tokens of one length, and an age that the queue could have.
    """
    words = ("Lives in Turin", "Lives in Basel")

    def pair() -> list[Observation]:
        return [observe(text, within=mine.scope, key=("cy", "lives in", text[9:])) for text in words]

    real, planted = pair(), pair()
    seen: dict[str, Any] = {"a": real[0].pk, "b": real[1].pk, "cosine": 0.9312, "verdict": "ask"}
    seen |= {"met": ["subject_predicate", "neighbour"], "failed": ["keys differ", "similarity under 0.98"]}
    why = "2 similar rows, similarity from 0.931; not automatic: keys differ, similarity under 0.98"
    given: dict[str, Any] = {"approval": Approval.NEEDS_HUMAN, "keeper": real[1], "plan": mine.plan}
    item = propose(Kind.MERGE, real, reason=why, signals={"pairs": [seen]}, **given)
    shown = look(rita, f"{FOCUS}?at={token_of(Named(item.pk), user_id=User.objects.get(username='rita').pk)}")
    drill = Drill.objects.create(scope=mine.scope, by="rita", low=planted[0], high=planted[1])
    at = look(rita)
    assert (shown.kind, at.kind) == ("merge", "merge")
    assert f"obs_{planted[0].pk}" in at.card
    assert f"obs_{real[0].pk}" in shown.card
    assert bare(at.card) == bare(shown.card)
    assert len(at.field("item")) == len(shown.field("item"))
    whole = urlsafe_b64decode(at.field("item"))
    assert not any(number.to_bytes(8, "big") in whole for number in (drill.pk, planted[0].pk))
    [since] = re.findall(r'proposed <time datetime="([^"]*)', at.card)
    assert datetime.fromisoformat(since) == max(item.created_at, *(row.created_at for row in planted))


def test_looking_never_plants_a_drill_and_one_that_is_passed_over_is_closed_by_the_next_decision(
    mine: World, rita: Client, two_values: list[Observation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """E.4: a GET writes no drill and no answer; next leaves one as it leaves an item, previous comes back to it, and a
    later answer counts it as passed.
    """
    monkeypatch.setattr(drills, "EVERY", 1)
    first = look(rita)
    review.reject(operation=mine.prune, by="rita", reason="elsewhere")
    settle()
    for address in (FOCUS, f"{FOCUS}?after={first.field('item')}"):
        look(rita, address)
    assert Drill.objects.count() == 0
    at = press(rita, look(rita), "approve|many", preset_approve="4")
    drill = Drill.objects.get()
    on = look(rita, f"{FOCUS}?after={at.field('item')}")
    back = look(rita, f"{FOCUS}?before={on.field('item')}")
    again = look(rita, f"{FOCUS}?after={back.field('item')}")
    further = look(rita, f"{FOCUS}?after={again.field('item')}")
    ids = [set(re.findall(r"obs_\d+", one.card)) for one in (at, on, back, further)]
    assert ids[0] == ids[2] == {f"obs_{drill.low_id}", f"obs_{drill.high_id}"}
    assert not ids[0] & (ids[1] | ids[3])
    assert Drill.objects.get().answer == Drill.Answer.WAITING
    assert press(rita, further, "reject", preset_reject="1").status == 200
    assert Drill.objects.get(pk=drill.pk).answer == Drill.Answer.PASSED


def test_a_drill_never_stands_where_it_would_not_fit(
    mine: World, rita: Client, two_values: list[Observation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """E.4: not among prunes, not in another scope, not of a rule it has not; and it leaves the count as it is."""
    monkeypatch.setattr(drills, "EVERY", 1)
    before = look(rita)
    other = propose(
        Kind.PRUNE, [observe("Old", within=scope("team-a/u2"))], approval=Approval.NEEDS_HUMAN, plan=mine.plan
    )
    press(rita, before, "reject", preset_reject="1")
    assert Drill.objects.count() == 1
    left = re.compile(r"data-left>(\d+)<")
    for query in ("kind=prune", "risk=high", f"scope={other.scope_id}"):
        assert look(rita, f"{FOCUS}?{query}").kind == "prune"
    assert look(rita, f"{FOCUS}?rule=x").kind == ""
    drill = look(rita, f"{FOCUS}?kind=merge&scope={mine.scope.pk}")
    assert f"obs_{two_values[0].pk}" in drill.card
    assert left.findall(drill.side) == ["2"]


def test_a_form_without_the_script_meets_a_drill_too(
    mine: World, rita: Client, two_values: list[Observation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """E.4: planted by the POST that decided, found by the page it leads to."""
    monkeypatch.setattr(drills, "EVERY", 1)
    at = look(rita)
    data = {"item": at.field("item"), "digest": at.field("digest"), "verb": "reject", "reason": "kept by rule"}
    page = rita.post(f"{FOCUS}decide/", data, follow=True).content.decode()
    assert f"obs_{two_values[0].pk}" in page
    assert Drill.objects.get().answer == Drill.Answer.WAITING


def test_the_pages_of_a_drill_tell_it_and_nobody_else_answers_it(
    mine: World, rita: Client, two_values: list[Observation]
) -> None:
    """E.4: its item page and its edit do not exist: whoever asks for one, by a POST, passes it."""
    low, high = two_values
    drill = Drill.objects.create(scope=mine.scope, by="rita", low=low, high=high)
    at = look(rita)
    assert at.kind == "merge"
    assert rita.get(f"{FOCUS}open/?item={at.field('item')}").status_code == 405
    answer = rita.post(f"{FOCUS}open/", {"item": at.field("item")}, follow=True)
    assert "That was a drill" in answer.content.decode()
    drill.refresh_from_db()
    assert drill.answer == Drill.Answer.PASSED
    prune = {"item": look(rita).field("item")}
    assert rita.post(f"{FOCUS}open/", prune)["Location"] == item_url(mine.prune)
    assert rita.post(f"{FOCUS}open/", {**prune, "verb": "edit"})["Location"] == item_url(mine.prune, "edit")


# --- how much it asks the database ------------------------------------------------------------------------------------


def test_looking_and_deciding_run_a_fixed_number_of_queries(mine: World, rita: Client) -> None:
    """STYLE 20: the same for a small queue and a larger one, with a side list of none and of ten."""

    def counted(act: Any) -> int:
        with CaptureQueriesContext(connection) as queries:
            act()
        return len(queries)

    def pairs(count: int, mark: str) -> None:
        for number in range(count):
            rows = [observe(f"{text} {mark} {number}", within=mine.scope) for text in ("Red", "red.")]
            propose(Kind.MERGE, rows, approval=Approval.NEEDS_HUMAN, plan=mine.plan)

    pairs(2, "few")
    merges = f"{FOCUS}?kind=merge"
    at = look(rita, merges)
    small = counted(lambda: look(rita, merges)), counted(lambda: press(rita, at, "approve"))
    pairs(30, "many")
    for number in range(12):
        scope(f"team-a/s{number}")
        press(rita, look(rita, merges), "reject", preset_reject="1")
    at = look(rita, merges)
    large = counted(lambda: look(rita, merges)), counted(lambda: press(rita, at, "approve"))
    assert small == large == (LOOK, DECIDE)


def test_the_address_is_where_the_register_says() -> None:
    """E.1: one address, in the navigation of who may decide."""
    assert reverse("admin:consolidation_operation_focus") == FOCUS
