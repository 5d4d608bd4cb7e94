#!/usr/bin/env python3
"""What earlier versions do with a store of this one: refuse it and leave it as it is, or answer as this
version does. Anything else is a downgrade that loses data without a word.

    downgrade.py BINARY [COMMIT ...]

fills a store with BINARY, then builds each commit (those of the golden stores, unless some are named)
below target/old and starts its binary on a copy. Minutes for each commit. A commit that cannot be built, or
whose binary does not even start on an empty directory, is named as not asked and is no failure.
"""

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
# How Rust ends a process that panicked: nobody refused anything.
PANIC = 101


class NotAsked(Exception):
    """Why nothing is known of a commit."""


def build(commit):
    """The binary of a commit."""
    binary = OLD / f"quipu-{commit}"
    if binary.exists():
        return binary
    tree = OLD / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    archive = must(["git", "archive", commit], cwd=ROOT)
    subprocess.run(["tar", "-x", "-C", tree], input=archive, check=True)
    # Earlier commits have the binary in the package `server`.
    package = "server" if (tree / "crates/server").exists() else "quipu"
    without_sql = ["--no-default-features"] if "\ndefault = [" in (tree / "crates" / package / "Cargo.toml").read_text() else []
    environment = {**os.environ, "CARGO_TARGET_DIR": str(OLD / "target"), "CARGO_INCREMENTAL": "0"}
    must(["cargo", "build", "-q", "-p", package, *without_sql], cwd=tree, env=environment)
    shutil.copy(OLD / "target" / "debug" / "quipu", binary)
    return binary


def must(command, **more):
    """What a command of a build prints; without it there is nobody to ask."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").splitlines()
        first = next((line for line in lines if line.startswith(("error", "fatal"))), f"status {done.returncode}")
        raise NotAsked(f"{' '.join(command[:2])}: {first}")
    return done.stdout


def contents(store):
    """Every file of a directory with its bytes, but the lock, which says who has it open."""
    return {
        str(path.relative_to(store)): path.read_bytes()
        for path in sorted(Path(store).rglob("*"))
        if path.is_file() and path.name != "quipu.lock"
    }


def changes(before, after):
    """The files that are not what they were, or are new, or gone."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def check_starts(binary):
    """Fails unless it starts where there is nothing to refuse: else what it says is not about the store."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            make.Server(binary, os.path.join(scratch, "store")).stop(make.signal.SIGKILL)
        except make.Ended as end:
            raise NotAsked(f"does not start on an empty directory: {end}") from end


def refusal(end, changed):
    """Whether an end is one before anything was touched, by somebody who knew what to say; and the words."""
    is_refusal = end.status is not None and 0 < end.status != PANIC and end.words != ""
    words = f"refuses: {end.words}" if is_refusal else f"ends without a refusal: {end}"
    return is_refusal and not changed, words + (f"; CHANGED {', '.join(changed)}" if changed else "")


def answers(server, told):
    """Whether it answers as it was told; and what it does instead."""
    try:
        found = make.expected(server, told["made"])
    except (OSError, ValueError, KeyError) as error:
        return False, f"starts, and fails to answer: {error}"
    differing = [what for what in told if json.dumps(found.get(what), sort_keys=True) != json.dumps(told[what], sort_keys=True)]
    return not differing, f"starts; differs in {', '.join(differing)}" if differing else "starts, and answers the same"


def judge(binary, store, told):
    """Whether what a binary does with a copy of a store is good; and what that is."""
    check_starts(binary)
    with tempfile.TemporaryDirectory() as scratch:
        copy = os.path.join(scratch, "store")
        shutil.copytree(store, copy)
        before = contents(copy)
        try:
            server = make.Server(binary, copy)
        except make.Ended as end:
            return refusal(end, changes(before, contents(copy)))
        try:
            return answers(server, told)
        finally:
            server.stop(make.signal.SIGKILL)


def ask(commits, store, told, build=build):
    """Asks each, and says at the end how many passed; whether none did wrong."""
    bad, not_asked = 0, []
    for commit in commits:
        try:
            good, words = judge(build(commit), store, told)
        except NotAsked as why:
            not_asked.append(commit)
            print(f"{commit}  --   not asked: {why}", flush=True)
            continue
        bad += not good
        print(f"{commit}  {'ok ' if good else 'BAD'}  {words}", flush=True)
    rest = f"; not asked: {', '.join(not_asked)}" if not_asked else ""
    print(f"{len(commits) - len(not_asked) - bad} passed, {bad} failed{rest}")
    return bad == 0


def main():
    binary, commits = sys.argv[1], sys.argv[2:]
    if not commits:
        commits = [path.name.split("-")[1].split(".")[0] for path in sorted(Path(__file__).parent.glob("*.tar.gz"))]
    with tempfile.TemporaryDirectory() as scratch:
        store = os.path.join(scratch, "store")
        told = make.fill(binary, store)
        sys.exit(not ask(commits, store, told))


if __name__ == "__main__":
    main()
