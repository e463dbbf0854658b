"""How a connection is secured: TLS contexts from stores of keys, logins, tokens.

`tsoffset.flow.security` says what is configured. Files are read and tokens fetched here, in each
process, for each connection, so that what changes is taken up with the next one.
"""
