"""Items on disk: a corpus of any size in the memory of a small one."""

from __future__ import annotations

import pickle
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from ncu_exp.records import Item

IN_MEMORY_BYTES = 8 * 2**20  # of pickled items; beyond it they go to a file


class SpooledItems(Sequence[Item]):
    """Items in the order in which they were appended, read back one by one when asked for.

    The file has no name and is gone with the process, however that ends. In memory each item costs
    the eight bytes of its place in the file.
    """

    def __init__(self, file: _PickleFile | None = None, places: Iterable[int] = ()) -> None:
        self._file = file or _PickleFile()
        self._places = array("Q", places)

    def append(self, item: Item) -> None:
        self._places.append(self._file.append(item))

    def subset(self, indices: Iterable[int]) -> SpooledItems:
        """The items at `indices`, in that order, in the same file."""
        return SpooledItems(self._file, (self._places[index] for index in indices))

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self._file.read(place) for place in self._places[index]]
        return self._file.read(self._places[index])

    def __iter__(self) -> Iterator[Item]:
        return map(self._file.read, self._places)


class _PickleFile:
    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115

    def append(self, item: Item) -> int:
        place = self._file.seek(0, 2)
        pickle.dump(item, self._file, protocol=pickle.HIGHEST_PROTOCOL)
        return place

    def read(self, place: int) -> Item:
        self._file.seek(place)
        item: Item = pickle.load(self._file)  # noqa: S301  # what this process wrote itself
        return item

    def __del__(self) -> None:
        self._file.close()
