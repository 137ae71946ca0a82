"""What only a process of its own shows: how quickly it starts, a terminal, pipes."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

PATHMIX = (sys.executable, "-m", "pathmix")
WITHOUT_JAX = (
    "import sys; from pathmix.cli.main import main\n"
    "try:\n    print(main(sys.argv[1:]))\n"
    "except SystemExit as error:\n    print(error.code)\n"
    "assert not {'jax', 'numpyro', 'torch', 'scipy'} & set(sys.modules)"
)


@pytest.mark.parametrize(
    ("words", "status"),
    [(("--help",), 0), (("--version",), 0), (("fit", "--help"), 0), (("fit",), 2), ((), 2),
     (("fit", "none.py:model", "--out", "run"), 1), (("resume", "none"), 1),
     (("paths", "model.py:model", "--data", "none.csv"), 1)],
)  # fmt: skip
def test_help_and_wrong_arguments_do_not_wait_for_jax(words, status):
    done = subprocess.run((sys.executable, "-c", WITHOUT_JAX, *words), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(status)


def test_exit_status_of_a_process():
    done = subprocess.run((*PATHMIX, "fit", "model.py"), capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1


def test_a_reader_that_goes_away():
    """As `pathmix ... | head` does."""
    command = (*PATHMIX, "paths", "model.py:model", "--set", "y=2", "--quiet")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait() == 141


def in_terminal(*words, columns=80):
    """What a command writes into a terminal, and its exit status."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        (*PATHMIX, *words), stdout=theirs, stderr=theirs, env={**environment, "TERM": "xterm"}
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # all is read, and nobody writes any more
            break
        if not part:
            break
        written += part
    os.close(ours)
    return process.wait(), written.decode()


def test_a_table_in_a_terminal(place):
    program = (place / "model.py").read_text().replace("):\n    x =", "):\n    print('a run')\n    x =")
    (place / "prints.py").write_text(program)
    status, written = in_terminal(
        "fit", "prints.py:model", "--set", "y=2", "--out", "run", "--budget", "200000",
        "--option", "stop_early=false", columns=40,
    )  # fmt: skip
    assert status == 0, written
    drawings = re.split(r"\x1b\[\d*[FJ]", written.replace("\r", ""))
    tables = [part for part in drawings if "weight by ELBO" in part]
    assert tables and all(len(line) < 40 for part in tables[:-1] for line in part.splitlines())
    # From 10% on, 40 columns cut the last digit off.
    assert re.search(r"^0:\d\d  phase 1/1: 2 paths, \d+% of 200,00", tables[0])
    assert re.search(r"^x >= 0 +0\.\d{4} +-\d\.\d{3}", tables[-1], flags=re.MULTILINE)
    assert "a run\n" in written.replace("\r", "")
    # At the end the table is gone, and the posterior is there.
    end = drawings[-1].replace("a run\n", "")  # keeping a posterior runs the program, to know it again
    assert end.lstrip().startswith("Posterior over 2 paths") and "Kept in run/posterior.pathmix" in end
