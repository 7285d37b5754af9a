// Does not compile: 42 would become "*".
#include <reprise/engine.hpp>

void program(reprise::Engine& engine) {
  (void)engine.handle("answer", [] { return 42; });
}
