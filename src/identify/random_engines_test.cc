// Engines made up at random, each kind of dump by turns. POSENC_ENGINES=10000
// build/release/posenc_tests --gtest_filter=RandomEngines.* prints the table of docs/identify.md.
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>

#include "src/identify/shown_test.h"

namespace posenc {
namespace {

// What was said of an engine: all of it right; less than all, and that with a sentence of doubt;
// something wrong without one.
enum class Answer { right, doubted, wrong };

Answer answer(bool right, bool named, const std::vector<std::string>& cannot_tell) {
  if (right && named) return Answer::right;
  return right && !cannot_tell.empty() ? Answer::doubted : Answer::wrong;
}

class Engines {
 public:
  explicit Engines(unsigned seed) : generator_(seed) {}

  template <class First, class... Rest>
  First pick(First first, Rest... rest) {
    const std::vector<First> list{first, static_cast<First>(rest)...};
    return list[generator_() % list.size()];
  }

  Rope rope() {
    return {.rope_theta = pick(1e4, 5e5, 1e6, 150000.0, 2.5e5),
            .pairing = pick(Pairing::halves, Pairing::interleaved),
            .partial_rotary_factor = pick(1.0, 0.5, 0.25),
            .scaling = pick(Scaling(Unscaled{}), Scaling(Linear{.factor = 4}),
                            Scaling(Llama3{.factor = 8, .original_max_position_embeddings = 8192}),
                            Scaling(Yarn{.factor = 4, .original_max_position_embeddings = 32768}))};
  }
  Shown shown(bool repeated) {
    const auto tokens = pick(std::int64_t{8}, 16, 32, 64, 200, 512, generator_() % 16 ? 512 : 4096);
    const auto dim = tokens > 512 ? 32 : pick(std::int64_t{32}, 64);
    Shown made{.dtype = pick(DType::f32, DType::f16, DType::bf16),
               .heads = tokens > 512 ? 1 : pick(std::int64_t{1}, 2, 8),
               .tokens = tokens,
               .dim = dim};
    made.fill(static_cast<unsigned>(generator_()), repeated);
    return made;
  }
  // What kernels add beyond the rounding of what is shown.
  void add_noise(Shown& made) {
    const double share = pick(0.0, 0.0, 1e-5, 1e-3);
    if (share == 0) return;
    const std::vector<double> noise =
        random(made.heads * made.tokens * made.dim, static_cast<unsigned>(generator_()));
    for (std::int64_t i = 0; i < std::ssize(noise); ++i)
      made.after.set(i, made.after.get(i) + share * noise[static_cast<std::size_t>(i)]);
  }

 private:
  std::mt19937 generator_;
};

Answer of_rotation(const Identified& found, const Rope& rope, std::int64_t channels) {
  const bool right = found.verdict == Rotated::cannot_tell ||
                     (found.verdict == Rotated::rotation && found.pairing == rope.pairing);
  const bool named = found.verdict == Rotated::rotation && found.rotary_dim == channels &&
                     base_of(found) == rope.rope_theta &&
                     scaling_of(found) == info(rope.scaling).name && found.findings.empty();
  return answer(right && (named || !found.cannot_tell.empty()), named, found.cannot_tell);
}

Answer before_and_after(Engines& engines, bool repeated) {
  const Rope rope = engines.rope();
  Shown shown = engines.shown(repeated);
  shown.rotate_by(rope);
  engines.add_noise(shown);
  const auto channels =
      static_cast<std::int64_t>(static_cast<double>(shown.dim) * rope.partial_rotary_factor);
  return of_rotation(repeated ? shown.from_repeated() : shown.identified(), rope, channels);
}

// Frequencies that 16 bits rounded, and rotations that are done twice.
Answer rounded_or_twice(Engines& engines) {
  Rope rope = engines.rope();
  rope.partial_rotary_factor = 1;
  rope.scaling = Unscaled{};
  Shown shown = engines.shown(false);
  const bool twice = engines.pick(0, 1) == 1;
  if (twice) {
    shown.rotate_by(rope).rotate_again(rope);
  } else {
    auto plan = compile(Scheme(rope), {.head_dim = shown.dim});
    for (double& f : plan->rotate->frequencies.radians)
      f = bfloat16_to_float(float_to_bfloat16(static_cast<float>(f)));
    EXPECT_TRUE(
        rotate(*plan, shown.before, Positions::range(0, shown.tokens), Side::key, shown.after));
  }
  const Identified found = shown.identified();
  const bool told =
      twice ? !found.findings.empty() && found.findings[0].code == "rotated_twice"
            : found.findings.empty() && found.frequencies && found.frequencies->kept == DType::bf16;
  const bool named = told && base_of(found) == rope.rope_theta;
  // Coarse dumps do not tell rounded frequencies from others: the base is then right.
  const bool plain = !twice && base_of(found) == rope.rope_theta;
  return answer(named || plain || !found.cannot_tell.empty(), named || plain, found.cannot_tell);
}

Answer no_rotation_at_all(Engines& engines) {
  Shown shown = engines.shown(false);
  const double base = engines.pick(1e4, 5e5);
  const std::string kind = engines.pick(std::string("interleaved_table"), "halves_table",
                                        "head_index", "random", "mixed");
  const std::int64_t half = shown.dim / 2;
  const std::vector<double> numbers = random(shown.dim * shown.dim, 1);
  for (std::int64_t h = 0; h < shown.heads; ++h)
    for (std::int64_t t = 0; t < shown.tokens; ++t)
      for (std::int64_t c = 0; c < shown.dim; ++c) {
        const auto was = [&](std::int64_t channel) {
          return shown.before.get(shown.before.offset(h, t, channel));
        };
        double sum = 0;
        if (kind == "random" || kind == "mixed") {
          // Other numbers at every token, or every channel from all.
          for (std::int64_t d = 0; d < (kind == "mixed" ? shown.dim : 1); ++d)
            sum += numbers[static_cast<std::size_t>(c * shown.dim + (d + t) % shown.dim)] * was(d);
        } else {
          const bool by_head = kind == "head_index", halves = kind != "halves_table";
          const std::int64_t other = halves ? (c + half) % shown.dim : c ^ 1;
          const std::int64_t pair = kind == "interleaved_table" ? c / 2 : c % half;
          const double angle =
              static_cast<double>(by_head ? h : t) *
              std::pow(base, -static_cast<double>(pair) / static_cast<double>(half));
          sum = was(c) * std::cos(angle) + (c < other ? -1 : 1) * was(other) * std::sin(angle);
        }
        shown.after.set(shown.after.offset(h, t, c), sum);
      }
  const Identified found = shown.identified();
  if (found.verdict == Rotated::no_rotation)  // one head, whose index is 0
    return kind == "head_index" && shown.heads == 1 ? Answer::right : Answer::wrong;
  if (found.verdict == Rotated::rotation) return Answer::wrong;
  const std::string code = found.findings.empty() ? "" : found.findings[0].code;
  const bool unknown = kind == "random" || kind == "mixed";
  return answer(code.empty() || code == kind, unknown ? code.empty() : code == kind,
                found.cannot_tell);
}

Answer several_axes(Engines& engines) {
  const bool interleaved = engines.pick(0, 1) == 1;
  const std::int64_t rows = engines.pick(std::int64_t{4}, 8, 12),
                     columns = engines.pick(std::int64_t{4}, 10, 16);
  std::vector<std::int64_t> time, row, column;
  for (std::int64_t i = 0; i < 8; ++i) time.push_back(i), row.push_back(i), column.push_back(i);
  for (std::int64_t i = 0; i < rows * columns; ++i)
    time.push_back(8), row.push_back(8 + i / columns), column.push_back(8 + i % columns);
  const std::int64_t tokens = std::ssize(time);
  time.insert(time.end(), row.begin(), row.end());
  time.insert(time.end(), column.begin(), column.end());
  Shown shown{.dtype = engines.pick(DType::f32, DType::f16, DType::bf16),
              .heads = engines.pick(std::int64_t{1}, 2, 8),
              .tokens = tokens};
  shown.fill(static_cast<unsigned>(rows * 64 + columns + engines.pick(0, 100, 200)));
  const Rope rope{.rope_theta = engines.pick(1e4, 1e6),
                  .mrope_section = interleaved ? std::vector<std::int64_t>{12, 10, 10}
                                               : std::vector<std::int64_t>{8, 12, 12},
                  .mrope_interleaved = interleaved};
  const auto plan = compile(Scheme(rope), {.head_dim = shown.dim});
  const auto at = Positions::ids(time, 3);
  EXPECT_TRUE(plan && rotate(*plan, shown.before, *at, Side::key, shown.after));
  const Identified found =
      *identify({.after = shown.after, .before = shown.before, .positions = *at});
  if (found.verdict != Rotated::rotation) return Answer::wrong;
  for (const IdentifiedPair& pair : found.pairs)
    if (pair.axis >= 0 && pair.a < 32 && plan->rotate->at(0, pair.axis, pair.a) == 0)
      return Answer::wrong;
  const bool named =
      base_of(found) == rope.rope_theta && scaling_of(found) == "default" &&
      found.axis_layout == (interleaved ? AxisLayout::interleaved : AxisLayout::sections);
  return answer(named || !found.cannot_tell.empty(), named, found.cannot_tell);
}

Answer cosines_and_sines(Engines& engines) {
  const std::int64_t rows = engines.pick(std::int64_t{8}, 64, 512), pairs = engines.pick(16, 64);
  const DType dtype = engines.pick(DType::f32, DType::f16, DType::bf16);
  Rope rope = engines.rope();
  rope.partial_rotary_factor = 1;
  auto plan = compile(Scheme(rope), {.head_dim = 2 * pairs});
  const bool rounded = engines.pick(0, 0, 1) == 1;
  std::vector<double> memory[2];
  Tensor tables[2];
  for (int i = 0; i < 2; ++i) {
    memory[i].resize(static_cast<std::size_t>(rows * pairs));
    tables[i] = Tensor::dense(memory[i].data(), dtype, {rows, pairs});
    for (std::int64_t t = 0; t < rows; ++t)
      for (std::int64_t r = 0; r < pairs; ++r) {
        double f = plan->rotate->at(0, 0, r);
        if (rounded) f = bfloat16_to_float(float_to_bfloat16(static_cast<float>(f)));
        const double angle = static_cast<double>(t) * f;
        tables[i].set(t * pairs + r,
                      plan->rotate->amplitude * (i == 0 ? std::cos(angle) : std::sin(angle)));
      }
  }
  const auto found = identify_table(tables[0], tables[1]);
  if (!found || found->rotation.verdict != Rotated::rotation) return Answer::wrong;
  const Identified& told = found->rotation;
  const bool named = base_of(told) == rope.rope_theta &&
                     scaling_of(told) == info(rope.scaling).name &&
                     (rounded || told.frequencies->kept == DType::f64);
  return answer(named || !told.cannot_tell.empty(), named, told.cannot_tell);
}

Answer added_vectors(Engines& engines) {
  const std::int64_t rows = engines.pick(std::int64_t{8}, 64, 512),
                     width = engines.pick(16, 64, 128);
  const DType dtype = engines.pick(DType::f32, DType::f16, DType::bf16);
  const std::string kind =
      engines.pick(std::string("waves"), "waves", "learned", "smooth", "one_wave");
  const Sinusoidal scheme{.layout = engines.pick(WaveLayout::interleaved, WaveLayout::concatenated),
                          .spacing = engines.pick(WaveSpacing::width, WaveSpacing::ends),
                          .base = engines.pick(1e4, 1e3),
                          .row_offset = engines.pick(std::int64_t{0}, 2)};
  std::vector<double> memory(static_cast<std::size_t>(rows * width));
  const Tensor table = Tensor::dense(memory.data(), dtype, {rows, width});
  const std::vector<double> noise =
      random(rows * width, static_cast<unsigned>(engines.pick(1, 2, 3, 4, 5)));
  const auto plan = compile(Scheme(scheme), {.width = width});
  const Waves waves = std::get<Waves>(plan->add->kind);
  for (std::int64_t t = 0; t < rows; ++t)
    for (std::int64_t c = 0; c < width; ++c) {
      const bool neighbours = scheme.layout == WaveLayout::interleaved;
      const std::int64_t r = neighbours ? c / 2 : c % (width / 2);
      const bool sine = neighbours ? c % 2 == 0 : c < width / 2;
      const auto at = static_cast<double>(t + scheme.row_offset);
      const double angle = at * waves.frequency[static_cast<std::size_t>(r)];
      const auto random_number = noise[static_cast<std::size_t>(t * width + c)];
      double value = sine ? std::sin(angle) : std::cos(angle);
      if (kind == "learned") value = 0.02 * random_number;
      if (kind == "smooth")
        value =
            noise[static_cast<std::size_t>(c)] * at + noise[static_cast<std::size_t>(c + width)];
      if (kind == "one_wave") value = c % 2 == 0 ? std::sin(0.3 * at) : random_number;
      table.set(t * width + c, value);
    }
  const auto found = identify_vectors(table);
  if (!found) return Answer::wrong;
  if (kind != "waves") return found->sinusoidal ? Answer::wrong : Answer::right;
  if (!found->sinusoidal) return rows < 16 ? Answer::doubted : Answer::wrong;
  const bool named = found->layout == scheme.layout && found->spacing == scheme.spacing &&
                     found->base == scheme.base && found->offset == scheme.row_offset;
  return answer(named || !found->cannot_tell.empty(), named, found->cannot_tell);
}

TEST(RandomEngines, AreNeverNamedWrongWithConfidence) {
  const char* asked = std::getenv("POSENC_ENGINES");
  const int engines = asked ? std::atoi(asked) : 300;
  if (asked) alarm(0);  // thousands take longer than a test may
  struct Kind {
    const char* name;
    std::function<Answer(Engines&)> ask;
  };
  const Kind kinds[] = {
      {"before and after", [](Engines& e) { return before_and_after(e, false); }},
      {"keys of a repeated token", [](Engines& e) { return before_and_after(e, true); }},
      {"frequencies in bfloat16, rotated twice", rounded_or_twice},
      {"no rotation: tables mixed up, head's index, others", no_rotation_at_all},
      {"several axes", several_axes},
      {"tables of cosines and sines", cosines_and_sines},
      {"tables of vectors", added_vectors}};
  std::map<std::string, std::array<int, 3>> counts;
  int wrong = 0;
  for (int n = 0; n < engines; ++n) {
    const Kind& kind = kinds[static_cast<std::size_t>(n) % std::size(kinds)];
    Engines drawn(static_cast<unsigned>(n));
    const Answer said = kind.ask(drawn);
    ++counts[kind.name][static_cast<std::size_t>(said)];
    if (said != Answer::wrong) continue;
    ++wrong;
    std::printf("engine %d: %s\n", n, kind.name);
  }
  EXPECT_LE(wrong, engines / 1000);
  if (!asked) return;
  std::printf(
      "| dump | engines | all right | less, with a sentence of doubt | wrong "
      "|\n|---|---:|---:|---:|---:|\n");
  for (const Kind& kind : kinds) {
    const auto [right, doubted, bad] = counts[kind.name];
    std::printf("| %s | %d | %d | %d | %d |\n", kind.name, right + doubted + bad, right, doubted,
                bad);
  }
}

}  // namespace
}  // namespace posenc
