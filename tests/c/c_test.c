/* The C interface from a file compiled as C: what it answers, and that nothing wrong passed to it crashes.
   That its numbers are the C++ interface's is tests/c/same_numbers_test.cc. */
#include "posenc/c.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void fail(int line, const char* what, const char* got) {
  fprintf(stderr, "c_test.c:%d: %s; posenc said: %s\n", line, what, got);
  failures++;
}

#define CHECK(condition)                                               \
  do {                                                                 \
    if (!(condition)) fail(__LINE__, #condition, posenc_last_error()); \
  } while (0)
#define OK(call) CHECK((call) == POSENC_OK)

/* The call fails with this status, and its message has the word. */
static void expect(int line, posenc_status wanted, posenc_status status, const char* word) {
  if (status != wanted || strstr(posenc_last_error(), word) == NULL)
    fail(line, word, status == POSENC_OK ? "nothing, it succeeded" : posenc_last_error());
}
#define MISUSE(word, call) expect(__LINE__, POSENC_MISUSE, (call), (word))
#define REFUSED(word, call) expect(__LINE__, POSENC_REFUSED, (call), (word))

static int has(const char* text, const char* word) { return text && strstr(text, word) != NULL; }

static posenc_plan* plan_of(const char* scheme, posenc_geometry geometry) {
  posenc_plan* plan = NULL;
  geometry.struct_size = sizeof geometry;
  OK(posenc_plan_from_scheme(scheme, &geometry, &plan));
  return plan;
}

static posenc_tensor dense(void* data, posenc_dtype dtype, int64_t a, int64_t b, int64_t c,
                           int64_t d) {
  const int64_t shape[] = {a, b, c, d};
  posenc_tensor tensor;
  OK(posenc_tensor_dense(data, dtype, 4, shape, &tensor));
  return tensor;
}

static posenc_positions* range(int64_t first, int64_t count) {
  posenc_positions* positions = NULL;
  OK(posenc_positions_range(first, count, &positions));
  return positions;
}

/* --- what it answers ----------------------------------------------------------------------------- */

static void lists_have_fields_and_models(void) {
  char* json = NULL;
  OK(posenc_schemes_json(&json));
  CHECK(has(json, "\"name\":\"rope\"") && has(json, "\"name\":\"yarn\""));
  CHECK(has(json, "\"name\":\"rope_theta\",\"kind\":\"number\""));
  posenc_string_free(json);
  OK(posenc_models_json(&json));
  CHECK(has(json, "\"name\":\"llama-3.1-8b\",\"about\":"));
  posenc_string_free(json);
  CHECK(strlen(posenc_version()) >= 5);
}

static void a_model_is_explained_and_compiled(void) {
  posenc_model* model = NULL;
  posenc_plan* plan = NULL;
  char* json = NULL;
  int64_t groups = 0, group = -1;
  OK(posenc_model_open("gemma-3-4b", &model));
  OK(posenc_model_explain_json(model, 0, -1, &json));
  CHECK(has(json, "\"model\":\"gemma-3-4b\""));
  posenc_string_free(json);
  OK(posenc_model_group_count(model, &groups));
  CHECK(groups >= 2);
  OK(posenc_model_find_group(model, "text", 5, &group));
  OK(posenc_model_plan(model, group, 0, POSENC_EXACT, &plan));
  OK(posenc_plan_json(plan, &json));
  CHECK(has(json, "\"rotary_dim\":256") && has(json, "\"valid\":"));
  posenc_string_free(json);
  posenc_plan_free(plan);

  REFUSED("no such layer", posenc_model_find_group(model, "text", 1000, &group));
  REFUSED("no such layer", posenc_model_find_group(model, "text", -5, &group));
  MISUSE("stack must be", posenc_model_find_group(model, "words", 0, &group));
  MISUSE("one of the model's", posenc_model_plan(model, groups, 0, POSENC_EXACT, &plan));
  MISUSE("one of the model's", posenc_model_plan(model, -1, 0, POSENC_EXACT, &plan));
  MISUSE("negative", posenc_model_plan(model, 0, -1, POSENC_EXACT, &plan));
  MISUSE("angles", posenc_model_plan(model, 0, 0, -1, &plan));
  MISUSE("at must be", posenc_model_explain_json(model, -1, -1, &json));
  MISUSE("layer must be", posenc_model_explain_json(model, 0, -2, &json));
  REFUSED("layer", posenc_model_explain_json(model, 0, 4000, &json));
  CHECK(json == NULL && plan == NULL);
  posenc_model_free(model);
}

static void alibi_is_what_its_paper_says(void) {
  posenc_plan* plan = plan_of("{\"type\": \"alibi\"}", (posenc_geometry){.heads = 8});
  posenc_positions *keys = range(0, 3), *query = range(2, 1);
  double values[8 * 3];
  const int64_t shape[] = {8, 1, 3};
  posenc_tensor out;
  OK(posenc_tensor_dense(values, POSENC_FLOAT64, 3, shape, &out));
  OK(posenc_bias(plan, query, keys, &out, 0));
  CHECK(values[0] == -1.0 && values[1] == -0.5 && values[2] == 0.0);
  CHECK(values[21] == -2.0 / 256);
  posenc_positions_free(keys);
  posenc_positions_free(query);
  posenc_plan_free(plan);
}

static void an_engines_angles_are_its_floats(void) {
  posenc_plan *exact = plan_of("{\"type\": \"rope\"}", (posenc_geometry){.head_dim = 8}),
              *engine = plan_of("{\"type\": \"rope\"}",
                                (posenc_geometry){.head_dim = 8, .angles = POSENC_HF_FLOAT});
  posenc_positions* positions = range(1000001, 1);
  double truth[4], theirs[4];
  posenc_tensor out = dense(truth, POSENC_FLOAT64, 1, 1, 1, 4);
  OK(posenc_rotation_angles(exact, positions, &out, 0));
  out.data = theirs;
  OK(posenc_rotation_angles(engine, positions, &out, 0));
  CHECK(truth[0] == 1000001 && fabs(truth[1] - 100000.1) < 1e-9);
  CHECK(theirs[1] == (double)(float)theirs[1] && theirs[1] != truth[1]);
  MISUSE("out", posenc_rotation_angles(engine, positions, NULL, 0));
  posenc_positions_free(positions);
  posenc_plan_free(exact);
  posenc_plan_free(engine);
}

static void rotation_turns_and_turns_back(void) {
  posenc_plan* plan = plan_of("{\"type\": \"rope\"}", (posenc_geometry){.head_dim = 8});
  posenc_positions* positions = range(7, 2);
  double data[2 * 2 * 8], before[2 * 2 * 8];
  for (int i = 0; i < 32; i++) data[i] = before[i] = i - 11.5;
  /* [batch, seq, head, dim] in memory, seen as [batch, head, seq, dim] */
  posenc_tensor x = dense(data, POSENC_FLOAT64, 1, 2, 2, 8);
  x.stride[1] = 8;
  x.stride[2] = 16;
  OK(posenc_rotate(plan, &x, positions, POSENC_QUERY, &x, 0));
  CHECK(fabs(data[0] - (before[0] * cos(7) - before[4] * sin(7))) < 1e-13);
  CHECK(fabs(data[16] - (before[16] * cos(8) - before[20] * sin(8))) < 1e-13);
  OK(posenc_rotate_inverse(plan, &x, positions, POSENC_QUERY, &x, 0));
  for (int i = 0; i < 32; i++) CHECK(fabs(data[i] - before[i]) < 1e-13);
  OK(posenc_rotate_transpose(plan, &x, positions, POSENC_KEY, &x, 0));
  CHECK(fabs(data[0] - (before[0] * cos(7) + before[4] * sin(7))) < 1e-13);
  posenc_positions_free(positions);
  posenc_plan_free(plan);
}

static void learned_tables_are_given_and_checked(void) {
  posenc_plan* plan =
      plan_of("{\"type\": \"learned\", \"rows\": 3}", (posenc_geometry){.width = 2});
  float rows[] = {1, 2, 3, 4, 5, 6}, out_rows[4];
  const int64_t shape[] = {3, 2}, out_shape[] = {1, 2, 2}, wrong[] = {2, 3};
  posenc_tensor table, out, bad;
  OK(posenc_tensor_dense(rows, POSENC_FLOAT32, 2, shape, &table));
  OK(posenc_tensor_dense(out_rows, POSENC_FLOAT32, 3, out_shape, &out));
  OK(posenc_tensor_dense(rows, POSENC_FLOAT32, 2, wrong, &bad));
  posenc_positions *positions = range(1, 2), *beyond = range(2, 2);
  REFUSED("must be given", posenc_position_vectors(plan, positions, &out, 0));
  REFUSED("", posenc_plan_set_table(plan, POSENC_TABLE_ADD, &bad));
  REFUSED("no such table", posenc_plan_set_table(plan, POSENC_TABLE_BIAS, &table));
  MISUSE("posenc_table", posenc_plan_set_table(plan, 6, &table));
  MISUSE("posenc_table", posenc_plan_set_table(plan, -1, &table));
  OK(posenc_plan_set_table(plan, POSENC_TABLE_ADD, &table));
  memset(rows, 0, sizeof rows); /* it was copied */
  OK(posenc_position_vectors(plan, positions, &out, 0));
  CHECK(out_rows[0] == 3 && out_rows[1] == 4 && out_rows[2] == 5 && out_rows[3] == 6);
  OK(posenc_add(plan, &out, positions, &out, 0));
  CHECK(out_rows[0] == 6 && out_rows[3] == 12);
  REFUSED("row 3", posenc_position_vectors(plan, beyond, &out, 0));
  bad = table;
  bad.data = NULL;
  MISUSE("NULL", posenc_plan_set_table(plan, POSENC_TABLE_ADD, &bad));
  const int64_t far[] = {INT64_MIN, INT64_C(1) << 62, INT64_MAX};
  for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
    bad = table;
    bad.stride[0] = far[i];
    MISUSE("fit in memory", posenc_plan_set_table(plan, POSENC_TABLE_ADD, &bad));
  }
  bad = table;
  bad.shape[0] = bad.shape[1] = INT64_MAX;
  REFUSED("", posenc_plan_set_table(plan, POSENC_TABLE_ADD, &bad));
  float scale_and_bias[] = {0.5f, 0.25f};
  const int64_t one_head[] = {2, 1};
  posenc_tensor temperature;
  OK(posenc_tensor_dense(scale_and_bias, POSENC_FLOAT32, 2, one_head, &temperature));
  OK(posenc_plan_set_table(plan, POSENC_TABLE_TEMPERATURE, &temperature));
  char* json = NULL;
  OK(posenc_plan_json(plan, &json));
  CHECK(strstr(json, "\"head_scale\":[0.5],\"head_bias\":[0.25]") != NULL);
  posenc_string_free(json);
  scale_and_bias[0] = INFINITY;
  REFUSED("finite", posenc_plan_set_table(plan, POSENC_TABLE_TEMPERATURE, &temperature));
  REFUSED("[2, heads]", posenc_plan_set_table(plan, POSENC_TABLE_TEMPERATURE, &table));
  posenc_positions_free(positions);
  posenc_positions_free(beyond);
  posenc_plan_free(plan);
}

static void attention_sees_the_past(void) {
  posenc_plan* plan = plan_of("{\"type\": \"nope\"}", (posenc_geometry){0});
  posenc_positions* positions = range(0, 2);
  double q[] = {0, 0, 0, 0}, v[] = {1, 2, 3, 4}, o[4];
  const posenc_tensor tq = dense(q, POSENC_FLOAT64, 1, 1, 2, 2),
                      tv = dense(v, POSENC_FLOAT64, 1, 1, 2, 2),
                      to = dense(o, POSENC_FLOAT64, 1, 1, 2, 2);
  posenc_attention in = {.struct_size = sizeof in,
                         .q = &tq,
                         .k = &tq,
                         .v = &tv,
                         .queries = positions,
                         .keys = positions};
  OK(posenc_attend_reference(plan, &in, &to, NULL));
  CHECK(o[0] == 1 && o[1] == 2 && o[2] == 2 && o[3] == 3);
  posenc_mask mask = {.struct_size = sizeof mask, .causal = 0};
  posenc_attention open = in;
  open.mask = &mask;
  open.threads = 2;
  OK(posenc_attend_reference(plan, &open, &to, NULL));
  CHECK(o[0] == 2 && o[1] == 3);
  o[0] = o[1] = o[2] = o[3] = 0;
  OK(posenc_attend(plan, &in, &to));
  CHECK(o[0] == 1 && o[1] == 2 && o[2] == 2 && o[3] == 3);
  OK(posenc_attend(plan, &open, &to));
  CHECK(o[0] == 2 && o[1] == 3);
  double sink[] = {0}; /* as one more key with the logit 0 and no value */
  posenc_tensor tsink = dense(sink, POSENC_FLOAT64, 1, 1, 1, 1);
  tsink.rank = 1;
  open.sink_logits = &tsink;
  OK(posenc_attend(plan, &open, &to));
  CHECK(fabs(o[0] - 4 / 3.) < 1e-15 && o[1] == 2);
  tsink.rank = 2;
  REFUSED("sink_logits must be [1], or [1, 1, 2]", posenc_attend(plan, &open, &to));
  posenc_attention bad = in;
  bad.threads = -1;
  MISUSE("threads", posenc_attend(plan, &bad, &to));
  bad = in;
  bad.v = NULL;
  MISUSE("NULL", posenc_attend(plan, &bad, &to));
  bad = in;
  bad.queries = NULL;
  MISUSE("NULL", posenc_attend(plan, &bad, &to));
  bad = in;
  bad.k = NULL;
  MISUSE("NULL", posenc_attend_reference(plan, &bad, &to, NULL));
  bad.struct_size = 8;
  MISUSE("in.struct_size", posenc_attend(plan, &bad, &to));
  MISUSE("NULL", posenc_attend(NULL, &in, &to));
  MISUSE("NULL", posenc_attend(plan, NULL, &to));
  posenc_tensor narrow = to;
  narrow.shape[3] = 1;
  REFUSED("out", posenc_attend(plan, &in, &narrow));
  mask.window = -1;
  MISUSE("negative", posenc_attend(plan, &open, &to));
  MISUSE("negative", posenc_attend_reference(plan, &open, &to, NULL));
  mask.struct_size = 3;
  MISUSE("struct_size", posenc_attend_reference(plan, &open, &to, NULL));
  posenc_positions_free(positions);
  posenc_plan_free(plan);
}

/* Two tokens that cannot be told apart share a query's weight: dv is half of g for each of both, dq and dk are 0. */
static void gradients_are_written(void) {
  posenc_plan* plan = plan_of("{\"type\": \"nope\"}", (posenc_geometry){0});
  posenc_positions* positions = range(0, 2);
  double q[] = {0, 0, 0, 0}, v[] = {1, 2, 1, 2}, g[] = {0, 0, 4, 6}, dq[4], dv[4];
  const posenc_tensor tq = dense(q, POSENC_FLOAT64, 1, 1, 2, 2),
                      tv = dense(v, POSENC_FLOAT64, 1, 1, 2, 2),
                      tg = dense(g, POSENC_FLOAT64, 1, 1, 2, 2),
                      tdq = dense(dq, POSENC_FLOAT64, 1, 1, 2, 2),
                      tdv = dense(dv, POSENC_FLOAT64, 1, 1, 2, 2);
  posenc_attention_gradients to = {.struct_size = sizeof to, .q = &tdq, .v = &tdv};
  posenc_attention in = {.struct_size = sizeof in,
                         .q = &tq,
                         .k = &tq,
                         .v = &tv,
                         .queries = positions,
                         .keys = positions};
#define BACKWARD(gradient, count) \
  (in.threads = (count), posenc_attend_backward(plan, &in, gradient, &to))
  OK(BACKWARD(&tg, 0));
  CHECK(dv[0] == 2 && dv[1] == 3 && dv[2] == 2 && dv[3] == 3);
  CHECK(dq[0] == 0 && dq[3] == 0);
  MISUSE("threads", BACKWARD(&tg, -1));
  MISUSE("out_gradient must be given", BACKWARD(NULL, 0));
  to.slopes = &tq;
  REFUSED("slopes", BACKWARD(&tg, 0));
  posenc_tensor odd = tq;
  odd.dtype = 9;
  to.slopes = &odd;
  MISUSE("gradients.slopes.dtype", BACKWARD(&tg, 0));
  to.struct_size = 0;
  MISUSE("gradients.struct_size", BACKWARD(&tg, 0));
  posenc_positions_free(positions);
  posenc_plan_free(plan);
}

static void normal_numbers_are_those_of_their_seed(void) {
  double all[20], last[5];
  OK(posenc_normals(7, 0, 20, all));
  OK(posenc_normals(7, 15, 5, last));
  CHECK(memcmp(last, all + 15, sizeof last) == 0);
  OK(posenc_normals(8, 15, 5, last));
  CHECK(last[0] != all[15]);
  MISUSE("count", posenc_normals(7, 0, -1, all));
  MISUSE("out", posenc_normals(7, 0, 1, NULL));
}

/* Gates of one half: each step back halves a weight. */
static void schemes_that_read_the_content_attend(void) {
  posenc_positions* positions = range(0, 3);
  double zero[] = {0, 0, 0}, v[] = {1, 2, 4}, o[3], dv[3], g[] = {0, 0, 7};
  double gates[] = {-0.6931471805599453, -0.6931471805599453, -0.6931471805599453}, dgates[3];
  const posenc_tensor tz = dense(zero, POSENC_FLOAT64, 1, 1, 3, 1),
                      tv = dense(v, POSENC_FLOAT64, 1, 1, 3, 1),
                      to = dense(o, POSENC_FLOAT64, 1, 1, 3, 1),
                      tdv = dense(dv, POSENC_FLOAT64, 1, 1, 3, 1),
                      tg = dense(g, POSENC_FLOAT64, 1, 1, 3, 1);
  posenc_tensor tgates = dense(gates, POSENC_FLOAT64, 1, 1, 1, 3), tdgates = tgates;
  const posenc_attention in = {.struct_size = sizeof in,
                               .q = &tz,
                               .k = &tz,
                               .v = &tv,
                               .queries = positions,
                               .keys = positions};
  posenc_content* fox = NULL;
  OK(posenc_content_from_scheme("{\"type\": \"forgetting\"}", &fox));
  REFUSED("must be given", posenc_attend_content(fox, NULL, &in, &to, NULL));
  REFUSED("no such table", posenc_content_set_table(fox, "embeddings", &tgates));
  posenc_tensor large = tgates;
  large.shape[3] = INT64_C(1) << 40;
  large.stride[3] = 0;
  MISUSE("2^28", posenc_content_set_table(fox, "log_gates", &large));
  tgates = dense(gates, POSENC_FLOAT64, 1, 1, 1, 3);
  tgates.rank = 1;
  tgates.shape[0] = 3;
  tgates.stride[0] = 1;
  OK(posenc_content_set_table(fox, "log_gates", &tgates));
  OK(posenc_attend_content(fox, NULL, &in, &to, NULL));
  CHECK(fabs(o[2] - (4 + 2 / 2. + 1 / 4.) / (1 + 1 / 2. + 1 / 4.)) < 1e-12);
  double logits[9], weights[9];
  const posenc_tensor tlogits = dense(logits, POSENC_FLOAT64, 1, 1, 3, 3),
                      tweights = dense(weights, POSENC_FLOAT64, 1, 1, 3, 3);
  o[2] = 0;
  OK(posenc_attend_content_reference(fox, NULL, &in, &to, &tlogits, &tweights));
  CHECK(fabs(o[2] - (4 + 2 / 2. + 1 / 4.) / (1 + 1 / 2. + 1 / 4.)) < 1e-12);
  CHECK(fabs(logits[6] - 2 * gates[0]) < 1e-12 && isinf(logits[1]));
  CHECK(fabs(weights[6] - 1 / 7.) < 1e-12 && weights[1] == 0);
  REFUSED("weights", posenc_attend_content_reference(fox, NULL, &in, &to, NULL, &to));
  MISUSE("content", posenc_attend_content_reference(NULL, NULL, &in, &to, NULL, NULL));
  REFUSED("remainder", posenc_attend_content(fox, NULL, &in, &to, &tgates));
  tdgates = tgates;
  tdgates.data = dgates;
  posenc_content_gradients gradients = {
      .struct_size = sizeof gradients, .v = &tdv, .log_gates = &tdgates};
  OK(posenc_attend_content_backward(fox, NULL, &in, &tg, &gradients, NULL));
  CHECK(fabs(dv[2] - 4) < 1e-12 && fabs(dv[0] - 1) < 1e-12);
  gradients.c = &tdgates;
  REFUSED("learns no c", posenc_attend_content_backward(fox, NULL, &in, &tg, &gradients, NULL));
  MISUSE("content", posenc_attend_content(NULL, NULL, &in, &to, NULL));
  posenc_content_free(fox);
  REFUSED("needs", posenc_content_from_scheme("{\"type\": \"fire\"}", &fox));
  CHECK(fox == NULL);
  posenc_content_free(NULL);
  posenc_positions_free(positions);
}

/* Queries and keys together are as each alone. */
static void queries_and_keys_are_rotated_together(void) {
  posenc_plan* plan = plan_of("{\"type\": \"rope\"}", (posenc_geometry){.head_dim = 2});
  posenc_positions* positions = range(5, 1);
  double q[] = {1, 2}, k[] = {3, 4}, both[4];
  const posenc_tensor tq = dense(q, POSENC_FLOAT64, 1, 1, 1, 2),
                      tk = dense(k, POSENC_FLOAT64, 1, 1, 1, 2),
                      q_out = dense(both, POSENC_FLOAT64, 1, 1, 1, 2),
                      k_out = dense(both + 2, POSENC_FLOAT64, 1, 1, 1, 2);
  OK(posenc_rotate_qk(plan, &tq, &tk, positions, &q_out, &k_out, 1));
  OK(posenc_rotate(plan, &tq, positions, POSENC_QUERY, &tq, 1));
  OK(posenc_rotate(plan, &tk, positions, POSENC_KEY, &tk, 1));
  CHECK(both[0] == q[0] && both[1] == q[1] && both[2] == k[0] && both[3] == k[1]);
  MISUSE("k must be given", posenc_rotate_qk(plan, &tq, NULL, positions, &q_out, &k_out, 1));
  MISUSE("threads", posenc_rotate_qk(plan, &tq, &tk, positions, &q_out, &k_out, -1));
  posenc_positions_free(positions);
  posenc_plan_free(plan);
}

static void a_cache_decodes_and_forgets(void) {
  posenc_plan* plan = plan_of("{\"type\": \"rope\"}", (posenc_geometry){.head_dim = 2});
  double q[] = {0, 0}, v[] = {1, 2}, o[2];
  const posenc_tensor tq = dense(q, POSENC_FLOAT64, 1, 1, 1, 2),
                      tv = dense(v, POSENC_FLOAT64, 1, 1, 1, 2),
                      to = dense(o, POSENC_FLOAT64, 1, 1, 1, 2);
  posenc_cache_options options = {.struct_size = sizeof options,
                                  .dtype = POSENC_FLOAT64,
                                  .kv_heads = 1,
                                  .head_dim = 2,
                                  .page_size = 2,
                                  .max_pages = 2,
                                  .rotated = 1};
  posenc_cache* cache = NULL;
  OK(posenc_cache_make(&options, &cache));
  int64_t id = -1, tokens = -1, length = -1;
  OK(posenc_cache_add(cache, &id));
#define APPEND posenc_cache_append(cache, &id, 1, &tq, &tv, plan, NULL, 1)
  for (int token = 0; token < 4; token++) {
    v[0] = token;
    OK(APPEND);
  }
  OK(posenc_cache_attend(cache, &id, 1, &tq, plan, NULL, NULL, &to, 1));
  CHECK(o[0] == 1.5 && o[1] == 2); /* the mean of all four */
  REFUSED("page", APPEND);
  OK(posenc_cache_evict(cache, id, 0, 2, 0));
  OK(posenc_cache_size(cache, id, &tokens, &length));
  CHECK(tokens == 2 && length == 4);
  OK(posenc_cache_shift(cache, id, 0, 2, -2));
  OK(posenc_cache_size(cache, id, &tokens, &length));
  CHECK(tokens == 2 && length == 2);
  OK(posenc_cache_attend(cache, &id, 1, &tq, plan, NULL, NULL, &to, 1));
  CHECK(o[0] == 2.5);
  OK(posenc_cache_evict(cache, id, 0, 1, 1));
  OK(posenc_cache_size(cache, id, &tokens, &length));
  CHECK(tokens == 1 && length == 1);
  REFUSED("", posenc_cache_shift(cache, id, 0, 2, 1));
  posenc_positions* positions = range(7, 1);
  OK(posenc_cache_append(cache, &id, 1, &tq, &tv, plan, positions, 0));
  OK(posenc_cache_size(cache, id, &tokens, &length));
  CHECK(tokens == 2 && length == 8);
  posenc_positions_free(positions);
  MISUSE("threads", posenc_cache_append(cache, &id, 1, &tq, &tv, plan, NULL, -1));
  MISUSE("sequences must be given", posenc_cache_append(cache, NULL, 1, &tq, &tv, plan, NULL, 0));
  MISUSE("k must be given", posenc_cache_append(cache, &id, 1, NULL, &tv, plan, NULL, 0));
  MISUSE("out must be given", posenc_cache_attend(cache, &id, 1, &tq, plan, NULL, NULL, NULL, 0));
  OK(posenc_cache_append(cache, &id, 0, &tq, &tv, plan, NULL, 0)); /* none: nothing to do */
  OK(posenc_cache_remove(cache, id));
  REFUSED("", posenc_cache_remove(cache, id));
  REFUSED("", posenc_cache_size(cache, id, &tokens, &length));
  REFUSED("", APPEND);
  posenc_cache_free(cache);
  posenc_cache_free(NULL);
  options.kv_heads = 0;
  REFUSED("", posenc_cache_make(&options, &cache));
  CHECK(cache == NULL);
  options.dtype = 4;
  MISUSE("dtype", posenc_cache_make(&options, &cache));
  options.struct_size = 4;
  MISUSE("struct_size", posenc_cache_make(&options, &cache));
  MISUSE("cache must be given", posenc_cache_add(NULL, &id));
  posenc_plan_free(plan);
}

static void the_doctor_takes_text(void) {
  const char* plain =
      "{\"model_type\": \"llama\", \"hidden_size\": 4096, \"num_hidden_layers\": 32, "
      "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"rope_theta\": 500000.0, "
      "\"max_position_embeddings\": 131072}";
  char* json = NULL;
  OK(posenc_diff_json("llama-3.1-8b", plain, 0, &json));
  CHECK(strstr(json, "\"code\":\"rope_scaling\"") != NULL);
  CHECK(strstr(json, "{\"equal\":false,\"expected\":\"llama-3.1-8b\"") == json);
  posenc_string_free(json);
  OK(posenc_lint_json("qwen2.5-7b-yarn4", NULL, 0, &json));
  CHECK(strstr(json, "original_is_max") != NULL);
  posenc_string_free(json);
  OK(posenc_lint_json(plain, "vllm", 0, &json));
  posenc_string_free(json);
  OK(posenc_translate_json("gpt-oss-20b", "vllm", 65536, &json));
  CHECK(strstr(json, "--hf-overrides") != NULL);
  posenc_string_free(json);
  OK(posenc_extend_json("llama-2-7b", 32768, NULL, 0, 0, &json));
  CHECK(strstr(json, "\"recommended\":\"yarn\"") != NULL);
  posenc_string_free(json);
  OK(posenc_extend_json("llama-2-7b", 32768, "llama.cpp", 0, 1, &json));
  CHECK(strstr(json, "\"recommended\":\"larger_base\"") != NULL);
  posenc_string_free(json);

  MISUSE("found", posenc_diff_json(plain, NULL, 0, &json));
  MISUSE("json", posenc_lint_json(plain, NULL, 0, NULL));
  MISUSE("engine", posenc_translate_json(plain, NULL, 0, &json));
  MISUSE("model", posenc_extend_json(NULL, 1, NULL, 0, 0, &json));
  REFUSED("length", posenc_diff_json(plain, plain, -1, &json));
  REFUSED("keras", posenc_lint_json(plain, "keras", 0, &json));
  REFUSED("rotate", posenc_translate_json("bloom-176b", "vllm", 0, &json));
  REFUSED("2^40", posenc_extend_json(plain, 0, NULL, 0, 0, &json));
  REFUSED("JSON", posenc_lint_json("{", NULL, 0, &json));
  REFUSED("nowhere", posenc_lint_json("nowhere", NULL, 0, &json));
  CHECK(json == NULL);
}

static void positions_are_read_back(void) {
  posenc_positions* positions = NULL;
  int64_t ids[8], shape[3];
  const int64_t given[] = {4, 4, 9, 2, 0, 1};
  OK(posenc_positions_ids(given, 2, 1, 3, &positions));
  OK(posenc_positions_shape(positions, shape));
  CHECK(shape[0] == 2 && shape[1] == 1 && shape[2] == 3);
  OK(posenc_positions_copy(positions, ids, 6));
  CHECK(memcmp(ids, given, sizeof given) == 0);
  MISUSE("capacity", posenc_positions_copy(positions, ids, 5));
  MISUSE("NULL", posenc_positions_copy(positions, NULL, 6));
  posenc_positions_free(positions);

  const uint8_t mask[] = {0, 0, 1, 1};
  OK(posenc_positions_from_mask(mask, 1, 4, 0, 0, &positions));
  OK(posenc_positions_copy(positions, ids, 8));
  CHECK(ids[0] == 0 && ids[2] == 0 && ids[3] == 1);
  posenc_positions_free(positions);

  const int64_t cu[] = {0, 2, 3};
  OK(posenc_positions_packed(cu, 3, &positions));
  OK(posenc_positions_copy(positions, ids, 8));
  CHECK(ids[1] == 1 && ids[2] == 0);
  posenc_positions_free(positions);

  OK(posenc_positions_patches(2, 2, 1, 1, &positions));
  OK(posenc_positions_copy(positions, ids, 8));
  CHECK(ids[1] == 0 && ids[5] == 1);
  posenc_positions_free(positions);

  REFUSED("negative", posenc_positions_ids((const int64_t[]){-1}, 1, 1, 1, &positions));
  REFUSED("sizes", posenc_positions_ids(given, INT64_MAX, INT64_MAX, 2, &positions));
  REFUSED("sizes", posenc_positions_ids(given, -1, 1, 1, &positions));
  REFUSED("axes and batch", posenc_positions_ids(given, 0, 1, 1, &positions));
  MISUSE("NULL", posenc_positions_ids(NULL, 1, 1, 1, &positions));
  MISUSE("overflow", posenc_positions_range(INT64_MAX, 2, &positions));
  MISUSE("negative", posenc_positions_range(-1, 2, &positions));
  MISUSE("negative", posenc_positions_range(0, -2, &positions));
  REFUSED("cached", posenc_positions_from_mask(mask, 1, 4, 5, 0, &positions));
  REFUSED("sizes", posenc_positions_from_mask(mask, INT64_MIN, 4, 0, 0, &positions));
  REFUSED("start at 0", posenc_positions_packed(cu + 1, 2, &positions));
  REFUSED("sizes", posenc_positions_packed(cu, -2, &positions));
  REFUSED("", posenc_positions_patches(-2, 2, 1, 1, &positions));
  REFUSED("", posenc_positions_patches(INT64_MAX, INT64_MAX, 1, 1, &positions));
  REFUSED("", posenc_positions_patches(2, 2, 0, 1, &positions));
  CHECK(positions == NULL);
}

/* --- what is wrong ------------------------------------------------------------------------------- */

static void bad_schemes_are_refused(void) {
  const struct {
    const char *scheme, *word;
  } bad[] = {
      {"", "must be JSON"},
      {"{", "must be JSON"},
      {"null", "\"type\""},
      {"[]", "\"type\""},
      {"7", "\"type\""},
      {"{}", "\"type\""},
      {"{\"type\": 3}", "\"type\""},
      {"{\"type\": \"rop\"}", "did you mean 'rope'"},
      {"{\"type\": \"rope\", \"rope_thet\": 1e4}", "rope_theta"},
      {"{\"type\": \"rope\", \"rope_theta\": \"big\"}", "rope_theta"},
      {"{\"type\": \"rope\", \"rope_theta\": 0.5}", "above 1"},
      {"{\"type\": \"rope\", \"rope_theta\": 1e999}", "double"},
      {"{\"type\": \"rope\", \"rope_theta\": NaN}", "JSON"},
      {"{\"type\": \"rope\", \"rope_theta\": 5, \"rope_theta\": 6}", "twice"},
      {"{\"type\": \"rope\", \"mrope_section\": [1, \"x\"]}", "list of numbers"},
      {"{\"type\": \"rope\", \"mrope_section\": {\"a\": 1}}", "list of numbers"},
      {"{\"type\": \"rope\", \"scaling\": \"yarn\"}", "\"type\""},
      {"{\"type\": \"rope\", \"scaling\": {\"type\": \"yarrn\"}}", "yarn"},
      {"{\"type\": \"rope\", \"scaling\": {\"type\": \"linear\"}}", "needs factor"},
      {"{\"type\": \"rope\", \"rope_type\": \"linear\"}", "object of its own"},
      {"{\"type\": \"learned\"}", "needs rows"},
      {"{\"type\": \"sinusoidal\", \"scaling\": {\"type\": \"linear\"}}", "no such field"},
      {"{\"type\": \"rope\"}\xff", "must be JSON"},
  };
  const posenc_geometry geometry = {.struct_size = sizeof geometry, .width = 8, .head_dim = 8};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    posenc_plan* plan = (posenc_plan*)&failures;
    const posenc_status status = posenc_plan_from_scheme(bad[i].scheme, &geometry, &plan);
    if (status != POSENC_REFUSED || plan != NULL || !has(posenc_last_error(), bad[i].word))
      fail(__LINE__, bad[i].scheme, posenc_last_error());
  }
}

static void odd_and_absurd_geometries_are_refused(void) {
  posenc_plan* plan = NULL;
  posenc_geometry geometry = {.struct_size = sizeof geometry, .head_dim = 63};
  const char* rope = "{\"type\": \"rope\"}";
  REFUSED("even", posenc_plan_from_scheme(rope, &geometry, &plan));
  REFUSED("head_dim", posenc_plan_from_scheme(rope, NULL, &plan));
  geometry.head_dim = -2;
  REFUSED("negative", posenc_plan_from_scheme(rope, &geometry, &plan));
  const int64_t absurd[] = {INT64_C(1) << 31, INT64_C(1) << 40, INT64_C(1) << 62, INT64_MAX - 1};
  for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
    geometry.head_dim = absurd[i];
    REFUSED("head_dim must be at most 2^20", posenc_plan_from_scheme(rope, &geometry, &plan));
  }
  REFUSED("head_dim",
          posenc_plan_from_scheme("{\"type\": \"rope\", \"rotary_dim\": 1125899906842624}",
                                  &geometry, &plan));
  geometry.head_dim = INT64_MAX - 1;
  REFUSED("", posenc_plan_from_scheme(rope, &geometry, &plan));
  geometry.heads = geometry.length = INT64_MAX;
  REFUSED("", posenc_plan_from_scheme("{\"type\": \"kerple\"}", &geometry, &plan));
  REFUSED("", posenc_plan_from_scheme("{\"type\": \"sandwich\"}", &geometry, &plan));
  REFUSED("", posenc_plan_from_scheme("{\"type\": \"alibi\"}", &geometry, &plan));
  REFUSED("", posenc_plan_from_scheme("{\"type\": \"mixed\"}", &geometry, &plan));
  geometry.width = INT64_MAX;
  REFUSED("", posenc_plan_from_scheme("{\"type\": \"sinusoidal\"}", &geometry, &plan));
  geometry.angles = 3;
  MISUSE("angles", posenc_plan_from_scheme(rope, &geometry, &plan));
  geometry.struct_size = 0;
  MISUSE("struct_size", posenc_plan_from_scheme(rope, &geometry, &plan));
  CHECK(plan == NULL);
}

static void bad_bytes_are_refused(void) {
  posenc_model* model = NULL;
  REFUSED("JSON", posenc_model_read("", 0, NULL, &model));
  REFUSED("JSON", posenc_model_read(NULL, 0, "x.json", &model));
  MISUSE("NULL", posenc_model_read(NULL, 4, "x.json", &model));
  REFUSED("x.json", posenc_model_read("{}", 2, "x.json", &model));
  REFUSED("must be JSON", posenc_model_read("\0\0\0\0", 4, NULL, &model));
  REFUSED("", posenc_model_read("GGUF", 4, NULL, &model));
  REFUSED("", posenc_model_open("no-such-model", &model));
  REFUSED("", posenc_model_open("", &model));
  REFUSED("llama-3.1-8b", posenc_model_open("llama-3.1-8c", &model));
  CHECK(model == NULL);

  /* Every front of a real file is an error or, past its header, a model. */
  FILE* file = fopen("files/llama-3.1.gguf", "rb");
  static char bytes[4096];
  const size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  if (file) fclose(file);
  CHECK(size > 0);
  OK(posenc_model_read(bytes, size, "llama.gguf", &model));
  posenc_model_free(model);
  size_t read = 0;
  for (size_t front = 0; front < size; front++) {
    char* copy = malloc(front + 1); /* its end is the end of the memory, for sanitizers */
    memcpy(copy, bytes, front);
    if (posenc_model_read(copy, front, "llama.gguf", &model) == POSENC_OK) read++;
    posenc_model_free(model);
    free(copy);
  }
  CHECK(read < size / 2);
  for (size_t at = 0; at < size; at++) {
    bytes[at] ^= (char)0xa5;
    posenc_model_read(bytes, size, "llama.gguf", &model);
    posenc_model_free(model);
    bytes[at] ^= (char)0xa5;
  }
}

static void null_pointers_are_named(void) {
  posenc_plan* plan = plan_of("{\"type\": \"rope\"}", (posenc_geometry){.head_dim = 8});
  posenc_positions* positions = range(0, 1);
  double data[8] = {0};
  const posenc_tensor x = dense(data, POSENC_FLOAT64, 1, 1, 1, 8);
  posenc_model* model = NULL;
  int64_t number = 0, shape[3];
  char* json = NULL;
  MISUSE("posenc_schemes_json: json", posenc_schemes_json(NULL));
  MISUSE("json", posenc_models_json(NULL));
  MISUSE("out", posenc_model_open("gpt2", NULL));
  MISUSE("path_or_name", posenc_model_open(NULL, &model));
  MISUSE("out", posenc_model_read("{}", 2, NULL, NULL));
  MISUSE("model", posenc_model_explain_json(NULL, 0, -1, &json));
  MISUSE("model", posenc_model_group_count(NULL, &number));
  MISUSE("model", posenc_model_find_group(NULL, "text", 0, &number));
  posenc_plan* none = plan;
  MISUSE("model", posenc_model_plan(NULL, 0, 0, POSENC_EXACT, &none));
  CHECK(none == NULL);
  MISUSE("out", posenc_plan_from_scheme("{}", NULL, NULL));
  MISUSE("scheme_json", posenc_plan_from_scheme(NULL, NULL, &(posenc_plan*){NULL}));
  MISUSE("plan", posenc_plan_json(NULL, &json));
  MISUSE("json", posenc_plan_json(plan, NULL));
  MISUSE("plan", posenc_plan_set_table(NULL, POSENC_TABLE_ADD, &x));
  MISUSE("out", posenc_positions_range(0, 1, NULL));
  MISUSE("out", posenc_positions_patches(1, 1, 1, 1, NULL));
  MISUSE("positions", posenc_positions_shape(NULL, shape));
  MISUSE("positions", posenc_positions_copy(NULL, &number, 1));
  MISUSE("plan", posenc_rotate(NULL, &x, positions, POSENC_QUERY, &x, 0));
  MISUSE("x must be given", posenc_rotate(plan, NULL, positions, POSENC_QUERY, &x, 0));
  MISUSE("positions", posenc_rotate(plan, &x, NULL, POSENC_QUERY, &x, 0));
  MISUSE("out must be given", posenc_rotate(plan, &x, positions, POSENC_QUERY, NULL, 0));
  MISUSE("side", posenc_rotate(plan, &x, positions, 3, &x, 0));
  MISUSE("side", posenc_rotate(plan, &x, positions, -1, &x, 0));
  MISUSE("embedding", posenc_add(plan, NULL, positions, &x, 0));
  MISUSE("out", posenc_position_vectors(plan, positions, NULL, 0));
  MISUSE("keys", posenc_bias(plan, positions, NULL, &x, 0));
  MISUSE("shape", posenc_tensor_dense(data, POSENC_FLOAT32, 2, NULL, &(posenc_tensor){0}));
  posenc_model_free(NULL);
  posenc_plan_free(NULL);
  posenc_positions_free(NULL);
  posenc_string_free(NULL);
  posenc_positions_free(positions);
  posenc_plan_free(plan);
}

static void bad_tensors_are_refused(void) {
  posenc_plan* plan = plan_of("{\"type\": \"rope\"}", (posenc_geometry){.head_dim = 8});
  posenc_positions* positions = range(0, 2);
  double data[16] = {0};
  const posenc_tensor good = dense(data, POSENC_FLOAT64, 1, 1, 2, 8);
  posenc_tensor bad = good;
#define ROTATE_BAD posenc_rotate(plan, &bad, positions, POSENC_QUERY, &bad, 0)
  bad.struct_size--;
  MISUSE("x.struct_size", ROTATE_BAD);
  bad = good;
  bad.dtype = 4;
  MISUSE("x.dtype", ROTATE_BAD);
  bad.dtype = -1;
  MISUSE("x.dtype", ROTATE_BAD);
  bad = good;
  bad.rank = 5;
  MISUSE("x.rank", ROTATE_BAD);
  bad.rank = -1;
  MISUSE("x.rank", ROTATE_BAD);
  bad = good;
  bad.data = (char*)data + 1;
  MISUSE("x.data", ROTATE_BAD);
  bad = good;
  bad.data = NULL;
  REFUSED("given", ROTATE_BAD);
  bad = good;
  bad.shape[1] = -1;
  REFUSED("negative extent", ROTATE_BAD);
  bad = good;
  bad.shape[0] = bad.shape[1] = INT64_MAX;
  REFUSED("memory", ROTATE_BAD);
  bad = good;
  bad.stride[2] = INT64_MAX;
  REFUSED("memory", ROTATE_BAD);
  bad.stride[2] = INT64_MIN;
  REFUSED("memory", ROTATE_BAD);
  bad.stride[2] = 0;
  REFUSED("element of its own", ROTATE_BAD);
  bad = good;
  bad.shape[3] = 7;
  REFUSED("head_dim", ROTATE_BAD);
  bad = good;
  bad.shape[2] = 1;
  REFUSED("position", ROTATE_BAD);
  bad = good;
  bad.dtype = POSENC_FLOAT32;
  REFUSED("dtype", posenc_rotate(plan, &good, positions, POSENC_QUERY, &bad, 0));
  REFUSED("added to the embedding", posenc_add(plan, &good, positions, &good, 0));
  MISUSE("extents",
         posenc_tensor_dense(data, POSENC_FLOAT64, 3, (const int64_t[]){INT64_MAX, 2, 2}, &bad));
  MISUSE("extents", posenc_tensor_dense(data, POSENC_FLOAT64, 1, (const int64_t[]){-1}, &bad));
  MISUSE("rank", posenc_tensor_dense(data, POSENC_FLOAT64, 5, good.shape, &bad));
  MISUSE("dtype", posenc_tensor_dense(data, 9, 1, good.shape, &bad));
  posenc_positions_free(positions);
  posenc_plan_free(plan);
}

int main(void) {
  CHECK(strcmp(posenc_last_error(), "") == 0);
  lists_have_fields_and_models();
  a_model_is_explained_and_compiled();
  alibi_is_what_its_paper_says();
  an_engines_angles_are_its_floats();
  rotation_turns_and_turns_back();
  learned_tables_are_given_and_checked();
  attention_sees_the_past();
  gradients_are_written();
  normal_numbers_are_those_of_their_seed();
  schemes_that_read_the_content_attend();
  queries_and_keys_are_rotated_together();
  a_cache_decodes_and_forgets();
  the_doctor_takes_text();
  positions_are_read_back();
  bad_schemes_are_refused();
  odd_and_absurd_geometries_are_refused();
  bad_bytes_are_refused();
  null_pointers_are_named();
  bad_tensors_are_refused();
  if (failures) fprintf(stderr, "%d failures\n", failures);
  return failures != 0;
}
