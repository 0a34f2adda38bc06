// In words, for what is printed where a history fails.

#ifndef WAYBILL_TESTS_MODEL_DESCRIBE_H_
#define WAYBILL_TESTS_MODEL_DESCRIBE_H_

#include <string>
#include <string_view>
#include <vector>

#include "store/base/options.h"
#include "store/base/words.h"
#include "tests/support/model.h"
#include "waybill/values.h"

namespace waybill::testing {

std::string Quote(std::string_view text);
// " for kata"; "" for the default handler.
std::string For(const std::string& handler);
std::string Describe(const Decision& decision);
std::string Describe(const PruneReport& report);
std::string Describe(const ClassifyReport& report);
std::string Describe(const RuntimesReport& report);
std::string Describe(const RevokeReport& report);
std::string Describe(const RevokeMissingReport& report);
std::string DescribePod(const ModelPod& pod);
std::string DescribeListed(const std::vector<ListedImage>& images);

bool Same(const Decision& a, const Decision& b);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_MODEL_DESCRIBE_H_
