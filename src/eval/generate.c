#include "eval/generate.h"

#include <stdlib.h>

#include "base/memory.h"

bool prompt_encode(const Tokenizer *tokenizer, const void *text, size_t size, Tokens *ids,
                   Error *error) {
    if (!tokenizer)
        return fail(error, "the checkpoint has no tokenizer.json, so it cannot read or write "
                           "text: copy the model's there");
    int64_t separator = tokenizer_document_separator(tokenizer);
    if (separator < 0 && !size)
        return fail(error, "the prompt is empty, and the tokenizer has no document separator to "
                           "begin a text with: give a prompt");
    if (separator >= 0) {
        if (!reserve(&ids->ids, &ids->capacity, ids->count + 1, sizeof *ids->ids, error))
            return false;
        ids->ids[ids->count++] = (uint32_t)separator;
    }
    return tokenizer_encode(tokenizer, text, size, false, ids, error);
}

bool generation_check(const Inference *inference, const Generation *generation, Error *error) {
    int64_t context = inference->program->context, prompt = generation->prompt_count;
    if (prompt < 1) return fail(error, "the prompt is empty: there is nothing to continue");
    if (prompt >= context)
        return fail(error,
                    "the prompt is %lld tokens long and the model's context %lld: shorten "
                    "the prompt to at most %lld tokens",
                    (long long)prompt, (long long)context, (long long)(context - 1));
    if (generation->max_tokens > context - prompt)
        return fail(error,
                    "%lld tokens after a prompt of %lld exceed the model's context of %lld: "
                    "generate at most %lld",
                    (long long)generation->max_tokens, (long long)prompt, (long long)context,
                    (long long)(context - prompt));
    return true;
}

/* The tokens before those that are to run, for a model that looks at them: `previous`, then the ids
 * themselves, one place on. */
static void upload_previous(const Inference *inference, const uint32_t *ids, int64_t count,
                            int32_t previous) {
    int buffer = inference->program->previous_tokens;
    if (buffer < 0) return;
    const int64_t size = sizeof *ids;
    inference->backend->upload(inference->executor, buffer, 0, &previous, size);
    if (count > 1)
        inference->backend->upload(inference->executor, buffer, size, ids, (count - 1) * size);
}

/* `previous` is the token before them, or -1. */
static bool run_tokens(const Inference *inference, SectionKind section, const uint32_t *ids,
                       int64_t count, int32_t previous, int64_t position, Error *error) {
    const StepScalars scalars = {.position = position};
    inference->backend->upload(inference->executor, inference->program->new_tokens, 0, ids,
                               count * (int64_t)sizeof *ids);
    upload_previous(inference, ids, count, previous);
    return inference->backend->run(inference->executor, section, &scalars, error);
}

/* Puts tokens into the caches. A prefill always takes prefill_tokens of them; where fewer are left,
 * what its input held before follows them: nothing looks at those rows of the caches until they are
 * written again. Where the context has no room for that, tokens go one by one. */
static bool fill_caches(const Inference *inference, const uint32_t *ids, int64_t count,
                        Error *error) {
    int64_t chunk = inference->program->prefill_tokens, taken;
    for (int64_t at = 0; at < count; at += taken) {
        bool fits = at + chunk <= inference->program->context;
        taken = !fits ? 1 : count - at < chunk ? count - at : chunk;
        if (!run_tokens(inference, fits ? SECTION_PREFILL : SECTION_DECODE, ids + at, taken,
                        at ? (int32_t)ids[at - 1] : -1, at, error))
            return false;
    }
    return true;
}

/* The last token of the prompt goes through the decode section, whose logits the first draw is
 * from. */
static bool draw_tokens(const Inference *inference, Sampler *sampler, const Generation *generation,
                        float *logits, int64_t logit_bytes, Error *error) {
    int64_t position = generation->prompt_count - 1;
    uint32_t last = generation->prompt[position];
    int32_t previous = position ? (int32_t)generation->prompt[position - 1] : -1;
    for (int64_t drawn = 0; drawn < generation->max_tokens; drawn++) {
        if (!run_tokens(inference, SECTION_DECODE, &last, 1, previous, position++, error) ||
            !inference->backend->download(inference->executor, inference->program->logits, 0,
                                          logits, logit_bytes, error))
            return false;
        previous = (int32_t)last;
        if (!sampler_next(sampler, logits, position, &last, error)) return false;
        if ((int64_t)last == generation->end_token) break;
        if (!generation->token(generation->context, last)) break;
    }
    return true;
}

bool generate(const Inference *inference, Sampler *sampler, const Generation *generation,
              Error *error) {
    if (!generation_check(inference, generation, error)) return false;
    int64_t logit_bytes = buffer_bytes(&inference->program->buffers[inference->program->logits]);
    float *logits = allocate((size_t)logit_bytes, 1, error);
    bool done = logits &&
                fill_caches(inference, generation->prompt, generation->prompt_count - 1, error) &&
                draw_tokens(inference, sampler, generation, logits, logit_bytes, error);
    free(logits);
    return done;
}
