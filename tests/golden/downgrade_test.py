#!/usr/bin/env python3
"""What `downgrade.py` makes of binaries that refuse, break, spoil, answer or cannot be built: each is a few
lines that stand in for one."""

import contextlib
import io
import os
import tempfile
import unittest
from pathlib import Path

import downgrade
import make

# Starts where the directory is empty, as each of them has to; what comes then is its own.
HEAD = """#!/usr/bin/env python3
import os, pathlib, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
if "--help" in sys.argv:
    sys.exit(0)
def say(name):
    return sys.argv[sys.argv.index(name) + 1]
class Ready(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
def serve():
    host, port = say("--http-listen").split(":")
    HTTPServer((host, int(port)), Ready).serve_forever()
def end(words, status):
    print("it begins", file=sys.stderr)
    print(words, file=sys.stderr)
    sys.exit(status)
store = pathlib.Path(say("--data-dir"))
if not store.exists():
    serve()
(store / "quipu.lock").write_text("mine")
"""

BINARIES = {
    "newer": "end('written by a newer version', 1)",
    "other": "end('no magic number that I know', 1)",
    "spoils": "(store / 'part').write_text('B'); end('no magic number that I know', 1)",
    "adds": "(store / 'more').write_text(''); end('no magic number that I know', 1)",
    "removes": "(store / 'part').unlink(); end('no magic number that I know', 1)",
    "panics": "end('thread main panicked', 101)",
    "dies": "os.kill(os.getpid(), 9)",
    "silent": "sys.exit(1)",
    "ends": "end('good bye', 0)",
    "serves": "serve()",
}
TOLD = {"made": [], "export": ["a"]}


class Downgrade(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(setattr, make, "expected", make.expected)
        make.expected = lambda server, has: TOLD
        self.scratch = Path(scratch.name)
        self.store = self.scratch / "store"
        self.store.mkdir()
        (self.store / "part").write_text("A")

    def binary(self, name):
        if name not in BINARIES:
            raise downgrade.NotAsked("cargo build: error: no such crate")
        path = self.scratch / name
        path.write_text(HEAD + BINARIES[name] + "\n")
        os.chmod(path, 0o755)
        return path

    def ask(self, *names):
        """Whether all is well, and what was said."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            is_good = downgrade.ask(names, self.store, TOLD, build=self.binary)
        return is_good, said.getvalue()

    def test_refusals_in_any_words_that_touch_nothing_are_good(self):
        is_good, said = self.ask("newer", "other")
        self.assertTrue(is_good, said)
        self.assertIn("other  ok   refuses: no magic number that I know", said)
        self.assertIn("2 passed, 0 failed\n", said)

    def test_who_touches_something_or_refuses_nothing_is_bad(self):
        for name, words in [
            ("spoils", "CHANGED part"),
            ("adds", "CHANGED more"),
            ("removes", "CHANGED part"),
            ("panics", "ends without a refusal: status 101: thread main panicked"),
            ("dies", "ends without a refusal: status -9"),
            ("silent", "ends without a refusal: status 1"),
            ("ends", "ends without a refusal: status 0"),
        ]:
            is_good, said = self.ask(name)
            self.assertFalse(is_good, said)
            self.assertIn(f"{name}  BAD  ", said)
            self.assertIn(words, said)

    def test_what_cannot_be_built_is_named_and_the_others_are_asked(self):
        is_good, said = self.ask("unbuilt", "newer", "serves")
        self.assertTrue(is_good, said)
        self.assertIn("unbuilt  --   not asked: cargo build: error: no such crate", said)
        self.assertIn("serves  ok   starts, and answers the same", said)
        self.assertTrue(said.endswith("2 passed, 0 failed; not asked: unbuilt\n"), said)
        is_good, said = self.ask("unbuilt", "spoils")
        self.assertFalse(is_good, said)

    def test_a_refusal_of_an_empty_directory_says_nothing_of_the_store(self):
        BINARIES["never"] = ""
        self.addCleanup(BINARIES.pop, "never")
        path = self.binary("never")
        path.write_text("#!/bin/sh\n[ \"$2\" = --help ] || { echo address in use >&2; exit 1; }\n")
        with self.assertRaises(downgrade.NotAsked):
            downgrade.judge(path, self.store, TOLD)

    def test_other_answers_and_none_are_bad(self):
        make.expected = lambda server, has: {**TOLD, "export": ["b"]}
        self.assertIn("BAD  starts; differs in export", self.ask("serves")[1])

        def fails(server, has):
            raise OSError("gone")

        make.expected = fails
        self.assertIn("BAD  starts, and fails to answer: gone", self.ask("serves")[1])

    def test_a_commit_that_is_not_there_is_not_asked(self):
        with self.assertRaises(downgrade.NotAsked):
            downgrade.build("0000000000")


if __name__ == "__main__":
    unittest.main()
