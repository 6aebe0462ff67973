// Vectors by distance of several lists (Relative::further_rows): a query's products with the
// table's rows, summed for each key.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/attention/row_bias.h"

namespace posenc::detail {

// On a grid keys follow each other by rows of the picture: along one of them a list either stays at
// its row or goes on by one, so that a query's sums are runs of its products, copied by vectors.
// Where positions have no such order, runs are single keys.
template <class T>
class SummedRows {
 public:
  SummedRows(const Relative& part, std::int64_t most_keys)
      : part_(part),
        places_(scratch_.take<Place>(part.lists())),
        run_end_(scratch_.take<std::int64_t>(most_keys)) {
    std::int64_t listed = 0;
    for (std::int64_t list = 0; list < part.lists(); ++list)
      listed += std::ssize(part.list(list).row);
    entries_ = scratch_.take<Entry>(listed);
    Entry* to = entries_;
    for (std::int64_t list = 0; list < part.lists(); ++list) {
      read(part.list(list), to);
      to += std::ssize(part.list(list).row);
    }
  }

  void begin(const BiasBlock& block) {
    block_ = &block;
    block.keys.find_runs(block.key_count, run_end_);
  }

  // to[key] = Σ over lists of the query's products, for the keys that it sees. `products` are of
  // the table's rows from the last to the first, row_lanes numbers behind them; whole vectors of
  // `to` are written.
  void write(const T* products, std::int64_t query, const VisibleRange& seen, T* to) {
    for (std::int64_t j = seen.begin; j < seen.end;) {
      const std::int64_t end = std::min(run_end_[j], seen.end);
      const std::int64_t distance = block_->queries.position(query) - block_->keys.position(j);
      for (std::int64_t passed = 0, count; j < end; j += count, passed += count) {
        count = find(distance - passed, end - j);
        T stays = 0;
        const T* goes_on = nullptr;
        for (std::int64_t list = 0; list < part_.lists(); ++list) {
          const Place& place = places_[list];
          if (place.at < 0) continue;
          if (!place.goes_on)
            stays += products[place.at];
          else if (goes_on == nullptr)
            goes_on = products + place.at;
        }
        fill(to + j, count, stays, goes_on);
        // What lies behind a run is written next, or room.
        for (std::int64_t list = 0; list < part_.lists(); ++list) {
          const Place& place = places_[list];
          if (place.at >= 0 && place.goes_on && products + place.at != goes_on)
            add(to + j, count, products + place.at);
        }
      }
    }
  }

 private:
  // Of a list, from its longest distance on: where the product of its row stands, below 0 nowhere;
  // and for how many distances it holds: `run` of them the same, or −run each one further.
  struct Entry {
    std::int32_t at, run;
  };
  struct Place {
    std::int64_t at;
    bool goes_on;
  };

  void read(const DistanceRows& rows, Entry* to) const {
    const std::int64_t listed = std::ssize(rows.row);
    const auto last_row = static_cast<std::int32_t>(part_.row_count - 1);
    std::int32_t same = 0, further = 0;
    for (std::int64_t x = listed - 1; x >= 0; --x) {
      const std::int32_t row = rows.row[static_cast<std::size_t>(listed - 1 - x)];
      const std::int32_t at = row == no_row ? -1 : last_row - row;
      const bool more = x + 1 < listed;
      same = more && to[x + 1].at == at ? same + 1 : 1;
      further = more && at >= 0 && to[x + 1].at == at + 1 ? further + 1 : 1;
      to[x] = {at, further > same ? -further : same};
    }
  }
  // The places of all lists at a distance, and for how many of the next `most` shorter ones they
  // hold.
  std::int64_t find(std::int64_t distance, std::int64_t most) {
    const Entry* entries = entries_;
    for (std::int64_t list = 0; list < part_.lists(); ++list) {
      const DistanceRows& rows = part_.list(list);
      const std::int64_t listed = std::ssize(rows.row), x = rows.last() - distance;
      const Entry& entry = entries[std::clamp<std::int64_t>(x, 0, listed - 1)];
      const bool goes_on = x >= 0 && x < listed && entry.run < 0;
      places_[list] = {entry.at, goes_on};
      // The ends hold for all beyond.
      if (x < 0)
        most = std::min(most, -x);
      else if (goes_on || x + entry.run < listed)
        most = std::min<std::int64_t>(most, std::abs(entry.run));
      entries += listed;
    }
    return most;
  }
  static void fill(T* to, std::int64_t count, T stays, const T* goes_on) {
    for (std::int64_t c = 0; c < count; c += row_lanes)
      for (std::int64_t lane = c; lane < c + row_lanes; ++lane)
        to[lane] = goes_on == nullptr ? stays : stays + goes_on[lane];
  }
  static void add(T* to, std::int64_t count, const T* goes_on) {
    for (std::int64_t c = 0; c < count; c += row_lanes)
      for (std::int64_t lane = c; lane < c + row_lanes; ++lane) to[lane] += goes_on[lane];
  }

  Scratch scratch_;
  const Relative& part_;
  Place* const places_;          // [list]
  std::int64_t* const run_end_;  // [key]: where the run of keys that follow each other ends
  Entry* entries_ = nullptr;     // [list][distance], the longest first
  const BiasBlock* block_ = nullptr;
};

}  // namespace posenc::detail
