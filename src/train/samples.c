#include "train/samples.h"

#include <string.h>

#include "base/log.h"
#include "eval/generate.h"
#include "eval/stream.h"

typedef struct Collected {
    const Tokenizer *tokenizer;
    TextStream stream; /* makes it valid UTF-8 */
    Bytes text;
    Error *error;
} Collected;

static bool collect(void *context, uint32_t id) {
    Collected *collected = context;
    size_t size;
    const uint8_t *bytes = tokenizer_token(collected->tokenizer, id, &size);
    return !bytes ||
           text_stream_push(&collected->stream, bytes, size, &collected->text, collected->error);
}

bool sample_check(const Tokenizer *tokenizer, const TrainSettings *settings, Error *error) {
    if (!settings->sample_every) return true;
    if (!tokenizer) {
        log_warning("%s has no tokenizer.json, so no samples will be printed", settings->data);
        return true;
    }
    Tokens ids = {0};
    const char *prompt = settings->sample_prompt;
    bool done = prompt_encode(tokenizer, prompt, strlen(prompt), &ids, error);
    if (done && (int64_t)ids.count >= settings->model.sequence_length)
        done = fail(error,
                    "--sample-prompt is %zu tokens long, which leaves no room to continue it "
                    "in sequences of %lld: shorten it, or give --sample-every 0",
                    ids.count, (long long)settings->model.sequence_length);
    tokens_free(&ids);
    return done;
}

bool print_sample(const Inference *inference, const TrainSettings *settings, int64_t step,
                  Error *error) {
    const Tokenizer *tokenizer = inference->tokenizer;
    if (!tokenizer) return true;
    SamplingSettings sampling = {.temperature = 0.8, .top_p = 0.95, .seed = settings->seed};
    Tokens ids = {0};
    Collected collected = {.tokenizer = tokenizer, .error = error};
    Sampler *sampler = sampler_new(&sampling, tokenizer_vocab_size(tokenizer), error);
    const char *prompt = settings->sample_prompt;
    bool done = sampler && prompt_encode(tokenizer, prompt, strlen(prompt), &ids, error);
    if (done) {
        int64_t room = inference->program->context - (int64_t)ids.count;
        Generation generation = {
            .prompt = ids.ids,
            .prompt_count = (int64_t)ids.count,
            .max_tokens = settings->sample_tokens < room ? settings->sample_tokens : room,
            .end_token = tokenizer_document_separator(tokenizer),
            .token = collect,
            .context = &collected};
        done = generate(inference, sampler, &generation, error) &&
               text_stream_finish(&collected.stream, &collected.text, error);
    }
    if (done)
        log_line("step %lld sample: %s%.*s", (long long)step, settings->sample_prompt,
                 (int)collected.text.size, (const char *)collected.text.data);
    text_stream_free(&collected.stream);
    bytes_free(&collected.text);
    tokens_free(&ids);
    sampler_free(sampler);
    return done;
}
