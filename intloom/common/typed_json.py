"""JSON from outside as instances of dataclasses: the type hints of a class are the schema of its objects.

A value is accepted only with the exact type: no strings for numbers, no fractions for integers, no further or missing
members. Integers have at most 63 bits, other numbers fit float32 (scales are of this type), and strings are valid
Unicode.
"""

import dataclasses
import json
import types
import typing
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from typing import Any, Union, get_args, get_origin

LARGEST = (1 << 63) - 1
LARGEST_FLOAT32 = (2 - 2**-23) * 2.0**127
Reader = Callable[[Any], Any]


class SchemaError(ValueError):
    """A value that the schema does not allow; the message names the path to it."""


def parse(data: bytes) -> Any:
    """The values of a JSON text."""
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_constant)
    except SchemaError:
        raise
    except RecursionError:
        raise SchemaError("must have fewer nested lists and objects") from None
    except ValueError as error:
        # Python's own limit of the digits of an integer is a ValueError too.
        raise SchemaError(f"must be JSON: {error}") from None


def _constant(name: str) -> None:
    raise SchemaError(f"must hold finite numbers, not {name}")


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _expected(what: str, value: Any) -> SchemaError:
    return SchemaError(f"must be {what}, not {_shown(value)}")


def _within(step: str, error: SchemaError) -> SchemaError:
    """The error with one more step of the path to the value."""
    text = str(error)
    return SchemaError(f"{step}{text}" if text.startswith((".", "[")) else f"{step} {text}")


def _integer(value: Any) -> int:
    if type(value) is not int or not -LARGEST <= value <= LARGEST:
        raise _expected("an integer of at most 63 bits", value)
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not abs(value) <= LARGEST_FLOAT32:
        raise _expected("a number within float32", value)
    return float(value)


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise _expected("true or false", value)
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise _expected("a string", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _expected("valid Unicode", value) from None
    return value


_PLAIN: dict[Any, Reader] = {int: _integer, float: _number, bool: _flag, str: _text}


def _enum(kind: type[StrEnum]) -> Reader:
    known = {str(member): member for member in kind}

    def read(value: Any) -> StrEnum:
        if type(value) is not str or value not in known:
            raise _expected(f"one of {', '.join(known)}", value)
        return known[value]

    return read


def _items(value: Any, readers: list[Reader] | None, every: Reader | None) -> list[Any]:
    if type(value) is not list or (readers is not None and len(value) != len(readers)):
        raise _expected("a list" if readers is None else f"a list of {len(readers)} values", value)
    result: list[Any] = []
    try:
        if every is not None:
            result.extend(map(every, value))
        else:
            for one, item in zip(readers or (), value, strict=True):
                result.append(one(item))  # its length is the index in the message
    except SchemaError as error:
        raise _within(f"[{len(result)}]", error) from None
    return result


def _tuple(arguments: tuple[Any, ...]) -> Reader:
    if arguments[1:] == (...,):
        every = reader(arguments[0])
        return lambda value: tuple(_items(value, None, every))
    readers = [reader(a) for a in arguments]
    return lambda value: tuple(_items(value, readers, None))


def _named_tuple(kind: type[Any]) -> Reader:
    readers = [reader(hint) for hint in typing.get_type_hints(kind).values()]
    return lambda value: kind(*_items(value, readers, None))


def _mapping(inner: Reader) -> Reader:
    def read(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise _expected("an object", value)
        return {_text(key): inner(item) for key, item in value.items()}

    return read


def _optional(inner: Reader) -> Reader:
    return lambda value: None if value is None else inner(value)


def read_members(kind: type[Any], value: Any, readers: Mapping[str, Reader]) -> dict[str, Any]:
    """The members of an object, which must have exactly those of `readers`."""
    if type(value) is not dict:
        raise _expected("an object", value)
    if unknown := value.keys() - readers.keys():
        raise SchemaError(f"must not have the member {_shown(min(unknown))} in a {kind.__name__}")
    result = {}
    for name, one in readers.items():
        if name not in value:
            raise SchemaError(f"must have the member {name!r} in a {kind.__name__}")
        try:
            result[name] = one(value[name])
        except SchemaError as error:
            raise _within(f".{name}", error) from None
    return result


def member_readers(kind: type[Any], without: tuple[str, ...] = ()) -> dict[str, Reader]:
    """A reader for each member of a dataclass but those in `without`."""
    hints = typing.get_type_hints(kind)
    return {f.name: reader(hints[f.name]) for f in dataclasses.fields(kind) if f.name not in without}


@cache
def reader(kind: Any) -> Reader:
    """The function that turns a JSON value into an instance of `kind`, or raises SchemaError."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        return _tuple(arguments)
    if origin in (Union, types.UnionType):
        (inner,) = (a for a in arguments if a is not type(None))
        return _optional(reader(inner))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(reader(arguments[1]))
    if issubclass(kind, StrEnum):
        return _enum(kind)
    if issubclass(kind, tuple):
        return _named_tuple(kind)
    readers = member_readers(kind)
    return lambda value: kind(**read_members(kind, value, readers))
