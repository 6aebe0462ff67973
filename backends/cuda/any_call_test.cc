// Calls drawn at random, every kind of argument beside every other, over the emulated grid beside
// the host in double: types, shapes (odd, of one, empty), orders of the axes in memory, strides of
// either sign, slices, blocks, frequencies of each head, axes, tables of plans, ids of both widths,
// packed texts, pages with slots that are none. Tensors lie between pages that nobody may touch,
// and what is no element of an output stays as it was.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/backend.h"
#include "backends/cuda/tensors_test.h"
#include "posenc/cuda.h"
#include "tests/guarded_memory.h"

namespace posenc::cuda {
namespace {

using Shape = std::array<std::int64_t, 4>;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(engine_() >> 33) % count;
  }
  bool one_in(std::int64_t count) { return below(count) == 0; }
  template <class T, std::size_t n>
  T of(const T (&list)[n]) {
    return list[below(static_cast<std::int64_t>(n))];
  }

 private:
  detail::SplitMix64 engine_;
};

// A tensor with its axes in any order in memory, gaps between rows, some of them backwards.
class Strided {
 public:
  Strided(DType dtype, Shape shape, Draw& draw, bool plain) {
    std::array<std::size_t, 4> order{0, 1, 2, 3};
    if (!plain)
      for (std::size_t i = 3; i > 0; --i)
        std::swap(order[i],
                  order[static_cast<std::size_t>(draw.below(static_cast<std::int64_t>(i) + 1))]);
    view_ = {.data = nullptr, .dtype = dtype, .rank = 4, .shape = shape, .stride = {}};
    std::int64_t step = 1, first = 0;
    for (std::size_t i = 4; i-- > 0;) {
      const std::size_t axis = order[i];
      const std::int64_t count = shape[axis];
      view_.stride[axis] = step;
      if (!plain && draw.one_in(6)) {
        first += (count > 0 ? count - 1 : 0) * step;
        view_.stride[axis] = -step;
      }
      step *= std::max<std::int64_t>(count, 1);
      if (!plain && draw.one_in(3)) step += draw.below(5);
      if (plain && axis == 3 && draw.one_in(2)) step += 16;  // rows stay aligned
    }
    const bool empty = view_.size() == 0;
    const auto bytes = static_cast<std::size_t>(empty ? 0 : step) * size_of(dtype);
    memory_ = GuardedMemory(
        bytes, draw.one_in(2) ? GuardedMemory::Beside::start : GuardedMemory::Beside::end);
    view_.data = memory_.data() + (empty ? 0 : first) * static_cast<std::int64_t>(size_of(dtype));
    // Gaps hold something that would show.
    std::memset(memory_.data(), 0x3a, bytes);
  }

  Strided(const Strided& from) : memory_(from.memory_), view_(from.view_) {
    view_.data = memory_.data() + (static_cast<char*>(from.view_.data) - from.memory_.data());
  }
  Strided& operator=(const Strided&) = delete;

  const Tensor& view() const { return view_; }
  void fill(unsigned seed) {
    const std::vector<double> list = random(view_.size(), seed);
    std::size_t i = 0;
    each([&](std::int64_t at) { view_.set(at, list[i++]); });
  }
  template <class Each>
  void each(const Each& visit) const {
    for (std::int64_t a = 0; a < view_.shape[0]; ++a)
      for (std::int64_t b = 0; b < view_.shape[1]; ++b)
        for (std::int64_t c = 0; c < view_.shape[2]; ++c)
          for (std::int64_t d = 0; d < view_.shape[3]; ++d) visit(view_.offset(a, b, c, d));
  }
  // Dense, in doubles.
  std::vector<double> values() const {
    std::vector<double> list;
    each([&](std::int64_t at) { list.push_back(view_.get(at)); });
    return list;
  }
  // Whether all but its elements is as in `before`.
  bool gaps_are_as(const Strided& before) const {
    GuardedMemory now = memory_;
    Tensor there = view_;
    there.data = now.data() + (static_cast<char*>(view_.data) - memory_.data());
    each([&](std::int64_t at) { there.set(at, before.view_.get(at)); });
    return now == before.memory_;
  }

 private:
  GuardedMemory memory_;
  Tensor view_;
};

// A plan's rotation, of any slice.
Plan drawn_plan(Draw& draw, std::int64_t dim, std::int64_t heads) {
  const std::int64_t pairs = 1 + draw.below(dim / 2);
  Rotate rotate{
      .slice = {.pairing = draw.one_in(2) ? Pairing::halves : Pairing::interleaved,
                .first_dim = draw.one_in(2) ? dim - 2 * pairs : draw.below(dim - 2 * pairs + 1),
                .rotary_dim = 2 * pairs},
      .frequencies = {.heads = draw.one_in(3) ? heads : 1,
                      .axes = draw.one_in(3) ? 2 + draw.below(2) : 1}};
  if (draw.one_in(2)) rotate.slice.first_dim = 0, rotate.slice.rotary_dim = dim / 2 * 2;
  if (draw.one_in(3))
    for (const std::int64_t blocks : {3, 2})
      if (rotate.pairs() % blocks == 0) rotate.slice.blocks = blocks;
  return {.rotate = rotate};
}
void draw_numbers(Draw& draw, Rotate& rotate) {
  rotate.frequencies.radians.clear();
  for (std::int64_t i = 0; i < rotate.frequencies.heads * rotate.frequencies.axes * rotate.pairs();
       ++i)
    rotate.frequencies.radians.push_back(static_cast<double>(draw.below(1 << 20)) * 0x1p-20 - 0.25);
  rotate.amplitude = draw.one_in(2) ? 1 : 1.25;
}

struct Stands {
  std::vector<std::int64_t> ids = {};  // [axis][batch][token], what the host is given
  std::vector<std::int32_t> short_ids = {}, bounds = {}, cached = {};
  DevicePositions there = {};
};

void draw_positions(Draw& draw, Stands& at, std::int64_t axes, std::int64_t batch,
                    std::int64_t tokens) {
  const std::int64_t far[] = {0, 100, 1'000'000, -1'000'000};
  const std::int64_t count = axes * batch * tokens, kind = axes > 1 ? draw.below(2) : draw.below(4);
  if (kind < 2) {
    const std::int64_t begin = draw.of(far);
    for (std::int64_t i = 0; i < count; ++i) at.ids.push_back(begin + draw.below(1000) - 500);
    if (count == 0) at.ids.push_back(0);  // a list of none is a list
    at.short_ids.assign(at.ids.begin(), at.ids.end());
    if (kind == 0)
      at.there.ids = at.ids.data();
    else
      at.there.short_ids = at.short_ids.data();
  } else if (kind == 2 || batch != 1) {
    at.there.first = draw.of(far);
    for (std::int64_t i = 0; i < count; ++i) at.ids.push_back(at.there.first + i % tokens);
  } else {  // packed; texts may be empty
    for (at.bounds = {0}; at.bounds.back() < tokens;)
      at.bounds.push_back(
          static_cast<std::int32_t>(std::min(tokens, at.bounds.back() + draw.below(4))));
    if (at.bounds.size() == 1) at.bounds.push_back(0);
    for (std::size_t text = 0; text + 1 < at.bounds.size(); ++text) {
      at.cached.push_back(static_cast<std::int32_t>(draw.below(100'000)));
      if (draw.one_in(4)) at.cached.back() = 0;
    }
    const bool cached = draw.one_in(2);
    for (std::size_t text = 0; text + 1 < at.bounds.size(); ++text)
      for (std::int32_t i = at.bounds[text]; i < at.bounds[text + 1]; ++i)
        at.ids.push_back(i - at.bounds[text] + (cached ? at.cached[text] : 0));
    at.there.cu_seqlens = at.bounds.data();
    at.there.cached = cached ? at.cached.data() : nullptr;
    at.there.texts = static_cast<int>(at.bounds.size()) - 1;
  }
}

// What the host makes of it in double: each plan's rotation of all, and of it the tokens of
// that plan.
std::vector<double> by_the_host(const std::vector<Plan>& plans,
                                const std::vector<std::int32_t>& plan_ids, const Strided& x,
                                const Stands& at, Side side, Action action) {
  const Shape shape = x.view().shape;
  std::vector<double> in = x.values(), wanted = in, out(in.size());
  if (in.empty()) return wanted;
  const auto dense = [&](std::vector<double>& list) {
    return Tensor::dense(list.data(), DType::f64, {shape[0], shape[1], shape[2], shape[3]});
  };
  for (std::size_t plan = 0; plan < plans.size(); ++plan) {
    const auto positions =
        Positions::signed_ids(at.ids, plans[plan].rotate->frequencies.axes, shape[0]);
    EXPECT_TRUE(positions);
    const auto done = action == Action::forward
                          ? posenc::rotate(plans[plan], dense(in), *positions, side, dense(out))
                      : action == Action::transpose
                          ? rotate_transpose(plans[plan], dense(in), *positions, side, dense(out))
                          : rotate_inverse(plans[plan], dense(in), *positions, side, dense(out));
    EXPECT_TRUE(done) << done.error().message();
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto element = static_cast<std::int64_t>(i), row = element / shape[3],
                 token = row / shape[2] / shape[1] * shape[2] + row % shape[2];
      if (plan_ids[static_cast<std::size_t>(token)] == static_cast<std::int32_t>(plan))
        wanted[i] = out[i];
    }
  }
  return wanted;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& wanted, DType dtype,
                 const std::string& what) {
  ASSERT_EQ(found.size(), wanted.size()) << what;
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    worst = std::max(worst, std::abs(found[i] - wanted[i]) / std::max(1.0, std::abs(wanted[i])));
  // The host's angles are in double: 10^6 radians and three axes of them.
  EXPECT_LE(worst, std::max(2 * tolerance(dtype), 1e-9)) << what;
}

// Pages hold the rows of the tokens whose slot they are, and elsewhere what was there.
void expect_pages(const Strided& cache, const Strided& before,
                  const std::vector<std::int64_t>& slots, const std::vector<double>& rows,
                  Shape shape, DType dtype, const std::string& what) {
  const Shape pages = cache.view().shape;
  std::vector<double> wanted = before.values();
  for (std::size_t token = 0; token < slots.size(); ++token) {
    const std::int64_t slot = slots[token], batch = static_cast<std::int64_t>(token) / shape[2],
                       t = static_cast<std::int64_t>(token) % shape[2];
    if (slot < 0 || slot >= pages[0] * pages[2]) continue;
    for (std::int64_t h = 0; h < shape[1]; ++h)
      for (std::int64_t c = 0; c < shape[3]; ++c)
        wanted[static_cast<std::size_t>(
            ((slot / pages[2] * pages[1] + h) * pages[2] + slot % pages[2]) * pages[3] + c)] =
            rows[static_cast<std::size_t>(((batch * shape[1] + h) * shape[2] + t) * shape[3] + c)];
  }
  expect_near(cache.values(), wanted, dtype, what);
  EXPECT_TRUE(cache.gaps_are_as(before)) << what;
}

// Slots of their own, in any order, among them some that are none.
std::vector<std::int64_t> drawn_slots(Draw& draw, std::int64_t tokens, std::int64_t slot_count) {
  const std::int64_t none[] = {-1, slot_count, std::numeric_limits<std::int64_t>::min(),
                               std::numeric_limits<std::int64_t>::max(), std::int64_t{1} << 32};
  std::vector<std::int64_t> all, slots;
  for (std::int64_t i = 0; i < slot_count; ++i) all.push_back(i);
  for (std::int64_t i = slot_count - 1; i > 0; --i)
    std::swap(all[static_cast<std::size_t>(i)], all[static_cast<std::size_t>(draw.below(i + 1))]);
  for (std::int64_t i = 0; i < tokens; ++i)
    slots.push_back(draw.one_in(5) ? draw.of(none) : all[static_cast<std::size_t>(i)]);
  return slots;
}

void expect_as_the_host(std::uint64_t seed) {
  Draw draw(seed);
  const std::int64_t dims[] = {2, 3, 6, 7, 8, 16, 32, 48, 64, 80, 128};
  const DType dtype = draw.of(dtypes);
  const std::int64_t dim = draw.of(dims), heads = 1 + draw.below(5);
  const std::int64_t batch = draw.one_in(12) ? 0 : 1 + draw.below(3),
                     tokens = draw.one_in(12) ? 0 : 1 + draw.below(draw.one_in(4) ? 40 : 6);
  std::vector<Plan> plans(static_cast<std::size_t>(1 + draw.below(3)),
                          drawn_plan(draw, dim, heads));
  for (Plan& plan : plans) draw_numbers(draw, *plan.rotate);
  const Rotate& rotate = *plans.front().rotate;
  const std::int64_t kv_heads = rotate.frequencies.heads > 1 ? heads : 1 + draw.below(heads);
  const bool appends = draw.one_in(3), values_rotate = draw.one_in(4);
  for (Plan& plan : plans)
    plan.rotate->values = values_rotate ? Values::rotated_and_back : Values::unrotated;
  const Action actions[] = {Action::forward, Action::transpose, Action::inverse};
  const Action action = appends ? Action::forward : draw.of(actions);

  Stands at;
  draw_positions(draw, at, rotate.frequencies.axes, batch, tokens);
  std::vector<std::int32_t> plan_ids;
  for (std::int64_t i = 0; i < batch * tokens; ++i)
    plan_ids.push_back(
        static_cast<std::int32_t>(draw.below(static_cast<std::int64_t>(plans.size()))));
  const bool by_ids = plans.size() > 1 || draw.one_in(2);
  plan_ids.push_back(0);

  // Half of the calls can use words of 16 bytes, as far as the sizes let them.
  const bool plain = draw.one_in(2), in_place = draw.one_in(2);
  const auto tensor = [&](std::int64_t count, unsigned with) {
    Strided made(dtype, {batch, count, tokens, dim}, draw, plain);
    made.fill(with);
    return made;
  };
  const Strided q = tensor(heads, 1), k = tensor(kv_heads, 2), v = tensor(kv_heads, 3),
                q_apart = tensor(heads, 4), k_apart = tensor(kv_heads, 5);
  const Strided &q_out = in_place ? q : q_apart, &k_out = in_place ? k : k_apart;
  const auto wanted_q = by_the_host(plans, plan_ids, q, at, Side::query, action),
             wanted_k = by_the_host(plans, plan_ids, k, at, Side::key, action);
  const Strided q_before = q_out, k_before = k_out;

  const std::string what = "seed " + std::to_string(seed) + ", " + std::string(name(dtype)) + ", " +
                           shape_text(q.view()) + ", " + std::string(name(rotate.slice.pairing)) +
                           ", " + std::to_string(rotate.slice.rotary_dim) + " channels from " +
                           std::to_string(rotate.slice.first_dim);
  const auto rotations = Rotations::make(plans, emulated());
  ASSERT_TRUE(rotations) << rotations.error().message() << what;
  const RotateOptions options{.action = action,
                              .plan_ids = by_ids ? plan_ids.data() : nullptr,
                              .heads_at_once = static_cast<int>(1 + draw.below(5)),
                              .ids_ready = draw.one_in(2)};
  if (!appends) {
    const bool with_keys = !draw.one_in(4);
    const Tensor none;
    const auto done = cuda::rotate(*rotations, q.view(), with_keys ? k.view() : none, at.there,
                                   q_out.view(), with_keys ? k_out.view() : none, options);
    ASSERT_TRUE(done) << done.error().message() << what;
    expect_near(q_out.values(), wanted_q, dtype, what);
    if (with_keys) expect_near(k_out.values(), wanted_k, dtype, what);
    EXPECT_TRUE(q_out.gaps_are_as(q_before)) << what;
    EXPECT_TRUE(k_out.gaps_are_as(k_before)) << what;
    return;
  }

  const std::int64_t page_size = 1 + draw.below(5),
                     pages = (batch * tokens + page_size - 1) / page_size + 1;
  const Strided keys(dtype, {pages, kv_heads, page_size, dim}, draw, plain),
      values(dtype, {pages, kv_heads, page_size, dim}, draw, plain);
  const Strided keys_before = keys, values_before = values;
  const std::vector<std::int64_t> slots = drawn_slots(draw, batch * tokens, pages * page_size);
  const bool hands_out = draw.one_in(2);
  std::vector<std::int64_t> given = slots;
  given.push_back(-1);
  const auto wanted_v = values_rotate
                            ? by_the_host(plans, plan_ids, v, at, Side::value, Action::forward)
                            : v.values();
  const auto done = rotate_and_append(
      *rotations, q.view(), k.view(), v.view(), at.there, q_out.view(),
      hands_out ? k_out.view() : Tensor{},
      {.keys = keys.view(), .values = values.view(), .slots = given.data()}, options);
  ASSERT_TRUE(done) << done.error().message() << what;
  expect_near(q_out.values(), wanted_q, dtype, what);
  if (hands_out) expect_near(k_out.values(), wanted_k, dtype, what);
  EXPECT_TRUE(q_out.gaps_are_as(q_before)) << what;
  EXPECT_TRUE(k_out.gaps_are_as(k_before)) << what;
  expect_pages(keys, keys_before, slots, wanted_k, k.view().shape, dtype, what);
  expect_pages(values, values_before, slots, wanted_v, v.view().shape, dtype, what);
}

TEST(AnyCallOnDevice, IsAsOnTheHost) {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    expect_as_the_host(seed);
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace posenc::cuda
