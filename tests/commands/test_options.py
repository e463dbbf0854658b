"""Questions to a person before something is committed."""

import os
import pty

import pytest

from tests.invoking import invoke, logging_kept
from tsoffset.commands.options import command, confirm


@pytest.mark.parametrize(("typed", "answer"), [("y\n", True), ("\n", False), ("n\n", False)])
def test_a_person_is_asked(typed, answer, monkeypatch):
    """At a terminal, where nothing but yes is yes."""
    master, slave = pty.openpty()
    with os.fdopen(slave) as terminal, os.fdopen(master, "w") as keyboard:
        keyboard.write(typed)
        keyboard.flush()
        monkeypatch.setattr("sys.stdin", terminal)
        assert confirm("Really?", yes=False) is answer


@pytest.mark.parametrize(
    ("commits", "told"),
    [
        (False, "interrupted"),
        (
            True,
            "interrupted; offsets that were committed by then stay committed: run the command again"
            " to finish",
        ),
    ],
)
def test_an_answer_that_never_comes_is_an_interruption(commits, told, monkeypatch, capsys):
    """Ctrl-C and Ctrl-D at the question end the command as Ctrl-C does at any other time. A command
    that commits may have done a part of it."""
    made = command("", "", selects=False, commits=commits)
    asking = made(lambda *_: int(confirm("Really?", yes=False)))
    master, slave = pty.openpty()
    with os.fdopen(slave) as terminal, os.fdopen(master, "w") as keyboard, logging_kept():
        keyboard.write("\x04")
        keyboard.flush()
        monkeypatch.setattr("sys.stdin", terminal)
        with pytest.raises(SystemExit, match="130"):
            asking.main([])
    assert capsys.readouterr().err.endswith(f"{told}\n")


def test_a_mistyped_word_is_met_with_similar_ones():
    """A long list of words is shown as they are written, with the likely ones at its end."""
    said = invoke("plan", "-c", __file__, "--reason", "target_ahed").stderr
    assert "'NO_PROOF'" in said
    assert "Did you mean `TARGET_AHEAD`" in said


@pytest.mark.parametrize(
    "words", [("snapshot", "-o"), ("compare", "--html"), ("migrate", __file__, "-o")]
)
def test_a_mistyped_folder_of_an_output_is_not_created(words, tmp_path):
    """The file would be looked for in another folder."""
    name, *rest = words
    config = () if name == "migrate" else ("-c", __file__)
    result = invoke(name, *config, *rest, str(tmp_path / "mistyped" / "file"))
    assert (result.exit_code, "does not exist" in result.stderr) == (2, True), result.output
    assert not (tmp_path / "mistyped").exists()
