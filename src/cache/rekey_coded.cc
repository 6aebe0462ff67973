// Keys of 8 bits, from one rotation and place to another (posenc/rekey.h).
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "src/cache/rekey_parts.h"
#include "src/core/addressable.h"
#include "src/core/float8.h"
#include "src/core/try.h"
#include "src/kernels/threads.h"

namespace posenc {
namespace {

constexpr std::int64_t numbers_at_once = std::int64_t{1} << 15;
constexpr auto e4m3_floats = [] {
  std::array<float, 256> floats{};
  for (std::size_t code = 0; code < floats.size(); ++code)
    floats[code] = detail::e4m3_to_float(static_cast<std::uint8_t>(code));
  return floats;
}();

// Where the codes and scales of keys are, with the defaults filled in.
struct Coded {
  const CodedKeys& keys;
  std::int64_t block, block_stride, blocks;
  Tensor scales;  // an extent of 1 has the stride 0

  std::byte* row(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t of_block) const {
    return keys.codes + b * keys.stride[0] + h * keys.stride[1] + t * keys.stride[2] +
           of_block * block_stride;
  }
  std::int64_t scale_at(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const {
    return scales.offset(b, h, t, k);
  }
  double scale(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const {
    return scales ? scales.get(scale_at(b, h, t, k)) : 1;
  }
};

Expected<Coded> coded(const CodedKeys& keys) {
  const auto& shape = keys.shape;
  if (!keys.codes || std::ranges::any_of(shape, [](std::int64_t n) { return n < 0; }))
    return fail("rekey", "codes must be there, and no extent negative", "",
                "give [batch, kv_head, seq, head_dim]");
  const std::int64_t block = keys.block == 0 ? std::max<std::int64_t>(1, shape[3]) : keys.block;
  if (block < 0 || shape[3] % block != 0)
    return fail("rekey", "blocks must divide head_dim",
                std::to_string(block) + " of " + std::to_string(shape[3]),
                "pad the head, or give the channels that share a scale");
  // A number lies within a block, whose channels are apart by the last stride.
  const Tensor bytes{.dtype = DType::f16, .rank = 4, .shape = shape, .stride = keys.stride};
  if (!detail::addressable(bytes))
    return fail("rekey", "codes must fit in memory", "", "give their true shape and strides");
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (shape[axis] > 1 && keys.stride[axis] == 0)
      return fail("rekey", "each token must have codes of its own", "a stride of 0", "copy them");
  Coded out{keys, block, keys.block_stride == 0 ? block * keys.stride[3] : keys.block_stride,
            shape[3] / block, keys.scales ? keys.scales.with_rank(4) : Tensor{}};
  if (!out.scales) {
    if (keys.keep_scales) return out;
    return fail("rekey", "scales that are made anew must be there", "none", "keep_scales = true");
  }
  const std::array<std::int64_t, 4> full = {shape[0], shape[1], shape[2], out.blocks};
  for (std::size_t axis = 0; axis < 4; ++axis) {
    const std::int64_t extent = out.scales.shape[axis];
    if (extent != full[axis] && extent != 1)
      return fail("rekey", "scales must be [batch, kv_head, seq, block] or shared",
                  shape_text(out.scales), "an axis has 1 where all share");
    if (extent == 1 && full[axis] > 1) {
      if ((axis == 0 || axis == 2) && !keys.keep_scales)
        return fail("rekey", "a scale that is made anew must be of one token",
                    shape_text(out.scales), "keep_scales = true: others are read by it");
      out.scales.stride[axis] = 0;
    }
  }
  return out;
}

// Numbers of tokens [first, first + count) of a sequence, dense [head][token][channel].
void decode(const Coded& in, std::int64_t b, std::int64_t first, std::int64_t count, float* to) {
  const auto& [code, codes, shape, stride, block, block_stride, scales, keep] = in.keys;
  for (std::int64_t h = 0; h < shape[1]; ++h)
    for (std::int64_t t = first; t < first + count; ++t)
      for (std::int64_t k = 0; k < in.blocks; ++k) {
        const auto scale = static_cast<float>(in.scale(b, h, t, k));
        const std::byte* const row = in.row(b, h, t, k);
        for (std::int64_t c = 0; c < in.block; ++c) {
          const auto byte = std::to_integer<std::uint8_t>(row[c * stride[3]]);
          *to++ = scale * (code == KeyCode::e4m3
                               ? e4m3_floats[byte]
                               : static_cast<float>(std::bit_cast<std::int8_t>(byte)));
        }
      }
}

// Each scale of a token, so that the largest of its numbers has the largest code.
void make_scales(const Coded& out, std::int64_t b, std::int64_t first, std::int64_t count,
                 const float* from) {
  const auto& shape = out.keys.shape;
  const double largest_code = out.keys.code == KeyCode::e4m3 ? detail::e4m3_largest : 127;
  const auto each = [&](const auto& act) {
    for (std::int64_t h = 0; h < shape[1]; ++h)
      for (std::int64_t t = 0; t < count; ++t)
        for (std::int64_t k = 0; k < out.blocks; ++k)
          act(out.scale_at(b, h, first + t, k), from + (h * count + t) * shape[3] + k * out.block);
  };
  // Several blocks may share one: first all are 0, then each is as large as any asks for.
  each([&](std::int64_t at, const float*) { out.scales.set(at, 0); });
  each([&](std::int64_t at, const float* numbers) {
    float most = 0;
    for (std::int64_t c = 0; c < out.block; ++c) most = std::max(most, std::abs(numbers[c]));
    const double scale = most / largest_code;
    if (scale > out.scales.get(at)) out.scales.set(at, scale);
  });
}

void encode(const Coded& out, std::int64_t b, std::int64_t first, std::int64_t count,
            const float* from) {
  const auto& shape = out.keys.shape;
  for (std::int64_t h = 0; h < shape[1]; ++h)
    for (std::int64_t t = first; t < first + count; ++t)
      for (std::int64_t k = 0; k < out.blocks; ++k) {
        const double scale = out.scale(b, h, t, k);
        const double inverse = scale == 0 ? 0 : 1 / scale;
        std::byte* const row = out.row(b, h, t, k);
        for (std::int64_t c = 0; c < out.block; ++c) {
          const auto number = static_cast<float>(*from++ * inverse);
          std::uint8_t byte = 0;
          if (out.keys.code == KeyCode::e4m3)
            byte = detail::float_to_e4m3(number);
          else if (!std::isnan(number))
            byte = std::bit_cast<std::uint8_t>(
                static_cast<std::int8_t>(std::nearbyint(std::clamp(number, -127.0F, 127.0F))));
          row[c * out.keys.stride[3]] = std::byte{byte};
        }
      }
}

// Tokens that are decoded, turned and encoded together, and where their positions are.
struct Part {
  std::int64_t batch = 0, first = 0, count = 0;  // of the codes
  std::int64_t row = 0, at = 0;                  // of the positions
};

std::int64_t numbers_of_token(const Coded& in) {
  return std::max<std::int64_t>(1, in.keys.shape[1] * in.keys.shape[3]);
}
std::int64_t tokens_at_once(const Coded& in) {
  return std::max<std::int64_t>(1, numbers_at_once / numbers_of_token(in));
}

Expected<void> recode(const Coded& in, const std::vector<Part>& work, const Stand& from,
                      const Stand& to, Side side, Threads threads) {
  const std::int64_t of_token = numbers_of_token(in);
  std::int64_t most = 0, tokens = 0;
  for (const Part& part : work) {
    most = std::max(most, part.count);
    tokens += part.count;
  }
  std::vector<Expected<void>> done(work.size());
  detail::share_out(
      std::ssize(work), detail::thread_count(threads, tokens * of_token * 4),
      [&](std::int64_t begin, std::int64_t end) {
        std::vector<float> numbers(static_cast<std::size_t>(most * of_token));
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          const auto& [batch, first, count, row, at] = work[i];
          const Tensor x =
              Tensor::dense(numbers.data(), {1, in.keys.shape[1], count, in.keys.shape[3]});
          decode(in, batch, first, count, numbers.data());
          done[i] = detail::move_keys({from.plan, from.at.slice(row, at, count)},
                                      {to.plan, to.at.slice(row, at, count)}, x, x, side, {1});
          if (!done[i]) continue;
          if (!in.keys.keep_scales) make_scales(in, batch, first, count, numbers.data());
          encode(in, batch, first, count, numbers.data());
        }
      });
  for (const Expected<void>& each : done) POSENC_CHECK(each);
  return {};
}

}  // namespace

CodedKeys CodedKeys::q8_0(void* blocks, std::int64_t batch, std::int64_t kv_heads, std::int64_t seq,
                          std::int64_t head_dim) {
  const std::int64_t of_head = head_dim / q8_block, of_token = kv_heads * of_head;
  constexpr std::int64_t halves = q8_block_bytes / 2;
  return {
      .code = KeyCode::int8,
      .codes = static_cast<std::byte*>(blocks) + 2,
      .shape = {batch, kv_heads, seq, head_dim},
      .stride = {seq * of_token * q8_block_bytes, of_head * q8_block_bytes, of_token * q8_block_bytes, 1},
      .block = q8_block,
      .block_stride = q8_block_bytes,
      .scales = {.data = blocks,
                 .dtype = DType::f16,
                 .rank = 4,
                 .shape = {batch, kv_heads, seq, of_head},
                 .stride = {seq * of_token * halves, of_head * halves, of_token * halves, halves}},
      .keep_scales = false};
}

Expected<void> rekey(const Stand& from, const Stand& to, const CodedKeys& keys, Side side,
                     Threads threads) {
  POSENC_CHECK(detail::check_stands(from, to, side));
  POSENC_TRY(in, coded(keys));
  const auto& shape = keys.shape;
  POSENC_CHECK(detail::check_positions(from, to, shape[0], shape[2]));
  if (std::ranges::count(shape, 0) > 0) return {};
  const std::int64_t part = tokens_at_once(in);
  const std::int64_t parts = (shape[2] + part - 1) / part;  // of a sequence
  std::vector<Part> work;
  for (std::int64_t b = 0; b < shape[0]; ++b)
    for (std::int64_t i = 0; i < parts; ++i)
      work.push_back({b, i * part, std::min(part, shape[2] - i * part), b, i * part});
  return recode(in, work, from, to, side, threads);
}

Expected<void> rekey(const Stand& from, const Stand& to, const CodedPages& pages, Side side,
                     Threads threads) {
  POSENC_CHECK(detail::check_stands(from, to, side));
  POSENC_TRY(in, coded(pages.keys));
  const std::int64_t size = pages.keys.shape[2];
  if (size < 1)
    return fail("rekey", "pages must be [page, kv_head, token of the page, head_dim]",
                std::to_string(size) + " tokens in a page", "swap the axes of NHD pages");
  POSENC_TRY(runs, detail::page_runs(pages.keys.shape[0], size, pages.table, pages.tokens));
  const std::int64_t longest = pages.tokens.empty() ? 0 : *std::ranges::max_element(pages.tokens);
  POSENC_CHECK(detail::check_positions(from, to, std::ssize(pages.tokens), longest));
  const std::int64_t part = tokens_at_once(in);
  std::vector<Part> work;
  for (const detail::PageRun& run : runs)
    for (std::int64_t page = 0; page < run.pages; ++page)
      for (std::int64_t t = 0; t < run.tokens; t += part)
        work.push_back({run.page + page, t, std::min(part, run.tokens - t), run.sequence,
                        run.first + page * size + t});
  return recode(in, work, from, to, side, threads);
}

}  // namespace posenc
