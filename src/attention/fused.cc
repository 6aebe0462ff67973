#include "src/attention/fused.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "src/attention/tiles.h"
#include "src/attention/visible.h"
#include "src/kernels/by_distance.h"

namespace posenc::detail {
namespace {

using Floats = std::vector<float>;
using Index = std::int64_t;

constexpr Index block_keys = 256;            // keys that stand ready at a time
constexpr Index part_rows = 96 * tile_rows;  // about as many queries meet them before the next
constexpr Index alignment = 16;              // floats of the longest vector
constexpr float lowest = -std::numeric_limits<float>::infinity();

Index rounded_up(Index count, Index to) { return (count + to - 1) / to * to; }
std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// Where some tokens of a sequence stand: for biases, and in the order that the mask goes by.
class Places {
 public:
  Index lowest_order = 0, highest_order = 0, lowest_segment = 0, highest_segment = 0;
  bool consecutive = true;  // each position and order one above the last, all of one segment

  void read(const Positions& positions, bool by_position, Index order_offset, Index sequence,
            Index first, Index count) {
    first_position_ = positions.at(first, sequence);
    first_order_ = by_position ? first_position_ : order_offset + first;
    lowest_segment = highest_segment = positions.segment(first);
    position_.clear();
    order_.clear();
    segment_.clear();
    consecutive = positions.contiguous();
    if (consecutive) {
      lowest_order = first_order_;
      highest_order = first_order_ + count - 1;
      return;
    }
    consecutive = true;
    for (Index t = 0; t < count; ++t) {
      position_.push_back(positions.at(first + t, sequence));
      order_.push_back(by_position ? position_.back() : order_offset + first + t);
      segment_.push_back(positions.segment(first + t));
      consecutive = consecutive && position_.back() == first_position_ + t &&
                    order_.back() == first_order_ + t && segment_.back() == segment_.front();
    }
    const auto orders = std::ranges::minmax(order_);
    const auto segments = std::ranges::minmax(segment_);
    lowest_order = orders.min, highest_order = orders.max;
    lowest_segment = segments.min, highest_segment = segments.max;
  }
  Index position(Index t) const {
    return position_.empty() ? first_position_ + t : position_[at(t)];
  }
  Index order(Index t) const { return order_.empty() ? first_order_ + t : order_[at(t)]; }
  Index segment(Index t) const { return segment_.empty() ? lowest_segment : segment_[at(t)]; }

 private:
  Index first_position_ = 0, first_order_ = 0;
  std::vector<Index> position_, order_, segment_;  // empty for a range
};

// How much of a block of keys a query sees.
struct Sight {
  Index begin = 0, end = 0;
  bool holes = false;  // between them some are hidden
};

class Part {
 public:
  explicit Part(const AttendJob& job)
      : job_(job),
        in_(*job.in),
        plan_(*job.plan),
        mask_(*job.mask),
        head_dim_(in_.q.shape[3]),
        step_(rounded_up(head_dim_, alignment)),
        group_(in_.q.shape[1] / in_.k.shape[1]),
        by_position_(job.queries->axes() == 1 && job.keys->axes() == 1) {
    const Index rows = group_ * job.part;
    short_ = rows < 2 * tile_rows;
    turned_ = plan_;
    turned_.bias.reset();
    turned_.relative.reset();
    turned_.logits = {};
    turned_.valid.reset();
    q_.resize(at(rows * step_));
    out_.resize(at(rows * step_));
    peak_.resize(at(rows));
    sum_.resize(at(rows));
    scale_.resize(at(job.part));
    k_.resize(at(block_keys * step_));
    v_.resize(at(block_keys * step_));
    panels_.resize(at(rounded_up(block_keys, panel_width()) * head_dim_));
    weights_.resize(at(tile_rows * row_step_));
    bias_rows_.resize(at(tile_rows * row_step_));
    hide_rows_.resize(at(tile_rows * row_step_));
    window_.resize(at(in_.q.shape[1] / in_.k.shape[1] * (job.part + block_keys + alignment)));
    if (in_.relative.rows != nullptr) {
      raw_q_.resize(q_.size());
      const Index rows_listed = plan_.relative->row_count;
      if (in_.relative.key) query_rows_.resize(at(rows * rows_listed));
      if (in_.relative.value) value_weights_.resize(at(rows * rows_listed));
      if (in_.relative.query) {
        raw_k_.resize(at(block_keys * step_));
        key_rows_.resize(at(group_ * block_keys * rows_listed));
      }
      for (const auto& [table, copy] : {std::pair{&in_.relative.query, &query_table_},
                                        {&in_.relative.key, &key_table_},
                                        {&in_.relative.value, &value_table_}}) {
        if (*table) *copy = dense(*table);
      }
    }
  }

  void operator()(Index index) {
    const Index kv_heads = in_.k.shape[1];
    sequence_ = index / (kv_heads * job_.parts);
    key_head_ = index / job_.parts % kv_heads;
    first_query_ = index % job_.parts * job_.part;
    queries_ = std::min(job_.part, in_.q.shape[2] - first_query_);
    read_queries();
    const Index keys = in_.k.shape[2];
    for (Index first = 0; first < keys; first += block_keys) {
      first_key_ = first;
      count_ = std::min(block_keys, keys - first);
      key_places_.read(*job_.keys, by_position_, 0, sequence_, first, count_);
      if (!some_visible()) continue;
      read_keys();
      meet();
    }
    write();
  }

 private:
  Index head(Index row) const { return key_head_ * group_ + row / queries_; }

  // A plan that turns one head: its own frequencies where heads differ.
  Plan turning(Index h) const {
    Plan plan = turned_;
    if (plan.rotate && plan.rotate->heads > 1) {
      Rotate& rotate = *plan.rotate;
      const Index per_head = rotate.axes * rotate.pairs();
      const auto from = rotate.frequency.begin() + h * per_head;
      rotate.frequency = std::vector<double>(from, from + per_head);
      rotate.heads = 1;
    }
    return plan;
  }

  void turn(Floats& rows, Index first_row, Index count, Index h, const Positions& positions,
            Side side) {
    if (!plan_.rotate || (side == Side::value && !plan_.rotate->values)) return;
    Tensor view = Tensor::dense(rows.data() + first_row * step_, {1, 1, count, head_dim_});
    view.stride[2] = step_;
    // The arguments were checked as a whole.
    if (auto ok = rotate(turning(h), view, positions, side, view, Threads{1}); !ok) std::abort();
  }

  Floats dense(const Tensor& table) const {
    Floats copy;
    copy.reserve(at(table.size()));
    for (Index a = 0; a < table.shape[0]; ++a) {
      for (Index b = 0; b < table.shape[1]; ++b) {
        for (Index c = 0; c < table.shape[2]; ++c)
          copy.push_back(static_cast<float>(table.get(table.offset(a, b, c))));
      }
    }
    return copy;
  }
  // A head's vector of a dense copy.
  const float* vector(const Floats& copy, const Tensor& table, Index h, Index row) const {
    return copy.data() + ((table.shape[0] == 1 ? 0 : h) * table.shape[1] + row) * head_dim_;
  }

  void read_queries() {
    const Index order_offset = in_.k.shape[2] - in_.q.shape[2];
    query_places_.read(*job_.queries, by_position_, order_offset, sequence_, first_query_,
                       queries_);
    const Positions positions = job_.queries->slice(sequence_, first_query_, queries_);
    const Index rows = group_ * queries_;
    for (Index i = 0; i < queries_; ++i) {
      scale_[at(i)] = static_cast<float>(plan_.logits.query_scale(query_places_.position(i)) /
                                         std::sqrt(static_cast<double>(head_dim_)));
    }
    for (Index g = 0; g < group_; ++g) {
      const Index h = key_head_ * group_ + g;
      load_rows(in_.q, in_.q.offset(sequence_, h, first_query_), queries_, head_dim_,
                q_.data() + g * queries_ * step_, step_);
    }
    if (!raw_q_.empty()) std::copy_n(q_.begin(), rows * step_, raw_q_.begin());
    for (Index g = 0; g < group_; ++g)
      turn(q_, g * queries_, queries_, key_head_ * group_ + g, positions, Side::query);
    for (Index row = 0; row < rows; ++row) {
      const float scale = scale_[at(row % queries_)];
      for (Index c = 0; c < head_dim_; ++c) {
        q_[at(row * step_ + c)] *= scale;
        if (!raw_q_.empty()) raw_q_[at(row * step_ + c)] *= scale;
      }
    }
    std::fill_n(out_.begin(), rows * step_, 0.0f);
    std::fill_n(peak_.begin(), rows, lowest);
    std::fill_n(sum_.begin(), rows, 0.0f);
    if (in_.relative.rows == nullptr) return;
    const Index listed = plan_.relative->row_count;
    std::fill(value_weights_.begin(), value_weights_.end(), 0.0f);
    for (Index row = 0; row < rows && in_.relative.key; ++row) {
      for (Index r = 0; r < listed; ++r) {
        query_rows_[at(row * listed + r)] =
            product(raw_q_.data() + row * step_, vector(key_table_, in_.relative.key, head(row), r),
                    head_dim_);
      }
    }
  }

  // Whether a query of the part may see a key of the block; a quick look.
  bool some_visible() const {
    const Places &q = query_places_, &k = key_places_;
    if (k.highest_segment < q.lowest_segment || k.lowest_segment > q.highest_segment) return false;
    if (k.lowest_order < mask_.prefix) return true;
    if (mask_.causal && k.lowest_order > q.highest_order) return false;
    return mask_.window == 0 || (q.lowest_order - k.highest_order < mask_.window &&
                                 k.lowest_order - q.highest_order < mask_.window);
  }

  void read_keys() {
    const Tensor &k = in_.k, &v = in_.v;
    const Index from = k.offset(sequence_, key_head_, first_key_);
    const Positions positions =
        plan_.rotate ? job_.keys->slice(sequence_, first_key_, count_) : Positions();
    const auto stands_ready = [this](const Tensor& x) {
      return x.dtype == DType::f32 && x.stride[3] == 1 && head_dim_ % alignment == 0;
    };
    if (stands_ready(k) && !plan_.rotate) {
      k_rows_ = static_cast<const float*>(k.data) + from;
      k_step_ = k.stride[2];
    } else {
      load_rows(k, from, count_, head_dim_, k_.data(), step_);
      if (!raw_k_.empty()) raw_k_ = k_;
      turn(k_, 0, count_, key_head_, positions, Side::key);
      k_rows_ = k_.data();
      k_step_ = step_;
    }
    if (!short_) make_panels(k_rows_, k_step_, count_, head_dim_, panels_.data());
    const Index v_from = v.offset(sequence_, key_head_, first_key_);
    if (stands_ready(v) && !(plan_.rotate && plan_.rotate->values)) {
      v_rows_ = static_cast<const float*>(v.data) + v_from;
      v_step_ = v.stride[2];
    } else {
      load_rows(v, v_from, count_, head_dim_, v_.data(), step_);
      turn(v_, 0, count_, key_head_, positions, Side::value);
      v_rows_ = v_.data();
      v_step_ = step_;
    }
    finite_.reset();
    make_window();
    if (!in_.relative.query) return;
    const Index listed = plan_.relative->row_count;
    if (k_rows_ != k_.data()) load_rows(k, from, count_, head_dim_, raw_k_.data(), step_);
    for (Index g = 0; g < group_; ++g) {
      for (Index j = 0; j < count_; ++j) {
        for (Index r = 0; r < listed; ++r) {
          key_rows_[at((g * block_keys + j) * listed + r)] = product(
              raw_k_.data() + j * step_,
              vector(query_table_, in_.relative.query, key_head_ * group_ + g, r), head_dim_);
        }
      }
    }
  }

  float bias_of(Index h, Index distance) const {
    // A distance that the table does not reach is that of a hidden key.
    return static_cast<float>(bias_at(*plan_.bias, h, distance).value_or(0));
  }

  // Where queries and keys both follow each other, biases by distance serve every pair of a diagonal.
  void make_window() {
    windowed_ = query_places_.consecutive && key_places_.consecutive;
    if (!windowed_) return;
    const Index size = queries_ + count_ - 1;
    const Index longest = query_places_.position(queries_ - 1) - key_places_.position(0);
    if (in_.relative.rows != nullptr) {
      row_window_.resize(at(size));
      run_end_.resize(at(size));
      for (Index x = size - 1; x >= 0; --x) {
        row_window_[at(x)] =
            static_cast<std::int32_t>(in_.relative.rows->at(longest - x).value_or(0));
        const bool goes_on = x + 1 < size && row_window_[at(x)] == row_window_[at(x + 1)];
        run_end_[at(x)] = goes_on ? run_end_[at(x + 1)] : x + 1;
      }
    }
    if (!plan_.bias) return;
    window_step_ = size + alignment;
    for (Index g = 0; g < group_; ++g) {
      for (Index x = 0; x < size; ++x)
        window_[at(g * window_step_ + x)] = bias_of(key_head_ * group_ + g, longest - x);
    }
  }

  Sight sight(Index query) const {
    const Places &q = query_places_, &k = key_places_;
    Sight seen{0, count_};
    if (!k.consecutive || mask_.keep != nullptr || mask_.prefix > 0 || mask_.chunk > 0) {
      const auto visible_key = [&](Index j) {
        return visible(mask_, *job_.queries, *job_.keys, sequence_, first_query_ + query,
                       first_key_ + j);
      };
      while (seen.begin < seen.end && !visible_key(seen.begin)) ++seen.begin;
      while (seen.begin < seen.end && !visible_key(seen.end - 1)) --seen.end;
      for (Index j = seen.begin; j < seen.end && !seen.holes; ++j) seen.holes = !visible_key(j);
      return seen;
    }
    if (k.segment(0) != q.segment(query)) return {};
    // Sums that might overflow are of distances beyond the block, where nothing is cut.
    const Index ahead = q.order(query) - k.order(0), window = mask_.window;
    if (mask_.causal && ahead < count_) seen.end = std::max<Index>(ahead + 1, 0);
    if (window > 0 && ahead >= window) seen.begin = ahead - window + 1;
    if (window > 0 && (ahead < 0 || (ahead < count_ && window < count_)))
      seen.end = std::min(seen.end, ahead + window);
    if (seen.begin >= seen.end) return {};
    return seen;
  }

  // Calls act(begin, end, row of the tables by distance) for the runs of keys at one such row.
  void for_runs(Index query, Index begin, Index end, const auto& act) const {
    const Index x0 = queries_ - 1 - query, position = query_places_.position(query);
    for (Index j = begin, next; j < end; j = next) {
      if (windowed_) {
        next = std::min(end, run_end_[at(x0 + j)] - x0);
        act(j, next, row_window_[at(x0 + j)]);
      } else {
        next = j + 1;
        act(j, next, in_.relative.rows->at(position - key_places_.position(j)).value_or(0));
      }
    }
  }

  // What position adds to a row's logits, for the keys that it sees.
  void add_up(Index row, const Sight& seen, float* to) {
    const Index query = row % queries_, g = row / queries_, h = head(row);
    const float scale = scale_[at(query)];
    const auto* slopes = plan_.bias ? std::get_if<Slopes>(&*plan_.bias) : nullptr;
    const float factor = slopes != nullptr && slopes->before_scale ? scale : 1.0f;
    std::fill(to, to + count_, 0.0f);
    if (in_.relative.rows != nullptr) {
      const Index listed = plan_.relative->row_count;
      for_runs(query, seen.begin, seen.end, [&](Index begin, Index end, Index r) {
        if (in_.relative.key) std::fill(to + begin, to + end, query_rows_[at(row * listed + r)]);
        for (Index j = begin; j < end && in_.relative.query; ++j)
          to[j] += key_rows_[at((g * block_keys + j) * listed + r)] * scale;
      });
    }
    for (Index j = seen.begin; j < seen.end && plan_.bias; ++j) {
      const Index distance = query_places_.position(query) - key_places_.position(j);
      to[j] += factor * bias_of(h, distance);
    }
  }

  void meet() {
    const Index rows = group_ * queries_;
    sights_.resize(at(queries_));
    for (Index i = 0; i < queries_; ++i) sights_[at(i)] = sight(i);
    for (Index first = 0; first < rows; first += tile_rows) {
      Tile tile;
      tile.rows = static_cast<int>(std::min<Index>(tile_rows, rows - first));
      meet(first, tile);
    }
  }

  void meet(Index first, Tile& tile) {
    tile.first = block_keys;
    for (int r = 0; r < tile.rows; ++r) {
      const Index row = first + r, query = row % queries_;
      const Sight& seen = sights_[at(query)];
      tile.begin[r] = seen.begin;
      tile.end[r] = seen.end;
      tile.peak[r] = &peak_[at(row)];
      tile.sum[r] = &sum_[at(row)];
      if (seen.begin >= seen.end) continue;
      tile.first = std::min(tile.first, seen.begin);
      tile.last = std::max(tile.last, seen.end);
      describe(row, seen, tile, r);
    }
    if (tile.first >= tile.last) return;
    // A weight of zero hides no NaN: rows that see less than others ask.
    for (int r = 0; r < tile.rows; ++r) {
      if (tile.begin[r] != tile.first || tile.end[r] != tile.last || tile.hide[r] != nullptr)
        tile.v_finite = values_finite();
    }
    const Index width = panel_width();
    tile.first = tile.first / width * width;
    tile.last = rounded_up(tile.last, width);
    for (int r = 0; r < tile.rows; ++r) {
      tile.begin[r] = std::clamp(tile.begin[r], tile.first, tile.last);
      tile.end[r] = std::clamp(tile.end[r], tile.begin[r], tile.last);
    }
    tile.head_dim = head_dim_;
    tile.q = q_.data() + first * step_;
    tile.q_step = step_;
    tile.panels = short_ ? nullptr : panels_.data();
    tile.k = k_rows_;
    tile.k_step = k_step_;
    tile.v = v_rows_;
    tile.v_step = v_step_;
    tile.values = count_;
    tile.out = out_.data() + first * step_;
    tile.out_step = step_;
    tile.weights = weights_.data();
    tile.weights_step = row_step_;
    attend_tile(tile);
    if (in_.relative.value) weigh_values(first, tile);
  }

  bool values_finite() {
    if (!finite_) finite_ = all_finite(v_rows_, v_step_, count_, head_dim_);
    return *finite_;
  }

  void describe(Index row, const Sight& seen, Tile& tile, int r) {
    const Index query = row % queries_;
    tile.bias_factor[r] = 1;
    if (plan_.bias && in_.relative.rows == nullptr && windowed_) {
      const auto* slopes = std::get_if<Slopes>(&*plan_.bias);
      if (slopes != nullptr && slopes->before_scale) tile.bias_factor[r] = scale_[at(query)];
      tile.bias[r] = window_.data() + row / queries_ * window_step_ + (queries_ - 1 - query);
    } else if (in_.relative.rows != nullptr || plan_.bias) {
      float* const to = bias_rows_.data() + r * row_step_;
      add_up(row, seen, to);
      tile.bias[r] = to;
    }
    if (!seen.holes) return;
    float* const hide = hide_rows_.data() + r * row_step_;
    for (Index j = seen.begin; j < seen.end; ++j) {
      hide[j] =
          visible(mask_, *job_.queries, *job_.keys, sequence_, first_query_ + query, first_key_ + j)
              ? 0.0f
              : -1.0f;
    }
    tile.hide[r] = hide;
  }

  void weigh_values(Index first, const Tile& tile) {
    const Index listed = plan_.relative->row_count;
    for (int r = 0; r < tile.rows; ++r) {
      const Index row = first + r;
      float* const to = value_weights_.data() + row * listed;
      if (tile.shrink[r] != 1) {
        for (Index i = 0; i < listed; ++i) to[i] *= tile.shrink[r];
      }
      for_runs(row % queries_, tile.begin[r], std::min(tile.end[r], count_),
               [&](Index begin, Index end, Index listed_row) {
                 float sum = 0;
                 if (begin == tile.begin[r] && end == tile.end[r]) {
                   sum = tile.added[r];
                 } else {
                   for (Index j = begin; j < end; ++j) sum += weights_[at(r * row_step_ + j)];
                 }
                 to[listed_row] += sum;
               });
    }
  }

  void write() {
    const Index rows = group_ * queries_;
    for (Index row = 0; row < rows; ++row) {
      const float sum = sum_[at(row)];
      if (sum == 0) continue;
      for (Index c = 0; c < head_dim_; ++c) out_[at(row * step_ + c)] /= sum;
    }
    if (plan_.rotate && plan_.rotate->values) {
      const Positions positions = job_.queries->slice(sequence_, first_query_, queries_);
      for (Index g = 0; g < group_; ++g) {
        Tensor view =
            Tensor::dense(out_.data() + g * queries_ * step_, {1, 1, queries_, head_dim_});
        view.stride[2] = step_;
        if (auto ok = rotate_inverse(turning(key_head_ * group_ + g), view, positions, Side::value,
                                     view, Threads{1});
            !ok)
          std::abort();
      }
    }
    const Index listed = plan_.relative ? plan_.relative->row_count : 0;
    for (Index row = 0; row < rows; ++row) {
      float* const out = out_.data() + row * step_;
      for (Index r = 0; in_.relative.value && r < listed; ++r) {
        const float weight = value_weights_[at(row * listed + r)];
        if (weight == 0) continue;
        const float* const value = vector(value_table_, in_.relative.value, head(row), r);
        for (Index c = 0; c < head_dim_; ++c) out[c] += weight / sum_[at(row)] * value[c];
      }
      const Index to = in_.out.offset(sequence_, head(row), first_query_ + row % queries_);
      for (Index c = 0; c < head_dim_; ++c)
        in_.out.set(to + c * in_.out.stride[3], static_cast<double>(out[c]));
    }
  }

  const AttendJob& job_;
  const AttendArguments& in_;
  const Plan& plan_;
  const Mask& mask_;
  const Index head_dim_, step_, group_;
  const bool by_position_;
  const Index row_step_ = block_keys + 64;
  bool short_ = false;  // too few queries to be worth panels of keys
  Plan turned_;         // what rotates, alone

  Index sequence_ = 0, key_head_ = 0, first_query_ = 0, queries_ = 0, first_key_ = 0, count_ = 0;
  Places query_places_, key_places_;
  std::vector<Sight> sights_;  // [query]
  Floats q_, raw_q_, out_, peak_, sum_, scale_;
  Floats k_, raw_k_, v_, panels_, weights_, bias_rows_, hide_rows_, window_;
  Floats query_table_, key_table_, value_table_, query_rows_, key_rows_, value_weights_;
  std::vector<std::int32_t> row_window_;
  std::vector<Index> run_end_;
  const float *k_rows_ = nullptr, *v_rows_ = nullptr;
  Index k_step_ = 0, v_step_ = 0, window_step_ = 0;
  std::optional<bool> finite_;  // not asked yet
  bool windowed_ = false;
};

// The distances that any query and key have between them are listed.
bool reaches(const DistanceRows& rows, const Positions& queries, const Positions& keys) {
  if (rows.saturates) return true;
  const auto ends = [](const Positions& positions) {
    std::pair<Index, Index> all{std::numeric_limits<Index>::max(), 0};
    for (Index b = 0; b < positions.batch(); ++b) {
      for (Index t = 0; t < positions.size(); ++t) {
        all.first = std::min(all.first, positions.at(t, b));
        all.second = std::max(all.second, positions.at(t, b));
      }
    }
    return all;
  };
  const auto q = ends(queries), k = ends(keys);
  return q.first - k.second >= rows.first && q.second - k.first <= rows.last();
}

}  // namespace

std::optional<AttendJob> attend_job(const AttendArguments& in, const Plan& plan,
                                    const Positions& queries, const Positions& keys,
                                    const Mask& mask) {
  if (in.q.dtype == DType::f64) return {};
  if (plan.rotate && plan.rotate->angles != Angles::exact) return {};
  if (in.q.size() == 0 || in.k.size() == 0) return {};
  const auto* table = plan.bias ? std::get_if<BiasTable>(&*plan.bias) : nullptr;
  if (table != nullptr && !reaches(table->rows, queries, keys)) return {};
  if (plan.relative && !reaches(plan.relative->rows, queries, keys)) return {};
  AttendJob job{.in = &in, .plan = &plan, .queries = &queries, .keys = &keys, .mask = &mask};
  const Index group = in.q.shape[1] / in.k.shape[1], count = in.q.shape[2];
  job.part = std::min(count, std::max<Index>(tile_rows, part_rows / group));
  job.parts = (count + job.part - 1) / job.part;
  return job;
}

void attend_parts(const AttendJob& job, Index first, Index last) {
  Part part(job);
  for (Index i = first; i < last; ++i) part(i);
}

}  // namespace posenc::detail
