// Results as JSON, so that a line of a fixture can say what is expected. Empty, zero and false
// values are left out.

#ifndef WAYBILL_TESTS_SUPPORT_AS_JSON_H_
#define WAYBILL_TESTS_SUPPORT_AS_JSON_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "store/base/options.h"
#include "tests/support/metrics.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::testing {

// "no pull, credentialRecordFound, secretHashMatches, asked once".
std::string Words(const Decision& decision, int asked);

nlohmann::json AsJson(const Error& error);  // {"error":"InvalidArgument","message":…}
nlohmann::json AsJson(const ImagePulledRecord& record);
nlohmann::json AsJson(const ImagePullIntent& intent);
nlohmann::json AsJson(const UnresolvedPull& pull);  // which, not when
nlohmann::json AsJson(const PreloadedImage& entry);
nlohmann::json AsJson(const ClassifyReport& report);  // names of what was judged, sorted
nlohmann::json AsJson(const Explanation& explanation);
nlohmann::json AsJson(const Platform& platform);
nlohmann::json AsJson(const RuntimeHandler& handler);
nlohmann::json AsJson(const ManifestDescriptor& manifest);
nlohmann::json AsJson(const RuntimesReport& report);
nlohmann::json AsJson(const PruneReport& report);
nlohmann::json AsJson(const RevokeReport& report);
nlohmann::json AsJson(const IdMappingReport& report);
nlohmann::json AsJson(const OpeningReport& report);
nlohmann::json AsJson(const TrustState& trust);
nlohmann::json AsJson(const Metrics& metrics);
nlohmann::json AsJson(const StoreCounts& statistics);
nlohmann::json AsJson(const QuarantinedFile& entry);
inline nlohmann::json AsJson(bool value) { return value; }
inline nlohmann::json AsJson(const std::string& value) { return value; }

template <typename T>
nlohmann::json AsJson(const std::vector<T>& values) {
  nlohmann::json list = nlohmann::json::array();
  for (const T& value : values) list.push_back(AsJson(value));
  return list;
}

// "done" where there is no value.
inline nlohmann::json AsJson(const Result<void>& result) {
  return result ? nlohmann::json("done") : AsJson(result.error());
}
template <typename T>
nlohmann::json AsJson(const Result<T>& result) {
  return result ? AsJson(*result) : AsJson(result.error());
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_AS_JSON_H_
