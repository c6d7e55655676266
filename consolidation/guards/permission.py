"""Where 'may' is 'can': a rule of the house, as in 'Guests may use the north car park after six' (C7).

Elsewhere one of them is a possibility and the other an ability ('Patients may relapse', 'The server may restart'), and
often nobody can tell. So the whole text has to be one plain permission: who is let do something, an act that is asked
leave for, and after it nothing but the things, places and times of house rules. A gap in a list sends a pair to a
person; a word too many would merge a guess with a right, so what may as well happen to somebody is in none of them
(leave, ask, order, work; wrong, less, again, tomorrow).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from consolidation.guards.lexicon import HARMLESS, words

_WHO: Final = words(
    "guests visitors users members students pupils employees staff customers clients residents tenants passengers "
    "patients players you everyone anyone admins administrators editors reviewers operators owners managers workers "
    "volunteers teachers parents participants"
)
_WHICH: Final = words("all our registered invited hotel")  # before who
_PLACES: Final = words(
    "car park lot garage pool gym sauna kitchen library lounge hall garden terrace roof lift elevator entrance door "
    "gate office desk desks printer printers scanner projector wifi laundry shower showers locker lockers room rooms "
    "building house museum archive canteen seat seats table tables space spaces"
)
_THINGS: Final = words("book books bike bikes bicycle bicycles canoe canoes towel towels umbrella umbrellas")
# What is let be done, and to what; nothing after it for the first two is a rule as well: 'Guests may park'.
_ACTS: Final = {
    "park": frozenset[str](),
    "enter": _PLACES,
    "use": _PLACES | _THINGS,
    "borrow": _THINGS | words("laptop laptops"),
    "bring": words("dog dogs pet pets laptop laptops towel towels"),
    "take": words("photo photos picture pictures notes"),
}
_BARE: Final = frozenset({"park", "enter"})
_AROUND: Final = _PLACES | words(
    "here there upstairs downstairs north south east west main side front back upper lower ground floor their own "
    "in on at by behind near beside from to for of and or after before until till between during with this these "
    "am pm noon midnight minute hour day days week month year weekdays weekends evenings mornings nights "
    "mondays tuesdays wednesdays thursdays fridays saturdays sundays a the free charge"
)
_FOREWORDS: Final = 3  # words before 'may' at most
_LONGEST: Final = 30  # words; a longer text is more than one rule, and may be hostile
_FIGURE = re.compile(r"[0-9]{1,4}(?::[0-9]{2})?(?:st|nd|rd|th)?")


def permits(worded: Sequence[str], at: int) -> bool:
    """Whether the 'may' at this place of a text in one wording gives leave. Units may carry their mark."""
    if not 0 < at <= _FOREWORDS or len(worded) > _LONGEST:
        return False
    who, act = worded[:at], [word for word in worded[at + 1 :] if word not in HARMLESS]
    if not who or who[-1] not in _WHO or not _WHICH.issuperset(who[:-1]) or not act or act[0] not in _ACTS:
        return False
    verb, rest = act[0], act[1:]
    if not all(word in _ACTS[verb] or _is_around(word) for word in rest):
        return False
    return verb in _BARE or not _ACTS[verb].isdisjoint(rest)


def _is_around(word: str) -> bool:
    plain = word if word[0].isascii() else word[1:]
    return plain in _AROUND or _FIGURE.fullmatch(plain) is not None
