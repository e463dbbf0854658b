"""The version of tsoffset, which the wheel, the image and client software names carry."""

__version__ = "0.1.0.dev0"
