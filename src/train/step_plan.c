#include "train/step_plan.h"

#include <stdio.h>

#include "base/integer.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/units.h"
#include "model/model.h"
#include "step/cost.h"

/* What the generation sections hold: a sample of up to T tokens, and the prompts of CORE, which may be
 * longer. */
static void size_generation(const TrainSettings *settings, ModelSettings *sizes) {
    int64_t T = settings->model.sequence_length;
    sizes->context = T, sizes->prefill = T < 64 ? T : 64;
    if (!settings->core) return;
    CoreSizes core = core_sizes(settings->core);
    sizes->prefill = core.prefill, sizes->score = core.score;
    sizes->context = divide_up(larger(core.context, T), core.prefill) * core.prefill;
}

static void write_generation(Program *program, const Model *model, const ModelConfig *config,
                             const ModelSettings *sizes) {
    ModelConfig longer = *config;
    if (sizes->context > config->sequence_length)
        model_config_set_sequence_length(&longer, sizes->context);
    model->write_generation(program, &longer, sizes);
}

/* What the planner's callback works with; it says that planning goes on. */
typedef struct Writing {
    const TrainSettings *settings;
    Progress progress;
} Writing;

/* The planner's callback: the whole program for one choice. */
static bool write_program(Program *program, const PlanChoice *choice, void *context, Error *error) {
    Writing *writing = context;
    progress_update(&writing->progress, 0);
    const TrainSettings *settings = writing->settings;
    const ModelConfig *config = &settings->model;
    program_init(program, settings->storage);
    const Model *model = model_find(config, error);
    if (!model) return false;
    int64_t T = config->sequence_length;
    ModelSettings sizes = {.micro_batch = choice->micro_batch,
                           .logit_chunk = choice->logit_chunk,
                           .batch_tokens = settings->batch_tokens,
                           .document_mask = settings->document_mask};
    size_generation(settings, &sizes);
    OptimizerSettings optimizer = settings->optimizer;
    optimizer.state = choice->state;
    model->declare(program, config);
    program_make_weight_buffers(program, true);
    model_make_inputs(program, config, choice->micro_batch, larger(T, sizes.context));
    model->write_training(program, config, &sizes);
    optimizer_write_update(program, &optimizer);
    if (settings->eval_every) model->write_evaluation(program, config, &sizes);
    if (settings->sample_every || settings->core) write_generation(program, model, config, &sizes);
    return program_finish(program, error);
}

/* Beside the arena: what is resident now, the loaders' rings of batches (tokens, targets and document
 * starts of int32; evaluation has a loader of its own). */
static int64_t process_bytes(const TrainSettings *settings, int64_t micro_batch) {
    int64_t loaders = settings->eval_every ? 2 : 1;
    return memory_resident() +
           loaders * LOADER_RING * 3 * 4 * micro_batch * settings->model.sequence_length;
}

/* What the planner leaves for the process: the same for every start of a run, so that its choices are. */
static int64_t reserved_bytes(const TrainSettings *settings) {
    enum { STRIDE = 64 << 20 };
    return (process_bytes(settings, 1) / STRIDE + 1) * STRIDE;
}

/* Whether the process lives in the device's memory: on the CPU, and on a GPU that shares the processor's. */
static bool one_memory(const Device *device) {
    return device->host_bandwidth == 0;
}

/* What offload may take of this machine; one that is elsewhere has what is asked for. */
static int64_t host_memory(const Device *elsewhere) {
    return elsewhere ? INT64_MAX : memory_installed() / 2;
}

bool step_plan_make(StepPlan *plan, const TrainSettings *settings, const Backend *backend,
                    const Device *device, Error *error) {
    *plan = (StepPlan){.backend = backend};
    if (device)
        plan->device = *device;
    else if (!backend->describe(&plan->device, settings->storage, error))
        return false;
    bool shared = one_memory(&plan->device);
    int64_t memory =
        settings->memory ? settings->memory : (int64_t)(0.85 * (double)plan->device.memory);
    int64_t beside = plan->device.driver_bytes + (shared ? reserved_bytes(settings) : 0);
    Writing writing = {.settings = settings, .progress = progress_start("planning", 0)};
    PlanRequest request = {.backend = backend,
                           .device = &plan->device,
                           .memory = memory - beside,
                           .beside = beside,
                           .host_memory = host_memory(device),
                           .rows = settings_rows(settings),
                           .sequence_length = settings->model.sequence_length,
                           .micro_batch = settings->micro_batch,
                           .logit_chunk = settings->logit_chunk,
                           .recompute = settings->recompute,
                           .offload = settings->offload,
                           .state = settings->optimizer_state,
                           .write = write_program,
                           .context = &writing};
    bool done = plan_step(&request, &plan->plan, &plan->program, error);
    progress_end(&writing.progress);
    if (!done) return false;
    backend->beside(&plan->program, &plan->staging_bytes, &plan->pinned_bytes);
    plan->pinned_bytes += plan->program.host_bytes;
    if (shared) plan->process_bytes = process_bytes(settings, plan->plan.choice.micro_batch);
    if (!device) {
        if (!backend->measure(&plan->device, settings->storage, plan->program.arena_bytes, error)) {
            program_free(&plan->program);
            return false;
        }
        plan->plan.seconds = plan_seconds(&plan->program, request.rows, &plan->device);
    }
    return true;
}

void step_plan_free(StepPlan *plan) {
    program_free(&plan->program);
}

void step_plan_memory(const StepPlan *plan, MemoryRow rows[MEMORY_ROWS]) {
    for (int kind = 0; kind < BUFFER_KINDS; kind++)
        *rows++ = (MemoryRow){buffer_kind_name((BufferKind)kind), plan->program.kind_bytes[kind]};
    *rows++ = (MemoryRow){"staging of copies", plan->staging_bytes};
    *rows++ = (MemoryRow){"driver and libraries (estimate)", plan->device.driver_bytes};
    *rows++ = (MemoryRow){"process and loader", plan->process_bytes};
    *rows++ =
        (MemoryRow){"offloaded and pinned", one_memory(&plan->device) ? plan->pinned_bytes : 0};
}

int64_t step_plan_peak(const StepPlan *plan) {
    MemoryRow rows[MEMORY_ROWS];
    int64_t sum = 0;
    step_plan_memory(plan, rows);
    for (int i = 0; i < MEMORY_ROWS; i++) sum += rows[i].bytes;
    return sum;
}

int64_t step_plan_taken(const StepPlan *plan) {
    bool processor = !plan->device.driver_bytes;
    return processor ? memory_resident() : plan->program.arena_bytes + plan->staging_bytes;
}

double step_plan_flops_per_token(const StepPlan *plan) {
    Cost cost = section_cost(&plan->program, SECTION_MICRO_BATCH);
    return cost.useful / (double)(plan->program.B * plan->program.T);
}

static void print_bytes(FILE *file, const char *name, int64_t bytes) {
    char text[32];
    if (bytes) fprintf(file, "  %-32s %12s\n", name, format_bytes(text, bytes));
}

static void print_memory(const StepPlan *plan, FILE *file) {
    MemoryRow rows[MEMORY_ROWS];
    step_plan_memory(plan, rows);
    fprintf(file, "memory:\n");
    for (int i = 0; i < MEMORY_ROWS; i++) print_bytes(file, rows[i].name, rows[i].bytes);
    print_bytes(file, "peak", step_plan_peak(plan));
    if (!one_memory(&plan->device)) print_bytes(file, "host memory, pinned", plan->pinned_bytes);
}

void step_plan_print(const StepPlan *plan, const TrainSettings *settings, FILE *file) {
    const ModelConfig *config = &settings->model;
    const PlanChoice *choice = &plan->plan.choice;
    char parameters[32], tokens[32], duration[32], whole_run[32], batch[32];
    double total = (double)settings->steps * (double)settings->batch_tokens;
    fprintf(
        file,
        "model: %s, %lld layers x %lld, %lld heads (%lld kv) of %lld, ffn %lld, vocabulary %lld, "
        "%s parameters\n",
        config->architecture, (long long)config->layers, (long long)config->dim,
        (long long)config->heads, (long long)config->kv_heads, (long long)config->head_dim,
        (long long)config->ffn, (long long)config->vocab,
        format_count(parameters, (double)model_parameters(config)));
    print_memory(plan, file);
    fprintf(file,
            "plan: %s; %s, micro-batch %lld of %lld x %lld, recompute %s, offload %s, logits %lld "
            "tokens at a time, optimizer state %s\n",
            plan->device.name, dtype_name(settings->storage), (long long)choice->micro_batch,
            (long long)settings_rows(settings), (long long)config->sequence_length,
            recompute_name(choice->recompute), offload_name(choice->offload),
            (long long)choice->logit_chunk, state_format_name(choice->state));
    fprintf(file, "horizon: %lld steps of %s tokens = %s tokens, %.1f for each scaling parameter\n",
            (long long)settings->steps, format_count(batch, (double)settings->batch_tokens),
            format_count(tokens, total), total / (double)model_scaling_parameters(config));
    double muon = muon_seconds(&plan->program, &plan->device) / plan->plan.seconds;
    if (muon > 0) fprintf(file, "muon: %.1f%% of a step\n", 100 * muon);
    fprintf(file, "predicted: %s a step, %s tokens/s, %s in all\n",
            format_duration(duration, plan->plan.seconds),
            format_count(tokens, (double)settings->batch_tokens / plan->plan.seconds),
            format_duration(whole_run, (double)settings->steps * plan->plan.seconds));
}
