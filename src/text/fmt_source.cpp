// The compiled part of fmt, for programs that are linked without its shared library (REPRISE_STATIC_PARTS).
#include <fmt/format-inl.h>

namespace fmt {
inline namespace v9 {
namespace detail {

// Those that <fmt/format.h> declares and leaves to its library, for characters of one byte.
template auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;
template auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;

}  // namespace detail
}  // namespace v9
}  // namespace fmt
