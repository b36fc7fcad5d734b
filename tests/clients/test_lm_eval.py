# SPDX-License-Identifier: Apache-2.0
"""lm-eval by its local-completions: scores, perplexity and generation, held to llama.cpp's on the same file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from support import ROOT, Server

from .conftest import InstallClient

pytestmark = pytest.mark.clients

TASKS = ROOT / "tests" / "clients" / "lm_eval"
GOLDEN = json.loads((TASKS / "golden.json").read_text("utf-8"))


def samples(folder: Path, task: str) -> list[dict[str, Any]]:
    (path,) = folder.rglob(f"samples_{task}_*.jsonl")
    found = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return sorted(found, key=lambda sample: sample["doc_id"])


@pytest.mark.parametrize(
    ("model_args", "options"),
    [("", []), (",num_concurrent=4,tokenized_requests=False", ["--batch_size", "4"])],
    ids=["token ids", "batches of text"],
)
def test_lm_eval_scores_as_through_llama_cpp(
    server: Server,
    tokenizer: Path,
    install_client: InstallClient,
    model_args: str,
    options: list[str],
) -> None:
    client = install_client("lm-eval")
    model = f"model={server.model()},base_url={server.url}/v1/completions,tokenizer={tokenizer}{model_args}"
    client.run(
        "lm_eval",
        *("--model", "local-completions", "--model_args", model, *options),
        *("--tasks", "brigade_facts,brigade_texts,brigade_answers", "--include_path", str(TASKS)),
        *("--output_path", str(client.folder / "out"), "--log_samples"),
        cwd=ROOT,  # the tasks name their files from there
        **{"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"},
    )
    (path,) = client.folder.rglob("results_*.json")
    results = json.loads(path.read_text("utf-8"))["results"]
    for task, metric in (("brigade_facts", "acc"), ("brigade_answers", "exact_match")):
        error = results[task][f"{metric}_stderr,none"]
        assert abs(results[task][f"{metric},none"] - GOLDEN[metric]) <= error
    bits = results["brigade_texts"]["bits_per_byte,none"]
    assert bits == pytest.approx(GOLDEN["bits_per_byte"], rel=0.02)

    # Not only the means: each score is near. Both sides round activations to 8 bits, in their own ways.
    facts = samples(client.folder, "brigade_facts")
    ours = [float(response[0]) for doc in facts for response in doc["filtered_resps"]]
    theirs = [score for doc in GOLDEN["facts"] for score in doc]
    errors = [abs(a - b) for a, b in zip(ours, theirs, strict=True)]
    assert math.fsum(errors) / len(errors) < 0.25
    assert max(errors) < 1.75
    answers = [doc["filtered_resps"][0] for doc in samples(client.folder, "brigade_answers")]
    same = sum(a == b for a, b in zip(answers, GOLDEN["answers"], strict=True))
    assert same >= 0.7 * len(answers)
