"""What holds for every address under /api/, whoever answers it.

Cookies are taken away before anything reads them, so that sessions, CSRF and logins do no work for a program and a
browser's session is worth nothing here. Answers are never stored by a cache. What Django itself refuses (an unknown
address, a strange host) is a problem like any other, and HEAD and OPTIONS work as HTTP means them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from observations.api.bearer import STANDING
from observations.api.problems import MEDIA_TYPE, Problem

PREFIX: Final = "/api/"


class ForPrograms:
    """Middleware, first in the list: it sees the request before and the answer after all others."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Other addresses pass untouched."""
        if not request.path_info.startswith(PREFIX):
            return self.get_response(request)
        asked = request.method
        request.META.pop("HTTP_COOKIE", None)
        if asked == "HEAD":
            request.method = "GET"
        response = self.get_response(request)
        if isinstance(response, HttpResponse):
            _finish(response, asked=asked or "")
        response["Cache-Control"] = "no-store"
        standing = request.META.get(STANDING)
        for name, value in (standing.headers if standing else {}).items():
            response[name] = value
        return response


def _finish(response: HttpResponse, *, asked: str) -> None:
    if "Allow" in response:
        _list_methods(response)
    if asked == "OPTIONS" and response.status_code == 405:
        response.status_code = 204
        _fill(response, b"")
        del response["Content-Type"]
    elif response.status_code >= 400 and not response["Content-Type"].startswith(MEDIA_TYPE):
        problem = Problem(response.status_code).response()
        response["Content-Type"] = problem["Content-Type"]
        _fill(response, problem.content)
    if asked == "HEAD":
        length = str(len(response.content))
        response.content = b""
        response["Content-Length"] = length


def _fill(response: HttpResponse, content: bytes) -> None:
    response.content = content
    if "Content-Length" in response:
        response["Content-Length"] = str(len(content))


def _list_methods(response: HttpResponse) -> None:
    allowed = {name.strip() for name in response["Allow"].split(",")} | {"OPTIONS"}
    if "GET" in allowed:
        allowed.add("HEAD")
    response["Allow"] = ", ".join(sorted(allowed))
