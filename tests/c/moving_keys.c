/* What the C interface answers of cached keys that move: dense, in pages, in 8 bits, and what their
   header says. */
#include "tests/c/check.h"

static void keys_move(void) {
  posenc_plan* plan = plan_of("{\"type\": \"rope\"}", (posenc_geometry){.head_dim = 8});
  posenc_plan* other =
      plan_of("{\"type\": \"rope\", \"rope_theta\": 500}", (posenc_geometry){.head_dim = 8});
  posenc_positions *old_ids, *new_ids, *fewer;
  OK(posenc_positions_range(100, 2, &old_ids));
  OK(posenc_positions_range(3, 2, &new_ids));
  OK(posenc_positions_range(3, 1, &fewer));
  double rotated[16], fresh[16];
  OK(posenc_normals(7, 0, 16, rotated));
  OK(posenc_normals(7, 0, 16, fresh));
  posenc_tensor x = dense(rotated, POSENC_FLOAT64, 1, 1, 2, 8),
                y = dense(fresh, POSENC_FLOAT64, 1, 1, 2, 8);
  OK(posenc_rotate(plan, &x, old_ids, POSENC_KEY, &x, 1));
  OK(posenc_rekey(plan, old_ids, other, new_ids, &x, POSENC_KEY, &x, 1));
  OK(posenc_rotate(other, &y, new_ids, POSENC_KEY, &y, 1));
  for (int i = 0; i < 16; i++) CHECK(fabs(rotated[i] - fresh[i]) < 1e-14);
  MISUSE("to_positions", posenc_rekey(plan, old_ids, plan, NULL, &x, POSENC_KEY, &x, 0));
  MISUSE("posenc_side", posenc_rekey(plan, old_ids, plan, new_ids, &x, 7, &x, 0));
  REFUSED("queries", posenc_rekey(plan, old_ids, plan, new_ids, &x, POSENC_QUERY, &x, 0));
  REFUSED("each token", posenc_rekey(plan, old_ids, plan, fewer, &x, POSENC_KEY, &x, 0));
  posenc_positions_free(old_ids);
  posenc_positions_free(new_ids);
  posenc_positions_free(fewer);
  posenc_plan_free(plan);
  posenc_plan_free(other);
  posenc_model* model;
  char* json;
  OK(posenc_model_open("gpt2", &model));
  OK(posenc_model_reuse_json(model, &json));
  CHECK(strstr(json, "\"verdict\":\"never\"") != NULL);
  posenc_string_free(json);
  MISUSE("model", posenc_model_reuse_json(NULL, &json));
  OK(posenc_model_layout_json(model, "ulysses:5", 1024, &json));
  CHECK(strstr(json, "\"verdict\":\"breaks\"") != NULL);
  posenc_string_free(json);
  OK(posenc_model_layout_json(model, "--context-parallel-size 4", 0, &json));
  CHECK(strstr(json, "\"layout\":\"zigzag:4:by=ring:engine=megatron-core\"") != NULL);
  posenc_string_free(json);
  MISUSE("cp", posenc_model_layout_json(model, NULL, 0, &json));
  REFUSED("layout", posenc_model_layout_json(model, "spiral:4", 0, &json));
  posenc_model_free(model);
}

/* Two sequences of three and one tokens, in pages of two that a pool of four has in any order. */
static const int32_t pages[] = {3, 0, 2, -1};
static const int64_t tokens_of[] = {3, 1};
static const posenc_page_table two_sequences = {
    .struct_size = sizeof(posenc_page_table),
    .pages = pages,
    .sequences = 2,
    .columns = 2,
    .tokens = tokens_of,
};
static const int row_of[2][3] = {{6, 7, 0}, {4, -1, -1}}; /* of the pool, by sequence and token */

static void keys_move_in_pages(void) {
  enum { dim = 8, rows = 8 };
  posenc_plan* plan = plan_of("{\"type\": \"rope\"}", (posenc_geometry){.head_dim = dim});
  posenc_positions *old_ids = range(100, 3), *new_ids = range(3, 3), *fewer = range(3, 2);
  double pool[rows * dim], before[rows * dim];
  OK(posenc_normals(9, 0, rows * dim, pool));
  memcpy(before, pool, sizeof pool);
  posenc_tensor keys = dense(pool, POSENC_FLOAT64, 4, 1, 2, dim);
  OK(posenc_rekey_pages(plan, old_ids, plan, new_ids, &keys, &two_sequences, POSENC_KEY, 1));
  int moved[rows] = {0};
  for (int s = 0; s < 2; s++)
    for (int t = 0; t < tokens_of[s]; t++) {
      const int row = row_of[s][t];
      posenc_positions *from = range(100 + t, 1), *to = range(3 + t, 1);
      posenc_tensor one = dense(before + row * dim, POSENC_FLOAT64, 1, 1, 1, dim);
      OK(posenc_rekey(plan, from, plan, to, &one, POSENC_KEY, &one, 1));
      moved[row] = 1;
      posenc_positions_free(from);
      posenc_positions_free(to);
    }
  CHECK(moved[0] && moved[4] && moved[6] && moved[7]);
  for (int i = 0; i < rows * dim; i++) CHECK(fabs(pool[i] - before[i]) < 1e-14);

  posenc_page_table wrong = two_sequences;
  wrong.columns = 1;
  REFUSED("fit its pages",
          posenc_rekey_pages(plan, old_ids, plan, new_ids, &keys, &wrong, POSENC_KEY, 1));
  wrong.columns = INT64_MAX;
  MISUSE("2^40", posenc_rekey_pages(plan, old_ids, plan, new_ids, &keys, &wrong, POSENC_KEY, 1));
  wrong = two_sequences;
  wrong.tokens = NULL;
  MISUSE("table.tokens",
         posenc_rekey_pages(plan, old_ids, plan, new_ids, &keys, &wrong, POSENC_KEY, 1));
  wrong.struct_size = 8;
  MISUSE("struct_size",
         posenc_rekey_pages(plan, old_ids, plan, new_ids, &keys, &wrong, POSENC_KEY, 1));
  MISUSE("table", posenc_rekey_pages(plan, old_ids, plan, new_ids, &keys, NULL, POSENC_KEY, 1));
  REFUSED("", posenc_rekey_pages(plan, old_ids, plan, fewer, &keys, &two_sequences, POSENC_KEY, 1));
  posenc_positions_free(old_ids);
  posenc_positions_free(new_ids);
  posenc_positions_free(fewer);
  posenc_plan_free(plan);
}

/* Integers of a head of 32 under one scale: turned there and back each is off by a step at most. */
static void keys_of_8_bits_move(void) {
  enum { dim = 32, heads = 2, seq = 3 };
  posenc_plan* plan = plan_of("{\"type\": \"rope\"}", (posenc_geometry){.head_dim = dim});
  posenc_positions *old_ids = range(40, seq), *new_ids = range(7, seq);
  signed char codes[heads * seq * dim];
  float scales[heads * seq];
  for (int i = 0; i < heads * seq * dim; i++) codes[i] = (signed char)(i * 37 % 121 - 60);
  for (int i = 0; i < heads * seq; i++) scales[i] = 0.5F;
  double exact[heads * seq * dim];
  for (int i = 0; i < heads * seq * dim; i++) exact[i] = 0.5 * codes[i];
  posenc_tensor true_keys = dense(exact, POSENC_FLOAT64, 1, heads, seq, dim);
  OK(posenc_rekey(plan, old_ids, plan, new_ids, &true_keys, POSENC_KEY, &true_keys, 1));
  posenc_key_codes keys = {
      .struct_size = sizeof keys,
      .type = POSENC_INT8,
      .codes = codes,
      .shape = {1, heads, seq, dim},
      .stride = {heads * seq * dim, seq * dim, dim, 1},
      .scales = dense(scales, POSENC_FLOAT32, 1, heads, seq, 1),
  };
  OK(posenc_rekey_codes(plan, old_ids, plan, new_ids, &keys, NULL, POSENC_KEY, 1));
  for (int i = 0; i < heads * seq * dim; i++)
    CHECK(scales[i / dim] == 0.5F && fabs(0.5 * codes[i] - exact[i]) <= 0.25 + 1e-6);
  keys.new_scales = 1;
  OK(posenc_rekey_codes(plan, new_ids, plan, new_ids, &keys, NULL, POSENC_KEY, 1));
  for (int i = 0; i < heads * seq * dim; i++) {
    const double step = scales[i / dim];
    CHECK(step < 0.5 && fabs(step * codes[i] - exact[i]) <= 0.25 + step);
  }

  keys.type = POSENC_Q8_0;
  MISUSE("posenc_key_codes_q8_0",
         posenc_rekey_codes(plan, old_ids, plan, new_ids, &keys, NULL, POSENC_KEY, 1));
  keys.type = POSENC_E4M3;
  keys.block = 5;
  REFUSED("blocks must divide",
          posenc_rekey_codes(plan, old_ids, plan, new_ids, &keys, NULL, POSENC_KEY, 1));
  keys.block = 0;
  keys.shape[0] = INT64_MAX;
  REFUSED("fit in memory",
          posenc_rekey_codes(plan, old_ids, plan, new_ids, &keys, NULL, POSENC_KEY, 1));
  keys.codes = NULL;
  MISUSE("codes", posenc_rekey_codes(plan, old_ids, plan, new_ids, &keys, NULL, POSENC_KEY, 1));
  posenc_positions_free(old_ids);
  posenc_positions_free(new_ids);
  posenc_plan_free(plan);
}

/* A pool of q8_0 as llama.cpp's rows: a float16 of 1 (0x3c00) in front of 32 integers. */
static void rows_of_llama_cpp_move_in_pages(void) {
  enum { dim = 32, block = 34, rows = 8 };
  posenc_plan* plan = plan_of("{\"type\": \"rope\", \"pairing\": \"interleaved\"}",
                              (posenc_geometry){.head_dim = dim});
  posenc_positions *old_ids = range(100, 3), *new_ids = range(3, 3);
  unsigned char pool[rows * block], before[rows * block];
  for (int row = 0; row < rows; row++) {
    pool[row * block] = 0, pool[row * block + 1] = 0x3c;
    for (int c = 0; c < dim; c++)
      pool[row * block + 2 + c] =
          (unsigned char)(signed char)(c == 0 ? 127 : (row * 31 + c * 7) % 90);
  }
  memcpy(before, pool, sizeof pool);
  posenc_key_codes keys, dense_keys;
  OK(posenc_key_codes_q8_0(pool, 4, 1, 2, dim, &keys));
  OK(posenc_rekey_codes(plan, old_ids, plan, new_ids, &keys, &two_sequences, POSENC_KEY, 1));
  for (int s = 0; s < 2; s++)
    for (int t = 0; t < tokens_of[s]; t++) {
      posenc_positions *from = range(100 + t, 1), *to = range(3 + t, 1);
      OK(posenc_key_codes_q8_0(before + row_of[s][t] * block, 1, 1, 1, dim, &dense_keys));
      OK(posenc_rekey_codes(plan, from, plan, to, &dense_keys, NULL, POSENC_KEY, 1));
      posenc_positions_free(from);
      posenc_positions_free(to);
    }
  CHECK(memcmp(pool, before, sizeof pool) == 0);

  MISUSE("multiple of 32", posenc_key_codes_q8_0(pool, 1, 1, 1, 48, &keys));
  MISUSE("2^40", posenc_key_codes_q8_0(pool, INT64_MAX, 2, 1, 32, &keys));
  MISUSE("negative", posenc_key_codes_q8_0(pool, 1, -1, 1, 32, &keys));
  MISUSE("blocks", posenc_key_codes_q8_0(NULL, 1, 1, 1, 32, &keys));
  posenc_positions_free(old_ids);
  posenc_positions_free(new_ids);
  posenc_plan_free(plan);
}

static void a_header_says_where_keys_stand(void) {
  posenc_plan* plan =
      plan_of("{\"type\": \"rope\", \"rotary_dim\": 64}", (posenc_geometry){.head_dim = 128});
  posenc_positions *ids = range(4096, 512), *elsewhere = range(0, 512);
  const int64_t shape[] = {1, 8, 512, 128};
  unsigned char header[POSENC_KEY_HEADER_BYTES], other[POSENC_KEY_HEADER_BYTES];
  OK(posenc_key_header_make(plan, ids, shape, POSENC_BFLOAT16, POSENC_KEY, 3, header));
  posenc_key_header said;
  OK(posenc_key_header_read(header, sizeof header, "keys.bin", &said));
  CHECK(said.type == POSENC_BFLOAT16 && said.pairing == 0 && said.side == POSENC_KEY);
  CHECK(said.first == 4096 && said.consecutive && said.tokens == 512 && said.layer == 3);
  CHECK(said.kv_heads == 8 && said.head_dim == 128 && said.first_dim == 0 && said.rotary_dim == 64);
  OK(posenc_key_header_check(header, sizeof header, header, "keys.bin"));

  OK(posenc_key_header_make(plan, elsewhere, shape, POSENC_BFLOAT16, POSENC_KEY, 3, other));
  REFUSED("keys.bin: ", posenc_key_header_check(header, sizeof header, other, "keys.bin"));
  REFUSED("4096", posenc_key_header_check(header, sizeof header, other, NULL));
  REFUSED("64 bytes", posenc_key_header_read(header, 63, NULL, &said));
  header[0] = 'P';
  REFUSED("poskeys", posenc_key_header_check(header, sizeof header, other, NULL));
  REFUSED("expected: ", posenc_key_header_check(other, sizeof other, header, NULL));
  OK(posenc_key_header_make(plan, ids, shape, POSENC_Q8_0, POSENC_KEY, -1, header));
  OK(posenc_key_header_read(header, sizeof header, NULL, &said));
  CHECK(said.type == POSENC_Q8_0 && said.layer == -1);
  MISUSE("posenc_key_type", posenc_key_header_make(plan, ids, shape, 7, POSENC_KEY, 3, header));
  MISUSE("layer", posenc_key_header_make(plan, ids, shape, POSENC_INT8, POSENC_KEY, -2, header));
  MISUSE("shape", posenc_key_header_make(plan, ids, NULL, POSENC_INT8, POSENC_KEY, 0, header));
  REFUSED("queries",
          posenc_key_header_make(plan, ids, shape, POSENC_INT8, POSENC_QUERY, 0, header));
  posenc_positions_free(ids);
  posenc_positions_free(elsewhere);
  posenc_plan_free(plan);
}

void test_moving_keys(void) {
  keys_move();
  keys_move_in_pages();
  keys_of_8_bits_move();
  rows_of_llama_cpp_move_in_pages();
  a_header_says_where_keys_stand();
}
