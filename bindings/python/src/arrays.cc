// Reads arrays through DLPack or the buffer protocol, by nanobind; what these two cannot say
// (bfloat16 of ml_dtypes, whose arrays refuse both) passes as a view of the same memory.
#include "arrays.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>

#include "bindings.h"
#include "errors.h"

namespace posenc::python {
namespace {

std::string class_of(nb::handle object) { return said(nb::inst_name(object)); }

bool has(nb::handle object, const char* name) { return PyObject_HasAttrString(object.ptr(), name); }

// What arrays of a type are, found out once while calls see one type after the other.
struct Kind {
  PyTypeObject* type = nullptr;
  bool torch = false, numpy = false;
  PyObject* empty_like = nullptr;
};

Kind& kind_of(nb::handle object) {
  static Kind last;
  auto* const type = reinterpret_cast<PyTypeObject*>(object.type().ptr());
  if (type != last.type) {
    const std::string module = said(nb::getattr(object.type(), "__module__", nb::none()));
    const bool torch = module.starts_with("torch");
    Py_INCREF(reinterpret_cast<PyObject*>(type));
    Py_XDECREF(reinterpret_cast<PyObject*>(last.type));
    Py_XDECREF(last.empty_like);
    last = {type, torch, module.starts_with("numpy"), nullptr};
  }
  return last;
}

bool is_torch(nb::handle object) { return kind_of(object).torch; }

bool is_bfloat16(nb::handle object) {
  return said(nb::getattr(object, "dtype", nb::none())) == "bfloat16";
}

template <class T>
bool read(nb::handle object, T& into) {
  return nb::try_cast(object, into, false);
}

std::optional<DType> dtype_of(const nb::dlpack::dtype& dtype) {
  const auto code = static_cast<nb::dlpack::dtype_code>(dtype.code);
  if (dtype.lanes != 1) return {};
  if (code == nb::dlpack::dtype_code::Bfloat && dtype.bits == 16) return DType::bf16;
  if (code != nb::dlpack::dtype_code::Float) return {};
  switch (dtype.bits) {
    case 64: return DType::f64;
    case 32: return DType::f32;
    case 16: return DType::f16;
    default: return {};
  }
}

}  // namespace

nb::object as_exported(nb::handle object) {
  const Kind& kind = kind_of(object);
  if (kind.torch || kind.numpy || has(object, "__dlpack__")) return nb::borrow(object);
  nb::object view = nb::steal(PyMemoryView_FromObject(object.ptr()));
  if (view.is_valid()) return view;
  PyErr_Clear();
  return nb::borrow(object);
}

namespace {

// Why nanobind would not take it.
[[noreturn]] void no_array(nb::handle object, std::string_view where, std::string_view name,
                           Access access) {
  const std::string what(name);
  if (is_torch(object) && has(object, "is_cpu") && !nb::cast<bool>(object.attr("is_cpu"))) {
    throw nb::type_error((std::string(where) + ": " + what + " must lie in the CPU's memory, got " +
                          said(object.attr("device")) +
                          "; posenc.torch.cos_sin works on any device, or move it by .cpu()")
                             .c_str());
  }
  if (access == Access::write && has(object, "flags") && has(object.attr("flags"), "writeable") &&
      !nb::cast<bool>(object.attr("flags").attr("writeable")))
    refuse(where, what + " must be writable", "a read-only array",
           "pass " + what +
               ".copy(), or call the verb without an underscore, which makes a new array");
  nb::ndarray<nb::ro> read_only;
  if (access == Access::write && read(object, read_only))
    refuse(where, what + " must be writable", "a read-only array",
           "copy it, or call the verb without an underscore, which makes a new array");
  PyErr_Clear();
  if (kind_of(object).numpy && has(object, "dtype"))
    refuse(where, what + " must have the machine's byte order and strides of whole elements",
           "dtype " + said(object.attr("dtype")),
           "copy it: numpy.ascontiguousarray(" + what + ", dtype=\"float32\")");
  const nb::object buffer = as_exported(object);
  if (PyMemoryView_Check(buffer.ptr()))
    refuse(where,
           what +
               " must have the machine's byte order, strides of whole elements and no pointers "
               "between its axes",
           "a buffer of format '" + said(buffer.attr("format")) + "', strides " +
               said(buffer.attr("strides")),
           "copy it: numpy.array(" + what + ", dtype=\"float32\")");
  throw nb::type_error(
      (std::string(where) + ": " + what +
       " must be an array on the CPU (numpy, torch, or what has __dlpack__ or a buffer), got " +
       class_of(object))
          .c_str());
}

Array as_array(nb::ndarray<>&& memory, DType dtype, std::string_view where, std::string_view name) {
  Array array{std::move(memory), {}};
  const auto rank = static_cast<int>(array.memory.ndim());
  if (rank > Tensor::max_rank)
    refuse(where, std::string(name) + " must have at most 4 axes", std::to_string(rank),
           "reshape it");
  array.tensor.data = array.memory.data();
  if (reinterpret_cast<std::uintptr_t>(array.tensor.data) % size_of(dtype) != 0)
    refuse(where, std::string(name) + " must begin at a multiple of its elements' size",
           "memory between two of them", "copy it: numpy.array(" + std::string(name) + ")");
  array.tensor.dtype = dtype;
  array.tensor.rank = rank;
  for (int axis = 0; axis < rank; ++axis) {
    array.tensor.shape[static_cast<std::size_t>(axis)] = array.memory.shape_ptr()[axis];
    array.tensor.stride[static_cast<std::size_t>(axis)] = array.memory.stride_ptr()[axis];
  }
  return array;
}

}  // namespace

bool is_recorded(nb::handle object) {
  return is_torch(object) && nb::cast<bool>(object.attr("requires_grad")) &&
         nb::cast<bool>(nb::module_::import_("torch").attr("is_grad_enabled")());
}

Array array_of(nb::handle object, std::string_view where, std::string_view name, Access access) {
  nb::ndarray<> memory;
  nb::object view = as_exported(object);
  const auto imported = [&] {
    if (access == Access::write) return read(view, memory);
    nb::ndarray<nb::ro> seen;
    if (!read(view, seen)) return false;
    memory = nb::ndarray<>(seen);
    return true;
  };
  bool bits = false;
  if (is_recorded(object))
    refuse(where, std::string(name) + " must need no gradient here", "a tensor that requires one",
           "pass " + std::string(name) + ".detach(), or take posenc.torch, which has gradients");
  if (is_torch(object) && nb::cast<bool>(object.attr("requires_grad")))
    view = object.attr("detach")();
  if (!imported()) {
    PyErr_Clear();
    bits = is_bfloat16(object) && has(object, "view") && !is_torch(object);
    if (bits) view = object.attr("view")("uint16");
    if (!bits || !imported()) no_array(object, where, name, access);
  }
  if (memory.device_type() != nb::device::cpu::value) no_array(object, where, name, access);
  const std::optional<DType> dtype = bits ? DType::bf16 : dtype_of(memory.dtype());
  if (!dtype) {
    refuse(where, std::string(name) + " must be of float64, float32, float16 or bfloat16",
           has(object, "dtype")             ? said(object.attr("dtype"))
           : PyMemoryView_Check(view.ptr()) ? "format '" + said(view.attr("format")) + "'"
                                            : class_of(object),
           "convert it first");
  }
  return as_array(std::move(memory), *dtype, where, name);
}

Tensor in_layout(const Tensor& tensor, std::string_view layout, std::string_view where) {
  constexpr std::string_view usual = "bhsd";
  const auto rank = static_cast<std::size_t>(tensor.rank);
  if (layout.empty()) layout = usual.substr(usual.size() - rank);
  if (layout.size() != rank)
    refuse(where, "layout must name each of the array's " + std::to_string(rank) + " axes",
           "'" + std::string(layout) + "'",
           "letters are b batch, h heads, s or t tokens, d channels");
  Tensor out{
      .data = tensor.data, .dtype = tensor.dtype, .rank = 4, .shape = {1, 1, 1, 1}, .stride = {}};
  std::array<bool, 4> named{};
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::size_t meant = usual.find(layout[axis] == 't' ? 's' : layout[axis]);
    if (meant == usual.npos || named[meant])
      refuse(where, "layout must be made of b, h, s (or t) and d, each once",
             "'" + std::string(layout) + "'", "write 'bhsd' or 'bshd'");
    named[meant] = true;
    out.shape[meant] = tensor.shape[axis];
    out.stride[meant] = tensor.stride[axis];
  }
  return out;
}

std::vector<std::int64_t> in_order(const Tensor& logical, std::int64_t dim, std::string_view layout,
                                   int rank) {
  constexpr std::string_view usual = "bhsd";
  if (layout.empty()) layout = usual.substr(usual.size() - static_cast<std::size_t>(rank));
  std::vector<std::int64_t> shape;
  for (const char axis : layout) {
    const std::size_t meant = usual.find(axis == 't' ? 's' : axis);
    shape.push_back(meant == 3 ? dim : logical.shape[meant]);
  }
  return shape;
}

nb::object empty_like(nb::handle like) {
  Kind& kind = kind_of(like);
  if (!kind.torch && !kind.numpy && has(like, "__array_namespace__")) {
    // Memory of our own that speaks DLPack, which the array's library then takes over: numpy cannot
    // pass bfloat16 on.
    const Array given = array_of(like, "empty_like", "x", Access::read);
    const auto rank = static_cast<std::size_t>(given.tensor.rank);
    const std::vector<std::size_t> shape(given.tensor.shape.begin(),
                                         given.tensor.shape.begin() + given.tensor.rank);
    const std::size_t bytes =
        static_cast<std::size_t>(given.tensor.size()) * size_of(given.tensor.dtype);
    auto* const memory = new std::byte[bytes + 1];
    const nb::capsule owner(memory, [](void* p) noexcept { delete[] static_cast<std::byte*>(p); });
    return nb::cast(nb::ndarray<nb::array_api>(memory, rank, shape.data(), owner, nullptr,
                                               given.memory.dtype(), nb::device::cpu::value));
  }
  if (!kind.empty_like) {
    const nb::object maker =
        nb::module_::import_(kind.torch ? "torch" : "numpy").attr("empty_like");
    kind.empty_like = maker.inc_ref().ptr();
  }
  return nb::handle(kind.empty_like)(like);
}

nb::object new_array(nb::handle like, const std::vector<std::int64_t>& shape,
                     std::string_view dtype) {
  nb::list extents;
  for (const std::int64_t extent : shape) extents.append(extent);
  const std::string of(dtype);
  if (is_torch(like)) {
    const nb::object torch = nb::module_::import_("torch");
    return torch.attr("empty")(extents, nb::arg("dtype") = torch.attr(of.c_str()));
  }
  const nb::object numpy = nb::module_::import_("numpy");
  if (dtype == name(DType::bf16))
    return numpy.attr("empty")(
        extents, nb::arg("dtype") = nb::module_::import_("ml_dtypes").attr("bfloat16"));
  return numpy.attr("empty")(extents, nb::arg("dtype") = of);
}

std::string dtype_name(nb::handle dtype, std::string_view otherwise) {
  if (dtype.is_none()) return std::string(otherwise);
  std::string word =
      said(PyType_Check(dtype.ptr()) ? nb::object(dtype.attr("__name__")) : nb::borrow(dtype));
  if (word.starts_with("torch.")) word.erase(0, 6);
  return word;
}

nb::object handed_back(nb::object made, nb::handle like) {
  const Kind& kind = kind_of(like);
  if (kind.torch || kind.numpy || !has(like, "__array_namespace__")) return made;
  return like.attr("__array_namespace__")().attr("from_dlpack")(made);
}

// --- positions -----------------------------------------------------------------------------------

namespace {

// Rows of ids that all count up by one from the same first one are a range: it costs no memory, and
// kernels like it.
Positions of_ids(const std::vector<std::int64_t>& ids, std::int64_t axes, std::int64_t batch,
                 std::int64_t seq) {
  if (seq > 0) {
    const auto count = static_cast<std::size_t>(seq);
    bool counts = true;
    for (std::size_t i = 0; i < ids.size() && counts; ++i)
      counts = ids[i] == ids[0] + static_cast<std::int64_t>(i % count);
    if (counts && !ids.empty() && ids[0] >= 0) return Positions::range(ids[0], seq);
  }
  return unwrap(Positions::ids(ids, axes, batch));
}

template <class T>
std::vector<std::int64_t> copied(const nb::ndarray<nb::ro>& array) {
  std::array<std::int64_t, 3> shape{1, 1, 1}, stride{0, 0, 0};
  const std::size_t rank = array.ndim();
  for (std::size_t axis = 0; axis < rank; ++axis) {
    shape[3 - rank + axis] = array.shape_ptr()[axis];
    stride[3 - rank + axis] = array.stride_ptr()[axis];
  }
  std::vector<std::int64_t> ids;
  ids.reserve(array.size());
  const T* const data = static_cast<const T*>(array.data());
  for (std::int64_t a = 0; a < shape[0]; ++a)
    for (std::int64_t b = 0; b < shape[1]; ++b)
      for (std::int64_t t = 0; t < shape[2]; ++t)
        ids.push_back(
            static_cast<std::int64_t>(data[a * stride[0] + b * stride[1] + t * stride[2]]));
  return ids;
}

}  // namespace

namespace {

std::int64_t integer_of(nb::handle id, std::string_view where) {
  std::int64_t value = 0;
  const nb::object index = nb::steal(PyNumber_Index(id.ptr()));
  PyErr_Clear();
  if (!index.is_valid() || !nb::try_cast(index, value))
    refuse(where, "position_ids must be integers of 64 bits", said(nb::borrow(id)),
           "count from 0: ids are where tokens stand in their text");
  return value;
}

}  // namespace

namespace {

struct Counting {
  std::int64_t start = 0, step = 1, count = 0;
};

// Both ends of a range of Python's fit 64 bits, and what is between them a machine.
Counting counting_of(nb::handle range, std::string_view where) {
  Counting out{integer_of(range.attr("start"), where), integer_of(range.attr("step"), where), 0};
  const std::int64_t stop = integer_of(range.attr("stop"), where);
  constexpr Py_ssize_t most = Py_ssize_t{1} << 40;
  const Py_ssize_t count = PyObject_Size(range.ptr());
  PyErr_Clear();
  if (count < 0 || count > most)
    refuse(where, "position_ids must be of at most 2^40 tokens", said(nb::borrow(range)),
           "give as many ids as there are tokens");
  out.count = stop == out.start ? 0 : count;
  return out;
}

}  // namespace

Positions positions_of(nb::handle ids, std::int64_t seq, std::string_view where) {
  if (ids.is_none()) return Positions::range(0, seq);
  if (nb::isinstance<Positions>(ids)) return nb::cast<Positions>(ids);
  if (PyLong_Check(ids.ptr())) return Positions::range(integer_of(ids, where), seq);
  if (PyRange_Check(ids.ptr())) {
    const Counting counting = counting_of(ids, where);
    if (counting.step == 1) return Positions::range(counting.start, counting.count);
  }
  nb::ndarray<nb::ro> array;
  if (!PyList_Check(ids.ptr()) && !PyTuple_Check(ids.ptr()) && !PyRange_Check(ids.ptr()) &&
      read(as_exported(ids), array)) {
    if (array.ndim() == 0) return Positions::range(integer_of(ids, where), seq);
    if (array.ndim() > 3)
      refuse(where, "position_ids must be [seq], [batch, seq] or [axes, batch, seq]",
             std::to_string(array.ndim()) + " axes");
    const auto extent = [&](std::size_t from_right) {
      return array.ndim() >= from_right ? array.shape_ptr()[array.ndim() - from_right] : 1;
    };
    const auto dtype = array.dtype();
    const auto code = static_cast<nb::dlpack::dtype_code>(dtype.code);
    if (code == nb::dlpack::dtype_code::Int && dtype.bits == 64)
      return of_ids(copied<std::int64_t>(array), extent(3), extent(2), extent(1));
    if (code == nb::dlpack::dtype_code::Int && dtype.bits == 32)
      return of_ids(copied<std::int32_t>(array), extent(3), extent(2), extent(1));
    refuse(where, "position_ids must be of int64 or int32",
           said(nb::getattr(ids, "dtype", nb::none())), "convert them first");
  }
  PyErr_Clear();
  const bool nested = (PyList_Check(ids.ptr()) || PyTuple_Check(ids.ptr())) && nb::len(ids) > 0 &&
                      PySequence_Check(nb::object(ids[nb::int_(0)]).ptr());
  if (nested) return positions_of(nb::module_::import_("numpy").attr("asarray")(ids), seq, where);
  std::vector<std::int64_t> listed;
  if (!PySequence_Check(ids.ptr()))
    throw nb::type_error(
        (std::string(where) + ": position_ids must be integers, got " + class_of(ids)).c_str());
  for (const nb::handle id : ids) listed.push_back(integer_of(id, where));
  const auto count = static_cast<std::int64_t>(listed.size());
  return of_ids(listed, 1, 1, count);
}

Positions counted(nb::handle ids, std::string_view where) {
  return PyLong_Check(ids.ptr()) ? Positions::range(0, integer_of(ids, where))
                                 : positions_of(ids, 0, where);
}

namespace {

// numpy has the types of the module array by the same letters.
nb::object numbers_of(const char* type, const void* values, std::size_t size,
                      const std::vector<std::int64_t>& shape) {
  const nb::bytes bytes(static_cast<const char*>(values), size);
  nb::object numpy = nb::steal(PyImport_ImportModule("numpy"));
  if (!numpy.is_valid()) {
    PyErr_Clear();
    return nb::module_::import_("array").attr("array")(type, bytes);
  }
  nb::list extents;
  for (const std::int64_t extent : shape) extents.append(extent);
  return numpy.attr("frombuffer")(bytes, type).attr("reshape")(extents).attr("copy")();
}

}  // namespace

nb::object numbers(const std::vector<double>& values, const std::vector<std::int64_t>& shape) {
  return numbers_of("d", values.data(), values.size() * sizeof(double), shape);
}

nb::object numbers(const std::vector<std::uint64_t>& values,
                   const std::vector<std::int64_t>& shape) {
  return numbers_of("Q", values.data(), values.size() * sizeof(std::uint64_t), shape);
}

}  // namespace posenc::python
