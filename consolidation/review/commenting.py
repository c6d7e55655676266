"""Remarks on an operation: written once, shown with it, decided by nothing."""

from __future__ import annotations

from typing import Final

from consolidation.models import Comment, Operation
from consolidation.review.deciding import Refused
from observations.normalise import clean

COMMENT_LIMIT: Final = 2_000  # characters
_UNREADABLE: Final = "\ufffd"  # what `clean` puts in the place of what a database cannot hold


def comment(*, operation: Operation, by: str, text: str) -> Comment:
    """Leave a remark, cleaned of what a database cannot hold. Raises Refused for none and for one that is too long. One
    query.
    """
    words = clean(text.replace("\r\n", "\n"))[0].strip()
    if not words.replace(_UNREADABLE, "").strip():
        raise Refused("A comment needs words: write what the next reader should know.")
    if len(words) > COMMENT_LIMIT:
        raise Refused(f"The comment has {len(words):,} characters: {COMMENT_LIMIT:,} are the most that fit.")
    return Comment.objects.create(scope_id=operation.scope_id, operation=operation, by=by[:150], text=words)


def comments_on(*, operation: Operation) -> list[Comment]:
    """The remarks on an operation, the oldest first; one whose words left with a record is there without them. One
    query.
    """
    return list(Comment.objects.filter(scope_id=operation.scope_id, operation=operation).order_by("pk"))
