// Does not compile: nobody said how a Ticket is written.
#include <reprise/engine.hpp>

struct Ticket {};
constexpr reprise::Call<void(const Ticket&)> sell{"sell"};
