"""ggml's own library, out of llama-cpp-python or libggml-python, through ctypes."""

import ctypes
import glob
import importlib.metadata
import importlib.util
from pathlib import Path

POINTER, INTEGER, REAL, WIDE = ctypes.c_void_p, ctypes.c_int, ctypes.c_float, ctypes.c_int64
TYPES = {"float32": 0, "float16": 1, "int32": 26}
PACKAGES = {"llama_cpp": "llama-cpp-python", "libggml": "libggml-python"}


class Missing(Exception):
    """Why a peer has nothing to show."""


def libraries():
    """The paths of libggml-base and libggml-cpu, which may be one file, and who ships them."""
    for module, package in PACKAGES.items():
        spec = importlib.util.find_spec(module)
        for folder in spec.submodule_search_locations if spec and spec.submodule_search_locations else []:
            for base in sorted(glob.glob(f"{folder}/lib*/libggml-base.*")):
                cpu = sorted(glob.glob(f"{Path(base).parent}/libggml-cpu*.*"))
                if cpu:
                    return base, cpu[0], package
    raise Missing("neither llama-cpp-python nor libggml-python is installed")


class Params(ctypes.Structure):
    _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool)]


class Graph:
    """Tensors in a context of `room` bytes, from which a run also takes its buffer, and one graph of them."""

    def __init__(self, room):
        base, cpu, package = libraries()
        self.version = importlib.metadata.version(package)
        self.libraries = [ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL) for path in (base, cpu)]
        ready = getattr(self.libraries[1], "ggml_cpu_init", None)
        if ready:  # makes the table by which it reads halves
            ready()
        self.context = self.function("ggml_init", POINTER, Params)(Params(room, None, False))
        self.data_of = self.function("ggml_get_data", POINTER, POINTER)

    def function(self, name, result, *arguments):
        for library in self.libraries:
            found = getattr(library, name, None)
            if found is not None:
                found.restype, found.argtypes = result, arguments
                return found
        raise Missing(f"its library does not expose {name}")

    def tensor(self, values):
        """A tensor of the array's numbers, whose last axis is ggml's first."""
        shape = values.shape[::-1]
        make = self.function(f"ggml_new_tensor_{len(shape)}d", POINTER, POINTER, INTEGER, *[WIDE] * len(shape))
        made = make(self.context, TYPES[str(values.dtype)], *shape)
        self.view(made, values.shape, values.dtype)[:] = values
        return made

    def view(self, tensor, shape, dtype):
        """The memory of a tensor as an array."""
        import numpy as np

        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return np.frombuffer((ctypes.c_char * size).from_address(self.data_of(tensor)), dtype).reshape(shape)

    def compute(self, result, threads):
        """What computes `result` when called."""
        graph = self.function("ggml_new_graph", POINTER, POINTER)(self.context)
        self.function("ggml_build_forward_expand", None, POINTER, POINTER)(graph, result)
        run = self.function("ggml_graph_compute_with_ctx", INTEGER, POINTER, POINTER, INTEGER)

        def work():
            if run(self.context, graph, threads) != 0:
                raise RuntimeError("ggml_graph_compute failed")

        return work
