/* nanochat's sizes, counts and windows, against its own code (tests/golden/nanochat/counts.json), and its
 * config.json. */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "model/config.h"
#include "support.h"

static ModelConfig preset(const char *name) {
    ModelConfig config;
    Error error;
    assert_done(model_config_load(&config, name, &error), error);
    config.vocab = model_preset_vocab(name);
    assert_done(model_config_check(&config, &error), error);
    return config;
}

static int64_t integer(const json_t *json, const char *key) {
    const json_t *value = json_object_get(json, key);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static void counts_are_nanochats_own(void **state) {
    (void)state;
    Error error;
    json_t *json =
        json_read_file(HEARTH_SOURCE "/tests/golden/nanochat/counts.json", 1 << 20, &error);
    assert_done(json, error);
    const json_t *list = json_object_get(json, "counts");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *want = json_array_get(list, i);
        ModelConfig config =
            model_config_nanochat(integer(want, "depth"), integer(want, "head_dim"));
        config.vocab = integer(want, "vocab");
        config.sequence_length = integer(want, "sequence_length");
        strcpy(config.window_pattern, json_string_value(json_object_get(want, "pattern")));
        assert_done(model_config_check(&config, &error), error);
        ModelCounts counts = model_counts(&config);
        assert_int_equal(counts.wte, integer(want, "wte"));
        assert_int_equal(counts.value_embeds, integer(want, "value_embeds"));
        assert_int_equal(counts.lm_head, integer(want, "lm_head"));
        assert_int_equal(counts.transformer_matrices, integer(want, "transformer_matrices"));
        assert_int_equal(counts.scalars, integer(want, "scalars"));
        assert_int_equal(counts.total, integer(want, "total"));
        assert_int_equal(model_parameters(&config), counts.total);
        assert_int_equal(model_scaling_parameters(&config),
                         counts.transformer_matrices + counts.lm_head);
        assert_true(model_flops_per_token(&config) == (double)integer(want, "flops"));
    }
    assert_int_equal(json_array_size(list), 46);
    json_decref(json);
}

static void presets_have_the_recipes_sizes(void **state) {
    (void)state;
    ModelConfig config = preset("d12");
    assert_int_equal(config.dim, 768);
    assert_int_equal(config.heads, 6);
    assert_int_equal(config.kv_heads, 6);
    assert_int_equal(config.head_dim, 128);
    assert_int_equal(config.ffn, 3072);
    assert_int_equal(config.vocab, 32768);
    assert_int_equal(config.sequence_length, 2048);
    assert_true(config.rope_theta == 100000 && config.norm_eps == FLT_EPSILON && !config.tied);
    assert_int_equal(preset("d5").dim, 384); /* 320 rounded up to whole heads */
    assert_int_equal(model_config_nanochat(5, 64).dim, 320);
}

static void the_last_layer_sees_all(void **state) {
    (void)state;
    ModelConfig config = preset("d6");
    const int64_t windows[] = {512, 512, 512, 2048, 512, 2048};
    for (int64_t layer = 0; layer < 6; layer++)
        assert_int_equal(model_layer_window(&config, layer), windows[layer]);
    config.sequence_length = 513;
    assert_int_equal(model_layer_window(&config, 0), 256);
    config.window = 100;
    assert_int_equal(model_layer_window(&config, 0), 100);
    assert_int_equal(model_layer_window(&config, 5), 513);
}

static void another_sequence_length_keeps_the_windows(void **state) {
    (void)state;
    Error error;
    ModelConfig config = preset("d6");
    model_config_set_sequence_length(&config, 4096);
    assert_done(model_config_check(&config, &error), error);
    assert_int_equal(model_layer_window(&config, 0), 512);
    assert_int_equal(model_layer_window(&config, 5), 2048);
    model_config_set_sequence_length(&config, 300);
    assert_done(model_config_check(&config, &error), error);
    assert_int_equal(model_layer_window(&config, 0), 300);
    assert_int_equal(model_layer_window(&config, 5), 300);

    ModelConfig llama = preset("llama-110m");
    strcpy(llama.window_pattern, "SL");
    model_config_set_sequence_length(&llama, 4096);
    assert_done(model_config_check(&llama, &error), error);
    assert_int_equal(model_layer_window(&llama, 0), 256);
    assert_int_equal(model_layer_window(&llama, 1), 4096);
}

static void what_a_nanochat_cannot_have_is_refused(void **state) {
    (void)state;
    Error error;
#define REFUSED(change, text) \
    do { \
        ModelConfig config = preset("d6"); \
        change; \
        assert_fails_with(model_config_check(&config, &error), error, text); \
    } while (0)
    REFUSED(config.tied = true, "--tie-embeddings");
    REFUSED(config.ffn = 1000, "ffn 1000 must be 4 * dim in a nanochat: 1536");
    REFUSED(config.head_dim = 64, "a dim of 192");
    REFUSED((config.dim = 16, config.heads = config.kv_heads = 1, config.head_dim = 16),
            "dim 16 is below 24");
    REFUSED((config.vocab = INT32_MAX, config.layers = 4096), "2^50");
    REFUSED(config.long_window = 2049, "L layers' window 2049");
}

/* Of equal architectures config.json tells every field. */
static void assert_same(const ModelConfig *a, const ModelConfig *b) {
    Error error;
    json_t *left = model_config_to_json(a, "float32", &error),
           *right = model_config_to_json(b, "float32", &error);
    assert_true(json_equal(left, right));
    assert_int_equal(a->head_dim, b->head_dim);
    assert_int_equal(a->ffn, b->ffn);
    json_decref(left);
    json_decref(right);
}

static ModelConfig parse(const char *text) {
    ModelConfig config;
    Error error;
    json_t *json = json_read_bytes("test", text, strlen(text), &error);
    assert_done(json && model_config_from_json(&config, json, &error), error);
    json_decref(json);
    return config;
}

static void config_json_has_nanochats_names(void **state) {
    (void)state;
    Error error;
    ModelConfig config = preset("d6");
    config.kv_heads = 1, config.sequence_length = 512, config.bos_id = 7;
    strcpy(config.window_pattern, "SSL");
    config.window = 100, config.long_window = 300;
    json_t *json = model_config_to_json(&config, "float32", &error);
    assert_non_null(json);
    assert_string_equal(json_get_string(json, "model_type", &error), "nanochat");
    assert_int_equal(integer(json, "n_layer"), 6);
    assert_int_equal(integer(json, "n_head"), 3);
    assert_int_equal(integer(json, "n_kv_head"), 1);
    assert_int_equal(integer(json, "n_embd"), 384);
    assert_int_equal(integer(json, "sequence_len"), 512);
    assert_int_equal(integer(json, "vocab_size"), 32768);
    assert_string_equal(json_get_string(json, "window_pattern", &error), "SSL");
    ModelConfig back;
    const char *path = test_path("config.json");
    assert_done(json_write_file(path, json, &error), error);
    json_decref(json);
    assert_done(model_config_load(&back, path, &error), error);
    assert_same(&back, &config);

    const char *const sizes = "{\"model_type\":\"nanochat\",\"n_layer\":6,\"n_embd\":384,"
                              "\"n_head\":3,\"vocab_size\":32768}";
    ModelConfig plain = parse(sizes),
                wanted = preset("d6"); /* what is left out is nanochat's own */
    assert_same(&plain, &wanted);
}

int main(void) {
    test_directory();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_nanochats_own),
        cmocka_unit_test(presets_have_the_recipes_sizes),
        cmocka_unit_test(the_last_layer_sees_all),
        cmocka_unit_test(another_sequence_length_keeps_the_windows),
        cmocka_unit_test(what_a_nanochat_cannot_have_is_refused),
        cmocka_unit_test(config_json_has_nanochats_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
