"""Random bytes for whatever reads bytes of others: `python -m tests.fuzz TARGET --minutes N`.

`targets.py` says what is fed and what must hold; `test_fuzz.py` runs each for a moment with
hypothesis and with what is kept in `seeds/`; here atheris looks for more, guided by coverage.
"""
