"""`make bench`: run all benchmarks, or those named on the command line."""

from __future__ import annotations

import argparse
import importlib
import pkgutil

import tests.bench


def main() -> None:
    """A benchmark is a module bench_<name> with run(rounds), which writes its evidence."""
    names = [
        each.name.removeprefix("bench_")
        for each in pkgutil.iter_modules(tests.bench.__path__)
        if each.name.startswith("bench_")
    ]
    parser = argparse.ArgumentParser(prog="make bench ARGS=")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    unknown = set(options.names) - set(names)
    if unknown:
        parser.error(f"no bench named {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    for name in options.names or names:
        importlib.import_module(f"tests.bench.bench_{name}").run(options.rounds)


if __name__ == "__main__":
    main()
