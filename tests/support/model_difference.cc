// Compares a store with its model, in words.

#include <map>
#include <set>

#include "store/base/platform.h"
#include "store/base/words.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/model.h"

namespace waybill::testing {

namespace {

std::string DescribeTime(const std::optional<Timestamp>& time) {
  if (!time) return "never";
  return std::to_string(time->seconds) + "." + std::to_string(time->nanoseconds);
}

std::string DescribePlatform(const std::optional<Platform>& platform) {
  return platform ? FormatPlatform(*platform) : "-";
}

std::string DescribeIntent(const std::string& image, const std::string& handler) {
  return " \"" + image + "\"" + (handler.empty() ? "" : "@" + handler);
}

using Quarantine = std::set<std::pair<QuarantineKind, std::string>>;

std::string DifferenceOfQuarantine(const Model& model, const NodeStore& store) {
  const auto entries = store.ListQuarantine();
  if (!entries) return entries.error().ToString();
  Quarantine held;
  for (const QuarantinedFile& entry : *entries) held.emplace(entry.kind, entry.sha256);
  Quarantine expected;
  for (const std::string& ref : model.broken_refs()) {
    expected.emplace(QuarantineKind::kImageRef, Sha256Hex(ref));
  }
  for (const std::string& image : model.broken_images()) {
    expected.emplace(QuarantineKind::kImage, Sha256Hex(image));
  }
  if (held == expected) return "";
  return std::to_string(held.size()) + " quarantine entries instead of " +
         std::to_string(expected.size()) + ", or others";
}

std::string DescribePull(const UnresolvedPull& pull) {
  std::string text = pull.anything ? "anything" : DescribeIntent(pull.image, pull.runtime_handler);
  text += " " + std::string(WordOf(pull.state)) + (pull.several ? ", several" : "");
  // When an ended pull began, and the wall clock's word on its end, are for people only.
  if (!pull.ended) return text + ", since " + DescribeTime(pull.began);
  return text + ", ended in boot " + std::to_string(pull.ended_at.boot_id[0]) + " at " +
         std::to_string(pull.ended_at.nanoseconds);
}

std::string DescribeEntry(const PreloadedImage& entry) {
  std::string text = DescribeIntent(entry.image_ref, entry.runtime_handler) + " of " +
                     entry.source + " (" + entry.reason + ") at " + DescribeTime(entry.since) + ":";
  for (const std::string& name : entry.names) text += " " + name;
  if (entry.absent_since)
    text += " gone when it had run " + std::to_string(entry.absent_ran) + " s";
  return text;
}

std::string DescribeRevocation(const Revocation& one) {
  return std::string(WordOf(one.kind)) + " " + one.who.namespace_name + "/" + one.who.name + "/" +
         one.who.uid + " " + one.image_ref + "@" + one.runtime_handler + " " + one.credential_hash +
         " in commit " + std::to_string(one.commit) + " at " + DescribeTime(one.since) +
         ", when the node had run " + std::to_string(one.ran) + " ns";
}

std::string DifferenceOf(std::multiset<std::string> held, std::multiset<std::string> expected) {
  if (held == expected) return "";
  std::string text;
  for (const std::string& one : held) {
    if (!expected.contains(one)) text += "\n  too much: " + one;
  }
  for (const std::string& one : expected) {
    if (!held.contains(one)) text += "\n  missing: " + one;
  }
  return text;
}

std::string DifferenceOfRevocations(const Model& model, NodeStore& store) {
  const auto kept = store.ListRevocations();
  if (!kept) return kept.error().ToString();
  std::multiset<std::string> held;
  for (const Revocation& one : *kept) held.insert(DescribeRevocation(one));
  std::multiset<std::string> expected;
  for (const Revocation& one : model.revocations()) expected.insert(DescribeRevocation(one));
  const std::string difference = DifferenceOf(held, expected);
  return difference.empty() ? "" : "revocations" + difference;
}

std::string DifferenceOfEvidence(const Model& model, const NodeStore& store) {
  const auto pulls = store.ListOpenPulls();
  if (!pulls) return pulls.error().ToString();
  const auto ledger = store.ListLedger();
  if (!ledger) return ledger.error().ToString();
  std::multiset<std::string> held;
  for (const UnresolvedPull& pull : *pulls) held.insert(DescribePull(pull));
  std::multiset<std::string> expected;
  for (const ModelPull& one : model.pulls()) {
    if (one.pull.nothing_at == 0) expected.insert(DescribePull(one.pull));
  }
  const std::string difference = DifferenceOf(held, expected);
  if (!difference.empty()) return "open pulls" + difference;
  held.clear();
  expected.clear();
  for (const PreloadedImage& entry : *ledger) held.insert(DescribeEntry(entry));
  for (const auto& [copy, entry] : model.ledger()) expected.insert(DescribeEntry(entry));
  const std::string entries = DifferenceOf(held, expected);
  return entries.empty() ? "" : "ledger" + entries;
}

}  // namespace

std::string DescribeCredentials(const ImagePullCredentials& credentials) {
  std::string text = credentials.node_pods_accessible ? "node" : "";
  const auto& secrets = credentials.kubernetes_secrets;
  for (std::size_t i = 0; i < secrets.size(); ++i) {
    if (i == 8) {
      text += " … " + std::to_string(secrets.size()) + " secrets";
      break;
    }
    text += " " + secrets[i].namespace_name + "/" + secrets[i].name + "/" +
            secrets[i].uid.substr(0, 8) + "=" + secrets[i].credential_hash.substr(0, 4);
  }
  for (const auto& account : credentials.kubernetes_service_accounts) {
    text += " sa:" + account.namespace_name + "/" + account.name + "/" + account.uid.substr(0, 8);
  }
  return "{" + text + "}";
}

// When and by whom each credential was proven, in which commit that pull began, and when it ends.
std::string DescribeProofs(const ImagePulledRecord& record) {
  std::string text = " proven";
  const auto add = [&](const Proof& proof) {
    text += " " + (proof.proven ? std::to_string(proof.proven->seconds) : "?") + "/" +
            std::to_string(proof.pull_began) + "/" + std::string(WordOf(proof.checker)) +
            (proof.good_until ? "/until " + std::to_string(proof.good_until->seconds) : "");
  };
  for (const auto& [name, entry] : record.credential_mapping) {
    text += " " + name + ":";
    if (entry.node_pods_accessible) add(entry.node_pods_proof);
    for (const auto& secret : entry.kubernetes_secrets) add(secret.proof);
    for (const auto& account : entry.kubernetes_service_accounts) add(account.proof);
  }
  return text;
}

std::string DescribeRecord(const ImagePulledRecord& record) {
  std::string text = record.image_ref + " at " + DescribeTime(record.last_updated);
  if (!record.runtime_handler.empty()) text += " @" + record.runtime_handler;
  if (record.absent_since) {
    text += " gone when the node had run " + std::to_string(record.absent_ran) + " s";
  }
  if (record.closed_by_operator) text += " closed by an operator";
  if (!record.manifest_digest.empty() || record.platform || record.guest_platform) {
    text += " manifest " + record.manifest_digest + " of " + DescribePlatform(record.platform) +
            " for " + DescribePlatform(record.guest_platform);
  }
  for (const auto& [name, credentials] : record.credential_mapping) {
    text += "; " + name + " " + DescribeCredentials(credentials);
  }
  for (const std::string& name : record.private_names) text += "; private " + name;
  return text;
}

std::string DescribeHandlers(const std::vector<RuntimeHandler>& handlers) {
  std::string text;
  for (const RuntimeHandler& handler : handlers) {
    text += " " + handler.name + (handler.is_default ? "*" : "");
    if (handler.guest_platform) text += "=" + FormatPlatform(*handler.guest_platform);
  }
  return text.empty() ? " none" : text;
}

std::string Difference(const Model& model, const std::vector<ImagePulledRecord>& records,
                       const std::vector<ImagePullIntent>& intents) {
  std::map<Model::CopyKey, ImagePulledRecord> held;
  for (const ImagePulledRecord& record : records) {
    held[{model.ImageOf(record.image_ref), record.runtime_handler}] = record;
  }
  for (const auto& [copy, stored] : model.records()) {
    const ImagePulledRecord expected = model.Counting(stored);
    const auto found = held.find(copy);
    if (found == held.end()) return "missing: " + DescribeRecord(expected);
    found->second.stamp = expected.stamp;
    found->second.closed_because = expected.closed_because;
    // When it went is known by running time; by the clock it is for people only.
    if (found->second.absent_since) found->second.absent_since = expected.absent_since;
    if (found->second != expected) {
      return "record " + DescribeRecord(found->second) + "\n  instead of " +
             DescribeRecord(expected);
    }
    held.erase(found);
  }
  if (!held.empty()) return "too much: " + DescribeRecord(held.begin()->second);

  std::vector<Model::IntentKey> stored;
  for (const auto& intent : intents) stored.emplace_back(intent.image, intent.runtime_handler);
  const auto keys = model.intents();
  const std::vector<Model::IntentKey> expected(keys.begin(), keys.end());
  if (stored == expected) return "";
  std::string text = "intents";
  for (const auto& [image, handler] : stored) text += DescribeIntent(image, handler);
  text += "\n  instead of";
  for (const auto& [image, handler] : expected) text += DescribeIntent(image, handler);
  return text;
}

std::string DifferenceOfProofs(const Model& model, const NodeStore& store) {
  const auto records = store.ListRecords();
  if (!records) return records.error().ToString();
  for (const ImagePulledRecord& record : *records) {
    const auto at = model.records().find({model.ImageOf(record.image_ref), record.runtime_handler});
    if (at == model.records().end()) continue;
    const std::string held = DescribeProofs(record);
    const std::string expected = DescribeProofs(model.Counting(at->second));
    if (held != expected) {
      return DescribeRecord(record) + held + "\n  instead of" + expected;
    }
  }
  return "";
}

std::string Difference(const Model& model, NodeStore& store) {
  const auto records = store.ListRecords();
  if (!records) return records.error().ToString();
  const auto intents = store.ListIntents();
  if (!intents) return intents.error().ToString();
  const auto handlers = store.ListRuntimeHandlers();
  if (!handlers) return handlers.error().ToString();
  if (*handlers != model.handlers()) {
    return "runtime handlers" + DescribeHandlers(*handlers) + "\n  instead of" +
           DescribeHandlers(model.handlers());
  }
  const std::string quarantine = DifferenceOfQuarantine(model, store);
  if (!quarantine.empty()) return quarantine;
  const std::string revocations = DifferenceOfRevocations(model, store);
  if (!revocations.empty()) return revocations;
  const std::string difference = Difference(model, *records, *intents);
  if (!difference.empty() || !model.closed()) return difference;
  return DifferenceOfEvidence(model, store);
}

}  // namespace waybill::testing
