/* What the C interface answers of attention, its gradients, schemes that read the content, and the
   cache. */
#include "tests/c/check.h"

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
  posenc_profiles profiles = {.struct_size = sizeof profiles, .query = &tsink};
  open.sink_logits = NULL;
  open.profiles = &profiles;
  REFUSED("profiles.query must be absent", posenc_attend(plan, &open, &to));
  profiles.struct_size = 1;
  MISUSE("profiles.struct_size must be", posenc_attend(plan, &open, &to));
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

/* Two tokens that cannot be told apart share a query's weight: dv is half of g for each of both, dq
   and dk are 0. */
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
  large.shape[0] = (int64_t)1 << 40;
  large.shape[1] = 0;
  MISUSE("2^24 rows", posenc_content_set_table(fox, "log_gates", &large));
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

/* A reflection of the only channel at each token: a logit changes its sign with each step back, and
   so does a key in a cache with each token that follows. */
static void paths_keys_are_cached(void) {
  posenc_positions* positions = range(0, 3);
  double q[] = {1, 1, 1}, k[] = {1, 2, 3}, v[] = {1, 2, 4}, o[3], w[] = {1, 1, 1},
         beta[] = {2, 2, 2};
  double logits[9], by_beta[3];
  posenc_tensor tq = dense(q, POSENC_FLOAT64, 1, 1, 3, 1),
                tk = dense(k, POSENC_FLOAT64, 1, 1, 3, 1),
                tv = dense(v, POSENC_FLOAT64, 1, 1, 3, 1),
                to = dense(o, POSENC_FLOAT64, 1, 1, 3, 1),
                tw = dense(w, POSENC_FLOAT64, 1, 1, 3, 1), tbeta, tby_beta;
  const posenc_tensor tlogits = dense(logits, POSENC_FLOAT64, 1, 1, 3, 3);
  OK(posenc_tensor_dense(beta, POSENC_FLOAT64, 3, (int64_t[]){1, 1, 3}, &tbeta));
  OK(posenc_tensor_dense(by_beta, POSENC_FLOAT64, 3, (int64_t[]){1, 1, 3}, &tby_beta));
  const posenc_attention in = {.struct_size = sizeof in,
                               .q = &tq,
                               .k = &tk,
                               .v = &tv,
                               .queries = positions,
                               .keys = positions};
  posenc_content* path = NULL;
  OK(posenc_content_from_scheme("{\"type\": \"path\"}", &path));
  REFUSED("must be given", posenc_attend_content(path, NULL, &in, &to, NULL));
  OK(posenc_content_set_table(path, "w", &tw));
  OK(posenc_content_set_table(path, "beta", &tbeta));
  OK(posenc_attend_content_reference(path, NULL, &in, &to, &tlogits, NULL));
  CHECK(fabs(logits[6] - 1) < 1e-12 && fabs(logits[7] + 2) < 1e-12 && fabs(logits[8] - 3) < 1e-12);
  const posenc_content_gradients gradients = {.struct_size = sizeof gradients, .beta = &tby_beta};
  OK(posenc_attend_content_backward(path, NULL, &in, &to, &gradients, NULL));
  CHECK(fabs(by_beta[0]) < 1e-12 &&
        fabs(by_beta[2]) > 1e-3); /* nothing stands before the first token */
  OK(posenc_path_keys(&tk, &tw, &tbeta, 0));
  CHECK(fabs(k[0] - 1) < 1e-12 && fabs(k[1] + 2) < 1e-12 && fabs(k[2] - 3) < 1e-12);
  MISUSE("threads", posenc_path_keys(&tk, &tw, &tbeta, -1));
  posenc_content_free(path);
  posenc_positions_free(positions);
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
  OK(posenc_cache_attend(cache, &id, 1, &tq, plan, NULL, NULL, NULL, &to, 1));
  CHECK(o[0] == 1.5 && o[1] == 2); /* the mean of all four */
  REFUSED("page", APPEND);
  OK(posenc_cache_evict(cache, id, 0, 2, 0));
  OK(posenc_cache_size(cache, id, &tokens, &length));
  CHECK(tokens == 2 && length == 4);
  OK(posenc_cache_shift(cache, id, 0, 2, -2));
  OK(posenc_cache_size(cache, id, &tokens, &length));
  CHECK(tokens == 2 && length == 2);
  OK(posenc_cache_attend(cache, &id, 1, &tq, plan, NULL, NULL, NULL, &to, 1));
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
  MISUSE("out must be given",
         posenc_cache_attend(cache, &id, 1, &tq, plan, NULL, NULL, NULL, NULL, 0));
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

void test_attention(void) {
  attention_sees_the_past();
  gradients_are_written();
  schemes_that_read_the_content_attend();
  paths_keys_are_cached();
  a_cache_decodes_and_forgets();
}
