#include "eval/measure.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

static bool count_token_bytes(Measure *measure, Error *error) {
    const Tokenizer *tokenizer = measure->inference->tokenizer;
    if (!tokenizer) return true;
    uint32_t vocab = tokenizer_vocab_size(tokenizer);
    measure->token_bytes = allocate(vocab, sizeof *measure->token_bytes, error);
    if (!measure->token_bytes) return false;
    for (uint32_t id = 0; id < vocab; id++) {
        size_t size;
        bool text = !tokenizer_is_special(tokenizer, id) && tokenizer_token(tokenizer, id, &size);
        measure->token_bytes[id] = text ? (int32_t)size : 0;
    }
    measure->vocab = vocab;
    return true;
}

bool measure_start(Measure *measure, const Inference *inference, Error *error) {
    *measure = (Measure){.inference = inference};
    const Program *program = inference->program;
    measure->losses = allocate((size_t)(program->B * program->T), sizeof *measure->losses, error);
    return measure->losses && count_token_bytes(measure, error);
}

void measure_free(Measure *measure) {
    free(measure->losses);
    free(measure->token_bytes);
}

static void add_losses(Measure *measure, const int32_t *targets, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (targets[i] < 0) continue;
        double nats = (double)measure->losses[i];
        measure->nats += nats;
        measure->tokens++;
        int32_t bytes =
            (uint32_t)targets[i] < measure->vocab ? measure->token_bytes[targets[i]] : 0;
        if (!bytes) continue;
        measure->text_nats += nats;
        measure->bytes += bytes;
    }
}

bool measure_batch(Measure *measure, const int32_t *tokens, const int32_t *targets,
                   const int32_t *document_start, int64_t rows, Error *error) {
    const Backend *backend = measure->inference->backend;
    const Program *program = measure->inference->program;
    Executor *executor = measure->inference->executor;
    int64_t count = program->B * program->T, bytes = count * (int64_t)sizeof *tokens;
    backend->upload(executor, program->tokens, 0, tokens, bytes);
    backend->upload(executor, program->targets, 0, targets, bytes);
    backend->upload(executor, program->document_start, 0, document_start, bytes);
    if (!backend->run(executor, SECTION_EVALUATE, &(StepScalars){0}, error) ||
        !backend->download(executor, program->losses, 0, measure->losses, bytes, error))
        return false;
    add_losses(measure, targets, rows * program->T);
    return true;
}

bool measure_result(const Measure *measure, const char *source, Evaluation *result, Error *error) {
    if (!measure->tokens) return fail(error, "%s holds no token that could be predicted", source);
    *result = (Evaluation){
        .loss = measure->nats / (double)measure->tokens,
        .bpb = measure->bytes ? measure->text_nats / (log(2) * (double)measure->bytes) : NAN,
        .tokens = measure->tokens,
        .bytes = measure->bytes};
    return true;
}
