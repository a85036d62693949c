"""Check the built site; ``make docs`` ends with this."""
