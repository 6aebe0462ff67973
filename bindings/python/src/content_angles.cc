// Angles that content says (angles.h): forms, what they make of tokens, and the gradients.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "errors.h"
#include "posenc/angles.h"
#include "state.h"

namespace posenc::python {
namespace {

constexpr std::string_view step_names[] = {"plain", "tanh", "softplus", "powers"},
                           gate_names[] = {"none", "sigmoid", "softplus"};

// Pickled as its plan, the places of its words in the lists, own_step, turning and sums.
nb::tuple state_of_form(const AngleForm& form) {
  return nb::make_tuple(state_of(form.plan), static_cast<int>(form.step),
                        static_cast<int>(form.gate), form.own_step, form.turning, form.sums);
}

void restore_form(AngleForm& form, const nb::tuple& state) {
  std::size_t step = 0, gate = 0;
  AngleForm made;
  if (nb::len(state) != 6 || !nb::try_cast(nb::object(state[1]), step) ||
      !nb::try_cast(nb::object(state[2]), gate) ||
      !nb::try_cast(nb::object(state[3]), made.own_step) ||
      !nb::try_cast(nb::object(state[4]), made.turning) ||
      !nb::try_cast(nb::object(state[5]), made.sums) || step >= std::size(step_names) ||
      gate >= std::size(gate_names) || made.turning < 0)
    refuse("AngleForm", "must be unpickled from what one was pickled as", said(state),
           "pickle it again");
  made.step = static_cast<AngleStep>(step);
  made.gate = static_cast<AngleGate>(gate);
  made.plan = plan_of_state(state[0]);
  new (&form) AngleForm(std::move(made));
}

AngleGate gate_of(std::string_view name) {
  const auto* const found = std::ranges::find(gate_names, name);
  if (found == std::end(gate_names))
    refuse("AngleForm.gate", "there is none, sigmoid and softplus", name);
  return static_cast<AngleGate>(found - gate_names);
}

// What a call says, [batch, head, seq, pair] and [batch, head, pair] or without the batch.
struct Said {
  Array said, gate, start;
  SaidAngles in;
  int rank;
  std::int64_t heads = 1;

  Said(const AngleForm& form, nb::handle x, nb::handle y, nb::handle begin, const char* where)
      : said(array_of(x, where, "said", Access::read)), rank(said.tensor.rank) {
    if (rank != 3 && rank != 4)
      refuse(where, "said must be [batch, head, seq, pair] or [head, seq, pair]",
             std::to_string(rank) + " axes");
    in.said = said.tensor.with_rank(4);
    heads = std::max(in.said.shape[1], form.plan.rotate ? form.plan.rotate->frequencies.heads : 1);
    if (!y.is_none()) {
      gate = array_of(y, where, "gate", Access::read);
      in.gate = gate.tensor.with_rank(4);
      heads = std::max(heads, in.gate.shape[1]);
    }
    if (!begin.is_none()) {
      start = array_of(begin, where, "start", Access::read);
      in.start = start.tensor.with_rank(3);
    }
  }
  // Of this shape, without the batch where said has none.
  nb::object made(nb::handle like, std::vector<std::int64_t> shape, std::string_view dtype) const {
    if (rank == 3) shape.erase(shape.begin());
    return new_array(like, shape, dtype);
  }
};

nb::tuple angles_said(const AngleForm& form, nb::handle said, nb::handle gate, nb::handle start,
                      nb::handle dtype) {
  constexpr const char* where = "AngleForm.angles";
  const Said given(form, said, gate, start, where);
  const std::int64_t batch = given.in.said.shape[0], seq = given.in.said.shape[2],
                     pairs = form.plan.rotate ? form.plan.rotate->pairs() : 0;
  const std::string type = dtype_name(dtype, name(DType::f64));
  nb::object angles = given.made(said, {batch, given.heads, seq, pairs}, type),
             next = given.made(said, {batch, given.heads, pairs}, name(DType::f64));
  const Array out = array_of(angles, where, "out", Access::write),
              behind = array_of(next, where, "next", Access::write);
  unlocked([&] {
    return content_angles(form, given.in, out.tensor.with_rank(4), behind.tensor.with_rank(3));
  });
  return nb::make_tuple(angles, next);
}

nb::dict gradients_said(const AngleForm& form, nb::handle gradient, nb::handle said,
                        nb::handle gate, nb::handle start) {
  constexpr const char* where = "AngleForm.gradient";
  const Said given(form, said, gate, start, where);
  const Array by = array_of(gradient, where, "gradient", Access::read);
  const std::int64_t heads = form.plan.rotate ? form.plan.rotate->frequencies.heads : 1,
                     pairs = form.plan.rotate ? form.plan.rotate->pairs() : 0;
  nb::dict all;
  all["said"] = empty_like(said);
  if (!gate.is_none()) all["gate"] = empty_like(gate);
  if (!start.is_none()) all["start"] = empty_like(start);
  all["frequency"] = new_array(said, {heads, pairs}, name(DType::f64));
  std::vector<Array> arrays;
  arrays.reserve(4);
  const auto written = [&](const char* what, int rank) {
    if (!all.contains(what)) return Tensor{};
    return arrays.emplace_back(array_of(all[what], where, what, Access::write))
        .tensor.with_rank(rank);
  };
  const SaidGradients to{.said = written("said", 4),
                         .gate = written("gate", 4),
                         .start = written("start", 3),
                         .frequency = written("frequency", 2)};
  unlocked([&] { return content_angles_gradient(form, given.in, by.tensor.with_rank(4), to); });
  return all;
}

Pairing pairing_of(std::string_view name) {
  if (name != "interleaved" && name != "halves")
    refuse("mamba3", "pairing must be interleaved or halves", name);
  return name == "halves" ? Pairing::halves : Pairing::interleaved;
}

}  // namespace

void bind_content_angles(nb::module_& m) {
  nb::class_<AngleForm>(m, "AngleForm",
                        "How what tokens say becomes angles for Plan.rotate_by: frequency · Σ "
                        "step(said) · gate(gate) over the tokens so far.")
      .def_prop_ro(
          "plan",
          [](const AngleForm& form) {
            return CompiledPlan{
                form.plan, {.head_dim = form.plan.rotate ? form.plan.rotate->slice.rotary_dim : 0}};
          },
          "The rotation for rotate_by, its frequencies radians per step.")
      .def_prop_ro(
          "step",
          [](const AngleForm& form) { return step_names[static_cast<std::size_t>(form.step)]; })
      .def_prop_rw(
          "gate",
          [](const AngleForm& form) { return gate_names[static_cast<std::size_t>(form.gate)]; },
          [](AngleForm& form, std::string_view gate) { form.gate = gate_of(gate); },
          "none, sigmoid or softplus")
      .def_ro("own_step", &AngleForm::own_step, "whether a token's own step is in its angle")
      .def_ro("sums", &AngleForm::sums,
              "whether steps are added up; else a token says where it stands")
      .def("__copy__", [](const AngleForm& form) { return form; })
      .def(
          "__deepcopy__", [](const AngleForm& form, nb::handle) { return form; }, nb::arg("memo"))
      .def("__getstate__", &state_of_form)
      .def("__setstate__", &restore_form)
      .def("angles", &angles_said, nb::arg("said"), nb::kw_only(),
           nb::arg("gate").none() = nb::none(), nb::arg("start").none() = nb::none(),
           nb::arg("dtype").none() = nb::none(),
           "(angles, next) of what tokens say, [batch, head or 1, seq, pair or 1] or without the "
           "batch; next is the start of the tokens that follow.")
      .def("gradient", &gradients_said, nb::arg("gradient"), nb::arg("said"), nb::kw_only(),
           nb::arg("gate").none() = nb::none(), nb::arg("start").none() = nb::none(),
           "The gradients by said, gate, start and frequency, given that by the angles: the sum of "
           "Plan.angle_gradient's of queries and of keys.");
  m.def(
      "selective_rope",
      [](std::int64_t head_dim, double theta, double maximum) {
        return unwrap(selective_rope(head_dim, theta, maximum));
      },
      nb::arg("head_dim"), nb::kw_only(), nb::arg("theta") = 500000, nb::arg("maximum") = 1,
      "Selective RoPE (2511.17388), as an AngleForm.");
  m.def(
      "carope", [](std::int64_t head_dim) { return unwrap(carope(head_dim)); }, nb::arg("head_dim"),
      "CARoPE (2507.23083), as an AngleForm.");
  m.def(
      "mamba3",
      [](std::int64_t head_dim, double part, std::string_view pairing) {
        return unwrap(mamba3(head_dim, part, pairing_of(pairing)));
      },
      nb::arg("head_dim"), nb::kw_only(), nb::arg("part") = 0.5, nb::arg("pairing") = "interleaved",
      "Mamba-3's angles (2603.15569), as an AngleForm.");
  m.def(
      "grape_m",
      [](std::int64_t head_dim, double theta) { return unwrap(grape_m(head_dim, theta)); },
      nb::arg("head_dim"), nb::kw_only(), nb::arg("theta") = 10000,
      "Contextual GRAPE-M (2512.07805), as an AngleForm.");
  m.def(
      "repo", [](std::int64_t head_dim, double theta) { return unwrap(repo(head_dim, theta)); },
      nb::arg("head_dim"), nb::kw_only(), nb::arg("theta") = 500000,
      "RePo (2512.14391): what a head says of a token is its position, as an AngleForm.");
}

}  // namespace posenc::python
