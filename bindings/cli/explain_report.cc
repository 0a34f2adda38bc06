#include "bindings/cli/explain_report.h"

#include <algorithm>

#include "bindings/cli/described_json.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/record_json.h"
#include "waybill/kubelet_format.h"

namespace waybill::cli {
namespace {

std::string_view KindName(ExplainedCredential::Kind kind) {
  constexpr std::string_view kNames[] = {"nodePods", "secret", "serviceAccount"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view CheckerText(ProofChecker checker) {
  switch (checker) {
    case ProofChecker::kUnknown:
      break;
    case ProofChecker::kRegistry:
      return ", checked by the registry";
    case ProofChecker::kMirror:
      return ", checked by a mirror at most";
    case ProofChecker::kGuest:
      return ", pulled in the guest: checked by nobody on this node";
  }
  return ", by whom it was checked is not known";
}

std::string CredentialText(const ExplainedCredential& one, const Output& out) {
  std::string text;
  if (one.kind == ExplainedCredential::Kind::kNodePods) {
    text = "all pods of the node";
  } else {
    text =
        fmt::format("{} {}/{}/{}",
                    one.kind == ExplainedCredential::Kind::kSecret ? "secret" : "service account",
                    one.who.namespace_name, one.who.name, one.who.uid);
  }
  text += one.proof.proven ? ", proven " + out.TimeText(one.proof.proven)
                           : ", when it was proven is not known";
  text += CheckerText(one.proof.checker);
  if (one.proof.good_until) text += ", good until " + out.TimeText(one.proof.good_until);
  if (one.standing == CredentialStanding::kTooOld) text += "; TOO OLD, does not count";
  if (one.standing == CredentialStanding::kNotByRegistry) {
    text += "; NOT CHECKED BY THE REGISTRY, does not count";
  }
  if (one.standing == CredentialStanding::kForgotten) text += "; FORGOTTEN, does not count";
  return text;
}

Json JsonOfCredential(const ExplainedCredential& one) {
  Json object = {{"imageName", one.image_name}, {"kind", KindName(one.kind)}};
  if (one.kind != ExplainedCredential::Kind::kNodePods) {
    object["namespace"] = one.who.namespace_name;
    object["name"] = one.who.name;
    object["uid"] = one.who.uid;
  }
  object["proven"] = JsonOf(one.proof.proven);
  object["checker"] = ProofCheckerName(one.proof.checker);
  object["goodUntil"] = JsonOf(one.proof.good_until);
  object["standing"] = CredentialStandingName(one.standing);
  return object;
}

void WriteRecordOf(const Explanation& why, Output& out) {
  if (why.unreadable) out.Line("record      one of this image can't be read");
  if (!why.record) {
    if (!why.unreadable) out.Line("record      none");
    return;
  }
  const ImagePulledRecord& record = *why.record;
  out.Line("record      of {}, updated {}, by commit {}", record.image_ref,
           out.TimeText(record.last_updated), record.stamp);
  if (!record.closed_because.empty()) out.Line("            closed: {}", record.closed_because);
  if (record.closed_by_operator) out.Line("            an operator closed it: no list opens it");
  if (record.absent_since) {
    out.Line("            not on the node since {}; remembered",
             FormatTimestamp(*record.absent_since));
  }
  if (why.image_names.empty()) {
    out.Line("            under no image name: {}",
             record.closed_because.empty() ? "what its pulls proved was forgotten, or is not known"
                                           : "nobody, until pulled");
  }
  for (const std::string& image_name : why.image_names) {
    bool any = false;
    for (const ExplainedCredential& one : why.credentials) {
      if (one.image_name != image_name) continue;
      any = true;
      out.Line("            as {}: {}", image_name, CredentialText(one, out));
    }
    if (!any) out.Line("            as {}: nobody, until pulled again", image_name);
  }
}

void WriteEvidenceOf(const Explanation& why, const HandlerNames& names, Output& out) {
  constexpr std::size_t kMostPulls = 10;
  if (why.ledger_entry) {
    const LedgerEntry& entry = *why.ledger_entry;
    if (IsPresumed(entry)) {
      out.Line(
          "ledger      presumed preloaded since {}: it was there at a first start, and nobody "
          "knows "
          "where it came from",
          out.TimeText(entry.since));
    } else {
      out.Line("ledger      preloaded since {}, source {}{}", out.TimeText(entry.since),
               entry.source, entry.reason.empty() ? "" : ": " + entry.reason);
    }
    for (const std::string& name : entry.names) out.Line("            by the name {}", name);
  } else if (why.gone_entry) {
    const LedgerEntry& entry = *why.gone_entry;
    out.Line("ledger      remembered, source {}: not on the node since {}, and opens nothing",
             entry.source, out.TimeText(entry.absent_since));
    for (const std::string& name : entry.names) out.Line("            by the name {}", name);
  } else {
    out.Line("ledger      not in it");
  }
  for (const std::string& spelling : why.spellings) {
    if (why.spellings.size() > 1) out.Line("spelling    {}", spelling);
  }
  for (const std::string& handler : why.other_handlers) {
    out.Line("handler     another copy is recorded for {}", names.TextOf(handler));
  }
  std::size_t told = 0;
  for (const OpenPull& pull : why.pulls) {
    if (told++ == kMostPulls) {
      out.Line("pull        and {} more: see waybill pulls", why.pulls.size() - kMostPulls);
      break;
    }
    out.Line("pull        {}: {}{}, {}, began {}{}", pull.id.value, ImageText(pull),
             ForHandler(pull.runtime_handler), PullStateName(pull.state), out.TimeText(pull.began),
             pull.ended ? ", ended " + out.TimeText(pull.ended) : std::string());
  }
  for (const QuarantineEntry& entry : why.quarantine) {
    out.Line("quarantine  {}: {}, since {}", entry.source, entry.reason, out.TimeText(entry.since));
  }
}

}  // namespace

Json JsonOf(const ExplainedImage& image) {
  Json object = {{"image", image.image}, {"imageRef", image.image_ref}};
  if (!image.runtime_handler.empty()) object["runtimeHandler"] = image.runtime_handler;
  object["pull"] = image.decision.pull;
  object["result"] = CheckResultName(image.decision.result);
  object["reason"] = ReasonName(image.decision.reason);
  object["because"] = ReasonText(image.decision.reason);
  object["otherAnswerIf"] =
      OtherAnswer(image.decision.reason, image.explanation.value_or(Explanation()));
  if (!image.explanation) {
    object["explanation"] = nullptr;
    return object;
  }
  const Explanation& why = *image.explanation;
  Json explanation = JsonOf(why);
  explanation["record"] = why.record ? JsonOf(*why.record, Hashes::kRedacted) : Json(nullptr);
  if (why.record) explanation["record"].Erase("credentialMapping");
  explanation["imageNames"] = why.image_names;
  Json credentials = Json::array();
  for (const ExplainedCredential& one : why.credentials) {
    credentials.push_back(JsonOfCredential(one));
  }
  explanation["credentials"] = credentials;
  explanation["unreadable"] = why.unreadable;
  explanation["spellings"] = why.spellings;
  explanation["otherHandlers"] = why.other_handlers;
  Json quarantine = Json::array();
  for (const QuarantineEntry& entry : why.quarantine) quarantine.push_back(JsonOf(entry));
  explanation["quarantine"] = quarantine;
  object["explanation"] = explanation;
  return object;
}

void WriteExplained(const ExplainedImage& image, const HandlerNames& names, Output& out) {
  const Decision& decision = image.decision;
  const Explanation why = image.explanation.value_or(Explanation());
  out.Line("image       {}", image.image);
  out.Line("image ref   {}", image.image_ref.empty()
                                 ? "none: it is not on the node, or not known to be"
                                 : image.image_ref);
  out.Line("runtime     {}", names.TextOf(image.runtime_handler));
  const std::string_view result = CheckResultName(decision.result);
  out.Line("answer      {}: {} ({}{}{})", decision.pull ? "PULL" : "no pull",
           ReasonText(decision.reason), result, result.empty() ? "" : ", ",
           ReasonName(decision.reason));
  if (decision.pull && !why.text.empty()) out.Line("            {}", why.text);
  out.Line("otherwise   if {}", OtherAnswer(decision.reason, why));
  if (!image.explanation) return;
  WriteRecordOf(why, out);
  WriteEvidenceOf(why, names, out);
}

}  // namespace waybill::cli
