"""Stands in for PostgREST: GET /quote lists the quotes, POST /quote adds one."""

import json
import subprocess
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LIST = "select coalesce(json_agg(q order by id), '[]') from quotes.quote q"
ADD = "insert into quotes.quote (text, author) values (:'text', :'author')"


def ask(sql: str, **variables: str) -> str:
    """Where the database is and how to get in, psql takes from the PG variables."""
    given = [word for name, value in variables.items() for word in ("--set", f"{name}={value}")]
    command = ["psql", "--no-psqlrc", "--quiet", "-At", "--set", "ON_ERROR_STOP=1", *given]
    done = subprocess.run(command, input=sql, capture_output=True, text=True, timeout=10)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


class Quotes(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(200, lambda: ask(LIST))

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(201, lambda: ask(ADD, text=sent["text"], author=sent["author"]))

    def _answer(self, status: int, work: Callable[[], str]) -> None:
        try:
            text = work()
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            status, text = 503, str(error)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(text.encode())


ThreadingHTTPServer(("", 3000), Quotes).serve_forever()
