"""Celery with a worker of its own against a server at the port that the first argument says: broker and
results are keys. Silent when all is well."""

import os
import signal
import subprocess
import sys
import time

from celery import Celery, chord, group

PORT = sys.argv[1] if len(sys.argv) == 2 else os.environ["QUIPU_PORT"]
app = Celery("celery_jobs", broker=f"redis://127.0.0.1:{PORT}/1", backend=f"redis://127.0.0.1:{PORT}/2")
app.conf.update(worker_hijack_root_logger=False, broker_connection_retry_on_startup=True, task_acks_late=True,
                broker_transport_options={"visibility_timeout": 3600, "priority_steps": [0, 5], "sep": ":"})


@app.task(name="add")
def add(one, other):
    return one + other


@app.task(name="total")
def total(numbers):
    return sum(numbers)


@app.task(name="fails", bind=True, max_retries=1, default_retry_delay=0)
def fails(self):
    try:
        raise ValueError("as wanted")
    except ValueError as error:
        raise self.retry(exc=error)


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    environment = dict(os.environ, QUIPU_PORT=PORT)
    line = [sys.executable, "-m", "celery", "-A", "celery_jobs", "worker", "--concurrency", "2", "--loglevel", "FATAL",
            "--pool", "threads"]
    worker = subprocess.Popen(line, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        assert add.delay(2, 3).get(timeout=60) == 5
        assert group(add.s(n, n) for n in range(50))().get(timeout=60) == [2 * n for n in range(50)]
        # The last of a group starts what is behind it: counted in the backend, told by a channel.
        assert chord(add.s(n, 1) for n in range(20))(total.s()).get(timeout=60) == sum(range(20)) + 20
        assert add.apply_async((1, 1), countdown=0.2, priority=5, expires=60).get(timeout=60) == 2
        failed = fails.delay()
        try:
            failed.get(timeout=60)
            raise AssertionError("passed")
        except ValueError as error:
            assert str(error) == "as wanted"
        until = time.monotonic() + 60
        while not app.control.ping(timeout=1):
            assert time.monotonic() < until, "no worker answers"
        failed.forget()
    finally:
        worker.send_signal(signal.SIGTERM)
        out, _ = worker.communicate(timeout=60)
    assert worker.returncode == 0, out.decode()


if __name__ == "__main__" and len(sys.argv) == 2:
    main()
