"""Judge documents by a JSON Schema with ``jsonschema``, once for each shape.

``jsonschema`` makes an object for each violation, which needs seconds and gigabytes for a table with a fault
in every entry. But keywords on structure depend on the shape of one level only: on the keys of an object, on
the types of its values, on the length of a list. ``jsonschema`` judges each shape of each part of a schema
once, and other values of that shape have the same violations.

Keywords on values, such as ``pattern``, are judged once for each value. A part with another keyword is judged
as a whole each time. All memos are bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from jsonschema.exceptions import ValidationError

    from hccl_tools.diagnostics.diagnostic import Path

    Note = Callable[[Path, "Refused"], None]
    #: What is wrong; the key and the part of a value below; the part of all entries.
    Step: TypeAlias = "Refused | tuple[str, Part] | Part"

#: Keywords that describe a value and do not constrain it; so do all that begin with ``x-``.
_DESCRIPTIONS = frozenset(
    {"$schema", "$id", "$defs", "$comment", "title", "description", "examples", "default", "format"}
)
#: Keywords that depend on the keys of an object, on types, and on the length of a list.
_OF_STRUCTURE = frozenset({"type", "required", "minItems", "maxItems", "properties", "items"})
#: Keywords that depend on a string or a number.
_OF_VALUES = frozenset(
    {
        "const", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum",
        "exclusiveMaximum", "multipleOf",
    }
)  # fmt: skip
#: Shapes and values that a part remembers, and the keys of an object whose shape is remembered.
_MOST_REMEMBERED, _MOST_KEYS = 4096, 64
_REFERENCE = "#/$defs/"


class Violation(NamedTuple):
    """A violated constraint.

    Attributes:
        path: The place of the value; that of the object with a missing key (``required``).
        key: The missing key.
        hint: What the schema advises.
        wanted: What the keyword says in the schema; the allowed types as a tuple (``type``), or the keys that
            are not allowed (``additionalProperties``).
    """

    path: Path
    keyword: str
    rule_id: str
    key: str | None = None
    hint: str | None = None
    wanted: Any = None


class Refused:
    """Violations of a value, with paths that begin at it.

    Attributes:
        rules: The number of violations of each rule.
        keys: The keys with invalid or missing values.
        is_itself: Whether the value itself violates a keyword, and not only has wrong or missing keys.
    """

    __slots__ = ("is_itself", "keys", "rules", "violations")

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations = tuple(violations)
        self.is_itself = False
        rules: dict[str, int] = {}
        keys: set[str | None] = set()
        for one in self.violations:
            rules[one.rule_id] = rules.get(one.rule_id, 0) + 1
            if one.key is None and not one.path:
                self.is_itself = True
            else:
                keys.add(_named(one.key or one.path[-1]))
        self.rules = tuple(rules.items())
        self.keys = frozenset(keys)


class Part:
    """A part of a schema: the constraints of one value.

    Attributes:
        properties: The parts of an object's keys; keys without constraints are omitted.
        items: The part of the entries of a list; ``None`` for any.
        is_leaf: Whether only the type is constrained, to strings, numbers and the like.
    """

    def __init__(self, schema: dict[str, Any], compiled: Compiled) -> None:
        keywords, types = _keywords(schema), _names(schema.get("type", ()))
        nested = keywords & {"properties", "items"}
        inner = [*schema.get("properties", {}).values(), schema.get("items", {})]
        is_plain = keywords <= _OF_STRUCTURE | _OF_VALUES and all(isinstance(part, dict) for part in inner)
        # Whether a float is an integer depends on its value.
        self._has_values = bool(keywords & _OF_VALUES) or "integer" in types
        self._is_whole = not is_plain or (self._has_values and bool(nested))
        self.is_leaf = keywords == {"type"} and not self._has_values and not {"object", "array"} & {*types}
        self.properties: dict[str, Part] = {}
        self.items: Part | None = None
        self._schema, self._rules = schema, {**schema.get("x-rules", {})}
        self._rules_of_missing, self._defaults = self._rules.pop("required", {}), compiled.rules
        self._required = tuple(schema.get("required", ()))
        self._hints: dict[str, str | None] = {}
        self._longest = max(schema.get("minItems", 0), schema.get("maxItems", -1) + 1)
        own = {key: part for key, part in schema.items() if self._is_whole or key not in nested}
        definitions = {"$defs": compiled.definitions} if self._is_whole else {}
        self._best_match = compiled.best_match
        self._validator = compiled.new_validator({**own, **definitions})
        self._of_shape: dict[Any, tuple[Violation, ...]] = {}
        self._of_leaves: dict[tuple[str, type], list[Violation]] = {}
        self._remembered: dict[Any, tuple[Step, ...]] = {}

    def complete(self, compiled: Compiled) -> None:
        """Add the parts below."""
        if self._is_whole:
            return
        below = {key: compiled.resolved(part) for key, part in self._schema.get("properties", {}).items()}
        self._hints = {key: part.get("x-hint") for key, part in below.items()}
        self.properties = {key: compiled.part(part) for key, part in below.items() if _keywords(part)}
        items = compiled.resolved(self._schema.get("items", {}))
        self.items = compiled.part(items) if _keywords(items) else None

    def forget(self) -> None:
        """Forget values, and shapes with keys of a document."""
        self._remembered.clear()

    def steps(self, value: Any) -> tuple[Step, ...]:
        """Return what is wrong with a value and its leaves, and where to look further, in document order."""
        kind = type(value)
        if self.is_leaf:
            shape: Any = kind
        elif kind is dict:
            if self._is_whole or self._has_values or len(value) > _MOST_KEYS:
                return self._new_steps(value)
            shape = (*value, *map(type, value.values()))
        elif self._is_whole or (kind is list and self._has_values):
            return self._new_steps(value)
        elif kind is list:
            shape = min(len(value), self._longest)
        else:
            shape = (kind, value) if self._has_values else kind
        found = self._remembered.get(shape)
        if found is None:
            found = self._new_steps(value)
            if len(self._remembered) < _MOST_REMEMBERED:
                self._remembered[shape] = found
        return found

    def steps_of_entries(self, entries: list[Any]) -> Iterator[tuple[int, tuple[Step, ...]]]:
        """Yield the index and the steps of each entry that has any."""
        # A megabyte can have a million entries: what is remembered needs no call.
        remembered = {} if self.is_leaf or self._is_whole or self._has_values else self._remembered
        for index, entry in enumerate(entries):
            below = None
            if type(entry) is dict:
                below = remembered.get((*entry, *map(type, entry.values())))
            if below is None:
                below = self.steps(entry)
            if below:
                yield index, below

    def _new_steps(self, value: Any) -> tuple[Step, ...]:
        violations = list(self._of_level(value))
        steps: list[Step] = []
        if self._is_whole or any(one.keyword == "type" for one in violations):
            return (Refused(violations),) if violations else ()
        for key in value if type(value) is dict else ():
            below = self.properties.get(key)
            if below is not None and below.is_leaf:
                violations += self._of_leaf(key, below, value[key])
            elif below is not None:
                steps += [Refused(violations)] if violations else []
                steps.append((key, below))
                violations = []
        steps += [Refused(violations)] if violations else []
        return (*steps, self.items) if self.items is not None and type(value) is list else tuple(steps)

    def _of_leaf(self, key: str, leaf: Part, value: Any) -> list[Violation]:
        shape = (key, type(value))
        if shape not in self._of_leaves:
            self._of_leaves[shape] = [one._replace(path=(key,)) for one in leaf._of_level(value)]
        return self._of_leaves[shape]

    def _of_level(self, value: Any) -> tuple[Violation, ...]:
        """Return the violations of a value, without those of the values in it."""
        kind = type(value)
        if self._is_whole or self._has_values:
            return tuple(self._violations(value))
        # `jsonschema` gets a small value of the shape: its messages contain values, and lists can be long.
        if kind is dict:
            value = {key: None for key in self._required if key in value}
            shape: Any = tuple(value)
        elif kind is list:
            shape = min(len(value), self._longest)
            value = [None] * shape
        else:
            shape = kind
        found = self._of_shape.get(shape)
        if found is None:
            found = tuple(self._violations(value))
            if len(self._of_shape) < _MOST_REMEMBERED:
                self._of_shape[shape] = found
        return found

    def _violations(self, value: Any) -> Iterator[Violation]:
        """Yield the violations of a value that ``jsonschema`` finds."""
        errors = [self._best_match([error]) for error in self._validator.iter_errors(value)]
        typed = {tuple(error.absolute_path) for error in errors if error.validator == "type"}
        missing: dict[Path, Iterator[str]] = {}
        for error in errors:
            path, keyword, wanted = tuple(error.absolute_path), str(error.validator), _wanted(error)
            if keyword == "required":
                if path not in missing:  # One error for each missing key, in their order.
                    missing[path] = (key for key in wanted if key not in error.instance)
                key = next(missing[path])
                rule_id = self._rules_of_missing.get(key, self._defaults[keyword])
                yield Violation(path, keyword, rule_id, key, self._hints.get(key))
            elif keyword == "type" or path not in typed:  # A wrong type says all.
                rule_id = self._rules.get(keyword) or self._defaults.get(keyword, self._defaults["type"])
                hint = error.schema.get("x-hint") if isinstance(error.schema, dict) else None
                yield Violation(path, keyword, rule_id, None, hint, wanted)


class Compiled:
    """A schema as parts.

    Attributes:
        rules: The rule of each violated keyword, unless a part names another.
        definitions: The schema's ``$defs``.
        root: The part of a whole document.
    """

    def __init__(self, schema: dict[str, Any], rules: Mapping[str, str]) -> None:
        import jsonschema  # noqa: PLC0415  (62 ms; sound tables need no schema)

        self.new_validator, self.best_match = (
            jsonschema.Draft202012Validator,
            jsonschema.exceptions.best_match,
        )
        self.rules, self.definitions = rules, schema.get("$defs", {})
        self._parts: dict[int, Part] = {}
        self.root = self.part(schema)

    def part(self, schema: dict[str, Any]) -> Part:
        """Return the part for a schema, or for a definition."""
        found = self._parts.get(id(schema))
        if found is None:
            found = self._parts[id(schema)] = Part(schema, self)
            found.complete(self)  # Now, as a definition may contain itself.
        return found

    def resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the definition to which a schema refers, or the schema itself."""
        if _keywords(schema) == {"$ref"} and schema["$ref"].startswith(_REFERENCE):
            found: dict[str, Any] = self.definitions[schema["$ref"].removeprefix(_REFERENCE)]
            return found
        return schema

    def judge(self, value: Any, note: Note) -> None:
        """Call ``note`` with the path and the violations of each refused value, in document order.

        ``note`` may replace and remove refused values.
        """
        try:
            _follow(value, self.root.steps(value), (), note)
        finally:
            for part in self._parts.values():
                part.forget()


def _follow(value: Any, steps: Iterable[Step], path: Path, note: Note) -> None:
    for step in steps:
        if isinstance(step, Refused):
            note(path, step)
        elif isinstance(step, tuple):
            key, part = step
            if below := part.steps(value[key]):
                _follow(value[key], below, (*path, key), note)
        else:
            _follow_entries(value, step, path, note)


def _follow_entries(entries: list[Any], part: Part, path: Path, note: Note) -> None:
    for index, steps in part.steps_of_entries(entries):
        if len(steps) == 1 and isinstance(steps[0], Refused):
            note((*path, index), steps[0])
        else:
            _follow(entries[index], steps, (*path, index), note)


def _named(key: str | int) -> str | None:
    return key if type(key) is str else None


def _keywords(schema: dict[str, Any]) -> set[str]:
    return {key for key in schema if key not in _DESCRIPTIONS and not key.startswith("x-")}


def _wanted(error: ValidationError) -> Any:
    value: Any = error.validator_value
    instance: Any = error.instance
    schema: Any = error.schema
    if error.validator == "type":
        return _names(value)
    if error.validator == "additionalProperties" and value is False:
        return tuple(key for key in instance if key not in schema.get("properties", ()))
    return value


def _names(types: Any) -> tuple[str, ...]:
    return (types,) if isinstance(types, str) else tuple(types)
