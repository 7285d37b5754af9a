// Random policies, failures and documents. Documents are valid by construction and stay away from the code they test:
// each is put together from the dialect's own field list and written by a few lines of our own, as YAML or as JSON.
#pragma once

#include <string>

#include <rapidcheck.h>

#include <reprise/dialect.hpp>
#include <reprise/policy.hpp>

namespace reprise::testing_support {

// Anything from 0 to 2^63-1 ns; both ends, small ones and round ones often.
rc::Gen<Duration> any_duration();

// Any number of a retry, from 1 to 2^64-1.
rc::Gen<std::uint64_t> any_retry();

// Any legal combination of the fields that make a delay; everything is retried, without limits.
rc::Gen<Policy> any_waiting_policy();

// A failure of any kind, with any subset of evidence.
rc::Gen<Failure> any_failure();

// A valid document of the dialect.
rc::Gen<std::string> any_document(Dialect dialect);

}  // namespace reprise::testing_support

// How counterexamples are shown.
namespace rc {
template <>
struct Arbitrary<reprise::Failure> {
  static Gen<reprise::Failure> arbitrary() { return reprise::testing_support::any_failure(); }
};
}  // namespace rc

namespace reprise {
void showValue(const Policy& policy, std::ostream& out);
void showValue(const Failure& failure, std::ostream& out);
}  // namespace reprise
