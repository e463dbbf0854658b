"""Configurations of MirrorMaker 2 that people use, and what `tsoffset migrate` makes of them.

`outputs` holds the configuration for each of `inputs`, and the steps of some, read line by line by
a person.
`python -m tests.migration` writes them again: then read the difference.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
INPUTS, OUTPUTS = FOLDER / "inputs", FOLDER / "outputs"
# The folder of inputs, where an output names a whole path.
SOMEWHERE = "/etc/mirror"

CASES: dict[str, tuple[str, ...]] = {
    "active-active": ("active-active.properties",),
    "sample-of-kafka": ("sample-of-kafka.properties",),
    "secured": ("secured.properties",),
    "cloudera": ("cloudera.properties",),
    "msk": ("msk-source.json", "msk-checkpoint.json"),
    "msk-java-policy": ("msk-java-policy.json",),
    "connect-expanded": ("connect-expanded.json",),
    "checkpoint": ("checkpoint.json",),
    "group-offset": ("group-offset.json",),
    "standalone": ("standalone.properties",),
    "strimzi-active-passive": ("strimzi-active-passive.yaml",),
    "strimzi-identity": ("strimzi-identity.yaml",),
    "strimzi-v1": ("strimzi-v1.yaml",),
}
# One for each way in which MirrorMaker 2 is told, and for each step that not all need.
WITH_STEPS = (
    "active-active",
    "checkpoint",
    "connect-expanded",
    "group-offset",
    "msk-java-policy",
    "strimzi-identity",
    "strimzi-v1",
)
# Have to be changed before tsoffset takes them.
TO_BE_CHANGED = ("msk-java-policy",)
# Passwords that stand in the inputs.
SECRETS = ("correct-horse", "changeit-please", "in-the-clear", "of-two-roles")
