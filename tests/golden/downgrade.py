#!/usr/bin/env python3
"""What earlier versions do with a store of this one: refuse it with words and leave it as it is, or
answer as this version does. Anything else is a downgrade that loses data without a word.

    downgrade.py BINARY [COMMIT ...]

fills a store with BINARY, then builds each commit (those of the golden stores, unless some are named)
below target/old and starts its binary on a copy. Minutes for each commit.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import make

ROOT = Path(__file__).parent.parent.parent
OLD = ROOT / "target" / "old"


def build(commit):
    """The binary of a commit."""
    binary = OLD / f"quipu-{commit}"
    if binary.exists():
        return binary
    tree = OLD / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-x", "-C", tree], input=archive.stdout, check=True)
    without_sql = ["--no-default-features"] if "\ndefault = [" in (tree / "crates/server/Cargo.toml").read_text() else []
    environment = {**os.environ, "CARGO_TARGET_DIR": str(OLD / "target"), "CARGO_INCREMENTAL": "0"}
    subprocess.run(["cargo", "build", "-q", "-p", "server", *without_sql], cwd=tree, env=environment, check=True)
    shutil.copy(OLD / "target" / "debug" / "quipu", binary)
    return binary


def contents(store):
    """A hash of each file of a directory, but of the lock, which says who has it open."""
    return {
        str(path.relative_to(store)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(Path(store).rglob("*"))
        if path.is_file() and path.name != "quipu.lock"
    }


def refusal(binary, store):
    """What it says instead of starting; none where it starts."""
    known = subprocess.run([binary, "serve", "--help"], capture_output=True, text=True).stdout
    flags = ["--data-dir", store, "--http-listen", "127.0.0.1:0"]
    for door in ("redis-listen", "postgres-listen"):
        if f"--{door}" in known:
            flags += [f"--{door}", "127.0.0.1:0"]
    try:
        done = subprocess.run([binary, "serve", *flags], capture_output=True, text=True, timeout=5)
    except subprocess.TimeoutExpired:
        return None
    return done.stderr.strip().splitlines()[-1] if done.returncode != 0 else None


def same_answers(binary, store, told):
    """What of the answers differs, as words."""
    server = make.Server(binary, store)
    try:
        found = make.expected(server, told["made"])
    finally:
        server.stop(make.signal.SIGKILL)
    return [what for what in told if json.dumps(found.get(what), sort_keys=True) != json.dumps(told[what], sort_keys=True)]


def judge(commit, store, told):
    binary = build(commit)
    with tempfile.TemporaryDirectory() as scratch:
        copy = os.path.join(scratch, "store")
        shutil.copytree(store, copy)
        before = contents(copy)
        words = refusal(binary, copy)
        if words is not None:
            changed = sorted(path for path, now in contents(copy).items() if before.get(path) != now)
            changed += sorted(path for path in before if not os.path.exists(os.path.join(copy, path)))
            good = not changed and ("newer" in words or "version" in words)
            return good, f"refuses: {words}" + (f"; CHANGED {', '.join(changed)}" if changed else "")
        differing = same_answers(binary, copy, told)
        return not differing, f"starts; differs in {', '.join(differing)}" if differing else "starts, and answers the same"


def main():
    binary, commits = sys.argv[1], sys.argv[2:]
    if not commits:
        commits = [path.name.split("-")[1].split(".")[0] for path in sorted(Path(__file__).parent.glob("*.tar.gz"))]
    bad = 0
    with tempfile.TemporaryDirectory() as scratch:
        store = os.path.join(scratch, "store")
        told = make.fill(binary, store)
        for commit in commits:
            good, words = judge(commit, store, told)
            bad += not good
            print(f"{commit}  {'ok ' if good else 'BAD'}  {words}", flush=True)
    print(f"{len(commits) - bad} passed, {bad} failed")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
