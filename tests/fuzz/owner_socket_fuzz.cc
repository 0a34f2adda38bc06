// Requests to an owner and replies of one, of any bytes: no crash, and what is accepted means the
// same when it is written again.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "store/owner_socket/request.h"
#include "store/owner_socket/server.h"

namespace {

using namespace waybill;            // NOLINT(google-build-using-namespace)
using namespace waybill::internal;  // NOLINT(google-build-using-namespace)

// Writes down what it is asked for, and answers with that.
class Notes final : public Door {
 public:
  std::optional<Result<std::string>> Call(std::string_view name,
                                          std::string_view parameters) noexcept override {
    asked = std::string(name) + std::string(parameters);
    if (name.size() % 2 == 0) return Error{ErrorCode::kConflict, asked, std::string(name)};
    return std::string(parameters);
  }
  bool Knows(std::string_view name) const override { return name.size() < 32; }
  std::string_view interface_text() const override { return "interface dev.waybill\n"; }

  std::string asked;
};

void Check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string message(data, data + size);
  Notes notes;
  const auto request = ReadRequest(message);
  const auto reply = ReplyTo(message, notes);
  Check(reply.has_value() == !(request && request->oneway));
  if (reply) {
    // A client can read whatever an owner says, and it has no zero byte.
    Check(ReadReply(*reply).has_value());
    Check(reply->find('\0') == std::string::npos);
  }
  if (request) {
    constexpr std::string_view kOurs = "dev.waybill.";
    if (request->method.starts_with(kOurs)) {
      const auto again = RequestFor(request->method.substr(kOurs.size()), request->parameters.text);
      Check(again.has_value());
      const auto read = ReadRequest(*again);
      Check(read && read->method == request->method &&
            read->parameters.text == request->parameters.text);
      Check(!read->oneway && !read->more && !read->upgrade);
    }
  } else {
    Check(notes.asked.empty());
  }

  // An object of parameters is one in a request, too, and adds nothing to it.
  if (const auto made = RequestFor("Echo", message)) {
    const auto read = ReadRequest(*made);
    Check(read && read->method == "dev.waybill.Echo" && !read->oneway);
  }

  const auto said = ReadReply(message);
  if (said && !*said) {
    const auto again = ReadReply(ErrorReply(said->error()));
    Check(again && !*again && again->error().code == said->error().code);
    Check(again->error().message == said->error().message);
    Check(again->error().hint == said->error().hint);
  }
  return 0;
}
