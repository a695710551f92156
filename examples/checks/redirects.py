"""Two hosts: the first one redirects every request to the second, which must never see a key."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = "mfk_" + "k" * 38
PAGE = b'{"data": [], "has_more": false, "next_sync_token": "t"}'


class Host(BaseHTTPRequestHandler):
    """Notes each request, and redirects it, or answers with a page of a feed without entries."""

    def do_GET(self):
        self.server.heads.append(self.path + "\n" + str(self.headers))
        target = self.server.target
        self.send_response(302 if target else 200)
        if target:
            self.send_header("Location", target + self.path)
        self.send_header("Content-Length", str(0 if target else len(PAGE)))
        self.end_headers()
        if not target and self.command == "GET":
            self.wfile.write(PAGE)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


class Redirects:
    """The two hosts, while they run."""

    def __enter__(self):
        self.second, self.first = self.start("127.0.0.2", None), None
        self.target = f"http://127.0.0.2:{self.second.server_port}"
        self.first = self.start("127.0.0.1", self.target)
        self.url = f"http://127.0.0.1:{self.first.server_port}"
        return self

    @staticmethod
    def start(address, target):
        server = ThreadingHTTPServer((address, 0), Host)
        server.target, server.heads = target, []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def __exit__(self, *_):
        for server in (self.first, self.second):
            server.shutdown()
            server.server_close()

    def fault(self, said, follows=False):
        """What is wrong, in words; None if nothing is. `said` is what the client said. A client that `follows` redirects
        must have come to the second host, without the key; any other one must say where it was sent."""
        if not any(KEY in head for head in self.first.heads):
            return "the key did not come to the first host"
        if any(KEY in head for head in self.second.heads):
            return "the key came to the second host"
        if follows:
            return None if self.second.heads else "the second host was not asked"
        if self.second.heads:
            return "the second host was asked"
        is_said = f"redirects to {self.target};" in said
        return None if is_said else f"it does not say where the service points: {said}"
