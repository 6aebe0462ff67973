// Emitted texts: their bits beside the CUDA backend's, their numbers beside the library's kernels,
// what is refused, and the text in C compiled and run.
#include "posenc/emit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "backends/cuda/turns.h"
#include "posenc/posenc.h"
#include "src/core/random.h"
#include "src/emit/computation.h"
#include "src/emit/evaluate.h"

namespace posenc {
namespace {

using emitting::Computation;
using emitting::computation_of;
using emitting::Constant;
using emitting::Memory;
using emitting::Rotation;
using emitting::Type;

constexpr std::int64_t head_dim = 32, heads = 4;

Plan of(const Scheme& scheme) {
  const auto plan = compile(
      scheme,
      {.width = 128, .heads = heads, .kv_heads = heads, .head_dim = head_dim, .length = 4096});
  EXPECT_TRUE(plan) << plan.error().message();
  return plan.value_or(Plan{});
}

struct Named {
  std::string name;
  Plan plan;
};

// Pairings, slices at either end, blocks, axes that pairs share or have alone, heads that differ,
// attention factors, speeds of either sign.
std::vector<Named> rotations() {
  std::vector<Named> all{
      {"halves", of(Rope{})},
      {"interleaved", of(Rope{.pairing = Pairing::interleaved})},
      {"partial", of(Rope{.partial_rotary_factor = 0.25})},
      {"yarn", of(Rope{.scaling = Yarn{.factor = 4, .original_max_position_embeddings = 1024}})},
      {"heads", of(Rope{.rotated_heads = 2})}};
  const auto add = [&](std::string name, Slice slice, Frequencies frequencies) {
    Plan plan = of(Rope{});
    plan.rotate->slice = slice;
    plan.rotate->frequencies = std::move(frequencies);
    all.push_back({std::move(name), std::move(plan)});
  };
  add("trailing", {.first_dim = 20, .rotary_dim = 12}, {.radians = {1, 0.5, 0.25, 1e-4, 7, -0.3}});
  add("blocks", {.first_dim = 4, .rotary_dim = 16, .blocks = 2},
      {.radians = {1, 0.5, 0.25, 0.1, 0.9, 0.4, 0.2, 0.05}});
  add("interleaved blocks", {.pairing = Pairing::interleaved, .rotary_dim = 16, .blocks = 4},
      {.radians = {1, 0.5, 0.25, 0.1, 0.9, 0.4, 0.2, 0.05}});
  add("M-RoPE", {.rotary_dim = 8},
      {.axes = 3, .radians = {1, 0, 0, 0, 0, 0.3, 0, 0, 0, 0, 0.1, 0.01}});
  add("mixed axes", {.pairing = Pairing::interleaved, .rotary_dim = 4},
      {.heads = heads,
       .axes = 2,
       .radians = {1, 0.2, 0.7, 0.1, -1, 0.5, 0.3, 3, 0.1, 0.9, 0.8, 0.4, 2, 1.5, 0.6, 0.05}});
  return all;
}

Rotation rotation_of(const Plan& plan) {
  const auto made = computation_of(plan, rooms::emit, {.head_dim = head_dim});
  EXPECT_TRUE(made) << made.error().message();
  return *made->rotation;
}

// A token of all heads, rotated by the statements.
std::vector<float> rotated(const Rotation& rotation, const std::vector<float>& x,
                           const std::vector<std::int64_t>& position) {
  Memory memory;
  memory.arrays["TURNS"] = rotation.turns;
  Constant low{.shape = {rotation.axes, 1}}, high = low;
  for (const std::int64_t p : position) {
    low.bits.push_back(static_cast<std::uint32_t>(p));
    high.bits.push_back(static_cast<std::uint32_t>(static_cast<std::uint64_t>(p) >> 32));
  }
  memory.arrays["low"] = low;
  memory.arrays["high"] = high;
  Constant values{.type = Type::f32, .shape = {1, heads, head_dim}};
  for (const float each : x) values.bits.push_back(std::bit_cast<std::uint32_t>(each));
  memory.arrays["x"] = std::move(values);
  memory.names["heads"] = heads;
  memory.names["token"] = 0;
  for (std::int64_t pair = 0; pair < rotation.pairs; ++pair) {
    memory.names["pair"] = static_cast<std::uint32_t>(pair);
    emitting::run(rotation.statements, memory);
  }
  std::vector<float> out;
  for (const std::uint32_t bits : memory.arrays["x"].bits)
    out.push_back(std::bit_cast<float>(bits));
  return out;
}

constexpr std::int64_t far[] = {0,
                                1,
                                -1,
                                2,
                                77,
                                4095,
                                -4096,
                                1'000'003,
                                std::int64_t{1} << 31,
                                -(std::int64_t{1} << 31),
                                (std::int64_t{1} << 31) - 1,
                                std::int64_t{1} << 32,
                                (std::int64_t{1} << 40) + 7,
                                -(std::int64_t{1} << 53) + 1};

TEST(Emit, RotatesAsTheLibraryDoes) {
  for (const Named& each : rotations()) {
    const Rotation rotation = rotation_of(each.plan);
    for (const std::int64_t p : far) {
      if (p < 0 || p > (std::int64_t{1} << 40)) continue;  // positions of the library's verbs
      std::vector<std::int64_t> position;
      for (std::int64_t axis = 0; axis < rotation.axes; ++axis) position.push_back(p / (axis + 1));
      std::vector<float> x(heads * head_dim);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
      const std::vector<float> found = rotated(rotation, x, position);
      const auto at = Positions::ids(position, rotation.axes);
      ASSERT_TRUE(at);
      const Tensor view = Tensor::dense(x.data(), {1, heads, 1, head_dim});
      const auto done = rotate(each.plan, view, *at, Side::query, view);
      ASSERT_TRUE(done) << done.error().message();
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(found[i], x[i], 4e-7) << each.name << " position " << p << " number " << i;
    }
  }
}

// Each pair by itself, as backends/cuda/rotate_kernel.h computes it.
TEST(Emit, HasTheBitsOfCuda) {
  for (const Named& each : rotations()) {
    const Rotation rotation = rotation_of(each.plan);
    const auto turns = rotation_turns(each.plan);
    ASSERT_TRUE(turns);
    for (const std::int64_t p : far) {
      std::vector<std::int64_t> position;
      for (std::int64_t axis = 0; axis < rotation.axes; ++axis) position.push_back(p - 5 * axis);
      std::vector<float> x(heads * head_dim);
      for (std::int64_t head = 0; head < heads; ++head)
        for (std::int64_t pair = 0; pair < rotation.pairs; ++pair)
          x[static_cast<std::size_t>(head * head_dim + rotation.first(pair))] = 1;
      const std::vector<float> found = rotated(rotation, x, position);
      for (std::int64_t head = 0; head < heads; ++head)
        for (std::int64_t pair = 0; pair < rotation.pairs; ++pair) {
          std::uint64_t phase = 0;
          for (std::int64_t axis = 0; axis < rotation.axes; ++axis) {
            const std::int64_t row = (rotation.heads == 1 ? 0 : head) * rotation.axes + axis;
            phase +=
                cuda::phase_of(position[static_cast<std::size_t>(axis)],
                               (*turns)[static_cast<std::size_t>(row * rotation.pairs + pair)]);
          }
          const cuda::CosSin<float> right = cuda::cos_sin<float>(phase);
          const auto channel = [&](std::int64_t c) {
            return found[static_cast<std::size_t>(head * head_dim + c)];
          };
          ASSERT_EQ(channel(rotation.first(pair)), right.cos * rotation.amplitude)
              << each.name << " position " << p << " pair " << pair;
          ASSERT_EQ(channel(rotation.second(pair)), right.sin * rotation.amplitude)
              << each.name << " position " << p << " pair " << pair;
        }
    }
  }
}

TEST(Emit, CosinesOfItsTestsAreNearTheExactOnes) {
  for (const Named& each : rotations()) {
    const Rotation rotation = rotation_of(each.plan);
    ASSERT_FALSE(rotation.checks.empty());
    for (const emitting::RotationCheck& check : rotation.checks) {
      EXPECT_NEAR(std::bit_cast<float>(check.cosine_bits), check.cosine, rotation.most_error());
      EXPECT_NEAR(std::bit_cast<float>(check.sine_bits), check.sine, rotation.most_error());
    }
  }
}

// --- texts ---------------------------------------------------------------------------------------

EmitOptions options(std::string title = "a test") {
  return {.head_dim = head_dim, .heads = heads, .title = std::move(title)};
}

std::vector<Named> biases() { return {{"alibi", of(Alibi{})}, {"t5", of(T5{})}}; }

TEST(Emit, EveryTargetSaysEveryRotationInLinesOf100Columns) {
  for (const EmitTarget& target : emit_targets())
    for (const Named& each : rotations()) {
      const auto text = emit(each.plan, target.name, options());
      if (target.name == "score_mod") {
        EXPECT_FALSE(text);
        continue;
      }
      ASSERT_TRUE(text) << target.name << " " << each.name << ": " << text.error().message();
      std::size_t begin = 0;
      while (begin < text->size()) {
        const std::size_t end = text->find('\n', begin);
        const std::string line = text->substr(begin, end - begin);
        if (!line.starts_with("// test: ")) {
          EXPECT_LE(line.size(), 125u) << line;
          EXPECT_FALSE(line.ends_with(' ')) << line;
        }
        begin = end + 1;
      }
    }
}

TEST(Emit, NamesWhatItIsAndWhatIsNotInIt) {
  Plan plan = of(Rope{});
  plan.logits.softcap = 30;
  EmitOptions asked = options("gemma");
  asked.source = "arXiv:2104.09864";
  for (const EmitTarget& target : emit_targets()) {
    if (target.name == "score_mod") continue;
    const auto text = emit(plan, target.name, asked);
    ASSERT_TRUE(text);
    for (const char* word : {"gemma", "arXiv:2104.09864", "softcap"})
      EXPECT_TRUE(text->contains(word)) << target.name << " " << word;
  }
}

TEST(Emit, BiasesAreTextsToo) {
  for (const EmitTarget& target : emit_targets())
    for (const Named& each : biases()) {
      const auto text = emit(each.plan, target.name, options());
      if (target.name == "pallas" && each.name == "t5") {
        ASSERT_FALSE(text);
        EXPECT_TRUE(text.error().message().contains("T5")) << text.error().message();
      } else {
        EXPECT_TRUE(text) << target.name << " " << each.name;
      }
    }
}

std::string refusal(const Plan& plan, std::string_view target, EmitOptions asked = options()) {
  const auto text = emit(plan, target, asked);
  return text ? "" : text.error().message();
}

TEST(Emit, RefusesByName) {
  EXPECT_TRUE(refusal(of(Rope{}), "metal").contains("one of triton"));
  EXPECT_TRUE(refusal(of(XPos{}), "c").contains("growth"));
  EXPECT_TRUE(refusal(of(Pope{}), "triton").contains("polar"));
  EXPECT_TRUE(refusal(of(Rope{}), "score_mod").contains("bias"));
  EXPECT_TRUE(refusal(of(Sinusoidal{}), "wgsl").contains("rotate or have a bias"));
  EXPECT_TRUE(refusal(Plan{}, "c").contains("nothing"));
  EXPECT_TRUE(refusal(of(Rope{}), "c", {.head_dim = 16}).contains("head_dim"));
  Plan engine = of(Rope{});
  engine.rotate->kind = HfFloat{};
  for (double& f : engine.rotate->frequencies.radians) f = static_cast<float>(f);
  EXPECT_TRUE(refusal(engine, "cuda").contains("engine"));
  Plan before = of(Alibi{});
  std::get<Slopes>(*before.bias).before_scale = true;
  EXPECT_TRUE(refusal(before, "score_mod").contains("scale"));
  EXPECT_EQ(refusal(before, "c"), "");
  Plan list{.bias = BiasTable{.rows = {.row = {0, 1}, .saturates = false},
                              .row_count = 2,
                              .values = Table::own({1, 2}, 1, 2)}};
  EXPECT_TRUE(refusal(list, "c").contains("beyond its list"));
  std::get<BiasTable>(*list.bias).rows = {.row = std::vector<std::int32_t>(20000, 0)};
  EXPECT_TRUE(refusal(list, "c").contains("at most 16384"));
}

TEST(Emit, TakesEveryBundledModelOrRefusesIt) {
  int taken = 0;
  for (const BundledModel& bundled : bundled_models()) {
    const std::string_view name = bundled.name;
    const auto model = read_model(std::string(name));
    ASSERT_TRUE(model) << name;
    for (const LayerGroup& group : model->groups) {
      const auto plan = compile(group);
      if (!plan) continue;
      for (const EmitTarget& target : emit_targets()) {
        const auto text =
            emit(*plan, target.name,
                 {.head_dim = group.geometry.head_dim, .heads = group.geometry.heads});
        if (text)
          ++taken;
        else
          EXPECT_FALSE(text.error().rule.empty()) << name << " " << target.name;
      }
    }
  }
  EXPECT_GT(taken, 100);
}

// As a person would: cc, and the program it makes.
TEST(Emit, TheTextInCPassesItsOwnTest) {
  if (std::system("cc --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no C compiler";
  std::vector<Named> all = rotations();
  std::ranges::copy(biases(), std::back_inserter(all));
  all.push_back({"both", of(Rope{})});
  all.back().plan.bias = of(Alibi{}).bias;
  const std::string at = testing::TempDir() + "posenc_emit";
  for (const Named& each : all) {
    const auto text = emit(each.plan, "c", options());
    ASSERT_TRUE(text) << each.name;
    std::ofstream(at + ".c") << *text;
    EXPECT_EQ(std::system(("cc -std=c99 -Wall -Wextra -Werror -D POSENC_TEST '" + at +
                           ".c' -lm -o '" + at + "' && '" + at + "' >/dev/null")
                              .c_str()),
              0)
        << each.name;
  }
}

}  // namespace
}  // namespace posenc
