"""tsoffset keeps consumer-group offsets on a target Kafka cluster in step with a source."""

__version__ = "0.1.0.dev0"
