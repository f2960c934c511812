/* What the files of the test driver share.
 *
 * The driver is one shared library with the ABI of libcuda, cuBLASLt, NCCL and NVML, which runs everything on
 * the CPU. It exists to find faults of the host program, so it is as unhelpful as the documentation allows:
 * work is done at the last legal moment and in a random legal order, memory that nobody has written holds
 * NaN, device memory cannot be read by the program, and what the libraries leave undefined ends it.
 *
 * Environment: TEST_GPU_CHIP and TEST_GPU_MEMORY (chips.h), TEST_GPU_SEED, TEST_GPU_ORDER and TEST_GPU_ASYNC
 * (host/runtime.h; the seed also chooses the order of streams, and eager does work when it is queued),
 * TEST_GPU_PTX=DIR (run that PTX instead of what the host compiler made of the kernels), TEST_GPU_LOG=FILE and
 * TEST_GPU_FAULT (below), TEST_GPU_QUIET (refuse without a message). */
#ifndef TEST_CUDA_DRIVER_H
#define TEST_CUDA_DRIVER_H

#include <cstdint>
#include <map>
#include <mutex>

#include <cuda.h>

#define API extern "C" __attribute__((visibility("default")))

/* Returns what `call` returns from the function it stands in, unless that is success. */
#define TRY(call) \
    do { \
        if (auto try_result = (call)) return try_result; \
    } while (0)

namespace driver {

/* A fault of the program after which nothing it does has a meaning: prints it and aborts. */
[[noreturn]] void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints why a call fails. */
CUresult refuse(CUresult result, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for libraries with other result types. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Appends a line to TEST_GPU_LOG: "device 512", "pinned -64" (bytes allocated or, negative, freed; also
 * "managed"), "compile 4096" (bytes of PTX: all that an image had for this chip). */
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* TEST_GPU_FAULT is a list KIND:NUMBER,...
 *   matmul:ALGORITHM    that algorithm fails when it is run
 *   allocate:N pinned:N the N-th allocation of device, or host, memory fails (from 1)
 *   launch:N            the N-th kernel that runs fails, and all calls after it
 *   device:0            there is no GPU
 *   driver:12           the driver is one for CUDA 12.8, which loads nothing of CUDA 13 */
bool fault_of(const char *kind, int64_t number);
/* For the kinds that count: whether this is the time. */
bool fault_now(const char *kind);

/* Stands at the top of every function of the API: lets one thread in at a time, and names the function in
 * messages. */
class Call {
  public:
    explicit Call(const char *function);
    ~Call();
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;

  private:
    std::unique_lock<std::recursive_mutex> lock_;
    const char *outer_;
};

/* The objects of one kind. They are never freed, so that a handle used after its end is recognised. */
template <class T> class Handles {
  public:
    explicit Handles(const char *noun) : noun_(noun) {
    }

    T *create() {
        T *object = new T();
        alive_[object] = true;
        return object;
    }

    T *check(const void *handle) const {
        T *object = static_cast<T *>(const_cast<void *>(handle));
        auto found = alive_.find(object);
        if (found == alive_.end()) die("%p is no %s", handle, noun_);
        if (!found->second) die("%s %p was destroyed", noun_, handle);
        return object;
    }

    void destroy(T *object) {
        alive_[object] = false;
    }

    int64_t count() const {
        int64_t count = 0;
        for (const auto &entry : alive_) count += entry.second;
        return count;
    }

    const char *noun() const {
        return noun_;
    }

  private:
    const char *noun_;
    std::map<T *, bool> alive_;
};

/* CUDA_SUCCESS when the driver is initialised, has a current context and no launch has failed. */
CUresult ready();

/* What every later call returns: set when a launch fails. */
void fail_context(CUresult error);

} // namespace driver

#endif
