"""Runs the SDVI paper's code on its kernel grammar. For `peers`, which starts it inside the checkout.

python peer_sdvi.py ITERATIONS PROCESSES
"""

import json
import sys
import time
from pathlib import Path

import pyro
import torch

# Of the checkout.
from models.gp_kernel_learning import GPKernelLearning
from models.pyro_extensions.infer import SDVI
from models.pyro_extensions.resource_allocation import SuccessiveHalving


def main():
    iterations, processes = (int(argument) for argument in sys.argv[1:])
    pyro.set_rng_seed(0)
    torch.set_default_dtype(torch.float64)
    model = GPKernelLearning(Path("data/airline/airline.csv"))
    sdvi = SDVI(
        model,
        learning_rate=0.005,
        guide_class_name="MeanFieldNormal",
        utility_class=SuccessiveHalving(num_total_iterations=iterations, num_final_arms=10),
        slps_identified_by_discrete_samples=model.slps_identified_by_discrete_samples,
        find_slp_samples=1_000,
        exclusive_kl_num_particles=1,
        elbo_estimate_num_particles=100,
        autoguide_hide_vars=model.autoguide_hide_vars,
        num_parallel_processes=processes,
        save_metrics_every_n=200,
    )
    begun = time.perf_counter()
    sdvi.run(lambda *_: None)
    _, elbos = sdvi.calculate_slp_weights()
    print(json.dumps({"seconds": time.perf_counter() - begun, "elbo": float(elbos[-1])}))


if __name__ == "__main__":
    main()
