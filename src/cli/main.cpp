// The entry point of the reprise command.
#include <fcntl.h>
#include <unistd.h>

#include "cli/init_process.hpp"
#include "cli/tree/app.hpp"

namespace {

// Who starts us may have closed some of the three. What we open must not take their numbers: a store is no standard output. Standard
// input is then empty; what is written to standard output fails, as it should.
void occupy_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    if (::open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY) != descriptor) ::_exit(2);
  }
}

}  // namespace

int main(int count, char** arguments) {
  occupy_standard_descriptors();
  reprise::cli::act_as_init_process();
  return reprise::cli::run({arguments, static_cast<std::size_t>(count)});
}
