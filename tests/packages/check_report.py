# SPDX-License-Identifier: Apache-2.0
"""check_report.py REPORT: fails unless the job was on, on two nodes, and its sends compressed."""

import json
import sys

with open(sys.argv[1]) as file:
    report = json.load(file)
assert report["state"] == "on", report["reason"]
assert sorted(report["nodes"]) == [0, 1], report["nodes"]
sends = report["ranks"][0]["calls"]["MPI_Send"]
assert sends["compressed_messages"] >= 8, sends
assert sends["ratio"] > 2, sends
print(f"{sends['compressed_messages']} messages compressed, ratio {sends['ratio']:.1f}")
