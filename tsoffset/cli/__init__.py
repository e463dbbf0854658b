"""The entry point of `tsoffset`; the commands are `tsoffset.commands`."""
