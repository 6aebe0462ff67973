#include "posenc/positions.h"

#include <algorithm>
#include <limits>
#include <string>

#include "src/saturating.h"

namespace posenc {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
// 2 GiB of them: beyond it, a size is an error.
constexpr std::int64_t most_ids = std::int64_t{1} << 28;

bool consecutive(std::span<const std::int64_t> ids) {
  return std::ranges::adjacent_find(ids, [](auto a, auto b) { return b - 1 != a; }) == ids.end();
}

// The number of tokens in a batch row, or an error: `size` must be rows · columns.
Expected<std::int64_t> columns(std::string_view where, std::size_t size, std::int64_t axes,
                               std::int64_t batch) {
  if (axes < 1 || batch < 1) {
    return fail(where, "axes and batch must be at least 1",
                std::to_string(axes) + " and " + std::to_string(batch),
                "a single sequence is batch 1");
  }
  const std::int64_t rows = detail::product(axes, batch);
  if (rows > most_ids) {  // of no tokens: nobody is to count to them
    return fail(where, "axes x batch must be 2^28 or fewer", std::to_string(rows),
                "check the shape");
  }
  const auto count = static_cast<std::int64_t>(size);
  if (count % rows != 0) {
    return fail(where, "the size must be axes x batch x seq, a multiple of " + std::to_string(rows),
                std::to_string(count), "pass row-major [axis][batch][seq]");
  }
  return count / rows;
}

}  // namespace

Positions Positions::range(std::int64_t first, std::int64_t count) {
  Positions positions;
  positions.first_ = first;
  positions.seq_ = std::max<std::int64_t>(count, 0);
  return positions;
}

Expected<Positions> Positions::ids(std::span<const std::int64_t> ids, std::int64_t axes,
                                   std::int64_t batch) {
  const auto seq = columns("positions", ids.size(), axes, batch);
  if (!seq) return std::unexpected(seq.error());
  if (const auto negative = std::ranges::find_if(ids, [](std::int64_t id) { return id < 0; });
      negative != ids.end()) {
    return fail("positions", "ids must not be negative",
                std::to_string(*negative) + " at index " + std::to_string(negative - ids.begin()),
                "for padding use a mask, Positions::from_mask");
  }
  if (axes == 1 && batch == 1 && consecutive(ids)) return range(ids.empty() ? 0 : ids[0], *seq);
  Positions positions;
  positions.axes_ = axes;
  positions.batch_ = batch;
  positions.seq_ = *seq;
  positions.ids_.assign(ids.begin(), ids.end());
  return positions;
}

Expected<Positions> Positions::from_mask(std::span<const std::uint8_t> mask, std::int64_t batch,
                                         std::int64_t cached, std::int64_t padding) {
  const auto seq = columns("positions from mask", mask.size(), 1, batch);
  if (!seq) return std::unexpected(seq.error());
  if (cached < 0 || cached > *seq) {
    return fail("positions from mask",
                "cached must lie within 0 and the mask's " + std::to_string(*seq) + " columns",
                std::to_string(cached), "the mask covers cached tokens and new ones");
  }
  if (padding < -1) {
    return fail("positions from mask", "padding must be a position, or -1 to mark it",
                std::to_string(padding), "use 0 or -1");
  }
  Positions positions;
  positions.batch_ = batch;
  positions.seq_ = *seq - cached;
  positions.ids_.reserve(static_cast<std::size_t>(batch * positions.seq_));
  for (std::int64_t b = 0; b < batch; ++b) {
    std::int64_t real = 0;
    for (std::int64_t t = 0; t < *seq; ++t) {
      const bool token = mask[static_cast<std::size_t>(b * *seq + t)] != 0;
      if (t >= cached) positions.ids_.push_back(token ? real : padding);
      real += token ? 1 : 0;
    }
  }
  if (batch == 1 && positions.seq_ > 0 && positions.ids_[0] >= 0 && consecutive(positions.ids_)) {
    return range(positions.ids_[0], positions.seq_);
  }
  return positions;
}

Expected<Positions> Positions::packed(std::span<const std::int64_t> cu_seqlens) {
  if (cu_seqlens.size() < 2 || cu_seqlens.front() != 0) {
    return fail("packed positions", "cu_seqlens must start at 0 and have an end for each sequence",
                cu_seqlens.empty() ? "nothing"
                                   : std::to_string(cu_seqlens.size()) + " entries from " +
                                         std::to_string(cu_seqlens.front()),
                "give {0, n0, n0 + n1, ...}");
  }
  if (const auto drop = std::ranges::adjacent_find(cu_seqlens, std::ranges::greater{});
      drop != cu_seqlens.end()) {
    return fail("packed positions", "cu_seqlens must not decrease",
                std::to_string(drop[1]) + " after " + std::to_string(drop[0]),
                "give running sums, not lengths");
  }
  if (cu_seqlens.back() > most_ids) {
    return fail("packed positions", "cu_seqlens must end at 2^28 tokens or fewer",
                std::to_string(cu_seqlens.back()), "split the pack");
  }
  Positions positions;
  positions.seq_ = cu_seqlens.back();
  for (std::size_t s = 0; s + 1 < cu_seqlens.size(); ++s) {
    for (std::int64_t t = 0; t < cu_seqlens[s + 1] - cu_seqlens[s]; ++t) {
      positions.ids_.push_back(t);
      positions.segments_.push_back(static_cast<std::int64_t>(s));
    }
  }
  return positions;
}

std::int64_t Positions::length() const {
  if (seq_ == 0) return 0;
  if (ids_.empty()) return first_ > largest - seq_ ? largest : first_ + seq_;
  return std::min(std::ranges::max(ids_), largest - 1) + 1;
}

Positions Positions::slice(std::int64_t sequence, std::int64_t first, std::int64_t count) const {
  Positions part;
  part.seq_ = count;
  part.first_ = first_ + first;
  if (!ids_.empty()) {
    part.axes_ = axes_;
    part.batch_ = 1;
    for (std::int64_t axis = 0; axis < axes_; ++axis) {
      for (std::int64_t t = 0; t < count; ++t) part.ids_.push_back(at(first + t, sequence, axis));
    }
  }
  for (std::int64_t t = 0; t < count && !segments_.empty(); ++t)
    part.segments_.push_back(segment(first + t));
  return part;
}

Expected<Positions> Positions::shifted(std::int64_t offset) const {
  Positions moved = *this;
  const auto move = [offset](std::int64_t& id) {
    if (id == -1) return true;  // padding marked by from_mask stands nowhere
    return !__builtin_add_overflow(id, offset, &id) && id >= 0;
  };
  bool ok = true;
  if (ids_.empty()) {
    std::int64_t end = 0;
    ok = !__builtin_add_overflow(first_, offset, &moved.first_) && moved.first_ >= 0 &&
         !__builtin_add_overflow(moved.first_, std::max<std::int64_t>(seq_ - 1, 0), &end);
  } else {
    ok = std::ranges::all_of(moved.ids_, move);
  }
  if (!ok) {
    return fail("shifted positions", "every position must stay within 0 and 2^63 - 1",
                "an offset of " + std::to_string(offset), "shift by less");
  }
  return moved;
}

Expected<Positions> patch_positions(std::int64_t height, std::int64_t width,
                                    std::int64_t spatial_merge_size, std::int64_t frames) {
  constexpr std::string_view where = "patch positions";
  const std::int64_t m = spatial_merge_size;
  if (height < 0 || width < 0 || frames < 0 || m < 1 || height % m != 0 || width % m != 0) {
    return fail(
        where, "height and width must be multiples of the merge size " + std::to_string(m),
        std::to_string(frames) + " x " + std::to_string(height) + " x " + std::to_string(width),
        "count patches before merging");
  }
  const std::int64_t count = detail::product(detail::product(height, width), frames);
  if (count > most_ids / 2) {
    return fail(
        where, "a grid must have 2^27 patches or fewer",
        std::to_string(frames) + " x " + std::to_string(height) + " x " + std::to_string(width),
        "check the grid");
  }
  std::vector<std::int64_t> ids(static_cast<std::size_t>(2 * count));
  std::size_t t = 0;
  const auto columns_at = static_cast<std::size_t>(count);
  for (std::int64_t frame = 0; count > 0 && frame < frames; ++frame) {
    for (std::int64_t top = 0; top < height; top += m) {
      for (std::int64_t left = 0; left < width; left += m) {
        for (std::int64_t patch = 0; patch < m * m; ++patch, ++t) {
          ids[t] = top + patch / m;
          ids[columns_at + t] = left + patch % m;
        }
      }
    }
  }
  return Positions::ids(ids, 2);
}

}  // namespace posenc
