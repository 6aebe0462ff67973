// The extension module of posenc_cuda: addresses, shapes and strides of tensors in, the device's
// work put into a stream.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "backends/cuda/python/rotations.h"
#include "backends/cuda/python/xla.h"
#include "bindings/python/src/errors.h"
#include "posenc/c.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace posenc::cuda::python {
namespace {

using posenc::python::refuse;
using posenc::python::unlocked;

constexpr std::string_view where = "posenc_cuda";

template <class T>
T* address(std::uintptr_t number) {
  return reinterpret_cast<T*>(number);
}

void make_tensor(Tensor* made, std::uintptr_t data, std::string_view dtype,
                 const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) {
  if (shape.size() != 4 || strides.size() != 4)
    refuse(where, "a tensor must have four axes", std::to_string(shape.size()));
  for (const DType each : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    if (name(each) != dtype) continue;
    new (made) Tensor{.data = address<void>(data), .dtype = each, .rank = 4};
    std::ranges::copy(shape, made->shape.begin());
    std::ranges::copy(strides, made->stride.begin());
    return;
  }
  refuse(where, "a tensor must be of float64, float32, float16 or bfloat16", dtype);
}

void make_positions(DevicePositions* made, std::int64_t first, std::uintptr_t ids,
                    std::uintptr_t short_ids, std::uintptr_t cu_seqlens, std::uintptr_t cached,
                    int texts) {
  new (made) DevicePositions{.first = first,
                             .ids = address<const std::int64_t>(ids),
                             .short_ids = address<const std::int32_t>(short_ids),
                             .cu_seqlens = address<const std::int32_t>(cu_seqlens),
                             .cached = address<const std::int32_t>(cached),
                             .texts = texts};
}

Action action_of(std::string_view word) {
  constexpr std::string_view words[] = {"forward", "transpose", "inverse"};
  for (int action = 0; action < 3; ++action)
    if (words[action] == word) return static_cast<Action>(action);
  refuse(where, "action must be forward, transpose or inverse", word);
}

RotateOptions options_of(std::string_view action, std::uintptr_t plan_ids, std::uintptr_t stream) {
  return {.action = action_of(action),
          .plan_ids = address<const std::int32_t>(plan_ids),
          .stream = address<void>(stream)};
}

void rotate_there(const Brought& there, const Tensor& q, const std::optional<Tensor>& k,
                  const Tensor& q_out, const std::optional<Tensor>& k_out,
                  const DevicePositions& positions, std::string_view action,
                  std::uintptr_t plan_ids, std::uintptr_t stream) {
  const RotateOptions options = options_of(action, plan_ids, stream);
  unlocked([&] {
    const CurrentDevice current(there.ordinal);
    return rotate(there.rotations, q, k.value_or(Tensor{}), positions, q_out,
                  k_out.value_or(Tensor{}), options);
  });
}

void append_there(const Brought& there, const Tensor& q, const Tensor& k, const Tensor& v,
                  const Tensor& q_out, const std::optional<Tensor>& k_out, const Tensor& key_pages,
                  const Tensor& value_pages, std::uintptr_t slots, const DevicePositions& positions,
                  std::uintptr_t plan_ids, std::uintptr_t stream) {
  const RotateOptions options = options_of("forward", plan_ids, stream);
  const DevicePages pages{key_pages, value_pages, address<const std::int64_t>(slots)};
  unlocked([&] {
    const CurrentDevice current(there.ordinal);
    return rotate_and_append(there.rotations, q, k, v, positions, q_out, k_out.value_or(Tensor{}),
                             pages, options);
  });
}

}  // namespace
}  // namespace posenc::cuda::python

NB_MODULE(_posenc_cuda, m) {
  using namespace posenc::cuda::python;
  m.doc() = "posenc/cuda.h as Python sees it; posenc.torch and posenc.jax use it.";
  m.attr("__version__") = posenc_version();
  m.attr("has_device_code") = built_in_device() != nullptr;
  posenc::python::bind_errors(m);

  nb::class_<posenc::Tensor>(
      m, "Tensor",
      "A view of memory, [batch, head, seq, head_dim] or [page, kv_head, token, head_dim], strides "
      "in elements. Nothing owns the memory: it must live until the stream has done its work.")
      .def("__init__", &make_tensor, "data"_a, "dtype"_a, "shape"_a, "strides"_a);
  nb::class_<posenc::cuda::DevicePositions>(
      m, "Positions",
      "Where tokens stand: from `first` on, at ids [axes, batch, seq] of 64 or 32 bits, or in "
      "packed texts; addresses on the "
      "device, 0 where there is none.")
      .def("__init__", &make_positions, "first"_a = 0, "ids"_a = 0, "short_ids"_a = 0,
           "cu_seqlens"_a = 0, "cached"_a = 0, "texts"_a = 0);
  nb::class_<Brought>(m, "Rotations", "What a device rotates by: one plan, or several.")
      .def_prop_ro(
          "size", [](const Brought& there) { return there.rotations.size(); }, "How many plans.")
      .def("rotate", &rotate_there, "q"_a, "k"_a.none(), "q_out"_a, "k_out"_a.none(), "positions"_a,
           nb::kw_only(), "action"_a = "forward", "plan_ids"_a = 0, "stream"_a = 0,
           "Queries and keys rotated to q_out and k_out, which may be themselves.")
      .def("rotate_and_append", &append_there, "q"_a, "k"_a, "v"_a, "q_out"_a, "k_out"_a.none(),
           "key_pages"_a, "value_pages"_a, "slots"_a, "positions"_a, nb::kw_only(),
           "plan_ids"_a = 0, "stream"_a = 0,
           "The same, and rotated keys and values as they are into the pages of a cache; k_out "
           "None: the keys go to the pages "
           "alone.");
  m.def(
      "rotations",
      [](std::string_view plans, std::string_view backend, int ordinal, std::uintptr_t stream) {
        return unlocked(
            [&] { return rotations_of(plans, backend, ordinal, address<void>(stream)); });
      },
      "plans"_a, "backend"_a = "device", "ordinal"_a = 0, "stream"_a = 0,
      "Rotations of plans that posenc.cuda.text_of says, made when they are first asked for.");
  bind_xla(m);
}
