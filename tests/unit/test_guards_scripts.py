"""Other languages and scripts: numbers, identifiers and order are looked at; what else differs goes to a person.

No two texts look alike because nothing of them is left after tokenising (DESIGN 3).
"""

from __future__ import annotations

import pytest

from consolidation.guards import objections
from consolidation.merge import Verdict
from observations.normalise import normalised
from tests.unit.verdicts import verdict_of

# Opposite claims, one script each: approved and not approved, likes and dislikes, came and did not come.
OPPOSITES = [
    ("已批准", "未批准"),
    ("我喜欢茶", "我不喜欢茶"),
    ("他是医生", "他不是医生"),
    ("不，可以", "不可以"),
    ("猫追狗", "狗追猫"),
    ("会议在三点", "会议在五点"),
    ("会议3点开始", "会议5点开始"),
    ("私は東京に住んでいます", "私は大阪に住んでいます"),
    ("私はお茶が好きです", "私はお茶が好きではありません"),
    ("田中が鈴木に勝った", "鈴木が田中に勝った"),
    ("أنا أحب الشاي", "أنا لا أحب الشاي"),
    ("وافق المدير", "رفض المدير"),
    ("الاجتماع الساعة ٣", "الاجتماع الساعة ٥"),
    ("मुझे चाय पसंद है", "मुझे चाय पसंद नहीं है"),
    ("बैठक ३ बजे है", "बैठक ५ बजे है"),
    ("ฉันชอบชา", "ฉันไม่ชอบชา"),
    ("ประชุมเวลา ๓ โมง", "ประชุมเวลา ๕ โมง"),
    ("Я люблю чай", "Я не люблю чай"),
    ("Анна обыграла Бориса", "Бориса обыграла Анна"),
    ("Встреча в 3 часа", "Встреча в 5 часов"),
    ("Μου αρέσει το τσάι", "Δεν μου αρέσει το τσάι"),
    ("Η Άννα νίκησε τον Νίκο", "Ο Νίκος νίκησε την Άννα"),
    ("나는 차를 좋아한다", "나는 차를 좋아하지 않는다"),
    ("철수가 영희를 이겼다", "영희가 철수를 이겼다"),
    ("אני אוהב תה", "אני לא אוהב תה"),
    ("😀", "😡"),
    ("👍", "👎"),
    ("👨‍👩‍👧", "👩‍👩‍👧"),
    ("😀😀", "😀"),
    ("✅", "❌"),
    ("❤️", "💔"),
    ("?!", "!?"),
    ("…", "。"),
    ("Ich mag Tee", "Ich mag keinen Tee"),
    ("Elle est dans la ville", "Elle n'est pas dans la ville"),
    ("No como carne", "Como carne"),
    ("Ayer vio a Pedro", "Ayer vio Pedro"),
    ("Er trinkt in Maßen", "Er trinkt in Massen"),
    ("Казнить, нельзя помиловать", "Казнить нельзя, помиловать"),
    ("Er liebt sie und mich", "Er liebt Sie und mich"),
]


@pytest.mark.parametrize(("a", "b"), OPPOSITES)
def test_opposite_claims_of_any_script_are_never_the_same(a: str, b: str) -> None:
    """Everything that is not identical goes to a person, at any similarity, with and without a key."""
    assert objections(a, b)
    for keyed in (False, True):
        assert verdict_of(a, b, cosine=0.999, keyed=keyed) in {Verdict.ASK, Verdict.POSSIBLE}


def test_no_two_texts_of_different_scripts_or_emoji_have_one_normalised_text() -> None:
    """Not by being empty, nor in any other way."""
    texts = sorted({text for pair in OPPOSITES[:-2] for text in pair} - {"Ayer vio a Pedro"})
    assert len({normalised(text) for text in texts}) == len(texts)
    assert all(normalised(text) for text in texts)


IDENTICAL = [
    ("已批准。", "已批准"),
    ("私は東京に住んでいます。", "私は東京に住んでいます"),
    ("أنا أحب الشاي.", "أنا أحب الشاي"),
    ("मुझे चाय पसंद है।", "मुझे चाय पसंद है"),
    ("ฉันชอบชา", " ฉันชอบชา "),
    ("Я люблю чай.", "я люблю чай"),
    ("Μου αρέσει το τσάι.", "μου αρέσει το τσάι"),
    ("나는 차를 좋아한다.", "나는 차를 좋아한다"),
    ("😀!", "😀"),
]


@pytest.mark.parametrize(("a", "b"), IDENTICAL)
def test_one_claim_in_another_script_is_the_same_but_for_its_last_mark(a: str, b: str) -> None:
    """A person is not asked about a full stop in any script."""
    assert verdict_of(a, b, cosine=0.999) is Verdict.SAME


@pytest.mark.parametrize(
    ("guard", "a", "b"),
    [
        ("number", "会议3点开始", "会议5点开始"),
        ("number", "الاجتماع الساعة ٣", "الاجتماع الساعة ٥"),
        ("number", "बैठक ३ बजे है", "बैठक ५ बजे है"),
        ("number", "ประชุมเวลา ๓ โมง", "ประชุมเวลา ๕ โมง"),
        ("number", "会议在三点", "会议在五点"),
        ("number", "Встреча в 3 часа дня", "Встреча в 5 часа дня"),
        ("identifier", "请打开 src/main.py", "请打开 src/mail.py"),
        ("identifier", "Версия v1.2.3 вышла", "Версия v1.2.4 вышла"),
        ("order", "猫追狗", "狗追猫"),
        ("order", "田中が鈴木に勝った", "鈴木が田中に勝った"),
        ("order", "철수가 영희를 이겼다", "영희가 철수를 이겼다"),
        ("order", "Анна обыграла Бориса", "Бориса обыграла Анна"),
        ("language", "我喜欢茶", "我不喜欢茶"),
        ("language", "Ich mag Tee", "Ich mag keinen Tee"),
        ("addition", "我喜欢茶", "我喜欢绿茶"),
        ("question", "Έρχεται η Άννα;", "Έρχεται η Άννα"),
        ("question", "他来了？", "他来了"),
    ],
)
def test_guards_that_need_no_language_say_what_differs(guard: str, a: str, b: str) -> None:
    """Digits of any script are numbers; signs without spaces between words are read one by one."""
    assert guard in {objection.guard for objection in objections(a, b)}
