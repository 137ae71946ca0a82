"""A Ray cluster of several nodes on this machine."""

import logging

import pytest

ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")

# Of Ray's own.
QUIET = [
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


class Nodes:
    """The driver's node has no room for workers."""

    def __init__(self, count):
        self.cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        self.nodes = [self.cluster.add_node(num_cpus=1) for _ in range(count)]
        ray.init(address=self.cluster.address, log_to_driver=False, logging_level=logging.ERROR)

    def kill(self, number=0):
        self.cluster.remove_node(self.nodes.pop(number), allow_graceful=False)

    def add(self):
        self.nodes.append(self.cluster.add_node(num_cpus=1))

    def stop(self):
        ray.shutdown()
        self.cluster.shutdown()
