"""pygls' protocol with its faults repaired: every request is answered exactly once, whatever it looks like.

Knows JSON-RPC, the LSP life cycle and which document a message speaks of; of the features only how notebooks are kept.
What pygls 2.1 does not do and this class does: answer malformed requests with an error, keep custom params as plain
dicts, refuse requests before `initialize` and after `shutdown`, shut down in the middle of work, end with the exit code
LSP asks for, cancel commands, and hand every handler the document as it was when its message arrived.
"""

from __future__ import annotations

import contextvars
import inspect
import json
import logging
from collections.abc import Generator, Sequence
from typing import Any, cast

from lsprotocol import converters, types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.protocol import JsonRPCNotification, JsonRPCRequestMessage, JsonRPCResponseMessage, LanguageServerProtocol
from pygls.protocol.language_server import lsp_method

from lsp_server import convert
from lsp_server.anchors import Anchors
from lsp_server.documents import Document, Encoding
from lsp_server.features import notebook
from lsp_server.files import Files
from lsp_server.transport import FramingError

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, NOT_INITIALIZED = -32700, -32600, -32601, -32602, -32002

logger = logging.getLogger(__name__)


class Protocol(LanguageServerProtocol):
    """One LSP session. `files` holds the open documents, `anchors` follow stretches of them; `ended` is true when the
    session is over."""

    _server: Any

    def __init__(self, server: Any, converter: Any) -> None:
        self.files = Files()
        self.anchors = Anchors()
        self.exit_code = 0
        self.ended = False
        self._initialized = False
        self._snapshot: contextvars.ContextVar[Document | None] = contextvars.ContextVar("snapshot", default=None)
        super().__init__(server, converter)

    # --- messages in ------------------------------------------------------------------------------------------------

    def handle_body(self, body: bytes | FramingError) -> None:
        """Take one message as it came off the wire."""
        if isinstance(body, FramingError):
            return self._refuse(None, INVALID_REQUEST, str(body))
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            return self._refuse(None, PARSE_ERROR, f"not JSON: {error}")
        if not isinstance(message, dict):
            return self._refuse(None, INVALID_REQUEST, "a message must be a JSON object (there are no batches in LSP)")
        msg_id = message.get("id")
        if "id" in message and (isinstance(msg_id, bool) or not isinstance(msg_id, int | str)):
            return self._refuse(None, INVALID_REQUEST, "id must be a number or a string")
        if "method" in message:
            return self._take_call(message, msg_id)
        if msg_id is None or not ("result" in message or "error" in message):
            return self._refuse(None, INVALID_REQUEST, "neither a request nor a response")
        return self._take_response(message)

    def _take_call(self, message: dict[str, Any], msg_id: int | str | None) -> None:
        method = message["method"]
        if not isinstance(method, str):
            return self._refuse(msg_id, INVALID_REQUEST, "method must be a string")
        if message.get("jsonrpc") != "2.0":
            return self._refuse(msg_id, INVALID_REQUEST, 'jsonrpc must be "2.0"')
        if refusal := self._out_of_order(method):
            return self._refuse(msg_id, *refusal) if msg_id is not None else None
        if msg_id is not None and method not in self.fm.features and method not in self.fm.builtin_features:
            return self._refuse(msg_id, METHOD_NOT_FOUND, f"unknown method {method}")
        try:
            call = self._structured(message, method)
        except Exception as error:  # noqa: BLE001  cattrs raises whatever the payload provokes
            reason = f"invalid params for {method}: {_first_line(error)}"
            return self._refuse(msg_id, INVALID_PARAMS, reason) if msg_id is not None else logger.warning(reason)
        self._initialized = self._initialized or method == types.INITIALIZE
        self._snapshot.set(self.files.documents.get(_uri(message.get("params"))))
        self.handle_message(call)
        return None

    def _out_of_order(self, method: str) -> tuple[int, str] | None:
        """Why a method cannot be called now, or None."""
        if method == types.EXIT:
            return None
        if self._shutdown:
            return INVALID_REQUEST, "the server has been shut down"
        if method == types.INITIALIZE:
            return (INVALID_REQUEST, "initialize may be sent only once") if self._initialized else None
        return None if self._initialized else (NOT_INITIALIZED, "initialize must come first")

    def _structured(self, message: dict[str, Any], method: str) -> Any:
        known = self.get_message_type(method)
        params = message.get("params")
        if known is not None:
            if method == types.INITIALIZED and params is None:  # Some clients leave out what is empty anyway.
                message = message | {"params": {}}
            return self._converter.structure(message, known)
        if "id" in message:
            return JsonRPCRequestMessage(id=message["id"], method=method, jsonrpc="2.0", params=params)
        return JsonRPCNotification(method=method, jsonrpc="2.0", params=params)

    def _take_response(self, message: dict[str, Any]) -> None:
        try:
            self.handle_message(self.structure_message(message))
        except Exception:  # noqa: BLE001  a client's malformed answer is the client's fault; whoever waits is told
            logger.warning("malformed response to request %r", message["id"])
            if future := self._request_futures.pop(message["id"], None):
                future.cancel()

    def _refuse(self, msg_id: int | str | None, code: int, reason: str) -> None:
        """Answer what cannot be served with an error; with id null where the message has none that can be used."""
        logger.warning("refused a message: %s", reason)
        if self.writer is not None:
            body = json.dumps({"jsonrpc": "2.0", "id": msg_id, "error": {"code": code, "message": reason}})
            self.writer.write(f"Content-Length: {len(body)}\r\n\r\n{body}".encode())

    def snapshot(self) -> Document | None:
        """The document that the message under way speaks of, as it was when the message arrived."""
        return self._snapshot.get()

    # --- documents --------------------------------------------------------------------------------------------------

    def encoding(self) -> Encoding:
        """The position encoding agreed with the client."""
        return cast(Encoding, str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding)))

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        self.files.open(convert.document(params.text_document))

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        self.change(params.text_document, params.content_changes)

    def change(
        self,
        changed: types.VersionedTextDocumentIdentifier,
        changes: Sequence[types.TextDocumentContentChangeEvent],
    ) -> None:
        """Apply the changes of one notification to a document or cell."""
        document = self.files.documents.get(changed.uri)
        if document is None:
            logger.warning("change of a document that is not open: %s", changed.uri)
            return
        for change in changes:
            before, encoding = document, self.encoding()
            document = convert.apply_change(before, change, changed.version, encoding)
            if self.anchors.wanted(changed.uri):
                span = convert.changed_span(before, change, encoding)
                self.anchors.changed(before, document, span, len(change.text))
        self.files.change(document)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        self.files.close(params.text_document.uri)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: types.DidOpenNotebookDocumentParams) -> None:
        notebook.opened(self.files, params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(self, params: types.DidChangeNotebookDocumentParams) -> None:
        notebook.changed(self.files, params, self.change)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(self, params: types.DidCloseNotebookDocumentParams) -> None:
        notebook.closed(self.files, params)

    # --- life cycle -------------------------------------------------------------------------------------------------

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """As pygls does it, except that a client may count columns in another way than it says, and that the
        server may hold back what this client has no use for."""
        convert.count_columns(params)
        result = yield from super().lsp_initialize(params)
        self._server.hold_back(result.capabilities, params.capabilities)
        return result

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *_: Any) -> None:  # type: ignore[override]  # pygls has generators here
        self._shutdown = True
        self.cancel_requests()

    def cancel_requests(self) -> None:
        """Cancel whatever is under way, in both directions."""
        for future in list(self._request_futures.values()):
            future.cancel()

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: Any) -> None:  # type: ignore[override]
        self.exit_code = 0 if self._shutdown else 1
        self.ended = True

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> Any:  # type: ignore[override]
        """A plain coroutine, so that cancelling the request cancels the command. Arguments stay plain JSON."""
        handler = self.fm.commands.get(params.command)
        if handler is None:
            raise JsonRpcInvalidParams(f"unknown command {params.command}")
        try:
            call = inspect.signature(handler).bind(*(params.arguments or ()))
        except TypeError as error:
            raise JsonRpcInvalidParams(f"{params.command}: {error}") from error
        result = handler(*call.args)
        return await result if inspect.isawaitable(result) else result


def converter() -> Any:
    """lsprotocol's converter; results of custom requests stay plain dicts."""
    made = converters.get_converter()
    for cls in (JsonRPCRequestMessage, JsonRPCResponseMessage, JsonRPCNotification):
        made.register_structure_hook(cls, lambda body, cls: cls(**body))
    return made


def _uri(params: Any) -> str:
    document = params.get("textDocument") if isinstance(params, dict) else None
    uri = document.get("uri") if isinstance(document, dict) else None
    return uri if isinstance(uri, str) else ""


def _first_line(error: Exception) -> str:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
