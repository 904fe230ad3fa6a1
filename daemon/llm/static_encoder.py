"""Static models: a folder with a vector for each token, as model2vec writes it.

A text's vector is the mean of those of its tokens. The vectors stay in their file, of which the
kernel reads what is used. Runs only in the process of static models; numpy and tokenizers are
loaded with the first one.
"""

from __future__ import annotations

import hashlib
import importlib
import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from .failures import CallFailed
from .wire import Embedded

FILES: Final = ("tokenizer.json", "model.safetensors")
_TOKENIZER, _TENSORS = FILES
_KINDS: Final = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I8": "i1"}
_LONGEST_HEADER: Final = 1 << 20
_MOST_TOKENS: Final = 512
_MOST_MODELS: Final = 2
_CACHED_WORDS: Final = 64
_LARGEST: Final = 127.0


class _Tensor(msgspec.Struct):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


class _TokenModel(msgspec.Struct):
    unk_token: str | None = None
    unk_id: int | None = None


class _Tokenizer(msgspec.Struct):
    model: _TokenModel


class StaticEncoders:
    """The static models in use; one whose files have changed is loaded again."""

    def __init__(self) -> None:
        self._models: OrderedDict[Path, tuple[object, _StaticModel]] = OrderedDict()
        self._lock = threading.Lock()

    def encode(self, name: str, texts: Sequence[str]) -> Embedded:
        """Encode texts; `CallFailed` without a usable model. Blocking; safe on any thread.

        `name` is `static:` and the folder.
        """
        folder = Path(name.partition(":")[2])
        try:
            with self._lock:
                return self._model(folder).encode(texts)
        except ModuleNotFoundError as error:
            raise CallFailed("uninstalled", f"{error.name} is not installed") from error
        except OSError as error:
            why = f"cannot read {error.filename or folder}: {error.strerror or error}"
            raise CallFailed("not_found", f"no static model in {folder}: {why}") from error
        except (ValueError, LookupError, TypeError, msgspec.MsgspecError) as error:
            raise CallFailed("not_found", f"no static model in {folder}: {error}") from error

    def _model(self, folder: Path) -> _StaticModel:
        files = [(folder / name).stat() for name in FILES]
        state = [(file.st_ino, file.st_size, file.st_mtime_ns) for file in files]
        known = self._models.get(folder)
        if known is None or known[0] != state:
            known = self._models[folder] = state, _StaticModel(folder)
        self._models.move_to_end(folder)
        while len(self._models) > _MOST_MODELS:
            self._models.popitem(last=False)
        return known[1]


class _StaticModel:
    """One model, read from its folder."""

    def __init__(self, folder: Path) -> None:
        self._numpy: Any = importlib.import_module("numpy")
        tokenizers: Any = importlib.import_module("tokenizers")
        digest = hashlib.sha256()
        for name in FILES:
            with (folder / name).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        self.revision = digest.hexdigest()[:32]
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / _TOKENIZER))
        except Exception as error:  # the library raises no class of its own
            raise ValueError(f"{_TOKENIZER} is not a tokenizer ({error})") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        # Some tokenizers take a text for one word, and remember ten thousand of them.
        if hasattr(self._tokenizer.model, "_resize_cache"):
            self._tokenizer.model._resize_cache(_CACHED_WORDS)  # noqa: SLF001 - no other way
        # What the tokenizer does not know has no meaning.
        content = (folder / _TOKENIZER).read_bytes()
        model = msgspec.json.decode(content, type=_Tokenizer).model
        named = model.unk_token and self._tokenizer.token_to_id(model.unk_token)
        self._unknown = model.unk_id if named is None else named
        tensors = self._tensors(folder / _TENSORS)
        self._rows = tensors["embeddings"]
        self._weights, self._mapping = tensors.get("weights"), tensors.get("mapping")
        if self._rows.ndim != 2:
            raise ValueError(f"the embeddings in {_TENSORS} are no table")
        size = self._tokenizer.get_vocab_size()
        lengths = [len(self._rows)] if self._mapping is None else [len(self._mapping)]
        lengths += [] if self._weights is None else [len(self._weights)]
        if min(lengths) < size:
            raise ValueError(f"{_TENSORS} has vectors for {min(lengths)} of {size} tokens")

    def encode(self, texts: Sequence[str]) -> Embedded:
        encoded = self._tokenizer.encode_batch([*texts], add_special_tokens=False)
        vectors = tuple(self._vector(text.ids[:_MOST_TOKENS]) for text in encoded)
        return Embedded(vectors, int(self._rows.shape[1]), self.revision, 0, 0.0)

    def _vector(self, ids: list[int]) -> bytes | None:
        numpy = self._numpy
        tokens = numpy.array([token for token in ids if token != self._unknown], dtype="i8")
        if not len(tokens):
            return None
        rows = self._rows[tokens if self._mapping is None else self._mapping[tokens]]
        rows = rows.astype("f4")
        if self._weights is not None:
            rows *= self._weights[tokens].astype("f4")[:, None]
        mean = rows.mean(axis=0)
        largest = float(numpy.abs(mean).max())
        # The comparison is false for NaN, too.
        if not 0.0 < largest < float("inf"):
            return None
        return bytes(numpy.rint(mean * (_LARGEST / largest)).astype("i1").tobytes())

    def _tensors(self, path: Path) -> dict[str, Any]:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > min(size, _LONGEST_HEADER):
                raise ValueError(f"{path.name} is not in the format of safetensors")
            header = msgspec.json.decode(file.read(length), type=dict[str, msgspec.Raw])
        tensors = {}
        for name, raw in header.items():
            if name == "__metadata__":
                continue
            tensor = msgspec.json.decode(raw, type=_Tensor)
            if tensor.dtype not in _KINDS:
                raise ValueError(f"{path.name} has numbers of type {tensor.dtype}")
            begin, end = (8 + length + offset for offset in tensor.data_offsets)
            kind = self._numpy.dtype(_KINDS[tensor.dtype])
            if end > size or end - begin != kind.itemsize * math.prod(tensor.shape):
                raise ValueError(f"{path.name} is incomplete")
            tensors[name] = self._numpy.memmap(path, kind, "r", begin, tensor.shape)
        if "embeddings" not in tensors:
            raise ValueError(f"{path.name} has no tensor 'embeddings'")
        return tensors
