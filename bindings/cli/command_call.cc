// waybill call: a call of the library by its name, for scripts.

#include <algorithm>

#include "bindings/cli/command.h"
#include "bindings/cli/input.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"
#include "store/for_the_command.h"
#include "waybill/store.h"

namespace waybill::cli {
namespace {

#define WAYBILL_NAME(C) #C,
constexpr std::string_view kOfStores[] = {WAYBILL_READING_CALLS(WAYBILL_NAME)  //
                                          WAYBILL_CHANGING_CALLS(WAYBILL_NAME)
                                              WAYBILL_UNSERVED_CALLS(WAYBILL_NAME)};
constexpr std::string_view kWithoutStore[] = {WAYBILL_LIBRARY_CALLS(WAYBILL_NAME)};
#undef WAYBILL_NAME

bool Has(const auto& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

class CallCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    flags.Positional("NAME", &name_, "the call", ParseName).choices = Names();
    flags.Positional("PARAMETERS", &parameters_,
                     "a JSON object, or -: read it from standard input; {} (default)");
    flags.Switch("--interface", &interface_, "print the calls, with all that goes in and out");
    store_.DeclareOptional(flags).TakesSetting();
    store_.DeclareWait(flags);
    short_names_.Declare(flags);
    flags.Excludes("--interface", {"NAME", "PARAMETERS"});
    flags.Needed({"NAME", "--interface"}, "--interface prints all calls");
  }

  Result<ExitCode> Run(Output& out) override {
    if (interface_) {
      out.WriteRaw(InterfaceText());
      return ExitCode::kYes;
    }
    if (parameters_ == "-") parameters_ = TRY(ReadInput("-", kMaxOwnerMessageBytes));
    out.WriteData(ParseJson(TRY(Ask())));
    return ExitCode::kYes;
  }

 private:
  static Flag::Values Names() {
    Flag::Values names(std::begin(kOfStores), std::end(kOfStores));
    names.insert(names.end(), std::begin(kWithoutStore), std::end(kWithoutStore));
    return names;
  }

  static Result<std::string> ParseName(std::string_view flag, const std::string& text) {
    if (Has(kOfStores, text) || Has(kWithoutStore, text)) return text;
    return BadFlag(flag, "there is no such call",
                   DidYouMean(text, Names(), "waybill call --interface prints all"));
  }

  Result<std::string> Ask() const {
    if (Has(kWithoutStore, name_)) return Library::CallJson(name_, parameters_);
    if (store_.store.empty()) {
      return BadFlag("--store", "it is missing: the call is of a store",
                     "name the store's directory");
    }
    if (door::IsServed(name_)) {
      const Owner owner(store_.store);
      auto answer = WhileBusy(store_.wait, [&] { return owner.CallJson(name_, parameters_); });
      const auto is_absent = [](const auto& asked) {
        return !asked && asked.error().code == ErrorCode::kNotFound;
      };
      // What is not found may be the owner, or what the call is about.
      if (!is_absent(answer) || !is_absent(owner.Call(ListRuntimes()))) return answer;
    }
    const Opening how{.evidence = short_names_.options()};
    const auto call = [&](NodeStore& store) { return store.CallJson(name_, parameters_); };
    const bool changes = door::IsServed(name_) && !door::OnlyReads(name_);
    return changes ? WithStore(OwnStore(store_, how), call)
                   : WithStore(ObserveStore(store_, how), call);
  }

  std::string name_;
  std::string parameters_ = "{}";
  bool interface_ = false;
  ShortNamesFlag short_names_;
};

}  // namespace

Command CallCommand() {
  return {
      .name = "call",
      .task = kTaskLook,
      .summary = "make one call of the library, for scripts",
      .notes =
          R"(Prints the answer as one line of JSON. The owner of the store answers if it serves, by
its own rules and settings; otherwise the command opens the store for that moment, by
those of its flags. The same calls go through owner.sock in the store, which speaks
varlink. Give hashes on standard input: other users see a command line.)",
      .examples = R"(waybill call GetStatus
waybill call ParseImage '{"image": "nginx"}'
waybill call --interface)",
      .call = New<CallCall>};
}

}  // namespace waybill::cli
