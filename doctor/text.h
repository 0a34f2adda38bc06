// Words and numbers for findings.

#ifndef WAYBILL_DOCTOR_TEXT_H_
#define WAYBILL_DOCTOR_TEXT_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::doctor {

// "1 record", "12 records".
std::string Count(std::uint64_t count, std::string_view what);
// "2026-11-26".
std::string Day(Timestamp time);
// When the file was written last.
Result<Timestamp> ChangedAt(const std::filesystem::path& path);
// A command line or an environment, as /proc has it.
std::vector<std::string> SplitAtZeros(const std::string& text);
// "12 GiB", "340 MiB".
std::string Bytes(std::uint64_t bytes);

}  // namespace waybill::doctor

#endif  // WAYBILL_DOCTOR_TEXT_H_
