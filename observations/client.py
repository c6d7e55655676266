"""CLIENT: memory for an agent in Python, over HTTP. One file, standard library only: it may be copied as it is.

Reads never raise for a store that is slow, refuses or is gone: they return nothing ("" or an empty list) within the
deadline and log a warning, so that a broken memory is a thinner prompt and never an outage (R132, R133). Writes raise
`NotWritten`: nothing is queued behind the caller's back, and what was not answered says so, with the key under which it
may be sent again without being done twice. Every method is the call of that name: docs/api.md says what it takes.

    memory = Client(url="http://localhost:8000", token="pal_...", scope="team/project")
    memory.remember("The relay fix shipped on Monday.", stated_by="agent")
    system_prompt += memory.prompt(about="Is the relay fix out?")
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

log = logging.getLogger("palimpsest.client")

DEADLINE: Final = 1.0  # seconds for a whole call, connecting and reading included
LONGEST_ANSWER: Final = 16 * 1024 * 1024  # bytes; a longer answer is none
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")

Json = dict[str, Any]


class NotWritten(Exception):
    """A write was refused, or nobody answered it. The message is one sentence.

    `status` is HTTP's, 0 when no answer came: then the write may have been done all the same, and sending it again with
    `key` does it at most once. `problem` is the store's own account of what is wrong.
    """

    def __init__(self, sentence: str, *, status: int, key: str, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.key = key
        self.problem = dict(problem or {})


class Client:
    """The memory of one scope. Safe to share between threads; it keeps no connection."""

    def __init__(self, *, url: str, token: str, scope: str, deadline: float = DEADLINE) -> None:
        """Raises ValueError for an address that is none, and for one that would carry the token unencrypted to another
        machine.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"{url[:80]!r} is no address of a store: give one such as https://memory.example.")
        if parts.scheme == "http" and parts.hostname not in _LOCAL:
            raise ValueError(f"{parts.hostname} is another machine: use https, or the token travels in the clear.")
        if deadline <= 0:
            raise ValueError("A deadline is a number of seconds over 0.")
        self.scope = scope
        self._deadline = deadline
        self._host, self._port, self._secure = parts.hostname, parts.port, parts.scheme == "https"
        self._path = parts.path.rstrip("/") + "/api/v1"
        self._token = token

    @classmethod
    def from_environment(cls, *, scope: str = "", deadline: float = DEADLINE) -> Client:
        """The client that PALIMPSEST_URL, PALIMPSEST_TOKEN and PALIMPSEST_SCOPE describe. Raises ValueError."""
        url, token = os.environ.get("PALIMPSEST_URL", ""), os.environ.get("PALIMPSEST_TOKEN", "")
        scope = scope or os.environ.get("PALIMPSEST_SCOPE", "")
        if not (url and token and scope):
            raise ValueError("Set PALIMPSEST_URL, PALIMPSEST_TOKEN and PALIMPSEST_SCOPE.")
        return cls(url=url, token=token, scope=scope, deadline=deadline)

    def __repr__(self) -> str:
        """Never the token."""
        return f"Client({self._host}, scope={self.scope!r})"

    # --- reads: nothing on failure, and a warning -------------------------------------------------------------------

    def prompt(self, *, about: str = "", session: str = "", k: int = 10, **more: str | int | None) -> str:
        """The memory block for a prompt; "" when nothing is relevant, and on any failure.

        `more` is `goals`, `longest` (characters), `max_tokens` and `as_of` (ISO 8601, with its zone).
        """
        return str(self._read("/prompt", {"about": about, "session": session, "k": k, **more}).get("text", ""))

    def episodic_context(self, query: str, *, goals: str = "", k: int = 10, **more: str | int | None) -> str:
        """What was said and summarised before that helps with a query; "" when nothing does, and on any failure."""
        return str(self._read("/episodic-context", {"query": query, "goals": goals, "k": k, **more}).get("text", ""))

    def get_answer(self, *, answer: str = "", at: str = "") -> Json:
        """What an agent was told, by the answer's id or the last one by a moment: `rows`. {} on any failure."""
        return self._get("/answers", {"answer": answer} if answer else {"at": at})

    def search(self, query: str, *, k: int = 5, **narrowed: str | bool | None) -> list[Json]:
        """Rows for a query, best first: `id`, `text`, `trust`, `why`, `score`, `status`. [] on any failure.

        `narrowed` is `subject`, `kind`, `stated_by`, `said_from`, `said_before`, `as_of` (times as in ISO 8601, with
        their zone) and `include_history`; what is None narrows nothing.
        """
        return list(self._read("/search", {"query": query, "k": k, **narrowed}).get("hits", []))

    def known(self, query: str) -> list[Json]:
        """The two nearest rows: whether something is known already. [] on any failure."""
        return list(self._read("/known", {"query": query}).get("hits", []))

    def list_observations(self, *, cursor: str = "", limit: int = 50) -> tuple[list[Json], str]:
        """Current rows, newest first, and the cursor of the next page ("" on the last). ([], "") on any failure."""
        page = self._get("/observations", _page(cursor, limit))
        return list(page.get("observations", [])), str(page.get("next", ""))

    def get_observation(self, obs_id: str) -> Json:
        """One current row with its evidence. {} when it is not current, and on any failure."""
        return self._get(_row(obs_id), {})

    def history_of_observation(self, obs_id: str) -> list[Json]:
        """How a row came to be and what became of it, oldest first. [] on any failure."""
        return list(self._get(f"{_row(obs_id)}/history", {}).get("links", []))

    def intake_status(self) -> Json:
        """Whether turns are read in the background, and how many wait. {} on any failure."""
        return self._get("/intake", {})

    def core_list(self) -> list[Json]:
        """All core memory of the scope, by label. [] on any failure."""
        return list(self._get("/core", {}).get("core", []))

    def core_get(self, label: str) -> Json:
        """One core memory: `value`, and the `revision` to name in an edit. {} when there is none, and on any failure.

        Who edits what was read asks whether it was read: {} is not an empty text.
        """
        return self._get(_core(label), {})

    def core_revisions(self, label: str, *, cursor: str = "", limit: int = 50) -> tuple[list[Json], str]:
        """The edits of a core memory, newest first, and the cursor of the next page. ([], "") on any failure."""
        page = self._get(f"{_core(label)}/revisions", _page(cursor, limit))
        return list(page.get("revisions", [])), str(page.get("next", ""))

    # --- writes: an answer, or NotWritten ----------------------------------------------------------------------------

    def remember(self, text: str, *, key: str = "", **fields: object) -> Json:
        """Keep one claim in the caller's words: `id`, `text`, `action`, `evidence`. `fields` are those of the API."""
        return self._write("/observations", {"text": text, **fields}, key=key)

    def store_facts(
        self, facts: Sequence[Mapping[str, object]], *, about: str, key: str = "", **fields: object
    ) -> Json:
        """Keep a list of facts about one user: how many were stored, duplicates and refused, and each in order."""
        return self._write("/facts", {"about": about, "facts": list(facts), **fields}, key=key)

    def observe(self, turns: Sequence[Mapping[str, object]], *, key: str = "") -> Json:
        """Record what happened, word for word, and hear what will happen to extraction."""
        return self._write("/episodes", {"turns": list(turns)}, key=key)

    def correct(self, obs_id: str, text: str, *, key: str = "", **fields: object) -> Json:
        """Put a new claim in the place of one exact row."""
        return self._write(f"{_row(obs_id)}/correct", {"text": text, **fields}, key=key)

    def retire(self, obs_id: str, *, why: str = "other", key: str = "") -> Json:
        """Take one exact row out of the reads; nothing is lost."""
        return self._write(f"{_row(obs_id)}/retire", {"why": why}, key=key)

    def restore(self, obs_id: str, *, key: str = "") -> Json:
        """Bring one retired row back."""
        return self._write(f"{_row(obs_id)}/restore", {}, key=key)

    def take_back(self, obs_id: str, *, key: str = "") -> Json:
        """Undo that the background put a row in the place of another: `id` is archived, `back` is current again."""
        return self._write(f"{_row(obs_id)}/take-back", {}, key=key)

    def forget(self, *, key: str = "", **what: object) -> Json:
        """Ask that something be forgotten for good; a person decides. `what`: ids, subject_of or everything."""
        return self._write("/forget", what, key=key)

    def propose(self, kind: str, ids: Sequence[str], *, key: str = "", **fields: object) -> Json:
        """Put a change of rows before a person: retire, forget or supersede."""
        return self._write("/proposals", {"kind": kind, "ids": list(ids), **fields}, key=key)

    def residue_hold(self, items: Sequence[str], *, session: str = "", key: str = "") -> Json:
        """Hand in what was noticed in a run; it stands in prompts for three days and is never remembered."""
        return self._write("/residue", {"items": list(items), "session": session}, key=key)

    def core_create(self, label: str, value: str = "", *, key: str = "", **fields: object) -> Json:
        """Make a labelled text that is always in the prompt. `fields`: limit, description, read_only."""
        return self._write("/core", {"label": label, "value": value, **fields}, key=key)

    def core_append(self, label: str, text: str, *, revision: int | None = None, key: str = "") -> Json:
        """Add a line to a core memory. With the `revision` that was read, another's edit meanwhile is a conflict."""
        return self._write(f"{_core(label)}/append", {"text": text, "revision": revision}, key=key)

    def core_replace(self, label: str, old: str, new: str, *, revision: int | None = None, key: str = "") -> Json:
        """Replace the one occurrence of a string, byte for byte."""
        return self._write(f"{_core(label)}/replace", {"old": old, "new": new, "revision": revision}, key=key)

    def core_rethink(self, label: str, value: str, *, revision: int | None = None, key: str = "") -> Json:
        """Write a core memory anew."""
        return self._write(f"{_core(label)}/rethink", {"value": value, "revision": revision}, key=key)

    def core_undo(self, label: str, *, revision: int | None = None, key: str = "") -> Json:
        """Take the newest edit back; with its `revision`, also one that somebody else made."""
        return self._write(f"{_core(label)}/undo", {"revision": revision}, key=key)

    # --- calling -----------------------------------------------------------------------------------------------------

    def _read(self, path: str, body: Mapping[str, object]) -> Json:
        return self._nothing_on_failure(path, lambda: self._call("POST", path, {"scope": self.scope, **body}))

    def _get(self, path: str, parameters: Mapping[str, object]) -> Json:
        address = f"{path}?{urlencode({'scope': self.scope, **parameters})}"
        return self._nothing_on_failure(path, lambda: self._call("GET", address, None))

    def _nothing_on_failure(self, path: str, call: Callable[[], tuple[int, Json]]) -> Json:
        """An answer, or {} and a warning that holds neither memory text nor the token."""
        try:
            status, answer = call()
        except (OSError, http.client.HTTPException, ValueError) as error:
            log.warning("memory is not available (%s at %s); going on without it", type(error).__name__, _first(path))
            return {}
        if status != 200:
            log.warning("memory is not available (HTTP %d at %s); going on without it", status, _first(path))
            return {}
        if answer.get("complete") is False:
            log.warning("memory is incomplete (at %s); a part of it could not be read", _first(path))
        return answer

    def _write(self, path: str, body: Mapping[str, object], *, key: str) -> Json:
        key = key or uuid.uuid4().hex
        try:
            status, answer = self._call("POST", path, {"scope": self.scope, **body}, key=key)
        except (OSError, http.client.HTTPException, ValueError) as error:
            sentence = f"Nobody answered ({type(error).__name__}): send it again with the same key, it is done once."
            raise NotWritten(sentence, status=0, key=key) from error
        if not 200 <= status < 300:
            detail = str(answer.get("detail") or "the store gave no reason")
            raise NotWritten(f"The store refused it (HTTP {status}): {detail}", status=status, key=key, problem=answer)
        return answer

    def _call(self, method: str, path: str, body: Mapping[str, object] | None, *, key: str = "") -> tuple[int, Json]:
        """One request within the deadline, in a thread: looking a name up knows no time-out. Raises OSError and
        HTTPException, and ValueError for an answer that is no JSON object.
        """
        sent = json.dumps(body).encode() if body is not None else None
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        headers |= {"Content-Type": "application/json"} if sent is not None else {}
        headers |= {"Idempotency-Key": key} if key else {}
        exchange = _Exchange(self._connect, method, self._path + path, sent, headers, self._deadline)
        return exchange.result()

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        if self._secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)


class _Exchange:
    """One request in a thread of its own, given up at the deadline whatever it waits for."""

    def __init__(
        self,
        connect: Callable[[float], http.client.HTTPConnection],
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        deadline: float,
    ) -> None:
        self._connect = connect
        self._request = (method, path, body, dict(headers))
        self._ends = time.monotonic() + deadline
        self._answer: tuple[int, Json] | BaseException | None = None
        self._connection: http.client.HTTPConnection | None = None
        self._thread = threading.Thread(target=self._run, name="palimpsest-client", daemon=True)

    def result(self) -> tuple[int, Json]:
        """Status and answer. Raises what went wrong, TimeoutError at the deadline."""
        self._thread.start()
        self._thread.join(max(0.0, self._ends - time.monotonic()))
        answer = self._answer
        if answer is None:
            self._cut()
            raise TimeoutError("the deadline passed")
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _run(self) -> None:
        try:
            self._answer = self._exchange()
        except Exception as error:
            self._answer = error
        finally:
            if self._connection is not None:
                self._connection.close()

    def _exchange(self) -> tuple[int, Json]:
        self._connection = self._connect(max(0.01, self._ends - time.monotonic()))
        method, path, body, headers = self._request
        self._connection.request(method, path, body=body, headers=headers)
        response = self._connection.getresponse()
        content = response.read(LONGEST_ANSWER + 1)
        if len(content) > LONGEST_ANSWER:
            raise ValueError("the answer is too long")
        answer = json.loads(content) if content else {}
        if not isinstance(answer, dict):
            raise ValueError("the answer is no JSON object")
        return response.status, answer

    def _cut(self) -> None:
        """Take the socket from under the thread, so that it ends soon."""
        connection = self._connection
        held = connection.sock if connection is not None else None
        if held is not None:
            try:
                held.shutdown(socket.SHUT_RDWR)
            except OSError:
                log.debug("the connection was closed already")


def _row(obs_id: str) -> str:
    return f"/observations/{quote(obs_id, safe='')}"


def _core(label: str) -> str:
    return f"/core/{quote(label, safe='')}"


def _page(cursor: str, limit: int) -> dict[str, object]:
    return {"limit": limit, **({"cursor": cursor} if cursor else {})}


def _first(path: str) -> str:
    """The name of a call, without the ids and labels behind it."""
    return "/" + path.lstrip("/").split("/")[0].split("?")[0]
