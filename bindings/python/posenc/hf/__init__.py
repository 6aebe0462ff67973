"""posenc on a live transformers model: what it really does about position, against what its configuration says.

with posenc.hf.capture(model) as seen:
    model(**inputs)
report = seen.check()            # findings: layer, code, expected, found, cure; true where there is none

posenc.hf.probe(model)           # the same of one token repeated, whose keys in the cache show their rotation by themselves

with posenc.hf.patch(model) as patched:     # exact angles in every rotary module, until unpatch()
    print(patched)
"""

from .attention import use_attention
from .decoding import Decoder, decode
from .live import attention_modules, rotary_modules
from .patching import Patched, patch
from .watching import Capture, capture, probe

__all__ = [
    "Capture", "Decoder", "Patched", "attention_modules", "capture", "decode", "patch", "probe", "rotary_modules", "use_attention",
]  # fmt: skip
