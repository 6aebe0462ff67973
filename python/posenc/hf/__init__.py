"""posenc on a live transformers model: what it really does about position, against what its configuration says.

with posenc.hf.capture(model) as seen:
    model(**inputs)
report = seen.check()            # findings: layer, code, expected, found, cure; true where there is none

with posenc.hf.patch(model) as patched:     # exact angles in every rotary module, until unpatch()
    print(patched)
"""

from .attention import use_attention
from .live import attention_modules, rotary_modules
from .patching import Patched, patch
from .watching import Capture, capture

__all__ = ["Capture", "Patched", "attention_modules", "capture", "patch", "rotary_modules", "use_attention"]
