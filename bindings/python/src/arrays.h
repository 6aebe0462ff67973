// Arrays of Python as tensors: numpy's, torch's, whatever speaks DLPack or the buffer protocol. Any
// strides, no copies.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "errors.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

namespace posenc::python {

namespace nb = nanobind;

// An array with its own order of axes, and what keeps it alive.
struct Array {
  nb::ndarray<> memory;
  Tensor tensor;
};

enum class Access { read, write };

// The array as it is: up to four axes in its own order. `where` and `name` begin messages.
// Raises TypeError for what is no array on the CPU, posenc.Error for dtypes that posenc does not
// compute with, and for arrays that may not be written, with the cure.
Array array_of(nb::handle object, std::string_view where, std::string_view name, Access access);

// The object, or where nothing is known of it but a buffer a memoryview of it: that has strides,
// shape and format where the exporter leaves them out, as ctypes does.
nb::object as_exported(nb::handle object);

// Whether PyTorch records what is done with it: kernels would lose the gradient, and posenc.torch
// has it.
bool is_recorded(nb::handle object);

// The same view with the axes [batch, head, seq, head_dim] that the library takes. `layout` names
// the array's own by letters: b batch, h heads, s or t tokens, d channels ("bshd"); "" is "bhsd"
// and its ends "hsd", "sd", "d".
Tensor in_layout(const Tensor& tensor, std::string_view layout, std::string_view where);

// The shape [batch, head, seq, dim] of another `dim`, in the order of an array's own `rank` axes.
std::vector<std::int64_t> in_order(const Tensor& logical, std::int64_t dim, std::string_view layout,
                                   int rank);

// A new array like `like`: of its library, shape, dtype and order of memory.
nb::object empty_like(nb::handle like);

// A new array of a library's own: like.new_empty where `like` is torch's, else numpy's. `dtype` is
// named as posenc does.
nb::object new_array(nb::handle like, const std::vector<std::int64_t>& shape,
                     std::string_view dtype);

// The same, which write(tensor) fills without the interpreter's lock; the axes are the array's own.
template <class Write>
nb::object filled(nb::handle like, const std::vector<std::int64_t>& shape, std::string_view dtype,
                  std::string_view where, const Write& write) {
  nb::object made = new_array(like, shape, dtype);
  const Array array = array_of(made, where, "out", Access::write);
  unlocked([&] { return write(array.tensor); });
  return made;
}

// "float32" of a name, a dtype of numpy's or torch's, or None.
std::string dtype_name(nb::handle dtype, std::string_view otherwise);

// What came of `made`, which empty_like(like) gave, for the caller.
nb::object handed_back(nb::object made, nb::handle like);

// position_ids as Python says them: None (from 0 on), an integer (from there on), a range,
// Positions, or integers [seq], [batch, seq] or [axes, batch, seq] in any array or list. `seq` is
// the number of tokens that they stand for.
Positions positions_of(nb::handle ids, std::int64_t seq, std::string_view where);

// The same where a number is one of tokens, from position 0 on.
Positions counted(nb::handle ids, std::string_view where);

}  // namespace posenc::python
