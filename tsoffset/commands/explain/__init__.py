"""`tsoffset explain`: the conversation behind the translation of one group's commits.

It runs the stages of a cycle for one group and listens. Nothing is committed, and Spark is
not needed. `dialogue` keeps what was asked and told, `reasons` says why the answer is what it
is, `statements` has what is printed, `report` its form for a person.
"""
