#include <limits>

#include "bindings/cli/described_json.h"
#include "bindings/cli/input.h"
#include "bindings/cli/list_token.h"
#include "bindings/cli/store_access.h"
#include "bindings/cli/userns_actions.h"
#include "bindings/cli/userns_json.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

Result<std::uint32_t> ParseLength(std::string_view text) {
  auto number = TRY(ParseNumber("--length", text));
  if (number <= std::numeric_limits<std::uint32_t>::max()) {
    return static_cast<std::uint32_t>(number);
  }
  return BadFlag("--length", "there are fewer host IDs than that");
}

void WriteUserNamespace(const UserNamespace& user_namespace, Output& out) {
  if (out.json()) return out.WriteJson(JsonOf(user_namespace));
  if (user_namespace.mode == NamespaceMode::kNode) {
    return out.Line("NODE: the pod has the host's IDs");
  }
  for (const IdMapping& uids : user_namespace.uids) {
    out.Line("POD: UIDs and GIDs {} of the pod are {} of the host",
             RangeText(uids.container_id, uids.length), RangeText(uids.host_id, uids.length));
  }
}

}  // namespace

Result<ExitCode> GetUserns(const UsernsArguments& arguments, Output& out) {
  UserNamespaceRequest request;
  request.pod_uid = *arguments.pod;
  request.host_users = arguments.host_users == "true";
  request.runtime_handler = arguments.runtime.handler;
  if (arguments.length) {
    auto length = TRY(ParseLength(*arguments.length));
    request.length = length;
  }
  auto given =
      TRY(WithStore(OwnStore(arguments.store, {.user_namespaces = arguments.pool.options}),
                    [&](NodeStore& store) { return store.GetOrCreateUserNamespace(request); }));
  WriteUserNamespace(given, out);
  return ExitCode::kYes;
}

Result<ExitCode> ReleaseUserns(const UsernsArguments& arguments, Output& out) {
  const ChangeOptions& how = arguments.change.options;
  auto released = WithWriter(Writer::Open(arguments.store), [&](Writer& writer) {
    return arguments.lost ? writer.owner().ReleaseLostUserNamespaces(how)
                          : writer.owner().ReleaseUserNamespace(*arguments.pod, how);
  });
  if (!released) return released.error();
  WriteDryRun(how.dry_run, out);
  if (out.json()) {
    Json answer = Json::object();
    if (!arguments.lost) answer["podUid"] = *arguments.pod;
    answer["released"] = *released;
    answer["dryRun"] = how.dry_run;
    out.WriteJson(answer);
  } else if (arguments.lost) {
    out.Line("{}",
             *released ? "released: lost ranges no longer block new ones" : "no ranges were lost");
  } else if (*released) {
    out.Line("released: {}", *arguments.pod);
  } else {
    out.Line("{} has no range, and is not held", *arguments.pod);
  }
  return *released ? ExitCode::kYes : ExitCode::kNo;
}

Result<ExitCode> CleanUpUserns(const UsernsArguments& arguments, Output& out) {
  if (arguments.begin) return PrintListToken(arguments.store, out);
  const auto token = TRY(ParseListToken(*arguments.token));
  auto existing = TRY(ReadPodList(*arguments.existing));
  auto running = TRY(ReadPodList(*arguments.running));
  const ChangeOptions& how = arguments.change.options;
  auto report = WithWriter(Writer::Open(arguments.store), [&](Writer& writer) {
    return writer.owner().CleanUpUserNamespaces(existing, running, token, how);
  });
  if (!report) return report.error();
  WriteChange(FieldsOf(*report, {{"keptInLists", "kept: in a list"},
                                 {"keptNewer", "kept: newer"},
                                 {"releasedPods", "released pod"}}),
              how.dry_run, out);
  return ExitCode::kYes;
}

Result<ExitCode> AdoptUserns(const UsernsArguments& arguments, Output& out) {
  auto first = TRY(ParseNumber("FIRST", *arguments.first_id));
  auto count = TRY(ParseNumber("LENGTH", *arguments.id_count));
  auto mapping =
      WithWriter(Writer::Open(arguments.store, {.user_namespaces = arguments.pool.options}),
                 [&](Writer& writer) -> Result<UserNamespaceAllocation> {
                   TRY(writer.owner().AdoptUserNamespace(*arguments.pod, first, count));
                   return writer.store().GetUserNamespace(*arguments.pod);
                 });
  if (!mapping) return mapping.error();
  if (out.json()) {
    Json answer = JsonOf(*mapping);
    answer["relation"] = PoolRelationName(mapping->relation);
    out.WriteJson(answer);
  } else {
    out.Line("adopted: {} has host IDs {}, {}", mapping->pod_uid,
             RangeText(mapping->host_id, mapping->length), PoolRelationText(mapping->relation));
  }
  return ExitCode::kYes;
}

}  // namespace waybill::cli
