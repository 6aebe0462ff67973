"""posenc on a live transformers model: what it really does about position, against what its configuration says.

with posenc.hf.capture(model) as seen:
    model(**inputs)
report = seen.check()            # findings: layer, code, expected, found, cure; true where there is none

posenc.hf.probe(model)           # the same of one token repeated, whose keys in the cache show their rotation by themselves

with posenc.hf.patch(model) as patched:     # exact angles in every rotary module, until unpatch()
    print(patched)

cache = posenc.hf.rekey(cache, model, keep=range(100, 512))     # its tokens at other positions: cropped, merged, shifted
"""

from .attention import use_attention
from .decoding import Decoder, decode
from .live import attention_modules, rotary_modules
from .patching import Patched, patch
from .rekeying import rekey
from .watching import Capture, capture, probe

__all__ = [
    "Capture", "Decoder", "Patched", "attention_modules", "capture", "decode", "patch", "probe", "rekey", "rotary_modules",
    "use_attention",
]  # fmt: skip
