/* Runs the PTX that nvcc makes of the kernels: an interpreter on the fibers of tests/cuda/host.
 *
 * The second opinion beside the host compiler's reading of the same .cu file, and the only layer that
 * executes the inline assembly of src/cuda/kernels/seam.h. What the interpreter does not know it refuses
 * when the file is loaded: it never guesses. */
#ifndef TEST_CUDA_PTX_H
#define TEST_CUDA_PTX_H

#include <string>

namespace host {
struct Kernel;
}

namespace ptx {

/* Decodes the kernels of every DIRECTORY/NAME.ptx; false with a message that names file, line and the
 * instruction. Call it once, before find(). */
bool load(const std::string &directory, std::string &error);

/* The same of the text of one file. */
bool load_text(const std::string &file, const std::string &text, std::string &error);

/* A kernel of the loaded files, to be given to host::launch() as one compiled for the host would be: it
 * states its static shared memory itself. Null when no file has it. Lives as long as the process. */
const host::Kernel *find(const std::string &name);

} // namespace ptx

#endif
