/* The same from C: a scheme as JSON becomes a plan, a query is rotated by it in place, and a model
   is asked what it does. Every call that fails leaves its reason in posenc_last_error(). */
#include <posenc/c.h>
#include <stdio.h>
#include <stdlib.h>

enum { heads = 28, seq = 16, head_dim = 128 };

static void check(posenc_status status) {
  if (status == POSENC_OK) return;
  fprintf(stderr, "%s\n", posenc_last_error());
  exit(1);
}

int main(void) {
  static float data[heads * seq * head_dim];
  for (int i = 0; i < heads * seq * head_dim; i++) data[i] = 1;

  const posenc_geometry geometry = {
      .struct_size = sizeof geometry, .heads = heads, .kv_heads = 4, .head_dim = head_dim};
  posenc_plan* plan = NULL;
  check(posenc_plan_from_scheme(
      "{\"type\": \"rope\", \"rope_theta\": 1e6, \"scaling\": {\"type\": \"yarn\", \"factor\": 4,"
      " \"original_max_position_embeddings\": 32768}}",
      &geometry, &plan));

  posenc_positions* positions = NULL;
  check(posenc_positions_range(0, seq, &positions));

  posenc_tensor q;
  const int64_t shape[] = {1, heads, seq, head_dim};
  check(posenc_tensor_dense(data, POSENC_FLOAT32, 4, shape, &q));
  check(posenc_rotate(plan, &q, positions, POSENC_QUERY, &q, 0));
  printf("position 0: %.4f, position 15: %.4f\n", data[0], data[15 * head_dim]);

  posenc_model* model = NULL;
  char* json = NULL;
  check(posenc_model_open("llama-3.1-8b", &model));
  check(posenc_model_explain_json(model, 131072, -1, &json));
  printf("%.60s...\n", json);

  posenc_string_free(json);
  posenc_model_free(model);
  posenc_positions_free(positions);
  posenc_plan_free(plan);
  return 0;
}
