/* Answers compare.mjs in the numbers of this machine: a request a line on stdin, an answer a line
   on stdout.
     KIND DTYPE ANGLES WIDTH HEADS HEAD_DIM LENGTH GRID FIRST COUNT TEXT
   KIND: plan, vectors, rotate, angles, bias, attend, content, explain (TEXT is a scheme as JSON, or
   a model's name), normals (of seed LENGTH). Tensors come as the bytes of their elements in
   hexadecimal. Their input is input() below, which is exact everywhere; attention takes its numbers
   one after another for q, k and v. */
#include <posenc/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { longest = 1 << 16, most = 1 << 16 };
static double memory[most], logits[most];

static void check(posenc_status status) {
  if (status == POSENC_OK) return;
  fprintf(stderr, "native: %s\n", posenc_last_error());
  exit(1);
}

/* Element i, in [-1, 1): 11 bits, exact in float and double. */
static double input(int64_t i) { return (double)(i * 2654435761 % 2048) / 1024 - 1; }

static posenc_tensor tensor(posenc_dtype dtype, int64_t a, int64_t b, int64_t c, int64_t d) {
  const int64_t shape[] = {a, b, c, d};
  posenc_tensor out;
  check(posenc_tensor_dense(memory, dtype, 4, shape, &out));
  const int64_t size = a * b * c * d;
  if (size > most) exit(2);
  for (int64_t i = 0; i < size; i++) {
    if (dtype == POSENC_FLOAT64) memory[i] = input(i);
    if (dtype == POSENC_FLOAT32) ((float*)memory)[i] = (float)input(i);
  }
  return out;
}

static void print(posenc_dtype dtype, int64_t size) {
  const unsigned char* bytes = (const unsigned char*)memory;
  const int64_t count = size * (dtype == POSENC_FLOAT64 ? 8 : 4);
  for (int64_t i = 0; i < count; i++) printf("%02x", bytes[i]);
  putchar('\n');
}

static void text(char* json) {
  puts(json);
  posenc_string_free(json);
}

/* posenc_attention of the first three of four tensors, of which the fourth is the output. */
static posenc_attention attention(posenc_tensor x[4], posenc_dtype dtype, int64_t heads,
                                  int64_t count, int64_t head_dim,
                                  const posenc_positions* positions) {
  const posenc_tensor all = tensor(dtype, 4, heads, count, head_dim);
  for (int i = 0; i < 4; i++) {
    x[i] = all;
    x[i].shape[0] = 1;
    x[i].data = (char*)memory + i * heads * count * head_dim * (dtype == POSENC_FLOAT64 ? 8 : 4);
  }
  const posenc_attention in = {sizeof in, 1, &x[0], &x[1], &x[2], positions, positions, NULL};
  return in;
}

/* Outputs, and behind them `squares` times [heads][count][count] of `logits`. */
static void print_attention(const posenc_tensor* out, int64_t squares, int64_t heads, int64_t count,
                            int64_t head_dim) {
  const int64_t size = heads * count * head_dim, square = squares * heads * count * count;
  const int64_t bytes = out->dtype == POSENC_FLOAT64 ? 8 : 4;
  memmove(memory, out->data, (size_t)(size * bytes));
  memcpy((char*)memory + size * bytes, logits, (size_t)(square * bytes));
  print(out->dtype, size + square);
}

/* What a scheme reads beside q and k, where it has a table of that name: input() · factor + offset.
   width 0: three axes. */
static void set_table(posenc_content* content, const char* name, double factor, double offset,
                      int64_t heads, int64_t rows, int64_t width) {
  static double values[most];
  posenc_tensor table;
  const int64_t shape[] = {1, heads, rows, width};
  check(posenc_tensor_dense(values, POSENC_FLOAT64, width > 0 ? 4 : 3, shape, &table));
  for (int64_t i = 0; i < heads * rows * (width > 0 ? width : 1); i++)
    values[i] = input(i) * factor + offset;
  (void)posenc_content_set_table(content, name, &table);
}

int main(void) {
  static char line[longest], kind[16];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = '\0';
    int dtype = 0, angles = 0, start = 0;
    long long width, heads, head_dim, length, grid, first, count;
    if (sscanf(line, "%15s %d %d %lld %lld %lld %lld %lld %lld %lld %n", kind, &dtype, &angles,
               &width, &heads, &head_dim, &length, &grid, &first, &count, &start) != 10)
      return 2;
    char* json = NULL;
    if (strcmp(kind, "explain") == 0) {
      posenc_model* model = NULL;
      check(posenc_model_open(line + start, &model));
      check(posenc_model_explain_json(model, length, -1, &json));
      text(json);
      posenc_model_free(model);
      continue;
    }
    if (strcmp(kind, "normals") == 0) {
      check(posenc_normals((uint64_t)length, first, count, memory));
      print(POSENC_FLOAT64, count);
      continue;
    }
    if (strcmp(kind, "content") == 0) {
      posenc_content* content = NULL;
      posenc_positions* positions = NULL;
      posenc_tensor x[4], inside[2];
      check(posenc_content_from_scheme(line + start, &content));
      set_table(content, "embeddings", 1, -1, 8, head_dim, 0);
      set_table(content, "log_gates", 1, -1, heads, count, 0);
      set_table(content, "channel_gates", 1, -1, heads, count, head_dim);
      set_table(content, "w", 0.125, 0, heads, count, head_dim);
      set_table(content, "beta", 1, 1, heads, count, 0);
      set_table(content, "p_queries", 1, 0, heads, count, head_dim);
      set_table(content, "p_keys", 1, 1, heads, count, head_dim);
      check(posenc_positions_range(first, count, &positions));
      const posenc_attention in = attention(x, dtype, heads, count, head_dim, positions);
      const int64_t square = heads * count * count * (dtype == POSENC_FLOAT64 ? 8 : 4);
      for (int i = 0; i < 2; i++)
        check(posenc_tensor_dense((char*)logits + i * square, dtype, 4,
                                  (int64_t[]){1, heads, count, count}, &inside[i]));
      check(posenc_attend_content_reference(content, NULL, &in, &x[3], &inside[0], &inside[1]));
      print_attention(&x[3], 2, heads, count, head_dim);
      posenc_positions_free(positions);
      posenc_content_free(content);
      continue;
    }
    const posenc_geometry geometry = {.struct_size = sizeof geometry,
                                      .angles = angles,
                                      .width = width,
                                      .heads = heads,
                                      .kv_heads = heads,
                                      .head_dim = head_dim,
                                      .length = length,
                                      .grid_height = grid,
                                      .grid_width = grid};
    posenc_plan* plan = NULL;
    posenc_positions* positions = NULL;
    check(posenc_plan_from_scheme(line + start, &geometry, &plan));
    check(posenc_positions_range(first, count, &positions));
    if (strcmp(kind, "plan") == 0) {
      check(posenc_plan_json(plan, &json));
      text(json);
    } else if (strcmp(kind, "vectors") == 0) {
      posenc_tensor out = tensor(dtype, 1, 1, count, width);
      out.rank = 2;
      memcpy(out.shape, (int64_t[]){count, width, 0, 0}, sizeof out.shape);
      memcpy(out.stride, (int64_t[]){width, 1, 0, 0}, sizeof out.stride);
      check(posenc_position_vectors(plan, positions, &out, 1));
      print(dtype, count * width);
    } else if (strcmp(kind, "rotate") == 0) {
      const posenc_tensor x = tensor(dtype, 1, heads, count, head_dim);
      check(posenc_rotate(plan, &x, positions, POSENC_QUERY, &x, 1));
      print(dtype, heads * count * head_dim);
    } else if (strcmp(kind, "angles") == 0) {
      posenc_tensor out = tensor(dtype, 1, heads, count, head_dim / 2);
      check(posenc_rotation_angles(plan, positions, &out, 1));
      print(dtype, heads * count * head_dim / 2);
    } else if (strcmp(kind, "attend") == 0) {
      posenc_tensor x[4], masked;
      const posenc_attention in = attention(x, dtype, heads, count, head_dim, positions);
      check(posenc_tensor_dense(logits, dtype, 4, (int64_t[]){1, heads, count, count}, &masked));
      check(posenc_attend_reference(plan, &in, &x[3], &masked));
      print_attention(&x[3], 1, heads, count, head_dim);
    } else if (strcmp(kind, "bias") == 0) {
      posenc_tensor out = tensor(dtype, 1, heads, count, count);
      out.rank = 3;
      memcpy(out.shape, (int64_t[]){heads, count, count, 0}, sizeof out.shape);
      memcpy(out.stride, (int64_t[]){count * count, count, 1, 0}, sizeof out.stride);
      check(posenc_bias(plan, positions, positions, &out, 1));
      print(dtype, heads * count * count);
    } else {
      return 2;
    }
    posenc_positions_free(positions);
    posenc_plan_free(plan);
  }
  return 0;
}
