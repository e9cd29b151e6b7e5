"""Every string that a client may send: tools, resources, prompts, completions, cursors."""

from collections.abc import Iterator, Mapping
from typing import Any

Request = tuple[str, Mapping[str, Any]]


def requests_with(payload: str) -> Iterator[Request]:
    """One request for each argument and address in which a payload can stand."""
    yield from (_tool(name, given) for name, given in _tool_arguments(payload))
    for uri in _addresses(payload):
        yield "resources/read", {"uri": uri}
    yield "resources/subscribe", {"uri": f"knowledge://core/{payload}"}
    yield "resources/list", {"cursor": payload}
    yield "prompts/get", {"name": payload, "arguments": {}}
    for name in ("task_type", "context", "language", payload):
        given = {"task_type": "coding", name: payload}
        yield "prompts/get", {"name": "sage_task_prompt", "arguments": given}
    yield from _completions(payload)


def ordinary_requests() -> Iterator[Request]:
    """What every client asks, once."""
    for listing in ("tools", "resources", "resources/templates", "prompts"):
        yield f"{listing}/list", {}
    yield _tool("sage_info", {})
    yield _tool("sage_get_knowledge", {"layer": "all"})
    yield _tool("sage_search", {"query": "quokka", "layer": "all"})
    yield _tool("sage_get_context", {"task_type": "coding"})
    yield _tool("sage_draft_note", {"text": "The quokka reads.", "files": ["src/**"]})
    yield "resources/read", {"uri": "knowledge://core"}
    yield "resources/read", {"uri": "related://core/healthy"}
    for name in ("sage_remember", "sage_summarise", "sage_find_contradictions"):
        about = "learned" if name == "sage_remember" else "topic"
        yield "prompts/get", {"name": name, "arguments": {about: "quokka"}}
    yield "prompts/get", {"name": "sage_task_prompt", "arguments": {"task_type": "coding"}}


def _tool_arguments(payload: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield payload, {}
    yield "sage_info", {payload: payload}
    yield "sage_get_knowledge", {"layer": payload}
    yield "sage_get_knowledge", {"layer": "all", "topic": payload}
    yield "sage_get_knowledge", {"layer": "core", "topic": f"core/{payload}"}
    yield "sage_search", {"query": payload}
    yield "sage_search", {"query": "quokka", "layer": payload}
    yield "sage_get_context", {"task_type": payload}
    yield (
        "sage_get_context",
        {"task_type": "coding", "language": payload[:50], "task": payload}
        | {"current_files": [payload]},
    )
    yield "sage_draft_note", {"text": payload, "title": payload[:200], "files": [payload]}


def _addresses(payload: str) -> Iterator[str]:
    yield payload
    yield f"knowledge://{payload}"
    yield f"knowledge://core/{payload}"
    yield f"knowledge://core/../{payload}"
    yield f"related://core/{payload}"
    yield f"skill://{payload}/SKILL.md"


def _completions(payload: str) -> Iterator[Request]:
    prompt = {"type": "ref/prompt", "name": "sage_task_prompt"}
    template = {"type": "ref/resource", "uri": "knowledge://{layer}/{topic*}"}
    for reference in (
        {"type": "ref/prompt", "name": payload},
        {"type": "ref/resource", "uri": payload},
    ):
        yield _completion(reference, "topic", "")
    yield _completion(prompt, payload, payload)
    yield _completion(prompt, "language", payload)
    yield _completion(template, "topic", payload)
    yield _completion(template, "topic", "", {"layer": payload})


def _completion(
    reference: Mapping[str, str], name: str, value: str, given: Mapping[str, str] | None = None
) -> Request:
    params: dict[str, Any] = {"ref": reference, "argument": {"name": name, "value": value}}
    return "completion/complete", params | ({"context": {"arguments": given}} if given else {})


def _tool(name: str, given: Mapping[str, Any]) -> Request:
    return "tools/call", {"name": name, "arguments": given}
