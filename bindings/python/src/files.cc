// Files of tensors: .npy, safetensors and GGUF, mapped and not read.
#include "posenc/files.h"

#include <memory>
#include <string>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "errors.h"

namespace posenc::python {
namespace {

// A tensor of a file that is mapped while somebody holds one.
struct FileTensor {
  std::shared_ptr<const TensorFile> file;
  const StoredTensor* stored;
};

nb::dict read_tensor_file(const std::string& path) {
  const auto file =
      std::make_shared<const TensorFile>(unlocked([&] { return read_tensors(path); }));
  nb::dict all;
  for (const StoredTensor& stored : file->tensors)
    all[text(stored.name)] = nb::cast(FileTensor{file, &stored});
  return all;
}

// Copied, in the type asked for: what the file has may be quantized, or lie anywhere.
nb::object copied_numbers(const FileTensor& tensor, std::string_view dtype) {
  constexpr const char* where = "numpy";
  if (dtype != "float32" && dtype != "float64")
    refuse(where, "dtype must be float32 or float64", dtype);
  const auto array = [&](const auto& values) {
    const nb::bytes bytes(reinterpret_cast<const char*>(values.data()),
                          values.size() * sizeof(values[0]));
    const nb::object numpy = nb::module_::import_("numpy");
    nb::list shape;
    for (const std::int64_t extent : tensor.stored->shape) shape.append(extent);
    return numpy.attr("frombuffer")(bytes, dtype).attr("reshape")(shape).attr("copy")();
  };
  if (dtype == "float64") return array(unlocked([&] { return doubles_of(*tensor.stored); }));
  return array(unlocked([&] { return floats_of(*tensor.stored); }));
}

}  // namespace

void bind_files(nb::module_& m) {
  nb::class_<FileTensor>(m, "FileTensor", "A tensor of a file, whose numbers are read when asked.")
      .def_prop_ro(
          "name", [](const FileTensor& t) { return text(t.stored->name); },
          "As the file calls it; empty of a .npy.")
      .def_prop_ro(
          "type", [](const FileTensor& t) { return text(t.stored->type); },
          "As the format spells it: F16, Q4_K, <f4.")
      .def_prop_ro(
          "shape", [](const FileTensor& t) { return nb::tuple(nb::cast(t.stored->shape)); },
          "Its last axis is contiguous, whatever order the file has.")
      .def("__repr__",
           [](const FileTensor& t) {
             std::string shape;
             for (const std::int64_t extent : t.stored->shape)
               shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
             return text("<posenc.FileTensor " + t.stored->name + ": " + t.stored->type + " [" +
                         shape + "]>");
           })
      .def("numpy", &copied_numbers, nb::arg("dtype") = "float32",
           "Its numbers as an array of numpy, float32 or float64; float32 also of ggml's blocks "
           "of quantized numbers.");
  m.def("read_tensors", &read_tensor_file, nb::arg("path"),
        "{name: FileTensor} of a .npy, .safetensors or .gguf file, which is mapped.");
}

}  // namespace posenc::python
