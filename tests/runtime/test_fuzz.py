"""The image reader on any bytes: the corpus under gcc's sanitizers, and libFuzzer every night."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.runtime.support import INCLUDES, SANITIZERS, SOURCES, compiled

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
SECONDS = int(os.environ.get("INTLOOM_FUZZ_SECONDS", "600"))
_COMPILERS = ("clang-14", "clang")
_DRIVER = """
#include "use_image.h"
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        uint32_t size;
        uint8_t *data = read_file(argv[i], &size);
        LLVMFuzzerTestOneInput(data, size);
        free(data);
    }
    printf("%d\\n", argc - 1);
    return 0;
}
"""


def test_the_corpus_is_harmless(tmp_path: Path) -> None:
    (tmp_path / "driver.c").write_text(_DRIVER)
    sources = [HERE / "fuzz_image.c", tmp_path / "driver.c"]
    program = compiled(tmp_path / "fuzz", sources, *SANITIZERS, "-Wno-unused-function")
    files = sorted(CORPUS.iterdir())
    done = subprocess.run([program, *files], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(files) > 10


def _fuzzer(output: Path) -> Path:
    """The harness with libFuzzer; skips by name where clang or its run-time library is missing."""
    clang = next((c for c in _COMPILERS if shutil.which(c)), None)
    if clang is None:
        pytest.skip("clang is missing: apt-get install clang libclang-rt-14-dev")
    flags = ["-std=c11", "-g", "-O1", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
    command = [clang, *flags, *INCLUDES, f"-I{HERE}", "-Wno-unused-function", str(HERE / "fuzz_image.c")]
    done = subprocess.run(
        [*command, *map(str, SOURCES), "-o", str(output)], capture_output=True, text=True, check=False
    )
    if "libclang_rt" in done.stderr:
        pytest.skip("clang's run-time library is missing: apt-get install libclang-rt-14-dev")
    assert done.returncode == 0, done.stderr
    return output


@pytest.mark.nightly
@pytest.mark.timeout(SECONDS + 300)
def test_libfuzzer_finds_nothing(tmp_path: Path) -> None:
    fuzzer, found = _fuzzer(tmp_path / "fuzz"), tmp_path / "found"
    found.mkdir()
    limits = [
        f"-max_total_time={SECONDS}",
        "-max_len=16384",
        "-rss_limit_mb=2048",
        "-timeout=10",
        "-print_final_stats=1",
    ]
    outputs = ["-print_final_stats=1", f"-artifact_prefix={tmp_path}/"]
    command = [str(fuzzer), *limits, *outputs, str(found), str(CORPUS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    executed = int(done.stderr.split("stat::number_of_executed_units:")[1].split()[0])
    print(f"{executed:,} images in {SECONDS} s")
    assert executed > 100 * SECONDS
