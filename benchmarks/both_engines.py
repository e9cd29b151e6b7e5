"""One repository, answered from its files and from a cluster: what the two are compared with."""

from collections.abc import Sequence

from sage.cluster.backend import open_cluster
from sage.cluster.connection import Connection
from sage.cluster.options import cluster_options
from sage.deadline import Deadline
from sage.knowledge import KnowledgeBase
from sage.publish.plan import Published
from sage.publish.publisher import Publisher, PublishOptions
from sage.settings import rootless_settings


class Both:
    """One repository, answered from its files and from the cluster."""

    def __init__(self, files: KnowledgeBase, urls: Sequence[str], base: str) -> None:
        self.files = files
        self.connection = Connection(cluster_options(urls, base, {}))
        self.cluster = self.files

    def publish(self) -> Published:
        """Bring the cluster to the files, and open a replica if there is none."""
        done = Publisher(self.files, self.connection, PublishOptions()).publish()
        if self.cluster is self.files:
            self.cluster = self.replica()
        return done

    def replica(self) -> KnowledgeBase:
        """A base that is answered from the cluster."""
        return open_cluster(self.connection, rootless_settings(environment={}), Deadline(60_000))
