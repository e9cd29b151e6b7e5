"""What `sage_info` answers: what is served, and whether anything is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sage import __version__
from sage.answers import (
    CacheInfo,
    IndexInfo,
    InfoAnswer,
    KnowledgeBaseInfo,
    LayerInfo,
    ProblemInfo,
    ProblemsInfo,
)
from sage.library import Listing
from sage.problems import Problem

SHOWN_PROBLEMS = 5


@dataclass(frozen=True, slots=True)
class Size:
    """How much of a layer is in the index."""

    sections: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    """The measurements from which the answer is made."""

    listings: Sequence[Listing]
    problems: Sequence[Problem]
    """What is not served as written; what was left out on purpose is not in it."""
    sizes: Mapping[str, Size] | None
    """None until the index is ready."""
    index: IndexInfo
    cache: CacheInfo
    folder_exists: bool
    encoding: str
    uptime_seconds: float

    def answer(self) -> InfoAnswer:
        """The object that the tool and the command show."""
        reasons = self._reasons()
        files = [source for listing in self.listings for source in listing.files]
        unhealthy = not self.folder_exists
        return InfoAnswer(
            version=__version__,
            status="unhealthy" if unhealthy else "degraded" if reasons else "healthy",
            knowledge_base=KnowledgeBaseInfo(
                content_files=len(files),
                total_size_kb=round(sum(source.stamp.size for source in files) / 1024, 1),
                layers=[self._layer(listing) for listing in self.listings],
            ),
            cache=self.cache,
            uptime_seconds=self.uptime_seconds,
            reasons=reasons,
            index=self.index,
            problems=ProblemsInfo(
                count=len(self.problems),
                first=[
                    ProblemInfo(path=problem.path, what=problem.message)
                    for problem in self.problems[:SHOWN_PROBLEMS]
                ],
            ),
            encoding=self.encoding,
        )

    def _layer(self, listing: Listing) -> LayerInfo:
        size = self.sizes.get(listing.layer, Size()) if self.sizes is not None else None
        return LayerInfo(
            name=listing.layer,
            files=len(listing.files),
            sections=size.sections if size else None,
            tokens=size.tokens if size else None,
        )

    def _reasons(self) -> list[str]:
        if not self.folder_exists:
            return ["the .knowledge folder is gone: restore it, or serve another root"]
        reasons = []
        if not any(listing.files for listing in self.listings):
            layers = ", ".join(listing.layer for listing in self.listings)
            reasons.append(f"no documents yet: put markdown files under .knowledge ({layers})")
        if self.problems:
            more = f" and {len(self.problems) - 1} more" if len(self.problems) > 1 else ""
            reasons.append(f"not served as written: {self.problems[0]}{more}")
        if self.index["state"] != "ready":
            reasons.append(f"the search index is {self.index['state']}")
        return reasons
