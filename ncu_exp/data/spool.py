"""Items on disk: a corpus of any size in the memory of a small one."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import overload

from ncu_exp.records import AnswerType, ContextSource, Item, Passage

IN_MEMORY_BYTES = 8 * 2**20  # of items as JSON; beyond it they go to a file


class SpooledItems(Sequence[Item]):
    """Items in the order in which they were appended, read back one by one when asked for.

    The file has no name and is gone with the process, however that ends. In memory each item costs
    the eight bytes of its place in the file.
    """

    def __init__(self, file: _LineFile | None = None, places: Iterable[int] = ()) -> None:
        self._file = file or _LineFile()
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


class _LineFile:
    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115

    def append(self, item: Item) -> int:
        place = self._file.seek(0, 2)
        self._file.write(_line(item))
        return place

    def read(self, place: int) -> Item:
        self._file.seek(place)
        return _item(self._file.readline())

    def __del__(self) -> None:
        self._file.close()


_NAMES = [field.name for field in fields(Item)]
_values_of_item = attrgetter(*_NAMES)
_values_of_passage = attrgetter(*(field.name for field in fields(Passage)))


def _line(item: Item) -> bytes:
    told = dict(zip(_NAMES, _values_of_item(item), strict=True))
    told["passages"] = [_values_of_passage(passage) for passage in item.passages]
    line = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    return line.encode("utf-8", "surrogatepass") + b"\n"


def _item(line: bytes) -> Item:
    """The item that such a line holds."""
    told = json.loads(line.decode("utf-8", "surrogatepass"))
    told["aliases"] = tuple(told["aliases"])
    told["passages"] = tuple(Passage(*values) for values in told["passages"])
    told["context_source"] = ContextSource(told["context_source"])
    if told["answer_type"] is not None:
        told["answer_type"] = AnswerType(told["answer_type"])
    return Item(**told)
