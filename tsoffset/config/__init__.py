"""Configuration files: MirrorMaker 2 properties and Connect JSON, made into settings.

`Configuration.read(path)` holds the text as it travels; `Configuration.resolve()` makes
`tsoffset.flow.settings.Settings` of it, or raises `ConfigurationError` with all that is wrong.
"""

from tsoffset.config.loading import Configuration
from tsoffset.config.source import Format

__all__ = ["Configuration", "Format"]
