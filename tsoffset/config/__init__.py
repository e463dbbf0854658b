"""Configuration files: MirrorMaker 2 properties and Connect JSON, made into settings.

`loading.Configuration.read(path)` holds the text as it travels; its `resolve()` makes
`tsoffset.flow.settings.Settings` of it, or raises `ConfigurationError` with all that is wrong.
"""
