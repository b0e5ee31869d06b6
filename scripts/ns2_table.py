"""Shared code of the scripts that make or check a table of reference numbers with ns-2.35."""
import argparse
import csv
import os
import subprocess
import sys


def ns(scenario, settings, name):
    """The output of a run of ns-2."""
    command = ["ns", scenario] + [f"{k}={v}" for k, v in settings.items()]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        sys.exit("ns-2 is missing: install it (Debian and Ubuntu: apt-get install ns2), then run this again")
    if done.returncode != 0:
        sys.exit(f"{name}: {done.stderr.strip()}")
    return done.stdout


def name(key):
    return ",".join(map(str, key))


class Table:
    """A table in a file: the columns that identify rows, and all columns."""

    def __init__(self, path, keys, head):
        self.path, self.keys, self.head = path, keys, head

    def parser(self, doc):
        """The common command-line arguments."""
        parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("rows", nargs="*", metavar="ROW")
        parser.add_argument("--check", action="store_true")
        parser.add_argument("--jobs", type=int, default=os.cpu_count())
        return parser

    def wanted(self, parser, wish, keys):
        """The requested rows among all rows."""
        names = {name(key): key for key in keys}
        unknown = [row for row in wish.rows if row not in names]
        if unknown:
            parser.error(f"no such row: {' '.join(unknown)}")
        return [names[row] for row in wish.rows] or keys

    def end(self, wish, rows):
        """Writes the rows, or compares them with the table and exits with 1 if they differ."""
        if wish.check:
            sys.exit(self.differs(rows))
        out = csv.DictWriter(sys.stdout, self.head, restval="", lineterminator="\n")
        out.writeheader()
        out.writerows(rows)

    def differs(self, rows):
        with open(self.path, newline="") as f:
            table = {tuple(r[k] for k in self.keys): r for r in csv.DictReader(f)}
        alike = 0
        for r in rows:
            key = tuple(r[k] for k in self.keys)
            there = table.get(key, {})
            apart = [f"{n} {r.get(n, '')}, not {there.get(n, '')}" for n in self.head if r.get(n, "") != there.get(n, "")]
            alike += not apart
            if apart:
                print(f"{name(key)}: {'; '.join(apart)}")
        print(f"{alike} of {len(rows)} rows are the table's, digit for digit")
        return alike < len(rows)
