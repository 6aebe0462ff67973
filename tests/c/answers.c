/* What the C interface answers of lists, models, plans, tables, rotations, positions, and the
   doctor. */
#include "tests/c/check.h"

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
  REFUSED("have an indexer", posenc_model_indexer_plan(model, 0, 0, POSENC_EXACT, &plan));
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

static void angles_add_up(void) {
  double steps[] = {1, 2, 3, 4, 5, 6}, angle[6], factor[] = {1, -2}, start[] = {10, 20}, back[6];
  const int64_t shape[] = {1, 1, 2};
  posenc_tensor from = dense(steps, POSENC_FLOAT64, 1, 1, 3, 2),
                out = dense(angle, POSENC_FLOAT64, 1, 1, 3, 2),
                by = dense(back, POSENC_FLOAT64, 1, 1, 3, 2), begin;
  OK(posenc_tensor_dense(start, POSENC_FLOAT64, 3, shape, &begin));
  OK(posenc_summed_angles(&from, factor, &begin, &out));
  CHECK(angle[0] == 11 && angle[4] == 19 && angle[5] == -4);
  OK(posenc_summed_angles_gradient(&from, NULL, &by));
  CHECK(back[0] == 9 && back[1] == 12 && back[5] == 6);
  MISUSE("steps", posenc_summed_angles(NULL, NULL, NULL, &out));
}

static void angles_are_said_by_tokens(void) {
  posenc_angle_form form = {.struct_size = sizeof form};
  posenc_plan* plan = NULL;
  OK(posenc_angle_form_named("mamba3", 8, 0, &form, &plan));
  CHECK(form.step == POSENC_STEP_TANH && form.gate == POSENC_GATE_SOFTPLUS && form.own_step == 1);
  double x[3 * 2] = {0, 1, 2, 0, 0, -1}, y[3] = {0, 0, 0}, angle[6], next[2], by[6], by_gate[3];
  const int64_t shape[] = {1, 1, 2};
  posenc_tensor said = dense(x, POSENC_FLOAT64, 1, 1, 3, 2),
                gate = dense(y, POSENC_FLOAT64, 1, 1, 3, 1),
                out = dense(angle, POSENC_FLOAT64, 1, 1, 3, 2),
                by_said = dense(by, POSENC_FLOAT64, 1, 1, 3, 2),
                of_gate = dense(by_gate, POSENC_FLOAT64, 1, 1, 3, 1), behind;
  OK(posenc_tensor_dense(next, POSENC_FLOAT64, 3, shape, &behind));
  posenc_said_angles in = {.struct_size = sizeof in, .said = &said, .gate = &gate},
                     to = {.struct_size = sizeof to, .said = &by_said, .gate = &of_gate};
  OK(posenc_content_angles(plan, &form, &in, &out, &behind));
  CHECK(angle[0] == 0 && fabs(angle[1] - acos(-1) * tanh(1) * log(2)) < 1e-14);
  CHECK(next[0] == angle[4] && next[1] == angle[5] && fabs(next[1]) < 1e-14);
  OK(posenc_content_angles_gradient(plan, &form, &in, &out, &to, NULL));
  in.gate = NULL;
  REFUSED("gate must be given", posenc_content_angles(plan, &form, &in, &out, NULL));
  form.step = 9;
  MISUSE("step and gate must be constants", posenc_content_angles(plan, &form, &in, &out, NULL));
  posenc_plan_free(plan);
  REFUSED("selective_rope", posenc_angle_form_named("selective", 8, 0, &form, &plan));
  in.struct_size = 3;
  MISUSE("plan", posenc_content_angles(NULL, &form, &in, &out, NULL));
}

static void angles_are_given_and_made_of_real_positions(void) {
  posenc_plan* plan = plan_of("{\"type\": \"rope\"}", (posenc_geometry){.head_dim = 8});
  double seconds[] = {-2.5, 0.125}, angle[2 * 4], data[2 * 8], gradient[2 * 8], by_angle[2 * 4];
  const int64_t shape[] = {1, 1, 2};
  posenc_tensor at, angles = dense(angle, POSENC_FLOAT64, 1, 1, 2, 4),
                    x = dense(data, POSENC_FLOAT64, 1, 1, 2, 8),
                    by = dense(gradient, POSENC_FLOAT64, 1, 1, 2, 8),
                    out = dense(by_angle, POSENC_FLOAT64, 1, 1, 2, 4);
  OK(posenc_tensor_dense(seconds, POSENC_FLOAT64, 3, shape, &at));
  OK(posenc_rotation_angles_at(plan, &at, &angles, 0));
  CHECK(angle[0] == -2.5 && fabs(angle[5] - 0.0125) < 1e-15);
  for (int i = 0; i < 16; i++) data[i] = i == 0, gradient[i] = i == 4;
  OK(posenc_rotate_by(plan, &x, &angles, POSENC_QUERY, &x, 0));
  CHECK(fabs(data[0] - cos(-2.5)) < 1e-15 && fabs(data[4] - sin(-2.5)) < 1e-15);
  OK(posenc_angle_gradient(plan, &x, &by, &out));
  CHECK(fabs(by_angle[0] - cos(-2.5)) < 1e-15 && by_angle[1] == 0);
  OK(posenc_rotate_by_transpose(plan, &x, &angles, POSENC_QUERY, &x, 0));
  CHECK(fabs(data[0] - 1) < 1e-15 && fabs(data[4]) < 1e-15);
  OK(posenc_rotate_by_inverse(plan, &x, &angles, POSENC_KEY, &x, 0));
  CHECK(fabs(data[0] - cos(-2.5)) < 1e-15);
  MISUSE("angles", posenc_rotate_by(plan, &x, NULL, POSENC_QUERY, &x, 0));
  REFUSED("must rotate this side", posenc_rotate_by(plan, &x, &angles, POSENC_VALUE, &x, 0));
  posenc_plan_free(plan);
}

static void vectors_are_added_at_real_positions(void) {
  posenc_plan* plan =
      plan_of("{\"type\": \"sinusoidal\", \"cosine_first\": true}", (posenc_geometry){.width = 2});
  double seconds[] = {-2.5, 0.125}, data[4], x[4] = {1, 1, 1, 1};
  const int64_t shape[] = {1, 1, 2}, rows[] = {1, 2, 2};
  posenc_tensor at, out, sum;
  OK(posenc_tensor_dense(seconds, POSENC_FLOAT64, 3, shape, &at));
  OK(posenc_tensor_dense(data, POSENC_FLOAT64, 3, rows, &out));
  OK(posenc_tensor_dense(x, POSENC_FLOAT64, 3, rows, &sum));
  OK(posenc_position_vectors_at(plan, &at, &out, 0));
  CHECK(fabs(data[0] - cos(-2.5)) < 1e-15 && fabs(data[3] - sin(0.125)) < 1e-15);
  OK(posenc_add_at(plan, &sum, &at, &sum, 0));
  CHECK(x[2] == 1 + data[2]);
  MISUSE("at", posenc_position_vectors_at(plan, NULL, &out, 0));
  REFUSED("at must be", posenc_add_at(plan, &sum, &out, &sum, 0));
  posenc_plan_free(plan);
}

static void tables_of_a_grid_are_resampled(void) {
  double table[] = {7, 0, 2, 4, 6}, out_rows[4], back[5]; /* a class token, 2 x 2 patches */
  const int64_t shape[] = {5, 1}, out_shape[] = {4, 1};
  posenc_tensor from, to, by;
  OK(posenc_tensor_dense(table, POSENC_FLOAT64, 2, shape, &from));
  OK(posenc_tensor_dense(out_rows, POSENC_FLOAT64, 2, out_shape, &to));
  OK(posenc_tensor_dense(back, POSENC_FLOAT64, 2, shape, &by));
  posenc_resampling how = {.struct_size = sizeof how,
                           .from_height = 2,
                           .from_width = 2,
                           .to_height = 1,
                           .to_width = 3,
                           .align_corners = 1,
                           .kept_rows = 1};
  OK(posenc_resample_grid(&from, &how, &to));
  CHECK(out_rows[0] == 7 && out_rows[1] == 0 && out_rows[2] == 1 && out_rows[3] == 2);
  OK(posenc_resample_grid_gradient(&to, &how, &by));
  CHECK(back[0] == 7 && back[1] == 0.5 && back[2] == 2.5 && back[3] == 0 && back[4] == 0);
  how.merge = 2;
  REFUSED("blocks of 2", posenc_resample_grid(&from, &how, &to));
  how.struct_size = 0;
  MISUSE("struct_size", posenc_resample_grid(&from, &how, &to));
  MISUSE("how", posenc_resample_grid(&from, NULL, &to));
}

static void grids_and_signed_ids_are_positions(void) {
  const int64_t sizes[] = {1, 2, 3}, first[] = {0, -1, -2};
  int64_t ids[3 * 6];
  posenc_positions *grid = NULL, *same = NULL;
  OK(posenc_positions_grid(sizes, first, 3, &grid));
  OK(posenc_positions_copy(grid, ids, 18));
  CHECK(ids[0] == 0 && ids[6] == -1 && ids[11] == 0 && ids[12] == -2 && ids[17] == 0);
  OK(posenc_positions_signed_ids(ids, 3, 1, 6, &same));
  posenc_positions_free(same);
  REFUSED("must not be negative", posenc_positions_ids(ids, 3, 1, 6, &same));
  MISUSE("axes", posenc_positions_grid(sizes, first, 0, &same));
  REFUSED("sizes must not be negative", posenc_positions_grid(first, NULL, 3, &same));
  posenc_positions_free(grid);
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
  CHECK(strstr(json, "trained_length_kept") != NULL);
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

static void the_doctor_judges_whatever_there_is(void) {
  const char* line = "llama-server -m m.gguf -c 131072";
  posenc_doctor* doctor = NULL;
  char* json = NULL;
  OK(posenc_doctor_new(&doctor));
  REFUSED("evidence", posenc_doctor_json(doctor, NULL, 0, &json));
  OK(posenc_doctor_tell(doctor, "qwen3-8b", NULL, 0));
  OK(posenc_doctor_tell(doctor, "start.sh", line, strlen(line)));
  OK(posenc_doctor_tell(doctor, "empty", "", 0));
  OK(posenc_doctor_tell(doctor, "nowhere", NULL, 0));
  OK(posenc_doctor_json(doctor, "vllm,sglang", 0, &json));
  CHECK(has(json, "\"name\":\"start.sh\",\"kind\":\"command\""));
  CHECK(has(json, "\"name\":\"empty\",\"kind\":\"unusable\""));
  CHECK(has(json, "\"name\":\"nowhere\",\"kind\":\"unusable\""));
  CHECK(has(json, "\"code\":\"beyond_context\""));
  posenc_string_free(json);
  REFUSED("keras", posenc_doctor_json(doctor, "keras", 0, &json));
  REFUSED("length", posenc_doctor_json(doctor, NULL, -1, &json));
  MISUSE("json", posenc_doctor_json(doctor, NULL, 0, NULL));
  MISUSE("doctor", posenc_doctor_json(NULL, NULL, 0, &json));
  MISUSE("name", posenc_doctor_tell(doctor, NULL, line, 1));
  MISUSE("doctor", posenc_doctor_tell(NULL, "x", line, 1));
  MISUSE("out", posenc_doctor_new(NULL));
  CHECK(json == NULL);
  posenc_doctor_free(doctor);
  posenc_doctor_free(NULL);
}

static void the_doctor_takes_open_models(void) {
  char* json = NULL;
  OK(posenc_engines_json(&json));
  CHECK(strstr(json, "[{\"name\":\"") == json && strstr(json, "\"llama.cpp\"") != NULL);
  posenc_string_free(json);
  posenc_model *llama, *long_qwen;
  OK(posenc_model_open("llama-3.1-8b", &llama));
  OK(posenc_model_open("qwen2.5-7b-yarn4", &long_qwen));
  char* text = NULL;
  OK(posenc_model_diff_json(llama, long_qwen, 0, &json));
  OK(posenc_diff_json("llama-3.1-8b", "qwen2.5-7b-yarn4", 0, &text));
  CHECK(strcmp(json, text) == 0);
  posenc_string_free(json);
  posenc_string_free(text);
  OK(posenc_model_engine_json(long_qwen, "llama.cpp", 0, &json));
  CHECK(strstr(json, "{\"engine\":\"llama.cpp\"") == json);
  posenc_string_free(json);
  const char log[] = "print_info: freq_base_train  = 10000.0\n";
  OK(posenc_model_command_json(llama, "vllm serve m --max-model-len 8192", 0, &json));
  CHECK(strstr(json, "{\"equal\":true,\"expected\":\"llama-3.1-8b\"") == json);
  posenc_string_free(json);
  OK(posenc_model_log_json(llama, log, sizeof log - 1, 0, &json));
  CHECK(strstr(json, "\"code\":\"rope_theta\"") != NULL);
  posenc_string_free(json);
  OK(posenc_model_lint_json(long_qwen, NULL, 0, &json));
  CHECK(strstr(json, "trained_length_kept") != NULL);
  posenc_string_free(json);
  OK(posenc_model_translate_json(long_qwen, "vllm", 0, &json));
  CHECK(strstr(json, "--hf-overrides") != NULL);
  posenc_string_free(json);
  OK(posenc_model_extend_json(llama, 262144, NULL, 0, 0, &json));
  CHECK(strstr(json, "\"recommended\"") != NULL);
  posenc_string_free(json);

  MISUSE("json", posenc_engines_json(NULL));
  MISUSE("found", posenc_model_diff_json(llama, NULL, 0, &json));
  MISUSE("engine", posenc_model_engine_json(llama, NULL, 0, &json));
  MISUSE("command", posenc_model_command_json(llama, NULL, 0, &json));
  REFUSED("name an engine", posenc_model_command_json(llama, "make", 0, &json));
  MISUSE("log", posenc_model_log_json(llama, NULL, 0, 0, &json));
  MISUSE("model", posenc_model_lint_json(NULL, NULL, 0, &json));
  MISUSE("engine", posenc_model_translate_json(llama, NULL, 0, &json));
  MISUSE("json", posenc_model_extend_json(llama, 1, NULL, 0, 0, NULL));
  REFUSED("keras", posenc_model_engine_json(llama, "keras", 0, &json));
  REFUSED("zero", posenc_model_log_json(llama, log, sizeof log, 0, &json));
  CHECK(json == NULL);
  posenc_model_free(llama);
  posenc_model_free(long_qwen);
}

static void a_dump_is_identified(void) {
  enum { heads = 2, tokens = 64, dim = 32, count = heads * tokens * dim };
  static double before[count], after[count];
  OK(posenc_normals(7, 0, count, before));
  const posenc_tensor x = dense(before, POSENC_FLOAT64, 1, heads, tokens, dim),
                      y = dense(after, POSENC_FLOAT64, 1, heads, tokens, dim);
  posenc_positions* at = range(0, tokens);
  posenc_plan* plan =
      plan_of("{\"type\": \"rope\", \"rope_theta\": 500000}", (posenc_geometry){.head_dim = dim});
  OK(posenc_rotate(plan, &x, at, POSENC_KEY, &y, 1));
  char* json = NULL;
  OK(posenc_identify_json(&y, &x, at, 0, NULL, 0, &json));
  CHECK(has(json, "\"base\":500000.0") && has(json, "\"pairing\":\"halves\""));
  posenc_string_free(json);
  REFUSED("repeated", posenc_identify_json(&y, NULL, NULL, 0, NULL, 0, &json));
  MISUSE("after", posenc_identify_json(NULL, NULL, NULL, 0, NULL, 0, &json));
  MISUSE("json", posenc_identify_json(&y, &x, at, 0, NULL, 0, NULL));
  posenc_model* model = NULL;
  OK(posenc_model_open("llama-2-7b", &model));
  OK(posenc_identify_json(&y, &x, NULL, 0, model, 0, &json));
  CHECK(has(json, "\"code\":\"rotary_dim\""));
  posenc_string_free(json);
  REFUSED("layer", posenc_identify_json(&y, &x, NULL, 0, model, 99, &json));

  static double cosines[tokens * 8], sines[tokens * 8];
  for (int i = 0; i < tokens * 8; ++i) {
    const double angle = (i / 8) * pow(1e4, -(i % 8) / 8.0);
    cosines[i] = cos(angle), sines[i] = sin(angle);
  }
  const posenc_tensor c = dense(cosines, POSENC_FLOAT64, 1, 1, tokens, 8),
                      s = dense(sines, POSENC_FLOAT64, 1, 1, tokens, 8);
  OK(posenc_identify_table_json(&c, &s, &json));
  CHECK(has(json, "\"base\":10000.0") && has(json, "\"columns\":\"pairs\""));
  posenc_string_free(json);
  REFUSED("table", posenc_identify_vectors_json(&x, &json));
  OK(posenc_identify_vectors_json(&c, &json));
  CHECK(has(json, "\"sinusoidal\":false"));
  posenc_string_free(json);
  posenc_model_free(model);
  posenc_plan_free(plan);
  posenc_positions_free(at);
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

void test_answers(void) {
  lists_have_fields_and_models();
  a_model_is_explained_and_compiled();
  alibi_is_what_its_paper_says();
  an_engines_angles_are_its_floats();
  rotation_turns_and_turns_back();
  angles_add_up();
  angles_are_said_by_tokens();
  angles_are_given_and_made_of_real_positions();
  vectors_are_added_at_real_positions();
  tables_of_a_grid_are_resampled();
  grids_and_signed_ids_are_positions();
  learned_tables_are_given_and_checked();
  normal_numbers_are_those_of_their_seed();
  queries_and_keys_are_rotated_together();
  the_doctor_takes_text();
  the_doctor_takes_open_models();
  the_doctor_judges_whatever_there_is();
  a_dump_is_identified();
  positions_are_read_back();
}
