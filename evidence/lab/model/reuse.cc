#include "evidence/lab/model/reuse.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "posenc/attention.h"
#include "posenc/rekey.h"
#include "src/core/try.h"

namespace posenc::lab {

std::string_view name(ChunkRead read) {
  return read == ChunkRead::alone ? "alone" : "behind another prefix";
}

namespace {

std::size_t count_of(std::int64_t count) { return static_cast<std::size_t>(count); }

// Of a layer, [token][kv_head][head_dim]: keys as a cache of rotated ones has them.
struct CachedLayer {
  std::vector<float> keys = {}, values = {};
};
using CachedText = std::vector<CachedLayer>;

std::int64_t numbers_of_token(const Llama& model, std::int64_t layer) {
  const KvCacheOptions sizes = cache_options(model, layer);
  return sizes.kv_heads * sizes.head_dim;
}

// As an attention has them, [1, kv_head, token, head_dim].
Tensor seen_as_keys(const Llama& model, std::int64_t layer, std::vector<float>& numbers) {
  const KvCacheOptions sizes = cache_options(model, layer);
  const std::int64_t tokens = std::ssize(numbers) / (sizes.kv_heads * sizes.head_dim);
  return Tensor::dense(numbers.data(), {1, tokens, sizes.kv_heads, sizes.head_dim}).swapped(1, 2);
}

// What engines do: keys are rotated once, when they come, and queries when they ask.
class RotatedAttention : public PassageAttention {
 public:
  RotatedAttention(const Llama& model, CachedText text) : model_(model), text_(std::move(text)) {
    text_.resize(model.layers().size());
  }
  const CachedText& text() const { return text_; }

  Expected<void> attend(std::int64_t layer, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Plan& plan, const Positions& positions, const Mask& mask,
                        const Tensor& out) override {
    POSENC_CHECK(rotate(plan, q, k, positions, q, k, model_.threads()));
    CachedLayer& cached = text_[count_of(layer)];
    const auto append = [](std::vector<float>& to, const Tensor& x) {
      const auto* from = static_cast<const float*>(x.data);
      to.insert(to.end(), from, from + x.size());
    };
    append(cached.keys, k);
    append(cached.values, v);
    Plan rotated = plan;
    rotated.rotate.reset();
    const Tensor keys = seen_as_keys(model_, layer, cached.keys),
                 values = seen_as_keys(model_, layer, cached.values);
    const std::int64_t all = keys.shape[2], now = q.shape[2];
    // Order stands for position: whatever rotated the keys, they are those of the tokens before.
    return posenc::attend({.q = q,
                           .k = keys,
                           .v = values,
                           .queries = Positions::range(all - now, now),
                           .keys = Positions::range(0, all),
                           .mask = mask,
                           .threads = model_.threads()},
                          rotated, out);
  }
  Expected<void> evict(std::int64_t, std::int64_t) override {
    return fail("lab", "a re-used text keeps all its tokens", "an eviction");
  }

 private:
  const Llama& model_;
  CachedText text_;
};

Expected<Plan> plan_of(const LayerGroup& group, std::int64_t length) {
  return compile(group, length);
}

// A text that goes on behind a cached one, at a position of its own.
struct ReadOn {
  CachedText text = {};
  std::vector<float> hidden = {};  // [token][width]
};
Expected<ReadOn> read_on(const Llama& model, const CachedText& cached, std::int64_t first,
                         std::span<const std::int32_t> tokens) {
  POSENC_TRY(passage,
             Passage::begin(model, plan_of, first, {},
                            [&](const Llama&) -> Expected<std::unique_ptr<PassageAttention>> {
                              return std::make_unique<RotatedAttention>(model, cached);
                            }));
  POSENC_TRY(hidden, passage.read(tokens));
  return ReadOn{static_cast<RotatedAttention&>(passage.attention()).text(),
                {hidden.begin(), hidden.end()}};
}

// Tokens [first, last) of a cached text.
CachedText cut(const Llama& model, const CachedText& text, std::int64_t first, std::int64_t last) {
  CachedText made(text.size());
  for (std::size_t layer = 0; layer < text.size(); ++layer) {
    const std::int64_t of_token = numbers_of_token(model, static_cast<std::int64_t>(layer));
    const auto part = [&](const std::vector<float>& all) {
      return std::vector<float>(all.begin() + first * of_token, all.begin() + last * of_token);
    };
    made[layer] = {part(text[layer].keys), part(text[layer].values)};
  }
  return made;
}

CachedText joined(CachedText text, const CachedText& more) {
  for (std::size_t layer = 0; layer < text.size(); ++layer) {
    const auto append = [](std::vector<float>& to, const std::vector<float>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(text[layer].keys, more[layer].keys);
    append(text[layer].values, more[layer].values);
  }
  return text;
}

// Keys of a dtype, which are rekeyed in it.
Expected<void> move_text(const Llama& model, CachedText& text, std::int64_t from, std::int64_t to,
                         DType dtype = DType::f32, std::int64_t times = 1) {
  for (std::size_t layer = 0; layer < text.size(); ++layer) {
    const auto number = static_cast<std::int64_t>(layer);
    const Tensor wide = seen_as_keys(model, number, text[layer].keys);
    const std::int64_t tokens = wide.shape[2];
    std::vector<std::byte> memory(text[layer].keys.size() * size_of(dtype));
    Tensor keys = wide;
    keys.data = memory.data();
    keys.dtype = dtype;
    const auto each = [&](const Tensor& in, const Tensor& out) {
      for (std::int64_t i = 0; i < in.size(); ++i) out.set(i, in.get(i));  // of one layout, dense
    };
    each(wide, keys);
    POSENC_TRY(plan, plan_of(model.group_of(number), std::max(from, to + times) + tokens));
    for (std::int64_t i = 0; i < times; ++i)
      POSENC_CHECK(rekey({&plan, Positions::range(from + i * (to - from), tokens)},
                         {&plan, Positions::range(from + (i + 1) * (to - from), tokens)}, keys,
                         keys, Side::key, model.threads()));
    each(keys, wide);
  }
  return {};
}

// ‖a − b‖ and ‖b‖, squared and summed.
struct Apart {
  double difference = 0, size = 0;
  void add(std::span<const float> a, std::span<const float> b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double off = static_cast<double>(a[i]) - b[i];
      difference += off * off;
      size += static_cast<double>(b[i]) * b[i];
    }
  }
  double part() const { return size > 0 ? std::sqrt(difference / size) : 0; }
};

// Predictions of the tail behind a fresh prefill, and what others are beside them.
class Tail {
 public:
  Tail(const Llama& model, std::span<const std::int32_t> tokens, std::span<const float> fresh,
       std::span<const std::int64_t> bands)
      : model_(model), tokens_(tokens), bands_(bands), fresh_(logs_of(fresh)) {}

  // Adds a `share` of what is lost.
  void compare(std::span<const float> hidden, Lost& lost, double share) const {
    const std::vector<float> found = logs_of(hidden);
    const std::int64_t words = model_.vocabulary(), count = std::ssize(found) / words;
    lost.by_distance.resize(bands_.size());
    std::vector<double> divergences(count_of(count));
    for (std::int64_t i = 0; i < count; ++i) {
      double sum = 0;
      for (std::int64_t w = i * words; w < (i + 1) * words; ++w) {
        const double log = fresh_[count_of(w)];
        sum += std::exp(log) * (log - found[count_of(w)]);
      }
      divergences[count_of(i)] = sum;
      lost.divergence += share * sum / static_cast<double>(count);
      const std::int64_t next = i * words + tokens_[count_of(i + 1)];
      lost.loss += share * (static_cast<double>(fresh_[count_of(next)]) - found[count_of(next)]) /
                   static_cast<double>(count);
    }
    std::int64_t from = 0;
    for (std::size_t band = 0; band < bands_.size(); ++band) {
      double sum = 0;
      for (std::int64_t i = from; i < bands_[band]; ++i) sum += divergences[count_of(i)];
      lost.by_distance[band] += share * sum / static_cast<double>(bands_[band] - from);
      from = bands_[band];
    }
  }

 private:
  // Logarithms of the probabilities of each token behind each of the tail.
  std::vector<float> logs_of(std::span<const float> hidden) const {
    std::vector<float> made = model_.logits(hidden);
    const std::int64_t words = model_.vocabulary();
    for (std::int64_t at = 0; at < std::ssize(made); at += words) {
      const auto row = std::span(made).subspan(count_of(at), count_of(words));
      const float most = *std::ranges::max_element(row);
      double sum = 0;
      for (const float logit : row) sum += std::exp(logit - most);
      const auto log = static_cast<float>(most + std::log(sum));
      for (float& logit : row) logit -= log;
    }
    return made;
  }

  const Llama& model_;
  std::span<const std::int32_t> tokens_;
  std::span<const std::int64_t> bands_;
  std::vector<float> fresh_;
};

// 1, 4, 16, 64, … and the tail's last.
std::vector<std::int64_t> bands_of(std::int64_t tail) {
  std::vector<std::int64_t> bands;
  for (std::int64_t last = 1; last < tail; last *= 4) bands.push_back(last);
  bands.push_back(tail);
  return bands;
}

Expected<void> check_options(std::span<const std::int32_t> tokens, const ReuseOptions& options) {
  if (options.prefix < 2 || options.chunk < 1 || options.tail < 1 || options.places < 1)
    return fail("lab reuse", "prefix, chunk, tail and places must have tokens",
                std::to_string(std::min({options.prefix, options.chunk, options.tail})));
  const std::int64_t wanted = options.prefix + options.chunk + options.tail + 1;
  if (std::ssize(tokens) < wanted + options.prefix)
    return fail("lab reuse", "the text must have room for prefix, chunk, tail and another prefix",
                std::to_string(tokens.size()) + " tokens",
                "give " + std::to_string(wanted + options.prefix) + " or ask for fewer");
  return {};
}

std::int64_t first_of(std::int64_t place, std::span<const std::int32_t> tokens,
                      const ReuseOptions& options) {
  const std::int64_t room = std::ssize(tokens) - options.prefix - options.chunk - options.tail - 1;
  return options.places == 1 ? 0 : room * place / (options.places - 1);
}

// One place of the text.
class Place {
 public:
  Place(const Llama& model, std::span<const std::int32_t> tokens, const ReuseOptions& options,
        std::int64_t place)
      : model_(model), options_(options) {
    const std::int64_t at = first_of(place, tokens, options);
    const auto part = [&](std::int64_t first, std::int64_t count) {
      return tokens.subspan(count_of(first), count_of(count));
    };
    prefix_ = part(at, options.prefix);
    chunk_ = part(at + options.prefix, options.chunk);
    tail_ = part(at + options.prefix + options.chunk, options.tail + 1);
    // From the other half of the text, so that it says something else.
    const std::int64_t half = std::ssize(tokens) / 2;
    other_ = part((at + half) % (std::ssize(tokens) - options.prefix), options.prefix / 2);
  }

  Expected<void> measure(Reuse& all, const std::function<void(double)>& told) {
    const double share = 1.0 / static_cast<double>(options_.places);
    const std::int64_t stands = options_.prefix, ends = stands + options_.chunk;
    POSENC_TRY(begun, read_on(model_, {}, 0, prefix_));
    POSENC_TRY(whole, read_on(model_, begun.text, stands, chunk_));
    const CachedText fresh = cut(model_, whole.text, stands, ends);
    POSENC_TRY(tail, read_on(model_, whole.text, ends, without_last()));
    const Tail compared(model_, tail_, tail.hidden, all.bands);
    const auto measured = [&](const CachedText& text, std::int64_t first,
                              Lost& lost) -> Expected<void> {
      POSENC_TRY(found, read_on(model_, text, first, without_last()));
      compared.compare(found.hidden, lost, share);
      if (told)
        told(static_cast<double>(++done_) /
             static_cast<double>(std::ssize(all.chunks) + std::ssize(all.layers) + 1));
      return {};
    };
    POSENC_CHECK(measured(begun.text, stands, all.left_out));
    POSENC_TRY(alone, read_on(model_, {}, 0, chunk_));
    POSENC_TRY(other, read_on(model_, {}, 0, other_));
    const std::int64_t stood = options_.prefix / 2;
    POSENC_TRY(behind, read_on(model_, other.text, stood, chunk_));
    const CachedText elsewhere = cut(model_, behind.text, stood, stood + options_.chunk);
    CachedText alone_moved = alone.text, elsewhere_moved = elsewhere;
    POSENC_CHECK(move_text(model_, alone_moved, 0, stands));
    POSENC_CHECK(move_text(model_, elsewhere_moved, stood, stands));
    for (ReusedChunk& chunk : all.chunks) {
      const CachedText& used = chunk.read == ChunkRead::alone
                                   ? (chunk.moved ? alone_moved : alone.text)
                                   : (chunk.moved ? elsewhere_moved : elsewhere);
      // A token's keys depend on those before it alone: the first ones read again are a fresh
      // prefill's.
      const CachedText text = joined(joined(begun.text, cut(model_, fresh, 0, chunk.anew)),
                                     cut(model_, used, chunk.anew, options_.chunk));
      POSENC_CHECK(measured(text, ends, chunk.lost));
    }
    for (std::size_t layer = 0; layer < all.layers.size(); ++layer) {
      CachedText text = whole.text;
      const auto put = [&](std::vector<float>& to, const std::vector<float>& from) {
        std::ranges::copy(from, to.end() - std::ssize(from));
      };
      put(text[layer].keys, alone_moved[layer].keys);
      put(text[layer].values, alone_moved[layer].values);
      ReusedLayer& out = all.layers[layer];
      Apart keys, values;
      keys.add(alone_moved[layer].keys, fresh[layer].keys);
      values.add(alone_moved[layer].values, fresh[layer].values);
      out.keys += share * keys.part();
      out.values += share * values.part();
      POSENC_CHECK(measured(text, ends, out.lost));
    }
    return {};
  }

  Expected<void> measure(std::vector<Drift>& drifts, std::int64_t moves) {
    const double share = 1.0 / static_cast<double>(options_.places);
    const std::vector<std::int64_t> bands = bands_of(options_.tail);
    POSENC_TRY(stood, read_on(model_, {}, 0, chunk_));
    CachedText exact = stood.text;
    POSENC_CHECK(move_text(model_, exact, 0, moves, DType::f64));
    for (Drift& drift : drifts) {
      CachedText still = stood.text, once = stood.text, stepwise = stood.text;
      POSENC_CHECK(move_text(model_, still, 0, 0, drift.dtype));
      POSENC_CHECK(move_text(model_, once, 0, moves, drift.dtype));
      POSENC_CHECK(move_text(model_, stepwise, 0, 1, drift.dtype, moves));
      const auto apart = [&](const CachedText& found, const CachedText& wanted) {
        Apart all;
        for (std::size_t layer = 0; layer < found.size(); ++layer)
          all.add(found[layer].keys, wanted[layer].keys);
        return share * all.part();
      };
      drift.stood += apart(still, stood.text);
      drift.once += apart(once, exact);
      drift.stepwise += apart(stepwise, exact);
      POSENC_TRY(tail, read_on(model_, still, options_.chunk, without_last()));
      const Tail compared(model_, tail_, tail.hidden, bands);
      for (const auto& [text, lost] :
           {std::pair{&once, &drift.lost_once}, std::pair{&stepwise, &drift.lost_stepwise}}) {
        POSENC_TRY(found, read_on(model_, *text, options_.chunk + moves, without_last()));
        compared.compare(found.hidden, *lost, share);
      }
    }
    return {};
  }

 private:
  // The last token is predicted, not read.
  std::span<const std::int32_t> without_last() const { return tail_.first(tail_.size() - 1); }

  const Llama& model_;
  const ReuseOptions& options_;
  std::span<const std::int32_t> prefix_, chunk_, tail_, other_;
  std::int64_t done_ = 0;
};

}  // namespace

Expected<Reuse> reuse(const Llama& model, std::span<const std::int32_t> tokens,
                      const ReuseOptions& options, const std::function<void(double)>& told) {
  POSENC_CHECK(check_options(tokens, options));
  for (const std::int64_t anew : options.anew)
    if (anew < 0 || anew > options.chunk)
      return fail("lab reuse", "tokens that are read anew must be of the chunk",
                  std::to_string(anew) + " of " + std::to_string(options.chunk));
  Reuse made{.model = model.about().name,
             .options = options,
             .bands = bands_of(options.tail),
             .layers = std::vector<ReusedLayer>(model.layers().size())};
  for (const ChunkRead read : {ChunkRead::alone, ChunkRead::elsewhere}) {
    made.chunks.push_back({.read = read, .moved = false});
    for (const std::int64_t anew : options.anew)
      made.chunks.push_back({.read = read, .anew = anew});
  }
  for (std::int64_t place = 0; place < options.places; ++place)
    POSENC_CHECK(Place(model, tokens, options, place).measure(made, [&](double part) {
      if (told) told((static_cast<double>(place) + part) / static_cast<double>(options.places));
    }));
  return made;
}

Expected<std::vector<Drift>> drift(const Llama& model, std::span<const std::int32_t> tokens,
                                   const ReuseOptions& options, std::int64_t moves,
                                   std::span<const DType> dtypes) {
  POSENC_CHECK(check_options(tokens, options));
  if (moves < 1)
    return fail("lab reuse", "keys must move by a position or more", std::to_string(moves));
  std::vector<Drift> made;
  for (const DType dtype : dtypes) made.push_back({.dtype = dtype});
  for (std::int64_t place = 0; place < options.places; ++place)
    POSENC_CHECK(Place(model, tokens, options, place).measure(made, moves));
  return made;
}

}  // namespace posenc::lab
