"""The documentation site from the files as they lie in the repository.

README.md is its first page and CHANGELOG.md its last. Files of the repository that pages link to
become part of the site, so that it needs no other place.
"""

import re
from pathlib import Path
from posixpath import normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
# Where files of the repository lie in the site.
FOLDER = "repository"
_LINK = re.compile(r"(?P<before>\]\()(?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add what lies outside docs/ and is linked to."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    linked = {
        path
        for file in files.documentation_pages()
        for found in _LINK.finditer(file.content_string)
        if (path := _in_repository(file.src_uri, found["path"])) is not None
        and path not in PAGES
        and not path.startswith("docs/")
    }
    for path in sorted(linked):
        if (ROOT / path).is_file():
            # As text: a browser shows what it would otherwise save.
            name = f"{FOLDER}/{path}.txt"
            files.append(File.generated(config, name, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to where the site has what they name."""

    def moved(found: re.Match[str]) -> str:
        path = _in_repository(page.file.src_uri, found["path"])
        if path is None or not (ROOT / path).exists():
            return found[0]
        if path.startswith("docs/"):
            there = path.removeprefix("docs/")
        elif path in PAGES:
            there = PAGES[path]
        elif (ROOT / path).is_dir():
            # Nothing to show; the name says where to look.
            return "]"
        else:
            there = f"{FOLDER}/{path}.txt"
        return (
            f"{found['before']}{relpath(there, _folder(page.file.src_uri))}{found['anchor'] or ''})"
        )

    return _LINK.sub(moved, markdown)


def _folder(page: str) -> str:
    return str(Path(page).parent)


def _in_repository(page: str, link: str) -> str | None:
    """The path in the repository that a page's link means; None for none of its files."""
    original = {there: here for here, there in PAGES.items()}.get(page)
    folder = "." if original is not None else f"docs/{_folder(page)}"
    path = normpath(f"{folder}/{link}")
    return None if path.startswith("..") else path
