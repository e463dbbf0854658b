"""`--groups` and `--topics` leave less of what the configuration lets through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.configured import two_clusters
from tests.memory_flows import flow
from tsoffset.errors import UsageError
from tsoffset.flow.narrowing import AssignedGroups, Narrowing, written_groups, written_topics
from tsoffset.flow.policy import DefaultGroupFilter, WrittenNames

NAMES = st.sampled_from(["a", "b", "ab", "connect-a", "__a", "a.replica"])
PATTERNS = st.none() | st.sampled_from(["a", "a.*", ".*b", "connect-.*", "a|b", "", "x{1,2}"])


@given(PATTERNS, PATTERNS, NAMES)
def test_narrowing_only_takes_away(groups, topics, name):
    """What is let through passes the configuration's filter and matches as a whole."""
    (flow,) = two_clusters("groups.exclude = b", "topics.exclude = ab").flows
    narrowed = Narrowing(groups, topics).apply(flow)
    group = narrowed.group_filter.should_replicate_group(name)
    topic = narrowed.topic_filter.should_replicate_topic(name)
    matching = {
        None: True,
        "a": name == "a",
        "a.*": name.startswith("a"),
        ".*b": name.endswith("b"),
        "connect-.*": name.startswith("connect-"),
        "a|b": name in ("a", "b"),
        "": False,
        "x{1,2}": False,
    }
    assert group is (matching[groups] and flow.group_filter.should_replicate_group(name))
    assert topic is (matching[topics] and flow.topic_filter.should_replicate_topic(name))


def test_narrowing_nothing_leaves_the_flow_as_it_is():
    """Without options the same filters are used."""
    (flow,) = two_clusters().flows
    assert Narrowing().apply(flow) == flow


@pytest.mark.parametrize(
    ("options", "said"), [({"groups": "("}, "--groups ("), ({"topics": r"\p{L}"}, "--topics")]
)
def test_a_bad_expression_is_bad_usage(options, said):
    """The text names the option and what is wrong with it."""
    with pytest.raises(UsageError) as caught:
        Narrowing(**options)
    assert said in str(caught.value)
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("include", "names", "only"),
    [
        (("billing", "a.b-c_1"), ("billing", "a.b-c_1"), True),
        ((r"a\.b", ".*"), ("a.b",), False),
        (("connect-x",), (), True),
        (("pay|bill", "x{1}"), (), False),
        ((), (), True),
    ],
)
def test_names_that_a_list_writes_out(include, names, only):
    """What is written like a name is one; the exclude list wins."""
    assert written_groups(DefaultGroupFilter(include)) == WrittenNames(names, only)


def test_narrowing_writes_names_out_too():
    """--groups and --topics with a name, and the groups assigned to a task."""
    narrowed = Narrowing("billing", "orders").apply(flow())
    assert written_groups(narrowed.group_filter) == WrittenNames(("billing",), True)
    assert written_topics(narrowed.topic_filter) == WrittenNames(("orders",), True)
    assigned = AssignedGroups(DefaultGroupFilter(("b.*",)), frozenset({"billing", "other"}))
    assert written_groups(assigned) == WrittenNames(("billing",), True)
