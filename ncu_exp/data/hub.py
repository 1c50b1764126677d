"""Rows from the network: the hub's datasets, and single files on the web.

`datasets` caches both, and finds them again without a network. Where nothing answers and nothing
is cached, the error comes within seconds and not after the hub client's retries.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from ncu_exp.config import Corpus, DatasetConfig
from ncu_exp.data.contained import check_files, columns_elsewhere
from ncu_exp.data.readers import read_file
from ncu_exp.data.rows import Row
from ncu_exp.errors import DataError, NetworkError
from ncu_exp.network import hub_answers

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 60.0
LOCAL_WAY = (
    "Without a network give a local file in the same schema (JSONL, JSON, CSV or Parquet) with "
    "dataset.path=FILE, or use the bundled items (dataset=sample)."
)


def read_hub(config: DatasetConfig) -> Iterator[Row]:
    """The rows of `split` of the hub dataset `hub_id`, or of a local folder laid out like one.

    Columns of pictures, sounds and the like are left out. Raises NetworkError where the hub does
    not answer and the cache does not hold the dataset, and DataError where the hub has no such
    dataset, configuration, split or revision, and where the dataset names files elsewhere.
    """
    import datasets
    from datasets.exceptions import DatasetsError
    from huggingface_hub.utils import httpx  # type: ignore[attr-defined]  # or httpx2, by version

    assert config.hub_id is not None
    is_folder = Path(config.hub_id).is_dir()
    if not is_folder and not _is_cached(config.hub_id) and not _hub_answers():
        raise NetworkError(f"The hub does not answer, cannot load {config.hub_id}. {LOCAL_WAY}")
    try:
        builder = datasets.load_dataset_builder(
            config.hub_id,
            config.hub_config,
            revision=config.revision,
            features=_folder_features(config.name) if is_folder else None,
        )
        check_files(chain(*(builder.config.data_files or {}).values()), config.hub_id)
        builder.download_and_prepare()
        dataset = builder.as_dataset(split=config.split)
    except (ConnectionError, TimeoutError, httpx.HTTPError) as error:
        raise NetworkError(f"The hub did not give {config.hub_id}: {error}. {LOCAL_WAY}") from error
    except (DatasetsError, FileNotFoundError, ValueError, RuntimeError) as error:
        raise DataError(
            f"The hub dataset {config.hub_id} cannot be loaded with dataset.split={config.split}, "
            f"dataset.hub_config={config.hub_config}, dataset.revision={config.revision}: {error} "
            "A local file in the same schema can stand in for it: dataset.path=FILE."
        ) from error
    texts = dataset.remove_columns(columns_elsewhere(dataset.features))
    for number, record in enumerate(texts, start=1):
        yield Row(f"{config.hub_id} ({config.split})", number, record)


def read_web_file(url: str) -> Iterator[Row]:
    """The rows of a file on the web; its format follows the suffix in the URL.

    The file is downloaded once and then read from the cache of `datasets`, by the reader of local
    files: no type inference, and errors name the line. Raises NetworkError where it cannot be had.
    """
    import aiohttp
    import datasets

    timeout = aiohttp.ClientTimeout(sock_connect=CONNECT_TIMEOUT_S, sock_read=READ_TIMEOUT_S)
    parts = urlsplit(url)
    download = datasets.DownloadConfig(
        use_etag=False,  # a cached copy is found without asking the server
        storage_options={parts.scheme: {"client_kwargs": {"timeout": timeout}}},
    )
    try:
        copy = datasets.DownloadManager(download_config=download).download(url)
    except (OSError, ValueError, aiohttp.ClientError) as error:
        reason = error.__cause__ or error  # fsspec says "not found" whatever went wrong
        raise NetworkError(f"Cannot fetch dataset.hub_file={url}: {reason}. {LOCAL_WAY}") from error
    yield from read_file(Path(copy), name=PurePosixPath(parts.path).name)


def _hub_answers() -> bool:
    import datasets

    # Offline by the user's wish: the client says so at once.
    return bool(datasets.config.HF_HUB_OFFLINE) or hub_answers(datasets.config.HF_ENDPOINT)


def _is_cached(hub_id: str) -> bool:
    """Whether `datasets` has prepared some configuration of this dataset before."""
    import datasets
    from datasets.naming import camelcase_to_snakecase

    *namespace, name = hub_id.split("/")
    folder = "___".join([*namespace, camelcase_to_snakecase(name)])
    return (Path(datasets.config.HF_DATASETS_CACHE) / folder).is_dir()


def _folder_features(corpus: Corpus) -> Any:
    """The column types of a folder's JSON files where `datasets` would infer wrong ones.

    rc.wikipedia has no search results: their columns are inferred as null, and the first file or
    block that does hold some fails to load. The hub's own datasets declare their types.
    """
    if corpus is not Corpus.triviaqa:
        return None
    from datasets import Features, List, Value

    text, texts = Value("string"), List(Value("string"))
    pages = ("doc_source", "filename", "title", "wiki_context")
    results = ("description", "filename", "title", "url", "search_context")
    lists = ("aliases", "normalized_aliases")
    names = ("matched_wiki_entity_name", "normalized_matched_wiki_entity_name")
    values = (*names, "normalized_value", "type", "value")
    return Features(
        {
            "question": text,
            "question_id": text,
            "question_source": text,
            "entity_pages": dict.fromkeys(pages, texts),
            "search_results": dict.fromkeys(results, texts) | {"rank": List(Value("int32"))},
            "answer": dict.fromkeys(lists, texts) | dict.fromkeys(values, text),
        }
    )
