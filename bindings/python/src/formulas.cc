// The formulas of schemes.h and content.h that stand alone: slopes, buckets, FIRE's bias, KERPLE's
// own gradients.
#include <cstdint>
#include <string_view>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "errors.h"

namespace posenc::python {
namespace {

// The library's scheme of a type inside one of Python's values.
template <class Scheme, class List>
const Scheme& scheme_in(nb::handle given, const char* where) {
  const nb::object held = nb::getattr(given, "_value", given);
  const List* const list =
      nb::isinstance<Value>(held) ? std::get_if<List>(&nb::cast<const Value&>(held).held) : nullptr;
  const Scheme* const scheme = list ? std::get_if<Scheme>(list) : nullptr;
  if (!scheme)
    refuse(where, "scheme must be of the type " + std::string(Scheme::name),
           said(nb::borrow(given)));
  return *scheme;
}

nb::object slopes(std::int64_t heads, double max_bias, std::string_view rounding) {
  const bool coarse = rounding == "bfloat16";
  if (!coarse && rounding != "exact")
    refuse("alibi_slopes", "rounding must be exact or bfloat16", rounding);
  return numbers(unwrap(alibi_slopes(heads, max_bias,
                                     coarse ? SlopeRounding::bfloat16 : SlopeRounding::exact)),
                 {heads});
}

std::int64_t distance_of(nb::handle given) {
  std::int64_t distance = 0;
  if (!nb::try_cast(nb::int_(given), distance))
    refuse("buckets", "a distance must be an integer of 64 bits", said(nb::borrow(given)),
           "distances beyond the largest share its bucket");
  return distance;
}

// One of a number, and a list of a sequence.
template <class Bucket>
nb::object each_of(nb::handle relative, const Bucket& bucket) {
  if (PyLong_Check(relative.ptr())) return nb::cast(unwrap(bucket(distance_of(relative))));
  nb::list all;
  for (const nb::handle distance : relative)
    all.append(nb::cast(unwrap(bucket(distance_of(distance)))));
  return all;
}

nb::object bias_of_fire(nb::handle scheme, nb::handle queries, nb::handle keys, nb::handle dtype) {
  constexpr const char* where = "fire_bias";
  const Fire& fire = scheme_in<Fire, ContentScheme>(scheme, where);
  const Positions of_queries = counted(queries, where),
                  of_keys = keys.is_none() ? of_queries : counted(keys, where);
  return filled(queries, {std::ssize(fire.output_bias), of_queries.size(), of_keys.size()},
                dtype_name(dtype, name(DType::f32)), where,
                [&](const Tensor& out) { return fire_bias(fire, of_queries, of_keys, out); });
}

nb::tuple gradients_of_kerple(nb::handle scheme, nb::handle bias_gradient) {
  constexpr const char* where = "kerple_gradients";
  const Kerple& kerple = scheme_in<Kerple, Scheme>(scheme, where);
  const Array given = array_of(bias_gradient, where, "bias_gradient", Access::read);
  const KerpleGradients made = unwrap(kerple_gradients(kerple, given.tensor));
  return nb::make_tuple(numbers(made.p, {std::ssize(made.p)}),
                        numbers(made.a, {std::ssize(made.a)}));
}

}  // namespace

void bind_formulas(nb::module_& m) {
  m.def("alibi_slopes", &slopes, nb::arg("heads"), nb::arg("max_bias") = 8.0,
        nb::arg("rounding") = "exact",
        "ALiBi's slopes, [heads], positive; rounding \"bfloat16\" as Falcon keeps them.");
  m.def(
      "t5_bucket",
      [](nb::handle relative, std::int64_t buckets, std::int64_t furthest, bool bidirectional) {
        return each_of(relative, [=](std::int64_t distance) {
          return t5_bucket(distance, buckets, furthest, bidirectional);
        });
      },
      nb::arg("relative"), nb::arg("num_buckets") = 32, nb::arg("max_distance") = 128,
      nb::arg("bidirectional") = false,
      "T5's bucket of a relative position (key - query), or of each of a list.");
  m.def(
      "deberta_bucket",
      [](nb::handle relative, std::int64_t buckets, std::int64_t furthest) {
        return each_of(relative, [=](std::int64_t distance) {
          return deberta_bucket(distance, buckets, furthest);
        });
      },
      nb::arg("relative"), nb::arg("position_buckets"), nb::arg("max_position"),
      "DeBERTa's bucket of a relative position (query - key), before the shift by "
      "position_buckets; or of each of a list.");
  m.def("fire_bias", &bias_of_fire, nb::arg("scheme"), nb::arg("queries"),
        nb::arg("keys").none() = nb::none(), nb::kw_only(), nb::arg("dtype").none() = nb::none(),
        "What posenc.Fire adds to the logits, [heads, queries, keys]. A number of tokens counts "
        "from position 0.");
  m.def("kerple_gradients", &gradients_of_kerple, nb::arg("scheme"), nb::arg("bias_gradient"),
        "(by p, by a) of posenc.Kerple, from the gradient \"bias\" of attend_backward.");
}

}  // namespace posenc::python
