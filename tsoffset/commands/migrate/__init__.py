"""`tsoffset migrate`: from what MirrorMaker 2 is configured by to a configuration of ours, and the
steps from its checkpoint connector to tsoffset.

`reading` tells what a file is; `connectors` and `strimzi` bring connectors and Kubernetes resources
into the form of a MirrorMaker 2 file, `sorting` says what becomes of each setting there, `writing`
makes our file of it, `flows` tells what MirrorMaker 2 does for each flow, `steps` what to do about
it. Which settings are known is said by `tsoffset.config` alone.
"""
