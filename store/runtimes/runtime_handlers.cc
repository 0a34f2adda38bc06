#include "store/runtimes/runtime_handlers.h"

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
#include "store/base/image_spellings.h"
#include "store/base/try.h"
#include "store/disk/key.h"
#include "store/images/images.h"
#include "store/images/other_rows.h"
#include "store/images/proofs.h"
#include "store/images/pull_row.h"
#include "store/images/revoked.h"
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

Error UnknownHandler(const StoreTxn& txn, std::string_view name) {
  const std::vector<RuntimeHandler> known = TRY(ReadRuntimeHandlers(txn));
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

std::string NameOfDefault(const std::vector<RuntimeHandler>& handlers) {
  const RuntimeHandler* const handler = FindStored(handlers, "");
  return handler == nullptr ? std::string() : handler->name;
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

// What is known of the coming of those rows goes: the next list judges them anew.
Result<void> DropPreloaded(Images& images, FunctionRef<bool(const ImageRow&)> drops) {
  auto rows = TRY(images.All([&](const ImageRow& row) { return row.preloaded && drops(row); }));
  for (ImageRow& row : rows) TRY(images.Unload(std::move(row)));
  if (!rows.empty()) NoteEvidenceRemoved(images.txn());
  return {};
}

// What was revoked of other handlers' copies is revoked of the default's: a pull that becomes its
// own may have begun before.
Result<void> FoldRevocations(Images& images, const Chosen& chosen, RuntimesReport& report) {
  StoreTxn& txn = images.txn();
  auto revocations = TRY(ReadRevocations(txn));
  for (Revocation& one : revocations) {
    if (one.runtime_handler.empty() || !chosen(one.runtime_handler)) continue;
    TRY(EraseRevocation(txn, one));
    one.runtime_handler.clear();
    TRY(PutRevocation(txn, one));
    if (one.kind != RevocationKind::kImage) continue;
    auto rows = TRY(images.All([&](const ImageRow& row) {
      return row.runtime_handler.empty() && SpellingOf(row.subject) == one.image_ref;
    }));
    for (ImageRow& row : rows) {
      if (!TRY(LeaveOutRevoked(images, row))) continue;
      TRY(images.Put(std::move(row), Images::Confirms::kYes));
      ++report.records_to_verify;
    }
  }
  return {};
}

// Moves records and pulls of the handlers that `chosen` accepts to the default handler. `chosen` is
// not asked about "", the default itself. No credentials are left, nor those of the default's own
// record of such an image: which copy they were for is no longer known.
Result<RuntimesReport> Fold(Images& images, const Chosen& chosen) {
  StoreTxn& txn = images.txn();
  RuntimesReport report;
  std::set<std::string> handlers;
  std::set<std::string> folded;  // subjects
  const auto is_chosen = [&](const ImageRow& row) {
    return !row.runtime_handler.empty() && chosen(row.runtime_handler);
  };
  auto others = TRY(images.All([&](const ImageRow& row) { return row.pulled && is_chosen(row); }));
  std::ranges::sort(others, {}, &ImageRow::runtime_handler);
  for (ImageRow& other : others) {
    ImageRow own = TRY(images.FindOrMake(other.subject));
    own = Present(std::move(own));
    const bool by_operator =
        WordOfOperator(own) == ClosedBy::kOperator || WordOfOperator(other) == ClosedBy::kOperator;
    // Garbage collection uses this time: at least as new as each replaced record.
    auto updated = std::max<std::optional<Timestamp>>(txn.now(), other.pulled->last_updated);
    if (own.pulled) updated = std::max(updated, own.pulled->last_updated);
    if (!own.pulled) own.ref = other.Ref();
    for (const std::string& alias : other.aliases) AddAlias(own, alias);
    own.pulled = PulledPart{.last_updated = updated,
                            .closed_by = by_operator ? ClosedBy::kOperator : ClosedBy::kNobody};
    KeepPrivateNames(*other.pulled, *own.pulled);
    TRY(images.Put(std::move(own), Images::Confirms::kYes));
    if (folded.insert(other.subject).second) ++report.records_to_verify;
    ++report.records_collapsed;
    handlers.insert(other.runtime_handler);
    TRY(images.Unrecord(std::move(other)));
  }

  TRY(FoldRevocations(images, chosen, report));
  auto pulls = TRY(AllOpenPulls(txn));
  for (UnresolvedPull& pull : pulls) {
    if (pull.runtime_handler.empty() || !chosen(pull.runtime_handler)) continue;
    const bool may_bring = pull.nothing_at == 0;
    if (may_bring) handlers.insert(pull.runtime_handler);
    TRY(EraseOpenPull(txn, pull));
    pull.runtime_handler.clear();
    report.intents_collapsed += may_bring ? 1U : 0U;
    if (!KeepsEndedPulls(images.mode())) {
      // A kubelet has one intent for a string: the oldest, since its success may be that one's.
      auto there = TRY(FindOpenPulls(txn, pull.image, ""));
      if (!there.empty()) continue;
    }
    TRY(PutOpenPull(txn, pull));
  }
  // The default's copy of such an image may be one of the others.
  TRY(DropPreloaded(
      images, [&](const ImageRow& row) { return is_chosen(row) || folded.contains(row.subject); }));
  report.changed.assign(handlers.begin(), handlers.end());
  return report;
}

// Marks records to be verified again: if the handler's guest platform differs from the one at the
// pull, or if they are the default handler's and that is now another one or unknown.
Result<void> DropOutdated(Images& images, const Handlers& handlers, bool other_default,
                          RuntimesReport& report) {
  auto outdated = TRY(images.All([&](const ImageRow& row) {
    const RuntimeHandler* const handler = FindStored(handlers, row.runtime_handler);
    const bool replaced = other_default && row.runtime_handler.empty();
    return row.pulled && (replaced || (handler != nullptr &&
                                       row.pulled->guest_platform != handler->guest_platform));
  }));
  std::set<std::string> changed;
  for (ImageRow& row : outdated) {
    const RuntimeHandler* const handler = FindStored(handlers, row.runtime_handler);
    const bool had_credentials = !row.pulled->entries.empty();
    if (had_credentials) {
      ++report.records_to_verify;
      if (handler != nullptr) changed.insert(handler->name);
    } else if (row.pulled->guest_platform == GuestOf(handler)) {
      continue;
    }
    row.pulled->entries.clear();
    row.pulled->manifest_digest.clear();
    row.pulled->platform.reset();
    row.pulled->guest_platform = GuestOf(handler);
    // One without credentials loses nothing: it is no newer than it was.
    TRY(images.Put(std::move(row),
                   had_credentials ? Images::Confirms::kYes : Images::Confirms::kNo));
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

Result<RuntimesReport> ReplaceHandlers(Images& images, std::vector<RuntimeHandler> handlers,
                                       bool allow_empty) {
  StoreTxn& txn = images.txn();
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
      images, [&](std::string_view stored) { return report.turned_on || stored == default_name; }));
  report.records_collapsed = folded.records_collapsed;
  report.intents_collapsed = folded.intents_collapsed;

  const bool other_default = !old.empty() && NameOfDefault(old) != default_name;
  TRY(DropOutdated(images, handlers, other_default, report));
  TRY(DropPreloaded(images, [&](const ImageRow& row) {
    return ChangesHandler(old, handlers, row.runtime_handler);
  }));
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

Result<RuntimesReport> CollapseHandlers(Images& images) {
  StoreTxn& txn = images.txn();
  auto report = Fold(images, [](std::string_view) { return true; });
  if (!report) return report;
  auto old = TRY(ReadRuntimeHandlers(txn));
  Handlers kept;
  if (const RuntimeHandler* const handler = FindStored(old, "")) kept.push_back(*handler);
  if (kept != old) TRY(WriteRegistry(txn, old, kept));
  return report;
}

}  // namespace waybill::internal
