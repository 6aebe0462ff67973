#!/usr/bin/env python3
"""A transformers model behind OpenAI's /v1/completions with echo and logprobs, healthy or with a fault of position planted.

  evidence/lab/peers/probe_server.py FOLDER --port 8000
  evidence/lab/peers/probe_server.py FOLDER --port 8000 --set rope_parameters='{"rope_type":"linear","factor":2,"rope_theta":100000}'
  evidence/lab/peers/probe_server.py FOLDER --port 8000 --plant behind:1

`transformers serve` tells no log-probabilities (its completions ignore the field), so this stands for it: the model, its attention and its
rotation are transformers' own. FOLDER has config.json and weights, or is a GGUF file, whose weights transformers restores.

Plants: none, pairing, reversed, restart:N, behind:N, padding:N, keys:N, half_angles, bfloat16_angles, amplitude:X, half_head.
"""

import argparse
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, MistralForCausalLM


def plant(model, name, amount):
    """Patches the modules that rotate; what is planted in positions is done by `positions`."""
    import importlib

    module = importlib.import_module(type(model).__module__)
    rotary = model.model.rotary_emb
    forward, apply = rotary.forward, module.apply_rotary_pos_emb

    def turned(cos, sin, by):
        # cos and sin of angles that are `by` positions further.
        angle = by * rotary.inv_freq.float()
        angle = torch.cat([angle, angle])
        return cos * angle.cos() - sin * angle.sin(), sin * angle.cos() + cos * angle.sin()

    if name == "none":
        module.apply_rotary_pos_emb = lambda q, k, cos, sin, *_, **__: (q, k)
    elif name == "reversed":
        module.apply_rotary_pos_emb = lambda q, k, cos, sin, *_, **__: apply(q, k, cos, -sin)
    elif name == "amplitude":
        module.apply_rotary_pos_emb = lambda q, k, cos, sin, *_, **__: apply(q, k, cos * amount, sin * amount)
    elif name == "keys":

        def shifted(q, k, cos, sin, *_, **__):
            return apply(q, q, cos, sin)[0], apply(k, k, *turned(cos, sin, amount))[1]

        module.apply_rotary_pos_emb = shifted
    elif name == "pairing":

        def interleaved(q, k, cos, sin, *_, **__):
            half = cos.shape[-1] // 2
            c, s = (x[..., :half].repeat_interleave(2, -1).unsqueeze(1) for x in (cos, sin))

            def rotate(x):
                other = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
                return x * c + other * s

            return rotate(q), rotate(k)

        module.apply_rotary_pos_emb = interleaved
    elif name == "half_head":

        def half(q, k, cos, sin, *_, **__):
            d = q.shape[-1] // 2
            inv = rotary.inv_freq.float()[::2]  # frequencies of a head half as wide
            at = half.positions.float()[..., None] * inv
            angle = torch.cat([at, at], -1)
            a, b = apply(q[..., :d], k[..., :d], angle.cos().to(q.dtype), angle.sin().to(q.dtype))
            return torch.cat([a, q[..., d:]], -1), torch.cat([b, k[..., d:]], -1)

        def remember(x, position_ids):
            half.positions = position_ids
            return forward(x, position_ids)

        rotary.forward = remember
        module.apply_rotary_pos_emb = half
    elif name in ("half_angles", "bfloat16_angles"):
        dtype = torch.float16 if name == "half_angles" else torch.bfloat16

        def rounded(x, position_ids):
            angle = (position_ids[..., None].double() * rotary.inv_freq.double()).to(dtype).float()
            angle = torch.cat([angle, angle], -1)
            return angle.cos().to(x.dtype), angle.sin().to(x.dtype)

        rotary.forward = rounded


class Completions:
    def __init__(self, given):
        self.lock = Lock()
        path = Path(given.folder)
        where, more = (path.parent, {"gguf_file": path.name}) if path.is_file() else (path, {})
        self.tokenizer = AutoTokenizer.from_pretrained(where, **more)
        config = AutoConfig.from_pretrained(where, **more)
        if given.window:  # Mistral's layers are Llama's, with a window
            known = {k: v for k, v in config.to_dict().items() if k not in ("model_type", "architectures")}
            config = AutoConfig.for_model("mistral", **{**known, "sliding_window": given.window})
        for text in given.set:
            key, value = text.split("=", 1)
            setattr(config, key, json.loads(value))
        maker = MistralForCausalLM if given.window else AutoModelForCausalLM
        self.model = maker.from_pretrained(
            where, config=config, dtype=getattr(torch, given.dtype), attn_implementation=given.attention, **more
        ).eval()
        if given.int8:
            self.model = torch.ao.quantization.quantize_dynamic(self.model, {torch.nn.Linear}, dtype=torch.qint8)
        self.name, _, amount = (given.plant or "").partition(":")
        self.amount = float(amount) if amount else 0
        if self.name:
            plant(self.model, self.name, self.amount)
        self.texts = {}

    def positions(self, first, count, prompt):
        place = torch.arange(first, first + count)
        by = int(self.amount)
        if self.name == "restart":
            place = place % by
        elif self.name == "behind":
            place = torch.where(place >= prompt, place + by, place)
        elif self.name == "padding":
            place = torch.where(place >= prompt, place + (by - prompt % by) % by, place)
        return place[None]

    def text_of(self, token):
        if token not in self.texts:
            self.texts[token] = self.tokenizer.decode([token], clean_up_tokenization_spaces=False)
        return self.texts[token]

    def likeliest(self, logits, count):
        """Of rows of logits: log-probabilities, and the likeliest tokens of each."""
        chances = torch.log_softmax(logits.float(), -1)
        values, ids = chances.topk(count, -1)
        return chances, [
            {self.text_of(i): v for i, v in zip(row, numbers)} for row, numbers in zip(ids.tolist(), values.tolist())
        ]

    @torch.inference_mode()
    def complete(self, asked):
        prompt = asked["prompt"]
        ids = self.tokenizer(prompt, add_special_tokens=False).input_ids if isinstance(prompt, str) else list(prompt)
        count, most = asked.get("logprobs"), asked.get("max_tokens", 16)
        length = len(ids)
        run = self.model(torch.tensor([ids]), position_ids=self.positions(0, length, length), use_cache=True)
        own, top, tokens = [None], [None], list(ids)
        if count is not None and asked.get("echo"):
            for at in range(0, length - 1, 128):
                upto = min(at + 128, length - 1)
                chances, best = self.likeliest(run.logits[0, at:upto], count)
                own += [chances[i, ids[at + i + 1]].item() for i in range(upto - at)]
                top += best
        else:
            own, top, tokens = [], [], []
        logits, cache = run.logits[0, -1:], run.past_key_values
        for made in range(most):
            chances, best = self.likeliest(logits, count or 1)
            token = int(chances[0].argmax())
            tokens.append(token)
            own.append(chances[0, token].item())
            top += best
            if made + 1 < most:
                run = self.model(
                    torch.tensor([[token]]),
                    past_key_values=cache,
                    position_ids=self.positions(length + made, 1, length),
                    use_cache=True,
                )
                logits, cache = run.logits[0, -1:], run.past_key_values
        texts = [self.text_of(i) for i in tokens]
        return {
            "object": "text_completion",
            "model": "planted" if self.name else "healthy",
            "choices": [
                {
                    "index": 0,
                    "text": "".join(texts),
                    "finish_reason": "length",
                    "logprobs": None
                    if count is None
                    else {"tokens": texts, "token_logprobs": own, "top_logprobs": top},
                }
            ],
            "usage": {"prompt_tokens": length, "completion_tokens": most, "total_tokens": length + most},
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--plant")
    parser.add_argument("--set", action="append", default=[], help="KEY=JSON, of the configuration")
    parser.add_argument("--window", type=int, help="attention sees so many tokens alone")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--attention", default="sdpa")
    parser.add_argument("--int8", action="store_true", help="Linear layers in dynamic int8")
    served = Completions(parser.parse_args())

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def say(self, status, what):
            body = json.dumps(what).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            if self.path == "/v1/models":
                self.say(200, {"object": "list", "data": [{"id": "smollm2", "object": "model"}]})
            else:
                self.say(404, {"error": {"message": "no such path"}})

        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != "/v1/completions":
                return self.say(404, {"error": {"message": "no such path"}})
            with served.lock:
                self.say(200, served.complete(asked))

    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
