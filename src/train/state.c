/* train_state.json: where a run stands, and what must not change when it goes on. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "train/rows.h"
#include "train/run.h"

json_t *state_to_json(const Run *run, Error *error) {
    const TrainSettings *settings = run->settings;
    const PlanChoice *choice = &run->plan.plan.choice;
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {{"version", STATE_VERSION},
                   {"step", run->step},
                   {"tokens", run->tokens},
                   {"sample", run->sample},
                   {"seed", (int64_t)settings->seed},
                   {"sequence_length", settings->model.sequence_length},
                   {"batch_tokens", settings->batch_tokens},
                   {"micro_batch", choice->micro_batch},
                   {"logit_chunk", choice->logit_chunk}};
    const struct {
        const char *key, *value;
    } texts[] = {{"packing", packing_name(settings->packing)},
                 {"attention", attention_name(settings->document_mask)},
                 {"precision", dtype_name(settings->storage)},
                 {"optimizer_state", state_format_name(choice->state)},
                 {"dataset", dataset_fingerprint(run->dataset)},
                 {"tokenizer", run->tokenizer_hash}};
    json_t *json = json_object();
    int failures = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        failures += json_object_set_new(json, numbers[i].key, json_integer(numbers[i].value)) != 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        failures += json_object_set_new(json, texts[i].key, json_string(texts[i].value)) != 0;
    if (!failures) return json;
    json_decref(json);
    fail(error, "out of memory for train_state.json");
    return NULL;
}

static bool same_text(const json_t *state, const char *key, const char *now, const char *remedy,
                      Error *error) {
    const char *then = json_get_string(state, key, error);
    if (!then) return false;
    if (!strcmp(then, now)) return true;
    return fail(error, "the checkpoint was trained with %s %s, this run has %s; %s", key, then, now,
                remedy);
}

static bool same_number(const json_t *state, const char *key, int64_t now, const char *option,
                        Error *error) {
    int64_t then;
    if (!json_get_integer(state, key, 0, INT64_MAX, &then, error)) return false;
    if (then == now) return true;
    return fail(error,
                "the checkpoint was trained with %s %lld, this run has %lld; resume with --%s %lld",
                key, (long long)then, (long long)now, option, (long long)then);
}

static void warn_of_precision(const json_t *state, Dtype storage) {
    Error error;
    const char *then = json_get_string(state, "precision", &error);
    if (then && strcmp(then, dtype_name(storage)) != 0)
        log_warning("the run was trained in %s and goes on in %s", then, dtype_name(storage));
}

/* Best fit chose other rows before version 2, which also records what attention sees. */
static bool check_rows(const TrainSettings *settings, const json_t *state, int64_t version,
                       Error *error) {
    if (version > 1)
        return same_text(state, "attention", attention_name(settings->document_mask),
                         "resume with the --document-mask that the run began with", error);
    return settings->packing != PACKING_BESTFIT ||
           fail(error,
                "the run was begun by an older hearth, whose best fit packed other rows: begin "
                "anew with --init-from, in another --run-dir");
}

static bool check_state(Run *run, const json_t *state, Error *error) {
    const TrainSettings *settings = run->settings;
    int64_t version;
    return json_get_integer(state, "version", 1, STATE_VERSION, &version, error) &&
           check_rows(settings, state, version, error) &&
           same_text(state, "tokenizer", run->tokenizer_hash,
                     "resume with the dataset that the run began with", error) &&
           same_text(state, "dataset", dataset_fingerprint(run->dataset),
                     "resume with the dataset that the run began with", error) &&
           same_text(state, "packing", packing_name(settings->packing),
                     "resume with the packing that the run began with", error) &&
           same_number(state, "sequence_length", settings->model.sequence_length, "seq-len",
                       error) &&
           same_number(state, "seed", (int64_t)settings->seed, "seed", error) &&
           json_get_integer(state, "step", 0, INT64_MAX, &run->step, error) &&
           json_get_integer(state, "tokens", 0, INT64_MAX, &run->tokens, error) &&
           json_get_integer(state, "sample", 0, INT64_MAX, &run->sample, error);
}

/* What the weights were trained as. A window without a layer that has it says nothing. */
static bool check_model(const ModelConfig *then, const ModelConfig *now, Error *error) {
    bool windowed = strchr(now->window_pattern, 'S') != NULL;
    const struct {
        const char *name;
        double then, now;
    } fields[] = {
        {"layers", (double)then->layers, (double)now->layers},
        {"dim", (double)then->dim, (double)now->dim},
        {"heads", (double)then->heads, (double)now->heads},
        {"kv-heads", (double)then->kv_heads, (double)now->kv_heads},
        {"head-dim", (double)then->head_dim, (double)now->head_dim},
        {"ffn", (double)then->ffn, (double)now->ffn},
        {"vocab", (double)then->vocab, (double)now->vocab},
        {"tie-embeddings", then->tied, now->tied},
        {"rope-theta", then->rope_theta, now->rope_theta},
        {"model's rms_norm_eps", then->norm_eps, now->norm_eps},
        {"long window", (double)then->long_window, (double)now->long_window},
        {"window", windowed ? (double)then->window : 0, windowed ? (double)now->window : 0}};
    static const char remedy[] =
        "leave the model's options out to resume with the checkpoint's own";
    if (strcmp(then->architecture, now->architecture) != 0)
        return fail(error, "the checkpoint holds a %s, and --model names a %s; %s",
                    then->architecture, now->architecture, remedy);
    if (strcmp(then->window_pattern, now->window_pattern) != 0)
        return fail(error,
                    "the checkpoint holds another model: --window-pattern is %s there and %s "
                    "here; %s",
                    then->window_pattern, now->window_pattern, remedy);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].then != fields[i].now)
            return fail(
                error, "the checkpoint holds another model: --%s is %.10g there and %.10g here; %s",
                fields[i].name, fields[i].then, fields[i].now, remedy);
    return true;
}

bool state_restore(Run *run, Restored *restored, Error *error) {
    *restored = (Restored){.path = checkpoints_latest(run->directory.checkpoints, error)};
    if (!restored->path)
        return fail_within(error, "--resume found nothing to go on from in %s",
                           run->settings->run_directory);
    ModelConfig config;
    char *path = path_join(restored->path, "train_state.json", error);
    bool done = path && model_config_load(&config, restored->path, error) &&
                check_model(&config, &run->settings->model, error) &&
                (restored->state = json_read_file(path, STATE_BYTES_MAX, error)) &&
                check_state(run, restored->state, error);
    if (done) warn_of_precision(restored->state, run->settings->storage);
    if (!done && path) fail_within(error, "cannot resume from %s", restored->path);
    free(path);
    return done;
}
