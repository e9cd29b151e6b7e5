"""The pages and their addresses: each address has one view that answers it."""

from dataclasses import replace
from urllib.parse import unquote

from sage.errors import InvalidInput, SageError, TimeoutExceeded, Unavailable
from sage.knowledge import KnowledgeBase
from sage.page.around_view import AroundView
from sage.page.context_view import ContextView
from sage.page.health_view import HealthView, Unanswered
from sage.page.pages import PageSource
from sage.page.reading_view import ReadingView
from sage.page.response import PageRequest, PageResponse
from sage.page.search_view import SearchView
from sage.page.templating import Templates

__all__ = ["PageRequest", "PageResponse", "Site", "Templates", "message_page", "sign_in_page"]

_PLAIN = "text/plain; charset=utf-8"
_NOBODY = PageRequest("/")
"""What is asked by whoever may not look yet."""


class Site:
    """Every page over one knowledge base. Safe to share between threads."""

    def __init__(
        self,
        knowledge: KnowledgeBase,
        templates: Templates | None = None,
        unanswered: Unanswered | None = None,
    ) -> None:
        self._templates = templates or Templates()
        self._source = PageSource(knowledge)
        parts = (knowledge, self._source, self._templates)
        self._search = SearchView(*parts)
        self._context = ContextView(knowledge, self._templates)
        self._reading = ReadingView(*parts)
        self._around = AroundView(*parts)
        self._health = HealthView(knowledge, self._source, self._templates, unanswered)

    def answer(self, request: PageRequest) -> PageResponse:
        """The page at an address; one that says what is wrong when there is none."""
        first, *rest = [unquote(part) for part in request.path.strip("/").split("/")]
        try:
            request = replace(request, version=self._source.version())
            return self._view(first, rest, request) or self._unknown(request)
        except InvalidInput as error:
            return self._templates.page(
                "error.html", request, 400, title="Not understood", message=str(error)
            )
        except SageError as error:
            status = 503 if isinstance(error, Unavailable | TimeoutExceeded) else 500
            return self._templates.page(
                "error.html", request, status, title="Not now", message=str(error)
            )

    def _view(self, first: str, rest: list[str], request: PageRequest) -> PageResponse | None:
        match first, rest:
            case "", []:
                return self._search.page(request)
            case "choices", []:
                return self._search.choices(request)
            case "recent", []:
                return self._search.recent(request)
            case "why", []:
                return self._search.why(request)
            case "context", []:
                return self._context.page(request)
            case "read", [_, *_]:
                return self._reading.page("/".join(rest), request)
            case "raw", [_, *_]:
                return self._reading.raw("/".join(rest), request)
            case "around", [_, *_]:
                return self._around.page("/".join(rest), request)
            case "health", []:
                return self._health.page(request)
            case "health", ["findings"]:
                return self._health.findings(request)
            case "health", ["care"]:
                return self._health.care(request)
            case "live", []:
                return PageResponse(request.version.encode(), 200, _PLAIN)
        return None

    def _unknown(self, request: PageRequest) -> PageResponse:
        message = f"There is no page at {request.path[:200]}. Search for it, or begin at a layer."
        return self._templates.page("error.html", request, 404, title="Not found", message=message)


def sign_in_page(templates: Templates, failed: str = "", wanted: str = "/") -> PageResponse:
    """The form that turns a token into a session.

    Args:
        wanted: the address that is shown afterwards.
    """
    return templates.page("sign_in.html", _NOBODY, 401, failed=failed, wanted=wanted)


def message_page(templates: Templates, status: int, message: str) -> PageResponse:
    """A page that only says something."""
    title = "Not found" if status == 404 else "Not for you"
    return templates.page("error.html", _NOBODY, status, title=title, message=message)
