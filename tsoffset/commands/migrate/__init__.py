"""`tsoffset migrate`: converts MirrorMaker 2's configuration, and prints the steps from its
checkpoint connector to tsoffset.

`reading` recognizes the form of a file. `setup` and `strimzi` convert connectors and Kubernetes
resources into the form of a MirrorMaker 2 file. `sorting` decides for each setting whether it is
taken over, `run` writes the result. `flows` has what MirrorMaker 2 does for each flow, `steps` the
migration. Only `tsoffset.config` knows the settings.
"""
