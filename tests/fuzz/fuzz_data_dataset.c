/* Opening a dataset: the input is dataset.json, document starts and a shard, told apart by a byte of
 * its own (0xFE). What opens is read to its end through every packing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "data/loader.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char directory[] = "/dev/shm/hearth-fuzz-XXXXXX";

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    log_set_quiet(true);
    return mkdtemp(directory) == NULL;
}

/* Writes data up to the mark and returns what is behind it. */
static const uint8_t *put(const char *name, const uint8_t *data, const uint8_t *end) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    unlink(path);
    if (data == end) return end; /* the file is missing */
    const uint8_t *mark = memchr(data, 0xFE, (size_t)(end - data));
    const uint8_t *stop = mark ? mark : end;
    FILE *file = fopen(path, "wb");
    if (!file) abort();
    fwrite(data, 1, (size_t)(stop - data), file);
    fclose(file);
    return mark ? mark + 1 : end;
}

static void read_batches(const Dataset *dataset, Packing packing) {
    Error error;
    Batch batch;
    LoaderSettings settings = {
        .packing = packing, .sequence_length = 5, .micro_batch = 2, .ranks = 1};
    Loader *loader = loader_open(dataset, &settings, 0, 2, &error);
    if (!loader) return;
    int64_t rows = loader_samples_per_epoch(loader);
    while (loader_position(loader) < rows && loader_next(loader, &batch, NULL, &error))
        for (int64_t i = 0; i < 10; i++)
            if (batch.document_start[i] > i % 5 || batch.targets[i] < -1) abort();
    loader_free(loader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Error error;
    const uint8_t *end = data + size;
    data = put("dataset.json", data, end);
    data = put("train_documents.u64", data, end);
    data = put("val_documents.u64", data, end);
    put("train_000000.bin", data, end);
    Dataset *dataset = dataset_open(directory, &error);
    for (int packing = 0; dataset && packing < 3; packing++)
        read_batches(dataset, (Packing)packing);
    dataset_free(dataset);
    return 0;
}
