#include "store/trust/trust.h"

#include <cstddef>
#include <system_error>
#include <utility>

#include "waybill/limits.h"

namespace waybill::internal {

namespace {

Result<std::vector<TrustEvent>> ReadJournal(const StoreTxn& txn) {
  auto payload = txn.GetHeaderRecord(kTrustKey, RecordKind::kTrustJournal);
  if (!payload) return payload.error();
  auto events = DecodeTrustJournal(*payload);
  return events ? std::move(*events) : std::vector<TrustEvent>();
}

constexpr std::string_view kImportOf = "the import of ";

}  // namespace

Result<void> SetTrust(StoreTxn& txn, bool distrustful, std::string_view reason) {
  auto events = ReadJournal(txn);
  if (!events) return events.error();
  if (distrustful && txn.state().distrustful && !events->empty() &&
      events->back().reason == reason) {
    return {};
  }
  events->push_back({txn.now(), distrustful, std::string(reason)});
  if (events->size() > kMaxTrustEvents) events->erase(events->begin());
  txn.state().distrustful = distrustful;
  return txn.PutHeaderRecord(kTrustKey, RecordKind::kTrustJournal, EncodeTrustJournal(*events));
}

std::string ImportUnfinished(const std::filesystem::path& kubelet_directory) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(kubelet_directory, error);
  return std::string(kImportOf) + (error ? kubelet_directory : absolute).string() +
         " is not finished; run `waybill start --kubelet-dir` on it again";
}

bool IsOfImport(std::string_view reason) { return reason.starts_with(kImportOf); }

Result<std::vector<std::string>> ReasonsOfDistrust(const StoreTxn& txn) {
  const auto events = ReadJournal(txn);
  if (!events) return events.error();
  std::vector<std::string> reasons;
  if (!txn.state().distrustful) return reasons;
  for (auto at = events->rbegin(); at != events->rend() && at->distrustful; ++at) {
    reasons.push_back(at->reason);
  }
  return reasons;
}

Result<void> TakeBackDistrust(StoreTxn& txn, std::string_view reason) {
  auto events = ReadJournal(txn);
  if (!events) return events.error();
  std::size_t at = events->size();
  while (at > 0 && (*events)[at - 1].distrustful && (*events)[at - 1].reason != reason) --at;
  if (at == 0 || !(*events)[at - 1].distrustful) return {};
  events->erase(events->begin() + static_cast<std::ptrdiff_t>(at) - 1);
  txn.state().distrustful = !events->empty() && events->back().distrustful;
  return txn.PutHeaderRecord(kTrustKey, RecordKind::kTrustJournal, EncodeTrustJournal(*events));
}

}  // namespace waybill::internal
