"""Drawings of states as text and as pixels, with NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["GridPainter", "Painter", "StockPainter"]

Picture = NDArray[np.uint8]

CELL, WIDEST, ROOM_FOR_NUMBERS = 56, 896, 28
INK, LINE, AGENT = (40, 44, 52), (150, 160, 170), (214, 48, 49)
TILES = {
    ".": (238, 240, 243),
    "F": (226, 240, 250),
    "~": (142, 190, 230),
    "S": (255, 232, 150),
    "G": (120, 200, 120),
    "H": (44, 62, 100),
    "J": (255, 165, 79),
}
"""Colours of plain states, ice, water, start, goal, holes and the shortcut."""

DIGITS = (
    "111101101101111",
    "010110010010111",
    "111001111100111",
    "111001111001111",
    "101101111001001",
    "111100111001111",
    "111100111101111",
    "111001001001001",
    "111101111101111",
    "111101111001111",
)
"""Pixels of the digits 0 to 9, each 5 rows of 3, row by row."""


class Painter(Protocol):
    """Draws a state."""

    def text(self, state: int) -> str:
        """The state as text."""
        ...

    def picture(self, state: int) -> Picture:
        """The state as a new (H, W, 3) array of bytes."""
        ...


@dataclass(frozen=True)
class GridPainter:
    """Draws states as cells of a map, row by row, with the agent as a disc or in brackets.

    Parameters
    ----------
    rows : tuple of str, all of one length
        One letter of :data:`TILES` per cell; blanks fill the last row.
    """

    rows: tuple[str, ...]

    @classmethod
    def of_states(cls, n_states: int) -> GridPainter:
        """A nearly square map, for states without a natural place on one."""
        width = int(np.ceil(np.sqrt(n_states)))
        cells = "." * n_states
        return cls(
            tuple(cells[begin : begin + width].ljust(width) for begin in range(0, n_states, width))
        )

    def text(self, state: int) -> str:
        """The map, with brackets around the agent's cell."""
        cells = [[f" {letter} " for letter in letters] for letters in self.rows]
        row, column = divmod(state, len(self.rows[0]))
        cells[row][column] = f"[{self.rows[row][column]}]"
        return "\n".join("".join(line) for line in cells)

    def picture(self, state: int) -> Picture:
        """The map with numbered cells and the agent as a disc."""
        row, column = divmod(state, len(self.rows[0]))
        return self.picture_at(column + 0.5, row + 0.5)

    def picture_at(self, x: float, y: float) -> Picture:
        """The map with the agent at any point, in units of cells from the upper left corner."""
        picture = self._empty.copy()
        size = self._size
        down, across = (np.arange(pixels) + 0.5 for pixels in picture.shape[:2])
        distance = np.hypot(down[:, None] - y * size, across - x * size)
        picture[distance <= 0.30 * size] = INK
        picture[distance <= 0.26 * size] = AGENT
        return picture

    @property
    def _size(self) -> int:
        """Width of a cell in pixels, smaller on large maps."""
        return max(4, min(CELL, WIDEST // len(self.rows[0])))

    @cached_property
    def _empty(self) -> Picture:
        """The map without the agent."""
        size, width = self._size, len(self.rows[0])
        picture = np.full((size * len(self.rows), size * width, 3), 255, dtype=np.uint8)
        for state, letter in enumerate("".join(self.rows).rstrip()):
            row, column = divmod(state, width)
            cell = picture[row * size : (row + 1) * size, column * size : (column + 1) * size]
            fill(cell, TILES[letter])
            if size >= ROOM_FOR_NUMBERS:
                write_number(cell[4:, 4:], state, TILES["F"] if letter == "H" else INK, 2)
        return picture


@dataclass(frozen=True)
class StockPainter:
    """Draws a stock as a shelf with one place per unit, and the stock as a number beside it.

    Parameters
    ----------
    capacity : int
        Number of places on the shelf.
    """

    capacity: int

    def text(self, state: int) -> str:
        """The shelf, with # for units in stock."""
        return f"[{'#' * state}{'.' * (self.capacity - state)}] {state} of {self.capacity}"

    def picture(self, state: int) -> Picture:
        """The shelf, filled from the left."""
        size = max(4, min(CELL, WIDEST // (self.capacity + 2)))
        picture = np.full((size, size * (self.capacity + 2), 3), 255, dtype=np.uint8)
        write_number(picture[size // 5 :, size // 5 :], state, INK, max(1, size // 9))
        for place in range(self.capacity):
            cell = picture[:, (place + 2) * size : (place + 3) * size]
            fill(cell, TILES["J"] if place < state else TILES["."])
        return picture


def fill(cell: Picture, colour: tuple[int, int, int]) -> None:
    """Paint a cell and its border."""
    cell[:] = LINE
    cell[1:-1, 1:-1] = colour


def write_number(area: Picture, number: int, colour: tuple[int, int, int], scale: int) -> None:
    """Write a number at the upper left of an area, cutting off what does not fit."""
    digits: list[NDArray[Any]] = []
    for digit in str(number):
        bits = np.array([bit == "1" for bit in DIGITS[int(digit)]])
        digits.append(np.pad(bits.reshape(5, 3), ((0, 0), (0, 1))))
    ink = (
        np.hstack(digits)
        .repeat(scale, axis=0)
        .repeat(scale, axis=1)[: area.shape[0], : area.shape[1]]
    )
    area[: ink.shape[0], : ink.shape[1]][ink] = colour
