/* Which thread of a block runs next, and what makes threads wait for each other. */
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "block.h"
#include "race.h"

namespace host {

static std::vector<Fiber *> idle_fibers;
static Fiber *launcher; /* the stack that called launch() */

static std::mt19937 &random_number() {
    static std::mt19937 generator(settings().seed);
    return generator;
}

std::vector<unsigned> ordered(unsigned count) {
    std::vector<unsigned> order(count);
    std::iota(order.begin(), order.end(), 0u);
    if (settings().order == Order::reverse) std::reverse(order.begin(), order.end());
    if (settings().order == Order::random)
        std::shuffle(order.begin(), order.end(), random_number());
    return order;
}

template <class Queue> static unsigned take(Queue &queue, size_t i) {
    std::swap(queue[i], queue.back());
    unsigned number = queue.back();
    queue.pop_back();
    return number;
}

/* Threads that were released go before fresh ones, so that few stacks are in use at a time; at random,
 * all are alike. */
static Thread *choose_thread() {
    size_t fresh = block.fresh.size(), runnable = block.runnable.size();
    if (fresh + runnable == 0) return nullptr;
    if (settings().order == Order::random && fresh + runnable > 1) {
        size_t i = random_number()() % (fresh + runnable);
        return &block.threads[i < fresh ? take(block.fresh, i) : take(block.runnable, i - fresh)];
    }
    if (runnable == 0) return &block.threads[take(block.fresh, fresh - 1)];
    if (settings().order == Order::reverse)
        return &block.threads[take(block.runnable, runnable - 1)];
    unsigned number = block.runnable.front();
    block.runnable.pop_front();
    return &block.threads[number];
}

static void thread_main();

static Fiber *take_fiber() {
    if (idle_fibers.empty()) return fiber_create(thread_main);
    Fiber *fiber = idle_fibers.back();
    idle_fibers.pop_back();
    return fiber;
}

/* Leaves the running thread, whose fiber is `from`, for the next one or for the launcher. */
static void run_next(Fiber *from) {
    Fiber *to = launcher;
    Thread *thread = choose_thread();
    if (!thread && block.exited != block.threads.size())
        kernel_fault("deadlock: no thread can go on");
    block.current = thread;
    if (thread) {
        if (thread->state == State::fresh) thread->fiber = take_fiber();
        thread->state = State::runnable;
        to = thread->fiber;
    }
    if (to != from) fiber_switch(from, to);
}

static void end_thread() {
    Thread *thread = block.current;
    thread->state = State::done;
    block.exited++;
    Warp &warp = block.warps[thread->number / warp_size];
    warp.exited |= 1u << thread->number % warp_size;
    for (const Gathering &gathering : warp.gatherings)
        if (gathering.mask & warp.exited)
            kernel_fault("a lane ended while others wait for it in a warp's operation");
    if (block.waiting) kernel_fault("a thread ended while others wait for it at a barrier");
    idle_fibers.push_back(thread->fiber);
}

/* A fiber runs one thread after another. */
static void thread_main() {
    fiber_started();
    for (;;) {
        Fiber *fiber = block.current->fiber;
        block.kernel->run(block.parameters);
        end_thread();
        run_next(fiber);
    }
}

static void release(Thread &thread) {
    thread.state = State::runnable;
    if (&thread != block.current) block.runnable.push_back(thread.number);
}

static bool same_site(const Site &a, const Site &b) {
    return a.id == b.id && a.line == b.line && strcmp(a.file, b.file) == 0;
}

void barrier(Site site) {
    Thread *thread = block.current;
    static Site first;
    if (block.waiting == 0) first = site;
    if (!same_site(site, first))
        kernel_fault("threads of a block wait at different barriers", site, first);
    if (block.exited) kernel_fault("a barrier after a thread of the block has ended", site);
    thread->site = site;
    thread->state = State::at_barrier;
    if (++block.waiting < block.threads.size()) {
        run_next(thread->fiber);
        return;
    }
    block.waiting = 0;
    race_barrier();
    for (Thread &other : block.threads) release(other);
}

/* All lanes of the warp's gathering number `i` have arrived. */
static void complete(Warp &warp, size_t i) {
    Gathering gathering = warp.gatherings[i];
    warp.gatherings[i] = warp.gatherings.back();
    warp.gatherings.pop_back();
    Thread *first = &block.threads[block.current->number / warp_size * warp_size];
    void *arguments[warp_size] = {};
    for (unsigned l = 0; l < warp_size; l++)
        if (gathering.mask >> l & 1) arguments[l] = first[l].argument;
    gathering.combine(arguments);
    for (unsigned l = 0; l < warp_size; l++)
        if (gathering.mask >> l & 1) release(first[l]);
}

void warp_collective(unsigned mask, Combine combine, void *argument, Site site) {
    Thread *thread = block.current;
    Warp &warp = block.warps[thread->number / warp_size];
    unsigned me = 1u << lane();
    mask &= warp.lanes;
    if (!(mask & me)) kernel_fault("a lane is not in its own mask", site);
    if (mask & warp.exited) kernel_fault("the mask names a lane that has ended", site);
    size_t i = 0;
    while (i < warp.gatherings.size() && warp.gatherings[i].mask != mask) i++;
    if (i == warp.gatherings.size()) warp.gatherings.push_back({mask, 0, combine});
    Gathering &gathering = warp.gatherings[i];
    thread->argument = argument;
    thread->mask = mask;
    thread->site = site;
    thread->state = State::in_collective;
    if (gathering.combine != combine)
        kernel_fault("lanes of a warp are in different operations under one mask", site);
    gathering.arrived |= me;
    if (gathering.arrived == mask)
        complete(warp, i);
    else
        run_next(thread->fiber);
}

static void meet(void **lanes) {
    unsigned mask = 0;
    for (unsigned i = 0; i < warp_size; i++) mask |= lanes[i] ? 1u << i : 0;
    race_warp_barrier(block.current->number / warp_size, mask);
}

void warp_barrier(unsigned mask, Site site) {
    warp_collective(mask, meet, block.current, site);
}

void need_full_warp(Site site) {
    const Warp &warp = block.warps[block.current->number / warp_size];
    if (warp.exited || warp.lanes != full_warp)
        kernel_fault("mma and ldmatrix need all 32 lanes of the warp", site);
}

void run_block() {
    launcher = fiber_of_caller();
    run_next(launcher);
}

} // namespace host
