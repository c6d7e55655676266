"""The Completer over the provider's SDK: every call is checked against the budget before it and recorded after it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from observations.llm import provider
from observations.llm.answers import Asked, read
from observations.llm.asking import Answer, Denied, ModelFailed, Outcome, Reply, Request, Unreachable
from observations.llm.batches import LARGEST, NoBatches, Waiting, run
from observations.llm.calls import Budget, Call, Cost, Recorder
from observations.llm.pricing import Price, family
from observations.normalise import clean

log = logging.getLogger(__name__)

BATCH_FROM: Final = 20  # fewer are asked one after the other
GIVE_UP_AFTER: Final = 3  # failures in a row that the endpoint is to blame for
CHARACTERS_PER_TOKEN: Final = 4  # of English, at most: newer models cut it smaller, down to two and a half


@dataclass(frozen=True, kw_only=True)
class AnthropicCompleter:
    """Asks one model. Implements `Completer`. Not to be shared between processes; threads may share it."""

    model: str
    api_key: str = field(repr=False)
    base_url: str | None  # None: the provider's own
    timeout_seconds: float  # of one attempt
    max_retries: int
    recorder: Recorder = field(repr=False)  # told of every call; its failures are logged and change nothing
    budget: Budget = field(repr=False)
    scope_id: int | None = None  # of requests that name none
    price: Price | None = None  # None: as the model's family costs
    batch_seconds: float = 400.0  # a batch that takes longer is stopped; a task has 540
    first_pause: float = 2.0  # before a batch is looked at again; the pauses grow

    def complete(self, request: Request) -> Reply:
        """Answer one request. Raises ModelFailed; and the budget's own error when it is called in a transaction."""
        outcome = self._ask(self._of_scope(request))
        if isinstance(outcome, ModelFailed):
            raise outcome
        return outcome

    def complete_all(self, requests: Sequence[Request]) -> list[Outcome]:
        """Answer many requests, in order; BATCH_FROM and more as batches, at half the price, minutes later."""
        asked = [self._of_scope(request) for request in requests]
        if len(asked) < BATCH_FROM:
            return list(self._one_by_one(asked))
        outcomes: list[Outcome] = []
        while len(outcomes) < len(asked):
            part = asked[len(outcomes) : len(outcomes) + LARGEST]
            try:
                outcomes += self._in_a_batch(part)
            except NoBatches:
                log.warning("the model's endpoint has no batches: %d questions are asked one by one", len(part))
                outcomes += self._one_by_one(asked[len(outcomes) :])
        return outcomes

    def complete_each(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """Answer each when it is taken, in order; never as a batch."""
        return self._one_by_one([self._of_scope(request) for request in requests])

    # --- one -----------------------------------------------------------------------------------------------------

    def _ask(self, request: Request) -> Outcome:
        cost = Cost(request.scope_id, self._price.at_most(request))
        try:
            self.budget.check(cost=cost)
        except ModelFailed as refusal:
            return self._record(request, Asked(refusal))
        started = time.monotonic()
        try:
            asked = read(self._endpoint.ask(self._params(request)), model=self.model)
        except Exception as error:
            if provider.interrupts(error):
                self._record(request, Asked(Unreachable("The task had to end."), unseen=1))
                raise
            unseen = provider.unseen(error, attempts=1 + self.max_retries)
            asked = Asked(provider.failure(error, model=self.model), unseen=unseen)
        return self._record(request, asked, seconds=time.monotonic() - started)

    def _one_by_one(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """Each for itself, until the endpoint has failed GIVE_UP_AFTER times in a row: then none is sent any more."""
        failed: list[Unreachable | Denied] = []
        for request in requests:
            if len(failed) < GIVE_UP_AFTER:
                outcome = self._ask(request)
            else:
                outcome = self._record(request, Asked(type(failed[-1])(str(failed[-1]))))
            if isinstance(outcome, Unreachable | Denied):
                failed.append(outcome)
            else:
                failed.clear()
            yield outcome

    # --- many ----------------------------------------------------------------------------------------------------

    def _in_a_batch(self, requests: Sequence[Request]) -> list[Outcome]:
        """What the budget allows goes into one batch; the rest fails for the budget. Raises NoBatches.

        What is put aside stays so when the task has to end meanwhile: the batch may still be billed.
        """
        costs = [Cost(request.scope_id, self._price.at_most(request, batch=True)) for request in requests]
        started = time.monotonic()
        hold = self.budget.hold(costs=costs)
        try:
            answers = iter(
                self._run([request for request, no in zip(requests, hold.refused, strict=True) if no is None])
            )
        except NoBatches:
            hold.release()
            raise
        seconds = time.monotonic() - started
        outcomes = [
            self._record(request, next(answers), seconds=seconds, batch=True)
            if no is None
            else self._record(request, Asked(no))
            for request, no in zip(requests, hold.refused, strict=True)
        ]
        hold.release()  # after the records: what is spent is never counted less than it is
        return outcomes

    def _run(self, requests: Sequence[Request]) -> list[Asked]:
        if not requests:
            return []
        waiting = Waiting(seconds=self.batch_seconds, first_pause=self.first_pause)
        try:
            questions = [self._params(request) for request in requests]
        except Exception as error:
            return [Asked(provider.failure(error, model=self.model)) for _ in requests]
        return run(self._endpoint, questions, model=self.model, waiting=waiting)

    # --- parts ---------------------------------------------------------------------------------------------------

    def _of_scope(self, request: Request) -> Request:
        return request if request.scope_id is not None else replace(request, scope_id=self.scope_id)

    @cached_property
    def _price(self) -> Price:
        return self.price or family(self.model).price

    @cached_property
    def _endpoint(self) -> provider.Endpoint:
        return provider.Endpoint(
            api_key=self.api_key,
            base_url=self.base_url,
            timeout_seconds=self.timeout_seconds,
            max_retries=self.max_retries,
        )

    def _params(self, request: Request) -> dict[str, Any]:
        """The parameters of a message. No sampler's: the model does not take them."""
        known = family(self.model)
        params: dict[str, Any] = {
            "model": self.model,
            "max_tokens": request.max_tokens,
            "system": [_system(clean(request.system)[0], cacheable_tokens=known.cacheable_tokens)],
            "messages": [{"role": "user", "content": clean(request.text)[0]}],
            "output_config": {
                "format": {"type": "json_schema", "schema": self._endpoint.schema(request.schema)},
            },
        }
        if known.thinks_unless_told:  # its thoughts would be taken from max_tokens, and paid for
            params["thinking"] = {"type": "disabled"}
        return params

    def _record(self, request: Request, asked: Asked, *, seconds: float = 0.0, batch: bool = False) -> Outcome:
        """Tell the recorder; what it raises is logged, and the answer is kept."""
        call = Call(
            purpose=request.purpose,
            model=self.model,
            prompt_version=request.prompt_version,
            scope_id=request.scope_id,
            answer=asked.outcome.answer if isinstance(asked.outcome, ModelFailed) else Answer.OK,
            usage=asked.usage,
            cost_microdollars=self._price.cost(asked.usage, batch=batch)
            + asked.unseen * self._price.at_most(request, batch=batch),
            latency_ms=round(seconds * 1000),
            batch=batch,
            question=request.text,
            reply=asked.reply,
        )
        try:
            self.recorder(call)
        except Exception as error:
            log.error(
                "a model call of %d microdollars is not recorded: %s", call.cost_microdollars, type(error).__name__
            )
        return asked.outcome


def _system(text: str, *, cacheable_tokens: int) -> dict[str, Any]:
    """What every question of one kind begins with, marked for the cache only where it is surely long enough for it.

    The prompts of this version have 1,300 to 1,600 characters, which no model is sure to cache, so none is marked. A
    longer one pays from its second question within five minutes on: reading costs a tenth, writing a quarter more.
    """
    block: dict[str, Any] = {"type": "text", "text": text}
    if len(text) >= cacheable_tokens * CHARACTERS_PER_TOKEN:
        block["cache_control"] = {"type": "ephemeral"}
    return block
