"""One module an engine: run(config, length) returns what its own code computes for each layer, as read.record forms it."""


class Refused(Exception):
    """The engine does not take the configuration."""
