/* What is wrong with a call of the C interface is said, and nothing is read or written. */
#include "tests/c/check.h"

static void an_error_has_parts(void) {
  const posenc_geometry geometry = {.struct_size = sizeof geometry, .head_dim = 7};
  posenc_plan* plan = NULL;
  CHECK(posenc_plan_from_scheme("{\"type\": \"rope\"}", &geometry, &plan) == POSENC_REFUSED);
  for (posenc_error_part part = POSENC_ERROR_WHERE; part <= POSENC_ERROR_CURE; part++) {
    CHECK(strlen(posenc_last_error_part(part)) > 0);
    CHECK(has(posenc_last_error(), posenc_last_error_part(part)));
  }
  CHECK(strcmp(posenc_last_error_part(POSENC_ERROR_GOT), "7") == 0);
  CHECK(strcmp(posenc_last_error_part(4), "") == 0);
  CHECK(strcmp(posenc_last_error_part(-1), "") == 0);
}

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
      fail(__FILE__, __LINE__, bad[i].scheme, posenc_last_error());
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
  bad.shape[0] = (int64_t)1 << 40; /* loops over nothing would never end */
  bad.shape[1] = 0;
  REFUSED("2^24 rows", ROTATE_BAD);
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

void test_refusals(void) {
  an_error_has_parts();
  bad_schemes_are_refused();
  odd_and_absurd_geometries_are_refused();
  bad_bytes_are_refused();
  null_pointers_are_named();
  bad_tensors_are_refused();
}
