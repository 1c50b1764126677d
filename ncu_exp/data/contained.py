"""What a hub dataset may have read: its own files, and nothing that its rows name.

A dataset's card can name any file of this machine as its data, and a column of pictures or sounds
can name any file or address, which `datasets` opens when a row is read. Neither is followed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ncu_exp.errors import DataError

HUB = "hf://datasets/"


def check_files(files: Iterable[str], hub_id: str) -> None:
    """Refuse files that lie outside a dataset of the hub, or outside the folder `hub_id`.

    `files` are absolute paths or URLs, of a member of an archive as `zip://member::archive`.
    Raises DataError that names the first file elsewhere.
    """
    folder = Path(hub_id).resolve() if Path(hub_id).is_dir() else None
    for file in files:
        *_, place = file.split("::")
        # Not resolved: a downloaded dataset may well be a folder of links.
        inside = place.startswith(HUB) if folder is None else Path(place).is_relative_to(folder)
        if not inside or ".." in Path(place).parts:
            raise DataError(
                f"The dataset {hub_id} names a file that is none of its own: {place}. If it is to "
                "be read, give it as dataset.path=FILE."
            )


def columns_elsewhere(features: Mapping[str, Any]) -> list[str]:
    """The columns of media: what would be opened to decode them need not be in the dataset."""
    return [name for name, feature in features.items() if _holds_media(feature)]


def _holds_media(feature: Any) -> bool:
    if isinstance(feature, Mapping):
        return any(map(_holds_media, feature.values()))
    if isinstance(feature, Sequence) and not isinstance(feature, str):
        return any(map(_holds_media, feature))
    if hasattr(feature, "feature"):  # a list of something
        return _holds_media(feature.feature)
    return hasattr(feature, "decode_example") and type(feature).__name__ != "Json"
