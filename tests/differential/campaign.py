"""Generates cases, compares the answers of Quipu and of a peer, reduces what differs, reports it.

    generator ─► case ─► Quipu, peer ─► two answers ─► known difference? ─► reducer ─► report

A campaign is a module with a class `Campaign`; `__main__.py` names them. Case number N of a seed is the same
whatever ran before it, so `--case N` repeats one.
"""

import json
import random
import sys
import time

ANSWER_LENGTH_MAX = 4_000  # characters of an answer that a report shows
REDUCTIONS_MAX = 400  # comparisons that the reducer may spend on one finding


class Difference:
    """Two answers to one case, as text, and their kind.

    `kind` is what the reducer keeps: a smaller case counts as the same finding only if its kind is equal.
    """

    def __init__(self, quipu, peer, kind=None):
        self.quipu, self.peer = str(quipu), str(peer)
        self.kind = kind if kind is not None else (first_word(self.quipu), first_word(self.peer))


def first_word(text):
    return text.split(maxsplit=1)[0] if text.strip() else ""


class BaseCampaign:
    """What each campaign implements.

    page         file name in docs/differences/ that lists the known differences
    generate     returns a case for a `random.Random`
    compare      sends a case to Quipu and the peer; returns a `Difference` or None
    reductions   yields smaller cases; the default has none
    text         the case as a person would type it; known differences match this text
    """

    page = None
    default_count = 1_000

    def __init__(self, options):
        """`options.binary` is Quipu, `options.peer` a path of the peer's program or None,
        `options.directory` a temporary directory, `options.seed` the seed of the data."""
        self.options = options

    def start(self):
        """Starts the servers and loads the data."""

    def stop(self):
        """Stops the servers; runs after errors too."""

    def generate(self, chance):
        raise NotImplementedError

    def compare(self, case):
        raise NotImplementedError

    def reductions(self, case):
        return ()

    def text(self, case):
        return str(case)

    def summary(self):
        """Further lines for the end of the report."""
        return []


def reduce_case(campaign, case, difference):
    """Takes the first smaller case with the same kind of difference, until none has it."""
    left = REDUCTIONS_MAX
    is_smaller = True
    while is_smaller and left:
        is_smaller = False
        for smaller in campaign.reductions(case):
            if not left:
                break
            left -= 1
            found = campaign.compare(smaller)
            if found and found.kind == difference.kind:
                case, difference, is_smaller = smaller, found, True
                break
    return case, difference


class Report:
    """Prints findings as they come; writes them as JSON lines with `--report`."""

    def __init__(self, options, known):
        self.options, self.known = options, known
        self.findings = []
        self.file = open(options.report, "w", encoding="utf-8") if options.report else None

    def add(self, number, text, difference):
        finding = {"case": number, "text": text, "quipu": difference.quipu, "peer": difference.peer}
        self.findings.append(finding)
        print(f"-- difference {len(self.findings)}, case {number}\n{text}")
        print(f"   quipu: {difference.quipu[:ANSWER_LENGTH_MAX]}")
        print(f"   peer:  {difference.peer[:ANSWER_LENGTH_MAX]}", flush=True)
        if self.file:
            self.file.write(json.dumps(finding) + "\n")
            self.file.flush()

    def close(self, campaign, asked, seconds):
        print(f"== {self.options.name}: seed {self.options.seed}, {asked} cases in {seconds:.0f} s: "
              f"{len(self.findings)} undocumented differences, {self.known.count()} documented")
        for row, count in self.known.counts():
            print(f"   {count:>7}  {row.reason[:110]}")
        for line in campaign.summary():
            print(f"   {line}")


def run(campaign, known, options):
    """Runs the cases; returns the number of undocumented differences."""
    report = Report(options, known)
    numbers = [options.case] if options.case is not None else range(options.count)
    start, asked, shown = time.monotonic(), 0, time.monotonic()
    for number in numbers:
        chance = random.Random(f"{options.seed}/{number}")
        case = campaign.generate(chance)
        if options.case is not None:
            print(campaign.text(case))
        difference = campaign.compare(case)
        asked += 1
        if time.monotonic() - shown > 30:
            shown = time.monotonic()
            print(f"   {asked} cases, {len(report.findings)} differences", file=sys.stderr, flush=True)
        if not difference or known.explains(campaign.text(case), difference):
            continue
        smaller, reduced = reduce_case(campaign, case, difference)
        if known.explains(campaign.text(smaller), reduced):
            continue
        report.add(number, campaign.text(smaller), reduced)
        if options.findings_max and len(report.findings) >= options.findings_max:
            print(f"   stops at {options.findings_max} differences (--findings-max)")
            break
    report.close(campaign, asked, time.monotonic() - start)
    return len(report.findings)
