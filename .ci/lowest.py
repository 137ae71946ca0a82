"""Print the lowest versions that pyproject.toml allows, as constraints for pip."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"].values()
for requirement in [*project["dependencies"], *(item for extra in extras for item in extra)]:
    if found := re.match(r"([\w-]+)>=([\d.]+)", requirement):
        print(f"{found[1]}=={found[2]}")
