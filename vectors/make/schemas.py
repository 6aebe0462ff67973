"""JSON schemas of the files: what an engine's reader may rely on."""

import json

NUMBER = {"type": "number"}
WHOLE = {"type": "integer"}
COUNT = {"type": "integer", "minimum": 0}
NUMBERS = {"type": "array", "items": NUMBER}
WHOLES = {"type": "array", "items": WHOLE}
TEXT = {"type": "string", "minLength": 1}
TENSOR = {
    "type": "array",
    "items": {"type": "array", "items": NUMBERS},
}  # three axes, as `about` of the file names them
MATRIX = {"type": "array", "items": NUMBERS}
ROWS = {"type": "array", "items": WHOLES}
PAIRING = {"enum": ["halves", "interleaved"]}
PLACES = {"oneOf": [WHOLES, ROWS]}  # [token], or of several axes [axis][token]
CONFIG = {"type": "object", "required": ["model_type"]}
MAYBE = {"type": ["number", "null"]}  # null is not compared
TURN = {"inv_freq": NUMBERS, "attention_factor": NUMBER}
SLICE = TURN | {"pairing": PAIRING, "first_dim": COUNT, "rotary_dim": COUNT}


def part(properties: dict, optional: tuple[str, ...] = ()) -> dict:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def one_of(*parts: dict) -> dict:
    return {"oneOf": list(parts)}


INPUT = {
    "frequencies": part({"config": CONFIG, "layer": COUNT, "length": COUNT}, ("length",)),
    "cos_sin": part(TURN | {"positions": WHOLES}),
    "rotate": part(SLICE | {"positions": PLACES, "axis_of_pair": WHOLES, "q": TENSOR, "k": TENSOR}, ("axis_of_pair",)),
    "model": part({"config": CONFIG, "layer": COUNT, "positions": PLACES, "q": TENSOR, "k": TENSOR}),
    "rekey": part(SLICE | {"from": WHOLES, "to": WHOLES, "k": TENSOR}),
    "positions": one_of(
        part({"mask": ROWS, "cached": COUNT}),
        part({"cu_seqlens": WHOLES}),
        part({"chunks": WHOLES}),
        part({"input_ids": WHOLES, "image_grid_thw": ROWS, "image_token_id": WHOLE, "spatial_merge_size": COUNT}),
        part({"input_ids": ROWS, "padding_idx": WHOLE}),
    ),
    "bias": one_of(
        part({"kind": {"const": "alibi"}, "heads": COUNT}),
        part({"kind": {"const": "alibi"}, "heads": COUNT, "first_head": COUNT, "local_heads": COUNT}),
        part({"kind": {"const": "alibi"}, "heads": COUNT, "queries": WHOLES, "keys": WHOLES}),
        part(
            {
                "kind": {"const": "t5"},
                "bidirectional": {"type": "boolean"},
                "num_buckets": COUNT,
                "max_distance": COUNT,
                "relative_positions": WHOLES,
            }
        ),
    ),
    "mask": part(
        {
            "queries": COUNT,
            "keys": COUNT,
            "causal": {"type": "boolean"},
            "window": COUNT,
            "chunk": COUNT,
            "sink_tokens": COUNT,
        }
        | {"cu_seqlens": WHOLES, "keep": WHOLES},
        ("window", "chunk", "sink_tokens", "cu_seqlens", "keep"),
    ),
    "scores": part(
        {
            "q": MATRIX,
            "k": MATRIX,
            "head_dim": COUNT,
            "positions": WHOLES,
            "scale": NUMBER,
            "softcap": NUMBER,
            "sink": NUMBER,
        }
        | {"temperature": part({"scale": NUMBER, "length": COUNT})},
        ("softcap", "sink", "temperature"),
    ),
    "added": part(
        {
            "width": COUNT,
            "positions": WHOLES,
            "base": NUMBER,
            "layout": {"enum": ["interleaved", "concatenated"]},
            "spacing": {"enum": ["width", "ends"]},
        }
    ),
}
OUTPUT = {
    "frequencies": TURN,
    "cos_sin": {"cos": NUMBERS, "sin": NUMBERS},
    "rotate": {"q": TENSOR, "k": TENSOR},
    "model": {"q": TENSOR, "k": TENSOR, "scores": TENSOR},
    "rekey": {"k": TENSOR},
    "positions": {"positions": {"type": "array", "items": {"type": "array", "items": {"type": ["integer", "null"]}}}},
    "bias": {
        "slopes": NUMBERS,
        "bias": {"type": "array", "items": {"type": "array", "items": {"type": "array", "items": MAYBE}}},
        "buckets": WHOLES,
    },
    "mask": {"visible": {"type": "array", "items": {"type": "array", "items": {"enum": [0, 1]}}}},
    "scores": {"probabilities": MATRIX},
    "added": {"vectors": {"type": "array", "items": NUMBERS}},
}
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def of(operation: str) -> dict:
    out = OUTPUT[operation]
    some = part(out, tuple(out)) | {"minProperties": 1}
    tolerance = part({"absolute": {"type": "number", "minimum": 0}, "relative": {"type": "number", "minimum": 0}})
    test = part(
        {
            "id": TEXT,
            "about": TEXT,
            "source": TEXT,
            "input": INPUT[operation],
            "output": some,
            "mistakes": {"type": "object", "propertyNames": {"pattern": "^[a-z0-9_]+$"}, "additionalProperties": some},
            # Whose answer is so near the right one, number by number, has made that mistake: of rounding, which no one answer shows.
            "within": {"type": "object", "propertyNames": {"pattern": "^[a-z0-9_]+$"}, "additionalProperties": some},
        },
        ("about", "source", "within"),
    )
    file = part(
        {
            "schema": {"const": f"schemas/{operation}.schema.json"},
            "version": {"const": 1},
            "operation": {"const": operation},
            "about": TEXT,
            "made_by": TEXT,
            "tolerance": part({dtype: tolerance for dtype in ("float64", "float32", "float16", "bfloat16")}),
            "tests": {"type": "array", "minItems": 1, "items": test},
        }
    )
    return {"$schema": DRAFT, "title": f"posenc vectors: {operation}", **file}


def of_mistakes() -> dict:
    mistake = part(
        {"title": TEXT, "cure": TEXT, "report": {"type": "string", "format": "uri"}, "loss": {"const": True}},
        ("report", "loss"),
    )
    file = part(
        {
            "schema": {"const": "schemas/mistakes.schema.json"},
            "version": {"const": 1},
            "mistakes": {
                "type": "object",
                "propertyNames": {"pattern": "^[a-z0-9_]+$"},
                "additionalProperties": mistake,
            },
        }
    )
    return {"$schema": DRAFT, "title": "posenc vectors: mistakes by name", **file}


def documents() -> dict[str, str]:
    made = {f"{operation}.schema.json": of(operation) for operation in INPUT} | {"mistakes.schema.json": of_mistakes()}
    return {name: json.dumps(document, indent=1, ensure_ascii=False) + "\n" for name, document in made.items()}
