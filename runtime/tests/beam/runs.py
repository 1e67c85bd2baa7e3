"""What Beam's local runner does with private labels, in its own environment: prints JSON."""

import json
import logging
import sys
from pathlib import Path

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.test_stream import TestStream
from apache_beam.transforms import window
from apache_beam.utils.timestamp import Timestamp
from labeldp_runtime import Key, Randomizer, RuntimeArtifactError
from labeldp_runtime.engines import beam as private

from runtime.tests.beam.cases import GROUP_VALUES, ODD, ROWS

logging.disable(logging.CRITICAL)


class Cases:
    """A folder with a key, and artifacts by name."""

    def __init__(self, folder, artifacts):
        self.folder, self.artifacts = folder, artifacts
        self.key = Key.load(folder / "labels.key")

    def transform(self, name="plain", column="y", ids="visit", **more):
        key = more.pop("key", self.key)
        artifact = self.artifacts[name]
        return private.Randomize(column, artifact, id_column=ids, key=key, **more)

    def run(self, transform, rows, runner=None):
        """The different rows that come out, sorted by what identifies them."""
        out = self.folder / "out.jsonl"
        out.unlink(missing_ok=True)
        with beam.Pipeline(runner or FnApiRunner()) as pipeline:
            made = pipeline | beam.Create(rows) | transform | beam.Map(json.dumps)
            made | beam.combiners.ToList() | "Write" >> beam.Map(self.write)
        lines = out.read_text("utf-8").splitlines()
        self.written = len(lines)  # a bundle that is repeated writes again
        return sorted(map(json.loads, {*lines}), key=visit)

    def write(self, lines):
        with (self.folder / "out.jsonl").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def refused(self, transform, rows):
        """What a pipeline fails with, and whether it wrote anything."""
        try:
            self.run(transform, rows)
        except Exception as error:
            return [str(error), (self.folder / "out.jsonl").exists()]
        return None


class Stamped(beam.DoFn):
    """The time and window of a row, as fields."""

    def process(self, row, time=beam.DoFn.TimestampParam, own=beam.DoFn.WindowParam):
        yield {**row, "time": float(time), "start": float(own.start)}


def windows(cases):
    """Rows with times, by the hour: they keep both, and ids are compared over all hours."""

    def run(rows):
        out = cases.folder / "out.jsonl"
        out.unlink(missing_ok=True)
        with beam.Pipeline(FnApiRunner()) as pipeline:
            (
                pipeline
                | beam.Create(rows)
                | "Times" >> beam.Map(lambda row: window.TimestampedValue(row, 600 * row["time"]))
                | "Hours" >> beam.WindowInto(window.FixedWindows(3600))
                | cases.transform()
                | beam.ParDo(Stamped())
                | beam.Map(json.dumps)
                | "All" >> beam.WindowInto(window.GlobalWindows())
                | beam.combiners.ToList()
                | "Write" >> beam.Map(cases.write)
            )
        return sorted(map(json.loads, out.read_text("utf-8").splitlines()), key=visit)

    timed = [{**row, "time": row["visit"]} for row in ROWS]
    rows = run(timed)
    assert [row["time"] for row in rows] == [600.0 * row["visit"] for row in ROWS]
    assert [row["start"] for row in rows] == [600.0 * r["visit"] // 3600 * 3600 for r in ROWS]
    try:
        run([*timed, {**timed[0], "time": 59}])
    except Exception as error:
        return [[row["y"] for row in rows], str(error)]
    return None


def visit(row):
    return row["visit"]


def stream(cases):
    """An unbounded collection: refused, unless its ids are not looked at."""
    options = PipelineOptions()
    options.view_as(StandardOptions).streaming = True

    def run(**more):
        out = cases.folder / "out.jsonl"
        out.unlink(missing_ok=True)
        events = TestStream().advance_watermark_to(Timestamp(0)).add_elements(ROWS[:5])
        events = events.advance_watermark_to_infinity()
        with beam.Pipeline("BundleBasedDirectRunner", options=options) as pipeline:
            made = pipeline | events | cases.transform(**more)
            made | beam.Map(json.dumps) | beam.Map(lambda line: cases.write([line]))
        rows = map(json.loads, out.read_text("utf-8").splitlines())
        return [row["y"] for row in sorted(rows, key=lambda row: row["visit"])]

    try:
        run()
    except Exception as error:
        return [str(error), run(check_duplicates=False)]
    return None


def tried(function):
    try:
        function()
    except (ValueError, RuntimeArtifactError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def main():
    folder = Path(sys.argv[1])
    artifacts = json.loads(sys.argv[2])
    cases = Cases(folder, artifacts)
    plain = cases.transform()
    secret = cases.key.secret
    odd = [{"visit": 1000 + index, "y": value} for index, value in enumerate(ODD)]
    pipeline = beam.Pipeline(FnApiRunner())
    pipeline | beam.Create(ROWS) | plain
    proto = pipeline.to_runner_api().SerializeToString()
    joint = Randomizer.load(artifacts["joint"]).label_columns
    group, *_ = Randomizer.load(artifacts["groups"]).group_columns
    by_group = [
        {"visit": f"v{i}", "y": i % 3, group: value} for i, value in enumerate(GROUP_VALUES)
    ]
    found = {
        "plain": [row["y"] for row in cases.run(plain, ROWS)],
        "again": [row["y"] for row in cases.run(plain, ROWS, FnApiRunner(bundle_repeat=3))],
        "written again": cases.written,
        "fields": list(cases.run(plain, ROWS)[0]),
        "added": list(cases.run(cases.transform(add_as="mine"), ROWS)[0]),
        "version": [row["y"] for row in cases.run(cases.transform(version=2), ROWS)],
        "fetched": [
            row["y"]
            for row in cases.run(
                cases.transform(key=lambda path=str(folder / "labels.key"): Key.load(path)), ROWS
            )
        ],
        "odd": [list(row.items()) for row in cases.run(plain, [*odd, {"visit": 5000}])],
        "groups": [row["y"] for row in cases.run(cases.transform("groups"), by_group)],
        "joint": cases.run(
            cases.transform("joint", joint, context="all"),
            [{"visit": "a", **dict.fromkeys(joint)}, {"visit": "b", **dict.fromkeys(joint)}],
        ),
        "sets": [
            row["y"]
            for row in cases.run(
                cases.transform("sets"), [{**row, "y": str(row["y"])} for row in ROWS]
            )
        ],
        "windows": windows(cases),
        "stream": stream(cases),
        "twice": cases.refused(plain, [*ROWS, {**ROWS[0], "y": 3}]),
        "null": cases.refused(plain, [*ROWS, {"y": 3}]),
        "taken": cases.refused(cases.transform(add_as="day"), ROWS),
        "no group": cases.refused(cases.transform("groups"), ROWS),
        "secret in the plan": any(form in proto for form in (secret, secret.hex().encode())),
        "carried": tried(lambda: cases.transform(key=lambda: Key(secret))),
        "no file": tried(lambda: cases.transform(key=Key(secret))),
        "label is id": tried(lambda: cases.transform(ids="y")),
        "several": tried(lambda: cases.transform("joint", joint)),
        "group is label": tried(lambda: cases.transform("groups", group_columns={group: "y"})),
        "person": tried(lambda: cases.transform("person")),
        "prepared": tried(lambda: cases.transform("person", prepared=True)),
        "forged": tried(lambda: cases.transform("forged")),
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
