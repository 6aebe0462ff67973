// XLA's custom call, for JAX: one on a device, in its stream, and the emulated grid on the host
// under the same name.
#include "backends/cuda/python/xla.h"

#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <string_view>

#include "backends/cuda/python/rotations.h"
#include "xla/ffi/api/ffi.h"

namespace posenc::cuda::python {
namespace {

namespace ffi = xla::ffi;

struct Place {
  std::string_view backend;
  int ordinal = 0;
  void* stream = nullptr;
};

// What of the call is fixed when it is compiled.
struct Fixed {
  std::string_view plans;   // as plans_of reads them
  std::string_view layout;  // the axes of x by letters, of b, h, s and d
  bool transposed = false;
  std::int64_t first = 0;  // position, where there are no ids
};

std::optional<DType> dtype_of(ffi::DataType type) {
  switch (type) {
    case ffi::DataType::F64: return DType::f64;
    case ffi::DataType::F32: return DType::f32;
    case ffi::DataType::F16: return DType::f16;
    case ffi::DataType::BF16: return DType::bf16;
    default: return {};
  }
}

// A buffer, which is dense, as [batch, head, seq, head_dim]; absent where the layout or the type is
// another.
Tensor tensor_of(const ffi::AnyBuffer& x, std::string_view layout) {
  const auto extents = x.dimensions();
  const std::optional<DType> dtype = dtype_of(x.element_type());
  if (!dtype || layout.size() != extents.size()) return {};
  Tensor out{.data = x.untyped_data(), .dtype = *dtype, .rank = 4, .shape = {1, 1, 1, 1}};
  std::int64_t step = 1;
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    const std::size_t meant = std::string_view("bhsd").find(layout[axis]);
    if (meant == std::string_view::npos) return {};
    out.shape[meant] = extents[axis];
    out.stride[meant] = step;
    step *= extents[axis];
  }
  return out;
}

ffi::Error invalid(std::string text) {
  return ffi::Error(ffi::ErrorCode::kInvalidArgument, std::move(text));
}

// Ids are [axes, batch, seq] of 64 or of 32 bits, plan ids [batch, seq] of 32; empty where there
// are none.
ffi::Error rotate_in(const Place& place, const Fixed& fixed, const ffi::AnyBuffer& x,
                     const ffi::AnyBuffer& ids, const ffi::AnyBuffer& plan_ids,
                     const ffi::AnyBuffer& out) {
  const Tensor from = tensor_of(x, fixed.layout), to = tensor_of(out, fixed.layout);
  if (from.rank == 0) return invalid("posenc.jax: x must be of floats in the axes of its layout");
  if (from.size() == 0) return ffi::Error::Success();
  DevicePositions positions{.first = fixed.first};
  if (ids.element_count() > 0 && ids.element_type() == ffi::DataType::S64)
    positions.ids = ids.typed_data<std::int64_t>();
  else if (ids.element_count() > 0)
    positions.short_ids = ids.typed_data<std::int32_t>();
  const RotateOptions options{
      .action = fixed.transposed ? Action::transpose : Action::forward,
      .plan_ids = plan_ids.element_count() > 0 ? plan_ids.typed_data<std::int32_t>() : nullptr,
      .stream = place.stream};
  const auto there = rotations_of(fixed.plans, place.backend, place.ordinal, place.stream);
  if (!there) return invalid(there.error().message());
  const CurrentDevice current((*there)->ordinal);
  const auto done = rotate((*there)->rotations, from, {}, positions, to, {}, options);
  return done ? ffi::Error::Success() : invalid(done.error().message());
}

auto bound() { return ffi::Ffi::Bind(); }

// The arguments and attributes that both have.
template <class Binding>
auto with_arguments(Binding binding) {
  return std::move(binding)
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Ret<ffi::AnyBuffer>()
      .template Attr<std::string_view>("plans")
      .template Attr<std::string_view>("layout")
      .template Attr<bool>("transposed")
      .template Attr<std::int64_t>("first");
}

ffi::Error on_device(void* stream, std::int32_t ordinal, ffi::AnyBuffer x, ffi::AnyBuffer ids,
                     ffi::AnyBuffer plan_ids, ffi::Result<ffi::AnyBuffer> out,
                     std::string_view plans, std::string_view layout, bool transposed,
                     std::int64_t first) {
  return rotate_in({"device", ordinal, stream}, {plans, layout, transposed, first}, x, ids,
                   plan_ids, *out);
}
ffi::Error on_host(ffi::AnyBuffer x, ffi::AnyBuffer ids, ffi::AnyBuffer plan_ids,
                   ffi::Result<ffi::AnyBuffer> out, std::string_view plans, std::string_view layout,
                   bool transposed, std::int64_t first) {
  return rotate_in({"emulated"}, {plans, layout, transposed, first}, x, ids, plan_ids, *out);
}

XLA_FFI_DEFINE_HANDLER(
    rotate_on_device, on_device,
    with_arguments(bound().Ctx<ffi::PlatformStream<void*>>().Ctx<ffi::DeviceOrdinal>()));
XLA_FFI_DEFINE_HANDLER(rotate_on_host, on_host, with_arguments(bound()));

}  // namespace

void bind_xla(nanobind::module_& m) {
  nanobind::dict targets;
  targets["cpu"] = nanobind::capsule(reinterpret_cast<void*>(rotate_on_host));
  if (built_in_device() != nullptr)
    targets["CUDA"] = nanobind::capsule(reinterpret_cast<void*>(rotate_on_device));
  m.attr("xla_targets") = targets;
}

}  // namespace posenc::cuda::python
