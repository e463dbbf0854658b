"""Checks the prose of the documentation and of the command help: banned words and sentence
openings, British spelling, and sentences of more than 35 words. Run by `make lint`."""

import re
import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tsoffset.cli.main import cli

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 35
# Written before the rules, not rewritten yet.
NOT_COVERED: set[str] = set()
BANNED = re.compile(
    r"\b(?:theirs|ours|anew|whose's|nobody|thereof|come to nothing|becomes? of|became of|settled?"
    r"|settlement|left out|let go|going easy|look at again|in the way|as it stands|made anew|mended"
    r"|twin|carry-over|foresight|patience|stands? (?:at|in|there)|again and again"
    r"|behaviour|colours?|centres?|neighbours?|recognis\w+|honour\w*|organis\w+|normalis\w+)\b",
    re.IGNORECASE,
)
OPENING = re.compile(r"(?:Of (?:the|what|its|each|a)|What [a-z]+ (?:is|are)|Who|So many|Nor) ")
SENTENCE_END = re.compile(r"(?<=[.!?:;])[*)\"]* +(?=[^a-z])|\n\n+")


def text_of(token: Token) -> str:
    """The words of an inline token; code is one word."""
    return "".join(
        "Code" if child.type == "code_inline" else " " if "break" in child.type else child.content
        for child in token.children or ()
        if child.type != "image"
    )


def paragraphs(page: str) -> Iterator[tuple[int, str]]:
    """Line and text of each heading, paragraph, list item and cell, without blocks of code."""
    cell = False
    for token in MarkdownIt("commonmark").enable("table").parse(page):
        cell = token.type == "td_open" or (cell and token.type == "inline")
        if token.type == "inline" and token.map:
            # A cell may list facts.
            text = text_of(token)
            yield token.map[0] + 1, re.sub(r"[;:] ", "\n\n", text) if cell else text


def help_texts(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """Name and help of a command, its options and its subcommands."""
    yield name, cleandoc((command.help or "").partition("\b")[0])
    for option in command.params:
        yield f"{name} {option.opts[0]}", getattr(option, "help", None) or ""
    for sub, one in getattr(command, "commands", {}).items():
        yield from help_texts(one, f"{name} {sub}")


def problems(text: str) -> Iterator[str]:
    """What is wrong with a paragraph."""
    for sentence in SENTENCE_END.split(text):
        if match := BANNED.search(sentence):
            yield f"the word '{match[0]}': {sentence}"
        if OPENING.match(sentence):
            yield f"a sentence that begins like a riddle: {sentence}"
        if len(words := sentence.split()) > LONGEST:
            yield f"a sentence of {len(words)} words: {sentence}"


def check() -> list[str]:
    """All problems, each with its file and line or its command."""
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/*.md"))]
    pages += sorted(ROOT.glob("examples/**/*.md"))
    places = [
        (f"{name}:{line}", text)
        for page in pages
        if (name := str(page.relative_to(ROOT))) not in NOT_COVERED
        for line, text in paragraphs(page.read_text(encoding="utf-8"))
    ]
    places += help_texts(cli, "tsoffset")
    return [f"{place}: {problem}" for place, text in places for problem in problems(text)]


if __name__ == "__main__":
    found = check()
    sys.exit("\n".join(found) or 0)
