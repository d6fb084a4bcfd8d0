# SPDX-License-Identifier: Apache-2.0
"""Spans of time as a file of trace events, which Perfetto and chrome://tracing draw."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wirepress.torch.stages import Span


def write(path: str | os.PathLike[str], rank: int, rows: Sequence[str], spans: list[Span]) -> None:
    """Writes a rank's spans, those of a stage in a row; the rank's number goes into the name."""
    own = Path(path)
    events: list[dict[str, Any]] = [
        _about("process_name", rank, 0, f"rank {rank}"),
        *(_about("thread_name", rank, number, row) for number, row in enumerate(rows)),
    ]
    for number, span in enumerate(sorted(spans, key=lambda span: span.begin)):
        common = {"name": span.label, "cat": span.stage, "pid": rank, "tid": rows.index(span.stage)}
        begin, end = 1e6 * span.begin, 1e6 * span.end
        if span.stage == rows[0]:  # buckets overlap
            one = f"{rank}.{number}"
            events.append({**common, "ph": "b", "id": one, "ts": begin})
            events.append({**common, "ph": "e", "id": one, "ts": end})
        else:
            events.append({**common, "ph": "X", "ts": begin, "dur": end - begin})
    text = json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})
    own.with_name(f"{own.stem}-{rank}{own.suffix}").write_text(text + "\n")


def _about(what: str, rank: int, row: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": rank, "tid": row, "args": {"name": name}}
