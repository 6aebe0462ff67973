"""posenc.probe of what runs in this process."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest

import posenc

MODELS = sorted((Path(__file__).parents[3] / "models/fetched/smollm2-135m").glob("*.gguf"))
VOCABULARY = 49152

fetched = pytest.mark.skipif(not MODELS, reason="make models fetches SmolLM2")


def probe(of, **more):
    try:
        return posenc.probe(of, MODELS[0], **more)
    except posenc.Error as error:
        if "OpenBLAS" in str(error):
            pytest.skip("OpenBLAS is not installed")
        raise


@fetched
def test_a_function_with_other_weights_is_no_rotation():
    asked = []

    def fn(tokens):
        asked.append(len(tokens))
        return np.zeros((len(tokens), VOCABULARY))

    report = probe(fn)
    assert report.verdict == "other_weights" and not report
    assert report.tokens > 0 and max(asked) < 32
    assert "other weights" in str(report)


@fetched
def test_what_goes_wrong_in_a_function_is_told_to_its_caller():
    def fn(tokens):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        probe(fn)
    with pytest.raises(TypeError, match="a row"):
        probe(lambda tokens: np.zeros(3))
    with pytest.raises(TypeError, match="an address"):
        probe(3)


@fetched
def test_a_server_without_log_probabilities_is_an_error():
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with pytest.raises(posenc.Error, match="log-probabilities"):
            posenc.probe(f"http://127.0.0.1:{server.server_address[1]}", MODELS[0])
    finally:
        server.shutdown()
        server.server_close()
