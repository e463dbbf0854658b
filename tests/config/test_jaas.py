"""`sasl.jaas.config` is read as Kafka reads it, and errors tell places, never content."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsoffset.config.jaas import LoginModule, login_module

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("written", "options"),
    [
        ('required username="u" password="p";', {"username": "u", "password": "p"}),
        ("required username='u' password='a\"b';", {"username": "u", "password": 'a"b'}),
        (r'REQUIRED a="x\"y\\z" ;', {"a": r"x\"y\z".replace('\\"', '"')}),
        (r'required a="\101\7z\400";', {"a": "A\7z\x200"}),
        (r'required a="\ü\n";', {"a": "ü\n"}),
        ('required a="" b = c;', {"a": "", "b": "c"}),
        ("optional useKeyTab=true; // a comment", {"useKeyTab": "true"}),
        ('required/* a comment */ a="/*b*/";\n', {"a": "/*b*/"}),
        ("required a=x a=y;", {"a": "y"}),
        ("required;", {}),
    ],
)
def test_options(written, options):
    """Words, both quotation marks, escapes and comments of Java's StreamTokenizer."""
    assert login_module(f"{PLAIN} {written}") == LoginModule(PLAIN, options)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "needs the class of a login module at column 1"),
        ("c4n4ry", "needs a flag such as `required` at column 7"),
        ("a.B c4n4ry;", "needs `required` after the login module, at column 5"),
        ('a.B required password="c4n4ry;', "has an unclosed quotation mark at column 23"),
        ('a.B required password="c4n4ry"', "must end in a semicolon"),
        ("a.B required password;", "has an option without a value at column 14"),
        ("a.B required password=;", "needs an option's value at column 23"),
        ("a.B required password=c4/n4ry;", "an extra character at column 25"),
        ("a.B required; c4n4ry required;", "another begins at column 15"),
    ],
)
def test_an_error_tells_its_place_and_nothing_of_what_is_there(text, sentence):
    """What looks like an option may be a part of a password."""
    with pytest.raises(ValueError, match=r".") as caught:
        login_module(text)
    assert sentence in str(caught.value)
    assert "c4" not in str(caught.value)


@given(st.dictionaries(st.from_regex(r"[a-zA-Z]\w{0,9}", fullmatch=True), st.text(max_size=20)))
def test_any_text_can_be_quoted(options):
    """Of a value between quotation marks only these, backslashes and line ends need an escape."""
    escapes = {ord("\\"): r"\\", ord('"'): r"\"", ord("\n"): r"\n", ord("\r"): r"\r"}
    words = "".join(f' {name}="{value.translate(escapes)}"' for name, value in options.items())
    assert login_module(f"a.B required{words};").options == options


@given(st.text(alphabet=st.sampled_from("aB.=;\"'\\/* \n1-ü#"), max_size=40))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(ValueError):
        login_module(text)
