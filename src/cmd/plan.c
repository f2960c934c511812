/* hearth plan: memory and time of a run, on this machine or on a device that is not here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "cmd/core_options.h"
#include "cmd/recipe_report.h"
#include "cmd/resume.h"
#include "cmd/train_options.h"
#include "cmd/verbs.h"
#include "cuda/backend.h"
#include "data/dataset.h"
#include "step/cost.h"
#include "train/backends.h"
#include "train/step_plan.h"

static const Command command = {
    .name = "plan",
    .summary = "What a training run takes in memory and time, before it is started.",
    .usage =
        "hearth plan --model NAME [--device NAME|this] [--memory 16G] [options of 'hearth train']",
    .details =
        "--device is this, cuda or cpu (the GPU or the processor here, measured now), or one "
        "of rtx-5090,\n"
        "rtx-5080, rtx-5070-ti, rtx-4090, rtx-3090, dgx-spark, a100, h100, h200, b200 (from "
        "their data sheets).\n"
        "The choices are the ones that 'hearth train' makes; with --run-dir DIR --resume, of a run "
        "that goes on.\n\n"
        "Example:\n"
        "  hearth plan --model llama-977m --seq-len 4096 --memory 16G",
};

/* What the settings say by themselves, whether the step fits the memory or not. */
static json_t *settings_json(const TrainSettings *settings) {
    const ModelConfig *config = &settings->model;
    json_t *json = json_object();
    json_object_set_new(json, "parameters", json_integer(model_parameters(config)));
    json_object_set_new(json, "scaling_parameters", json_integer(model_scaling_parameters(config)));
    json_object_set_new(json, "flops_per_token", json_real(model_flops_per_token(config)));
    json_object_set_new(json, "batch_tokens", json_integer(settings->batch_tokens));
    json_object_set_new(json, "steps", json_integer(settings->steps));
    json_object_set_new(json, "tokens", json_integer(settings->steps * settings->batch_tokens));
    if (settings_have_recipe(settings)) recipe_add_json(settings, json);
    return json;
}

static json_t *memory_json(const StepPlan *plan) {
    json_t *memory = json_object();
    MemoryRow rows[MEMORY_ROWS];
    step_plan_memory(plan, rows);
    for (int i = 0; i < MEMORY_ROWS; i++)
        json_object_set_new(memory, rows[i].name, json_integer(rows[i].bytes));
    return memory;
}

static void add_plan(json_t *json, const StepPlan *plan, const TrainSettings *settings) {
    const PlanChoice *choice = &plan->plan.choice;
    json_object_set_new(json, "device", json_string(plan->device.name));
    json_object_set_new(json, "exact_flops_per_token", json_real(step_plan_flops_per_token(plan)));
    json_object_set_new(json, "micro_batch", json_integer(choice->micro_batch));
    json_object_set_new(json, "recompute", json_string(recompute_name(choice->recompute)));
    json_object_set_new(json, "offload", json_string(offload_name(choice->offload)));
    json_object_set_new(json, "logit_chunk", json_integer(choice->logit_chunk));
    json_object_set_new(json, "optimizer_state", json_string(state_format_name(choice->state)));
    json_object_set_new(json, "peak_bytes", json_integer(step_plan_peak(plan)));
    json_object_set_new(json, "device_bytes",
                        json_integer(plan->program.arena_bytes + plan->staging_bytes));
    json_object_set_new(json, "pinned_bytes", json_integer(plan->pinned_bytes));
    json_object_set_new(json, "memory", memory_json(plan));
    json_object_set_new(json, "muon_ms",
                        json_real(1e3 * muon_seconds(&plan->program, &plan->device)));
    json_object_set_new(json, "step_ms", json_real(1e3 * plan->plan.seconds));
    json_object_set_new(json, "tokens_per_s",
                        json_real((double)settings->batch_tokens / plan->plan.seconds));
}

static void print_json(json_t *json) {
    char *text = json_dumps(json, JSON_INDENT(2));
    if (text) puts(text);
    free(text);
    json_decref(json);
}

/* Where the predicted time goes, by kind of operation. */
static void print_time(const StepPlan *plan, const TrainSettings *settings) {
    double seconds[OPERATION_KINDS] = {0};
    const Program *program = &plan->program;
    double micro_batches = (double)settings_rows(settings) / (double)program->B;
    section_seconds(program, SECTION_MICRO_BATCH, &plan->device, seconds);
    for (int kind = 0; kind < OPERATION_KINDS; kind++) seconds[kind] *= micro_batches;
    section_seconds(program, SECTION_UPDATE, &plan->device, seconds);
    printf("predicted time of a step:\n");
    for (int kind = 0; kind < OPERATION_KINDS; kind++) {
        char text[32];
        if (seconds[kind] > 0)
            printf("  %-24s %12s %5.1f%%\n", operation_name((OperationKind)kind),
                   format_duration(text, seconds[kind]), 100 * seconds[kind] / plan->plan.seconds);
    }
    double muon = muon_seconds(program, &plan->device);
    char text[32];
    if (muon > 0)
        printf("of it Muon, with its matmuls %6s %5.1f%%\n", format_duration(text, muon),
               100 * muon / plan->plan.seconds);
}

/* What of the dataset a plan depends on: its vocabulary, and the tokenizer for CORE's questions. */
static bool read_data(const char *data, uint32_t *vocab, Tokenizer **tokenizer, Error *error) {
    *vocab = 0, *tokenizer = NULL;
    if (!data) return true;
    Dataset *dataset = dataset_open(data, error);
    if (dataset) *vocab = dataset_vocab_size(dataset);
    bool done = dataset && tokenizer_open_if_any(data, tokenizer, error);
    dataset_free(dataset);
    return done;
}

/* Else it is one of the list, which has GPUs only. */
static bool is_here(const char *device) {
    return !strcmp(device, "this") || !strcmp(device, "cpu") || !strcmp(device, "cuda");
}

static bool show(const TrainOptions *options, const TrainSettings *settings, Error *error) {
    StepPlan plan;
    Device device;
    bool here = is_here(options->device);
    if (!here && !device_find(&device, options->device, settings->storage, error)) return false;
    const Backend *backend = here ? backend_find(options->device, error) : &backend_cuda;
    if (!backend) return false;
    if (settings_have_recipe(settings) && !options_json()) recipe_print(settings);
    bool fits = step_plan_make(&plan, settings, backend, here ? NULL : &device, error);
    json_t *json = options_json() ? settings_json(settings) : NULL;
    if (json) {
        json_object_set_new(json, "fits", json_boolean(fits));
        if (fits) add_plan(json, &plan, settings);
        print_json(json);
    } else if (fits) {
        step_plan_print(&plan, settings, stdout);
        print_time(&plan, settings);
    }
    if (fits) step_plan_free(&plan);
    return fits;
}

static bool run(TrainOptions *options, Error *error) {
    TrainSettings settings;
    Core core = {0};
    Tokenizer *tokenizer;
    uint32_t vocab;
    bool done = read_data(options->data, &vocab, &tokenizer, error) &&
                train_options_resolve(options, vocab, &settings, error) &&
                core_options_open(options, tokenizer, &settings, &core, error) &&
                show(options, &settings, error);
    core_close(&core);
    tokenizer_free(tokenizer);
    return done;
}

int verb_plan(int argc, char **argv) {
    TrainOptions options;
    Error error;
    int words;
    train_options_init(&options);
    ParseResult parsed = options_parse(&command, options.table, argc, argv, &words);
    if (parsed != PARSE_RUN) return parsed == PARSE_WRONG ? EXIT_USAGE : EXIT_SUCCESS;
    if (words) {
        fail(&error, "'%s' is not an option", argv[0]);
        return command_misused(&command, &error);
    }
    if (!resume_check_usage(&options, &error)) return command_misused(&command, &error);
    if (options.resume &&
        !(train_options_make_absolute(&options, &error) && resume_read_options(&options, &error)))
        return command_failed(&error);
    return run(&options, &error) ? EXIT_SUCCESS : command_failed(&error);
}
