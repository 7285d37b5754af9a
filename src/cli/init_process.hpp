// The command as the first process of a container (PID 1). The kernel hands the orphans of a container to that process, which must wait for them, and gives
// it only those signals that it asks for. Engine and commands should not have to know: a child does the work, and the first process sees to the rest.
#pragma once

namespace reprise::cli {

// Returns at once in any other process. In the first one it returns in a child only; the first one itself waits for every process that it is given, forwards
// signals to the child, and ends as the child ends.
void act_as_init_process();

}  // namespace reprise::cli
