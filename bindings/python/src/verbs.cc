// What a plan does to arrays: rotate and its kin, add, bias.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "errors.h"
#include "posenc/apply.h"
#include "posenc/gradients.h"

namespace posenc::python {
namespace {

// --- rotating ------------------------------------------------------------------------------------

using Verb = Expected<void> (*)(const Plan&, const Tensor&, const Positions&, Side, const Tensor&,
                                Threads);

// An array for what is made of x: like x, and wider where the plan's rotation is polar.
nb::object rotated_like(const CompiledPlan& plan, nb::handle x, const Tensor& given,
                        std::string_view layout) {
  if (!plan.plan.rotate || plan.plan.rotate->widening() == 0 || given.rank == 0)
    return empty_like(x);
  std::vector<std::int64_t> shape(given.shape.begin(), given.shape.begin() + given.rank);
  const std::size_t channels = layout.find('d');
  shape.at(channels < shape.size() ? channels : shape.size() - 1) += plan.plan.rotate->widening();
  return new_array(x, shape, name(given.dtype));
}

nb::object rotated_by(Verb verb, const char* where, const CompiledPlan& plan, nb::handle x,
                      nb::handle position_ids, std::string_view side, std::string_view layout,
                      int threads) {
  const Array from = array_of(x, where, "x", Access::read);
  nb::object made = rotated_like(plan, x, from.tensor, layout);
  const Array to = array_of(made, where, "out", Access::write);
  const Tensor in = in_layout(from.tensor, layout, where),
               out = in_layout(to.tensor, layout, where);
  const Positions positions = positions_of(position_ids, in.shape[2], where);
  const Side whose = side_of(side);
  unlocked([&] { return verb(plan.plan, in, positions, whose, out, {threads}); });
  return handed_back(std::move(made), x);
}

void rotate_in_place(Verb verb, const char* where, const CompiledPlan& plan, nb::handle x,
                     nb::handle position_ids, std::string_view side, std::string_view layout,
                     int threads) {
  const Array array = array_of(x, where, "x", Access::write);
  const Tensor view = in_layout(array.tensor, layout, where);
  const Positions positions = positions_of(position_ids, view.shape[2], where);
  const Side whose = side_of(side);
  unlocked([&] { return verb(plan.plan, view, positions, whose, view, {threads}); });
}

constexpr Verb forward = [](const Plan& plan, const Tensor& x, const Positions& positions,
                            Side side, const Tensor& out, Threads threads) {
  return rotate(plan, x, positions, side, out, threads);
};

// Ids in the place of keys: they come by their name.
void must_be_keys(nb::handle k, const char* where) {
  const auto words = said(nb::getattr(k, "dtype", nb::str("")));
  const bool ids = PyLong_Check(k.ptr()) || PyList_Check(k.ptr()) || PyTuple_Check(k.ptr()) ||
                   PyRange_Check(k.ptr()) || nb::isinstance<Positions>(k) ||
                   words.find("int") != std::string::npos;
  if (ids)
    refuse(where, "k must be keys, an array like q", said(nb::borrow(k.type()).attr("__name__")),
           "pass ids as position_ids=");
}

nb::object rotate_arrays(nb::handle self, nb::handle q, nb::handle k, nb::handle position_ids,
                         std::string_view side, std::string_view layout, int threads) {
  constexpr const char* where = "rotate";
  must_be_keys(k, where);
  if (is_recorded(q) || (!k.is_none() && is_recorded(k))) {
    const nb::object recorded = nb::module_::import_("posenc.torch").attr("rotate");
    const auto one = [&](nb::handle x) {
      return recorded(self, x, position_ids, nb::arg("layout") = layout);
    };
    return k.is_none() ? one(q) : nb::object(nb::make_tuple(one(q), one(k)));
  }
  const auto& plan = nb::cast<const CompiledPlan&>(self);
  if (k.is_none()) return rotated_by(forward, where, plan, q, position_ids, side, layout, threads);
  const Array q_from = array_of(q, where, "q", Access::read),
              k_from = array_of(k, where, "k", Access::read);
  nb::object q_made = rotated_like(plan, q, q_from.tensor, layout),
             k_made = rotated_like(plan, k, k_from.tensor, layout);
  const Array q_to = array_of(q_made, where, "out", Access::write);
  const Array k_to = array_of(k_made, where, "out", Access::write);
  const Tensor q_in = in_layout(q_from.tensor, layout, where),
               k_in = in_layout(k_from.tensor, layout, where);
  const Tensor q_out = in_layout(q_to.tensor, layout, where),
               k_out = in_layout(k_to.tensor, layout, where);
  const Positions positions = positions_of(position_ids, q_in.shape[2], where);
  unlocked([&] { return rotate(plan.plan, q_in, k_in, positions, q_out, k_out, {threads}); });
  return nb::make_tuple(handed_back(std::move(q_made), q), handed_back(std::move(k_made), k));
}

void rotate_arrays_in_place(const CompiledPlan& plan, nb::handle q, nb::handle k,
                            nb::handle position_ids, std::string_view side, std::string_view layout,
                            int threads) {
  constexpr const char* where = "rotate_";
  must_be_keys(k, where);
  if (k.is_none())
    return rotate_in_place(forward, where, plan, q, position_ids, side, layout, threads);
  const Array q_array = array_of(q, where, "q", Access::write),
              k_array = array_of(k, where, "k", Access::write);
  const Tensor q_view = in_layout(q_array.tensor, layout, where),
               k_view = in_layout(k_array.tensor, layout, where);
  const Positions positions = positions_of(position_ids, q_view.shape[2], where);
  unlocked([&] { return rotate(plan.plan, q_view, k_view, positions, q_view, k_view, {threads}); });
}

// What results of positions alone look like: [batch, seq] in front where ids had a batch, [seq]
// where not.
struct Shaped {
  Positions positions;
  std::vector<std::int64_t> shape;
};

Shaped shaped(nb::handle position_ids, std::int64_t seq, const char* where) {
  if ((position_ids.is_none() || PyLong_Check(position_ids.ptr())) && seq <= 0)
    refuse(where, "seq must say how many tokens there are where position_ids do not",
           std::to_string(seq));
  Positions positions = positions_of(position_ids, seq, where);
  const nb::object rank = nb::getattr(position_ids, "ndim", nb::int_(1));
  const bool batched = positions.batch() > 1 || nb::cast<int>(rank) > 1;
  std::vector<std::int64_t> shape;
  if (batched)
    shape.push_back(nb::cast<int>(rank) > 1 ? nb::cast<std::int64_t>(position_ids.attr(
                                                  "shape")[nb::cast<int>(rank) - 2])
                                            : positions.batch());
  shape.push_back(positions.size());
  return {std::move(positions), std::move(shape)};
}

// What rotating (1, 0) gives, so that no angle is formed anywhere else.
nb::tuple cos_sin(const CompiledPlan& plan, nb::handle position_ids, std::int64_t seq,
                  nb::handle dtype, bool halves, std::string_view side, int threads) {
  constexpr const char* where = "cos_sin";
  Plan units;
  units.rotate = rotation(plan, where);
  Rotate& rotate_part = *units.rotate;
  const std::int64_t pairs = rotate_part.pairs(), channels = halves ? pairs : 2 * pairs;
  const bool neighbours = rotate_part.slice.pairing == Pairing::interleaved && !halves;
  rotate_part.slice.pairing = Pairing::halves;
  rotate_part.slice.first_dim = 0;
  rotate_part.slice.blocks = 1;
  auto [positions, shape] = shaped(position_ids, seq, where);
  std::string layout = shape.size() == 2 ? "bsd" : "sd";
  if (rotate_part.frequencies.heads > 1) {
    shape.insert(shape.end() - 1, rotate_part.frequencies.heads);
    layout.insert(layout.size() - 2, "h");
  }
  shape.push_back(channels);
  const std::string of = dtype_name(dtype, name(DType::f32));
  const nb::object cos = new_array(position_ids, shape, of),
                   sin = new_array(position_ids, shape, of);
  const Array cos_array = array_of(cos, where, "cos", Access::write);
  const Array sin_array = array_of(sin, where, "sin", Access::write);
  const Tensor c = in_layout(cos_array.tensor, layout, where),
               s = in_layout(sin_array.tensor, layout, where);
  std::vector<double> memory(
      static_cast<std::size_t>(c.shape[0] * c.shape[1] * c.shape[2] * 2 * pairs));
  const Tensor made = Tensor::dense(memory.data(), {c.shape[0], c.shape[1], c.shape[2], 2 * pairs});
  for (std::size_t row = 0; row < memory.size(); row += 2 * static_cast<std::size_t>(pairs))
    std::fill_n(memory.data() + row, pairs, 1.0);
  const Side whose = side_of(side);
  const Positions& of_tokens = positions;
  unlocked([&]() -> Expected<void> {
    if (const auto done = rotate(units, made, of_tokens, whose, made, {threads}); !done)
      return done;
    for (std::int64_t b = 0; b < c.shape[0]; ++b)
      for (std::int64_t h = 0; h < c.shape[1]; ++h)
        for (std::int64_t t = 0; t < c.shape[2]; ++t)
          for (std::int64_t i = 0; i < c.shape[3]; ++i) {
            const std::int64_t at = made.offset(b, h, t, neighbours ? i / 2 : i % pairs);
            c.set(c.offset(b, h, t, i), made.get(at));
            s.set(s.offset(b, h, t, i), made.get(at + pairs));
          }
    return {};
  });
  return nb::make_tuple(cos, sin);
}

nb::object angles(const CompiledPlan& plan, nb::handle position_ids, std::int64_t seq,
                  nb::handle dtype, int threads) {
  constexpr const char* where = "angles";
  const Rotate& rotate_part = rotation(plan, where);
  auto [positions, shape] = shaped(position_ids, seq, where);
  std::string layout = shape.size() == 2 ? "bsd" : "sd";
  if (rotate_part.frequencies.heads > 1) {
    shape.insert(shape.end() - 1, rotate_part.frequencies.heads);
    layout.insert(layout.size() - 2, "h");
  }
  shape.push_back(rotate_part.pairs());
  const Positions& of_tokens = positions;
  return filled(
      position_ids, shape, dtype_name(dtype, name(DType::f64)), where, [&](const Tensor& out) {
        return rotation_angles(plan.plan, of_tokens, in_layout(out, layout, where), {threads});
      });
}

// --- added to the embedding, and to the logits ---------------------------------------------------

nb::object added(const CompiledPlan& plan, nb::handle embedding, nb::handle position_ids,
                 int threads) {
  constexpr const char* where = "add";
  const Array from = array_of(embedding, where, "embedding", Access::read);
  nb::object made = empty_like(embedding);
  const Array to = array_of(made, where, "out", Access::write);
  const Tensor in = from.tensor.with_rank(3), out = to.tensor.with_rank(3);
  const Positions positions = positions_of(position_ids, in.shape[1], where);
  unlocked([&] { return add(plan.plan, in, positions, out, {threads}); });
  return handed_back(std::move(made), embedding);
}

void add_in_place(const CompiledPlan& plan, nb::handle embedding, nb::handle position_ids,
                  int threads) {
  constexpr const char* where = "add_";
  const Array array = array_of(embedding, where, "embedding", Access::write);
  const Tensor view = array.tensor.with_rank(3);
  const Positions positions = positions_of(position_ids, view.shape[1], where);
  unlocked([&] { return add(plan.plan, view, positions, view, {threads}); });
}

nb::tuple add_gradients(const CompiledPlan& plan, nb::handle out_gradient,
                        nb::handle position_ids) {
  constexpr const char* where = "add_backward";
  const Array by = array_of(out_gradient, where, "out_gradient", Access::read);
  const Tensor gradient = by.tensor.with_rank(3);
  nb::object of_embedding = empty_like(out_gradient), of_table = nb::none();
  const Array embedding = array_of(of_embedding, where, "out", Access::write);
  Array table;
  const Add* const add = plan.plan.add ? &*plan.plan.add : nullptr;
  if (const Rows* const rows = add ? std::get_if<Rows>(&add->kind) : nullptr) {
    of_table = new_array(out_gradient, {rows->rows, rows->width}, name(DType::f64));
    table = array_of(of_table, where, "out", Access::write);
  }
  const Positions positions = positions_of(position_ids, gradient.shape[1], where);
  unlocked([&] {
    return add_backward(plan.plan, positions, gradient, embedding.tensor.with_rank(3),
                        table.tensor);
  });
  return nb::make_tuple(handed_back(std::move(of_embedding), out_gradient), of_table);
}

nb::object vectors(const CompiledPlan& plan, nb::handle position_ids, std::int64_t seq,
                   nb::handle dtype, int threads) {
  constexpr const char* where = "position_vectors";
  const std::int64_t width =
      !plan.plan.add ? 0
                     : std::visit([](const auto& kind) { return kind.width; }, plan.plan.add->kind);
  auto [positions, shape] = shaped(position_ids, seq, where);
  shape.push_back(width);
  const Positions& of_tokens = positions;
  return filled(position_ids, shape, dtype_name(dtype, name(DType::f32)), where,
                [&](const Tensor& out) {
                  return position_vectors(plan.plan, of_tokens, out.with_rank(3), {threads});
                });
}

nb::object bias_of(const CompiledPlan& plan, nb::handle queries, nb::handle keys,
                   std::int64_t heads, nb::handle dtype, int threads) {
  constexpr const char* where = "bias";
  const Positions of_queries = counted(queries, where),
                  of_keys = keys.is_none() ? of_queries : counted(keys, where);
  return filled(
      queries, {heads > 0 ? heads : plan.geometry.heads, of_queries.size(), of_keys.size()},
      dtype_name(dtype, name(DType::f32)), where,
      [&](const Tensor& out) { return bias(plan.plan, of_queries, of_keys, out, {threads}); });
}

nb::object frequency_gradient(const CompiledPlan& plan, nb::handle rotated, nb::handle gradient,
                              nb::handle position_ids, std::string_view layout) {
  constexpr const char* where = "frequency_gradient";
  const Rotate& rotate_part = rotation(plan, where);
  const Array x = array_of(rotated, where, "rotated", Access::read);
  const Array g = array_of(gradient, where, "gradient", Access::read);
  const Tensor of = in_layout(x.tensor, layout, where), by = in_layout(g.tensor, layout, where);
  const Positions positions = positions_of(position_ids, of.shape[2], where);
  return filled(rotated,
                {rotate_part.frequencies.heads, rotate_part.frequencies.axes, rotate_part.pairs()},
                name(DType::f64), where, [&](const Tensor& out) {
                  return rotate_frequency_gradient(plan.plan, of, by, positions, out);
                });
}

}  // namespace

void bind_verbs(nb::class_<CompiledPlan>& type) {
  type.def("rotate", &rotate_arrays, nb::arg("q"), nb::arg("k").none() = nb::none(),
           nb::arg("position_ids").none() = nb::none(), nb::kw_only(), nb::arg("side") = "query",
           nb::arg("layout") = "", nb::arg("threads") = 0,
           "Queries, or queries and keys, rotated by the positions of their tokens: new arrays "
           "like q and k, which are [batch, head, seq, head_dim] or as layout names their axes. "
           "position_ids: None (from 0), a number, a range, ids, or Positions. side: of q where k "
           "is not given.")
      .def("rotate_", &rotate_arrays_in_place, nb::arg("q"), nb::arg("k").none() = nb::none(),
           nb::arg("position_ids").none() = nb::none(), nb::kw_only(), nb::arg("side") = "query",
           nb::arg("layout") = "", nb::arg("threads") = 0, "As rotate, in the arrays' own memory.")
      .def(
          "rotate_inverse",
          [](const CompiledPlan& plan, nb::handle x, nb::handle ids, std::string_view side,
             std::string_view layout, int threads) {
            return rotated_by(rotate_inverse, "rotate_inverse", plan, x, ids, side, layout,
                              threads);
          },
          nb::arg("x"), nb::arg("position_ids").none() = nb::none(), nb::kw_only(),
          nb::arg("side") = "query", nb::arg("layout") = "", nb::arg("threads") = 0,
          "The rotation undone, and its factor with it.")
      .def(
          "rotate_transpose",
          [](const CompiledPlan& plan, nb::handle x, nb::handle ids, std::string_view side,
             std::string_view layout, int threads) {
            return rotated_by(rotate_transpose, "rotate_transpose", plan, x, ids, side, layout,
                              threads);
          },
          nb::arg("x"), nb::arg("position_ids").none() = nb::none(), nb::kw_only(),
          nb::arg("side") = "query", nb::arg("layout") = "", nb::arg("threads") = 0,
          "What gradients go through: the rotation backwards, times the same factor.")
      .def(
          "rotate_inverse_",
          [](const CompiledPlan& plan, nb::handle x, nb::handle ids, std::string_view side,
             std::string_view layout, int threads) {
            rotate_in_place(rotate_inverse, "rotate_inverse_", plan, x, ids, side, layout, threads);
          },
          nb::arg("x"), nb::arg("position_ids").none() = nb::none(), nb::kw_only(),
          nb::arg("side") = "query", nb::arg("layout") = "", nb::arg("threads") = 0,
          "As rotate_inverse, in the array's own memory.")
      .def(
          "rotate_transpose_",
          [](const CompiledPlan& plan, nb::handle x, nb::handle ids, std::string_view side,
             std::string_view layout, int threads) {
            rotate_in_place(rotate_transpose, "rotate_transpose_", plan, x, ids, side, layout,
                            threads);
          },
          nb::arg("x"), nb::arg("position_ids").none() = nb::none(), nb::kw_only(),
          nb::arg("side") = "query", nb::arg("layout") = "", nb::arg("threads") = 0,
          "As rotate_transpose, in the array's own memory.")
      .def("cos_sin", &cos_sin, nb::arg("position_ids").none() = nb::none(), nb::kw_only(),
           nb::arg("seq") = 0, nb::arg("dtype").none() = nb::none(), nb::arg("halves") = false,
           nb::arg("side") = "query", nb::arg("threads") = 0,
           "(cos, sin) [batch, seq, rotary_dim] as Hugging Face's rotary modules give them, times "
           "the attention factor: "
           "each pair's number twice, where its two channels are. With halves=True once, [batch, "
           "seq, pairs].")
      .def("angles", &angles, nb::arg("position_ids").none() = nb::none(), nb::kw_only(),
           nb::arg("seq") = 0, nb::arg("dtype").none() = nb::none(), nb::arg("threads") = 0,
           "The angles in radians, [batch, seq, pairs] in float64, each rounded once.")
      .def("add", &added, nb::arg("embedding"), nb::arg("position_ids").none() = nb::none(),
           nb::kw_only(), nb::arg("threads") = 0,
           "Embeddings [batch, seq, width] times the plan's scale with what it adds at their "
           "positions.")
      .def("add_", &add_in_place, nb::arg("embedding"), nb::arg("position_ids").none() = nb::none(),
           nb::kw_only(), nb::arg("threads") = 0, "As add, in the array's own memory.")
      .def("add_backward", &add_gradients, nb::arg("out_gradient"),
           nb::arg("position_ids").none() = nb::none(),
           "(gradient by the embedding, gradient by the learned table [rows, width] or None) of "
           "add, from the gradient by what it gave.")
      .def("position_vectors", &vectors, nb::arg("position_ids").none() = nb::none(), nb::kw_only(),
           nb::arg("seq") = 0, nb::arg("dtype").none() = nb::none(), nb::arg("threads") = 0,
           "What is added to the embedding, without the embedding scale: [batch, seq, width].")
      .def("bias", &bias_of, nb::arg("queries"), nb::arg("keys").none() = nb::none(), nb::kw_only(),
           nb::arg("heads") = 0, nb::arg("dtype").none() = nb::none(), nb::arg("threads") = 0,
           "What is added to the logits by distance: [head, query, key]. A number of tokens counts "
           "from position 0.")
      .def("frequency_gradient", &frequency_gradient, nb::arg("rotated"), nb::arg("gradient"),
           nb::arg("position_ids").none() = nb::none(), nb::kw_only(), nb::arg("layout") = "",
           "The gradient by the frequencies [heads, axes, pairs] of one call of rotate, from what "
           "it gave and the gradient by that.");
}

}  // namespace posenc::python
