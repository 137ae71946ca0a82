"""A driver to be interrupted: `python -m tests.cluster.driver FOLDER threads|ray`.

Says when training begins, and at the end what became of it.
"""

import hashlib
import sys

import pathmix
from tests.cluster.programs import Y, bits, walk


class Said(pathmix.Progress):
    def stage(self, text):
        pass

    def budget(self, iterations):
        pass

    def advance(self, iterations, label, elbo):
        print("trained", flush=True)

    def done(self, timings):
        pass


def main():
    folder, executor = sys.argv[1:]
    inference = pathmix.SDVI(
        walk,
        allocation=pathmix.SuccessiveHalving(20_000),
        executor=pathmix.RayExecutor(1, address="local") if executor == "ray" else executor,
        checkpoint=folder,
        progress=Said(),
    )
    posterior = inference.run(0, Y)
    print("interrupted" if any("interrupted" in note for note in posterior.notes) else "complete")
    print(hashlib.sha256(repr(bits(posterior)).encode()).hexdigest())


if __name__ == "__main__":
    main()
