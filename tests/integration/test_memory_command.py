"""`manage.py memory`: what it prints, what it leaves behind, and its exit status."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from consolidation.models import Pause, held
from memory_site.management.memory import files
from observations import retrieval
from observations.embedding import EmbeddingError
from observations.ingest import MAX_LINE
from observations.models import Embedding, Event, Observation, Scope, Use, database_now
from tests.building import observe, scope
from tests.commands import forked
from tests.jsonl import lines

ROOT = Path(__file__).resolve().parents[2]


def run(*words: str) -> str:
    """Standard output of one sub-command."""
    out = StringIO()
    call_command("memory", *words, stdout=out)
    return out.getvalue()


def failure(*words: str) -> CommandError:
    with pytest.raises(CommandError) as failed:
        run(*words)
    return failed.value


def written(folder: Path, *rows: object, name: str = "in.jsonl") -> str:
    path = folder / name
    path.write_text("\n".join(lines(*rows)) + "\n", encoding="utf-8")
    return str(path)


# --- import ---------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_an_import_says_what_became_of_the_lines_and_computes_their_vectors(tmp_path: Path) -> None:
    told = run("import", written(tmp_path, {"text": "a"}, {"text": "b"}), "--scope", "s")
    assert "2 lines read: 2 added, 0 already there, 0 refused" in told
    assert "2 vectors computed" in told
    assert Embedding.objects.count() == 2
    assert "0 added, 2 already there" in run("import", str(tmp_path / "in.jsonl"), "--scope", "s")


@pytest.mark.django_db
def test_an_import_says_whose_vectors_it_computed(tmp_path: Path) -> None:
    """Episodes have vectors too, and computing them takes the longest part of an import."""
    rows = [{"text": "a"}, {"text": "b", "speaker": "Ivy"}, {"text": "c", "speaker": "Ivy"}]
    assert "3 vectors computed (1 of observations, 2 of episodes)" in run(
        "import", written(tmp_path, *rows), "--scope", "s"
    )
    report = json.loads(run("import", written(tmp_path, *rows), "--scope", "other", "--json"))
    assert (report["embedded"], report["embedded_episodes"]) == (3, 2)


@pytest.mark.django_db
def test_vectors_can_be_left_to_the_worker(tmp_path: Path) -> None:
    run("import", written(tmp_path, {"text": "a"}), "--scope", "s", "--no-embed")
    assert Embedding.objects.count() == 0


@pytest.mark.django_db
def test_refused_lines_are_listed_with_number_and_reason_and_end_with_1(tmp_path: Path) -> None:
    path = written(tmp_path, {"text": "a"}, "{nope", {"text": 5}, {"text": "b\0"})
    out = StringIO()
    with pytest.raises(CommandError) as failed:
        call_command("memory", "import", path, "--scope", "s", stdout=out)
    assert failed.value.returncode == 1
    assert str(failed.value) == "2 of 4 lines were refused."
    assert "  line 2: the line is not JSON" in out.getvalue()
    assert "  line 3: text must be a text, not a number" in out.getvalue()
    assert "1 added lines held characters no database can keep" in out.getvalue()


@pytest.mark.django_db
def test_a_long_list_of_refusals_is_cut_and_json_has_them_all(tmp_path: Path) -> None:
    path = written(tmp_path, *({"text": n} for n in range(50)))
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("memory", "import", path, "--scope", "s", stdout=out)
    assert "and 30 more (--json lists all)" in out.getvalue()
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("memory", "import", path, "--scope", "s", "--json", stdout=out)
    report = json.loads(out.getvalue())
    assert (report["read"], report["added"], len(report["refused"])) == (50, 0, 50)
    assert report["refused"][0] == {"line": 1, "reason": "text must be a text, not a number"}


@pytest.mark.django_db
def test_lines_come_from_standard_input_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"text": "a", "scope": "s"}\n')))
    assert "1 added" in run("import", "-")


@pytest.mark.django_db
def test_the_field_of_the_scope_can_be_named(tmp_path: Path) -> None:
    run("import", written(tmp_path, {"text": "a", "scope": "x", "conversation": "c"}), "--scope-field", "conversation")
    assert Scope.objects.get().name == "c"


@pytest.mark.django_db
def test_a_scope_and_a_field_of_the_scope_are_one_too_many(tmp_path: Path) -> None:
    assert "not allowed with" in str(failure("import", "x.jsonl", "--scope", "a", "--scope-field", "b"))


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "why"), [("nowhere.jsonl", "No such file"), ("", "Is a directory")])
def test_a_file_that_cannot_be_read_is_one_sentence_and_ends_with_2(tmp_path: Path, name: str, why: str) -> None:
    error = failure("import", str(tmp_path / name), "--scope", "s")
    assert error.returncode == 2
    assert why in str(error)
    assert "\n" not in str(error)


@pytest.mark.django_db
def test_an_empty_scope_name_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    assert failure("import", written(tmp_path, {"text": "a"}), "--scope", " ").returncode == 2


@pytest.mark.django_db
def test_an_endless_line_is_never_held_whole(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    with path.open("wb") as file:
        file.write(b'{"text": "')
        for _ in range(5):
            file.write(b"x" * MAX_LINE)
        file.write(b'"}\n{"text": "after"}\n')
    with path.open("rb") as file:
        read = list(files.read_lines(file, lambda _count: None))
    assert [len(line) <= MAX_LINE + 2 for line in read] == [True, True]
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("memory", "import", str(path), "--scope", "s", stdout=out)
    assert "line 1: the line is longer than 8 MiB" in out.getvalue()
    assert Observation.objects.get().text == "after"


@pytest.mark.django_db
def test_a_failing_embedder_loses_no_line_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dead:
        profile = retrieval.current_embedder().profile

        def embed(self, _texts: object) -> None:
            raise EmbeddingError("The model is gone.")

    monkeypatch.setattr("observations.ingest.vectors.current_embedder", Dead)
    error = failure("import", written(tmp_path, {"text": "a"}), "--scope", "s")
    assert error.returncode == 1
    assert "The lines are stored, but not all of their vectors: The model is gone." in str(error)
    assert Observation.objects.count() == 1


# --- export ---------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_an_export_is_written_whole_and_for_its_owner_only(tmp_path: Path) -> None:
    observe("Tea für zwei", within=scope("team/a"))
    observe("elsewhere", within=scope("other"))
    target = tmp_path / "out.jsonl"
    assert "1 rows exported" in run("export", "--scope", "team/*", "--output", str(target))
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    [row] = map(json.loads, target.read_text(encoding="utf-8").splitlines())
    assert (row["scope"], row["text"]) == ("team/a", "Tea für zwei")
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.django_db
def test_an_export_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    observe("Tea", within=scope("team/a"))
    target = tmp_path / "out.jsonl"
    target.write_text("the old one")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    error = failure("export", "--output", str(target))
    assert error.returncode == 2
    assert "No space left on device" in str(error)
    assert target.read_text() == "the old one"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.django_db
def test_an_export_goes_to_standard_output_and_comes_back(tmp_path: Path) -> None:
    observe("Tea", within=scope("team/a"), external_id="x")
    told = run("export")
    assert json.loads(told)["id"] == "x"
    path = tmp_path / "back.jsonl"
    path.write_text(told, encoding="utf-8")
    assert "0 added, 1 already there" in run("import", str(path))


@pytest.mark.django_db
def test_an_export_of_a_scope_that_is_not_there_ends_with_2() -> None:
    assert failure("export", "--scope", "nobody").returncode == 2
    assert run("export") == ""


# --- search ---------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_search_shows_text_id_and_why() -> None:
    row = observe("The relay hums \x1b[31m", within=scope("s"), external_id="mine")
    told = run("search", "--scope", "s", "relay")
    assert "1. The relay hums \\x1b[31m" in told  # no text can steer a terminal
    assert f"obs_{row.pk} (mine), by words and meaning" in told
    assert Use.objects.get().call_site == "search"


@pytest.mark.django_db
def test_a_search_as_json_has_everything_of_a_hit() -> None:
    row = observe("The relay hums", within=scope("s"), external_id="mine")
    answer = json.loads(run("search", "--scope", "s", "--k", "1", "--json", "relay"))
    [hit] = answer["hits"]
    assert (answer["complete"], answer["scope"]) == (True, "s")
    assert (hit["id"], hit["external_id"], hit["text"]) == (f"obs_{row.pk}", "mine", "The relay hums")
    assert (hit["why"], hit["trust"], hit["status"]) == ("both", "medium", "active")
    assert str(Use.objects.get().answer) == answer["answer"]


@pytest.mark.django_db
def test_a_search_gives_k_rows() -> None:
    for n in range(7):
        observe(f"relay {n}", within=scope("s"))
    assert len(json.loads(run("search", "--scope", "s", "--json", "relay"))["hits"]) == 5
    assert len(json.loads(run("search", "--scope", "s", "--json", "--k", "6", "relay"))["hits"]) == 6
    assert failure("search", "--scope", "s", "--k", "0", "relay").returncode == 2


@pytest.mark.django_db
def test_a_search_is_narrowed_and_explained_where_it_is_asked_to(tmp_path: Path) -> None:
    """Each filter of a search is an option; `--explain` says the places in both lists."""
    rows = [
        {"text": "The relay hums", "subject": "relay", "memory_kind": "state", "created_at": "2024-01-01"},
        {"text": "Ana likes the relay", "subject": "Ana", "memory_kind": "preference", "stated_by": "user"},
    ]
    run("import", written(tmp_path, *rows), "--scope", "s")
    first, second = "The relay hums", "Ana likes the relay"
    narrowed = [
        (("--subject", "Relay"), first),
        (("--kind", "preference"), second),
        (("--stated-by", "user"), second),
        (("--said-before", "2024-02-01"), first),
        (("--said-from", "2024-02-01T00:00:00Z"), second),
        (("--as-of", "2000-01-01"), None),
        (("--include-history", "--kind", "state"), first),
    ]
    for options, text in narrowed:
        hits = json.loads(run("search", "--scope", "s", "--json", *options, "relay"))["hits"]
        assert [hit["text"] for hit in hits] == ([text] if text else [])
    told = run("search", "--scope", "s", "--explain", "relay hums")
    assert "place by meaning 1, by words 1; share of words 1.00" in told
    assert "--said-from takes a date" in str(failure("search", "--scope", "s", "--said-from", "May", "relay"))


@pytest.mark.django_db
def test_a_search_in_no_scope_is_one_sentence_and_ends_with_2() -> None:
    error = failure("search", "--scope", "nobody", "relay")
    assert error.returncode == 2
    assert str(error).startswith("There is no scope 'nobody'")


@pytest.mark.django_db
def test_nothing_found_says_so() -> None:
    scope("s")
    assert run("search", "--scope", "s", "relay").strip() == "nothing found"


# --- pause and resume -----------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("where", [[], ["--scope", "team/a"]])
def test_a_pause_stops_planning_and_applying_until_it_is_lifted(where: list[str]) -> None:
    here = scope("team/a")
    told = run("pause", *where, "--reason", "moving house")
    assert told.startswith("Paused")
    assert held(scope=here, now=database_now())
    assert Pause.objects.get().reason == "moving house"
    assert "paused already" in run("pause", *where)
    assert run("resume", *where).startswith("Resumed")
    assert not held(scope=here, now=database_now())
    assert "is not paused" in run("resume", *where)
    subject = str(here.pk) if where else "everything"
    assert list(Event.objects.order_by("id").values_list("action", "subject")) == [
        ("paused", subject),
        ("resumed", subject),
    ]


@pytest.mark.django_db
def test_a_pause_of_one_scope_is_no_pause_of_another() -> None:
    here, there = scope("team/a"), scope("team/b")
    run("pause", "--scope", "team/a")
    assert held(scope=here, now=database_now())
    assert not held(scope=there, now=database_now())


@pytest.mark.django_db
def test_a_pause_of_no_scope_or_for_a_whole_page_of_reasons_is_refused() -> None:
    assert failure("pause", "--scope", "nobody").returncode == 2
    assert failure("pause", "--reason", "x" * 201).returncode == 2
    assert failure("pause", "--reason", "two\nlines").returncode == 2


# --- as a process ---------------------------------------------------------------------------------------------------


def process(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """manage.py on the suite's own database."""
    url = os.environ["DATABASE_URL"].rpartition("/")[0] + "/" + str(connection.settings_dict["NAME"])
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *words],
        env={**os.environ, "DATABASE_URL": url, **environ},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


@pytest.mark.django_db(transaction=True)
def test_the_process_ends_with_0_1_or_2_and_one_sentence(tmp_path: Path) -> None:
    good, bad = written(tmp_path, {"text": "Tee für zwei"}), written(tmp_path, {"text": 5}, name="bad.jsonl")
    done = process("memory", "import", good, "--scope", "s")
    assert (done.returncode, done.stderr) == (0, "")
    partly = process("memory", "import", bad, "--scope", "s")
    assert (partly.returncode, partly.stderr) == (1, "1 of 1 lines were refused.\n")
    refused = process("memory", "search", "--scope", "nobody", "tea")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    german = process("memory", "export", LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="")
    assert "Tee für zwei" in german.stdout


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        ("memory search --scope nobody tea", 2, "There is no scope 'nobody'"),
        ("memory import nowhere.jsonl --scope s", 2, "nowhere.jsonl cannot be read"),
        ("consolidate apply", 2, "There is no plan yet"),
        ("consolidate explain op_00", 2, "There is no operation op_00"),
    ],
)
def test_a_refusal_is_its_sentence_alone_and_under_json_a_document_as_well(
    words: str, status: int, sentence: str
) -> None:
    """No class's name stands before it; what reads the JSON always gets one document."""
    plain = forked(*words.split())
    assert (plain.returncode, plain.stdout) == (status, "")
    assert plain.stderr.startswith(sentence)
    assert plain.stderr.count("\n") == 1
    as_json = forked(*words.split(), "--json")
    assert (as_json.returncode, as_json.stderr) == (status, plain.stderr)
    assert json.loads(as_json.stdout) == {"error": plain.stderr.strip()}


def test_a_setting_that_keeps_it_from_running_is_one_sentence_with_what_to_do() -> None:
    """A system check's error (docs/operations.md), told like any other refusal: nothing was done, so 2."""
    ended = process("memory", "verify", "--json", PALIMPSEST_EMBEDDER="nonsense")
    assert ended.returncode == 2
    assert ended.stderr.startswith("There is no embedder named 'nonsense': choose minilm, hashing or http.")
    assert ended.stderr.endswith("(palimpsest.E005)\n")
    assert ended.stderr.count("\n") == 1
    assert json.loads(ended.stdout) == {"error": ended.stderr.strip()}


@pytest.mark.django_db(transaction=True)
def test_what_is_done_in_part_prints_its_report_and_no_second_document(tmp_path: Path) -> None:
    bad = written(tmp_path, {"text": 5}, name="bad.jsonl")
    partly = forked("memory", "import", bad, "--scope", "s", "--json")
    assert (partly.returncode, partly.stderr) == (1, "1 of 1 lines were refused.\n")
    assert json.loads(partly.stdout)["refused"][0]["line"] == 1


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://nobody@127.0.0.1:1/nothing", "The database cannot be used"),
        ("mysql://nobody@127.0.0.1/nothing", "DATABASE_URL must start with postgresql://"),
        ("postgresql://nobody:geheim@127.0.0.1:port/nothing", "DATABASE_URL has a port that is not a number"),
    ],
)
def test_a_database_that_cannot_be_used_is_one_sentence_without_its_password(url: str, words: str) -> None:
    ended = process("memory", "search", "--scope", "s", "tea", DATABASE_URL=url)
    assert ended.returncode == 2
    assert words in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert "Traceback" not in ended.stderr
    assert "geheim" not in ended.stderr
