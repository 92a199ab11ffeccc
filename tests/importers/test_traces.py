"""What tracing services and evaluation tools keep of an agent becomes runs, however hostile the file is."""

from __future__ import annotations

import base64
import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

from lessonbank.contracts.records import Trajectory
from lessonbank.errors import FormatError
from lessonbank.importers import Entry, Imported, Skipped, detect, read

pytestmark = pytest.mark.full
STORED = Path(__file__).parents[1] / "fixtures" / "traces"
ORDER = "Cancel the order W123"
FILES = {
    "langfuse.json": "langfuse",
    "langfuse_export.jsonl": "langfuse",
    "langsmith.jsonl": "langsmith",
    "openinference.json": "otel",
}


def runs(entries: list[Entry]) -> list[Trajectory]:
    return [entry.trajectory for entry in entries if isinstance(entry, Imported)]


def reasons(path: Path, **how: Any) -> str:
    return " / ".join(entry.reason for entry in read(path, **how) if isinstance(entry, Skipped))


@pytest.mark.parametrize("name", FILES)
def test_calls_of_a_trace_become_one_run_in_their_order_whatever_the_order_of_the_file(name: str) -> None:
    assert detect(STORED / name) == FILES[name]
    [run] = runs(list(read(STORED / name)))
    assert (run.task, run.instructions) == (ORDER, "Only pending orders can be cancelled.")
    [call] = [call for step in run.steps for call in step.action.calls]
    assert (call.name, call.arguments, call.id) == ("get_order", {"id": "W123"}, "c1")
    [seen] = [seen for step in run.steps[1:] for seen in step.observations]
    assert (seen.text, seen.source, seen.call_id) == ('{"status": "pending"}', "tool", "c1")
    assert run.answer == "It is cancelled."
    assert (run.usage.requests, run.usage.input_tokens, run.usage.output_tokens) == (2, 50, 12)
    assert run.metadata["model"] == "gpt-9"


def test_a_trace_of_one_service_is_the_same_run_in_each_of_its_exports() -> None:
    [page], [export] = (runs(list(read(STORED / name))) for name in ("langfuse.json", "langfuse_export.jsonl"))
    assert page == export


def test_a_failed_root_is_the_error_of_its_run(tmp_path: Path) -> None:
    trace = json.loads((STORED / "langfuse.json").read_text())
    trace["observations"][0] |= {"level": "ERROR", "statusMessage": "the upstream closed the connection"}
    (tmp_path / "a.json").write_text(json.dumps(trace))
    assert runs(list(read(tmp_path / "a.json")))[0].error == "the upstream closed the connection"
    rows = [json.loads(line) for line in (STORED / "langsmith.jsonl").read_text().splitlines()]
    rows[0]["error"] = "GraphRecursionError()"
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert runs(list(read(tmp_path / "b.jsonl")))[0].error == "GraphRecursionError()"


# --- OTLP in protobuf ------------------------------------------------------------------------------------------------


def recorded() -> bytes:
    """The stored OpenInference trace as the collector writes it in protobuf."""
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="no otel extra")
    forms = pytest.importorskip("google.protobuf.json_format")
    told = json.loads((STORED / "openinference.json").read_text())
    for span in told["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in ("traceId", "spanId", "parentSpanId"):  # protobuf's own JSON has bytes in base64
            span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return forms.ParseDict(told, service.ExportTraceServiceRequest()).SerializeToString()


@pytest.mark.parametrize("framed", [False, True])
def test_otlp_in_protobuf_is_the_same_run_as_in_json(framed: bool, tmp_path: Path) -> None:
    raw = recorded()
    (tmp_path / "traces.binpb").write_bytes(len(raw).to_bytes(4, "big") + raw if framed else raw)
    assert detect(tmp_path / "traces.binpb") == "otel"
    assert runs(list(read(tmp_path / "traces.binpb"))) == runs(list(read(STORED / "openinference.json")))
    assert runs(list(read(tmp_path))) == runs(list(read(tmp_path / "traces.binpb")))


def test_what_the_sdk_exports_is_read(tmp_path: Path) -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="no OpenTelemetry SDK")
    encoder = pytest.importorskip("opentelemetry.exporter.otlp.proto.common.trace_encoder", reason="no OTLP encoder")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    provider, exporter = sdk.TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    sent = [{"role": "user", "parts": [{"type": "text", "content": ORDER}]}]
    back = [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}]
    with provider.get_tracer("t").start_as_current_span("chat m") as span:
        span.set_attribute("gen_ai.operation.name", "chat")
        span.set_attribute("gen_ai.input.messages", json.dumps(sent))
        span.set_attribute("gen_ai.output.messages", json.dumps(back))
    (tmp_path / "a.pb").write_bytes(encoder.encode_spans(exporter.get_finished_spans()).SerializeToString())
    [run] = runs(list(read(tmp_path / "a.pb")))
    assert (run.task, run.answer) == (ORDER, "Done.")


def test_bytes_that_are_no_protobuf_are_named(tmp_path: Path) -> None:
    recorded()
    draw = random.Random(5)
    for number, raw in enumerate((b"", b"\x0a", draw.randbytes(900), b"\x80\x04\x95pickle.", b"\x0a\xff" * 40)):
        (tmp_path / f"{number}.pb").write_bytes(raw)
        with pytest.raises(FormatError):
            list(read(tmp_path / f"{number}.pb"))


# --- Inspect ---------------------------------------------------------------------------------------------------------


def test_an_inspect_archive_and_its_json_hold_the_same_runs_with_their_scores() -> None:
    [archive, plain] = (list(read(STORED / name)) for name in ("inspect.eval", "inspect.json"))
    assert (detect(STORED / "inspect.eval"), detect(STORED / "inspect.json")) == ("inspect", "inspect")
    assert runs(archive) == runs(plain)
    told = {run.trajectory.task: run.verdict for run in archive if isinstance(run, Imported)}
    assert {task: verdict and (verdict.outcome, verdict.source) for task, verdict in told.items()} == {
        ORDER: ("success", "ground_truth"),
        "Cancel the order W999": ("failure", "ground_truth"),
    }
    run = next(run for run in runs(archive) if run.task == ORDER)
    [call] = [call for step in run.steps for call in step.action.calls]
    assert (call.name, call.arguments) == ("get_order", {"id": "W123"})
    assert any("pending" in seen.text and seen.source == "tool" for step in run.steps for seen in step.observations)
    assert run.metadata["model"] == "mockllm/model"


def test_scorers_that_disagree_decide_nothing_and_one_that_asks_a_model_is_a_judge(tmp_path: Path) -> None:
    log = json.loads((STORED / "inspect.json").read_text())
    log["samples"] = log["samples"][:1]
    sample = log["samples"][0]

    def verdict(scores: dict[str, Any]) -> tuple[str, str] | None:
        sample["scores"] = scores
        (tmp_path / "a.json").write_text(json.dumps(log))
        [entry] = read(tmp_path / "a.json")
        assert isinstance(entry, Imported)
        return entry.verdict and (entry.verdict.outcome, entry.verdict.source)

    assert verdict({"match": {"value": "C"}}) == ("success", "ground_truth")
    assert verdict({"match": {"value": "C"}, "f1": {"value": 0.2}}) is None
    assert verdict({"model_graded_qa": {"value": "C"}}) == ("success", "judge")
    assert verdict({"match": {"value": {"a": 1}}}) is None
    assert verdict({}) is None


def archive(**files: bytes | str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("header.json", json.dumps({"eval": {"task": "t", "run_id": "r", "model": "m"}}))
        for name, text in files.items():
            packed.writestr(f"samples/{name}.json", text)
    return made.getvalue()


SAMPLE = json.dumps({"id": 1, "epoch": 1, "input": "x", "messages": [{"role": "user", "content": "x"}]})


def test_an_archive_is_unpacked_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lessonbank.importers._files.RECORD_LIMIT", 2**20)
    place = tmp_path / "a.eval"
    place.write_bytes(archive(a=SAMPLE, b=b" " * 2**21 + b"{}", c="{", d="[]", e=SAMPLE.replace("1", "2")))
    assert len(runs(list(read(place)))) == 2
    assert "larger than 1 MB" in reasons(place)
    assert "not valid JSON" in reasons(place)
    monkeypatch.setattr("lessonbank.importers._packed._MOST_TIMES", 10)
    place.write_bytes(archive(**{f"s{n:03}": b" " * 2**19 + b"{}" for n in range(30)}, z=SAMPLE))
    assert "unpacks to more than 10 times its size" in reasons(place)
    place.write_bytes(archive(a=SAMPLE)[:-30])
    with pytest.raises(FormatError, match="archive cannot be read"):
        list(read(place))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        packed.writestr("../../etc/passwd", "x")
    place.write_bytes(made.getvalue())
    with pytest.raises(FormatError):
        list(read(place))


def test_whatever_a_trace_file_holds_it_is_read_or_skipped(tmp_path: Path) -> None:
    draw, read_ones = random.Random(3), 0
    wholes = {name: (STORED / name).read_bytes() for name in (*FILES, "inspect.eval", "inspect.json")}
    wholes["a.pb"] = recorded()
    values = [
        b"null",
        b"[]",
        b"{}",
        b'"x"',
        b"1e999",
        b"-1",
        b'{"0": {"message": []}}',
        b"[[[[]]]]",
        b'"attachment://x"',
    ]
    for number in range(350):
        name = draw.choice(list(wholes))
        whole = bytearray(wholes[name])
        for _ in range(draw.choice((1, 2, 8))):
            at = draw.randrange(len(whole))
            if name.endswith((".json", ".jsonl")) and draw.random() < 0.7:
                start = whole.find(b":", at)
                end = min((i for i in (whole.find(sign, start + 1) for sign in (b",", b"}")) if i > 0), default=at)
                whole[start + 1 : end] = draw.choice(values)
            else:
                whole[at : at + draw.choice((0, 1, 4))] = draw.randbytes(draw.choice((0, 1, 3)))
        place = tmp_path / f"{number}-{name}"
        place.write_bytes(whole)
        try:
            read_ones += len(runs(list(read(place))))
        except FormatError:
            continue
    assert read_ones > 50


def requests(service: str, first: str, second: str) -> list[dict[str, Any]]:
    """Two calls of a model as a service keeps them, the later one first."""
    asked, answer = {"role": "user", "content": "Fix it"}, {"role": "assistant", "content": "Fixed"}
    more, last = {"role": "user", "content": "And the docs"}, {"role": "assistant", "content": "Both"}
    kept: list[dict[str, Any]] = []
    for id, start, sent, back in (("b", second, [asked, answer, more], last), ("a", first, [asked], answer)):
        whole = {"messages": [{"role": m["role"], "parts": [{"type": "text", "content": m["content"]}]} for m in sent]}
        reply = {"role": "assistant", "parts": [{"type": "text", "content": back["content"]}]}
        attributes = {"gen_ai.input.messages": whole["messages"], "gen_ai.output.messages": [reply]}
        kept.append(
            {
                "langfuse": {
                    "id": id,
                    "type": "GENERATION",
                    "traceId": "t",
                    "startTime": start,
                    "input": sent,
                    "output": back,
                },
                "langsmith": {
                    "id": id,
                    "trace_id": "t",
                    "run_type": "llm",
                    "start_time": start,
                    "inputs": {"messages": sent},
                    "outputs": {"output": back},
                },
                "otel": {"traceId": "t", "spanId": id, "start_time": start, "attributes": attributes},
            }[service]
        )
    return kept


@pytest.mark.parametrize("service", ["langfuse", "langsmith", "otel"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2026-01-01T10:00:00Z", "2026-01-01T10:00:00.5Z"),
        ("2026-01-01T10:00:00.100000Z", "2026-01-01T10:00:01Z"),
        ("2026-01-01T10:00:00.9Z", "2026-01-01T10:00:00.9001Z"),
        ("2026-01-01T10:00:00+02:00", "2026-01-01T09:00:00Z"),
        ("2026-01-01 10:00:00.000", "2026-01-01T10:00:01"),
    ],
)
def test_calls_stand_in_their_order_whatever_the_form_and_zone_of_their_times(
    service: str, first: str, second: str, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, requests(service, first, second))))
    assert detect(tmp_path / "a.jsonl") == service
    [run] = runs(list(read(tmp_path / "a.jsonl")))
    assert [step.action.text for step in run.steps if step.action.text] == ["Fixed", "Both"]


def test_a_tool_of_inspect_that_failed_without_words_failed(tmp_path: Path) -> None:
    log = json.loads((STORED / "inspect.json").read_text())
    [message] = [m for m in log["samples"][0]["messages"] if m["role"] == "tool"]
    message["error"] = {"type": "timeout", "message": ""}
    (tmp_path / "a.json").write_text(json.dumps(log))
    run = runs(list(read(tmp_path / "a.json")))[0]
    assert [seen.is_error for step in run.steps for seen in step.observations if seen.source == "tool"] == [True]
