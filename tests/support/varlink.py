# SPDX-License-Identifier: BSD-2-Clause
"""A small Varlink client: JSON objects ending in NUL, over a UNIX socket."""

import json
import socket


class VarlinkError(AssertionError):
    """The service answered with an error: its name and its parameters."""

    def __init__(self, name, parameters):
        super().__init__(f"{name} {json.dumps(parameters)}")
        self.name = name
        self.parameters = parameters


class Client:
    """One connection; a context manager."""

    def __init__(self, path, seconds=10):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(seconds)
        self._buffer = b""
        try:
            self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.close()

    def shutdown(self):
        """End the connection under a thread that waits for a reply."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the service was faster

    def close(self):
        self._socket.close()

    def send(self, method, parameters=None, **flags):
        """A request; @flags: more=True, oneway=True."""
        request = {"method": method, "parameters": parameters or {}, **flags}
        self._socket.sendall(json.dumps(request).encode() + b"\0")

    def receive(self):
        """The next reply as it came: {"parameters", "continues", "error"}."""
        while b"\0" not in self._buffer:
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionError("the service closed the connection")
            self._buffer += data
        reply, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(reply)

    def _parameters(self):
        reply = self.receive()
        if "error" in reply:
            raise VarlinkError(reply["error"], reply.get("parameters"))
        return reply.get("parameters", {}), reply.get("continues", False)

    def call(self, method, parameters=None):
        self.send(method, parameters)
        return self._parameters()[0]

    def stream(self, method, parameters=None):
        """Call with `more`; yields the parameters of each reply."""
        self.send(method, parameters, more=True)
        more = True
        while more:
            value, more = self._parameters()
            yield value
