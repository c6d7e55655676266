"""A Completer that answers from a script: the production protocol without a network."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from observations.llm import ModelFailed, Outcome, Reply, Request, Unusable, Usage

# Text as it would come, a JSON value that becomes text, a failure that is raised, or a function of the request.
Said: TypeAlias = "str | Mapping[str, Any] | list[Any] | ModelFailed | Callable[[Request], Any]"


class ScriptedCompleter:
    """Answers every request from `script`: one answer or function for all, or one per purpose under `by_purpose`.

    A purpose without an answer is an error of the test. `requests` is what was asked, in order; `batches` the sizes of
    the calls of complete_all.
    """

    def __init__(
        self,
        script: Said | None = None,
        *,
        by_purpose: Mapping[str, Said] | None = None,
        model: str = "scripted",
    ) -> None:
        self.model = model
        self.requests: list[Request] = []
        self.batches: list[int] = []
        self._script = script
        self._by_purpose = dict(by_purpose or {})

    def complete(self, request: Request) -> Reply:
        """As the protocol says: a Reply, or a ModelFailed is raised."""
        self.requests.append(request)
        text = self._text(request)
        return Reply(text=text, model=self.model, usage=Usage(input_tokens=len(request.text) // 4, output_tokens=10))

    def complete_all(self, requests: Sequence[Request]) -> list[Outcome]:
        """As the protocol says: in order, each for itself."""
        self.batches.append(len(requests))
        return [self._outcome(request) for request in requests]

    def complete_each(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """As the protocol says: each when it is taken."""
        return (self._outcome(request) for request in requests)

    def asked_for(self, purpose: str) -> list[Request]:
        """The requests of one purpose, in order."""
        return [request for request in self.requests if request.purpose == purpose]

    def _outcome(self, request: Request) -> Outcome:
        try:
            return self.complete(request)
        except ModelFailed as failed:
            return failed

    def _text(self, request: Request) -> str:
        answer = self._by_purpose.get(request.purpose, self._script)
        assert answer is not None, f"the script has no answer for {request.purpose!r}"
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, ModelFailed):
            raise type(answer)(*answer.args)
        if isinstance(answer, str):
            return self._said(answer)
        return json.dumps(answer)

    @staticmethod
    def _said(text: str) -> str:
        """As the adapter does it: an answer without text is unusable."""
        if not text.strip():
            raise Unusable("The model's answer is empty; run this again later.")
        return text
