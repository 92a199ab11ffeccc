"""Reads JSON values out of files that are no text: Inspect's archives, and traces in protobuf. Nothing is run."""

from __future__ import annotations

import base64
import binascii
import io
import struct
import zipfile
from collections.abc import Iterator
from importlib import import_module
from typing import IO, Any, BinaryIO, Final, cast

from lessonbank.contracts.records import Json
from lessonbank.errors import MissingExtra
from lessonbank.text.bounded_json import parse

PROTOBUF: Final = (".pb", ".binpb", ".otlp")
"""How files with traces in protobuf end: nothing inside says what they are."""
ZIP: Final = b"PK\x03\x04"
_MOST: Final = 20_000
"""Files in an archive."""
_MOST_TIMES: Final = 250
_ZSTD: Final = 93
_WINDOW: Final = 2**27
"""Bytes that zstd may look back."""
_HEADERS: Final = ("header.json", "_journal/start.json")


def logs(file: BinaryIO, /, *, limit: int) -> Iterator[Json | str]:
    """The samples of an Inspect archive, each as a log with one sample; why one cannot be read, as a text.

    Raises:
        OSError: it is no archive, holds too many files, or unpacks to more than 250 times its size.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            names = [name for name in archive.namelist() if name.startswith("samples/") and name.endswith(".json")]
            if len(archive.namelist()) > _MOST:
                raise OSError(f"the archive holds more than {_MOST:,} files")
            head = next((name for name in _HEADERS if name in archive.namelist()), "")
            reading = _Archive(archive, limit, file)
            spec = reading.value(head) if head else None
            for name in sorted(names):
                sample = reading.value(name)
                if isinstance(sample, str):
                    yield f"{name[:200]}: {sample}"
                else:
                    yield {"eval": spec.get("eval") if isinstance(spec, dict) else None, "samples": [sample]}
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"the archive cannot be read: {error}") from error


class _Archive:
    """An archive and how much of it may still be unpacked."""

    def __init__(self, archive: zipfile.ZipFile, limit: int, file: BinaryIO) -> None:
        self._archive, self._limit, self._file = archive, limit, file
        self._left = limit + _MOST_TIMES * file.seek(0, 2)

    def value(self, name: str) -> Json | str:
        """The JSON value in a file of the archive, or why there is none."""
        with self._opened(self._archive.getinfo(name)) as inner:
            raw = inner.read(self._limit + 1)
        self._left -= len(raw)
        if self._left < 0:
            raise OSError(f"it unpacks to more than {_MOST_TIMES} times its size")
        if len(raw) > self._limit:
            return f"it is larger than {self._limit >> 20} MB"
        try:
            value = parse(raw)
        except ValueError as error:
            return f"not valid JSON: {str(error)[:200]}"
        return value if isinstance(value, dict) else "it is no object"

    def _opened(self, info: zipfile.ZipInfo) -> IO[bytes]:
        """A file of the archive. Python knows zstd from 3.14 on."""
        if info.compress_type != _ZSTD or hasattr(zipfile, "ZIP_ZSTANDARD"):
            return self._archive.open(info)
        try:
            zstd: Any = import_module("zstandard")
        except ImportError:
            raise OSError(str(MissingExtra("an Inspect log that is packed with zstd", extra="zstd"))) from None
        self._file.seek(info.header_offset + 26)
        lengths = self._file.read(4)
        self._file.seek(sum(struct.unpack("<HH", lengths)), io.SEEK_CUR)
        raw = io.BytesIO(self._file.read(min(info.compress_size, self._limit)))
        unpacker = zstd.ZstdDecompressor(max_window_size=_WINDOW)
        return cast("IO[bytes]", unpacker.stream_reader(raw, read_across_frames=True))


def traces(raw: bytes, /) -> list[Json]:
    """The exports in a file of OTLP protobuf: one request, or several that each begin with their length.

    Raises:
        OSError: it holds none, or the package for it is not installed.
    """
    try:
        protobuf: Any = import_module("google.protobuf.json_format")
        service: Any = import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    except ImportError:
        raise OSError(str(MissingExtra("a file in protobuf", extra="otel"))) from None
    request = service.ExportTraceServiceRequest
    try:
        exports = [request.FromString(part) for part in _parts(raw)]
        return [_with_ids(cast("Json", protobuf.MessageToDict(export))) for export in exports if export.resource_spans]
    except Exception as error:  # noqa: BLE001 - see below
        # What protobuf raises for bytes that are none of its messages has no class that can be named without it.
        raise OSError(f"it is no OTLP trace in protobuf: {str(error)[:200]}") from None


def _parts(raw: bytes) -> Iterator[bytes]:
    """The messages of a file: each behind its length in four bytes, as the collector writes them, or the one."""
    parts, at = list[bytes](), 0
    while at + 4 <= len(raw):
        size = int.from_bytes(raw[at : at + 4], "big")
        if size == 0 or at + 4 + size > len(raw):
            break
        parts.append(raw[at + 4 : at + 4 + size])
        at += 4 + size
    yield from parts if parts and at == len(raw) else [raw]


def _with_ids(value: Json) -> Json:
    """Ids in hexadecimal digits, as in OTLP's JSON."""
    if isinstance(value, list):
        return [_with_ids(child) for child in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _hex(child) if name in ("traceId", "spanId", "parentSpanId") else _with_ids(child)
        for name, child in value.items()
    }


def _hex(value: Json) -> Json:
    try:
        return base64.b64decode(str(value), validate=True).hex()
    except (binascii.Error, ValueError):
        return value
