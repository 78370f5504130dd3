"""The emitter derives waits: as many as needed, none that others imply."""

from intloom.compiler.program.program import Provenance
from intloom.compiler.schedule.emit.emitter import Emitter
from intloom.hw.spec.isa import Kind, LoadTarget
from intloom.hw.spec.params import preset

HERE = Provenance(layer=0, tile=0)


def emitter() -> Emitter:
    made = Emitter(preset("base"), 1000)
    made.begin()
    return made


def load(e: Emitter, local: int, words: int = 4, **fields: int) -> int:
    return e.emit(Kind.LOAD, HERE, dram=0, local=local, n0=words, **fields)


def conv(e: Emitter, source: int, target: int) -> int:
    return e.emit(Kind.CONV, HERE, in_base=source, in_w=4, in_h=1, out_w=4, out_base=target, weights=0)


def test_a_convolution_waits_for_its_input_and_weights():
    e = emitter()
    load(e, 0, 24, target=LoadTarget.WEIGHT)
    load(e, 100)
    load(e, 200)
    assert e.instructions[conv(e, 100, 300)]["wait_load"] == 2


def test_a_store_waits_for_the_array_and_thereby_for_the_loads():
    e = emitter()
    load(e, 100)
    conv(e, 100, 300)
    store = e.instructions[e.emit(Kind.STORE, HERE, dram=500, local=300, n0=4)]
    assert (store["wait_mac"], store["wait_load"]) == (1, 0)


def test_a_load_waits_before_it_overwrites_what_is_still_read():
    e = emitter()
    load(e, 100)
    conv(e, 100, 300)
    assert e.instructions[load(e, 103)]["wait_mac"] == 1
    assert e.instructions[load(e, 104)]["wait_mac"] == 0


def test_a_load_of_what_was_stored_waits_for_the_store():
    e = emitter()
    load(e, 100)
    e.emit(Kind.STORE, HERE, dram=500, local=100, n0=4)
    late = e.instructions[e.emit(Kind.LOAD, HERE, dram=502, local=200, n0=1)]
    assert late["wait_store"] == 1


def test_end_waits_for_everything():
    e = emitter()
    load(e, 100)
    conv(e, 100, 300)
    e.end()
    end = e.instructions[-1]
    assert [end[f"wait_{u}"] for u in ("load", "mac", "vec", "store")] == [1, 1, 0, 0]
    assert e.instructions[0].kind is Kind.BEGIN
