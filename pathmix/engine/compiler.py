"""Options of XLA that make compilation short."""

import os
from functools import lru_cache

import jax


def compiler_options(level: int) -> dict[str, bool | int]:
    """Those that this version of XLA knows, on this kind of device, for a level of optimisation.

    On CPUs, fusion emitters take up to three times as long to compile code that is no faster; so, in part, do
    optimisations beyond the first level. In parts, an executable takes a fifth more time and twice the memory
    maps; there are many to compile at once.
    """
    if jax.default_backend() != "cpu":
        return {}
    wanted: dict[str, bool | int] = {
        "xla_cpu_use_fusion_emitters": False,
        "xla_backend_optimization_level": level,
        "xla_cpu_parallel_codegen_split_count": 1,
    }
    chosen = os.environ.get("XLA_FLAGS", "")  # by the user, who knows best
    return {name: value for name, value in wanted.items() if name not in chosen and _is_known(name)}


@lru_cache
def _is_known(name: str) -> bool:
    for value in (1, True):  # a number or a yes, whichever it takes
        try:
            jax.jit(lambda: 0, compiler_options={name: value})()
        except jax.errors.JaxRuntimeError:
            continue
        return True
    return False
