// Rotation by angles of the caller's own: of real positions, or from elsewhere.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "errors.h"
#include "posenc/apply.h"
#include "posenc/gradients.h"

namespace posenc::python {
namespace {

using VerbBy = Expected<void> (*)(const Plan&, const Tensor&, const Tensor&, Side, const Tensor&,
                                  Threads);

nb::object rotated_by_angles(VerbBy verb, const char* where, const CompiledPlan& plan, nb::handle x,
                             nb::handle angles, std::string_view side, std::string_view layout,
                             int threads) {
  const Array from = array_of(x, where, "x", Access::read),
              by = array_of(angles, where, "angles", Access::read);
  nb::object made = empty_like(x);
  const Array to = array_of(made, where, "out", Access::write);
  const Tensor in = in_layout(from.tensor, layout, where),
               turned =
                   in_layout(by.tensor, by.tensor.rank == from.tensor.rank ? layout : "", where),
               out = in_layout(to.tensor, layout, where);
  const Side whose = side_of(side);
  unlocked([&] { return verb(plan.plan, in, turned, whose, out, {threads}); });
  return handed_back(std::move(made), x);
}

void rotate_by_in_place(const CompiledPlan& plan, nb::handle x, nb::handle angles,
                        std::string_view side, std::string_view layout, int threads) {
  constexpr const char* where = "rotate_by_";
  const Array array = array_of(x, where, "x", Access::write),
              by = array_of(angles, where, "angles", Access::read);
  const Tensor view = in_layout(array.tensor, layout, where),
               turned =
                   in_layout(by.tensor, by.tensor.rank == array.tensor.rank ? layout : "", where);
  const Side whose = side_of(side);
  unlocked([&] { return rotate_by(plan.plan, view, turned, whose, view, {threads}); });
}

// Real positions as [axes, batch, seq], of [seq], [batch, seq] or with the axes of several in
// front.
struct RealPositions {
  Tensor at;
  bool batched;
};
RealPositions real_positions(const Array& given, std::int64_t axes, const char* where) {
  const bool has_axes = axes > 1;
  if (given.tensor.rank < 1 + has_axes || given.tensor.rank > 2 + has_axes)
    refuse(where,
           has_axes ? "at must be [axes, seq] or [axes, batch, seq]"
                    : "at must be [seq] or [batch, seq]",
           std::to_string(given.tensor.rank) + " axes");
  const bool batched = given.tensor.rank == 2 + has_axes;
  Tensor seen = given.tensor.with_rank(3);
  if (has_axes && !batched) {  // the axes stand first, the batch between
    seen.shape = {given.tensor.shape[0], 1, given.tensor.shape[1]};
    seen.stride = {given.tensor.stride[0], 0, given.tensor.stride[1]};
  }
  return {seen, batched};
}

std::int64_t wave_axes(const CompiledPlan& plan) {
  const Add* const add = plan.plan.add ? &*plan.plan.add : nullptr;
  const Waves* const waves = add ? std::get_if<Waves>(&add->kind) : nullptr;
  return waves ? waves->axes : 1;
}

nb::object vectors_at(const CompiledPlan& plan, nb::handle at, nb::handle dtype, int threads) {
  constexpr const char* where = "vectors_at";
  const Array given = array_of(at, where, "at", Access::read);
  const RealPositions real = real_positions(given, wave_axes(plan), where);
  const std::int64_t width =
      !plan.plan.add ? 0
                     : std::visit([](const auto& kind) { return kind.width; }, plan.plan.add->kind);
  std::vector<std::int64_t> shape = {real.at.shape[2], width};
  if (real.batched) shape.insert(shape.begin(), real.at.shape[1]);
  return filled(at, shape, dtype_name(dtype, name(DType::f32)), where, [&](const Tensor& out) {
    return position_vectors(plan.plan, real.at, out.with_rank(3), {threads});
  });
}

nb::object added_at(const CompiledPlan& plan, nb::handle embedding, nb::handle at, int threads) {
  constexpr const char* where = "add_at";
  const Array from = array_of(embedding, where, "embedding", Access::read),
              given = array_of(at, where, "at", Access::read);
  const RealPositions real = real_positions(given, wave_axes(plan), where);
  nb::object made = empty_like(embedding);
  const Array to = array_of(made, where, "out", Access::write);
  const Tensor in = from.tensor.with_rank(3), out = to.tensor.with_rank(3);
  unlocked([&] { return add(plan.plan, in, real.at, out, {threads}); });
  return handed_back(std::move(made), embedding);
}

// [seq, pair], [heads, seq, pair] or with the batch of `at` in front.
nb::object angles_at(const CompiledPlan& plan, nb::handle at, nb::handle dtype, int threads) {
  constexpr const char* where = "angles_at";
  const Rotate& rotate_part = rotation(plan, where);
  const Array given = array_of(at, where, "at", Access::read);
  const RealPositions real = real_positions(given, rotate_part.frequencies.axes, where);
  std::vector<std::int64_t> shape = {real.at.shape[2], rotate_part.pairs()};
  std::string layout = "sd";
  if (rotate_part.frequencies.heads > 1) {
    shape.insert(shape.begin(), rotate_part.frequencies.heads);
    layout = "hsd";
  }
  if (real.batched) {
    shape.insert(shape.begin(), real.at.shape[1]);
    layout = "b" + layout;
  }
  return filled(at, shape, dtype_name(dtype, name(DType::f64)), where, [&](const Tensor& out) {
    return rotation_angles(plan.plan, real.at, in_layout(out, layout, where), {threads});
  });
}

nb::object angle_gradient_of(const CompiledPlan& plan, nb::handle rotated, nb::handle gradient,
                             nb::handle angles, std::string_view layout) {
  constexpr const char* where = "angle_gradient";
  const Array from = array_of(rotated, where, "rotated", Access::read),
              by = array_of(gradient, where, "gradient", Access::read);
  nb::object made = empty_like(angles);
  const Array to = array_of(made, where, "out", Access::write);
  const Tensor x = in_layout(from.tensor, layout, where), g = in_layout(by.tensor, layout, where),
               out = in_layout(to.tensor, to.tensor.rank == from.tensor.rank ? layout : "", where);
  unlocked([&] { return angle_gradient(plan.plan, x, g, out); });
  return handed_back(std::move(made), angles);
}

template <VerbBy verb>
void bind_verb(nb::class_<CompiledPlan>& plan, const char* name, const char* doc) {
  plan.def(
      name,
      [name](const CompiledPlan& self, nb::handle x, nb::handle angles, std::string_view side,
             std::string_view layout, int threads) {
        return rotated_by_angles(verb, name, self, x, angles, side, layout, threads);
      },
      nb::arg("x"), nb::arg("angles"), nb::kw_only(), nb::arg("side") = "query",
      nb::arg("layout") = "", nb::arg("threads") = 0, doc);
}

}  // namespace

void bind_angles(nb::class_<CompiledPlan>& plan) {
  bind_verb<rotate_by>(plan, "rotate_by",
                       "x rotated by angles in radians, [batch, head, seq, pair] or its ends, "
                       "instead of positions.");
  plan.def("rotate_by_", &rotate_by_in_place, nb::arg("x"), nb::arg("angles"), nb::kw_only(),
           nb::arg("side") = "query", nb::arg("layout") = "", nb::arg("threads") = 0,
           "As rotate_by, in the array's own memory.");
  bind_verb<rotate_by_transpose>(
      plan, "rotate_by_transpose",
      "The gradient of rotate_by's x from the gradient of what it gave.");
  bind_verb<rotate_by_inverse>(plan, "rotate_by_inverse", "What rotate_by made of x, turned back.");
  plan.def(
      "vectors_at", &vectors_at, nb::arg("at"), nb::kw_only(), nb::arg("dtype").none() = nb::none(),
      nb::arg("threads") = 0,
      "What is added to tokens at real positions, [seq], [batch, seq] or with the axes in front "
      "where the plan has several: [batch, seq, width].");
  plan.def("add_at", &added_at, nb::arg("embedding"), nb::arg("at"), nb::kw_only(),
           nb::arg("threads") = 0, "add of tokens at real positions, as vectors_at takes them.");
  plan.def("angles_at", &angles_at, nb::arg("at"), nb::kw_only(),
           nb::arg("dtype").none() = nb::none(), nb::arg("threads") = 0,
           "The angles of tokens at real positions, of any sign: at [seq] or [batch, seq], with "
           "the axes in "
           "front where the plan has several.")
      .def("angle_gradient", &angle_gradient_of, nb::arg("rotated"), nb::arg("gradient"),
           nb::arg("angles"), nb::kw_only(), nb::arg("layout") = "",
           "The gradient by the angles of rotate_by, from what it gave and the gradient by that; "
           "shaped like the angles.");
}

}  // namespace posenc::python
