// Positions as values: a range is two numbers; other ids lie in memory that copies and slices share
// and that nobody writes once it can be seen twice. append() alone writes, behind the last token
// and only into memory it has to itself.
#include "posenc/positions.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>

#include "src/core/saturating.h"

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

std::shared_ptr<std::int64_t[]> memory(std::int64_t count) {
  return std::make_shared_for_overwrite<std::int64_t[]>(static_cast<std::size_t>(count));
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
  if (const auto negative = std::ranges::find_if(ids, [](std::int64_t id) { return id < 0; });
      negative != ids.end()) {
    return fail("positions", "ids must not be negative",
                std::to_string(*negative) + " at index " + std::to_string(negative - ids.begin()),
                "for padding use a mask, Positions::from_mask");
  }
  return signed_ids(ids, axes, batch);
}

Expected<Positions> Positions::signed_ids(std::span<const std::int64_t> ids, std::int64_t axes,
                                          std::int64_t batch) {
  const auto seq = columns("positions", ids.size(), axes, batch);
  if (!seq) return std::unexpected(seq.error());
  const auto is_far = [](std::int64_t id) {
    return id > furthest_position || id < -furthest_position;
  };
  if (const auto far = std::ranges::find_if(ids, is_far); far != ids.end()) {
    return fail("positions", "ids must be 2^62 or less",
                std::to_string(*far) + " at index " + std::to_string(far - ids.begin()),
                "check for a sentinel or memory that nobody wrote");
  }
  if (axes == 1 && batch == 1 && consecutive(ids)) return range(ids.empty() ? 0 : ids[0], *seq);
  Positions positions;
  positions.axes_ = axes;
  positions.batch_ = batch;
  positions.seq_ = *seq;
  positions.own(ids);
  return positions;
}

Expected<Positions> Positions::grid(std::span<const std::int64_t> sizes,
                                    std::span<const std::int64_t> first) {
  constexpr std::string_view where = "positions of a grid";
  if (sizes.empty() || (!first.empty() && first.size() != sizes.size())) {
    return fail(where, "there must be a size for each axis, and as many first positions or none",
                std::to_string(sizes.size()) + " sizes and " + std::to_string(first.size()),
                "pass {frames, height, width}");
  }
  std::int64_t cells = 1;
  for (const std::int64_t size : sizes) {
    if (size < 0) return fail(where, "sizes must not be negative", std::to_string(size));
    cells = detail::product(cells, size);
  }
  const auto axes = static_cast<std::int64_t>(sizes.size());
  if (detail::product(cells, axes) > most_ids)
    return fail(where, "the grid must have 2^28 numbers or fewer", std::to_string(cells) + " cells",
                "check the sizes");
  std::vector<std::int64_t> ids(static_cast<std::size_t>(cells * axes));
  std::int64_t run = cells;  // cells that share a position on this axis, and all before it
  for (std::size_t axis = 0; axis < sizes.size() && cells > 0; ++axis) {
    run /= sizes[axis];
    std::int64_t* const row = ids.data() + static_cast<std::int64_t>(axis) * cells;
    const std::int64_t start = first.empty() ? 0 : first[axis];
    if (start < -furthest_position || start > furthest_position)
      return fail(where, "the first position must be within 2^62 of 0", std::to_string(start));
    for (std::int64_t i = 0; i < cells; ++i) row[i] = start + i / run % sizes[axis];
  }
  return signed_ids(ids, axes);
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
  if (padding < -1 || padding > furthest_position) {
    return fail("positions from mask", "padding must be a position up to 2^62, or -1 to mark it",
                std::to_string(padding), "use 0 or -1");
  }
  Positions positions;
  positions.batch_ = batch;
  positions.seq_ = *seq - cached;
  std::vector<std::int64_t> ids;
  ids.reserve(static_cast<std::size_t>(batch * positions.seq_));
  for (std::int64_t b = 0; b < batch; ++b) {
    std::int64_t real = 0;
    for (std::int64_t t = 0; t < *seq; ++t) {
      const bool token = mask[static_cast<std::size_t>(b * *seq + t)] != 0;
      if (t >= cached) ids.push_back(token ? real : padding);
      real += token ? 1 : 0;
    }
  }
  if (batch == 1 && !ids.empty() && ids[0] >= 0 && consecutive(ids)) {
    return range(ids[0], positions.seq_);
  }
  positions.own(ids);
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
  if (cu_seqlens[1] == cu_seqlens.back()) return range(0, cu_seqlens.back());  // one sequence
  std::vector<std::int64_t> ids;
  ids.reserve(static_cast<std::size_t>(cu_seqlens.back()));
  Positions positions;
  positions.seq_ = cu_seqlens.back();
  positions.segments_ = memory(positions.seq_);
  for (std::size_t s = 0; s + 1 < cu_seqlens.size(); ++s) {
    for (std::int64_t t = cu_seqlens[s]; t < cu_seqlens[s + 1]; ++t) {
      ids.push_back(t - cu_seqlens[s]);
      positions.segments_[t] = static_cast<std::int64_t>(s);
    }
  }
  positions.own(ids);
  return positions;
}

Expected<Positions> Positions::packed(std::span<const std::int64_t> cu_seqlens,
                                      std::span<const std::int64_t> ids) {
  auto positions = packed(cu_seqlens);
  if (!positions) return positions;
  if (std::ssize(ids) != positions->size()) {
    return fail("packed positions",
                "there must be an id for each of " + std::to_string(positions->size()) + " tokens",
                std::to_string(ids.size()), "cu_seqlens must end at their number");
  }
  auto given = signed_ids(ids);
  if (!given || positions->segments_ == nullptr) return given;
  if (given->contiguous()) given->own(ids);
  given->segments_ = positions->segments_;
  return given;
}

void Positions::own(std::span<const std::int64_t> ids) {
  if (ids.empty()) return;
  ids_ = memory(static_cast<std::int64_t>(ids.size()));
  std::ranges::copy(ids, ids_.get());
  axis_step_ = axes_ == 1 ? 0 : batch_ * seq_;
  batch_step_ = batch_ == 1 ? 0 : seq_;
}

void Positions::copy_row(std::int64_t b, std::int64_t axis, std::int64_t* to) const {
  if (!contiguous()) {
    std::ranges::copy(row(b, axis), to);
  } else {
    std::iota(to, to + seq_, first_);
  }
}

// The same tokens in memory of their own, seen with more axes or sequences, with room for `tokens`.
void Positions::reserve(std::int64_t axes, std::int64_t batch, std::int64_t tokens) {
  const Ids wider = memory(detail::product(detail::product(axes, batch), tokens));
  for (std::int64_t axis = 0; axis < axes; ++axis) {
    for (std::int64_t b = 0; b < batch; ++b)
      copy_row(b, axis, wider.get() + (axis * batch + b) * tokens);
  }
  ids_ = wider;
  axes_ = axes;
  batch_ = batch;
  axis_step_ = axes == 1 ? 0 : batch * tokens;
  batch_step_ = batch == 1 ? 0 : tokens;
  room_ = tokens - seq_;
}

std::int64_t Positions::length() const {
  if (seq_ == 0) return 0;
  if (contiguous()) return first_ > largest - seq_ ? largest : first_ + seq_;
  std::int64_t highest = ids_[0];
  for (std::int64_t axis = 0; axis < axes_; ++axis) {
    for (std::int64_t b = 0; b < batch_; ++b)
      highest = std::max(highest, std::ranges::max(row(b, axis)));
  }
  return std::min(highest, largest - 1) + 1;
}

Positions Positions::slice(std::int64_t sequence, std::int64_t first, std::int64_t count) const {
  Positions part = *this;
  part.seq_ = count;
  part.room_ = 0;
  if (!contiguous() && count > 0) {
    part.ids_ = Ids(ids_, ids_.get() + sequence * batch_step_ + first);
  } else {
    part.ids_.reset();
    part.first_ = first_ + first;
  }
  part.segments_.reset();
  // Where all are 0, they are as those of tokens that were never packed.
  const auto segments = std::span(segments_.get(), static_cast<std::size_t>(segments_ ? seq_ : 0));
  if (std::ranges::any_of(
          segments.subspan(std::min(segments.size(), static_cast<std::size_t>(first)),
                           segments.empty() ? 0 : static_cast<std::size_t>(count)),
          [](std::int64_t segment) { return segment != 0; }))
    part.segments_ = Ids(segments_, segments_.get() + first);
  if (orders_ != nullptr) part.orders_ = Ids(orders_, orders_.get() + first);
  part.batch_ = 1;
  part.batch_step_ = 0;
  return part;
}

Expected<Positions> Positions::select(std::span<const std::int64_t> places) const {
  for (const std::int64_t place : places) {
    if (place >= 0 && place < seq_) continue;
    return fail("select positions", "places must lie in [0, " + std::to_string(seq_) + ")",
                std::to_string(place));
  }
  const auto count = static_cast<std::int64_t>(places.size());
  if (contiguous() && segments_ == nullptr && consecutive(places))
    return range(places.empty() ? first_ : first_ + places[0], count);
  Positions some;
  some.axes_ = axes_;
  some.batch_ = batch_;
  some.seq_ = count;
  std::vector<std::int64_t> ids;
  ids.reserve(static_cast<std::size_t>(axes_ * batch_ * count));
  for (std::int64_t axis = 0; axis < axes_; ++axis) {
    for (std::int64_t b = 0; b < batch_; ++b)
      for (const std::int64_t place : places) ids.push_back(at(place, b, axis));
  }
  some.own(ids);
  const auto taken = [&](auto&& of) {
    Ids all = memory(count);
    std::ranges::transform(places, all.get(), of);
    return all;
  };
  if (segments_ != nullptr)
    some.segments_ = taken([this](std::int64_t place) { return segment(place); });
  if (axes_ > 1) some.orders_ = taken([this](std::int64_t place) { return order(place); });
  return some;
}

Expected<void> Positions::append(const Positions& more) {
  constexpr std::string_view where = "positions append";
  for (const auto& [what, a, b] :
       {std::tuple{"axes", axes_, more.axes_}, {"sequences", batch_, more.batch_}}) {
    if (a == b || a == 1 || b == 1) continue;
    return fail(where, std::string(what) + " must be as many on both sides, or one on one of them",
                std::to_string(a) + " and " + std::to_string(b),
                "check which plan the positions belong to");
  }
  if (segments_ != nullptr || more.segments_ != nullptr) {
    return fail(where, "positions must be of one text", "packed sequences",
                "give packed() the boundaries of all");
  }
  if (selected() || more.selected())
    return fail(where, "positions must be of whole texts", "places selected of one",
                "append first, and select of the whole");
  if (more.seq_ == 0) return {};
  if (seq_ == 0) {
    *this = more;
    return {};
  }
  const std::int64_t count = more.seq_;
  if (contiguous() && more.contiguous() && more.first_ == detail::sum(first_, seq_)) {
    seq_ += count;
    return {};
  }
  const std::int64_t axes = std::max(axes_, more.axes_), batch = std::max(batch_, more.batch_);
  // Copies and slices of these tokens count as users of the memory, and keep it as it is.
  if (ids_.use_count() != 1 || room_ < count || axes != axes_ || batch != batch_) {
    const std::int64_t most = most_ids / detail::product(axes, batch);
    if (count > most - seq_) {
      return fail(where, "positions that are no range must be 2^28 or fewer",
                  std::to_string(detail::sum(seq_, count)) + " tokens", "start a new sequence");
    }
    reserve(axes, batch, std::min(most, std::max(2 * seq_, seq_ + count)));
  }
  for (std::int64_t axis = 0; axis < axes; ++axis) {
    for (std::int64_t b = 0; b < batch; ++b)
      more.copy_row(b, axis, ids_.get() + axis * axis_step_ + b * batch_step_ + seq_);
  }
  seq_ += count;
  room_ -= count;
  return {};
}

bool Positions::operator==(const Positions& other) const {
  if (axes_ != other.axes_ || batch_ != other.batch_ || seq_ != other.seq_ ||
      contiguous() != other.contiguous() || (contiguous() && first_ != other.first_)) {
    return false;
  }
  for (std::int64_t t = 0; t < seq_ && segments_ != other.segments_; ++t) {
    if (segment(t) != other.segment(t)) return false;
  }
  for (std::int64_t t = 0; t < seq_ && orders_ != other.orders_; ++t) {
    if (order(t) != other.order(t)) return false;
  }
  for (std::int64_t axis = 0; axis < axes_ && !contiguous(); ++axis) {
    for (std::int64_t b = 0; b < batch_; ++b) {
      if (!std::ranges::equal(row(b, axis), other.row(b, axis))) return false;
    }
  }
  return true;
}

Expected<Positions> Positions::shifted(std::int64_t offset) const {
  Positions moved = *this;
  const auto move = [offset](std::int64_t& id) {
    if (id == -1) return true;  // padding marked by from_mask stands nowhere
    return !__builtin_add_overflow(id, offset, &id) && id >= 0 && id <= furthest_position;
  };
  bool ok = true;
  if (contiguous()) {
    std::int64_t end = 0;
    ok = !__builtin_add_overflow(first_, offset, &moved.first_) && moved.first_ >= 0 &&
         !__builtin_add_overflow(moved.first_, std::max<std::int64_t>(seq_ - 1, 0), &end) &&
         end <= furthest_position;
  } else {
    moved.reserve(axes_, batch_, seq_);
    ok = std::ranges::all_of(
        std::span(moved.ids_.get(), static_cast<std::size_t>(axes_ * batch_ * seq_)), move);
  }
  if (!ok) {
    return fail("shifted positions", "every position must stay within 0 and 2^62",
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
