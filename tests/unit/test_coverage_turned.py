"""A summary that keeps every word and turns the claim: names that changed places, denials dropped or added (C9)."""

from __future__ import annotations

import time

import pytest

from consolidation.compact.specifics import read
from consolidation.compact.turning import Turn, turns
from consolidation.operations import Approval

from .compacting import covered, group, proposed

# (what a source says, what a summary makes of it): the same names around the same deed, the other way round.
SWAPPED = [
    ("Priya beat Marco in the final.", "In the end Marco beat Priya."),
    ("Priya beat Marco at chess last Sunday.", "On Sunday there was chess, where Marco beat Priya."),
    ("Yesterday Ann lent Bob the blue bike.", "A bike was mentioned: Bob lent Ann the blue one."),
    ("Omar trained Kim on the new press.", "Kim trained Omar on a press."),
    ("Hana hired Viktor for the night shift.", "For the night shift Viktor hired Hana."),
    ("Nora owes Luis forty euros.", "Luis owes Nora forty euros."),
    ("Grace taught Leo how to solder.", "Soldering came up, since Leo taught Grace."),
    ("Piotr rescued Zoe from the ice.", "From the ice, Zoe rescued Piotr."),
    ("Carla phoned Ben about the lease.", "Ben phoned Carla to speak of a lease."),
    ("Ivan reported Sven to the guard.", "To the guard Sven reported Ivan."),
    ("Jonas sold Mira his old van.", "The old van changed hands: Mira sold Jonas the van."),
    ("Ella invited Noah to the lake.", "Noah invited Ella to a lake."),
    ("Tom replaced Rita as treasurer.", "As treasurer Rita replaced Tom."),
    ("Paul blamed Dora for the leak.", "For the leak Dora blamed Paul."),
    ("Dr. Okafor referred Priya to the clinic.", "Priya referred Dr. Okafor to a clinic."),
    ("Maria forgave Stefan after the quarrel.", "After a quarrel Stefan forgave Maria."),
    ("Lena outran Hugo on the hill.", "On the hill it was Hugo who outran Lena."),
    ("Acme bought Globex for nine million.", "For nine million Globex bought Acme."),
    ("Jana painted Felix in oils.", "Felix painted Jana, in oils."),
    ("Oskar is Petra's landlord.", "Petra is Oskar's landlord."),
    ("Sofia's team beat Emil's team.", "In the match Emil's team beat Sofia's."),
    ("Greta pushed Anton into the pool.", "Anton pushed Greta, who fell into the pool."),
    ("Kim asked Omar for the keys.", "Omar asked Kim for his keys."),
    ("Ida followed Max to Vienna.", "To Vienna Max followed Ida."),
    ("The train goes from Oslo to Bergen.", "Somebody takes a train from Bergen to Oslo."),
    ("Marco was beaten by Priya.", "Marco beat Priya."),
    ("Ben was hired by Carla in May.", "In May Ben hired Carla."),
    ("Ann and Bob visited Cora.", "Cora visited Ann and Bob."),
    ("Priya fixed the pump and Marco paid the bill.", "Marco fixed the pump and Priya paid the bill."),
    ("Viktor recommended Hana to the board.", "Hana recommended Viktor, the board heard."),
]
# Denials that a rewording drops.
DROPPED = [
    ("The release did not ship.", "The release shipped."),
    ("In the end the release did not ship because of a flaky test.", "A flaky test came up; the release shipped."),
    ("Marco never signed the lease for the flat.", "He signed the lease for a flat, Marco."),
    ("We have not deployed the billing service.", "The billing service was deployed by the team."),
    ("The nightly backup isn't encrypted.", "They keep a backup, nightly and encrypted."),
    ("Our landlord won't renew the contract next year.", "Next year the landlord renews the contract."),
    ("The tests didn't pass on the old runner.", "On an old runner, tests passed."),
    ("Priya has not paid the June invoice.", "The June invoice was paid by Priya."),
    ("Kim doesn't eat peanuts.", "Peanuts are something Kim eats."),
    ("The valve was not replaced during maintenance.", "Maintenance replaced the valve."),
    ("Nobody reviewed the migration script.", "The migration script was reviewed."),
    ("The bridge is not open to trucks.", "Trucks find the bridge open."),
    ("Ann cannot attend the workshop in Graz.", "At Graz, Ann attends the workshop."),
    ("The vendor hasn't confirmed the delivery date.", "A delivery date is confirmed by the vendor."),
    ("Leo was not invited to the board meeting.", "The board meeting had Leo invited."),
    ("The alarm never rang that night.", "That night an alarm rang."),
    ("The committee did not approve the budget.", "The budget is approved by the committee."),
    ("Hana isn't allergic to penicillin.", "To penicillin Hana is allergic."),
    ("The importer does not keep duplicate rows.", "Duplicate rows are what the importer keeps."),
    ("The patch was never merged upstream.", "Upstream the patch got merged."),
    ("The boiler doesn't leak any more.", "There is a boiler and it leaks."),
    ("They aren't selling the orchard.", "The orchard is what they are selling."),
    ("Omar didn't restart the queue worker.", "The queue worker was restarted by Omar."),
    ("The parcel has not arrived in Oslo.", "Oslo saw the parcel arrive."),
    ("I did not accept the offer from Siemens.", "Siemens made an offer, and it was accepted."),
    ("No customer complained about the price.", "There was a customer who complained of the price."),
]
# Denials that no source has: the pairs above the other way round, and some more.
ADDED = [
    ("The release shipped on time.", "On time the release did not ship."),
    ("Marco signed the lease for the flat.", "The lease for a flat was never signed by Marco."),
    ("We deployed the billing service.", "The team has not deployed the billing service."),
    ("The nightly backup is encrypted.", "Their backup, nightly, is not encrypted."),
    ("The landlord will renew the contract.", "The contract is one that the landlord won't renew."),
    ("The tests passed on the old runner.", "On the old runner no tests passed."),
    ("Priya has paid the June invoice.", "June's invoice was not paid by Priya, an open invoice."),
    ("Kim eats peanuts.", "Peanuts: Kim doesn't eat peanuts."),
    ("The valve was replaced during maintenance.", "Maintenance has not replaced the valve."),
    ("Ann attended the workshop in Graz.", "The Graz workshop was not attended by Ann."),
    ("The vendor confirmed the delivery date.", "A delivery date isn't confirmed by the vendor."),
    ("The committee approved the budget.", "The budget is not approved by the committee."),
    ("Hana is allergic to penicillin.", "To penicillin Hana is not allergic."),
    ("The patch was merged upstream.", "Upstream has never merged the patch."),
    ("Omar restarted the queue worker.", "The queue worker was not restarted by Omar."),
    ("The parcel arrived in Oslo.", "In Oslo no parcel arrived."),
    ("They are selling the orchard.", "The orchard isn't what they sell."),
]
# What a faithful summary may do: none of these is turned.
FAITHFUL = [
    ("Priya beat Marco in the final.", "In the final Marco was beaten by Priya."),
    ("Marco was beaten by Priya.", "Priya beat Marco."),
    ("Ann met Bob in Graz.", "Bob met Ann in Graz."),
    ("Ann talked with Bob about the lease.", "Bob talked with Ann about the lease."),
    ("Ann is Bob's sister.", "Bob is Ann's sister, they said."),
    ("Priya beat Marco. Later Marco beat Priya.", "Marco beat Priya after Priya beat Marco."),
    ("Ann thanked Bob. Bob called Ann.", "Bob called Ann, and Ann thanked Bob."),
    ("Ann read the letter and called Bob.", "Ann called Bob once Ann read the letter."),
    ("Could Ann lend Bob the bike?", "Bob lent Ann his bike."),
    ("Thank you, Bob, said Ann.", "Ann thanked Bob."),
    ("The bus goes from Oslo to Bergen and back from Bergen to Oslo.", "A bus goes from Bergen to Oslo."),
    ("The release did not ship.", "The release failed to ship."),
    ("The release did not ship.", "The release has yet to ship."),
    ("The release did not ship on Monday. It shipped on Tuesday.", "The release shipped on Tuesday."),
    ("The release did not ship.", "The release was postponed and not shipped."),
    ("Ann can't wait to see the release ship.", "Ann waits to see the release ship."),
    ("Not only did the release ship, the docs did too.", "The release shipped with the docs."),
    ("Why don't we ship the release today?", "They ship the release today."),
    ("The tests failed.", "The tests did not pass."),
    ("Ann is unhappy with the flat.", "Ann is not happy with the flat."),
    ("Ann doesn't mind the noise of the trains.", "Ann minds neither noise nor trains."),
    ("There's nothing like the energy of a crowd.", "They spoke of the energy of a crowd."),
    ("I haven't had much time to read this.", "This is for Tim to read, as Tim wanted."),
    ("The parcel might not arrive in Oslo.", "The parcel may arrive in Oslo or not."),
    ("Kim does not eat peanuts but eats almonds.", "Kim eats almonds and no peanuts."),
    ("No tests failed on the old runner.", "On the old runner the tests passed."),
    ("Hana didn't forget the keys.", "Hana remembered the keys."),
    ("The bridge is not open to trucks. The tunnel is open to trucks.", "The tunnel is open to trucks."),
]


def turned(source: str, summary: str, **more: object) -> list[Turn]:
    """What the check says was turned round."""
    return [found.turn for found in covered(source, summary, **more).turned]


@pytest.mark.parametrize(("source", "summary"), SWAPPED)
def test_names_that_changed_places_around_one_deed_are_seen(source: str, summary: str) -> None:
    """C9: every word is kept, and the claim is another."""
    assert Turn.ORDER in turned(source, summary)


@pytest.mark.parametrize(("source", "summary"), DROPPED)
def test_a_dropped_denial_is_seen_outside_near_copies(source: str, summary: str) -> None:
    """C9: 'did not ship' is not 'shipped'."""
    assert Turn.DROPPED in turned(source, summary)


@pytest.mark.parametrize(("source", "summary"), ADDED)
def test_an_added_denial_is_seen_outside_near_copies(source: str, summary: str) -> None:
    assert Turn.ADDED in turned(source, summary)


@pytest.mark.parametrize(("source", "summary"), FAITHFUL)
def test_a_free_rewording_turns_nothing(source: str, summary: str) -> None:
    """The false alarms: none of these goes to a person for this."""
    assert turned(source, summary) == []


@pytest.mark.parametrize(("source", "summary"), [*SWAPPED, *DROPPED, *ADDED])
def test_a_text_turns_nothing_of_itself(source: str, summary: str) -> None:
    """The control: it is the summary that is caught, not the words."""
    assert turned(source, source) == []
    assert turned(summary, summary) == []
    assert turned(f"{source} {summary}", summary) == []


def test_there_are_enough_of_each() -> None:
    assert len(SWAPPED) >= 25
    assert len(DROPPED) + len(ADDED) >= 40
    assert len(FAITHFUL) >= 25


# --- whose turn it is ------------------------------------------------------------------------------------------------


def test_a_turns_i_is_its_speaker_and_its_you_the_other_one() -> None:
    """'I beat you' of Priya is 'Priya beat Marco'; what both say of it decides nothing."""
    said = ["I beat you fair and square.", "Well, congratulations."]
    of = ["Priya", "Marco"]
    assert [found.turn for found in covered(said, "Marco beat Priya fair and square.", speakers=of).turned] == [
        Turn.ORDER
    ]
    assert covered(said, "Priya beat Marco fair and square.", speakers=of).turned == ()
    assert covered(said, "Marco beat Priya fair and square.").turned == (), "nobody can tell whose turn it is"


def test_an_order_that_some_episode_has_is_no_objection() -> None:
    both = ["Priya beat Marco on Monday.", "Marco beat Priya on Tuesday."]
    assert covered(both, "Marco beat Priya on Tuesday.").turned == ()


def test_places_are_those_of_the_words() -> None:
    source, summary = "On Monday the release did not ship.", "The team says the release shipped."
    [found] = covered(source, summary).turned
    assert (source[found.start : found.end], summary[found.at : found.to]) == ("not ship", "shipped")
    [found] = covered(SWAPPED[0][0], SWAPPED[0][1]).turned
    assert SWAPPED[0][0][found.start : found.end] == "Priya beat Marco"


# --- what comes of it ------------------------------------------------------------------------------------------------


def test_a_turned_summary_waits_for_a_person_with_the_words_marked() -> None:
    """C9: the reason names what was turned and the signals where it stands; the words stay in the episodes."""
    episodes = ("Priya beat Marco in the final of the club.", "The new release did not ship to customers.")
    faithful = proposed(group(*episodes), "In the club's final Priya beat Marco.", "The new release did not ship.")
    found = proposed(
        group(*episodes), "In the club's final Marco beat Priya.", "To customers the new release has shipped."
    )
    assert (faithful.approval, found.approval) == (Approval.AUTO, Approval.NEEDS_HUMAN)
    assert "1 place with names in another order than in an episode; 1 place with an episode's denial dropped" in (
        found.reason
    )
    marked = [place for place in dict(found.signals)["lost_at"] if place["how"] == "turned"]  # type: ignore[union-attr,index,call-overload]
    words = [episodes[place["episode"] - 1][place["start"] : place["end"]] for place in marked]  # type: ignore[index,call-overload,operator]
    assert words == ["Priya beat Marco", "not ship"]
    assert dict(found.signals)["turned"] == {"names in another order": 1, "denial dropped": 1}


@pytest.mark.parametrize(
    "text",
    [
        "The release did not ship. " * 2_000,
        "Ann beat Bob. Bob beat Ann. " * 1_500,
        "Ann beat Bob and " * 4_000,
        "Ann, " * 5_000 + "beat " + "Bob, " * 5_000,
        "not never no ship " * 5_000,
    ],
)
def test_a_hostile_text_is_compared_in_time(text: str) -> None:
    """Work that grows with the square of a text's length would stop a planner for hours."""
    started = time.process_time()
    found = turns([read(text)], read("The release shipped, and Bob beat Ann for a ship. " * 100))
    assert time.process_time() - started < 3
    assert all(0 <= each.start < each.end <= len(text) for each in found.found)


def test_what_costs_too_much_to_compare_is_left_to_a_person() -> None:
    said, told = "The release did not ship to Oslo. " * 500, "The release shipped to Oslo. " * 500
    assert not turns([read(said)], read(told)).complete
    assert covered([said], told).unread == (0,)
