"""Readable Verilog: the same logic as the generated text, with names and a comment for each module."""

import re

import pytest

from intloom.hw.mac.array.product import PRODUCT_MODULE
from intloom.hw.package.modules import readable_modules
from intloom.hw.package.names import chosen_names
from intloom.hw.spec.params import preset
from intloom.sim.rtl.verilog import verilog_of

_DECLARED = re.compile(r"^\s*(?:wire|reg)(?: signed)?(?: \[[^]]*\])? (\\\S+ |\w+)", re.MULTILINE)
_MODULE = re.compile(r"^module (\\\S+|\w+).*?^endmodule$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def modules(verilog_from_cache: None) -> dict[str, str]:
    return readable_modules(preset("nano"))


@pytest.mark.slow
def test_almost_no_declaration_is_anonymous(modules: dict[str, str]) -> None:
    names = [name for text in modules.values() for name in _DECLARED.findall(text)]
    anonymous = [name for name in names if name.startswith("\\$")]
    assert len(names) > 5000
    assert len(anonymous) < len(names) / 100


@pytest.mark.slow
def test_each_module_is_the_generated_one_with_other_names(modules: dict[str, str]) -> None:
    """After replacing every identifier by its number of occurrence, both texts are equal."""
    generated = [m[0] for m in _MODULE.finditer(verilog_of(preset("nano")))]
    readable = [m[0] for text in modules.values() for m in _MODULE.finditer(text)]
    assert len(generated) == len(readable)
    shapes = [_numbered(text) for text in generated]
    assert all(_numbered(text) in shapes for text in readable)


def _numbered(module: str) -> str:
    numbers: dict[str, int] = {}
    return re.sub(
        r"\\\S+(?= )|(?<!['\w])[A-Za-z_]\w*",
        lambda m: f"<{numbers.setdefault(m[0].removeprefix(chr(92)), len(numbers))}>",
        re.sub(r"(\\\S+|\w+)\s+", r"\1 ", module),
    )


@pytest.mark.slow
def test_modules_with_macros_are_unchanged(modules: dict[str, str]) -> None:
    assert modules[PRODUCT_MODULE] in verilog_of(preset("nano"))
    assert "`endif" in modules[PRODUCT_MODULE]


@pytest.mark.slow
def test_modules_have_plain_names_and_their_documentation(modules: dict[str, str]) -> None:
    assert next(iter(modules)) == "npu"
    assert all(re.fullmatch(r"[a-z]\w*", name) for name in modules)
    assert "// AXI4 and AXI4-Lite. `irq` is high while" in modules["npu"]
    assert modules["npu_engine_mac_array"].startswith("// ")
    undocumented = [name for name, text in modules.items() if not text.startswith("//")]
    assert not undocumented
    assert not chosen_names(_MODULE.search(modules["npu_engine_dispatch"])[0])
