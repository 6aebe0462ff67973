// Attention with any plan and any scheme that reads the content, its truth in double, and its
// gradients.
#include "posenc/attention.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.h"
#include "attention_arguments.h"
#include "bindings.h"
#include "errors.h"
#include "posenc/content.h"
#include "posenc/gradients.h"

namespace posenc::python {
namespace {

// Null for None. Python's values hold the library's as `_value`.
const ContentScheme* content_of(nb::handle scheme) {
  if (scheme.is_none()) return nullptr;
  const nb::object held = nb::getattr(scheme, "_value", scheme);
  const auto* const content = nb::isinstance<Value>(held)
                                  ? std::get_if<ContentScheme>(&nb::cast<const Value&>(held).held)
                                  : nullptr;
  if (!content)
    refuse("attend", "scheme must be one that reads the content", said(nb::borrow(scheme)),
           "compile it to a plan: posenc.plan");
  return content;
}

// [batch, keys] of any array of integers; one row serves every sequence.
std::vector<std::int32_t> blocks_of(nb::handle given, std::int64_t batch, std::int64_t keys,
                                    const char* where) {
  const nb::object numpy = nb::module_::import_("numpy");
  const nb::object rows =
      numpy.attr("broadcast_to")(numpy.attr("atleast_2d")(given), nb::make_tuple(batch, keys));
  const nb::object clipped = numpy.attr("clip")(rows, -1, 0x7fffffff);
  const nb::object array = numpy.attr("ascontiguousarray")(clipped, nb::arg("dtype") = "int32");
  const auto seen = nb::cast<nb::ndarray<const std::int32_t, nb::c_contig>>(array);
  if (seen.ndim() != 2) refuse(where, "blocks must be [batch, keys]", "other axes");
  return {seen.data(), seen.data() + seen.size()};
}

}  // namespace

std::vector<std::int32_t> lists_of(nb::handle given, std::int64_t batch, std::int64_t queries,
                                   const char* where, Mask& mask) {
  const nb::object numpy = nb::module_::import_("numpy");
  const nb::object rows = numpy.attr("asarray")(given);
  const auto axes = nb::cast<std::int64_t>(rows.attr("ndim"));
  if (axes != 2 && axes != 3)
    refuse(where, "keys must be [batch, queries, count]", std::to_string(axes) + " axes");
  mask.key_count = nb::cast<std::int64_t>(rows.attr("shape")[nb::int_(-1)]);
  const nb::object all =
      numpy.attr("broadcast_to")(rows, nb::make_tuple(batch, queries, mask.key_count));
  const nb::object clipped = numpy.attr("clip")(all, -1, 0x7fffffff);
  const nb::object array = numpy.attr("ascontiguousarray")(clipped, nb::arg("dtype") = "int32");
  const auto seen = nb::cast<nb::ndarray<const std::int32_t, nb::c_contig>>(array);
  std::vector<std::int32_t> lists(seen.data(), seen.data() + seen.size());
  if (lists.empty()) lists.push_back(-1);  // a list of none has a place, too
  mask.keys = lists.data();
  return lists;
}

namespace {

// The arrays of a call, which live as long as it.
struct Call {
  Array q, k, v, sinks, keep, query_profiles, key_profiles;
  std::vector<std::uint8_t> kept;
  std::vector<std::int32_t> blocks, lists;
  AttentionInputs in;

  Call(const char* where, nb::handle q_array, nb::handle k_array, nb::handle v_array,
       nb::handle position_ids, nb::handle key_position_ids, const MaskWords& mask,
       nb::handle keep_array, nb::handle block_ids, nb::handle key_ids, nb::handle sink_logits,
       nb::handle profiles_of_queries, nb::handle profiles_of_keys, std::string_view layout,
       int threads)
      : q(array_of(q_array, where, "q", Access::read)),
        k(array_of(k_array, where, "k", Access::read)),
        v(array_of(v_array, where, "v", Access::read)),
        in{.q = in_layout(q.tensor, layout, where),
           .k = in_layout(k.tensor, layout, where),
           .v = in_layout(v.tensor, layout, where),
           .queries = Positions::range(0, 0),
           .keys = Positions::range(0, 0),
           .mask = mask.mask(),
           .threads = {threads}} {
    const std::int64_t queries = in.q.shape[2], keys = in.k.shape[2];
    // The last query stands at the last key, as while decoding.
    in.keys = positions_of(key_position_ids, keys, where);
    in.queries = position_ids.is_none() && key_position_ids.is_none() && queries != keys
                     ? Positions::range(keys > queries ? keys - queries : 0, queries)
                     : positions_of(position_ids.is_none() && queries == keys ? key_position_ids
                                                                              : position_ids,
                                    queries, where);
    if (key_position_ids.is_none() && !position_ids.is_none() && queries == keys)
      in.keys = in.queries;
    if (!sink_logits.is_none()) {
      sinks = array_of(sink_logits, where, "sink_logits", Access::read);
      in.sink_logits = sinks.tensor;
    }
    if (!profiles_of_queries.is_none()) {
      query_profiles = array_of(profiles_of_queries, where, "query_profiles", Access::read);
      in.profiles.query = in_layout(query_profiles.tensor, layout, where);
    }
    if (!profiles_of_keys.is_none()) {
      key_profiles = array_of(profiles_of_keys, where, "key_profiles", Access::read);
      in.profiles.key = in_layout(key_profiles.tensor, layout, where);
    }
    if (!keep_array.is_none()) {
      kept = bytes_of(keep_array, where);
      if (kept.size() != static_cast<std::size_t>(in.k.shape[0] * keys))
        refuse(where, "keep must be [batch, keys]", std::to_string(kept.size()) + " numbers");
      in.mask.keep = kept.data();
    }
    if (!block_ids.is_none()) {
      blocks = blocks_of(block_ids, in.k.shape[0], keys, where);
      in.mask.blocks = blocks.data();
    }
    if (!key_ids.is_none()) lists = lists_of(key_ids, in.q.shape[0], queries, where, in.mask);
  }
};

nb::object attend_arrays(nb::handle q, nb::handle k, nb::handle v, const CompiledPlan* plan,
                         nb::handle scheme, nb::handle position_ids, nb::handle key_position_ids,
                         bool causal, std::int64_t window, std::int64_t chunk, std::int64_t prefix,
                         nb::handle keep, nb::handle blocks, nb::handle keys,
                         nb::handle sink_logits, nb::handle query_profiles, nb::handle key_profiles,
                         nb::handle out, std::string_view layout, int threads, bool reference,
                         nb::handle logits, nb::handle weights, nb::handle remainder,
                         nb::handle log_sums, bool allow_bfloat16_products) {
  constexpr const char* where = "attend";
  Call call(where, q, k, v, position_ids, key_position_ids, {causal, window, chunk, prefix}, keep,
            blocks, keys, sink_logits, query_profiles, key_profiles, layout, threads);
  call.in.options.allow_bfloat16_products = allow_bfloat16_products;
  const std::int64_t value_dim = call.in.v.shape[3];
  nb::object made = !out.is_none() ? nb::borrow(out)
                    : value_dim == call.in.q.shape[3]
                        ? empty_like(q)
                        : new_array(q, in_order(call.in.q, value_dim, layout, call.q.tensor.rank),
                                    name(call.in.q.dtype));
  const Array to = array_of(made, where, "out", Access::write);
  const Tensor into = in_layout(to.tensor, layout, where);
  const ContentScheme* const content = content_of(scheme);
  const auto shown = [&](nb::handle array, const char* name, bool there, const char* whose) {
    if (array.is_none()) return Array{};
    if (!there) refuse(where, std::string(name) + " are shown by " + whose + " alone");
    return array_of(array, where, name, Access::write);
  };
  const Array logits_to = shown(logits, "logits", reference, "reference=True"),
              weights_to = shown(weights, "weights", content && reference,
                                 "a scheme that reads the content with reference=True"),
              remainder_to = shown(remainder, "remainders", content && !reference,
                                   "a scheme that reads the content without reference=True");
  const Array sums_to =
      shown(log_sums, "log_sums", !content && !reference, "a plan without reference=True");
  const Plan empty, &what = plan ? plan->plan : empty;
  unlocked([&] {
    if (content && reference)
      return attend_reference(call.in, *content, what, into, logits_to.tensor, weights_to.tensor);
    if (content) return attend(call.in, *content, what, into, remainder_to.tensor);
    if (reference) return attend_reference(call.in, what, into, logits_to.tensor);
    return attend(call.in, what, into, sums_to.tensor);
  });
  return out.is_none() ? handed_back(std::move(made), q) : made;
}

using Shape = std::vector<std::int64_t>;

Shape shape_of(const Tensor& tensor) {
  return {tensor.shape.begin(), tensor.shape.begin() + tensor.rank};
}

// A member of the gradients, and the shape of what it is the gradient of; none: there is no such
// part.
template <class Gradients>
struct Wanted {
  std::string_view name;
  Tensor Gradients::* member;
  Shape shape;
};

std::vector<Wanted<AttentionGradients>> wanted_of(const Plan& plan, const Call& call) {
  using G = AttentionGradients;
  std::vector<Wanted<G>> all;
  if (const Slopes* const slopes = plan.bias ? std::get_if<Slopes>(&*plan.bias) : nullptr)
    all.push_back({"slopes", &G::slopes, {static_cast<std::int64_t>(slopes->slope.size())}});
  if (const BiasTable* const table = plan.bias ? std::get_if<BiasTable>(&*plan.bias) : nullptr)
    all.push_back({"bias", &G::bias, shape_of(table->values.values)});
  if (plan.relative) {
    all.push_back({"relative_query", &G::relative_query, shape_of(plan.relative->query.values)});
    all.push_back({"relative_key", &G::relative_key, shape_of(plan.relative->key.values)});
    all.push_back({"relative_value", &G::relative_value, shape_of(plan.relative->value.values)});
  }
  if (plan.rotate) {
    const Rotate& rotation = *plan.rotate;
    const auto [heads, axes, radians] = rotation.frequencies;
    all.push_back({"rotation_frequency", &G::rotation_frequency, {heads, axes, rotation.pairs()}});
    if (const Phase* const phase = rotation.phase())
      all.push_back({"rotation_phase", &G::rotation_phase, {phase->heads, rotation.pairs()}});
    if (const Mix* const mix = std::get_if<Mix>(&rotation.kind)) {
      const Shape shape{mix->heads, mix->inputs, mix->outputs};
      all.push_back({"mix_cosine", &G::mix_cosine, shape});
      all.push_back({"mix_sine", &G::mix_sine, shape});
    }
  }
  const auto scales = static_cast<std::int64_t>(plan.logits.head_scale.size());
  if (plan.logits.temperature == Temperature::heads) {
    all.push_back({"head_scale", &G::head_scale, {scales}});
    all.push_back({"head_bias", &G::head_bias, {scales}});
  }
  if (call.in.sink_logits)
    all.push_back({"sink_logits", &G::sink_logits, shape_of(call.in.sink_logits)});
  return all;
}

// Those of profiles, in the shapes that they came in: where they are given they belong to tokens,
// as q does.
void want_profiles(const char* where, const Call& call, nb::handle q, std::string_view layout,
                   nb::dict& made, std::vector<Array>& arrays, AttentionGradients& wanted) {
  const std::tuple<const char*, const Array&, Tensor&> each[] = {
      {"query_profiles", call.query_profiles, wanted.profiles.query},
      {"key_profiles", call.key_profiles, wanted.profiles.key}};
  for (const auto& [name, given, to] : each) {
    if (!given.tensor) continue;
    made[name] = new_array(q, shape_of(given.tensor), posenc::name(given.tensor.dtype));
    arrays.push_back(array_of(made[name], where, name, Access::write));
    to = in_layout(arrays.back().tensor, layout, where);
  }
}

std::vector<Wanted<ContentGradients>> wanted_of(const ContentScheme& scheme, const Call& call) {
  std::vector<Wanted<ContentGradients>> all;
  for (auto& [name, shape] : learned(scheme))
    all.push_back({name, gradient_named(name), std::move(shape)});
  if (call.in.sink_logits)
    all.push_back({"sink_logits", &ContentGradients::sink_logits, shape_of(call.in.sink_logits)});
  return all;
}

nb::dict attend_backward_arrays(nb::handle q, nb::handle k, nb::handle v, nb::handle out_gradient,
                                const CompiledPlan* plan, nb::handle scheme,
                                const std::vector<std::string>& parameters, nb::handle position_ids,
                                nb::handle key_position_ids, bool causal, std::int64_t window,
                                std::int64_t chunk, std::int64_t prefix, nb::handle keep,
                                nb::handle blocks, nb::handle keys, nb::handle sink_logits,
                                nb::handle query_profiles, nb::handle key_profiles,
                                std::string_view layout, int threads, nb::handle remainder_gradient,
                                nb::handle log_sums, nb::handle dots) {
  constexpr const char* where = "attend_backward";
  const Call call(where, q, k, v, position_ids, key_position_ids, {causal, window, chunk, prefix},
                  keep, blocks, keys, sink_logits, query_profiles, key_profiles, layout, threads);
  const Array by = array_of(out_gradient, where, "out_gradient", Access::read);
  const Tensor gradient = in_layout(by.tensor, layout, where);
  const Plan empty, &what = plan ? plan->plan : empty;
  nb::dict made;
  std::vector<Array> arrays;
  // Those of the tokens always, those of parameters in float64 where they are named.
  const auto run = [&](auto wanted, auto learned, const auto& act) {
    using G = decltype(wanted);
    const std::pair<const char*, nb::handle> tokens[] = {{"q", q}, {"k", k}, {"v", v}};
    Tensor G::* const members[] = {&G::q, &G::k, &G::v};
    for (int i = 0; i < 3; ++i) {
      made[tokens[i].first] = empty_like(tokens[i].second);
      arrays.push_back(array_of(made[tokens[i].first], where, tokens[i].first, Access::write));
      wanted.*members[i] = in_layout(arrays.back().tensor, layout, where);
    }
    if constexpr (std::is_same_v<G, AttentionGradients>)
      want_profiles(where, call, q, layout, made, arrays, wanted);
    for (const std::string& parameter : parameters) {
      bool known = false;
      std::string all;
      for (const Wanted<G>& each : learned) {
        all += (all.empty() ? "" : ", ") + std::string(each.name);
        if (parameter != each.name) continue;
        known = true;
        const char* const key = parameter.c_str();
        made[key] = new_array(q, each.shape, name(DType::f64));
        arrays.push_back(array_of(made[key], where, key, Access::write));
        wanted.*each.member = arrays.back().tensor;
      }
      if (!known)
        refuse(where, "parameters must be learned ones of the plan or scheme", parameter,
               all.empty() ? "there is none" : "there is " + all);
    }
    unlocked([&] { return act(wanted); });
  };
  const ContentScheme* const content = content_of(scheme);
  Array by_remainder;
  if (!remainder_gradient.is_none()) {
    if (!content) refuse(where, "only a scheme that reads the content leaves a remainder");
    by_remainder = array_of(remainder_gradient, where, "remainder_gradient", Access::read);
  }
  if (log_sums.is_none() != dots.is_none() || (content && !log_sums.is_none()))
    refuse(where, "log_sums and dots come together, and with a plan alone");
  Array sums, products;
  if (!log_sums.is_none()) {
    sums = array_of(log_sums, where, "log_sums", Access::read);
    products = array_of(dots, where, "dots", Access::read);
  }
  if (content)
    run(ContentGradients{}, wanted_of(*content, call), [&](const ContentGradients& wanted) {
      return attend_backward(call.in, *content, what, gradient, wanted, by_remainder.tensor);
    });
  else
    run(AttentionGradients{}, wanted_of(what, call), [&](const AttentionGradients& wanted) {
      return attend_backward(call.in, what, gradient, wanted, {sums.tensor, products.tensor});
    });
  for (const auto& [name, like] : {std::pair{"q", q}, std::pair{"k", k}, std::pair{"v", v}})
    made[name] = handed_back(nb::borrow(made[name]), like);
  return made;
}

}  // namespace

std::vector<std::uint8_t> bytes_of(nb::handle given, std::string_view where) {
  nb::ndarray<nb::ro> array;
  nb::object seen = as_exported(given);
  if (!nb::try_cast(seen, array, false) || array.itemsize() != 1) {
    PyErr_Clear();
    throw nb::type_error(
        (std::string(where) + ": keep must be an array of bool or uint8 [batch, keys]").c_str());
  }
  std::vector<std::uint8_t> out;
  const auto* const data = static_cast<const std::uint8_t*>(array.data());
  const std::int64_t rows = array.ndim() > 1 ? array.shape_ptr()[0] : 1;
  const std::int64_t columns = array.ndim() > 0 ? array.shape_ptr()[array.ndim() - 1] : 1;
  const std::int64_t row = array.ndim() > 1 ? array.stride_ptr()[0] : 0;
  const std::int64_t column = array.ndim() > 0 ? array.stride_ptr()[array.ndim() - 1] : 0;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) out.push_back(data[r * row + c * column]);
  return out;
}

void bind_attention(nb::module_& m) {
  m.def("attend", &attend_arrays, nb::arg("q"), nb::arg("k"), nb::arg("v"),
        nb::arg("plan").none() = nb::none(), nb::kw_only(), nb::arg("scheme").none() = nb::none(),
        nb::arg("position_ids").none() = nb::none(),
        nb::arg("key_position_ids").none() = nb::none(), nb::arg("causal") = true,
        nb::arg("window") = 0, nb::arg("chunk") = 0, nb::arg("prefix") = 0,
        nb::arg("keep").none() = nb::none(), nb::arg("blocks").none() = nb::none(),
        nb::arg("keys").none() = nb::none(), nb::arg("sink_logits").none() = nb::none(),
        nb::arg("query_profiles").none() = nb::none(), nb::arg("key_profiles").none() = nb::none(),
        nb::arg("out").none() = nb::none(), nb::arg("layout") = "", nb::arg("threads") = 0,
        nb::arg("reference") = false, nb::arg("logits").none() = nb::none(),
        nb::arg("weights").none() = nb::none(), nb::arg("remainder").none() = nb::none(),
        nb::arg("log_sums").none() = nb::none(), nb::arg("allow_bfloat16_products") = true,
        "softmax(logits) v with all that a plan does about position, for q [batch, head, seq, "
        "head_dim] and k, v of as many heads or fewer, unrotated; fewer queries than keys are the "
        "last ones. scheme: one that reads the content. keep: false hides a key (padding). blocks: "
        "tokens of one block see each other both ways. keys [batch, seq of q, count]: ids of those "
        "that each query may see, as an indexer picks them, in any order; below 0: none. "
        "sink_logits: [heads], counted by the softmax without a value. query_profiles and "
        "key_profiles [batch, head, seq, u]: what the tables of a plan with profiles meet. logits: "
        "an array that "
        "receives them, of reference=True, the plain loops in double; weights the same of a scheme "
        "that reads the content. remainder: an array [batch, heads, queries] that receives what no "
        "key took, of stick-breaking. log_sums: an array [batch, heads, queries] of float32 or "
        "float64 "
        "that receives ln Σ e^logit, by which attention over parts of the keys is merged. "
        "allow_bfloat16_products: false multiplies bfloat16 tensors in float32 where the processor "
        "has products of bfloat16, which are faster and round weights once (docs/speed.md).");
  m.def(
      "attend_backward", &attend_backward_arrays, nb::arg("q"), nb::arg("k"), nb::arg("v"),
      nb::arg("out_gradient"), nb::arg("plan").none() = nb::none(), nb::kw_only(),
      nb::arg("scheme").none() = nb::none(), nb::arg("parameters") = std::vector<std::string>(),
      nb::arg("position_ids").none() = nb::none(), nb::arg("key_position_ids").none() = nb::none(),
      nb::arg("causal") = true, nb::arg("window") = 0, nb::arg("chunk") = 0, nb::arg("prefix") = 0,
      nb::arg("keep").none() = nb::none(), nb::arg("blocks").none() = nb::none(),
      nb::arg("keys").none() = nb::none(), nb::arg("sink_logits").none() = nb::none(),
      nb::arg("query_profiles").none() = nb::none(), nb::arg("key_profiles").none() = nb::none(),
      nb::arg("layout") = "", nb::arg("threads") = 0,
      nb::arg("remainder_gradient").none() = nb::none(), nb::arg("log_sums").none() = nb::none(),
      nb::arg("dots").none() = nb::none(),
      "The gradients of q, k and v, of profiles where they are given, and of the `parameters` "
      "named, as a dict, given that by the "
      "output. Keywords as attend had them. log_sums (as attend wrote them of all keys) and dots, "
      "Σ out · out_gradient [batch, heads, queries]: the part that these keys have in every "
      "gradient.");
}

}  // namespace posenc::python
