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
  // For strings that have a full form.
  bool has_host = false;
  std::string tag = {};     // `latest` if it is bare
  std::string digest = {};  // "sha256:…"
  bool is_bare = false;     // neither tag nor digest
};

// Short and full names of one repository, tags, digests, ambiguous and broken ones.
const std::vector<KnownImage>& KnownImages();
// nullptr: none of these.
const KnownImage* FindKnownImage(const std::string& image);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_KNOWN_IMAGES_H_
