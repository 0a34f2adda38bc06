// The actions of `waybill userns`, a function each. command_userns.cc has checked the arguments as
// far as that is possible without the store.

#ifndef WAYBILL_BINDINGS_CLI_USERNS_ACTIONS_H_
#define WAYBILL_BINDINGS_CLI_USERNS_ACTIONS_H_

#include <optional>
#include <string>

#include "bindings/cli/output.h"
#include "bindings/cli/parse.h"
#include "bindings/cli/user_namespace_flags.h"
#include "waybill/result.h"

namespace waybill::cli {

struct UsernsArguments {
  StoreFlags store;
  UserNamespaceFlags pool;
  std::optional<std::string> pod;  // owner: the host ID
  // get
  std::optional<std::string> host_users;
  RuntimeFlag runtime;
  std::optional<std::string> length;
  // release and cleanup
  ChangeFlags change;
  // release
  bool lost = false;
  // cleanup
  bool begin = false;
  std::optional<std::string> existing;
  std::optional<std::string> running;
  std::optional<std::string> token;
  // adopt
  std::optional<std::string> first_id;
  std::optional<std::string> id_count;
  // check
  std::optional<std::string> proc;
};

// userns_show.cc
Result<ExitCode> ListUserns(const UsernsArguments& arguments, Output& out);
Result<ExitCode> ShowUsernsPool(const UsernsArguments& arguments, Output& out);

// userns_check.cc
Result<ExitCode> FindUsernsOwner(const UsernsArguments& arguments, Output& out);
Result<ExitCode> CheckUserns(const UsernsArguments& arguments, Output& out);

// userns_change.cc
Result<ExitCode> GetUserns(const UsernsArguments& arguments, Output& out);
Result<ExitCode> ReleaseUserns(const UsernsArguments& arguments, Output& out);
Result<ExitCode> CleanUpUserns(const UsernsArguments& arguments, Output& out);
Result<ExitCode> AdoptUserns(const UsernsArguments& arguments, Output& out);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_USERNS_ACTIONS_H_
