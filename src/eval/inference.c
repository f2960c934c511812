#include "eval/inference.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "model/parameters.h"

/* Tokens of an evaluation batch, those whose logits are held at a time, and prompt tokens taken at
 * a time. */
enum { BATCH = 2048, LOGIT_CHUNK = 256, PREFILL = 64 };

static bool write_program(LoadedModel *model, InferenceSettings settings, Error *error) {
    const Model *architecture = model_find(&model->config, error);
    if (!architecture) return false;
    Program *program = &model->program;
    int64_t T = model->config.sequence_length;
    if (settings.micro_batch < 0) settings.micro_batch = T < BATCH ? BATCH / T : 1;
    if (settings.context > T) settings.context = T;
    if (!settings.prefill) settings.prefill = smaller(settings.context, PREFILL);
    ModelSettings sizes = {.micro_batch = settings.micro_batch,
                           .logit_chunk = LOGIT_CHUNK,
                           .context = settings.context,
                           .document_mask = !settings.across_documents,
                           .prefill = settings.prefill,
                           .score = settings.score};
    program_init(program, settings.storage);
    architecture->declare(program, &model->config);
    program_make_weight_buffers(program, false);
    model_make_inputs(program, &model->config, settings.micro_batch, T);
    if (settings.micro_batch) architecture->write_evaluation(program, &model->config, &sizes);
    if (settings.context) architecture->write_generation(program, &model->config, &sizes);
    return program_finish(program, error) &&
           layout_program(program, model->inference.backend, error);
}

static bool load_weights(LoadedModel *model, const char *checkpoint, Error *error) {
    char *path = path_join(checkpoint, "model.safetensors", error);
    Safetensors file;
    bool done = path && safetensors_open(&file, path, error);
    if (done) {
        done = parameters_load(model->inference.backend, model->inference.executor, &model->program,
                               &file, path, error);
        safetensors_close(&file);
    }
    free(path);
    return done;
}

/* Without a tokenizer token ids still work. */
static bool check_vocabulary(const LoadedModel *model, const char *checkpoint, Error *error) {
    if (!model->tokenizer) return true;
    long long needed = tokenizer_vocab_size(model->tokenizer), vocab = model->config.vocab;
    return needed <= vocab || fail(error,
                                   "%s/tokenizer.json has %lld tokens and the model's vocabulary "
                                   "%lld: it is the tokenizer of "
                                   "another model",
                                   checkpoint, needed, vocab);
}

bool model_open(LoadedModel *model, const char *checkpoint, const InferenceSettings *settings,
                Error *error) {
    *model = (LoadedModel){.inference.backend = settings->backend};
    bool done = path_is_directory(checkpoint)
                    ? model_config_load(&model->config, checkpoint, error)
                    : fail(error, "checkpoint %s is not a directory", checkpoint);
    if (!done) return false;
    int64_t T = settings->sequence_length;
    if (settings->score && settings->context > model->config.sequence_length) T = settings->context;
    if (T) model_config_set_sequence_length(&model->config, T);
    Inference *inference = &model->inference;
    inference->program = &model->program;
    done = model_config_check(&model->config, error) &&
           tokenizer_open_if_any(checkpoint, &model->tokenizer, error) &&
           check_vocabulary(model, checkpoint, error) && write_program(model, *settings, error) &&
           (inference->executor = inference->backend->open(&model->program, error)) &&
           model_fill_tables(inference->backend, inference->executor, &model->program,
                             &model->config, error) &&
           load_weights(model, checkpoint, error);
    inference->tokenizer = model->tokenizer;
    if (!done) model_close(model);
    return done;
}

void model_close(LoadedModel *model) {
    if (model->inference.executor) model->inference.backend->close(model->inference.executor);
    tokenizer_free(model->tokenizer);
    program_free(&model->program);
    *model = (LoadedModel){0};
}
