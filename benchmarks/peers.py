"""The kernel grammar on the airline passengers, against other systems whose checkouts you have.

`--sdvi-checkout` is the code of the SDVI paper (github.com/treigerm/sdvi_neurips), `--upix-checkout` is UPIX
(github.com/markus7800/UPIX). All get what UPIX fixes: 1,000 prior runs, successive halving down to ten paths,
one draw a gradient, Adam(0.005), 100 draws for the ELBOs; and a process or thread for each core. Each runs in
a fresh process, with the Python of its checkout's `.venv` where there is one and this one otherwise. (Both
need older libraries than pathmix, those that they pin: Pyro for the paper's code, JAX for UPIX.)

Seconds are end to end, without imports and without the plots and predictions that the peers' scripts make
afterwards. The paper's code is called as a library, by `peer_sdvi.py`, and logs ELBOs, by which it ranks
paths, every 200 steps, as its README has it. UPIX runs by its own script; its seconds are those that it
prints, and no ELBO is among what it prints. It computes in single precision.

    python -m benchmarks.peers --sdvi-checkout PATH --upix-checkout PATH [--iterations 30000]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.fresh import measure

UPIX_SCRIPT = "evaluation/gp/run_comp_vi.py"
SDVI_LIBRARY = "models/pyro_extensions/infer.py"


def run_pathmix(_, iterations):
    with tempfile.TemporaryDirectory(prefix="pathmix-benchmark-") as folder:
        return measure("published-grammar", iterations, folder)


def run_sdvi(checkout, iterations):
    driver = Path(__file__).with_name("peer_sdvi.py")
    out = _run(checkout, driver, str(iterations), str(os.cpu_count()), OMP_NUM_THREADS="1")
    return _failure(out) or json.loads(out.stdout.splitlines()[-1])


def run_upix(checkout, iterations):
    workers = ("cpu_multiprocess", "vmap_local", "--cpu", "-num_workers", str(os.cpu_count()))
    job = ("-sh_iterations", str(iterations), "-seed", "0", "--no_save", "--no_progress")
    out = _run(checkout, UPIX_SCRIPT, *workers, *job)
    told = re.search(r"wall_time:\s*([0-9.]+)s", out.stdout)
    return {"seconds": float(told[1])} if told else _failure(out) or {"failure": "did not say its seconds"}


def _run(checkout, *command, **environment):
    own = checkout / ".venv" / "bin" / "python"
    python = own if own.exists() else sys.executable
    environment = {**os.environ, **environment, "PYTHONPATH": str(checkout)}
    return subprocess.run([python, *command], cwd=checkout, env=environment, capture_output=True, text=True)


def _failure(out):
    """None for a process that ended well."""
    if out.returncode == 0:
        return None
    said = out.stderr.strip().splitlines() or ["it said nothing"]
    return {"failure": f"does not run with {out.args[0]}: {said[-1]}"}


def checkout_with(file):
    """A command-line argument: a folder that has the file."""

    def check(path):
        folder = Path(path).expanduser().resolve()
        if not (folder / file).is_file():
            raise argparse.ArgumentTypeError(f"{folder} is not the checkout: there is no {file}")
        return folder

    return check


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sdvi-checkout", type=checkout_with(SDVI_LIBRARY), metavar="PATH")
    parser.add_argument("--upix-checkout", type=checkout_with(UPIX_SCRIPT), metavar="PATH")
    parser.add_argument("--iterations", type=int, default=30_000, help="of all paths together")
    options = parser.parse_args()
    peers = {
        "SDVI (paper's code)": (run_sdvi, options.sdvi_checkout),
        "UPIX": (run_upix, options.upix_checkout),
    }
    wanted = {name: peer for name, peer in peers.items() if peer[1] is not None}
    if not wanted:
        parser.error("give --sdvi-checkout, --upix-checkout or both")
    print(f"{'system':<22}{'seconds':>9}{'ELBO':>10}", flush=True)
    seconds = {}
    for name, (run, checkout) in {"pathmix": (run_pathmix, None), **wanted}.items():
        found = run(checkout, options.iterations)
        if "failure" in found:
            print(f"{name:<22} {found['failure']}", flush=True)
            continue
        seconds[name] = found["seconds"]
        elbo = f"{found['elbo']:.1f}" if "elbo" in found else ""
        print(f"{name:<22}{found['seconds']:>9.1f}{elbo:>10}", flush=True)
    for name in wanted:
        if {"pathmix", name} <= set(seconds):
            ratio = seconds[name] / seconds["pathmix"]
            print(f"pathmix is {ratio:.1f} times as fast as {name}")


if __name__ == "__main__":
    main()
