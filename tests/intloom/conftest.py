"""Small models that several tests share, and a cache of their own."""

import onnx
import pytest

from intloom.cli import main
from intloom.common.errors import EnvironmentFault
from intloom.reading.pretrained import pretrained
from intloom.zoo import build


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("INTLOOM_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def pretrained_models():
    """The networks that read."""
    try:
        return pretrained()
    except EnvironmentFault as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def float_models(tmp_path_factory):
    """Float models as files, built on first use."""
    folder = tmp_path_factory.mktemp("float")

    def get(name, imgsz=None):
        path = folder / f"{name}-{imgsz}.onnx"
        if not path.exists():
            onnx.save(build(name, imgsz), path)
        return path

    return get


@pytest.fixture(scope="session")
def quantized_models(float_models, tmp_path_factory):
    """Quantized models as files, made on first use."""
    from intloom.quantization import QuantizeOptions, quantize

    folder = tmp_path_factory.mktemp("quantized")

    def get(name, imgsz=None, **options):
        tag = "-".join(str(v) for v in options.values())
        path = folder / f"{name}-{imgsz}-{tag}.onnx"
        if not path.exists():
            chosen = QuantizeOptions(samples=2, **options)
            quantize(float_models(name, imgsz), path, options=chosen, cache=folder / "cache")
        return path

    return get


@pytest.fixture(scope="session")
def programs(quantized_models, tmp_path_factory):
    """Programs for `nano` as files, compiled on first use."""
    folder = tmp_path_factory.mktemp("programs")

    def get(name, imgsz=None, **options):
        model = quantized_models(name, imgsz, **options)
        path = folder / f"{model.stem}.loom"
        if not path.exists():
            assert main(["compile", str(model), "--preset", "nano", "-o", str(path), "-q"]) == 0
        return path

    return get


@pytest.fixture(scope="session")
def rtl_run(programs, tmp_path_factory):
    """The folder of a checked run in RTL."""
    folder = tmp_path_factory.mktemp("rtl") / "run"
    assert main(["run", str(programs("c2f")), "--backend", "rtl", "--check", "-o", str(folder), "-q"]) == 0
    return folder
