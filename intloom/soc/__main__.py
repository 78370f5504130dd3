"""`make soc NETWORK=...`: a network of the zoo on the simulated system on a chip, checked."""

import argparse
import sys
import time
from pathlib import Path

from intloom.common.errors import IntloomError
from intloom.flow.compiling import compile_model
from intloom.flow.networks import quantized_network
from intloom.flow.reference import host_of
from intloom.flow.regions import all_inputs
from intloom.hw.options import add_hardware, hardware
from intloom.hw.spec.arith import RoundingMode
from intloom.hw.spec.params import preset_name
from intloom.images import seeded_input
from intloom.sim.golden import run_graph
from intloom.soc.firmware import Check, build_firmware
from intloom.soc.system import run_firmware


def main(arguments: list[str] | None = None) -> int:
    """Compile a network, build firmware and simulator, run, and print the console."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="yolov8n", help="network of the zoo")
    parser.add_argument("--imgsz", type=int, default=96, help="height and width of the input")
    add_hardware(parser, "small")
    parser.add_argument("-o", "--output", type=Path, default=Path("out/soc"))
    chosen = parser.parse_args(arguments)
    started = time.monotonic()
    try:
        params = hardware(chosen)
        path = quantized_network(chosen.network, chosen.imgsz)
        bundle = compile_model(path, params)
        folded = bundle.need_model("a comparison")
        feeds = {n: seeded_input(shape, 0) for n, shape in folded.inputs.items()}
        inputs = all_inputs(folded, host_of(folded), feeds, RoundingMode(params.match))
        golden = run_graph(folded.graph, inputs, match=params.match, keep=True)
        print(
            f"{chosen.network} {chosen.imgsz}x{chosen.imgsz} on {preset_name(params)}: {len(bundle.programs)} regions",
            flush=True,
        )
        firmware = build_firmware(bundle.programs, [Check(inputs, golden)], chosen.output)
        result = run_firmware(firmware, params, chosen.output, say=lambda line: print(line, flush=True))
    except IntloomError as error:
        print(f"soc: {error}", file=sys.stderr)
        return int(error.exit_code)
    print(
        f"{result.cycles:,} cycles in {result.seconds:.0f} s, simulator built in {result.build_seconds:.0f} s, "
        f"firmware {firmware.code_bytes:,} bytes, {time.monotonic() - started:.0f} s in all"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
