"""Compares Quipu with a real peer on generated cases: `make test-differential CAMPAIGN=promql`.

    python3 tests/differential CAMPAIGN BINARY [--seed 1] [--count N] [--peer PATH] [--case N]

Exits with 1 when an answer differs and no row of docs/differences/ explains it.
"""

import argparse
import importlib
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import campaign as campaigns  # noqa: E402
import known  # noqa: E402

NAMES = sorted(path.stem for path in HERE.glob("*.py") if "class Campaign(" in path.read_text(encoding="utf-8"))


def parse_arguments():
    parser = argparse.ArgumentParser(prog="differential", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", metavar="CAMPAIGN", choices=NAMES, help=", ".join(NAMES))
    parser.add_argument("binary", metavar="BINARY", help="program of Quipu")
    parser.add_argument("--seed", type=int, default=1, help="seed of data and cases")
    parser.add_argument("--count", type=int, help="number of cases; each campaign has a default")
    parser.add_argument("--case", type=int, help="run the case with this number alone and print it")
    parser.add_argument("--peer", help="program of the peer instead of Debian's")
    parser.add_argument("--corpus", help="directory of dashboards and rules, for the campaigns `dashboards*`")
    parser.add_argument("--report", help="file for the findings, one JSON object a line")
    parser.add_argument("--findings-max", type=int, default=50, help="stop after N differences; 0: never")
    return parser.parse_args()


def main():
    options = parse_arguments()
    module = importlib.import_module(options.name)
    options.count = options.count if options.count is not None else module.Campaign.default_count
    with tempfile.TemporaryDirectory(prefix=f"quipu-differential-{options.name}-") as directory:
        options.directory = pathlib.Path(directory)
        campaign = module.Campaign(options)
        known_differences = known.KnownDifferences(campaign.page)
        try:
            campaign.start()
            found = campaigns.run(campaign, known_differences, options)
        finally:
            campaign.stop()
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
