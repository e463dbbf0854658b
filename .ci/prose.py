"""Checks the prose of the documentation, of the command help, and of the product's docstrings,
comments, messages and names: banned words and sentence openings, British spelling, and sentences
of more than 35 words in documentation and help. Tests, the status page, the texts of reports, the
Makefile and other files with comments have a shorter list of banned words. Run by `make lint`."""

import ast
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from pathlib import Path

import click
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tsoffset.cli.main import cli

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 35
BRITISH = (
    r"behaviour\w*|colour\w*|centres?|neighbour\w*|favour\w*|honour\w*|judgements?|travelling"
    r"|recognis\w+|organis\w+|normalis\w+|initialis\w+|serialis\w+"
)
# In all texts, code included.
BLATANT = (
    r"theirs|ours|anew|nobody|somebody else's|thereof|come to nothing|becomes? of|became of|mended"
    r"|twins?|foresight|again and again|let go|made anew|going easy|look at again|as it stands"
    r"|all the same|carry-?overs?|conversations?|stretch(?:es)?|patience"
)
BANNED = re.compile(
    rf"\b(?:{BLATANT}|whose's|settled?|settlement|left out|in the way"
    rf"|stands? (?:at|in|there)|{BRITISH})\b",
    re.IGNORECASE,
)
BANNED_IN_CODE = re.compile(rf"\b(?:{BLATANT}|{BRITISH})\b", re.IGNORECASE)
BANNED_NAMES = re.compile(
    r"(?:^|_)(?:theirs|ours|woven|became|spoken_by|twins?|beside|settlement|whose|colour|neighbours?)$"
)
# Functions are verb phrases, or name what they return.
BANNED_FUNCTIONS = re.compile(
    r"_?(?:aligned|alone|anybody|compared|conversed?|counted|decoded|elided|few|found|framed|gone"
    r"|informed|joined|little|made|matched|only|redacted|settled|shortened|told|translated|unpacked"
    r"|what|why|wrapped)"
)
OPENING = re.compile(r"(?:Of (?:the|what|its|each|a)|What [a-z]+ (?:is|are)|Who|So many|Nor) ")
# ``As `X.y`.`` repeats what the class that is implemented says.
AS_ANOTHER = re.compile(r"As `[\w.]+`\.$")
# Files without Python or Markdown whose lines are checked: comments, texts and names.
OTHER_FILES = (
    *("Makefile", "pyproject.toml", "docker/Dockerfile", ".ci/run", ".ci/*.yml"),
    *("docker/**/*.yaml", "docker/*.sh", "examples/**/*.yaml", "examples/*.sh"),
    *("tsoffset/**/*.js", "tsoffset/**/*.css", "tsoffset/**/*.html", "tsoffset/**/*.txt"),
)
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


def code_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of a module's comments, docstrings and other strings."""
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string.lstrip("# ")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, re.sub(r"`[^`]*`|\{[^}]*\}|\s+", " ", node.value).strip()


def banned_words(texts: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Line and problem of the texts that have a word which is banned everywhere."""
    for line, text in texts:
        if match := BANNED_IN_CODE.search(text):
            yield line, f"the word '{match[0]}': {text[:100]}"


def product_problems(path: Path) -> Iterator[tuple[int, str]]:
    """Line and problem of a module's names, and of its texts, apart from banned words."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and AS_ANOTHER.match(str(node.value)):
            yield node.lineno, f"a docstring that says nothing: {node.value}"
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.arg):
            name = node.arg if isinstance(node, ast.arg) else node.name
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            is_banned = is_function and BANNED_FUNCTIONS.fullmatch(name)
            if is_banned or BANNED_NAMES.search(name.lower()):
                yield node.lineno, f"the name '{name}'"
    for line, text in code_texts(path):
        if OPENING.match(text):
            yield line, f"a text that begins like a riddle: {text[:100]}"


def classes_twice(modules: dict[str, Path]) -> Iterator[str]:
    """Class names that two of the modules define."""
    found: dict[str, list[str]] = defaultdict(list)
    for module, path in modules.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(f"{module}:{node.lineno}")
    for name, places in found.items():
        if len(places) > 1:
            yield f"{', '.join(places)}: two classes named {name}"


def check() -> list[str]:
    """All problems, each with its file and line or its command."""
    pages = [ROOT / name for name in ("README.md", "CHANGELOG.md", "SECURITY.md")]
    pages += sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("docker/*.md")])
    pages += sorted(ROOT.glob("examples/**/*.md"))
    places = [
        (f"{page.relative_to(ROOT)}:{line}", text)
        for page in pages
        for line, text in paragraphs(page.read_text(encoding="utf-8"))
    ]
    places += help_texts(cli, "tsoffset")
    found = [f"{place}: {problem}" for place, text in places for problem in problems(text)]
    modules = {
        str(path.relative_to(ROOT)): path
        for path in sorted([*ROOT.glob("tsoffset/**/*.py"), *ROOT.glob("benchmarks/**/*.py")])
    }
    for name, path in modules.items():
        found += [f"{name}:{line}: {problem}" for line, problem in product_problems(path)]
    tests = {str(path.relative_to(ROOT)): path for path in sorted(ROOT.glob("tests/**/*.py"))}
    for name, path in (modules | tests).items():
        found += [f"{name}:{line}: {problem}" for line, problem in banned_words(code_texts(path))]
    for path in sorted({path for name in OTHER_FILES for path in ROOT.glob(name)}):
        lines = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        name = path.relative_to(ROOT)
        found += [f"{name}:{line}: {problem}" for line, problem in banned_words(lines)]
    product = {name: path for name, path in modules.items() if name.startswith("tsoffset")}
    return [*found, *classes_twice(product), *classes_twice(tests)]


if __name__ == "__main__":
    found = check()
    sys.exit("\n".join(found) or 0)
