#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/mask.h"
#include "cli/arguments/npy.h"
#include "cli/arguments/parse.h"
#include "cli/arguments/source.h"
#include "cli/command.h"
#include "cli/mpi/ranks.h"
#include "cli/pages/manual.h"
#include "cli/pages/progress.h"
#include "posenc/attention.h"
#include "posenc/content.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

// Room for a tensor of a file, or the file, and the view of it as [batch, heads, seq, head_dim].
struct Held {
  Array array;
  Tensor view;
  std::optional<MappedFile> file = {};
};

Expected<Held> held(Array array, const std::string& dtype, const std::string& where) {
  POSENC_TRY(view, tensor_of(array, dtype, where));
  if (view.rank < 2)
    return fail(where, "must be [batch, heads, seq, head_dim], or the last 2 or 3 of these",
                std::to_string(view.rank) + " axes", "reshape the array");
  return Held{std::move(array), view.with_rank(4)};
}

Expected<Held> read_held(const std::string& path, const std::string& dtype) {
  POSENC_TRY(array, read_array(path));
  return held(std::move(array), dtype, path);
}

// The numbers stay in the file.
Expected<Held> map_held(const std::string& path, const std::string& dtype) {
  POSENC_TRY(mapped, map_array(path));
  POSENC_TRY(file, held(std::move(mapped.array), dtype, path));
  if (file.array.data.empty()) file.view.data = const_cast<std::byte*>(mapped.data.data());
  file.file = std::move(mapped.file);
  return std::move(file);
}

// Learned numbers: vectors by distance, [row][head_dim] or [head][row][head_dim], or sink logits.
Expected<void> give(Table& table, const std::string& path) {
  if (path.empty()) return {};
  POSENC_TRY(array, read_array(path));
  const auto kept = std::make_shared<Array>(std::move(array));
  POSENC_TRY(view, tensor_of(*kept, "", path));
  table = Table::borrow(view, kept);
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
    POSENC_CHECK(give(table, path));
    if (used && !table)
      return fail("attend", "the learned vectors by distance must be given", "none",
                  std::string("say ") + flag + " FILE.npy, of shape [" +
                      std::to_string(relative.row_count) + "][" +
                      (relative.profiles > 0 ? std::to_string(relative.profiles) : "head_dim") +
                      "]");
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
    POSENC_TRY(read, given_positions(of_queries, "--positions", queries, "queries"));
    out.queries = std::move(read);
    if (queries == keys) out.keys = out.queries;
  }
  if (!of_keys.empty()) {
    POSENC_TRY(read, given_positions(of_keys, "--key_positions", keys, "keys"));
    out.keys = std::move(read);
  }
  if (!of_queries.empty()) return out;
  if (queries > keys)
    return fail("--positions", "must be given where queries are more than keys",
                std::to_string(queries) + " and " + std::to_string(keys), "write it like 0:512");
  POSENC_TRY(last, last_of(out.keys, queries));
  out.queries = std::move(last);
  return out;
}

// Of one row of sequences end to end, as FlashAttention names their bounds.
Expected<Places> packed_places(const std::string& bounds, std::int64_t queries, std::int64_t keys) {
  POSENC_TRY(read, integer_rows(bounds, "--packed"));
  POSENC_TRY(packed, Positions::packed(read.values));
  if (packed.size() != queries || packed.size() != keys)
    return fail("--packed", "must end at the number of queries, and of keys",
                std::to_string(packed.size()) + " for " + std::to_string(queries) + " and " +
                    std::to_string(keys),
                "drop the flag for one new token after the cached ones");
  return Places{packed, packed};
}

// [batch][key] of a flag, a row for all or one for each sequence; empty where none is given.
template <class T>
Expected<std::vector<T>> for_keys(const std::string& text, std::string_view flag,
                                  std::string_view cure, std::int64_t batch, std::int64_t keys,
                                  T (*made)(std::int64_t)) {
  std::vector<T> out;
  if (text.empty()) return out;
  POSENC_TRY(given, integer_rows(text, flag));
  const auto count = static_cast<std::int64_t>(given.values.size());
  if (count != given.rows * keys || (given.rows != 1 && given.rows != batch))
    return fail(flag,
                "must have a number for each of the " + std::to_string(keys) +
                    " keys, in one row or one for each of " + std::to_string(batch) + " sequences",
                std::to_string(count) + " in " + std::to_string(given.rows) + " rows", cure);
  for (std::int64_t b = 0; b < batch; b++)
    for (std::int64_t j = 0; j < keys; j++)
      out.push_back(
          made(given.values[static_cast<std::size_t>((given.rows == 1 ? 0 : b) * keys + j)]));
  return out;
}

std::uint8_t is_kept(std::int64_t number) { return number != 0; }
std::int32_t block_of(std::int64_t number) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(number, -1, 0x7fffffff));
}

// Ids of the keys that each query may see, a row for each query of one sequence or of all.
Expected<void> give_lists(const std::string& text, std::int64_t batch, std::int64_t queries,
                          std::vector<std::int32_t>& lists, Mask& mask) {
  if (text.empty()) return {};
  POSENC_TRY(given, integer_rows(text, "--keys"));
  if (given.rows < 1 || (given.rows != queries && given.rows != batch * queries))
    return fail("--keys",
                "must have a row for each of " + std::to_string(queries) + " queries, or of " +
                    std::to_string(batch * queries) + " of all sequences",
                std::to_string(given.rows) + " rows", "-1 fills a shorter row");
  const std::int64_t times = given.rows == queries ? batch : 1;
  for (std::int64_t b = 0; b < times; ++b)
    for (const std::int64_t id : given.values) lists.push_back(block_of(id));
  mask.key_count = static_cast<std::int64_t>(given.values.size()) / given.rows;
  mask.keys = lists.data();
  return {};
}

struct AttendOptions {
  std::string out, q, k, v, positions, key_positions, packed, keep, blocks, picked, dtype, logits,
      sink_logits, temperature, query_profiles, key_profiles;
  std::optional<double> softcap;
  std::string relative_query, relative_key, relative_value;
  bool reference = false;
  Threads threads;
  bool mpi = false;
  std::string layout = "auto", strategy = "ring";
  std::int64_t block = 1;
  std::optional<MaskFlags> mask;
  std::optional<Source> source;
};

// All that attention takes, out of flags and files.
struct Call {
  Held q, k, v;
  Places where;
  Plan plan;
  const ContentScheme* content = nullptr;
  std::vector<std::uint8_t> keep;
  std::vector<std::int32_t> blocks, lists;
  Mask mask;
  Table sinks, query_profiles, key_profiles;

  AttentionInputs inputs(Threads threads) const {
    return {q.view,        k.view,       v.view,
            where.queries, where.keys,   mask,
            threads,       sinks.values, {query_profiles.values, key_profiles.values}};
  }
};

Expected<void> set_plan(AttendOptions& options, Call& call) {
  if (options.mask->bidirectional())
    options.source->set_where_known("bidirectional", FieldValue(true));
  Geometry of_tensor;
  of_tensor.heads = call.q.view.shape[1];
  of_tensor.kv_heads = call.k.view.shape[1];
  of_tensor.head_dim = call.q.view.shape[3];
  of_tensor.length = std::max(call.where.queries.length(), call.where.keys.length());
  POSENC_TRY(plan, options.source->plan(of_tensor));
  call.plan = std::move(plan);
  call.content = options.source->content();
  call.plan.add.reset();  // the embeddings got it before q, k and v were made of them
  POSENC_CHECK(check_table(call.plan, "attend"));
  POSENC_CHECK(give_relative(call.plan, options.relative_query, options.relative_key,
                             options.relative_value));
  if (options.softcap) call.plan.logits.softcap = *options.softcap;
  Table temperature;
  POSENC_CHECK(give(temperature, options.temperature));
  return temperature ? set_temperature(call.plan.logits, temperature.values) : Expected<void>();
}

Expected<void> set_mask(const AttendOptions& options, Call& call) {
  const std::int64_t batch = call.q.view.shape[0], keys = call.k.view.shape[2];
  POSENC_TRY(keep,
             for_keys(options.keep, "--mask", "1: a token, 0: padding", batch, keys, is_kept));
  POSENC_TRY(blocks,
             for_keys(options.blocks, "--blocks", "-1: a token of none", batch, keys, block_of));
  POSENC_TRY(mask, options.mask->over(options.source->mask()));
  call.keep = std::move(keep);
  call.blocks = std::move(blocks);
  call.mask = mask;
  if (!call.keep.empty()) call.mask.keep = call.keep.data();
  if (!call.blocks.empty()) call.mask.blocks = call.blocks.data();
  return give_lists(options.picked, batch, call.q.view.shape[2], call.lists, call.mask);
}

Expected<Call> prepared(AttendOptions& options) {
  if (options.logits == options.out)
    return fail("--logits", "must not be OUT", options.logits, "give it a name of its own");
  Call call;
  for (const auto& [to, path] :
       {std::pair{&call.q, &options.q}, {&call.k, &options.k}, {&call.v, &options.v}}) {
    POSENC_TRY(tensor,
               options.mpi ? map_held(*path, options.dtype) : read_held(*path, options.dtype));
    *to = std::move(tensor);
  }
  const std::int64_t queries = call.q.view.shape[2], keys = call.k.view.shape[2];
  POSENC_TRY(where, options.packed.empty()
                        ? places_of(options.positions, queries, options.key_positions, keys)
                        : packed_places(options.packed, queries, keys));
  call.where = std::move(where);
  POSENC_CHECK(set_plan(options, call));
  POSENC_CHECK(set_mask(options, call));
  POSENC_CHECK(give(call.sinks, options.sink_logits));
  POSENC_CHECK(give(call.query_profiles, options.query_profiles));
  POSENC_CHECK(give(call.key_profiles, options.key_profiles));
  const bool by_loops = !options.logits.empty() || options.reference;
  if (call.content != nullptr && by_loops)
    return fail(options.reference ? "--reference" : "--logits", "is of schemes that plans can say",
                std::string(info(*call.content).name),
                "drop the flag; posenc plot scores draws the weights");
  if (options.mpi && !options.out.ends_with(".npy"))
    return fail("OUT", "must be .npy with --mpi, whose ranks write their parts of it", options.out,
                "name it like out.npy");
  if (options.mpi && by_loops)
    return fail(options.reference ? "--reference" : "--logits", "is computed by one process",
                "--mpi", "drop one of the two");
  if (options.mpi && !(call.where.queries == call.where.keys))
    return fail("--mpi", "the queries must be those of the keys' tokens",
                std::to_string(queries) + " and " + std::to_string(keys),
                "drop --mpi for new tokens behind cached ones");
  return call;
}

// Room for what is shaped like q but for its last axis.
Expected<Held> like_q(const AttendOptions& options, const Call& call, std::int64_t last) {
  std::vector<std::int64_t> shape = call.q.array.shape;
  shape.back() = last;
  POSENC_TRY(array, make_array(call.q.array.type, std::move(shape)));
  return held(std::move(array), options.dtype, options.out);
}

Expected<int> attend_here(const AttendOptions& options, const Call& call) {
  std::optional<Waiting> waiting(std::in_place, "attend", options.q);
  POSENC_TRY(out, like_q(options, call, call.v.view.shape[3]));
  const AttentionInputs in = call.inputs(options.threads);
  if (call.content != nullptr) {
    POSENC_CHECK(attend(in, *call.content, call.plan, out.view));
  } else if (!options.reference) {
    POSENC_CHECK(attend(in, call.plan, out.view));
  }
  if (!options.logits.empty()) {
    POSENC_TRY(logits, like_q(options, call, call.k.view.shape[2]));
    POSENC_TRY(slow, like_q(options, call, call.v.view.shape[3]));
    POSENC_CHECK(
        attend_reference(in, call.plan, options.reference ? out.view : slow.view, logits.view));
    POSENC_CHECK(write_array(options.logits, logits.array, options.dtype));
  } else if (options.reference) {
    POSENC_CHECK(attend_reference(in, call.plan, out.view));
  }
  if (options.out == "-") waiting.reset();
  POSENC_CHECK(write_array(options.out, out.array, options.dtype));
  return 0;
}

Expected<int> attend_on_ranks(const AttendOptions& options, const Call& call) {
  Array out{call.q.array.type, call.q.array.shape, {}};
  out.shape.back() = call.v.view.shape[3];
  POSENC_CHECK(ranks_of_mpi->attend({.in = call.inputs(options.threads),
                                     .plan = call.plan,
                                     .content = call.content,
                                     .layout = options.layout,
                                     .strategy = options.strategy,
                                     .block = options.block,
                                     .out = options.out,
                                     .header = npy_header(out)}));
  return 0;
}

// What most flags are: a text, its type and its words.
struct AttendFlag {
  const char* names;
  std::string AttendOptions::* value;
  const char* about;
  const char* type;
  bool rare;
};

constexpr AttendFlag tensor_flags[] = {
    {"--q", &AttendOptions::q,
     "Queries [batch, heads, seq, head_dim], not rotated: .npy, FILE:TENSOR, -", "FILE", false},
    {"--k", &AttendOptions::k, "Keys, not rotated; heads may share theirs", "FILE", false},
    {"--v", &AttendOptions::v, "Values, shaped like k", "FILE", false},
};

constexpr AttendFlag token_flags[] = {
    {"--positions", &AttendOptions::positions, "Of queries: 0:4096 (not 4096), 0,2,4, ids.npy",
     "IDS", false},
    {"--key_positions", &AttendOptions::key_positions, "Of the keys", "IDS", true},
    {"--packed,--cu_seqlens", &AttendOptions::packed,
     "Sequences packed in one row: 0,3,70 (tokens 0 to 2, 3 to 69)", "BOUNDS", false},
    {"--mask,--keep", &AttendOptions::keep,
     "Padding mask [batch][key]: 0,0,1;1,1,1 or a .npy; 0 hides", "ROWS", false},
    {"--sink_logits,--sink-logits", &AttendOptions::sink_logits,
     "Logits without a value in the softmax, .npy [heads] or [batch, heads, seq]", "FILE", false},
    {"--temperature", &AttendOptions::temperature,
     "Learned temperature, .npy [2, heads]: queries at p × s·ln(p + 1) + b (Mistral Large 4)",
     "FILE", true},
    {"--blocks", &AttendOptions::blocks,
     "Pictures among text, [batch][key]: tokens of a block see each other both ways; -1: none",
     "ROWS", true},
    {"--keys", &AttendOptions::picked,
     "Keys that each query may see, [query][count] as an indexer picks them: 0,-1;0,1; -1: none",
     "ROWS", true},
};

constexpr AttendFlag table_flags[] = {
    {"--relative_key", &AttendOptions::relative_key,
     "[shaw, deberta] Vectors by distance that meet q, .npy [row][head_dim]", "FILE", true},
    {"--relative_query", &AttendOptions::relative_query, "Those that meet k", "FILE", true},
    {"--relative_value", &AttendOptions::relative_value, "Those added to the output", "FILE", true},
    {"--query_profiles", &AttendOptions::query_profiles,
     "[profiles] Those of queries, .npy [batch, heads, seq, profile]", "FILE", true},
    {"--key_profiles", &AttendOptions::key_profiles, "Those of keys", "FILE", true},
};

constexpr const char* attend_footer =
    "Tensors may lack axes in front. All but what is added to embeddings comes from the "
    "encoding.\n\n"
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
    "  mpirun -n 2 posenc attend out.npy --mpi --q q.npy --k k.npy --v v.npy --scheme rope\n"
    "  posenc attend slow.npy --q q.npy --k k.npy --v v.npy --model llama-2-7b --reference";

void define_texts(CLI::App& app, AttendOptions& options, std::span<const AttendFlag> flags) {
  for (const AttendFlag& flag : flags) {
    CLI::Option* option = app.add_option(flag.names, options.*flag.value, flag.about);
    option->type_name(flag.type);
    if (flag.rare) option->group(std::string(rare_group));
  }
}

// How it is computed: the softmax, by what, in which type.
void define_computing(CLI::App& app, AttendOptions& options) {
  const std::string rare(rare_group);
  app.add_option("--softcap", options.softcap,
                 "Logits z become C·tanh(z / C), as Gemma 2 has them with 50")
      ->type_name("C")
      ->group(rare)
      ->check(CLI::PositiveNumber);
  app.add_option("--logits", options.logits,
                 "Write there the masked logits, [batch, heads, queries, keys], by plain loops")
      ->check(array_file())
      ->type_name("FILE");
  app.add_flag("--reference", options.reference, "OUT by plain double loops too, to compare with")
      ->group(rare);
  app.add_option("--dtype", options.dtype, "bfloat16: the tensors are uint16 holding bfloat16")
      ->type_name("TYPE")
      ->group(rare);
  app.add_option("--threads", options.threads.count, "Threads of the fused attention")
      ->default_str("as many as processors")
      ->group(rare)
      ->check(CLI::Range(1, 1024));
}

void define_ranks(CLI::App& app, AttendOptions& options) {
  const std::string rare(rare_group);
  app.add_flag("--mpi", options.mpi,
               "Under mpirun: the ranks share out the tokens, and no rank reads the files whole")
      ->group(rare);
  app.add_option("--layout", options.layout,
                 "Who has which tokens: contiguous, zigzag, striped, by-document, balanced, auto")
      ->capture_default_str()
      ->group(rare);
  app.add_option("--layout_block", options.block, "Tokens beside each other in a striped layout")
      ->capture_default_str()
      ->group(rare);
  app.add_option("--strategy", options.strategy, "How queries and keys meet: ring, gather, heads")
      ->capture_default_str()
      ->group(rare);
}

Run define_attend(CLI::App& app) {
  auto options = std::make_shared<AttendOptions>();
  add_output(app, options->out,
             "Where softmax(logits) v goes, shaped like q: .npy, .safetensors, .csv, .txt, -");
  define_texts(app, *options, tensor_flags);
  for (const AttendFlag& tensor : tensor_flags) app.get_option(tensor.names)->required();
  define_texts(app, *options, token_flags);
  app.get_option("--positions")->default_str("the last of the keys");
  app.get_option("--key_positions")->default_str("those of the queries if as many, else from 0");
  app.get_option("--packed")->excludes("--positions")->excludes("--key_positions");
  define_computing(app, *options);
  define_texts(app, *options, table_flags);
  define_ranks(app, *options);
  options->mask.emplace(app);
  options->source.emplace(app, "attend", true);
  app.footer(attend_footer);
  return [options]() -> Expected<int> {
    if (options->mpi && ranks_of_mpi == nullptr) return become_posenc_mpi();
    Expected<Call> call = prepared(*options);
    if (options->mpi) {
      const Expected<void> own = call ? Expected<void>() : std::unexpected(call.error());
      POSENC_CHECK(ranks_of_mpi->agree(own));
      return attend_on_ranks(*options, *call);
    }
    return call ? attend_here(*options, *call) : std::unexpected(call.error());
  };
}

}  // namespace

extern const Command attend_command{
    "attend", "attention over tensors of files with any scheme, fused or by plain loops",
    define_attend};

}  // namespace posenc::cli
