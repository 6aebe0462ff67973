// Angles that content says against the authors' own modules (tests/peers/content_angles.py).
#include <algorithm>

#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

class AnglesOfPeers : public testing::TestWithParam<Case> {};

AngleForm form_of(const Json& record, std::int64_t head_dim) {
  const auto name = record.at("name").get<std::string>();
  if (name.starts_with("selective_rope")) {
    AngleForm form = selective_rope(head_dim).value();
    if (record.contains("gate")) form.gate = AngleGate::sigmoid;
    return form;
  }
  if (name.starts_with("mamba3"))
    return mamba3(head_dim, record.at("rope_fraction"),
                  record.at("interleaved") ? Pairing::interleaved : Pairing::halves)
        .value();
  if (name == "repo") return repo(head_dim).value();
  AngleForm form = grape_m(head_dim).value();
  form.plan.rotate->frequencies.radians = numbers<double>(record.at("frequencies"));
  form.plan.rotate->frequencies.heads =
      std::ssize(form.plan.rotate->frequencies.radians) / form.plan.rotate->pairs();
  for (double& frequency : form.plan.rotate->frequencies.radians) frequency = -frequency;
  return form;
}

TEST_P(AnglesOfPeers, RotateAsTheirs) {
  const Json& file = load("golden/content_angles.json");
  const Json& record = GetParam().record();
  const std::int64_t batch = file.at("batch"), heads = file.at("heads"), tokens = file.at("tokens"),
                     dim = file.at("head_dim");
  const AngleForm form = form_of(record, dim);
  const auto tensor = [&](std::vector<double>& x, std::int64_t of_heads, std::int64_t columns) {
    return Tensor::dense(x.data(), {batch, of_heads, tokens, columns});
  };
  std::vector<double> said = numbers<double>(record.at("said")), gate;
  SaidAngles in{.said = tensor(said, record.at("said_shape")[0], record.at("said_shape")[1])};
  if (record.contains("gate")) {
    gate = numbers<double>(record.at("gate"));
    in.gate = tensor(gate, record.at("gate_shape")[0], record.at("gate_shape")[1]);
  }
  const std::int64_t pairs = form.plan.rotate->pairs();
  std::vector<double> angles(static_cast<std::size_t>(batch * heads * tokens * pairs));
  const auto done = content_angles(form, in, tensor(angles, heads, pairs));
  ASSERT_TRUE(done) << done.error().message();
  for (const auto& [given, wanted, side] :
       {std::tuple{"q", "q_f32", Side::query}, {"k", "k_f32", Side::key}}) {
    std::vector<double> x = numbers<double>(record.at(given));
    ASSERT_TRUE(rotate_by(form.plan, tensor(x, heads, dim), tensor(angles, heads, pairs), side,
                          tensor(x, heads, dim)));
    // Theirs are computed in float, angles too.
    expect_close(x, numbers<double>(record.at(wanted)), 2e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Authors, AnglesOfPeers, testing::ValuesIn(cases("content_angles")),
                         [](const auto& each) { return test_name(each.param.name); });

}  // namespace
}  // namespace posenc::golden
