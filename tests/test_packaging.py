"""The wheel holds everything that runs, and nothing else; versions and names agree across files."""

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
FOLDERS = ("hw", "compiler", "sim", "runtime", "intloom")
"""Where the sources are in the repository; all of them are imported below `intloom`."""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# Reached through a declared library: Typer is built on Click, cocotb finds Python with find_libpython, dask asks for
# distributed, Jinja marks safe text with MarkupSafe, ONNX files are protobuf messages.
INDIRECT = {"click", "distributed", "find-libpython", "markupsafe", "protobuf"}


def normal(name: str) -> str:
    """A distribution's name as indexes compare them."""
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution; the build backend is in the lock file: nothing is downloaded."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(folder)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    (source,) = folder.glob("*.tar.gz")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source], check=True)
    return next(folder.glob("*.whl"))


@pytest.mark.slow
def test_the_wheel_holds_the_packages_and_their_data(wheel: Path):
    tracked = subprocess.run(["git", "ls-files", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=True)
    wanted = {*tracked.stdout.splitlines()}
    installed = {f if f.startswith("intloom/") else f"intloom/{f}" for f in wanted} - {f"intloom/{f}" for f in FOLDERS}
    names = zipfile.ZipFile(wheel).namelist()
    held = {n for n in names if ".dist-info/" not in n and ".data/" not in n}
    assert held == installed
    assert any(n.endswith(".data/data/share/man/man1/intloom-run.1") for n in names)
    headers = {f.name for f in (ROOT / "include").iterdir()}
    assert {Path(n).name for n in names if ".data/data/share/intloom/include/" in n} == headers


def test_the_licence_of_every_dependency_is_listed():
    declared = [*PROJECT["dependencies"], *(d for extra in PROJECT["optional-dependencies"].values() for d in extra)]
    rows = (ROOT / "LICENSES.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"(?:[|,] \**)([\w-]+) \(", rows))
    assert listed == {normal(Requirement(d).name) for d in declared} - {"intloom"}


def test_every_action_of_the_workflows_is_pinned_by_its_hash():
    used = [u for f in (ROOT / ".github/workflows").iterdir() for u in re.findall(r"uses: (\S+)", f.read_text("utf-8"))]
    assert len(used) > 5 and all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", u) for u in used)


@pytest.fixture(params=["wheel", "checkout"])
def installed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A fresh environment with this installation of the project; the libraries come from the tests' environment."""
    python = tmp_path / "env" / "bin" / "python"
    venv.create(tmp_path / "env", with_pip=False)
    (libraries,) = {Path(p) for p in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))}
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    # Only the libraries: the .pth file of the tests' own editable installation is not read through another .pth file.
    Path(site.stdout.strip(), "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")
    source = [request.getfixturevalue("wheel")] if request.param == "wheel" else ["--editable", ROOT]
    pip = [sys.executable, "-m", "pip", "--python", python, "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-deps", "--no-build-isolation", *source], check=True)
    return python


@pytest.mark.slow
def test_an_installation_runs_beside_the_users_own_hw_sim_and_compiler(installed: Path, tmp_path: Path):
    project = tmp_path / "project"
    for name in ("hw", "sim", "compiler"):
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").write_text("MINE = True\n", encoding="utf-8")
    (project / "script.py").write_text(
        "import hw, sim, compiler\n"
        "from intloom.hw.generate import generate_verilog\n"
        "from intloom.sim.result import RunResult\n"
        "from intloom import Program, Session, compile\n"
        "assert hw.MINE and sim.MINE and compiler.MINE\n"
        "import intloom\n"
        "print(intloom.__file__)\n",
        encoding="utf-8",
    )
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def run(*command: str | Path) -> str:
        done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    home = Path(run(installed, "script.py").strip())
    assert home.is_relative_to(tmp_path / "env") or home == ROOT / "intloom" / "__init__.py"
    assert "Usage" in run(installed.with_name("intloom"), "--help")
    assert PROJECT["version"] in run(installed.with_name("intloom"), "version")


def locked() -> dict[str, str]:
    """The lock file's versions by name."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    return {normal(name): version for name, version in re.findall(r"^(\S+)==(\S+)", text, re.MULTILINE)}


def test_the_lock_file_has_a_hash_for_every_version():
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries = re.findall(r"^\S+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+$", text, re.MULTILINE)
    assert len(entries) == len(locked()) > 0
    assert re.search(
        r"^\t.*pip install .*--require-hashes", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )


def test_the_lock_file_satisfies_every_range():
    names = locked()
    extras = [r for rows in PROJECT["optional-dependencies"].values() for r in rows if not r.startswith("intloom[")]
    for requirement in map(Requirement, [*PROJECT["dependencies"], *extras]):
        name = normal(requirement.name)
        assert name in names, f"{name} is not in requirements.lock: run `make lock`"
        assert requirement.specifier.contains(names[name]), f"{name}=={names[name]} is outside {requirement.specifier}"


def test_every_dependency_is_bounded_and_has_its_reason():
    for line in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        if re.match(r'  "[a-z0-9-]+(\[\w+\])?[<>=]', line):
            assert re.search(r"==|<", line.split("#")[0]), line
            assert re.search(r"# \w+,? \w+", line), line


def test_suppressions_of_linter_and_type_checker_give_their_reason():
    pattern = re.compile(r"#\s*(?:noqa: ?[A-Z0-9, ]+|type: ignore\[[a-z, -]+\]|noqa|type: ?ignore)(.*)")
    bare = []
    for package in (*FOLDERS, "tests", "tools", "examples"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                found = pattern.search(line)
                if found and path != Path(__file__) and not re.search(r"[#-] .*\w+ \w+", found[1]):
                    bare.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert bare == []


def test_every_target_of_the_makefile_is_explained():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert phony is not None
    for target in phony[1].split():
        assert re.search(rf"^{target}:.*  ## \w", text, re.MULTILINE), target


def third_party_imports() -> dict[str, set[str]]:
    """Top-level names that the packages import and that neither Python nor the project has, and the folders that do."""
    found: dict[str, set[str]] = {}
    for package in FOLDERS:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names: list[str] = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                    names = [node.module]
                for name in names:
                    found.setdefault(name.split(".")[0], set()).add(path.parent.relative_to(ROOT).as_posix())
    own = {*sys.stdlib_module_names, *FOLDERS}
    return {name: folders for name, folders in found.items() if name not in own}


FOLDERS_OF_EXTRAS = {
    "compiler": "tflite", "compiler/importer/tflite": "tflite", "hw/fpga": "fpga", "hw/fpga/board": "board",
    "hw/package": "litex", "sim/regress": "dask", "sim/rtl": "sim",
}  # fmt: skip
"""What only these folders import may come with an extra."""


def libraries_of(extra: str) -> set[str]:
    """Distributions of an extra and of the extras that it includes."""
    requirements = [Requirement(text) for text in PROJECT["optional-dependencies"][extra]]
    included = {name for r in requirements if r.name == PROJECT["name"] for name in r.extras}
    return {normal(r.name) for r in requirements}.union(*map(libraries_of, included))


def test_every_library_that_is_imported_is_declared():
    declared = {normal(Requirement(r).name) for r in PROJECT["dependencies"]}
    extras = {folder: libraries_of(extra) for folder, extra in FOLDERS_OF_EXTRAS.items()}
    providers = importlib.metadata.packages_distributions()
    missing = {}
    for name, folders in third_party_imports().items():
        # Namespace packages such as google have several providers. A library that is not installed counts by its name.
        dists = {normal(d) for d in providers.get(name, [name])}
        usable = declared | INDIRECT | set.intersection(*(extras.get(folder, set()) for folder in folders))
        if not dists & usable:
            missing[name] = dists
    assert missing == {}
