#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "faults.h"
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

static void presets_have_the_sizes_they_are_named_for(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double millions;
    } sizes[] = {{"llama-15m", 15.19},  {"llama-42m", 41.69},  {"llama-110m", 109.5},
                 {"llama-300m", 296.9}, {"llama-600m", 597.0}, {"llama-977m", 976.7}};
    const char *const *names = model_preset_names();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_string_equal(names[i], sizes[i].name);
        ModelConfig config = preset(sizes[i].name);
        double millions = (double)model_parameters(&config) / 1e6;
        if (fabs(millions / sizes[i].millions - 1) > 1e-3)
            fail_msg("%s has %.2fM parameters, not %.2fM", sizes[i].name, millions,
                     sizes[i].millions);
    }
    for (int depth = 4; depth <= 34; depth++) {
        char name[8];
        snprintf(name, sizeof name, "d%d", depth);
        assert_string_equal(names[(int)(sizeof sizes / sizeof *sizes) + depth - 4], name);
        assert_int_equal(preset(name).layers, depth);
    }
    assert_null(names[sizeof sizes / sizeof *sizes + 31]);
    ModelConfig largest = preset("llama-977m");
    assert_int_equal(largest.head_dim, 112);
}

static void the_tokenizer_decides_a_presets_vocabulary(void **state) {
    (void)state;
    ModelConfig config;
    Error error;
    assert_done(model_config_load(&config, "llama-15m", &error), error);
    assert_int_equal(config.vocab, 0);
    assert_fails_with(model_config_check(&config, &error), error, "vocab is 0");
}

static void parameters_are_counted_by_hand(void **state) {
    (void)state;
    ModelConfig config = preset("llama-15m");
    config.layers = 2, config.dim = 8, config.heads = 4, config.kv_heads = 2, config.head_dim = 6;
    config.ffn = 10, config.vocab = 100;
    int64_t block = 8 * 24 + 2 * 8 * 12 + 24 * 8 + 3 * 8 * 10 + 2 * 8;
    assert_int_equal(model_parameters(&config), 2 * block + 8 + 800);
    assert_int_equal(model_scaling_parameters(&config), 2 * block + 8 + 800);
    config.tied = false;
    assert_int_equal(model_parameters(&config), 2 * block + 8 + 1600);
    assert_int_equal(model_scaling_parameters(&config), 2 * block + 8 + 800);
}

static void an_unknown_name_lists_the_presets(void **state) {
    (void)state;
    ModelConfig config;
    Error error;
    assert_fails_with(model_config_load(&config, "llama-900m", &error), error, "llama-977m");
    assert_fails_with(model_config_load(&config, "llama-900m", &error), error, "config.json");
    assert_fails_with(model_config_load(&config, "d3", &error), error, "d4, d5");
    assert_fails_with(model_config_load(&config, "d35", &error), error, "d33, d34");
    assert_fails_with(model_config_load(&config, "d04", &error), error, "d04");
}

static void sizes_that_cannot_be_trained_are_refused(void **state) {
    (void)state;
    Error error;
#define REFUSED(change, text) \
    do { \
        ModelConfig config = preset("llama-110m"); \
        change; \
        assert_fails_with(model_config_check(&config, &error), error, text); \
    } while (0)
    REFUSED(config.layers = 0, "layers is 0");
    REFUSED(config.dim = INT64_MAX, "dim is 9223372036854775807");
    REFUSED(config.dim = 770, "dims are 768, 780");
    REFUSED(config.kv_heads = 5, "kv_heads may be 1, 2, 3, 4, 6, 12");
    REFUSED(config.head_dim = 63, "is odd");
    REFUSED(config.head_dim = 258, "from 2 to 256");
    REFUSED(config.head_dim = 1 << 20, "head_dim");
    REFUSED(config.rope_theta = NAN, "rope_theta");
    REFUSED(config.norm_eps = -1, "norm_eps");
    REFUSED(config.init_std = INFINITY, "init_std");
    REFUSED(config.bos_id = 32000, "vocabulary of 32000");
    REFUSED(config.window_pattern[0] = 0, "window pattern");
    REFUSED(strcpy(config.window_pattern, "SSX"), "'SSX'");
    REFUSED(memset(config.window_pattern, 'S', WINDOW_PATTERN_MAX), "window pattern");
    REFUSED(config.window = 1025, "window 1025");
    REFUSED(strcpy(config.architecture, "gpt2"), "gpt2");
}

static void windows_follow_the_pattern(void **state) {
    (void)state;
    ModelConfig config = preset("llama-110m");
    assert_int_equal(model_layer_window(&config, 3), 1024);
    strcpy(config.window_pattern, "SSL");
    assert_int_equal(model_layer_window(&config, 0), 256);
    assert_int_equal(model_layer_window(&config, 2), 1024);
    assert_int_equal(model_layer_window(&config, 4), 256);
    config.window = 100;
    assert_int_equal(model_layer_window(&config, 4), 100);
    config.sequence_length = 1, config.window = 0;
    assert_int_equal(model_layer_window(&config, 4), 1);
}

static ModelConfig through_json(const ModelConfig *config) {
    ModelConfig back;
    Error error;
    json_t *json = model_config_to_json(config, "bfloat16", &error);
    assert_non_null(json);
    const char *path = test_path("config.json");
    assert_done(json_write_file(path, json, &error), error);
    json_decref(json);
    assert_done(model_config_load(&back, test_directory(), &error), error);
    return back;
}

static void assert_same(const ModelConfig *a, const ModelConfig *b) {
    assert_string_equal(a->architecture, b->architecture);
    assert_memory_equal(&a->layers, &b->layers,
                        offsetof(ModelConfig, tied) - offsetof(ModelConfig, layers));
    assert_true(a->tied == b->tied && a->rope_theta == b->rope_theta);
    assert_true(a->norm_eps == b->norm_eps && a->init_std == b->init_std);
    assert_string_equal(a->window_pattern, b->window_pattern);
    assert_int_equal(a->window, b->window);
    assert_int_equal(a->bos_id, b->bos_id);
    assert_int_equal(a->eos_id, b->eos_id);
}

static void a_configuration_survives_config_json(void **state) {
    (void)state;
    ModelConfig config = preset("llama-300m");
    config.kv_heads = 5, config.tied = false, config.rope_theta = 500000, config.norm_eps = 1e-6;
    config.bos_id = 7, config.head_dim = 80;
    ModelConfig back = through_json(&config);
    assert_same(&back, &config);
    strcpy(config.window_pattern, "SSL");
    config.window = 128;
    back = through_json(&config);
    assert_same(&back, &config);
}

static void config_json_has_the_keys_of_old_and_new_readers(void **state) {
    (void)state;
    ModelConfig config = preset("llama-15m");
    Error error;
    json_t *json = model_config_to_json(&config, "float32", &error);
    assert_non_null(json);
    assert_string_equal(json_get_string(json, "torch_dtype", &error), "float32");
    assert_string_equal(json_get_string(json, "dtype", &error), "float32");
    assert_true(json_real_value(json_object_get(json, "rope_theta")) == 10000);
    const json_t *rope = json_object_get(json, "rope_parameters");
    assert_true(json_real_value(json_object_get(rope, "rope_theta")) == 10000);
    assert_true(json_is_null(json_object_get(json, "eos_token_id")));
    assert_null(json_object_get(json, "window_pattern"));
    json_decref(json);
}

#define SIZES \
    "\"vocab_size\":64,\"hidden_size\":16,\"intermediate_size\":32,\"num_hidden_layers\":2," \
    "\"num_attention_heads\":4"

static bool parse(ModelConfig *config, const char *text, Error *error) {
    json_t *json = json_read_bytes("test", text, strlen(text), error);
    assert_non_null(json);
    bool done = model_config_from_json(config, json, error);
    json_decref(json);
    return done;
}

static void missing_members_take_the_librarys_defaults(void **state) {
    (void)state;
    ModelConfig config;
    Error error;
    assert_done(parse(&config, "{\"model_type\":\"llama\",\"head_dim\":null," SIZES "}", &error),
                error);
    assert_int_equal(config.kv_heads, 4);
    assert_int_equal(config.head_dim, 4);
    assert_int_equal(config.sequence_length, 2048);
    assert_true(config.norm_eps == 1e-6 && config.rope_theta == 10000 && !config.tied);
    assert_done(parse(&config,
                      "{\"model_type\":\"llama\",\"eos_token_id\":[3,4],\"rope_theta\":5,"
                      "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":7}," SIZES "}",
                      &error),
                error);
    assert_int_equal(config.eos_id, 3);
    assert_true(config.rope_theta == 7);
}

static void what_hearth_lacks_is_refused_by_name(void **state) {
    (void)state;
    static const struct {
        const char *member, *message;
    } cases[] = {
        {"\"model_type\":\"qwen3\"", "qwen3"},
        {"\"x\":1", "\"model_type\" is missing"},
        {"\"model_type\":\"llama\",\"attention_bias\":true", "attention_bias"},
        {"\"model_type\":\"llama\",\"mlp_bias\":true", "mlp_bias"},
        {"\"model_type\":\"llama\",\"hidden_act\":\"gelu\"", "gelu"},
        {"\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}", "linear"},
        {"\"model_type\":\"llama\",\"rope_scaling\":{\"rope_type\":\"llama3\"}", "llama3"},
        {"\"model_type\":\"llama\",\"rope_parameters\":{\"rope_type\":\"yarn\"}", "yarn"},
        {"\"model_type\":\"llama\",\"rope_parameters\":{\"partial_rotary_factor\":0.5}", "partial"},
        {"\"model_type\":\"llama\",\"rope_parameters\":[]", "not an object"},
        {"\"model_type\":\"llama\",\"quantization_config\":{}", "quantization_config"},
        {"\"model_type\":\"llama\",\"num_key_value_heads\":3", "kv_heads may be 1, 2, 4"},
        {"\"model_type\":\"llama\",\"bos_token_id\":\"<s>\"", "bos_token_id"},
        {"\"model_type\":\"llama\",\"rms_norm_eps\":\"1e-5\"", "rms_norm_eps"},
        {"\"model_type\":\"llama\",\"window_pattern\":\"sl\"", "window pattern"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, "{%s," SIZES "}", cases[i].member);
        ModelConfig config;
        Error error;
        assert_fails_with(parse(&config, text, &error), error, cases[i].message);
    }
}

static void a_file_that_is_no_configuration_is_named(void **state) {
    (void)state;
    ModelConfig config;
    Error error;
    const char *path = test_path("broken.json");
    assert_done(file_write(path, "{\"model_type\": \"llama\"}", 23, &error), error);
    assert_fails_with(model_config_load(&config, path, &error), error, "broken.json");
    assert_done(file_write(path, "{", 1, &error), error);
    assert_fails_with(model_config_load(&config, path, &error), error, "not valid JSON");
}

static void exhausted_memory_is_an_error(void **state) {
    (void)state;
    ModelConfig config = preset("llama-15m");
    Error error;
    for (int64_t call = 1;; call++) {
        faults_arm(FAULTS_MEMORY, FAULT_ONCE, call);
        json_t *json = model_config_to_json(&config, "float32", &error);
        bool reached = faults_disarm();
        assert_int_equal(json == NULL, reached);
        json_decref(json);
        if (!reached) break;
    }
}

int main(void) {
    test_directory();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_have_the_sizes_they_are_named_for),
        cmocka_unit_test(the_tokenizer_decides_a_presets_vocabulary),
        cmocka_unit_test(parameters_are_counted_by_hand),
        cmocka_unit_test(an_unknown_name_lists_the_presets),
        cmocka_unit_test(sizes_that_cannot_be_trained_are_refused),
        cmocka_unit_test(windows_follow_the_pattern),
        cmocka_unit_test(a_configuration_survives_config_json),
        cmocka_unit_test(config_json_has_the_keys_of_old_and_new_readers),
        cmocka_unit_test(missing_members_take_the_librarys_defaults),
        cmocka_unit_test(what_hearth_lacks_is_refused_by_name),
        cmocka_unit_test(a_file_that_is_no_configuration_is_named),
        cmocka_unit_test(exhausted_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
