// One visitor of a variant, made of a lambda for each kind. Thread safety: that of the lambdas.
#pragma once

namespace reprise::base {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

}  // namespace reprise::base
