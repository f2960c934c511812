#include "cmd/core_options.h"

bool core_options_open(const TrainOptions *options, const Tokenizer *tokenizer,
                       TrainSettings *settings, Core *core, Error *error) {
    *core = (Core){0};
    if (!options->core)
        return !options->core_every ||
               fail(error,
                    "--core-every needs --core DIR: an eval bundle to take the questions from");
    if (!tokenizer)
        return fail(error,
                    "--core needs a dataset with a tokenizer (--data), which turns the questions "
                    "into tokens");
    const CoreSettings limits = {.examples = options->core_max_per_task,
                                 .sequence_length = settings->model.sequence_length};
    if (!core_open(core, options->core, tokenizer, &limits, error)) return false;
    settings->core = core;
    return true;
}
