// Image strings with their parts, written by hand: tests that use them do not depend on the parser.

#ifndef WAYBILL_TESTS_SUPPORT_KNOWN_IMAGES_H_
#define WAYBILL_TESTS_SUPPORT_KNOWN_IMAGES_H_

#include <optional>
#include <string>
#include <vector>

namespace waybill::testing {

struct KnownImage {
  std::string image;
  std::optional<std::string> name;        // nullopt: does not parse
  std::optional<std::string> normalised;  // nullopt: does not parse, or is ambiguous
  std::string repository;                 // shared by all strings of one repository
};

// Short and full names of one repository, tags, digests, ambiguous and broken ones.
const std::vector<KnownImage>& KnownImages();

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_KNOWN_IMAGES_H_
