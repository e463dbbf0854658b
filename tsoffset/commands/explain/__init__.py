"""`tsoffset explain`: how the committed offsets of one group are translated.

`flow_explanation` runs the steps of a cycle for the group and observes them: nothing is committed,
and Spark is not needed. `trace` keeps the requests and answers, `reasons` words why the translation
is what it is, `statements` are the values that are printed, `report` prints them for a person.
"""
