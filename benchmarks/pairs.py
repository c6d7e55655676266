"""What the merge rule does with labelled pairs: `python -m benchmarks.pairs [--embedder minilm|hashing] [--data DIR]`.

Each pair is judged as two records of one scope, by the rule that planning uses (consolidation.merge.judge). First as
they are, without keys; then as if both had the same subject, predicate and object, which leaves the cosine and the
guards alone between a pair and its merge. Every pair that would merge although it is not labelled a duplicate is
printed in full. Exit code 1 when one of them is not excused in benchmarks/label_noise.py.
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from benchmarks.label_noise import excuse
from consolidation.candidates import Link, Met
from consolidation.merge import Verdict, judge
from consolidation.policy import Policy
from observations.embedding import Embedder, EmbeddingError, Profile, embedder
from observations.normalise import normalised
from observations.records import Record, StatedBy, Status

DATA: Final = Path(os.environ.get("PALIMPSEST_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
DUPLICATE: Final = "duplicate"  # a merge of any other pair is an error
KEYLESS: Final = ("", "", "")
KEY: Final = ("subject", "predicate", "object")
OUTCOMES: Final = ("automatic", "queued", "missed")
_DAY = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One line of a pairs file, with the cosine of its texts."""

    file: str
    line: int  # in the file, from 1
    id: str
    label: str
    kind: str
    a: str
    b: str
    cosine: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of a pair: automatic, queued or missed; and whether a person is told of a possible contradiction."""

    word: str
    warned: bool


def verdict(pair: Pair, *, key: tuple[str, str, str], profile: Profile, policy: Policy) -> Outcome:
    """The planner's rule for one pair of records of one scope that both have `key`."""
    a, b = _record(1, pair.a, key), _record(2, pair.b, key)
    met = Met.TEXT if a.normalised == b.normalised else Met.NEIGHBOUR
    judged = judge(a, b, link=Link(1, 2, pair.cosine, met), profile=profile, policy=policy)
    if judged.verdict is Verdict.SAME:
        return Outcome("automatic", warned=False)
    if judged.verdict is Verdict.FAR:
        return Outcome("missed", warned=False)
    return Outcome("queued", warned=judged.verdict is Verdict.POSSIBLE)


def _record(number: int, text: str, key: tuple[str, str, str]) -> Record:
    return Record(
        id=number,
        scope_id=1,
        text=text,
        normalised=normalised(text),
        key=key,
        confidence=0.5,
        stated_by=StatedBy.AGENT,
        created_at=_DAY,
        status=Status.ACTIVE,
        version=1,
        content_hash=sha256(text.encode()).hexdigest(),
    )


def read(folder: Path, *, embed: Embedder) -> Iterator[list[Pair]]:
    """The pairs of each pairs_*.jsonl, in order of name. Raises OSError, ValueError, KeyError on an unreadable file."""
    for path in sorted(folder.glob("pairs_*.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        left, right = (embed.embed([row[side] for row in rows]) for side in ("a", "b"))
        cosines = (left * right).sum(axis=1)
        yield [
            Pair(
                file=path.name,
                line=line,
                id=row["id"],
                label=row["label"],
                kind=row["kind"],
                a=row["a"],
                b=row["b"],
                cosine=float(cosine),
            )
            for line, (row, cosine) in enumerate(zip(rows, cosines, strict=True), start=1)
        ]


@dataclass(frozen=True, slots=True)
class Tally:
    """One file under one key: how many pairs of each label got which outcome, and what merged that should not have."""

    counts: Counter[tuple[str, str]]
    warned: Counter[str]
    wrong: list[Pair]


def tally(pairs: Sequence[Pair], *, key: tuple[str, str, str], profile: Profile, policy: Policy) -> Tally:
    """The outcomes of all pairs of one file."""
    counts: Counter[tuple[str, str]] = Counter()
    warned: Counter[str] = Counter()
    wrong = []
    for pair in pairs:
        outcome = verdict(pair, key=key, profile=profile, policy=policy)
        counts[pair.label, outcome.word] += 1
        warned[pair.label] += outcome.warned
        if outcome.word == "automatic" and pair.label != DUPLICATE:
            wrong.append(pair)
    return Tally(counts, warned, wrong)


def table(title: str, tallies: Sequence[tuple[str, Tally]]) -> list[str]:
    """The printed table of one section, and under it every wrong merge in full."""
    head = f"{'file':<26}{'label':<24}{'pairs':>7}{'automatic':>11}{'queued':>8}{'warned':>8}{'missed':>8}"
    lines = [title, "", head, "-" * len(head)]
    for name, result in tallies:
        for label in sorted({label for label, _ in result.counts}):
            automatic, queued, missed = (result.counts[label, word] for word in OUTCOMES)
            total = automatic + queued + missed
            warned = result.warned[label]
            lines.append(f"{name:<26}{label:<24}{total:>7}{automatic:>11}{queued:>8}{warned:>8}{missed:>8}")
            name = ""
    wrong = [pair for _, result in tallies for pair in result.wrong]
    lines += ["", f"Merged although not labelled {DUPLICATE}: {len(wrong)}"]
    for pair in wrong:
        reason = excuse(pair.id, pair.a, pair.b) or "WRONG"
        lines += [
            "",
            f"{pair.id}  {pair.label}  cosine {pair.cosine:.4f}  {reason}",
            f"  a  {pair.a}",
            f"  b  {pair.b}",
        ]
    return lines


def surface(pairs: Sequence[Pair], *, profile: Profile, policy: Policy) -> str:
    """How many of the surface variants (same words but for case, marks, articles, digits) are found."""
    words = Counter(
        verdict(pair, key=KEYLESS, profile=profile, policy=policy).word for pair in pairs if pair.kind == "surface"
    )
    total, found = words.total(), words["automatic"] + words["queued"]
    return f"Surface variants, keyless: {total}; automatic {words['automatic']}, automatic or queued {found}"


def report(files: Sequence[Sequence[Pair]], *, profile: Profile) -> tuple[list[str], bool]:
    """The lines to print, and whether every wrong merge is excused."""
    policy = Policy(review_budget=None)
    lines = [f"Embedder {profile.name}: candidates from {profile.t_candidate:g}, merges from {profile.t_merge:g}", ""]
    clean = True
    for title, key in (("As they are, without keys", KEYLESS), ("As if both had the same key", KEY)):
        tallies = [
            (pairs[0].file.removesuffix(".jsonl"), tally(pairs, key=key, profile=profile, policy=policy))
            for pairs in files
        ]
        lines += [*table(title, tallies), ""]
        clean = clean and all(excuse(pair.id, pair.a, pair.b) for _, result in tallies for pair in result.wrong)
    return [*lines, surface([pair for pairs in files for pair in pairs], profile=profile, policy=policy)], clean


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report. 0: nothing merged wrongly that is not excused; 1: something did; 2: no data or no embedder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pairs", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--embedder", choices=["minilm", "hashing"], default="minilm")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the pairs_*.jsonl files")
    options = parser.parse_args(arguments)
    chosen = embedder(options.embedder)
    try:
        files = [pairs for pairs in read(options.data, embed=chosen) if pairs]
    except EmbeddingError as error:
        print(error, file=sys.stderr)
        return 2
    except (OSError, ValueError, KeyError) as error:
        print(
            f"A pairs file cannot be read ({error}): correct it, or name another folder with --data.", file=sys.stderr
        )
        return 2
    if not files:
        print("There are no pairs_*.jsonl files: name their folder with --data or PALIMPSEST_DATA.", file=sys.stderr)
        return 2
    lines, clean = report(files, profile=chosen.profile)
    print("\n".join(lines))
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
