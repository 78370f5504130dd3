"""The README's terminal session: the drawing is the recording, and the recording is what the tutorial shows."""

from xml.etree import ElementTree as ET

from tools import terminal, tutorial


def test_the_drawing_is_the_recording():
    steps = terminal.recorded()
    text = terminal.svg(steps)
    assert terminal.PICTURE.read_text() == text, "run python -m tools.terminal"
    lines = [t.text for t in ET.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]
    assert [line for line in lines if line.startswith("$ ")] == [f"$ {c}" for c in terminal.COMMANDS]
    words = " ".join(lines).split()
    assert all(word in words for step in steps for line in step.output for word in line.split())


def test_the_recording_is_what_the_tutorial_shows():
    """Another test runs the tutorial's commands and compares what they print."""
    blocks = tutorial.blocks()
    for step in terminal.recorded():
        (block,) = (b for b in blocks if step.command in b.commands)
        shown = tutorial.comparable(block.shown).splitlines()
        assert all(tutorial.comparable(line) in shown for line in step.output), f"{step.command}: run make figures"


def test_the_readme_shows_the_session():
    readme = (terminal.PICTURE.parents[2] / "README.md").read_text()
    assert f"docs/assets/{terminal.PICTURE.name}" in readme
