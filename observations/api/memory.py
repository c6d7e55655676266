"""The addresses of episodes and observations, of requests to people, and of reads."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Router

from observations.api.answering import answer, body_of
from observations.calls import CALLS, schemas, shapes

router = Router()

CorrectBody = body_of(schemas.Correct, but="id")
RetireBody = body_of(schemas.Retire, but="id")
RestoreBody = body_of(schemas.Restore, but="id")
TakeBackBody = body_of(schemas.TakeBack, but="id")
ScopeOnly = body_of(schemas.OneObservation, but="id")
ObservationId = Annotated[shapes.ObservationId, Path(description="Such as obs_12.")]


def says(name: str, *, tag: str) -> dict[str, Any]:
    """How an address is described: by the call it makes."""
    call = CALLS[name]
    head, _, rest = call.says.partition(". ")
    about = f"{rest} " if rest else ""
    return {
        "operation_id": name,
        "summary": head.rstrip("."),
        "description": f"{about}Needs a token that may {call.right}.",
        "response": call.gives,
        "tags": [tag],
    }


@router.post("/episodes", **says("observe", tag="write"))
def observe(request: HttpRequest, asked: schemas.Observe) -> HttpResponse:
    """Turns, word for word."""
    return answer(request, "observe", asked)


@router.post("/observations", **says("remember", tag="write"))
def remember(request: HttpRequest, asked: schemas.Remember) -> HttpResponse:
    """One claim."""
    return answer(request, "remember", asked)


@router.post("/facts", **says("store_facts", tag="write"))
def store_facts(request: HttpRequest, asked: schemas.StoreFacts) -> HttpResponse:
    """Up to 500 facts."""
    return answer(request, "store_facts", asked)


@router.post("/observations/{obs_id}/correct", **says("correct", tag="write"))
def correct(request: HttpRequest, obs_id: ObservationId, asked: CorrectBody) -> HttpResponse:  # type: ignore[valid-type]
    """A new claim in the place of one row."""
    return answer(request, "correct", asked, id=obs_id)


@router.post("/observations/{obs_id}/retire", **says("retire", tag="write"))
def retire(request: HttpRequest, obs_id: ObservationId, asked: RetireBody) -> HttpResponse:  # type: ignore[valid-type]
    """Out of the reads."""
    return answer(request, "retire", asked, id=obs_id)


@router.post("/observations/{obs_id}/restore", **says("restore", tag="write"))
def restore(request: HttpRequest, obs_id: ObservationId, asked: RestoreBody) -> HttpResponse:  # type: ignore[valid-type]
    """Back into the reads."""
    return answer(request, "restore", asked, id=obs_id)


@router.post("/observations/{obs_id}/take-back", **says("take_back", tag="write"))
def take_back(request: HttpRequest, obs_id: ObservationId, asked: TakeBackBody) -> HttpResponse:  # type: ignore[valid-type]
    """What the background replaced, current again."""
    return answer(request, "take_back", asked, id=obs_id)


@router.post("/forget", **says("forget", tag="ask a person"))
def forget(request: HttpRequest, asked: schemas.Forget) -> HttpResponse:
    """A request to forget."""
    return answer(request, "forget", asked)


@router.post("/proposals", **says("propose", tag="ask a person"))
def propose(request: HttpRequest, asked: schemas.Propose) -> HttpResponse:
    """A change for a person to decide."""
    return answer(request, "propose", asked)


@router.post("/residue", **says("residue_hold", tag="write"))
def residue_hold(request: HttpRequest, asked: schemas.HoldResidue) -> HttpResponse:
    """What was noticed in a run."""
    return answer(request, "residue_hold", asked)


@router.get("/observations", **says("list_observations", tag="read"))
def list_observations(request: HttpRequest, asked: Query[schemas.ListObservations]) -> HttpResponse:
    """One page."""
    return answer(request, "list_observations", asked)


@router.get("/observations/{obs_id}", **says("get_observation", tag="read"))
def get_observation(request: HttpRequest, obs_id: ObservationId, asked: Query[ScopeOnly]) -> HttpResponse:  # type: ignore[valid-type]
    """One row."""
    return answer(request, "get_observation", asked, id=obs_id)


@router.get("/observations/{obs_id}/history", **says("history_of_observation", tag="read"))
def history_of_observation(request: HttpRequest, obs_id: ObservationId, asked: Query[ScopeOnly]) -> HttpResponse:  # type: ignore[valid-type]
    """One row's past."""
    return answer(request, "history_of_observation", asked, id=obs_id)


@router.post("/search", **says("search", tag="read"))
def search(request: HttpRequest, asked: schemas.Search) -> HttpResponse:
    """POST, because an address would hold the words of the query."""
    return answer(request, "search", asked)


@router.post("/known", **says("known", tag="read"))
def known(request: HttpRequest, asked: schemas.Known) -> HttpResponse:
    """The two nearest rows."""
    return answer(request, "known", asked)


@router.post("/prompt", **says("prompt", tag="read"))
def prompt(request: HttpRequest, asked: schemas.PromptFor) -> HttpResponse:
    """The block for a prompt."""
    return answer(request, "prompt", asked)


@router.post("/episodic-context", **says("episodic_context", tag="read"))
def episodic_context(request: HttpRequest, asked: schemas.EpisodicContext) -> HttpResponse:
    """What was said before."""
    return answer(request, "episodic_context", asked)


@router.get("/answers", **says("get_answer", tag="read"))
def get_answer(request: HttpRequest, asked: Query[schemas.GetAnswer]) -> HttpResponse:
    """What an agent was told."""
    return answer(request, "get_answer", asked)


@router.get("/intake", **says("intake_status", tag="read"))
def intake_status(request: HttpRequest, asked: Query[schemas.IntakeStatus]) -> HttpResponse:
    """Whether turns are read."""
    return answer(request, "intake_status", asked)
