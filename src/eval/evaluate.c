#include "eval/evaluate.h"

#include "base/log.h"
#include "eval/measure.h"

/* Which rows count does not depend on the micro-batch: of the last, those beyond are left out. */
static bool measure_loader(Measure *measure, Loader *loader, int64_t tokens, bool show,
                           Error *error) {
    int64_t B = measure->inference->program->B, T = measure->inference->program->T;
    int64_t rows = loader_samples_per_epoch(loader);
    if (tokens && (tokens - 1) / T + 1 < rows) rows = (tokens - 1) / T + 1;
    Progress progress = progress_start("evaluating", (uint64_t)rows);
    bool done = true;
    for (int64_t row = 0; done && row < rows; row += B) {
        Batch batch;
        done = loader_next(loader, &batch, NULL, error) &&
               measure_batch(measure, batch.tokens, batch.targets, batch.document_start,
                             rows - row < B ? rows - row : B, error);
        if (show) progress_update(&progress, (uint64_t)row);
    }
    if (show) progress_end(&progress);
    return done;
}

bool evaluate_dataset(const Inference *inference, const Dataset *dataset, Split split,
                      Packing packing, int64_t tokens, bool progress, Evaluation *result,
                      Error *error) {
    enum { RING = 2 };
    const LoaderSettings settings = {.split = split,
                                     .packing = packing,
                                     .ranks = 1,
                                     .sequence_length = inference->program->T,
                                     .micro_batch = inference->program->B};
    Measure measure;
    bool done = measure_start(&measure, inference, error);
    Loader *loader = done ? loader_open(dataset, &settings, 0, RING, error) : NULL;
    done = loader && measure_loader(&measure, loader, tokens, progress, error) &&
           measure_result(&measure, dataset_directory(dataset), result, error);
    loader_free(loader);
    measure_free(&measure);
    return done;
}
