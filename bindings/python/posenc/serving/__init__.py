"""Drop-ins for servers that use cached keys again at other positions: their functions by name and arguments, posenc's rotation within.

    from posenc.serving.lmcache import get_fused_rope                    # for lmcache.v1.compute.positional_encoding
    from posenc.serving.sglang import copy_kv_with_rope_correction       # for sglang.srt.mem_cache.fuzzy_match.rope_correction

Keys turn once, by the difference of two angles that is formed in double, and are rounded once; parts of a head, scalings, several axes
of positions and 8 bits are no reason to refuse. `rotations.plan_of` reads an engine's rotary module. Whether keys of a model may move
at all says posenc.reuse.
"""
