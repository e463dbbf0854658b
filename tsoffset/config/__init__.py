"""Reading configuration files: MirrorMaker 2 properties and Connect JSON.

Start at `loading`: `Configuration.read(path)` has the text; its `resolve()` returns
`tsoffset.flow.settings.Settings`, or raises `ConfigurationError` with all problems.
"""
