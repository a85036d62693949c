"""Slow, obvious second implementations to compare the package with."""
