// Sums of piecewise linear functions over positions in even steps. What an indexer or a window lets
// a query see is min(q + 1, w); a chunk is q mod c, whose sum is one of floors (a Euclidean walk,
// logarithmic in the numbers).
#include "src/context_parallel/work.h"

#include <algorithm>
#include <utility>

namespace posenc::layout::detail {
namespace {

using Int = std::int64_t;

// Numbers first, first + step, …, `count` of them; step is 0 or more.
struct Steps {
  Int first, step, count;

  Int sum() const { return count * first + step * (count * (count - 1) / 2); }
  Steps shifted(Int by) const { return {first + by, step, count}; }
  Steps cut(Int begin, Int end) const {
    return {first + begin * step, step, std::max<Int>(end - begin, 0)};
  }
  // How many are below `bound`.
  Int below(Int bound) const {
    if (count == 0 || first >= bound) return 0;
    if (step == 0) return count;
    return std::min(count, (bound - first + step - 1) / step);
  }
  // q to length − 1 − q, ascending again.
  Steps mirrored(Int length) const {
    return count == 0 ? *this : Steps{length - 1 - (first + (count - 1) * step), step, count};
  }
};

Int capped(const Steps& numbers, Int cap) {
  const Int small = numbers.below(cap);
  return numbers.cut(0, small).sum() + (numbers.count - small) * cap;
}

// Σ ⌊x / m⌋ over numbers of 0 and above.
Int floors(const Steps& numbers, Int m) {
  Int n = numbers.count, a = numbers.step, b = numbers.first, sum = 0;
  while (n > 0) {
    sum += n * (n - 1) / 2 * (a / m) + n * (b / m);
    a %= m;
    b %= m;
    const Int end = a * n + b;
    if (end < m) break;
    n = end / m;
    b = end % m;
    std::swap(a, m);
  }
  return sum;
}

// Σ min(⌊x / m⌋, cap).
Int capped_floors(const Steps& numbers, Int m, Int cap) {
  const Int small = cap > numbers.first / m ? numbers.below(cap * m) : 0;
  return floors(numbers.cut(0, small), m) + (numbers.count - small) * cap;
}

}  // namespace

Int Seen::sum(Int first, Int step, Int count) const {
  const Steps queries{first, step, count};
  if (count == 0) return 0;
  if (chunk > 0) {
    const Int begun = queries.sum() - chunk * floors(queries, chunk);  // Σ q mod chunk
    if (causal) return begun + count;
    const Int whole = queries.below(length / chunk * chunk);
    return whole * chunk + (count - whole) * (length % chunk);
  }
  if (compressed > 0) {
    const Int near = capped(queries, before) + count;
    const Int most = most_keys > 0 ? most_keys : length;
    return near + capped_floors(queries.shifted(1), compressed, most);
  }
  if (most_keys > 0) return capped(queries.shifted(1), std::min(most_keys, before + 1));
  const Int back = capped(queries, before) + count;
  return causal ? back : back + capped(queries.mirrored(length), after);
}

Int Seen::at(Int query) const { return sum(query, 1, 1); }

std::vector<Int> pairs_of(const Layout& layout, const Seen& seen) {
  std::vector<Int> pairs;
  for (Int rank = 0; rank < layout.ranks(); ++rank) {
    Int sum = 0;
    for (const Layout::Stretch& stretch : layout.stretches(rank)) {
      if (stretch.count == 0) continue;
      const Int runs = (stretch.count + stretch.run - 1) / stretch.run;
      const Int last = stretch.count - (runs - 1) * stretch.run;  // of the last run
      if (runs <= stretch.run) {
        for (Int r = 0; r < runs; ++r)
          sum += seen.sum(stretch.first + r * stretch.step, 1, r + 1 < runs ? stretch.run : last);
      } else {
        for (Int at = 0; at < stretch.run; ++at)
          sum += seen.sum(stretch.first + at, stretch.step, at < last ? runs : runs - 1);
      }
    }
    pairs.push_back(sum);
  }
  return pairs;
}

namespace {

struct Span {
  Int first, last;
};

// Keys that the queries of [first, last) see, in one piece.
Span keys_of(const Seen& seen, Int first, Int last) {
  if (seen.chunk > 0)
    return {first / seen.chunk * seen.chunk,
            seen.causal ? last : std::min(seen.length, ((last - 1) / seen.chunk + 1) * seen.chunk)};
  const bool from_start = seen.most_keys > 0 && seen.compressed == 0;
  return {from_start ? 0 : std::max<Int>(first - seen.before, 0),
          seen.causal ? last : std::min(seen.length, last + seen.after)};
}

// Tokens in the union of what runs of a stretch see, where the pieces overlap or touch alike.
void add_spans(const Seen& seen, const Layout::Stretch& stretch, std::vector<Span>& spans) {
  const Int runs = (stretch.count + stretch.run - 1) / stretch.run;
  const Int end =
      stretch.first + (runs - 1) * stretch.step + (stretch.count - (runs - 1) * stretch.run);
  // Pieces that touch their neighbours are one.
  const Int gap = stretch.step - stretch.run;
  const bool picks_all = seen.most_keys > 0 && seen.compressed == 0;
  if (runs == 1 || picks_all ||
      (seen.chunk == 0 && seen.before + (seen.causal ? 0 : seen.after) >= gap)) {
    spans.push_back(keys_of(seen, stretch.first, end));
    return;
  }
  for (Int r = 0; r < runs; ++r) {
    const Int first = stretch.first + r * stretch.step;
    const Span piece = keys_of(seen, first, std::min(first + stretch.run, end));
    if (!spans.empty() && piece.first <= spans.back().last && piece.first >= spans.back().first)
      spans.back().last = std::max(spans.back().last, piece.last);
    else
      spans.push_back(piece);
  }
}

}  // namespace

Visited visited(const Layout& layout, const Seen& seen) {
  Visited out;
  std::vector<Span> spans;
  for (Int rank = 0; rank < layout.ranks(); ++rank) {
    spans.clear();
    Int last_query = -1;
    for (const Layout::Stretch& stretch : layout.stretches(rank)) {
      if (stretch.count == 0) continue;
      add_spans(seen, stretch, spans);
      const Int runs = (stretch.count + stretch.run - 1) / stretch.run;
      last_query = std::max(last_query, stretch.first + (runs - 1) * stretch.step +
                                            (stretch.count - (runs - 1) * stretch.run) - 1);
    }
    std::ranges::sort(spans, {}, &Span::first);
    Int covered = 0, until = 0;
    for (const Span& span : spans) {
      covered += std::max<Int>(span.last - std::max(span.first, until), 0);
      until = std::max(until, span.last);
    }
    out.tokens += static_cast<double>(covered - layout.size(rank));
    if (seen.compressed > 0 && last_query >= 0) {
      const std::int64_t all = (last_query + 1) / seen.compressed,
                         own = layout.size(rank) / seen.compressed;
      out.compressed += static_cast<double>(std::max<std::int64_t>(all - own, 0));
    }
  }
  return out;
}

}  // namespace posenc::layout::detail
