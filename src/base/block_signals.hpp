// Threads of ours leave signals to the other threads of the program. Thread safety: for the calling thread.
#pragma once

namespace reprise::base {

// All but those that the processor raises. A SIGCHLD that nobody handles stays open, too: it is dropped at once then; blocked, it would wake up
// another thread, and whoever reads from a signalfd, for every command that ends.
void block_signals() noexcept;

}  // namespace reprise::base
