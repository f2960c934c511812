#include "train/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "model/parameters.h"
#include "train/checkpoint.h"
#include "train/rows.h"
#include "train/samples.h"

/* A run without --resume must not mix with an earlier one. */
static bool refuse_mixing(const Run *run, Error *error) {
    int64_t *steps;
    size_t count;
    if (!checkpoints_list(run->directory.checkpoints, &steps, &count, error)) return false;
    free(steps);
    return !count || fail(error,
                          "%s already holds %zu checkpoint%s: give --resume to go on, or another "
                          "--run-dir",
                          run->settings->run_directory, count, count == 1 ? "" : "s");
}

/* What decides the order of additions, and the format of the moments, stays as the run began unless the
 * command line says otherwise: so a resumed run goes on bit for bit. */
static bool keep_choices(const Restored *restored, TrainSettings *settings, Error *error) {
    const json_t *state = restored->state;
    const char *format = json_get_string(state, "optimizer_state", error);
    int64_t micro_batch, logit_chunk;
    if (!format || !json_get_integer(state, "micro_batch", 1, INT32_MAX, &micro_batch, error) ||
        !json_get_integer(state, "logit_chunk", 1, INT32_MAX, &logit_chunk, error))
        return false;
    for (int i = STATE_FP32; settings->optimizer_state < 0 && i <= STATE_8BIT; i++)
        if (!strcmp(format, state_format_name((StateFormat)i))) settings->optimizer_state = i;
    if (!settings->micro_batch && settings_rows(settings) % micro_batch == 0)
        settings->micro_batch = micro_batch;
    if (!settings->logit_chunk) settings->logit_chunk = logit_chunk;
    return true;
}

/* Another order of additions: from here on the run is not the one that an uninterrupted run would be. */
static void warn_of_change(const json_t *state, const char *key, const char *option, int64_t now) {
    Error error;
    int64_t then;
    if (json_get_integer(state, key, 1, INT32_MAX, &then, &error) && then != now)
        log_warning("--%s %lld now, %lld before", option, (long long)now, (long long)then);
}

static bool make_plan(Run *run, const Restored *restored, Error *error) {
    TrainSettings settings = *run->settings;
    if (restored->state && !keep_choices(restored, &settings, error)) return false;
    if (!step_plan_make(&run->plan, &settings, settings.backend, NULL, error)) return false;
    if (restored->state) {
        warn_of_change(restored->state, "micro_batch", "micro-batch",
                       run->plan.plan.choice.micro_batch);
        warn_of_change(restored->state, "logit_chunk", "logit-chunk",
                       run->plan.plan.choice.logit_chunk);
    }
    if (!log_is_quiet()) step_plan_print(&run->plan, &settings, stderr);
    return true;
}

/* Parameters in fp32 and the moments: what a checkpoint takes on disk. */
static int64_t checkpoint_bytes(const Program *program) {
    int64_t bytes = 16 << 20;
    for (int b = 0; b < program->buffer_count; b++) {
        const Buffer *buffer = &program->buffers[b];
        if (buffer->kind == BUFFER_MASTER || buffer->kind == BUFFER_STATE)
            bytes += buffer_bytes(buffer);
    }
    return bytes;
}

static bool load_restored(Run *run, const Restored *restored, Error *error) {
    Checkpoint checkpoint;
    const Backend *backend = run->plan.backend;
    if (!checkpoint_open(&checkpoint, restored->path, CHECKPOINT_RESUME, error)) return false;
    bool done = parameters_load(backend, run->executor, &run->plan.program, &checkpoint.model,
                                restored->path, error) &&
                optimizer_load(backend, run->executor, &run->plan.program, &checkpoint.optimizer,
                               restored->path, error);
    checkpoint_close(&checkpoint);
    return done;
}

/* A model's weights mean nothing to another tokenizer's ids. */
static bool check_same_tokenizer(const Run *run, const char *path, Error *error) {
    char hash[SHA256_TEXT];
    Tokenizer *tokenizer;
    if (!tokenizer_open_if_any(path, &tokenizer, error)) return false;
    if (!tokenizer) return true;
    tokenizer_hash(tokenizer, hash);
    tokenizer_free(tokenizer);
    return !run->tokenizer || !strcmp(hash, run->tokenizer_hash) ||
           fail(error,
                "%s has another tokenizer than the dataset: build the dataset with "
                "--tokenizer %s/tokenizer.json",
                path, path);
}

static bool load_initial(Run *run, const char *path, Error *error) {
    Checkpoint checkpoint;
    if (!check_same_tokenizer(run, path, error) ||
        !checkpoint_open(&checkpoint, path, CHECKPOINT_WEIGHTS, error))
        return false;
    bool done = parameters_load(run->plan.backend, run->executor, &run->plan.program,
                                &checkpoint.model, path, error);
    checkpoint_close(&checkpoint);
    return done;
}

static bool set_weights(Run *run, const Restored *restored, Error *error) {
    const TrainSettings *settings = run->settings;
    const Program *program = &run->plan.program;
    const Backend *backend = run->plan.backend;
    if (!model_fill_tables(backend, run->executor, program, &settings->model, error)) return false;
    if (restored->path) return load_restored(run, restored, error);
    if (settings->init_from) return load_initial(run, settings->init_from, error);
    return parameters_initialise(backend, run->executor, program, settings->seed, error);
}

/* A run that begins anew does not go on with the log of one that died before its first checkpoint. */
static bool keep_old_log(const char *path, Error *error) {
    if (!path_exists(path)) return true;
    char *old = allocate(strlen(path) + 5, 1, error);
    if (!old) return false;
    snprintf(old, strlen(path) + 5, "%s.old", path);
    bool done = rename(path, old) == 0 || fail_errno(error, "cannot rename %s to %s", path, old);
    free(old);
    return done;
}

static bool open_logs(Run *run, const char *config, Error *error) {
    const RunDirectory *directory = &run->directory;
    if (!run->settings->resume && !keep_old_log(directory->log, error)) return false;
    if (!file_write(directory->config, config, strlen(config), error)) return false;
    run->log_open = metrics_open(&run->log, directory->log, error);
    run->board_open = run->log_open && tensorboard_open(&run->board, directory->tensorboard,
                                                        (double)time(NULL), error);
    return run->board_open;
}

static bool open_loader(Run *run, Error *error) {
    const TrainSettings *settings = run->settings;
    LoaderSettings wanted = {.split = SPLIT_TRAIN,
                             .packing = settings->packing,
                             .sequence_length = settings->model.sequence_length,
                             .micro_batch = run->plan.plan.choice.micro_batch,
                             .shuffle = true,
                             .seed = settings->seed,
                             .ranks = 1};
    run->loader = loader_open(run->dataset, &wanted, run->sample, LOADER_RING, error);
    if (run->loader)
        log_line("data: packing %s, %.1f%% of the tokens cropped; attention %s",
                 packing_name(settings->packing), 100 * loader_cropped_share(run->loader),
                 attention_name(settings->document_mask));
    return run->loader != NULL;
}

static bool start(Run *run, const Restored *restored, const char *config, Error *error) {
    const Program *program = &run->plan.program;
    run->executor = run->plan.backend->open(program, error);
    run->inference = (Inference){.backend = run->plan.backend,
                                 .program = program,
                                 .executor = run->executor,
                                 .tokenizer = run->tokenizer};
    return run->executor && set_weights(run, restored, error) && open_loader(run, error) &&
           open_logs(run, config, error);
}

bool run_open(Run *run, const TrainSettings *settings, const Dataset *dataset,
              const Tokenizer *tokenizer, const char *config, Error *error) {
    *run = (Run){.settings = settings, .dataset = dataset, .tokenizer = tokenizer};
    if (tokenizer) tokenizer_hash(tokenizer, run->tokenizer_hash);
    Restored restored = {0};
    run->directory_open = run_directory_open(&run->directory, settings->run_directory, error);
    bool done =
        run->directory_open &&
        (settings->resume ? state_restore(run, &restored, error) : refuse_mixing(run, error)) &&
        sample_check(tokenizer, settings, error) && make_plan(run, &restored, error) &&
        run_directory_check_space(&run->directory, checkpoint_bytes(&run->plan.program), error) &&
        start(run, &restored, config, error);
    if (done && restored.path) {
        log_line("resumed from %s", restored.path);
        metrics_event(&run->log, "resume", run->step, "from %s", restored.path);
    }
    free(restored.path);
    json_decref(restored.state);
    if (!done) run_close(run);
    return done;
}

void run_close(Run *run) {
    if (run->loader) loader_free(run->loader);
    if (run->board_open) tensorboard_close(&run->board);
    if (run->log_open) metrics_close(&run->log);
    if (run->executor) run->plan.backend->close(run->executor);
    step_plan_free(&run->plan);
    if (run->directory_open) run_directory_close(&run->directory);
    *run = (Run){0};
}

static json_t *generation_config(const ModelConfig *config) {
    json_t *json = json_object();
    if (config->bos_id >= 0)
        json_object_set_new(json, "bos_token_id", json_integer(config->bos_id));
    if (config->eos_id >= 0)
        json_object_set_new(json, "eos_token_id", json_integer(config->eos_id));
    json_object_set_new(json, "do_sample", json_true());
    return json;
}

static bool write_checkpoint(Run *run, const ProgramTensors *model, const ProgramTensors *optimizer,
                             Error *error) {
    json_t *config = model_config_to_json(&run->settings->model, "float32", error);
    json_t *generation = generation_config(&run->settings->model),
           *state = state_to_json(run, error);
    const char *tokenizer = run->tokenizer ? dataset_directory(run->dataset) : NULL;
    CheckpointContents contents = {.step = run->step,
                                   .model = model->tensors,
                                   .model_count = model->count,
                                   .optimizer = optimizer->tensors,
                                   .optimizer_count = optimizer->count,
                                   .config = config,
                                   .generation = generation,
                                   .state = state,
                                   .tokenizer = tokenizer};
    bool done = config && state && checkpoint_write(run->directory.checkpoints, &contents, error);
    json_decref(config);
    json_decref(generation);
    json_decref(state);
    return done;
}

/* The new checkpoint is safe; an old one that stays costs only room. */
static void prune(const Run *run) {
    Error error;
    if (!checkpoints_prune(run->directory.checkpoints, run->settings->keep, &error))
        log_warning("old checkpoints stay: %s", error.message);
}

bool run_save(Run *run, Error *error) {
    const Program *program = &run->plan.program;
    const Backend *backend = run->plan.backend;
    double started = seconds_now();
    ProgramTensors model = {0}, optimizer = {0};
    bool done = parameters_tensors(&model, backend, run->executor, program, error) &&
                optimizer_tensors(&optimizer, backend, run->executor, program, error) &&
                write_checkpoint(run, &model, &optimizer, error);
    program_tensors_free(&model);
    program_tensors_free(&optimizer);
    if (done) prune(run);
    run->checkpoint_wait += seconds_now() - started;
    return done;
}
