"""The names of a log's columns, before the log is read."""

from __future__ import annotations

from pathlib import Path

from brmdp._extras import optional
from brmdp.errors import InvalidInputError
from brmdp.logs.sources import PARQUET, TEXT, check_file, header_of
from brmdp.models.toml import shown

__all__ = ["column_names"]


def column_names(path: Path, delimiter: str, encoding: str) -> list[str]:
    """The names of the columns of a file, in their order."""
    check_file(path)
    name = path.name.lower()
    if name.endswith(TEXT):
        return header_of(path, delimiter, encoding)[0]
    if not name.endswith(PARQUET):
        raise InvalidInputError(
            f"a log must be a file that ends in {', '.join(TEXT + PARQUET)}; got {shown(path.name)}"
        )
    pa, parquet = optional("pyarrow", "decide"), optional("pyarrow.parquet", "decide")
    try:
        return list(parquet.read_schema(path).names)
    except (pa.ArrowException, OSError) as error:
        raise InvalidInputError(
            f"{shown(path.name)} is not a Parquet file: {error!s:.200}"
        ) from None
