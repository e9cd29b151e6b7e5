"""Tells clients that the knowledge base changed, in both eras of the protocol.

Clients of 2026-07-28 listen on a stream they opened; older ones are sent a notification, for
single resources only when they subscribed. FastMCP 4.1 has neither, so both are added here to
the low-level server underneath it.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
)
from mcp_types import (
    EmptyResult,
    NotificationParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.lowlevel.server import Server

MAX_SUBSCRIPTIONS = 1000


class Subscribers:
    """Everybody who wants to know when the knowledge base changes.

    Args:
        check_uri: raises a protocol error for what is no address of ours.
    """

    def __init__(self, check_uri: Callable[[str], None]) -> None:
        self._check_uri = check_uri
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus, max_subscriptions=MAX_SUBSCRIPTIONS)
        self._listening = 0
        # What each connection subscribed to, from the moment it says it is initialized.
        self._connections: dict[Connection, set[str]] = {}

    def attach(self, server: "Server[Any]") -> None:
        """Serve subscriptions on a low-level server and meet its connections."""
        server.add_request_handler(
            "subscriptions/listen", SubscriptionsListenRequestParams, self._on_listen
        )
        server.add_request_handler(
            "resources/subscribe", SubscribeRequestParams, self._on_subscribe
        )
        server.add_request_handler(
            "resources/unsubscribe", UnsubscribeRequestParams, self._on_unsubscribe
        )
        server.add_notification_handler(
            "notifications/initialized", NotificationParams, self._on_initialized
        )

    @property
    def present(self) -> bool:
        """Whether anybody would hear."""
        return bool(self._connections or self._listening)

    async def tell(self, uris: Iterable[str]) -> None:
        """Say that the list of resources and the content of these changed."""
        changed = set(uris)
        await self._bus.publish(ResourcesListChanged())
        for uri in sorted(changed):
            await self._bus.publish(ResourceUpdated(uri=uri))
        for connection, subscribed in list(self._connections.items()):
            await connection.send_resource_list_changed()
            for uri in sorted(subscribed & changed):
                await connection.send_resource_updated(uri)

    async def _on_initialized(
        self, context: ServerRequestContext[Any, Any], _: NotificationParams
    ) -> None:
        # The session offers no public way to its connection in mcp 2.3.
        connection = context.session._connection
        self._connections[connection] = set()
        connection.exit_stack.callback(self._connections.pop, connection, None)

    async def _on_listen(
        self,
        context: ServerRequestContext[Any, Any],
        params: SubscriptionsListenRequestParams,
    ) -> HandlerResult:
        self._listening += 1
        try:
            return await self._listen(context, params)
        finally:
            self._listening -= 1

    async def _on_subscribe(
        self, context: ServerRequestContext[Any, Any], params: SubscribeRequestParams
    ) -> EmptyResult:
        self._check_uri(params.uri)
        subscribed = self._connections.get(context.session._connection)
        if subscribed is not None and len(subscribed) < MAX_SUBSCRIPTIONS:
            subscribed.add(params.uri)
        return EmptyResult()

    async def _on_unsubscribe(
        self, context: ServerRequestContext[Any, Any], params: UnsubscribeRequestParams
    ) -> EmptyResult:
        self._connections.get(context.session._connection, set()).discard(params.uri)
        return EmptyResult()
