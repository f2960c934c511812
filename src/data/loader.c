#include "data/loader.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/order.h"
#include "data/packing.h"

typedef struct Slot {
    int32_t *tokens, *targets, *document_start; /* [B,T] */
    Batch batch;
    int64_t next; /* the position after this batch */
} Slot;

struct Loader {
    const Dataset *dataset;
    LoaderSettings settings;
    Packer *packer;
    int64_t rows;     /* in an epoch */
    int64_t position; /* of the consumer */

    Slot *slots; /* [ring] */
    int64_t ring;
    int32_t *storage;  /* of all slots */
    Segment *segments; /* of one row, [T + 1] */
    uint32_t *row;     /* its tokens, [T + 1] */

    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    int64_t produced, taken; /* batches made, and handed out */
    bool holding;            /* the consumer still uses the batch handed out last */
    bool stopping, failed;
    Error error;
};

/* The first document that begins after `position`. */
static int64_t document_after(const int64_t *starts, int64_t documents, int64_t position) {
    int64_t low = 0, high = documents;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (starts[middle] <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Reads one segment to place `at` of the loader's row; `begins` is where its tokens' documents begin. */
static bool read_segment(Loader *loader, int64_t at, Segment segment, int32_t *begins,
                         Error *error) {
    Split split = loader->settings.split;
    if (!dataset_read(loader->dataset, split, segment.start, segment.count, loader->row + at,
                      error))
        return false;
    int64_t documents = dataset_documents(loader->dataset, split);
    const int64_t *starts = dataset_document_starts(loader->dataset, split);
    int64_t next = document_after(starts, documents, segment.start), begin = at;
    int64_t inputs = smaller(segment.count, loader->settings.sequence_length - at);
    for (int64_t i = 0; i < inputs; i++) {
        if (next < documents && starts[next] == segment.start + i) begin = at + i, next++;
        begins[at + i] = (int32_t)begin;
    }
    return true;
}

/* Fills one row with the absolute sample, or with padding only when `sample` is negative. */
static bool fill_row(Loader *loader, Slot *slot, int64_t row, int64_t sample, Error *error) {
    const LoaderSettings *settings = &loader->settings;
    int64_t T = settings->sequence_length, count = 0;
    int32_t *tokens = slot->tokens + row * T, *targets = slot->targets + row * T,
            *begins = slot->document_start + row * T;
    if (sample >= 0) {
        int64_t epoch = sample / loader->rows, index = sample % loader->rows;
        if (settings->shuffle) index = order_row(settings->seed, epoch, loader->rows, index);
        int64_t segments = packer_row(loader->packer, index, loader->segments);
        for (int64_t i = 0; i < segments; count += loader->segments[i++].count)
            if (!read_segment(loader, count, loader->segments[i], begins, error)) return false;
    }
    int64_t inputs = count ? count - 1 : 0;
    for (int64_t i = 0; i < inputs; i++) {
        tokens[i] = (int32_t)loader->row[i];
        targets[i] = (int32_t)loader->row[i + 1];
    }
    for (int64_t i = inputs; i < T; i++) {
        tokens[i] = 0;
        targets[i] = -1;
        begins[i] = (int32_t)inputs;
    }
    slot->batch.target_count += inputs;
    return true;
}

static bool fill_batch(Loader *loader, Slot *slot, int64_t position, Error *error) {
    const LoaderSettings *settings = &loader->settings;
    int64_t end = position + settings->micro_batch * settings->ranks;
    int64_t epoch_end = (position / loader->rows + 1) * loader->rows;
    if (!settings->shuffle && end > epoch_end) end = epoch_end;
    int64_t first = position + settings->rank;
    slot->batch = (Batch){.tokens = slot->tokens,
                          .targets = slot->targets,
                          .document_start = slot->document_start,
                          .sample = first,
                          .epoch = position / loader->rows};
    slot->next = end;
    for (int64_t row = 0; row < settings->micro_batch; row++) {
        int64_t sample = first + row * settings->ranks;
        if (!fill_row(loader, slot, row, sample < end ? sample : -1, error)) return false;
    }
    return true;
}

static void *produce(void *argument) {
    Loader *loader = argument;
    int64_t position = loader->position;
    pthread_mutex_lock(&loader->lock);
    while (!loader->stopping && !loader->failed) {
        if (loader->produced - loader->taken + loader->holding >= loader->ring) {
            pthread_cond_wait(&loader->changed, &loader->lock);
            continue;
        }
        Slot *slot = &loader->slots[loader->produced % loader->ring];
        pthread_mutex_unlock(&loader->lock);
        Error error;
        bool done = fill_batch(loader, slot, position, &error);
        position = slot->next;
        pthread_mutex_lock(&loader->lock);
        if (done)
            loader->produced++;
        else
            loader->failed = true, loader->error = error;
        pthread_cond_broadcast(&loader->changed);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

bool loader_next(Loader *loader, Batch *batch, double *waited, Error *error) {
    pthread_mutex_lock(&loader->lock);
    if (loader->holding) {
        loader->holding = false;
        pthread_cond_broadcast(&loader->changed);
    }
    double started = seconds_now();
    while (loader->produced == loader->taken && !loader->failed)
        pthread_cond_wait(&loader->changed, &loader->lock);
    if (waited) *waited += seconds_now() - started;
    bool ready = loader->produced > loader->taken;
    if (ready) {
        const Slot *slot = &loader->slots[loader->taken++ % loader->ring];
        loader->holding = true;
        loader->position = slot->next;
        *batch = slot->batch;
    } else {
        *error = loader->error;
    }
    pthread_mutex_unlock(&loader->lock);
    return ready;
}

static bool check_settings(const Dataset *dataset, const LoaderSettings *settings, int64_t sample,
                           int ring, Error *error) {
    int64_t T = settings->sequence_length, tokens = dataset_tokens(dataset, settings->split);
    const char *name = settings->split == SPLIT_TRAIN ? "training" : "validation";
    if (T < 1 || T >= INT32_MAX || settings->micro_batch < 1 || settings->micro_batch >= INT32_MAX)
        return fail(error,
                    "batches of %lld rows of %lld tokens cannot be made; both must be at "
                    "least 1",
                    (long long)settings->micro_batch, (long long)T);
    if (settings->ranks < 1 || settings->ranks >= INT32_MAX || settings->rank < 0 ||
        settings->rank >= settings->ranks)
        return fail(error, "rank %lld of %lld does not exist", (long long)settings->rank,
                    (long long)settings->ranks);
    if (ring < 1 || sample < 0 || sample > INT64_MAX / 4)
        return fail(error, "the data cannot start at sample %lld with %d batches ready",
                    (long long)sample, ring);
    if (tokens < (settings->shuffle ? T + 1 : 2))
        return fail(error,
                    "the %s split of %s has %lld tokens, fewer than one sequence of %lld and its "
                    "last target; use --seq-len %lld or less, or more text",
                    name, dataset_directory(dataset), (long long)tokens, (long long)T,
                    (long long)(tokens > 2 ? tokens - 1 : 1));
    return true;
}

static bool allocate_ring(Loader *loader, Error *error) {
    size_t T = (size_t)loader->settings.sequence_length;
    size_t elements = (size_t)loader->settings.micro_batch * T, arrays = 3 * (size_t)loader->ring;
    if (elements > SIZE_MAX / sizeof *loader->storage) return fail_memory(error, SIZE_MAX);
    loader->storage = allocate(arrays, elements * sizeof *loader->storage, error);
    if (!loader->storage) return false;
    loader->slots = allocate((size_t)loader->ring, sizeof *loader->slots, error);
    loader->segments = loader->slots ? allocate(T + 1, sizeof *loader->segments, error) : NULL;
    loader->row = loader->segments ? allocate(T + 1, sizeof *loader->row, error) : NULL;
    if (!loader->row) return false;
    for (size_t i = 0; i < (size_t)loader->ring; i++) {
        int32_t *tokens = loader->storage + 3 * i * elements;
        loader->slots[i] = (Slot){.tokens = tokens,
                                  .targets = tokens + elements,
                                  .document_start = tokens + 2 * elements};
    }
    return true;
}

/* The thread takes no signals: those are the main thread's. */
static bool start_thread(Loader *loader, Error *error) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    loader->started = pthread_create(&loader->thread, NULL, produce, loader) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return loader->started || fail(error, "cannot start the loader's thread");
}

Loader *loader_open(const Dataset *dataset, const LoaderSettings *settings, int64_t sample,
                    int ring, Error *error) {
    if (!check_settings(dataset, settings, sample, ring, error)) return NULL;
    Loader *loader = allocate(1, sizeof *loader, error);
    if (!loader) return NULL;
    loader->dataset = dataset;
    loader->settings = *settings;
    loader->position = sample;
    loader->ring = ring;
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->changed, NULL);
    loader->packer =
        packer_open(dataset, settings->split, settings->packing, settings->sequence_length, error);
    if (loader->packer) loader->rows = packer_rows(loader->packer);
    if (loader->packer && allocate_ring(loader, error) && start_thread(loader, error))
        return loader;
    loader_free(loader);
    return NULL;
}

void loader_free(Loader *loader) {
    if (!loader) return;
    pthread_mutex_lock(&loader->lock);
    loader->stopping = true;
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
    if (loader->started) pthread_join(loader->thread, NULL);
    pthread_mutex_destroy(&loader->lock);
    pthread_cond_destroy(&loader->changed);
    packer_free(loader->packer);
    free(loader->slots);
    free(loader->storage);
    free(loader->segments);
    free(loader->row);
    free(loader);
}

int64_t loader_position(const Loader *loader) {
    return loader->position;
}

int64_t loader_samples_per_epoch(const Loader *loader) {
    return loader->rows;
}

double loader_cropped_share(const Loader *loader) {
    double tokens = (double)dataset_tokens(loader->dataset, loader->settings.split);
    return (double)packer_cropped(loader->packer) / tokens;
}

size_t loader_memory(const Loader *loader) {
    size_t T = (size_t)loader->settings.sequence_length, ring = (size_t)loader->ring;
    size_t batch = 3 * (size_t)loader->settings.micro_batch * T * sizeof *loader->storage;
    return sizeof *loader + packer_memory(loader->packer) + ring * (sizeof *loader->slots + batch) +
           (T + 1) * (sizeof *loader->segments + sizeof *loader->row);
}
