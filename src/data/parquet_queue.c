#include "data/parquet_queue.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/threads.h"

/* Threads decompress several times as fast as as many encode. Row groups that are begun ahead are twice
 * as many, so that a thread that is done with one need not wait for its turn. */
enum { THREADS = 8, SLOTS = 2 * THREADS };

/* A row group on its way: a thread adds pages at the end, the consumer takes them from the start. */
typedef struct Slot {
    ParquetPage *first, **end;
    bool finished, failed;
    Error error;
} Slot;

struct ParquetQueue {
    const ParquetFile *file;
    pthread_t threads[THREADS];
    int started;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    Slot slots[SLOTS];       /* row group i is in slot i % SLOTS */
    size_t claimed, current; /* row groups begun, and the one the consumer is at */
    size_t held;             /* memory in bytes of pages that are not yet given back */
    bool stopping;
};

/* With the lock held. The page that the consumer waits for is always let in. */
static bool has_room(const ParquetQueue *queue, size_t row_group, size_t cost) {
    bool wanted = row_group == queue->current && !queue->slots[row_group % SLOTS].first;
    return wanted ||
           (queue->held < PARQUET_AHEAD_BYTES && cost <= PARQUET_AHEAD_BYTES - queue->held);
}

/* Waits until a page of this size may be read; false when it need not be read any more. */
static bool wait_for_room(ParquetQueue *queue, size_t row_group, size_t cost) {
    pthread_mutex_lock(&queue->lock);
    while (!queue->stopping && !has_room(queue, row_group, cost))
        pthread_cond_wait(&queue->changed, &queue->lock);
    queue->held += cost;
    bool goes_on = !queue->stopping;
    pthread_mutex_unlock(&queue->lock);
    return goes_on;
}

static void add_page(ParquetQueue *queue, Slot *slot, ParquetPage *page) {
    pthread_mutex_lock(&queue->lock);
    *slot->end = page;
    slot->end = &page->next;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

static bool read_pages(ParquetQueue *queue, Slot *slot, ParquetPageReader *reader, Error *error) {
    ParquetPageHeader header;
    for (;;) {
        bool found;
        if (!parquet_page_header(reader, &header, &found, error)) return false;
        if (!found || !wait_for_room(queue, reader->row_group, parquet_page_cost(&header)))
            return true;
        ParquetPage *page = parquet_page_read(reader, &header, error);
        if (!page) return false;
        add_page(queue, slot, page);
    }
}

static void *read_row_groups(void *argument) {
    ParquetQueue *queue = argument;
    pthread_mutex_lock(&queue->lock);
    while (!queue->stopping && queue->claimed < queue->file->count) {
        if (queue->claimed - queue->current == SLOTS) {
            pthread_cond_wait(&queue->changed, &queue->lock);
            continue;
        }
        size_t row_group = queue->claimed++;
        Slot *slot = &queue->slots[row_group % SLOTS];
        *slot = (Slot){.end = &slot->first};
        pthread_mutex_unlock(&queue->lock);
        ParquetPageReader reader = parquet_page_reader(queue->file, row_group);
        bool done = read_pages(queue, slot, &reader, &slot->error);
        parquet_page_reader_free(&reader);
        pthread_mutex_lock(&queue->lock);
        slot->finished = true;
        slot->failed = !done;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

/* With the lock held: the next page, or NULL where there is none left or a row group failed. */
static ParquetPage *wait_for_page(ParquetQueue *queue) {
    while (queue->current < queue->file->count) {
        Slot *slot = &queue->slots[queue->current % SLOTS];
        bool begun = queue->current < queue->claimed;
        if (begun && slot->first) {
            ParquetPage *page = slot->first;
            slot->first = page->next;
            if (!slot->first) slot->end = &slot->first;
            return page;
        }
        if (begun && slot->failed) return NULL;
        if (begun && slot->finished)
            queue->current++;
        else
            pthread_cond_wait(&queue->changed, &queue->lock);
        pthread_cond_broadcast(&queue->changed);
    }
    return NULL;
}

bool parquet_queue_next(ParquetQueue *queue, ParquetPage **page, Error *error) {
    pthread_mutex_lock(&queue->lock);
    *page = wait_for_page(queue);
    pthread_cond_broadcast(&queue->changed); /* the next one is wanted now */
    bool done = *page || queue->current == queue->file->count;
    if (!done) *error = queue->slots[queue->current % SLOTS].error;
    pthread_mutex_unlock(&queue->lock);
    return done || parquet_fail_within(queue->file, queue->current, error);
}

void parquet_queue_release(ParquetQueue *queue, ParquetPage *page) {
    if (!page) return;
    pthread_mutex_lock(&queue->lock);
    queue->held -= parquet_page_cost(&page->header);
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    free(page);
}

ParquetQueue *parquet_queue_open(const ParquetFile *file, Error *error) {
    ParquetQueue *queue = allocate(1, sizeof *queue, error);
    if (!queue) return NULL;
    queue->file = file;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    size_t wanted = (size_t)thread_count();
    if (wanted > THREADS) wanted = THREADS;
    if (wanted > file->count) wanted = file->count;
    for (size_t i = 0; i < wanted; i++) {
        if (pthread_create(&queue->threads[i], NULL, read_row_groups, queue) != 0) break;
        queue->started++;
    }
    if (queue->started || !wanted) return queue; /* one is enough */
    fail(error, "cannot start a thread to read with");
    parquet_queue_free(queue);
    return NULL;
}

void parquet_queue_free(ParquetQueue *queue) {
    if (!queue) return;
    pthread_mutex_lock(&queue->lock);
    queue->stopping = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    for (int i = 0; i < queue->started; i++) pthread_join(queue->threads[i], NULL);
    for (size_t i = queue->current; i < queue->claimed; i++)
        for (ParquetPage *page = queue->slots[i % SLOTS].first, *next; page; page = next) {
            next = page->next;
            free(page);
        }
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->changed);
    free(queue);
}
