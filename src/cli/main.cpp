// The entry point of the reprise command.
#include "cli/app.hpp"

int main(int count, char** arguments) { return reprise::cli::run({arguments, static_cast<std::size_t>(count)}); }
