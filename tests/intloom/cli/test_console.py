"""What is said stays as it is: names with brackets and colons are neither markup nor emoji."""

from intloom.cli.console import new_table, open_terminal

ODD = "a[red]b[/red] x[/bold] :smile: [link=x]"


def test_names_are_printed_as_they_are(capsys):
    terminal = open_terminal(0)
    terminal.say(ODD)
    terminal.say(ODD, label="warning", color="yellow")
    terminal.result(ODD)
    table = new_table("name")
    table.add_row(ODD)
    terminal.table(table)
    said = capsys.readouterr()
    assert said.err == f"{ODD}\nwarning {ODD}\n"
    assert [line.strip() for line in said.out.splitlines()] == [ODD, "name", ODD]


def test_labels_are_colored_and_the_rest_is_not(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    open_terminal(0).say("text", label="warning", color="yellow")
    assert capsys.readouterr().err == "\x1b[33mwarning \x1b[0mtext\n"


def test_quiet_says_nothing(capsys):
    open_terminal(-1).say("text", label="warning")
    assert capsys.readouterr().err == ""
