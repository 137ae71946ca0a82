"""What `import pathmix` gives, and when it is loaded."""

import subprocess
import sys

CODE = """
import sys
import pathmix
assert "jax" not in sys.modules and pathmix.__version__
assert callable(pathmix.plots.weights) and pathmix.SDVI.__module__ == "pathmix.methods.sdvi"
from pathmix import *
assert SDVI is pathmix.SDVI and {"SDVI", "plots"} <= set(dir(pathmix))
try:
    pathmix.sdvi
except AttributeError as error:
    print(error)
"""


def test_names_are_there_and_loaded_late():
    out = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert (out.returncode, out.stdout) == (0, "module 'pathmix' has no attribute 'sdvi'\n"), out.stderr
