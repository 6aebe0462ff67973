"""posenc: the position layer of a transformer, computed exactly, explained, and checked in running models.

    import posenc
    m = posenc.model("llama-3.1-8b")             # a folder, config.json, .gguf, a bundled name, a config, a live model
    print(posenc.explain(m, at=131072))          # what its files mean about position
    p = m.plan(length=131072)                    # frequencies, pairing, amplitude
    q, k = p.rotate(q, k, position_ids)          # numpy, torch, anything with DLPack; p.rotate_ in place

Importing it needs neither numpy nor torch; `posenc.torch`, `posenc.jax` and `posenc.hf` are read when they are first named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import positions
from ._posenc import (
    AngleForm,
    FileTensor,
    KeyHeader,
    KvCache,
    Plan,
    Positions,
    alibi_slopes,
    attend,
    attend_backward,
    carope,
    convolve_positions,
    convolve_positions_gradients,
    deberta_bucket,
    fire_bias,
    grape_m,
    kerple_gradients,
    key_header,
    mamba3,
    normals,
    read_tensors,
    rekey,
    repo,
    resample_grid,
    resample_grid_gradient,
    selective_rope,
    t5_bucket,
)
from ._posenc import __version__ as __version__
from .errors import Error, Warning
from .keys import CodedKeys, KeyPages, rekey_
from .models import Model, bundled_models, explain, judge_layout, model, plan, published_models, reuse
from .values import *  # noqa: F403
from .values import Value
from .values import __all__ as _values

# What posenc.tools and posenc.agreement have, which is read when it is first named.
_tools = [
    "agree",
    "bundled_config",
    "check_positions",
    "command",
    "diff",
    "doctor",
    "engines",
    "extend",
    "identify",
    "identify_table",
    "identify_vectors",
    "lint",
    "mend",
    "precision",
    "probe",
    "read_as",
    "schemes",
    "translate",
    "verify",
]

__all__ = [
    "AngleForm", "CodedKeys", "Error", "FileTensor", "KeyHeader", "KeyPages", "KvCache", "Model", "Plan", "Positions", "Value", "Warning",
    "alibi_slopes", "attend", "attend_backward", "bundled_models", "carope", "convolve_positions", "convolve_positions_gradients", "deberta_bucket", "explain", "fire_bias", "grape_m", "judge_layout",
    "kerple_gradients", "key_header", "mamba3", "model", "normals", "plan", "positions", "published_models", "read_tensors", "rekey", "rekey_", "repo", "resample_grid", "resample_grid_gradient",
    "reuse", "selective_rope", "t5_bucket",
    *_tools, *_values,
]  # fmt: skip


if TYPE_CHECKING:
    from . import tools as tools
    from . import types as types
    from .agreement import agree as agree
    from .tools import bundled_config as bundled_config
    from .tools import check_positions as check_positions
    from .tools import command as command
    from .tools import diff as diff
    from .tools import doctor as doctor
    from .tools import engines as engines
    from .tools import extend as extend
    from .tools import identify as identify
    from .tools import identify_table as identify_table
    from .tools import identify_vectors as identify_vectors
    from .tools import lint as lint
    from .tools import mend as mend
    from .tools import precision as precision
    from .tools import probe as probe
    from .tools import read_as as read_as
    from .tools import schemes as schemes
    from .tools import translate as translate
    from .tools import verify as verify
else:

    def __getattr__(name):
        import importlib

        if name in _tools:
            return getattr(importlib.import_module(".agreement" if name == "agree" else ".tools", __name__), name)
        if name in ("torch", "jax", "hf", "serving", "tools", "display", "types"):
            return importlib.import_module("." + name, __name__)
        raise AttributeError(f"module 'posenc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_tools, "torch", "jax", "hf", "serving"])
