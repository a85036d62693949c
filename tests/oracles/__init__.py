"""Slow, obvious second implementations that the tests compare the package with."""
