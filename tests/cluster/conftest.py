import pytest


@pytest.fixture(scope="module")
def nodes():
    from tests.cluster.nodes import Nodes

    found = Nodes(2)
    yield found
    found.stop()
