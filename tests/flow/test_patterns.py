"""Java's regular expressions as far as Python reads them alike; the rest is refused."""

import pytest

from tsoffset.flow.patterns import InvalidPattern, compile_list, matches, split_list


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", ()),
        ("  ", ()),
        ("a", ("a",)),
        (" a , b,c ", ("a", "b", "c")),
        ("a,,b", ("a", "", "b")),
        ("a b", ("a b",)),
    ],
)
def test_lists_are_split_as_kafka_splits_them(text, items):
    """At commas with any blanks around them; blank text is an empty list."""
    assert split_list(text) == items


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("a|ab", "ab"),
        ("a.*c", "abc"),
        (r"a\.b", "a.b"),
        ("a++b", "aab"),
        ("(?>a+)b", "aab"),
        ("[]x]", "]"),
        ("[^]x]", "a"),
        (r"[a\[b]", "["),
        ("(?i)App", "aPP"),
        ("x(?i:App)", "xaPP"),
        ("a{2}", "aa"),
        ("a{2,}", "aaaa"),
        (r"a\{b", "a{b"),
        ("(?!x).*", "app"),
        ("[a-z--0]", "-"),
    ],
)
def test_what_java_and_python_share_is_taken(pattern, name):
    """The common subset matches as in Java."""
    assert matches(compile_list([pattern]), name)


@pytest.mark.parametrize(
    ("pattern", "name"), [("app", "apps"), ("app", "my-app"), (r"\d", "٣"), (r"\w", "é")]
)
def test_whole_names_and_ascii_classes(pattern, name):
    """A part of a name is no match; Java's \\d and \\w are ASCII's."""
    assert not matches(compile_list([pattern]), name)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (r"\p{Alpha}+", r"\p{...}"),
        (r"[\p{L}]", r"\p{...}"),
        (r"\Qa.b\E", r"\Q"),
        (r"\h", r"\h"),
        (r"\v", r"\v"),
        (r"a\z", r"\z"),
        (r"a\Z", r"\Z"),
        ("[a[b]]", "class inside a class"),
        ("[a-z&&[^b]]", "intersection"),
        ("(?<name>a)", "(?P<name>...)"),
        ("*", ".*"),
        ("*-app", ".*"),
        ("(a", "unterminated"),
        ("a{99999999999}", "too large"),
        ("(?u)a", "flags"),
        # In a list this is `a{1` and `2}`: Java refuses it, Python alone would not.
        ("a{1,2}", "comma splits the list"),
        # Java would apply it to all that follows.
        ("a,(?i)b", "(?i:...)"),
    ],
)
def test_what_differs_is_refused_and_named(pattern, said):
    """Where Python would fail, or silently match otherwise, the text says what is wrong."""
    with pytest.raises(InvalidPattern) as caught:
        compile_list(split_list(pattern))
    assert said in str(caught.value)


def test_a_group_over_list_elements_works_as_in_mirrormaker():
    """`(a,b)` becomes `(a|b)`, since elements are joined before they are compiled."""
    pattern = compile_list(split_list("x-(a,b)"))
    assert matches(pattern, "x-a")
    assert matches(pattern, "x-b")
    assert not matches(pattern, "x-c")


def test_an_empty_list_has_no_pattern_and_matches_nothing():
    """Not even the empty name, which the empty pattern would match."""
    assert compile_list([]) is None
    assert not matches(compile_list([]), "")
