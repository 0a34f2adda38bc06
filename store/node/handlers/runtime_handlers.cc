#include "store/node/handlers/runtime_handlers.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include "store/base/empty_list.h"
#include "store/base/go_json.h"
#include "store/base/try.h"
#include "store/engine/database/key.h"
#include "store/node/records/evidence_tables.h"
#include "store/node/records/open_pulls_table.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/revocations_table.h"
#include "store/node/records/typed_tables.h"
#include "waybill/limits.h"

namespace waybill::internal {
namespace {

using Handlers = std::vector<RuntimeHandler>;

constexpr std::size_t kMaxHandlersNamed = 20;

std::string Named(std::string_view name) {
  if (name.empty()) return "the nameless runtime handler";
  std::string text = "runtime handler ";
  AppendGoJsonString(name, text);
  return text;
}

Error Refused(std::string message, std::string hint = {}) {
  return {ErrorCode::kInvalidArgument, std::move(message), std::move(hint)};
}

Result<void> CheckBytes(std::string_view name, std::string_view what, std::size_t bytes,
                        std::size_t most) {
  if (bytes <= most) return {};
  return Error{ErrorCode::kLimitExceeded,
               Named(name.substr(0, kMaxRuntimeHandlerBytes)) + ": its " + std::string(what) +
                   " has " + std::to_string(bytes) + " bytes, and " + std::to_string(most) +
                   " are allowed",
               {}};
}

Result<void> CheckName(const RuntimeHandler& handler) {
  if (handler.name.empty()) {
    if (handler.is_default) return {};
    return Refused("a runtime handler without a name is not the default",
                   "only the default handler may go without a name");
  }
  TRY(CheckBytes(handler.name, "name", handler.name.size(), kMaxRuntimeHandlerBytes));
  const bool plain = std::all_of(handler.name.begin(), handler.name.end(), [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && c != '/';
  });
  if (plain) return {};
  return Refused(Named(handler.name) + " has a '/', a space or a control character in its name");
}

Result<void> CheckGuestPlatform(const RuntimeHandler& handler) {
  if (!handler.guest_platform) return {};
  const Platform& guest = *handler.guest_platform;
  const auto check = [&](std::string_view what, const std::string& value) {
    return CheckBytes(handler.name, what, value.size(), kMaxPlatformFieldBytes);
  };
  TRY(check("guest platform's architecture", guest.architecture));
  TRY(check("guest platform's OS", guest.os));
  TRY(check("guest platform's OS version", guest.os_version));
  TRY(check("guest platform's variant", guest.variant));
  if (guest.os_features.size() > kMaxOsFeatures) {
    return Error{ErrorCode::kLimitExceeded,
                 Named(handler.name) + ": its guest platform has " +
                     std::to_string(guest.os_features.size()) + " OS features, and " +
                     std::to_string(kMaxOsFeatures) + " are allowed",
                 {}};
  }
  for (const std::string& feature : guest.os_features) {
    TRY(check("guest platform's OS feature", feature));
  }
  return {};
}

}  // namespace

Result<void> CheckRuntimeHandlers(const std::vector<RuntimeHandler>& handlers) {
  if (handlers.size() > kMaxRuntimeHandlers) {
    return Error{ErrorCode::kLimitExceeded,
                 "the list has " + std::to_string(handlers.size()) + " runtime handlers, and " +
                     std::to_string(kMaxRuntimeHandlers) + " are allowed",
                 {}};
  }
  std::unordered_set<std::string_view> names;
  const RuntimeHandler* default_handler = nullptr;
  for (const RuntimeHandler& handler : handlers) {
    if (auto checked = CheckName(handler); !checked) return checked;
    if (auto checked = CheckGuestPlatform(handler); !checked) return checked;
    if (!names.insert(handler.name).second) {
      return Refused(Named(handler.name) + " is listed twice");
    }
    if (!handler.is_default) continue;
    if (default_handler != nullptr) {
      return Refused(Named(default_handler->name) + " and " + Named(handler.name) +
                         " are both marked as the default",
                     "a node has one default handler");
    }
    default_handler = &handler;
  }
  return {};
}

UserNamespaceSupport LookUpUserNamespaces(const ReaderPool::Lease& snapshot,
                                          std::string_view name) {
  if (snapshot.state().digest(Table::kRuntimeHandlers).count == 0) {
    return UserNamespaceSupport::kNeverTold;
  }
  if (name.size() > kMaxRuntimeHandlerBytes) return UserNamespaceSupport::kUnknownHandler;
  Payload payload;
  Lookup found = snapshot.Get(Table::kRuntimeHandlers, HashKey(name, snapshot.seed()), payload);
  if (found == Lookup::kFound && ViewRuntimeHandler(payload).name != name) {
    return UserNamespaceSupport::kDamaged;
  }
  if (found == Lookup::kAbsent && name.empty()) {
    // The default handler may have a name of its own.
    found = snapshot.FindWithPrefix(Table::kRuntimeHandlers, {}, 0, [&](Payload handler) {
      payload = handler;
      return ViewRuntimeHandler(handler).is_default;
    });
  }
  if (found == Lookup::kDamaged) return UserNamespaceSupport::kDamaged;
  if (found == Lookup::kAbsent) return UserNamespaceSupport::kUnknownHandler;
  return ViewRuntimeHandler(payload).user_namespaces ? UserNamespaceSupport::kYes
                                                     : UserNamespaceSupport::kNo;
}

Result<FoundHandler> FindHandler(const StoreTxn& txn, std::string_view name) {
  FoundHandler found{std::string(name), std::nullopt, name.empty()};
  if (txn.state().digest(Table::kRuntimeHandlers).count == 0) return found;
  if (name.empty()) {
    // The default handler may have a name of its own, so its entry is not under its stored name.
    auto handlers = TRY(ReadRuntimeHandlers(txn));
    const RuntimeHandler* const handler = FindStored(handlers, "");
    if (handler != nullptr) found.guest_platform = handler->guest_platform;
    return found;
  }
  auto payload = TRY(txn.Get(Table::kRuntimeHandlers, HashKey(name, txn.seed())));
  if (!payload) return found;
  const auto handler = DecodeRuntimeHandlerValue(*payload);
  if (!handler || handler->name != name) {
    return Error{ErrorCode::kDamaged,
                 "the entry of runtime handler \"" + std::string(name) + "\" can't be read",
                 {},
                 Hint::kLoadHandlers};
  }
  return FoundHandler{handler->is_default ? "" : handler->name, handler->guest_platform, true};
}

Error UnknownHandler(std::string_view name, const std::vector<RuntimeHandler>& known) {
  std::string list;
  for (std::size_t i = 0; i < known.size() && i < kMaxHandlersNamed; ++i) {
    if (!list.empty()) list += ", ";
    list += known[i].name.empty() ? "the default one" : known[i].name;
    if (known[i].is_default && !known[i].name.empty()) list += " (the default)";
  }
  if (known.size() > kMaxHandlersNamed) {
    list += " and " + std::to_string(known.size() - kMaxHandlersNamed) + " more";
  }
  return {ErrorCode::kInvalidArgument,
          "unknown runtime handler \"" + std::string(name.substr(0, kMaxRuntimeHandlerBytes)) +
              "\"; " +
              (list.empty() ? "no list of handlers was loaded, so only the default one is known"
                            : "known are: " + list) +
              "; nothing was changed",
          {},
          Hint::kLoadHandlers};
}

const RuntimeHandler* FindStored(const std::vector<RuntimeHandler>& handlers,
                                 std::string_view stored) {
  const auto at =
      std::find_if(handlers.begin(), handlers.end(), [&](const RuntimeHandler& handler) {
        return handler.is_default ? stored.empty() : !stored.empty() && handler.name == stored;
      });
  return at == handlers.end() ? nullptr : &*at;
}

std::string NameOfDefault(const std::vector<RuntimeHandler>& handlers) {
  const RuntimeHandler* const handler = FindStored(handlers, "");
  return handler == nullptr ? std::string() : handler->name;
}

std::string StoredName(const std::vector<RuntimeHandler>& handlers, std::string_view name) {
  const RuntimeHandler* const handler = FindStored(handlers, "");
  return handler != nullptr && handler->name == name ? std::string() : std::string(name);
}

// --- Replacing the list --------------------------------------------------------------------------

namespace {

bool HasOthers(const Handlers& handlers) {
  return std::any_of(handlers.begin(), handlers.end(),
                     [](const RuntimeHandler& handler) { return !handler.is_default; });
}

std::optional<Platform> GuestOf(const RuntimeHandler* handler) {
  return handler == nullptr ? std::nullopt : handler->guest_platform;
}

using Chosen = std::function<bool(std::string_view stored)>;

// The default's records of the ref's image under other spellings: the copies can't be told apart.
Result<void> DropDefaultsOfImage(StoreTxn& txn, const std::string& image_ref,
                                 CollapseReport& report) {
  if (txn.state().kubelet_rules) return {};
  auto refs = TRY(RefsOfImage(txn, image_ref));
  for (const std::string& ref : refs) {
    if (ref == image_ref) continue;
    auto record = FindRecord(txn, ref, "");
    if (!record || !*record || (*record)->credential_mapping.empty()) continue;
    (*record)->credential_mapping.clear();
    if (auto r = StoreRecord(txn, std::move(**record)); !r) return r;
    ++report.records_to_verify;
  }
  return {};
}

// What was forgotten of other handlers' copies is forgotten of the default's: a pull that becomes
// its own may have begun before.
Result<void> FoldRevocations(StoreTxn& txn, const Chosen& chosen, CollapseReport& report) {
  auto revocations = TRY(ReadRevocations(txn));
  for (Revocation& one : revocations) {
    if (one.runtime_handler.empty() || !chosen(one.runtime_handler)) continue;
    TRY(EraseRevocation(txn, one));
    one.runtime_handler.clear();
    TRY(PutRevocation(txn, one));
    auto record = TRY(FindRecord(txn, one.image_ref, ""));
    if (!record || !TRY(DropForgotten(txn, *record))) continue;
    TRY(StoreRecord(txn, std::move(*record)));
    ++report.records_to_verify;
  }
  return {};
}

// Moves records and intents of the handlers that `chosen` accepts to the default handler. `chosen`
// is not asked about "", the default itself. The records lose their credentials, and so does the
// default's own record of such a ref: which copy the credentials were for is no longer known.
Result<CollapseReport> Fold(StoreTxn& txn, const Chosen& chosen) {
  CollapseReport report;
  std::set<std::string> handlers;
  struct Copies {
    std::vector<std::string> handlers;
    std::optional<Timestamp> updated;  // the latest time of these copies
    bool closed_by_operator = false;
  };
  std::map<std::string, Copies> refs;
  TRY(txn.ForEach(Table::kPulled, [&](const Key16&, Payload payload) -> Result<bool> {
    if (payload.empty()) return true;
    const std::string_view handler = PulledRecordView(payload).runtime_handler();
    if (handler.empty() || !chosen(handler)) return true;
    if (auto record = DecodePulledRecordValue(payload)) {
      Copies& copies = refs[record->image_ref];
      copies.handlers.push_back(std::move(record->runtime_handler));
      copies.updated = std::max(copies.updated, record->last_updated);
      copies.closed_by_operator |= record->closed_by_operator;
    }
    return true;
  }));
  for (const auto& [ref, copies] : refs) {
    ImagePulledRecord record;
    record.image_ref = ref;
    record.closed_by_operator = copies.closed_by_operator;
    // Garbage collection uses this time: at least as new as each replaced record.
    record.last_updated = std::max<std::optional<Timestamp>>(txn.now(), copies.updated);
    const auto existing = FindRecord(txn, ref, "");
    if (existing && *existing) {
      record.last_updated = std::max(record.last_updated, (*existing)->last_updated);
      record.closed_by_operator |= (*existing)->closed_by_operator;
    }
    TRY(StoreRecord(txn, std::move(record)));
    ++report.records_to_verify;
    TRY(DropDefaultsOfImage(txn, ref, report));
    for (const std::string& handler : copies.handlers) {
      TRY(EraseRecord(txn, ref, handler));
      ++report.records;
      handlers.insert(handler);
    }
  }

  TRY(FoldRevocations(txn, chosen, report));
  auto pulls = TRY(AllOpenPulls(txn));
  for (UnresolvedPull& pull : pulls) {
    if (pull.runtime_handler.empty() || !chosen(pull.runtime_handler)) continue;
    const bool may_bring = pull.nothing_at == 0;
    if (may_bring) handlers.insert(pull.runtime_handler);
    TRY(EraseOpenPull(txn, pull));
    pull.runtime_handler.clear();
    report.intents += may_bring ? 1U : 0U;
    if (txn.state().kubelet_rules) {
      // A kubelet has one intent for a string.
      auto others = TRY(FindOpenPulls(txn, pull.image, ""));
      if (!others.empty()) continue;
    }
    TRY(PutOpenPull(txn, pull));
  }
  // The default's copy of such a ref may be one of the others.
  std::set<std::string> images;
  for (const auto& [ref, copies] : refs) {
    auto image = TRY(ImageOf(txn, ref));
    images.insert(image);
  }
  const auto is_of_another = [&](const PreloadedImage& entry) {
    return (!entry.runtime_handler.empty() && chosen(entry.runtime_handler)) ||
           images.contains(entry.image_ref);
  };
  TRY(DropFromLedger(txn, is_of_another));
  report.handlers.assign(handlers.begin(), handlers.end());
  return report;
}

// Marks records to be verified again: if the handler's guest platform differs from the one at the
// pull, or if they are the default handler's and that is now another one or unknown.
Result<void> DropOutdated(StoreTxn& txn, const Handlers& handlers, bool other_default,
                          RuntimesReport& report) {
  std::vector<ImagePulledRecord> outdated;
  TRY(txn.ForEach(Table::kPulled, [&](const Key16&, Payload payload) -> Result<bool> {
    if (payload.empty()) return true;
    const PulledRecordView view(payload);
    const RuntimeHandler* const handler = FindStored(handlers, view.runtime_handler());
    const bool replaced = other_default && view.runtime_handler().empty();
    const bool other_guest = handler != nullptr && view.guest_platform() != handler->guest_platform;
    if (!replaced && !other_guest) return true;
    if (auto record = DecodePulledRecordValue(payload)) outdated.push_back(std::move(*record));
    return true;
  }));
  std::set<std::string> changed;
  for (ImagePulledRecord& record : outdated) {
    const RuntimeHandler* const handler = FindStored(handlers, record.runtime_handler);
    const auto guest = GuestOf(handler);
    const bool had_credentials = !record.credential_mapping.empty();
    if (had_credentials) {
      ++report.records_to_verify;
      if (handler != nullptr) changed.insert(handler->name);
    } else if (record.guest_platform == guest) {
      continue;
    }
    record.credential_mapping.clear();
    record.manifest_digest.clear();
    record.platform.reset();
    record.guest_platform = guest;
    // One without credentials loses nothing: it is no newer than it was.
    TRY(had_credentials ? StoreRecord(txn, std::move(record))
                        : StoreProofs(txn, std::move(record)));
  }
  report.changed.assign(changed.begin(), changed.end());
  return {};
}

Result<void> WriteRegistry(StoreTxn& txn, const Handlers& old, const Handlers& handlers) {
  for (const RuntimeHandler& handler : old) {
    TRY(txn.Delete(Table::kRuntimeHandlers, HashKey(handler.name, txn.seed())));
  }
  for (const RuntimeHandler& handler : handlers) {
    TRY(txn.Put(Table::kRuntimeHandlers, HashKey(handler.name, txn.seed()),
                EncodeRuntimeHandlerValue(handler)));
  }
  return {};
}

std::set<std::string> NamesOf(const Handlers& handlers) {
  std::set<std::string> names;
  for (const RuntimeHandler& handler : handlers) names.insert(handler.name);
  return names;
}

}  // namespace

Result<RuntimesReport> ReplaceHandlers(StoreTxn& txn, std::vector<RuntimeHandler> handlers,
                                       bool allow_empty) {
  std::sort(handlers.begin(), handlers.end(),
            [](const RuntimeHandler& a, const RuntimeHandler& b) { return a.name < b.name; });
  auto old = TRY(ReadRuntimeHandlers(txn));
  RuntimesReport report;
  if (old == handlers) return report;
  if (handlers.empty() && !allow_empty) {
    return EmptyList("the list of runtime handlers is",
                     "knows " + HowMany(old.size(), "runtime handler"), "no handler was removed");
  }

  const auto before = NamesOf(old);
  const auto after = NamesOf(handlers);
  std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                      std::back_inserter(report.added));
  std::set_difference(before.begin(), before.end(), after.begin(), after.end(),
                      std::back_inserter(report.vanished));

  report.turned_on = !HasOthers(old) && HasOthers(handlers);
  const std::string default_name = NameOfDefault(handlers);
  // Records of the new default handler are looked up under the empty name from now on.
  auto folded = TRY(Fold(
      txn, [&](std::string_view stored) { return report.turned_on || stored == default_name; }));
  report.records_collapsed = folded.records;
  report.intents_collapsed = folded.intents;

  const bool other_default = !old.empty() && NameOfDefault(old) != default_name;
  TRY(DropOutdated(txn, handlers, other_default, report));
  const auto is_outdated = [&](const PreloadedImage& entry) {
    return ChangesHandler(old, handlers, entry.runtime_handler);
  };
  TRY(DropFromLedger(txn, is_outdated));
  TRY(WriteRegistry(txn, old, handlers));
  return report;
}

bool ChangesHandler(const Handlers& old, const Handlers& handlers, std::string_view stored) {
  const RuntimeHandler* const before = FindStored(old, stored);
  const RuntimeHandler* const after = FindStored(handlers, stored);
  const bool other_guest = GuestOf(before) != GuestOf(after);
  if (stored.empty()) {
    return (!old.empty() && NameOfDefault(old) != NameOfDefault(handlers)) || other_guest;
  }
  return after != nullptr && (before == nullptr || other_guest);
}

Result<CollapseReport> CollapseHandlers(StoreTxn& txn) {
  auto report = Fold(txn, [](std::string_view) { return true; });
  if (!report) return report;
  auto old = TRY(ReadRuntimeHandlers(txn));
  Handlers kept;
  if (const RuntimeHandler* const handler = FindStored(old, "")) kept.push_back(*handler);
  if (kept != old) TRY(WriteRegistry(txn, old, kept));
  return report;
}

}  // namespace waybill::internal
