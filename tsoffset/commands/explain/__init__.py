"""`tsoffset explain`: how the committed offsets of one group are translated.

`flow_explanation` runs the steps of a cycle for the group and observes them: nothing is committed,
and Spark is not needed. `trace` keeps the requests and answers, and has the values that are
printed. `reasons` explains the translation in sentences. `report` prints all this for a person.
"""
