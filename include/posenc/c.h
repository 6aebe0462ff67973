/* posenc in C: schemes and models become plans, plans act on tensors, and all that there is to know
   comes as JSON (docs/json.md, docs/c.md). C99 and later, C++11 and later.

   Errors. A function that can fail returns a posenc_status; the text of the last failure on the
   calling thread is posenc_last_error(). When a function fails a handle or string that it was to
   hand out is NULL, and an output tensor may be written in part. Bad arguments (NULL where a
   pointer is needed, a struct_size that is not this header's, negative or overflowing extents) and
   bad bytes are errors, never crashes. What cannot be checked is the caller's promise: that
   pointers point to as much memory as shapes and sizes say.

   Memory. posenc_x_free() releases a posenc_x and takes NULL; strings handed out through char **,
   in UTF-8 and ended by a zero byte, are released by posenc_string_free(). Nothing keeps a pointer
   that it was given beyond the call. Where memory runs out the process ends (a trap in
   WebAssembly), as nothing is ever thrown.

   Threads. Handles may be shared by threads that only read; posenc_plan_set_table() changes its
   plan, and a cache serves one thread at a time. */
#ifndef POSENC_C_H
#define POSENC_C_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define POSENC_API __attribute__((visibility("default")))
#else
#define POSENC_API
#endif

#ifdef __cplusplus
#define POSENC_NOTHROW noexcept
extern "C" {
#else
#define POSENC_NOTHROW
#endif

typedef struct posenc_model posenc_model;         /* what a model's files say about position */
typedef struct posenc_doctor posenc_doctor;       /* evidence of what is wrong with position */
typedef struct posenc_plan posenc_plan;           /* an encoding as tables and numbers */
typedef struct posenc_content posenc_content;     /* an encoding that reads what tokens say */
typedef struct posenc_positions posenc_positions; /* where each token stands */
typedef struct posenc_cache posenc_cache;         /* keys and values of the tokens so far */

typedef int32_t posenc_status;
enum {
  POSENC_OK = 0,
  POSENC_MISUSE = 1, /* the call itself is wrong: NULL, a wrong struct_size, an unknown constant */
  POSENC_REFUSED =
      2 /* what was passed breaks a rule of posenc, or bytes are not what they should be */
};

/* "rotate: head_dim must be even, got 63; set rotary_dim or pad the head". Of the last function
   that failed on this thread; "" before the first. Valid until the next failure on this thread; not
   to be freed. */
POSENC_API const char* posenc_last_error(void) POSENC_NOTHROW;

/* The parts of that sentence, for programs: "rotate", "head_dim must be even", "63", "set
   rotary_dim or pad the head". "" where it has none, and of an unknown part. Valid as long. */
typedef int32_t posenc_error_part;
enum { POSENC_ERROR_WHERE = 0, POSENC_ERROR_RULE = 1, POSENC_ERROR_GOT = 2, POSENC_ERROR_CURE = 3 };
POSENC_API const char* posenc_last_error_part(posenc_error_part part) POSENC_NOTHROW;

/* "0.1.0", of the library that is linked. */
POSENC_API const char* posenc_version(void) POSENC_NOTHROW;

POSENC_API void posenc_string_free(char* text) POSENC_NOTHROW;

/* --- what there is ---------------------------------------------------------------------------- */

/* {"schemes": [...], "scalings": [...], "content": [...]}, each with "name", "aliases", "title",
   "formula", "paper" and "fields": what forms and flags are made of (docs/json.md). */
POSENC_API posenc_status posenc_schemes_json(char** json) POSENC_NOTHROW;

/* [{"name", "about", "origin", "source"}]: real configurations that travel with the library. */
POSENC_API posenc_status posenc_models_json(char** json) POSENC_NOTHROW;

/* Standard normal numbers first, first + 1, … of a seed's sequence into out [count], the same on
   every machine but for last bits: what `posenc plot` draws of where no queries, keys or learned
   tables are given. Errors: a negative count. */
POSENC_API posenc_status posenc_normals(uint64_t seed, int64_t first, int64_t count,
                                        double* out) POSENC_NOTHROW;

/* --- models ----------------------------------------------------------------------------------- */

/* A config.json, params.json or GGUF file, a model's folder, or a bundled name
   (posenc_models_json). In WebAssembly bundled names alone. */
POSENC_API posenc_status posenc_model_open(const char* path_or_name,
                                           posenc_model** out) POSENC_NOTHROW;

/* The bytes of a config.json, a params.json or a GGUF file, told apart by their content. Of a GGUF
   the front with the header suffices. `name` is the file's, for messages and for the model's name;
   NULL: "model". */
POSENC_API posenc_status posenc_model_read(const void* bytes, size_t size, const char* name,
                                           posenc_model** out) POSENC_NOTHROW;

POSENC_API void posenc_model_free(posenc_model* model) POSENC_NOTHROW;

/* What `posenc explain --json` prints. at: length to explain for, positions 0 to at - 1 (0: as
   constructed); layer: the groups that hold this layer alone (-1: all). Errors: a length the model
   cannot reach, a layer it does not have. */
POSENC_API posenc_status posenc_model_explain_json(const posenc_model* model, int64_t at,
                                                   int64_t layer, char** json) POSENC_NOTHROW;

/* The doctor, of open models (docs/doctor.md, docs/json.md). Every length: positions to look at, 0:
   the model's context, or the longer of two. Errors besides those named: a negative length, one
   that a model cannot reach. */

/* [{"name", "title", "version", "source"}]: the profiles of engines, the newest version of each
   first. */
POSENC_API posenc_status posenc_engines_json(char** json) POSENC_NOTHROW;

/* Where two models treat position differently: {"equal", "expected", "found", "findings"}. */
POSENC_API posenc_status posenc_model_diff_json(const posenc_model* expected,
                                                const posenc_model* found, int64_t length,
                                                char** json) POSENC_NOTHROW;

/* What an engine ("vllm", "transformers@4") makes of it: one of "engines" of `posenc diff --engines
   --json`. Errors: no such engine. */
POSENC_API posenc_status posenc_model_engine_json(const posenc_model* model, const char* engine,
                                                  int64_t length, char** json) POSENC_NOTHROW;

/* What an engine's log of `size` bytes tells otherwise: {"equal", "expected", "findings"}. Errors:
   more than 64 MiB, a line above 1 MiB, a zero byte. */
POSENC_API posenc_status posenc_model_log_json(const posenc_model* model, const char* log,
                                               size_t size, int64_t length,
                                               char** json) POSENC_NOTHROW;

/* What an engine's command line makes of it: {"equal", "expected", "findings"} (posenc diff
   --command). length 0: what the line asks for. Errors: more than 1 MiB, no engine that is known, a
   flag about position that the engine does not have or whose value it does not take. */
POSENC_API posenc_status posenc_model_command_json(const posenc_model* model, const char* command,
                                                   int64_t length, char** json) POSENC_NOTHROW;

/* What deserves a look: {"findings"}. engine: that it is for, whose differences are then errors;
   NULL: any. Errors: no such engine. */
POSENC_API posenc_status posenc_model_lint_json(const posenc_model* model, const char* engine,
                                                int64_t length, char** json) POSENC_NOTHROW;

/* Its rotation in an engine's words. length: the context to start it for. Errors: no such engine,
   no rotation. */
POSENC_API posenc_status posenc_model_translate_json(const posenc_model* model, const char* engine,
                                                     int64_t length, char** json) POSENC_NOTHROW;

/* A plan for a context of `to` tokens. engine may be NULL: transformers. trained: tokens that
   training has shown, 0: as the file tells. training: nonzero if the weights will be trained at
   that length. Errors: no such engine, a length not from 1 to 2^40, a trained length that nobody
   tells. */
POSENC_API posenc_status posenc_model_extend_json(const posenc_model* model, int64_t to,
                                                  const char* engine, int64_t trained,
                                                  int32_t training, char** json) POSENC_NOTHROW;

/* Whatever a person has, judged together (docs/doctor.md): what is told first of models is what
   should run, and all else is a run of it. */
POSENC_API posenc_status posenc_doctor_new(posenc_doctor** out) POSENC_NOTHROW;

/* Adds a piece of evidence. bytes: of a config.json, params.json, GGUF, log, command line,
   Modelfile, trainer's YAML or printed inv_freq, told apart by their content; `name` is then what
   the answer calls it. NULL: `name` is a path, a bundled name or a command line. What cannot be
   used is no failure: the answer says why. */
POSENC_API posenc_status posenc_doctor_tell(posenc_doctor* doctor, const char* name,
                                            const void* bytes, size_t size) POSENC_NOTHROW;

/* What `posenc doctor --json` prints. engines: "vllm,transformers@5.12", beside those of the
   evidence, or NULL; length: tokens that it is to run for, 0: as the evidence says. Errors: no
   evidence, no such engine, a negative length. */
POSENC_API posenc_status posenc_doctor_json(const posenc_doctor* doctor, const char* engines,
                                            int64_t length, char** json) POSENC_NOTHROW;
POSENC_API void posenc_doctor_free(posenc_doctor* doctor) POSENC_NOTHROW;

/* Groups of layers that treat position alike, in the order of explain's "groups". */
POSENC_API posenc_status posenc_model_group_count(const posenc_model* model,
                                                  int64_t* count) POSENC_NOTHROW;

/* The index of the group that holds a layer. stack: "text", "encoder", "decoder" or "vision". */
POSENC_API posenc_status posenc_model_find_group(const posenc_model* model, const char* stack,
                                                 int64_t layer, int64_t* group) POSENC_NOTHROW;

/* Whose arithmetic the angles are formed in (docs/rope.md): the engines' floats are off by more the
   farther out a token stands, and their plans refuse positions from 2^24 on. */
typedef int32_t posenc_angles;
enum {
  POSENC_EXACT = 0,    /* in double from the integer position: the truth */
  POSENC_HF_FLOAT = 1, /* Hugging Face's */
  POSENC_GGML_FLOAT = 2
};

/* A group's plan. length: largest position + 1 to compile for (0: as constructed), which matters
   for scalings that depend on it. */
POSENC_API posenc_status posenc_model_plan(const posenc_model* model, int64_t group, int64_t length,
                                           posenc_angles angles, posenc_plan** out) POSENC_NOTHROW;

/* --- plans ------------------------------------------------------------------------------------ */

/* The model around a scheme; 0 stands for not known, and a scheme that needs a value says so. */
typedef struct posenc_geometry {
  uint32_t struct_size; /* sizeof(posenc_geometry) */
  posenc_angles angles;
  int64_t width;       /* channels of the embedding */
  int64_t heads;       /* query heads */
  int64_t kv_heads;    /* key and value heads */
  int64_t head_dim;    /* channels of a query or key head */
  int64_t length;      /* largest position + 1 to compile for; 0: as the model is constructed */
  int64_t grid_height; /* patches of a picture */
  int64_t grid_width;
} posenc_geometry;

/* A scheme as posenc prints it: {"type": "rope", "rope_theta": 1e6, "scaling": {"type": "yarn",
   "factor": 4, "original_max_position_embeddings": 32768}}. Types and fields are those of
   posenc_schemes_json(); a field left out has its default. geometry may be NULL: nothing known.
   Errors: not JSON, no such type or field, a value out of range, a field or a size that the scheme
   needs. */
POSENC_API posenc_status posenc_plan_from_scheme(const char* scheme_json,
                                                 const posenc_geometry* geometry,
                                                 posenc_plan** out) POSENC_NOTHROW;

POSENC_API void posenc_plan_free(posenc_plan* plan) POSENC_NOTHROW;

/* The plan as in docs/json.md, with "valid" in it: frequencies, amplitude, slopes, bias tables,
   lengths. */
POSENC_API posenc_status posenc_plan_json(const posenc_plan* plan, char** json) POSENC_NOTHROW;

/* --- tensors ---------------------------------------------------------------------------------- */

typedef int32_t posenc_dtype;
enum {
  POSENC_FLOAT64 = 0,
  POSENC_FLOAT32 = 1,
  POSENC_FLOAT16 = 2, /* IEEE binary16 */
  POSENC_BFLOAT16 = 3
};

/* A borrowed view of memory. Strides count elements, not bytes, and may be negative; data points at
   the element with all indices 0 and is aligned for its type. Where a function takes more axes than
   the tensor has, axes of extent 1 are put in front. */
typedef struct posenc_tensor {
  uint32_t struct_size; /* sizeof(posenc_tensor) */
  posenc_dtype dtype;
  int32_t rank; /* 0 to 4 */
  void* data;
  int64_t shape[4];
  int64_t stride[4];
} posenc_tensor;

/* Fills *out: a row-major view whose last axis is contiguous. */
POSENC_API posenc_status posenc_tensor_dense(void* data, posenc_dtype dtype, int32_t rank,
                                             const int64_t* shape,
                                             posenc_tensor* out) POSENC_NOTHROW;

typedef int32_t posenc_table;
enum {
  POSENC_TABLE_ADD = 0,  /* learned vectors [rows][width] */
  POSENC_TABLE_BIAS = 1, /* biases [heads][rows]; T5 stores [rows][heads]: swap the strides */
  POSENC_TABLE_RELATIVE_QUERY =
      2, /* vectors by distance [rows][head_dim], or [heads][rows][head_dim] */
  POSENC_TABLE_RELATIVE_KEY = 3,
  POSENC_TABLE_RELATIVE_VALUE = 4,
  POSENC_TABLE_TEMPERATURE =
      5 /* [2][heads]: s, then b; queries at p are multiplied by s·ln(p + 1) + b */
};

/* Gives a plan a learned table (learned, t5, shaw, deberta; a temperature any plan whose logits
   have no other); the numbers are copied. Errors: a plan without such a part, another shape than it
   needs, more than 2^28 numbers. */
POSENC_API posenc_status posenc_plan_set_table(posenc_plan* plan, posenc_table table,
                                               const posenc_tensor* values) POSENC_NOTHROW;

/* --- positions -------------------------------------------------------------------------------- */

/* first, first + 1, ..., count of them; shared by every sequence of a batch. Costs no memory. */
POSENC_API posenc_status posenc_positions_range(int64_t first, int64_t count,
                                                posenc_positions** out) POSENC_NOTHROW;

/* Explicit ids, none negative, row-major [axes][batch][seq]; text has 1 axis, a picture 2 (height,
   width), a video 3. batch 1 is shared by every sequence. The ids are copied. */
POSENC_API posenc_status posenc_positions_ids(const int64_t* ids, int64_t axes, int64_t batch,
                                              int64_t seq, posenc_positions** out) POSENC_NOTHROW;

/* From a padding mask [batch][seq], nonzero a token: a token's position is the number of tokens
   before it. The first `cached` columns are counted and not returned; padding gets the position
   `padding` (0 or -1). */
POSENC_API posenc_status posenc_positions_from_mask(const uint8_t* mask, int64_t batch, int64_t seq,
                                                    int64_t cached, int64_t padding,
                                                    posenc_positions** out) POSENC_NOTHROW;

/* The same where ids may be negative, as pictures are counted from their middle. */
POSENC_API posenc_status posenc_positions_signed_ids(const int64_t* ids, int64_t axes,
                                                     int64_t batch, int64_t seq,
                                                     posenc_positions** out) POSENC_NOTHROW;

/* Every cell of a grid of `axes` sizes, row by row, counted on each axis from first[axis] (NULL:
   0). */
POSENC_API posenc_status posenc_positions_grid(const int64_t* sizes, const int64_t* first,
                                               int64_t axes, posenc_positions** out) POSENC_NOTHROW;

/* Packed sequences, cu_seqlens = {0, n0, n0 + n1, ...} of `count` entries: positions restart at
   every boundary. */
POSENC_API posenc_status posenc_positions_packed(const int64_t* cu_seqlens, int64_t count,
                                                 posenc_positions** out) POSENC_NOTHROW;

/* Patches of pictures, two axes (row, column), in m x m blocks (merge; 1: row by row), `frames`
   times over. */
POSENC_API posenc_status posenc_positions_patches(int64_t height, int64_t width, int64_t merge,
                                                  int64_t frames,
                                                  posenc_positions** out) POSENC_NOTHROW;

/* shape receives axes, batch and seq. */
POSENC_API posenc_status posenc_positions_shape(const posenc_positions* positions,
                                                int64_t shape[3]) POSENC_NOTHROW;

/* Copies the positions, row-major [axes][batch][seq], to ids, which has room for `capacity`. */
POSENC_API posenc_status posenc_positions_copy(const posenc_positions* positions, int64_t* ids,
                                               size_t capacity) POSENC_NOTHROW;

POSENC_API void posenc_positions_free(posenc_positions* positions) POSENC_NOTHROW;

/* --- acting on tensors ------------------------------------------------------------------------ */

/* In all of these out has the dtype of its input and is the same view (in place) or memory apart
   from it: the input's own memory shifted is an error. float64 is computed in double; 16-bit types
   are rounded once, to nearest even. threads: 0 for as many as the machine has; the same bits for
   any number. WebAssembly computes on the caller's thread, whatever it says. */

typedef int32_t posenc_side; /* xPos grows queries and shrinks keys; values only rotate */
enum { POSENC_QUERY = 0, POSENC_KEY = 1, POSENC_VALUE = 2 };

/* embedding [batch, seq, width] · embedding scale + position vectors -> out. Errors: a plan that
   adds nothing, a width that is not the plan's, a position outside a learned table, a table not
   given. */
POSENC_API posenc_status posenc_add(const posenc_plan* plan, const posenc_tensor* embedding,
                                    const posenc_positions* positions, const posenc_tensor* out,
                                    int32_t threads) POSENC_NOTHROW;

/* The position vectors alone, without the embedding scale: out [batch, seq, width]. */
POSENC_API posenc_status posenc_position_vectors(const posenc_plan* plan,
                                                 const posenc_positions* positions,
                                                 const posenc_tensor* out,
                                                 int32_t threads) POSENC_NOTHROW;

/* x [batch, head, seq, head_dim] rotated by its positions -> out. For [batch, seq, head, head_dim]
   in memory swap shape and strides of the two axes. A plan without a rotation copies. PoPE makes a
   pair of each channel that turns: out is wider by as many, in memory of its own. */
POSENC_API posenc_status posenc_rotate(const posenc_plan* plan, const posenc_tensor* x,
                                       const posenc_positions* positions, posenc_side side,
                                       const posenc_tensor* out, int32_t threads) POSENC_NOTHROW;

/* q [batch, head, seq, head_dim] and k [batch, kv_head, seq, head_dim] of the same tokens, each as
   posenc_rotate gives it; cos and sin of a token are made once for both. Errors: those of
   posenc_rotate, batches that differ. Then nothing is written. */
POSENC_API posenc_status posenc_rotate_qk(const posenc_plan* plan, const posenc_tensor* q,
                                          const posenc_tensor* k, const posenc_positions* positions,
                                          const posenc_tensor* q_out, const posenc_tensor* k_out,
                                          int32_t threads) POSENC_NOTHROW;

/* The inverse: divides by amplitude and growth where rotate multiplied. */
POSENC_API posenc_status posenc_rotate_inverse(const posenc_plan* plan, const posenc_tensor* x,
                                               const posenc_positions* positions, posenc_side side,
                                               const posenc_tensor* out,
                                               int32_t threads) POSENC_NOTHROW;

/* The transpose: the gradient of rotate's input from the gradient of its output. */
POSENC_API posenc_status posenc_rotate_transpose(const posenc_plan* plan, const posenc_tensor* x,
                                                 const posenc_positions* positions,
                                                 posenc_side side, const posenc_tensor* out,
                                                 int32_t threads) POSENC_NOTHROW;

/* The angles of rotate, in radians: out [batch, head, seq, pair], with any number of heads where
   the plan's frequencies are shared by all. */
POSENC_API posenc_status posenc_rotation_angles(const posenc_plan* plan,
                                                const posenc_positions* positions,
                                                const posenc_tensor* out,
                                                int32_t threads) POSENC_NOTHROW;

/* The angles of tokens that stand at real positions of any sign, at [axis, batch, seq]: out [batch,
   head, seq, pair], the sum over axes of at · frequency. Errors: positions that are not finite, an
   engine's angles. */
POSENC_API posenc_status posenc_rotation_angles_at(const posenc_plan* plan, const posenc_tensor* at,
                                                   const posenc_tensor* out,
                                                   int32_t threads) POSENC_NOTHROW;

/* x [batch, head, seq, head_dim] rotated by given angles [batch or 1, head or 1, seq, pair] in
   radians instead of positions; slice, pairing and amplitude are the plan's. Errors: a plan without
   a rotation of this side, xPos, an engine's angles. */
POSENC_API posenc_status posenc_rotate_by(const posenc_plan* plan, const posenc_tensor* x,
                                          const posenc_tensor* angles, posenc_side side,
                                          const posenc_tensor* out, int32_t threads) POSENC_NOTHROW;

/* The transpose: the gradient of posenc_rotate_by's input from the gradient of its output. */
POSENC_API posenc_status posenc_rotate_by_transpose(const posenc_plan* plan, const posenc_tensor* x,
                                                    const posenc_tensor* angles, posenc_side side,
                                                    const posenc_tensor* out,
                                                    int32_t threads) POSENC_NOTHROW;

/* The inverse: divides by the amplitude where posenc_rotate_by multiplied. */
POSENC_API posenc_status posenc_rotate_by_inverse(const posenc_plan* plan, const posenc_tensor* x,
                                                  const posenc_tensor* angles, posenc_side side,
                                                  const posenc_tensor* out,
                                                  int32_t threads) POSENC_NOTHROW;

/* The gradient by the angles of posenc_rotate_by, which gave `rotated`: out is like the angles. */
POSENC_API posenc_status posenc_angle_gradient(const posenc_plan* plan,
                                               const posenc_tensor* rotated,
                                               const posenc_tensor* rotated_gradient,
                                               const posenc_tensor* out) POSENC_NOTHROW;

/* What is added to the logits by distance: out [head, query, key]; zeros of a plan without a bias.
   No causal mask is in it. */
POSENC_API posenc_status posenc_bias(const posenc_plan* plan, const posenc_positions* queries,
                                     const posenc_positions* keys, const posenc_tensor* out,
                                     int32_t threads) POSENC_NOTHROW;

/* Which keys a query sees, by position: where causal, window and chunk all let it, or where the key
   is of the prefix or of the query's own block, which overrule these three; keep, keys and the
   bounds of packed sequences overrule both (attention.h draws them). What is hidden is of no
   effect, whatever its memory holds. */
typedef struct posenc_mask {
  uint32_t struct_size; /* sizeof(posenc_mask) */
  int32_t causal;       /* nonzero: hides keys behind the query */
  int64_t window;       /* hides keys so far away or further; 0: none */
  int64_t chunk;        /* hides keys with another floor(position / chunk); 0: none */
  int64_t prefix;       /* keys at positions 0 to prefix - 1 are seen by all */
  const uint8_t* keep;  /* [batch][key], zero hides a key; NULL: none hidden */
  /* [batch][key], tokens of a block (a picture) see each other both ways; below 0: of none. Queries
     are the last of the keys. NULL: no blocks */
  const int32_t* blocks;
  /* [batch][query][key_count], ids of the keys that each query may see, in any order, each once;
     below 0: none. NULL: all keys */
  const int32_t* keys;
  int64_t key_count;
} posenc_mask;

/* Small tensors made of the tokens, which a plan's tables by distance meet in place of q and k (its
   JSON: relative.profiles, u of them), of any dtype and strides; NULL where the plan has no such
   table. */
typedef struct posenc_profiles {
  uint32_t struct_size;       /* sizeof(posenc_profiles) */
  const posenc_tensor* query; /* [batch, heads, queries, u] */
  const posenc_tensor* key;   /* [batch, heads, keys, u], one for each query head */
} posenc_profiles;

/* What every attention takes. Any strides, one dtype of q, k, v and the output; heads is a multiple
   of kv_heads. q and k come unrotated: all that position does is taken from the plan. */
typedef struct posenc_attention {
  uint32_t struct_size;   /* sizeof(posenc_attention) */
  int32_t threads;        /* 0: as many as the machine has; the same bits for any number */
  const posenc_tensor* q; /* [batch, heads, queries, head_dim] */
  const posenc_tensor* k; /* [batch, kv_heads, keys, head_dim] */
  const posenc_tensor* v; /* [batch, kv_heads, keys, head_dim] */
  const posenc_positions* queries;
  const posenc_positions* keys;
  const posenc_mask* mask; /* NULL: causal */
  /* Logits that the softmax counts and that have no value, [heads] or [batch, heads, queries], of
     any dtype; neither scaled nor masked. NULL: none. */
  const posenc_tensor* sink_logits;
  const posenc_profiles* profiles; /* of a plan with profiles, and only then */
  int32_t float_products;          /* nonzero: bfloat16 is multiplied in float on every processor */
} posenc_attention;

/* softmax(logits) v, for any plan, without ever holding all logits at once; out [batch, heads,
   queries, value_dim]. 16-bit types and float32 are computed in float (bfloat16 multiplied as
   such where the processor does: docs/speed.md), float64 in double, the rotation's angles in
   double. A query that sees no key gives zeros. In WebAssembly it is
   posenc_attend_reference, on the caller's thread. Errors: shapes, dtypes or positions that do not
   fit each other, a learned table not given, a distance that a table does not reach. */
POSENC_API posenc_status posenc_attend(const posenc_plan* plan, const posenc_attention* in,
                                       const posenc_tensor* out) POSENC_NOTHROW;

/* The same in plain double loops on one thread, the truth for faster ones. logits may be NULL; else
   it receives the masked logits [batch, heads, queries, keys]. */
POSENC_API posenc_status posenc_attend_reference(const posenc_plan* plan,
                                                 const posenc_attention* in,
                                                 const posenc_tensor* out,
                                                 const posenc_tensor* logits) POSENC_NOTHROW;

/* --- schemes that read the content ------------------------------------------------------------ */

/* A scheme of the list "content" of posenc_schemes_json(), as JSON (docs/content.md): {"type":
   "forgetting", "gate_bias": [3]}. Errors: not JSON, no such type or field, a value out of range, a
   required field left out. */
POSENC_API posenc_status posenc_content_from_scheme(const char* scheme_json,
                                                    posenc_content** out) POSENC_NOTHROW;

POSENC_API void posenc_content_free(posenc_content* content) POSENC_NOTHROW;

/* Gives it a tensor by its name in "tables": CoPE's "embeddings" [positions][head_dim] or
   [heads][positions] [head_dim], forgetting's, Wall's and PaTH's "log_gates" [batch][heads][keys],
   Wall's "channel_gates" [batch][heads] [keys][head_dim], PaTH's "w"
   [batch][kv_heads][keys][head_dim] and "beta" [batch][kv_heads][keys]. The numbers are copied.
   Errors: no such table, more than 2^28 numbers. What shape it must have attention with it says. */
POSENC_API posenc_status posenc_content_set_table(posenc_content* content, const char* name,
                                                  const posenc_tensor* values) POSENC_NOTHROW;

/* posenc_attend_reference with such a scheme. The plan beside it may rotate and scale logits; NULL
   is the empty plan. logits and weights [batch, heads, queries, keys] may be NULL; else they
   receive what the softmax takes (of stick_breaking, which has none, the logarithms of the
   weights), and what each value is multiplied by. Errors: those of posenc_attend; a plan with a
   bias or relative vectors, tables that do not fit, masks that a scheme cannot take. */
POSENC_API posenc_status posenc_attend_content_reference(
    const posenc_content* content, const posenc_plan* plan, const posenc_attention* in,
    const posenc_tensor* out, const posenc_tensor* logits,
    const posenc_tensor* weights) POSENC_NOTHROW;

#ifndef __wasm__ /* what the WebAssembly module does without */

/* posenc_plan_from_scheme with tensors that the scheme has learned, by their names in its "tables"
   of posenc_schemes_json(): those of transformer_xl, log_cpb, decomposed and axis_buckets are
   needed before it is compiled. The numbers are copied. Errors besides: no such table, more than
   2^28 numbers, a shape that does not fit. */
POSENC_API posenc_status posenc_plan_from_tables(const char* scheme_json,
                                                 const posenc_geometry* geometry,
                                                 const char* const* names,
                                                 const posenc_tensor* tables, size_t count,
                                                 posenc_plan** out) POSENC_NOTHROW;

/* --- gradients of attention ------------------------------------------------------------------- */

/* Where posenc_attend_backward writes what; NULL is not wanted. Shapes are those of the inputs and
   of the plan's parts. */
typedef struct posenc_attention_gradients {
  uint32_t struct_size; /* sizeof(posenc_attention_gradients) */
  const posenc_tensor *q, *k, *v;
  const posenc_tensor* slopes;         /* [head]: of the positive slope */
  const posenc_tensor* bias;           /* [head][row], or [1][row] where the heads share a table */
  const posenc_tensor* relative_query; /* [row][head_dim], or [head][row][head_dim] */
  const posenc_tensor* relative_key;   /* the same */
  const posenc_tensor* relative_value; /* the same */
  const posenc_tensor* rotation_frequency;    /* [head or 1][axis][pair] */
  const posenc_tensor* sink_logits;           /* like those that were given */
  const posenc_tensor* rotation_phase;        /* [head or 1][pair] */
  const posenc_tensor *mix_cosine, *mix_sine; /* [head or 1][input][output] */
  const posenc_profiles* profiles;            /* the same */
} posenc_attention_gradients;

/* The gradients of a loss by what went into posenc_attend, given that by its output: out_gradient
   [batch, heads, queries, head_dim] of q's dtype; the rest as posenc_attend took it. They are
   written, not added to, in any dtype and strides, also in the memory of an input. Weights are
   formed again, so nothing needs to be kept; memory grows with the length, not with its square.
   Errors: those of posenc_attend; a gradient of a part that the plan lacks, or of another shape.
   Then nothing is written. */
POSENC_API posenc_status posenc_attend_backward(
    const posenc_plan* plan, const posenc_attention* in, const posenc_tensor* out_gradient,
    const posenc_attention_gradients* gradients) POSENC_NOTHROW;

/* --- angles that content says ----------------------------------------------------------------- */

/* Angles that content says: out = start + factor · the sum of steps over the tokens so far
   (selective RoPE, CARoPE, Mamba-3), all [batch, head, seq, pair] but start [batch, head, pair] and
   factor [pair]; both may be NULL: zeros, and ones. Summed in double. */
POSENC_API posenc_status posenc_summed_angles(const posenc_tensor* steps, const double* factor,
                                              const posenc_tensor* start,
                                              const posenc_tensor* out) POSENC_NOTHROW;

/* The gradient by the steps given that by the angles: factor · the sums from behind. */
POSENC_API posenc_status posenc_summed_angles_gradient(const posenc_tensor* angles_gradient,
                                                       const double* factor,
                                                       const posenc_tensor* out) POSENC_NOTHROW;

/* The step of a pair, made of a number x that a token says, and what it is multiplied by, made of
   another, y. */
enum {
  POSENC_STEP_PLAIN = 0,    /* x */
  POSENC_STEP_TANH = 1,     /* tanh x */
  POSENC_STEP_SOFTPLUS = 2, /* ln(1 + e^x) */
  POSENC_STEP_POWERS = 3    /* (1 / (1 + ln(1 + e^x)))^r, x of all pairs of a head */
};
enum {
  POSENC_GATE_NONE = 0,
  POSENC_GATE_SIGMOID = 1, /* 1 / (1 + e^-y) */
  POSENC_GATE_SOFTPLUS = 2 /* ln(1 + e^y) */
};

/* How what tokens say becomes angles, beside a plan whose frequencies are radians per step: start +
   frequency · the sum of step · gate over the tokens so far (docs/content.md). */
typedef struct posenc_angle_form {
  uint32_t struct_size; /* sizeof(posenc_angle_form) */
  int32_t step, gate;
  int32_t own_step; /* 0: of the tokens before alone */
  int64_t turning;  /* pairs that turn, the first; 0: all */
  int32_t alone;    /* 1: of the token itself, which says where it stands: nothing is summed */
} posenc_angle_form;

/* The form and the plan of "selective_rope", "carope", "mamba3", "mamba3_halves", "grape_m" or
   "repo". number: the theta of selective_rope, grape_m and repo, the rotated part of mamba3; 0: as
   their authors have it. form->struct_size is to be set before. Errors: another name, an odd
   head_dim, a number out of range. */
POSENC_API posenc_status posenc_angle_form_named(const char* name, int64_t head_dim, double number,
                                                 posenc_angle_form* form,
                                                 posenc_plan** plan) POSENC_NOTHROW;

/* What the tokens of a call say; NULL: absent. */
typedef struct posenc_said_angles {
  uint32_t struct_size;       /* sizeof(posenc_said_angles) */
  const posenc_tensor* said;  /* x [batch, head or 1, seq, pair or 1], of the pairs that turn */
  const posenc_tensor* gate;  /* y [batch, head or 1, seq, pair or 1], where the form has a gate */
  const posenc_tensor* start; /* [batch, head, pair]: `next` of the call before; NULL: zeros */
} posenc_said_angles;

/* The angles for posenc_rotate_by, out [batch, head, seq, pair], summed in double, and where next
   is not NULL those that the token behind the last begins with, [batch, head, pair]. Errors:
   shapes, a plan that does not rotate by frequencies alone. */
POSENC_API posenc_status posenc_content_angles(const posenc_plan* plan,
                                               const posenc_angle_form* form,
                                               const posenc_said_angles* in,
                                               const posenc_tensor* out,
                                               const posenc_tensor* next) POSENC_NOTHROW;

/* Its gradients, given that by the angles, the sum of posenc_angle_gradient's of queries and of
   keys: `to` like `in`, and frequency [head or 1][pair], each where it is not NULL. Errors: those
   of posenc_content_angles. */
POSENC_API posenc_status posenc_content_angles_gradient(
    const posenc_plan* plan, const posenc_angle_form* form, const posenc_said_angles* in,
    const posenc_tensor* angles_gradient, const posenc_said_angles* to,
    const posenc_tensor* frequency) POSENC_NOTHROW;

/* --- what is added, at real positions and of another grid ------------------------------------- */

/* posenc_add and posenc_position_vectors of tokens at real positions, `at` [axis, batch, seq].
   Errors besides: a plan that adds a learned table or the index, a position that is not finite. */
POSENC_API posenc_status posenc_add_at(const posenc_plan* plan, const posenc_tensor* embedding,
                                       const posenc_tensor* at, const posenc_tensor* out,
                                       int32_t threads) POSENC_NOTHROW;
POSENC_API posenc_status posenc_position_vectors_at(const posenc_plan* plan,
                                                    const posenc_tensor* at,
                                                    const posenc_tensor* out,
                                                    int32_t threads) POSENC_NOTHROW;

/* A learned table [kept_rows + old patches][channels] for a grid of another size, its patches row
   by row: weighted sums of old patches. Zeroed but for struct_size it is PyTorch's bilinear
   interpolation, align_corners false. */
typedef struct posenc_resampling {
  uint32_t struct_size;                                 /* sizeof(posenc_resampling) */
  int64_t from_height, from_width, to_height, to_width; /* patches */
  int32_t bicubic; /* Keys' kernel, a = -0.75; with antialias -0.5 */
  int32_t align_corners, antialias;
  int32_t zeros_outside; /* patches beyond the edge are zeros, else the edge's */
  int64_t merge;         /* new patches in blocks of merge x merge; 0 as 1: row by row */
  int64_t kept_rows;     /* class tokens in front, copied */
  double offset;         /* of sides in the step between patches: DINOv2's 0.1; 0 to below 1 */
  int32_t repeated;      /* the old grid again and again: a window's table, which SAM 2 adds */
} posenc_resampling;

/* Errors: shapes, sizes below 1, a grid that is no whole number of blocks, antialias beside
   align_corners or zeros, repeated beside any that stretches. */
POSENC_API posenc_status posenc_resample_grid(const posenc_tensor* table,
                                              const posenc_resampling* how,
                                              const posenc_tensor* out) POSENC_NOTHROW;

/* The transpose: the gradient by the table given that by what posenc_resample_grid gave. */
POSENC_API posenc_status
posenc_resample_grid_gradient(const posenc_tensor* out_gradient, const posenc_resampling* how,
                              const posenc_tensor* table_gradient) POSENC_NOTHROW;

/* --- schemes that read the content, at speed -------------------------------------------------- */

/* posenc_attend with such a scheme, and a plan beside it or NULL. remainder may be NULL; else it
   receives what no key took, [batch, heads, queries], of a scheme that leaves something
   (stick_breaking). Errors: those of posenc_attend_content_reference. */
POSENC_API posenc_status posenc_attend_content(const posenc_content* content,
                                               const posenc_plan* plan, const posenc_attention* in,
                                               const posenc_tensor* out,
                                               const posenc_tensor* remainder) POSENC_NOTHROW;

/* Where posenc_attend_content_backward writes what; NULL is not wanted. */
typedef struct posenc_content_gradients {
  uint32_t struct_size; /* sizeof(posenc_content_gradients) */
  const posenc_tensor *q, *k, *v;
  const posenc_tensor *hidden_weight, *hidden_bias; /* fire: [hidden] */
  const posenc_tensor* output_weight;               /* fire: [heads][hidden] */
  const posenc_tensor* output_bias;                 /* fire: [heads] */
  const posenc_tensor *c, *length_multiplier;       /* fire: [1] */
  const posenc_tensor* embeddings;                  /* cope: like the table */
  const posenc_tensor* log_gates;                   /* forgetting, wall, path: like the table */
  const posenc_tensor* sink_logits;        /* fire, forgetting: like those that were given */
  const posenc_tensor* channel_gates;      /* wall: like the table */
  const posenc_tensor *w, *beta;           /* path: like the tables */
  const posenc_tensor *p_queries, *p_keys; /* grape_ap: like the tables */
} posenc_content_gradients;

/* Its gradients, as posenc_attend_backward has those of posenc_attend. remainder_gradient may be
   NULL: that of the loss by the remainder. Errors besides: a gradient of what the scheme does not
   learn. */
POSENC_API posenc_status posenc_attend_content_backward(
    const posenc_content* content, const posenc_plan* plan, const posenc_attention* in,
    const posenc_tensor* out_gradient, const posenc_content_gradients* gradients,
    const posenc_tensor* remainder_gradient) POSENC_NOTHROW;

/* PaTH's keys for a cache, written where they stand: keys [batch, kv_heads, cached, head_dim], the
   last of them those of the new tokens whose factors are w [batch, kv_heads, new, head_dim] and
   beta [batch, kv_heads, new]. Each key becomes H … H k, of the factors of all new tokens behind
   it, so that posenc_attend with the empty plan is PaTH. threads as in posenc_attention. Errors:
   shapes that do not fit; keys that share memory. */
POSENC_API posenc_status posenc_path_keys(const posenc_tensor* keys, const posenc_tensor* w,
                                          const posenc_tensor* beta,
                                          int32_t threads) POSENC_NOTHROW;

/* --- a key-value cache ------------------------------------------------------------------------ */

/* A batch of sequences of any lengths, their keys and values in pages, of one layer
   (docs/cache.md). A call that fails leaves the sequences as they were. */
typedef struct posenc_cache_options {
  uint32_t struct_size; /* sizeof(posenc_cache_options) */
  posenc_dtype dtype;
  int64_t kv_heads;
  int64_t head_dim;
  int64_t value_dim; /* 0: head_dim */
  int64_t page_size; /* tokens; 0: 16 */
  int64_t max_pages; /* reserved at once, and never more; 0: grows */
  int32_t rotated;   /* nonzero: keys are cached rotated; 0: as they came, and rotated when read */
  int32_t one_plan;  /* nonzero: rotated keys refuse another plan; 0: they are rotated to it */
  int32_t float_products; /* as in posenc_attention */
} posenc_cache_options;

/* Errors: sizes below 1 (value_dim: below 0), more than 2^28 pages, or pages that do not fit in
   memory. */
POSENC_API posenc_status posenc_cache_make(const posenc_cache_options* options,
                                           posenc_cache** out) POSENC_NOTHROW;

POSENC_API void posenc_cache_free(posenc_cache* cache) POSENC_NOTHROW;

/* An empty sequence; its number is never used twice. */
POSENC_API posenc_status posenc_cache_add(posenc_cache* cache, int64_t* sequence) POSENC_NOTHROW;

/* Its pages serve others. Errors: unknown. */
POSENC_API posenc_status posenc_cache_remove(posenc_cache* cache, int64_t sequence) POSENC_NOTHROW;

/* Appends tokens to each of `count` sequences: k [sequence, kv_heads, tokens, head_dim] and v
   [sequence, kv_heads, tokens, value_dim], unrotated. positions may be NULL: behind the largest of
   each. Errors: unknown or repeated sequences, shapes, dtype, positions, a plan that does not hold
   for the length or that cached keys refuse, no page left. */
POSENC_API posenc_status posenc_cache_append(posenc_cache* cache, const int64_t* sequences,
                                             size_t count, const posenc_tensor* k,
                                             const posenc_tensor* v, const posenc_plan* plan,
                                             const posenc_positions* positions,
                                             int32_t threads) POSENC_NOTHROW;

/* The attention of the newest tokens of each sequence over all its tokens, as posenc_attend: q
   [sequence, heads, tokens, head_dim], out [sequence, heads, tokens, value_dim]. mask may be NULL:
   causal; its keep must be NULL. sink_logits, [heads] or [sequence, heads, tokens], may be NULL:
   none. profiles of a plan that has them, else NULL; those of keys are of all cached tokens in
   their order, [sequence, heads, tokens of the longest, u]. Errors: those of both, fewer tokens
   than queries. */
POSENC_API posenc_status posenc_cache_attend(
    posenc_cache* cache, const int64_t* sequences, size_t count, const posenc_tensor* q,
    const posenc_plan* plan, const posenc_mask* mask, const posenc_tensor* sink_logits,
    const posenc_profiles* profiles, const posenc_tensor* out, int32_t threads) POSENC_NOTHROW;

/* Adds `offset` to the positions of tokens [first, last), counted without evicted ones; rotated
   keys are rotated along. Errors: unknown, tokens that are not there, positions out of range. */
POSENC_API posenc_status posenc_cache_shift(posenc_cache* cache, int64_t sequence, int64_t first,
                                            int64_t last, int64_t offset) POSENC_NOTHROW;

/* Drops tokens [first, last). closes: nonzero shifts those behind so that they stand where the
   first dropped one stood. Errors: those of posenc_cache_shift. */
POSENC_API posenc_status posenc_cache_evict(posenc_cache* cache, int64_t sequence, int64_t first,
                                            int64_t last, int32_t closes) POSENC_NOTHROW;

/* How many tokens are cached, and the largest position + 1. Errors: unknown. */
POSENC_API posenc_status posenc_cache_size(const posenc_cache* cache, int64_t sequence,
                                           int64_t* tokens, int64_t* length) POSENC_NOTHROW;

/* --- keys that move --------------------------------------------------------------------------- */

/* Keys x [batch, kv_head, seq, head_dim] that stand rotated by `from` at from_positions become keys
   rotated by `to` at to_positions -> out, as if the unrotated ones had been rotated there: once by
   the difference of the angles where the two plans differ in no more than frequencies and
   amplitude. Both plans may be one. side: POSENC_KEY, or POSENC_VALUE of plans that rotate values.
   Errors: those of posenc_rotate; a rotation that cannot be taken back, which is named; queries;
   positions that are not as many as the keys. */
POSENC_API posenc_status posenc_rekey(const posenc_plan* from,
                                      const posenc_positions* from_positions, const posenc_plan* to,
                                      const posenc_positions* to_positions, const posenc_tensor* x,
                                      posenc_side side, const posenc_tensor* out,
                                      int32_t threads) POSENC_NOTHROW;

/* Where several sequences have their tokens in a pool of pages: token t of sequence s is token
   t % page_size of page table[s * columns + t / page_size], a block table as engines have it. */
typedef struct posenc_page_table {
  uint32_t struct_size; /* sizeof(posenc_page_table) */
  const int32_t* pages; /* [sequences][columns] */
  int64_t sequences;
  int64_t columns;
  const int64_t* tokens; /* [sequences]: what stands behind them is not read */
} posenc_page_table;

/* The same in place, of keys [page, kv_head, token of the page, head_dim]; NHD pages with two axes
   of shape and stride swapped. Positions are as many as the longest sequence has tokens, a row for
   each sequence or one for all. Errors besides: pages that the pool does not have, a page of two
   sequences, more tokens than pages. */
POSENC_API posenc_status posenc_rekey_pages(
    const posenc_plan* from, const posenc_positions* from_positions, const posenc_plan* to,
    const posenc_positions* to_positions, const posenc_tensor* keys, const posenc_page_table* table,
    posenc_side side, int32_t threads) POSENC_NOTHROW;

/* How the numbers of cached keys are kept: one of posenc_dtype, or one of these. */
typedef int32_t posenc_key_type;
enum {
  POSENC_E4M3 = 4, /* a float of 8 bits by OCP, without infinities, up to 448 */
  POSENC_INT8 = 5, /* -127 to 127 */
  POSENC_Q8_0 = 6  /* llama.cpp's blocks of 32 integers behind a float16 */
};

/* Keys of 8 bits, [batch, kv_head, seq, head_dim], or pages of them: a number is its code times the
   scale of its block of channels. */
typedef struct posenc_key_codes {
  uint32_t struct_size; /* sizeof(posenc_key_codes) */
  posenc_key_type type; /* POSENC_E4M3 or POSENC_INT8 */
  void* codes;
  int64_t shape[4];
  int64_t stride[4];    /* bytes; that of channels is within a block */
  int64_t block;        /* channels that share a scale; 0: all of a head */
  int64_t block_stride; /* bytes between blocks; 0: block * stride[3] */
  posenc_tensor scales; /* [batch, kv_head, seq, block], an extent of 1 shared; data NULL: all 1 */
  int32_t new_scales;   /* nonzero: each is made anew, so that the largest number has the largest
                           code; 0: kept, and what is beyond the largest code becomes that */
} posenc_key_codes;

/* Fills *out: llama.cpp's rows of q8_0, for each token [kv_head][head_dim], whose scales are made
   anew. Errors: negative sizes, a head_dim that is no multiple of 32. */
POSENC_API posenc_status posenc_key_codes_q8_0(void* blocks, int64_t batch, int64_t kv_heads,
                                               int64_t seq, int64_t head_dim,
                                               posenc_key_codes* out) POSENC_NOTHROW;

/* The same in place, of keys of 8 bits: read as floats, turned, and written once, to nearest even.
   table: where they are pages of a pool; NULL: they are [batch, kv_head, seq, head_dim]. Errors
   besides: blocks that do not divide head_dim, scales of another shape, scales anew or codes that
   several tokens share. */
POSENC_API posenc_status posenc_rekey_codes(
    const posenc_plan* from, const posenc_positions* from_positions, const posenc_plan* to,
    const posenc_positions* to_positions, const posenc_key_codes* keys,
    const posenc_page_table* table, posenc_side side, int32_t threads) POSENC_NOTHROW;

/* The 64 bytes that travel with cached keys and say by which rotation, and where, they stand
   (spec/position.md, C3 to C5). */
enum { POSENC_KEY_HEADER_BYTES = 64 };

/* What they say. */
typedef struct posenc_key_header {
  uint32_t struct_size; /* sizeof(posenc_key_header) */
  posenc_key_type type;
  int32_t pairing; /* 0 halves, 1 interleaved, 255 not rotated */
  posenc_side side;
  int32_t axes;        /* of positions */
  int32_t consecutive; /* nonzero: positions are first, first + 1, ... on every axis */
  int64_t first;       /* position of the first token, on the first axis */
  uint64_t tokens;     /* of a sequence */
  int64_t layer;       /* -1: nobody said which */
  int64_t kv_heads;
  int64_t head_dim;
  int64_t first_dim; /* the channels that rotate */
  int64_t rotary_dim;
  uint64_t rotation;  /* fingerprint of frequencies and amplitude */
  uint64_t positions; /* fingerprint of all ids */
} posenc_key_header;

/* Writes the header of keys [batch, kv_head, seq, head_dim] that stand rotated by the plan at these
   positions. layer: -1 for any. Errors: a rotation that has no header, which is named; queries;
   sizes beyond the header's fields; positions that are not as many as the keys. */
POSENC_API posenc_status posenc_key_header_make(const posenc_plan* plan,
                                                const posenc_positions* positions,
                                                const int64_t* shape, posenc_key_type type,
                                                posenc_side side, int64_t layer,
                                                unsigned char* header) POSENC_NOTHROW;

/* What a header of `size` bytes says; more bytes may follow. name is the file's, which errors begin
   with; NULL: "header". Errors: fewer bytes, no such header, another version or unknown fields. */
POSENC_API posenc_status posenc_key_header_read(const void* header, size_t size, const char* name,
                                                posenc_key_header* out) POSENC_NOTHROW;

/* Whether keys that came with the header `found` are those of the header `expected`, which
   posenc_key_header_make() wrote of what their reader takes them for. Errors: those of both, and
   the first member that differs, both values, and what to do. */
POSENC_API posenc_status posenc_key_header_check(const void* found, size_t size,
                                                 const unsigned char* expected,
                                                 const char* name) POSENC_NOTHROW;

/* The plan of the indexer that picks a group's keys: of its own heads and channels (explain's
   "indexer"). Errors besides those of posenc_model_plan: a group without one. */
POSENC_API posenc_status posenc_model_indexer_plan(const posenc_model* model, int64_t group,
                                                   int64_t length, posenc_angles angles,
                                                   posenc_plan** out) POSENC_NOTHROW;

/* [{"stack", "layers", "verdict", "why", "moves"}]: whether cached keys of each group of layers may
   stand elsewhere, as `posenc explain --reuse --json` has it (docs/json.md). */
POSENC_API posenc_status posenc_model_reuse_json(const posenc_model* model,
                                                 char** json) POSENC_NOTHROW;

/* {"layout", "ranks", "verdict", "groups", "best", …}: which groups of layers survive a text of
   `length` tokens (0: the model's context) that is shared out among ranks as `cp` says, as
   `posenc lint --cp CP --json` has it (docs/json.md): "zigzag:8", "megatron:8", or a job's command
   line or settings. Errors: no such layout, no length. */
POSENC_API posenc_status posenc_model_layout_json(const posenc_model* model, const char* cp,
                                                  int64_t length, char** json) POSENC_NOTHROW;

/* --- the doctor, of text ---------------------------------------------------------------------- */

/* The functions of that name of an open model, of the text of a config.json or params.json, or a
   bundled name (posenc_models_json). Errors besides theirs: text that is neither. */
POSENC_API posenc_status posenc_diff_json(const char* expected, const char* found, int64_t length,
                                          char** json) POSENC_NOTHROW;
POSENC_API posenc_status posenc_lint_json(const char* model, const char* engine, int64_t length,
                                          char** json) POSENC_NOTHROW;
POSENC_API posenc_status posenc_translate_json(const char* model, const char* engine,
                                               int64_t length, char** json) POSENC_NOTHROW;
POSENC_API posenc_status posenc_extend_json(const char* model, int64_t to, const char* engine,
                                            int64_t trained, int32_t training,
                                            char** json) POSENC_NOTHROW;

/* --- which convention an engine rotated by ---------------------------------------------------- */

/* What `posenc identify --json` prints (docs/json.md), of queries or keys [head, seq, dim] or
   [batch, head, seq, dim]: after rotation and before it. before may be NULL where repeated is
   nonzero: every token is the same one. positions may be NULL: from 0 on. With a model, which may
   be NULL, what is found is compared with its layer. Errors: shapes that do not agree, numbers that
   are not finite, no such layer. */
POSENC_API posenc_status posenc_identify_json(const posenc_tensor* after,
                                              const posenc_tensor* before,
                                              const posenc_positions* positions, int32_t repeated,
                                              const posenc_model* model, int64_t layer,
                                              char** json) POSENC_NOTHROW;

/* The same of tables of cosines and sines [position, pair or channel], and of vectors [position,
   channel] that are added to embeddings. */
POSENC_API posenc_status posenc_identify_table_json(const posenc_tensor* cos,
                                                    const posenc_tensor* sin,
                                                    char** json) POSENC_NOTHROW;
POSENC_API posenc_status posenc_identify_vectors_json(const posenc_tensor* values,
                                                      char** json) POSENC_NOTHROW;

#endif /* __wasm__ */

#ifdef __cplusplus
}
#endif

#endif /* POSENC_C_H */
