"""``python -m brmdp``: the command line."""

from brmdp.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
