"""Texts with values in them, from files beside the modules that show them."""

import shlex
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined

from tsoffset.printable import printable


def rendered_lines(package: str, file: str, **values: Any) -> list[str]:
    """The lines of a package's file with its values (Jinja2), without empty ones. An indented line
    continues the one above. Control characters in values are escaped, so that none begins a
    line."""
    environment = Environment(
        autoescape=False,  # noqa: S701 no HTML
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if isinstance(value, str) else value,
    )
    environment.filters["quote"] = shlex.quote
    template = environment.from_string(files(package).joinpath(file).read_text(encoding="utf-8"))
    return list(filter(None, template.render(values).replace("\n  ", " ").splitlines()))
