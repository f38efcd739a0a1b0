"""Terraform schemas out of the TypeScript classes that CDKTF generates from them.

Each class names its attributes with `// name - computed: …, optional: …, required: …`, and each settable one with its
kind (`isBlock`, `type`, `storageClassType`). The packages' inline source maps have the classes. They lack value
validators, conflicts between arguments, and bounds above one on the number of blocks.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import Any

SOURCE_MAP = re.compile(r"sourceMappingURL=data:application/json;base64,([A-Za-z0-9+/=]+)")
CLASS = re.compile(r"^export class (\w+) extends cdktf\.(\w+)", re.MULTILINE)
HCL_FUNCTION = re.compile(r"^export function (\w+)ToHclTerraform\(.*?^}", re.MULTILINE | re.DOTALL)
ATTRIBUTE = re.compile(
    r"  // (?P<name>\w+) - computed: (?P<computed>\w+), optional: (?P<optional>\w+), required: (?P<required>\w+)\n"
    r"(?P<field>  private [^\n]*\n)?"
    r"  public get \w+\(\)[^{]*\{\n(?P<getter>.*?)\n  \}",
    re.DOTALL,
)
SETTABLE = re.compile(
    r"^ +(?P<name>\w+): \{\n +value: [^\n]+\n +isBlock: (?P<block>true|false),\n"
    r' +type: "(?P<nesting>\w+)",\n +storageClassType: "(?P<storage>\w+)",',
    re.MULTILINE,
)
INTERFACE = re.compile(r"^export interface (\w+)[^{]*\{\n(.*?)^}", re.MULTILINE | re.DOTALL)
MANDATORY = re.compile(r"^  readonly (\w+): ", re.MULTILINE)
FIELD_CLASS = re.compile(r"new (?P<cls>(?:cdktf\.)?\w+)\(this, \"\w+\"(?:, (?P<set>true|false))?\)")
PRIMITIVES = {"string": "string", "number": "number", "boolean": "bool", "any": "dynamic"}
SINGLE = "OutputReference"

Type = str | list[Any]  # as in `terraform providers schema -json`


class NotUnderstood(Exception):
    """The generated class does not have the expected form."""


@dataclass(frozen=True)
class Settable:
    block: bool
    nesting: str  # simple, list, set, map, struct
    storage: str


def schema(javascript: str, terraform_name: str) -> dict[str, Any]:
    """`{"block": …}` of the resource, data source or provider whose folder holds `javascript`."""
    return {"block": _Reader(source(javascript), terraform_name).root()}


def source(javascript: str) -> str:
    """The TypeScript sources of the files."""
    maps = (json.loads(base64.b64decode(found)) for found in SOURCE_MAP.findall(javascript))
    return "\n".join(text for found in maps for text in found["sourcesContent"])


class _Reader:
    def __init__(self, source: str, terraform_name: str) -> None:
        self._name = terraform_name
        starts = [(found.start(), found[1], found[2]) for found in CLASS.finditer(source)]
        ends = [*(start for start, _, _ in starts[1:]), len(source)][: len(starts)]
        self._bodies = {name: source[start:end] for (start, name, _), end in zip(starts, ends, strict=True)}
        self._roots = [name for _, name, base in starts if base.startswith("Terraform")]
        self._mandatory = {
            found[1]: {name.lower() for name in MANDATORY.findall(found[2])} for found in INTERFACE.finditer(source)
        }
        self._functions = {found[1].lower(): found[0] for found in HCL_FUNCTION.finditer(source)}

    def root(self) -> dict[str, Any]:
        if len(self._roots) != 1:
            raise NotUnderstood(f"{self._name}: {len(self._roots)} resource classes")
        body = self._bodies[self._roots[0]]
        return self._block(body, _settables(body[body.find("synthesizeHclAttributes") :]))

    def _struct(self, base: str) -> dict[str, Any]:
        settables = _settables(self._functions.get(base.lower(), ""))
        body = self._bodies.get(base + SINGLE)
        return self._configuration(base, settables) if body is None else self._block(body, settables)

    def _configuration(self, base: str, settables: dict[str, Settable]) -> dict[str, Any]:
        """A provider's own block. It is only written, so that it has an interface and no class."""
        if base not in self._mandatory:
            raise NotUnderstood(f"{self._name}: neither class nor interface {base}")
        block: dict[str, Any] = {"attributes": {}, "block_types": {}}
        for name, settable in settables.items():
            required = name.replace("_", "").lower() in self._mandatory[base]
            if settable.block:
                nested = {"nesting_mode": settable.nesting, "block": self._struct(_base(settable.storage))}
                block["block_types"][name] = nested | ({"min_items": 1} if required else {})
            else:
                flag = "required" if required else "optional"
                block["attributes"][name] = {"type": self._settable_type(settable), flag: True}
        return block

    def _block(self, body: str, settables: dict[str, Settable]) -> dict[str, Any]:
        attributes: dict[str, Any] = {}
        blocks: dict[str, Any] = {}
        for found in ATTRIBUTE.finditer(body):
            settable = settables.pop(found["name"], None)
            if settable and settable.block:
                blocks[found["name"]] = self._nested(found, settable)
                continue
            flags = {flag: True for flag in ("computed", "optional", "required") if found[flag] == "true"}
            attributes[found["name"]] = {"type": self._type(found, settable), **flags}
        if settables:
            raise NotUnderstood(f"{self._name}: no attribute for {sorted(settables)}")
        if not attributes and not blocks:
            raise NotUnderstood(f"{self._name}: a class without attributes")
        return {"attributes": attributes, "block_types": blocks}

    def _nested(self, found: re.Match[str], settable: Settable) -> dict[str, Any]:
        single = SINGLE in (found["field"] or "")
        nesting = "single" if settable.nesting == "struct" else settable.nesting
        nested: dict[str, Any] = {"nesting_mode": nesting, "block": self._struct(_base(settable.storage))}
        if nesting != "single":
            nested |= {"min_items": 1} if found["required"] == "true" else {}
            nested |= {"max_items": 1} if single else {}
        return nested

    def _type(self, found: re.Match[str], settable: Settable | None) -> Type:
        if settable:
            return self._settable_type(settable)
        return self._computed_type(found)

    def _settable_type(self, settable: Settable) -> Type:
        if settable.nesting == "simple":
            return PRIMITIVES[settable.storage]
        primitive = re.fullmatch(r"(string|number|boolean|any)((?:List|Map)+)", settable.storage)
        if not primitive:
            structure = self._object(_base(settable.storage))
            return structure if settable.nesting == "struct" else [settable.nesting, structure]
        inner: Type = PRIMITIVES[primitive[1]]
        wrappers = re.findall("List|Map", primitive[2])
        for wrapper in wrappers[:-1]:
            inner = [wrapper.lower(), inner]
        return [settable.nesting, inner]

    def _computed_type(self, found: re.Match[str]) -> Type:
        field = FIELD_CLASS.search(found["field"] or "")
        if field:
            wrapped = "set" if field["set"] == "true" else "list"
            primitive = re.fullmatch(r"cdktf\.(String|Number|Boolean|Any)(List|Map)(List)?", field["cls"])
            if primitive:
                inner: Type = PRIMITIVES[primitive[1].lower()]
                inner = ["map", inner] if primitive[2] == "Map" else [wrapped, inner]
                return [wrapped, inner] if primitive[3] else inner
            if field["cls"].endswith("Map"):
                return ["map", self._object(field["cls"].removesuffix("Map"))]
            structure = self._object(_base(field["cls"]))
            return structure if field["cls"].endswith(SINGLE) else [wrapped, structure]
        getter = found["getter"]
        simple = re.search(r"this\.get(String|Number|Boolean)(Map|List|Set)?Attribute\(", getter)
        if simple:
            inner = PRIMITIVES[simple[1].lower()]
            return [simple[2].lower(), inner] if simple[2] else inner
        if "getNumberListAttribute" in getter or "asNumberList" in getter:
            return ["set" if "tolist" in getter else "list", "number"]
        if "getListAttribute" in getter or "asList" in getter:
            return ["set" if "tolist" in getter else "list", "string"]
        if "interpolationForAttribute" in getter or "getAnyMapAttribute" in getter:
            return "dynamic"
        raise NotUnderstood(f"{self._name}: the type of {found['name']}: {getter.strip()}")

    def _object(self, base: str) -> Type:
        block = self._struct(base)
        if block["block_types"]:
            raise NotUnderstood(f"{self._name}: blocks inside the attribute {base}")
        return ["object", {name: attribute["type"] for name, attribute in block["attributes"].items()}]


def _settables(text: str) -> dict[str, Settable]:
    return {
        found["name"]: Settable(found["block"] == "true", found["nesting"], found["storage"])
        for found in SETTABLE.finditer(text)
    }


def _base(storage: str) -> str:
    return re.sub(rf"({SINGLE}|List|Map)$", "", storage)
