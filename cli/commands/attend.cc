#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/mask.h"
#include "cli/arguments/npy.h"
#include "cli/arguments/parse.h"
#include "cli/arguments/source.h"
#include "cli/command.h"
#include "cli/pages/manual.h"
#include "posenc/attention.h"
#include "posenc/content.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

// Room for a tensor of a file, and the view of it as [batch, heads, seq, head_dim].
struct Held {
  Array array;
  Tensor view;
};

Expected<Held> held(Array array, const std::string& dtype, const std::string& where) {
  const Expected<Tensor> view = tensor_of(array, dtype, where);
  if (!view) return std::unexpected(view.error());
  if (view->rank < 2)
    return fail(where, "must be [batch, heads, seq, head_dim], or the last 2 or 3 of these",
                std::to_string(view->rank) + " axes", "reshape the array");
  return Held{std::move(array), view->with_rank(4)};
}

Expected<Held> read_held(const std::string& path, const std::string& dtype) {
  Expected<Array> array = read_npy(path);
  if (!array) return std::unexpected(array.error());
  return held(std::move(*array), dtype, path);
}

// Learned numbers: vectors by distance, [row][head_dim] or [head][row][head_dim], or sink logits.
Expected<void> give(Table& table, const std::string& path) {
  if (path.empty()) return {};
  Expected<Array> array = read_npy(path);
  if (!array) return std::unexpected(array.error());
  const auto kept = std::make_shared<Array>(std::move(*array));
  const Expected<Tensor> view = tensor_of(*kept, "", path);
  if (!view) return std::unexpected(view.error());
  table = Table::borrow(*view, kept);
  return {};
}

// A table that the plan reads must be given, and no other.
Expected<void> give_relative(Plan& plan, const std::string& query, const std::string& key,
                             const std::string& value) {
  Relative none{.uses_key = false};
  Relative& relative = plan.relative ? *plan.relative : none;
  const struct {
    const char* flag;
    const std::string& path;
    bool used;
    Table& table;
  } rows[] = {{"--relative_query", query, relative.uses_query, relative.query},
              {"--relative_key", key, relative.uses_key, relative.key},
              {"--relative_value", value, relative.uses_value, relative.value}};
  for (const auto& [flag, path, used, table] : rows) {
    if (!path.empty() && !used)
      return fail(flag, "this encoding has no such vectors", path, "drop the flag");
    if (Expected<void> done = give(table, path); !done) return done;
    if (used && !table)
      return fail("attend", "the learned vectors by distance must be given", "none",
                  std::string("say ") + flag + " FILE.npy, of shape [" +
                      std::to_string(relative.row_count) + "][head_dim]");
  }
  return {};
}

struct Places {
  Positions queries, keys;
};

Expected<Positions> given_positions(const std::string& text, const char* flag, std::int64_t count,
                                    const char* of) {
  Expected<Positions> read = positions(text, flag);
  if (read && read->size() != count)
    return fail(flag, "one for each of the " + std::to_string(count) + " " + of,
                std::to_string(read->size()), "the end of FIRST:END is not included");
  return read;
}

Expected<Positions> last_of(const Positions& keys, std::int64_t count) {
  const std::int64_t first = keys.size() - count;
  if (keys.contiguous()) return Positions::range(keys.at(first), count);
  std::vector<std::int64_t> ids;
  for (std::int64_t axis = 0; axis < keys.axes(); axis++)
    for (std::int64_t b = 0; b < keys.batch(); b++)
      for (std::int64_t t = first; t < keys.size(); t++) ids.push_back(keys.at(t, b, axis));
  return Positions::ids(ids, keys.axes(), keys.batch());
}

Expected<Places> places_of(const std::string& of_queries, std::int64_t queries,
                           const std::string& of_keys, std::int64_t keys) {
  Places out{Positions::range(0, queries), Positions::range(0, keys)};
  if (!of_queries.empty()) {
    Expected<Positions> read = given_positions(of_queries, "--positions", queries, "queries");
    if (!read) return std::unexpected(read.error());
    out.queries = std::move(*read);
    if (queries == keys) out.keys = out.queries;
  }
  if (!of_keys.empty()) {
    Expected<Positions> read = given_positions(of_keys, "--key_positions", keys, "keys");
    if (!read) return std::unexpected(read.error());
    out.keys = std::move(*read);
  }
  if (!of_queries.empty()) return out;
  if (queries > keys)
    return fail("--positions", "must be given where queries are more than keys",
                std::to_string(queries) + " and " + std::to_string(keys), "write it like 0:512");
  Expected<Positions> last = last_of(out.keys, queries);
  if (!last) return std::unexpected(last.error());
  out.queries = std::move(*last);
  return out;
}

// Of one row of sequences end to end, as FlashAttention names their bounds.
Expected<Places> packed_places(const std::string& bounds, std::int64_t queries, std::int64_t keys) {
  const Expected<IntegerRows> read = integer_rows(bounds, "--packed");
  if (!read) return std::unexpected(read.error());
  const Expected<Positions> packed = Positions::packed(read->values);
  if (!packed) return std::unexpected(packed.error());
  if (packed->size() != queries || packed->size() != keys)
    return fail("--packed", "must end at the number of queries, and of keys",
                std::to_string(packed->size()) + " for " + std::to_string(queries) + " and " +
                    std::to_string(keys),
                "drop the flag for one new token after the cached ones");
  return Places{*packed, *packed};
}

// [batch][key] of a flag, a row for all or one for each sequence; empty where none is given.
template <class T>
Expected<std::vector<T>> for_keys(const std::string& text, std::string_view flag,
                                  std::string_view cure, std::int64_t batch, std::int64_t keys,
                                  T (*made)(std::int64_t)) {
  std::vector<T> out;
  if (text.empty()) return out;
  const Expected<IntegerRows> given = integer_rows(text, flag);
  if (!given) return std::unexpected(given.error());
  const auto count = static_cast<std::int64_t>(given->values.size());
  if (count != given->rows * keys || (given->rows != 1 && given->rows != batch))
    return fail(flag,
                "must have a number for each of the " + std::to_string(keys) +
                    " keys, in one row or one for each of " + std::to_string(batch) + " sequences",
                std::to_string(count) + " in " + std::to_string(given->rows) + " rows", cure);
  for (std::int64_t b = 0; b < batch; b++)
    for (std::int64_t j = 0; j < keys; j++)
      out.push_back(
          made(given->values[static_cast<std::size_t>((given->rows == 1 ? 0 : b) * keys + j)]));
  return out;
}

std::uint8_t is_kept(std::int64_t number) { return number != 0; }
std::int32_t block_of(std::int64_t number) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(number, -1, 0x7fffffff));
}

Run define_attend(CLI::App& app) {
  struct Options {
    std::string out, q, k, v, positions, key_positions, packed, keep, blocks, dtype, logits,
        sink_logits, temperature;
    std::optional<double> softcap;
    std::string relative_query, relative_key, relative_value;
    bool reference = false;
    Threads threads;
    std::optional<MaskFlags> mask;
    std::optional<Source> source;
  };
  auto options = std::make_shared<Options>();
  app.add_option("OUT", options->out, "Where softmax(logits) v goes, .npy, shaped like q")
      ->required();
  app.add_option("--q", options->q, "Queries, .npy [batch, heads, seq, head_dim], not rotated")
      ->type_name("FILE")
      ->required();
  app.add_option("--k", options->k, "Keys, not rotated; heads may share theirs")
      ->type_name("FILE")
      ->required();
  app.add_option("--v", options->v, "Values, shaped like k")->type_name("FILE")->required();
  app.add_option("--positions", options->positions, "Of queries: 0:4096 (not 4096), 0,2,4, ids.npy")
      ->type_name("IDS")
      ->default_str("the last of the keys");
  app.add_option("--key_positions", options->key_positions, "Of the keys")
      ->type_name("IDS")
      ->group(std::string(rare_group))
      ->default_str("those of the queries if as many, else from 0");
  app.add_option("--packed,--cu_seqlens", options->packed,
                 "Sequences packed in one row: 0,3,70 (tokens 0 to 2, 3 to 69)")
      ->type_name("BOUNDS")
      ->excludes("--positions")
      ->excludes("--key_positions");
  app.add_option("--mask,--keep", options->keep,
                 "Padding mask [batch][key]: 0,0,1;1,1,1 or a .npy; 0 hides")
      ->type_name("ROWS");
  app.add_option("--sink_logits,--sink-logits", options->sink_logits,
                 "Logits without a value in the softmax, .npy [heads] or [batch, heads, seq]")
      ->type_name("FILE");
  app.add_option("--temperature", options->temperature,
                 "Learned temperature, .npy [2, heads]: queries at p × s·ln(p + 1) + b (Mistral "
                 "Large 4)")
      ->type_name("FILE")
      ->group(std::string(rare_group));
  app.add_option("--blocks", options->blocks,
                 "Pictures among text, [batch][key]: tokens of a block see each other both ways; "
                 "-1: none")
      ->type_name("ROWS")
      ->group(std::string(rare_group));
  app.add_option("--softcap", options->softcap,
                 "Logits z become C·tanh(z / C), as Gemma 2 has them with 50")
      ->type_name("C")
      ->group(std::string(rare_group))
      ->check(CLI::PositiveNumber);
  app.add_option("--logits", options->logits,
                 "Write there the masked logits, [batch, heads, queries, keys], by plain loops")
      ->type_name("FILE");
  app.add_flag("--reference", options->reference, "OUT by plain double loops too, to compare with")
      ->group(std::string(rare_group));
  app.add_option("--dtype", options->dtype, "bfloat16: the tensors are uint16 holding bfloat16")
      ->type_name("TYPE")
      ->group(std::string(rare_group));
  app.add_option("--threads", options->threads.count, "Threads of the fused attention")
      ->default_str("as many as processors")
      ->group(std::string(rare_group))
      ->check(CLI::Range(1, 1024));
  app.add_option("--relative_key", options->relative_key,
                 "[shaw, deberta] Vectors by distance that meet q, .npy [row][head_dim]")
      ->type_name("FILE")
      ->group(std::string(rare_group));
  app.add_option("--relative_query", options->relative_query, "Those that meet k")
      ->type_name("FILE")
      ->group(std::string(rare_group));
  app.add_option("--relative_value", options->relative_value, "Those added to the output")
      ->type_name("FILE")
      ->group(std::string(rare_group));
  options->mask.emplace(app);
  options->source.emplace(app, "attend", true);
  app.footer(
      "Tensors may lack axes in front. Rotation, bias, relative vectors and the logits' scale come "
      "from\n"
      "the encoding, and so does the mask of a model's layer; what is added to embeddings has no "
      "place\n"
      "here.\n\n"
      "Without --at it is compiled for the largest position + 1. Without --logits and "
      "--reference\n"
      "memory grows with the length and not with its square.\n\n"
      "Examples:\n"
      "  posenc attend out.npy --q q.npy --k k.npy --v v.npy --model llama-3.1-8b\n"
      "  posenc attend out.npy --q last_q.npy --k k.npy --v v.npy --scheme rope --rope_theta 1e6\n"
      "  posenc attend out.npy --q q.npy --k k.npy --v v.npy --scheme alibi --bidirectional "
      "--window 8\n"
      "  posenc attend out.npy --q q.npy --k k.npy --v v.npy --scheme nope --positions 100:116 \\\n"
      "         --key_positions 100:116 --logits logits.npy\n"
      "  posenc attend out.npy --q q.npy --k k.npy --v v.npy --scheme rope --packed 0,3,16 "
      "--threads 1\n"
      "  posenc attend out.npy --q q.npy --k k.npy --v v.npy --scheme cope --embeddings e.npy\n"
      "  posenc attend out.npy --q q.npy --k k.npy --v v.npy --scheme forgetting --log_gates "
      "g.npy\n"
      "  posenc attend out.npy --q q.npy --k k.npy --v v.npy --scheme rope --sink_logits "
      "s.npy\n"
      "  posenc attend slow.npy --q q.npy --k k.npy --v v.npy --model llama-2-7b --reference");
  return [options]() -> Expected<int> {
    if (options->logits == options->out)
      return fail("--logits", "must not be OUT", options->logits, "give it a name of its own");
    Expected<Held> q = read_held(options->q, options->dtype);
    if (!q) return std::unexpected(q.error());
    Expected<Held> k = read_held(options->k, options->dtype);
    if (!k) return std::unexpected(k.error());
    Expected<Held> v = read_held(options->v, options->dtype);
    if (!v) return std::unexpected(v.error());
    const std::int64_t batch = q->view.shape[0], keys = k->view.shape[2];
    const Expected<Places> where =
        options->packed.empty()
            ? places_of(options->positions, q->view.shape[2], options->key_positions, keys)
            : packed_places(options->packed, q->view.shape[2], keys);
    if (!where) return std::unexpected(where.error());

    if (options->mask->bidirectional())
      options->source->set_where_known("bidirectional", FieldValue(true));
    Geometry of_tensor;
    of_tensor.heads = q->view.shape[1];
    of_tensor.kv_heads = k->view.shape[1];
    of_tensor.head_dim = q->view.shape[3];
    of_tensor.length = std::max(where->queries.length(), where->keys.length());
    Expected<Plan> plan = options->source->plan(of_tensor);
    if (!plan) return std::unexpected(plan.error());
    const ContentScheme* content = options->source->content();
    if (content && (!options->logits.empty() || options->reference))
      return fail(options->reference ? "--reference" : "--logits",
                  "is of schemes that plans can say", std::string(info(*content).name),
                  "drop the flag; posenc plot scores draws the weights");
    plan->add.reset();  // the embeddings got it before q, k and v were made of them
    if (Expected<void> given = check_table(*plan, "attend"); !given)
      return std::unexpected(given.error());
    if (Expected<void> given = give_relative(*plan, options->relative_query, options->relative_key,
                                             options->relative_value);
        !given)
      return std::unexpected(given.error());
    const auto keep =
        for_keys(options->keep, "--mask", "1: a token, 0: padding", batch, keys, is_kept);
    if (!keep) return std::unexpected(keep.error());
    const auto blocks =
        for_keys(options->blocks, "--blocks", "-1: a token of none", batch, keys, block_of);
    if (!blocks) return std::unexpected(blocks.error());
    Expected<Mask> mask = options->mask->over(options->source->mask());
    if (!mask) return std::unexpected(mask.error());
    if (!keep->empty()) mask->keep = keep->data();
    if (!blocks->empty()) mask->blocks = blocks->data();
    if (options->softcap) plan->logits.softcap = *options->softcap;

    const auto like_q = [&](std::int64_t last) -> Expected<Held> {
      std::vector<std::int64_t> shape = q->array.shape;
      shape.back() = last;
      Expected<Array> array = make_array(q->array.type, std::move(shape));
      if (!array) return std::unexpected(array.error());
      return held(std::move(*array), options->dtype, options->out);
    };
    const Expected<Held> out = like_q(q->view.shape[3]);
    if (!out) return std::unexpected(out.error());
    Table sinks;
    if (Expected<void> given = give(sinks, options->sink_logits); !given)
      return std::unexpected(given.error());
    Table temperature;
    if (Expected<void> given = give(temperature, options->temperature); !given)
      return std::unexpected(given.error());
    if (temperature) POSENC_CHECK(set_temperature(plan->logits, temperature.values));
    const AttentionInputs in{q->view,     k->view, v->view,          where->queries,
                             where->keys, *mask,   options->threads, sinks.values};
    if (content) {
      POSENC_CHECK(attend(in, *content, *plan, out->view));
    } else if (!options->reference) {
      POSENC_CHECK(attend(in, *plan, out->view));
    }
    std::optional<Held> logits, slow;
    if (!options->logits.empty()) {
      Expected<Held> room = like_q(keys);
      if (!room) return std::unexpected(room.error());
      logits = std::move(*room);
    }
    if (logits && !options->reference) {
      Expected<Held> room = like_q(q->view.shape[3]);
      if (!room) return std::unexpected(room.error());
      slow = std::move(*room);
    }
    if (logits || options->reference) {
      POSENC_CHECK(attend_reference(in, *plan, slow ? slow->view : out->view,
                                    logits ? logits->view : Tensor{}));
    }
    if (logits) {
      if (Expected<void> written = write_npy(options->logits, logits->array); !written)
        return std::unexpected(written.error());
    }
    if (Expected<void> written = write_npy(options->out, out->array); !written)
      return std::unexpected(written.error());
    return 0;
  };
}

}  // namespace

extern const Command attend_command{
    "attend", "attention over .npy tensors with any scheme, fused or by plain loops",
    define_attend};

}  // namespace posenc::cli
