"""Securing connections: TLS contexts from key stores, logins, tokens.

`tsoffset.flow.security` has the configured values. Files are read and tokens fetched here, in each
process, for each connection, so a changed file is used for the next connection.
"""
