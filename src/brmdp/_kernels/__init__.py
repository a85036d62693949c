"""Compiled loops.

They trust their input, write into output arrays and import nothing else from this package.
"""
