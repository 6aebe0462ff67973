"""Which rotation something runs, by the log-probabilities that it gives: a model in process is asked as a server is."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from .program import printed
from .reports import Probe

if TYPE_CHECKING:
    from collections.abc import Iterator

LIKELIEST = 5
"""Tokens told besides the text's own, at each place."""


def _rows(values: Any) -> Any:
    """Logits or log-probabilities [token, vocabulary] as log-probabilities in numpy."""
    import numpy as np

    if hasattr(values, "detach"):
        values = values.detach().to("cpu").float()
    made = np.asarray(values, dtype=np.float64)
    if made.ndim == 3 and len(made) == 1:
        made = made[0]
    if made.ndim != 2:
        raise TypeError(f"posenc.probe: fn(tokens) must give a row of the vocabulary for each token, got {made.shape}")
    made = made - made.max(-1, keepdims=True)
    return made - np.log(np.exp(made).sum(-1, keepdims=True))


def _of_model(model: Any) -> Callable[[list[int]], Any]:
    """A live model of transformers as a function of tokens."""
    import torch

    def fn(tokens: list[int]) -> Any:
        device = next(model.parameters()).device
        with torch.inference_mode():
            return model(torch.tensor([tokens], device=device)).logits[0]

    return fn


def _continuation(model: Any, tokens: list[int], more: int) -> tuple[list[int], Any]:
    """What a live model goes on with, by its own cache and its own ids: tokens and the logits of each."""
    import torch

    device = next(model.parameters()).device
    with torch.inference_mode():
        made = model.generate(
            torch.tensor([tokens], device=device),
            attention_mask=torch.ones(1, len(tokens), dtype=torch.long, device=device),
            max_new_tokens=more,
            min_new_tokens=more,
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
        )
    return made.sequences[0, len(tokens) :].tolist(), torch.stack([row[0] for row in made.logits])


def _told(row: Any, own: int) -> dict[str, dict[str, float]]:
    """Of one place: the token that stands there and the likeliest, as vLLM tells them."""
    import numpy as np

    best = np.argpartition(row, -LIKELIEST)[-LIKELIEST:]
    return {str(int(i)): {"logprob": float(row[i])} for i in [own, *best.tolist()]}


class _Answers:
    """What a server would say of prompts."""

    def __init__(self, of: Any) -> None:
        self.model = of if hasattr(of, "generate") and hasattr(of, "parameters") else None
        self.fn = _of_model(of) if self.model is not None else of
        self.error: BaseException | None = None

    def complete(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request, as OpenAI's completions have it."""
        tokens, more = [int(i) for i in asked["prompt"]], int(asked.get("max_tokens", 1))
        rows = _rows(self.fn(tokens))
        if len(rows) != len(tokens):
            raise TypeError(f"posenc.probe: fn must give a row for each of {len(tokens)} tokens, got {len(rows)}")
        told: list[Any] = [None, *(_told(rows[i], tokens[i + 1]) for i in range(len(tokens) - 1))]
        if self.model is not None:
            made, logits = _continuation(self.model, tokens, more)
            behind = _rows(logits)
        else:
            made, behind = [int(rows[-1].argmax())], rows[-1:]
        own = [float(row[i]) for row, i in zip(behind, made, strict=True)]
        top = [
            {f"token_id:{i}": value["logprob"] for i, value in _told(row, t).items()}
            for row, t in zip(behind, made, strict=True)
        ]
        return {
            "choices": [
                {
                    "prompt_logprobs": told,
                    "logprobs": {
                        "tokens": [f"token_id:{i}" for i in made],
                        "token_logprobs": own,
                        "top_logprobs": top,
                    },
                }
            ],
            "usage": {"prompt_tokens": len(tokens)},
        }


@contextmanager
def _served(answers: _Answers) -> Iterator[str]:
    """A server on this machine alone, for as long as it is asked."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def say(self, status: int, what: dict[str, Any]) -> None:
            body = json.dumps(what).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.say(404, {})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                if not isinstance(asked.get("prompt"), list) or "prompt_logprobs" not in asked:
                    return self.say(400, {"error": {"message": "asked another way"}})
                self.say(200, answers.complete(asked))
            except Exception as error:  # told to who called posenc.probe, not to the server's thread
                answers.error = error
                self.say(500, {"error": {"message": type(error).__name__}})

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def probe(
    of: Any,
    model: str | os.PathLike[str],
    *,
    at: int = 0,
    limit: int = 0,
    seed: int = 1,
    flags: Sequence[str] = (),
) -> Probe:
    """Which rotation `of` runs: the address of a server ("http://127.0.0.1:8000/v1"), a live causal model of transformers, or
    a function of a list of token ids that gives logits or log-probabilities, a row of the vocabulary for each token. model: the
    GGUF, or the folder, that it should be. at: tokens of the longest text; limit: prompt tokens in all; seed: other texts of the same kind.
    The report is true where it rotates as the file says; `.verdict` is the answer in a sentence."""
    words = [
        *(("--at", str(at)) if at else ()),
        *(("--limit", str(limit)) if limit else ()),
        "--seed",
        str(seed),
        *flags,
    ]

    def asked(url: str) -> Probe:
        return Probe(printed("probe", url, "--model", os.fspath(model), "--json", *words))

    if isinstance(of, str):
        return asked(of)
    if not callable(of):
        raise TypeError("posenc.probe takes an address, a live model or a function of tokens")
    answers = _Answers(of)
    with _served(answers) as url:
        try:
            return asked(url)
        except Exception:
            if answers.error is not None:
                raise answers.error from None
            raise
