"""Writes what the owner's socket has of the API: described.h, calls.h and calls.inc."""
import re

NOTE = "// Made by ./dev generate from the public headers."


# Members that stay in their process: a client of another version would not send them, and its
# request be refused.
NOT_SENT = {("ImageOnNode", "bytes")}


class Control:
    def __init__(self, api):
        self.api = api
        self.calls = [f for (owner, _), f in api.functions.items() if owner == "OwnerCalls"]
        self.structs, self.enums = [], []
        for root in ("Error", "OwnerDescription"):
            self.reach(root)
        for call in self.calls:
            for type_, _ in call.arguments:
                self.reach(type_)
            self.reach(call.result)

    def reach(self, type_):
        """Notes the structs and enumerations that a type is made of, inner ones first."""
        for name in re.findall(r"\w+(?:::\w+)*", type_):
            if name in self.api.enums and name not in self.enums:
                self.enums.append(name)
            elif name in self.api.structs and name not in self.structs:
                for member in self.api.structs[name].members:
                    self.reach(member.type)
                self.structs.append(name)

    def described(self):
        out = [NOTE, "// What the values of OwnerCalls are made of, in the order in which they are sent: wire.h.", "",
               "#ifndef WAYBILL_STORE_CONTROL_DESCRIBED_H_", "#define WAYBILL_STORE_CONTROL_DESCRIBED_H_", "",
               "#include <limits>", "#include <tuple>", "#include <type_traits>", "",
               '#include "waybill/owner.h"', "", "namespace waybill::internal {", "",
               "template <auto Pointer>", "struct Member {",
               "static constexpr auto pointer = Pointer;", "};", "",
               "template <typename T>", "struct Members;  // `value`: a tuple of Member", "",
               "// The greatest number of an enumeration.", "template <typename E>",
               "inline constexpr auto kLast = std::numeric_limits<std::underlying_type_t<E>>::max();"]
        for name in self.enums:
            if name in ("ErrorCode", "Hint"):  # of any version
                continue
            last = self.api.enums[name].values[-1].number
            out += ["template <>", f"inline constexpr auto kLast<{name}> = {last};"]
        for name in self.structs:
            members = ", ".join(f"Member<&{name}::{m.name}>()" for m in self.api.structs[name].members
                                if (name, m.name) not in NOT_SENT)
            out += ["", "template <>", f"struct Members<{name}> {{",
                    f"static constexpr std::tuple value{{{members}}};", "};"]
        return "\n".join(out + ["", "}  // namespace waybill::internal", "",
                                "#endif  // WAYBILL_STORE_CONTROL_DESCRIBED_H_", ""])

    def signature(self, call, owner=""):
        return f"{call.result} {owner}{call.name}({', '.join(call.declared)})"

    def header(self):
        out = [NOTE, "// The calls of an owner: asked for through its socket, and made on a store.", "",
               "#ifndef WAYBILL_STORE_CONTROL_CALLS_H_", "#define WAYBILL_STORE_CONTROL_CALLS_H_", "",
               "#include <cstddef>", "#include <cstdint>", "#include <filesystem>", "#include <optional>",
               "#include <string>", "#include <string_view>", "#include <vector>", "",
               '#include "store/control/frame.h"', '#include "waybill/owner.h"', "",
               "namespace waybill::internal {", "",
               "template <auto Method>", "struct OneCall {};", "template <auto A, auto B>",
               "constexpr bool IsSame() {", "return std::is_same_v<OneCall<A>, OneCall<B>>;", "}", "",
               "// A call's number is its place.", "template <auto... Methods>", "struct CallList {",
               "template <auto Method>", "static constexpr std::uint8_t NumberOf() {",
               "std::uint8_t at = 0;",
               "static_cast<void>(((IsSame<Method, Methods>() || (++at, false)) || ...));",
               "return at;", "}", "};", "using CallsOfOwner = CallList<" +
               ", ".join(f"&OwnerCalls::{c.name}" for c in self.calls) + ">;", "",
               "// Makes a request of each call, and takes its result out of the answer.",
               "class AskingCalls : public OwnerClient {", " public:"]
        out += [self.signature(c) + " override;" for c in self.calls]
        out += ["", " protected:",
                "// What the owner answers. `changes`: the request may change the store, so if no answer comes,",
                "// it is not known whether it did.",
                "virtual Result<Bytes> Ask(const Bytes& request, bool changes) = 0;",
                "virtual std::filesystem::path directory() const = 0;", "",
                " private:", "template <auto Method, typename... Args>",
                "auto Call(const Args&... arguments);", "};", "",
                "// Each call is that of the store.", "template <typename Store>",
                "class CallsOn : public OwnerCalls {", " public:",
                "explicit CallsOn(Store& store) : store_(store) {}", ""]
        for c in self.calls:
            names = ", ".join(n for _, n in c.arguments)
            out.append(f"{self.signature(c)} override {{ return store_.{c.name}({names}); }}")
        return "\n".join(out + [
            "", " protected:", "const Store& store() const { return store_; }", "", " private:",
            "Store& store_;", "};", "", "}  // namespace waybill::internal", "",
            "#endif  // WAYBILL_STORE_CONTROL_CALLS_H_", ""])

    def bodies(self):
        out = [NOTE + " messages.cc includes it."]
        for c in self.calls:
            names = ", ".join(n for _, n in c.arguments)
            out += ["", f"{self.signature(c, 'AskingCalls::')} {{",
                    f"return Call<&OwnerCalls::{c.name}>({names});", "}"]
        return "\n".join(out) + "\n"


# What `-o json` shows as it is: each with all of its members.
SHOWN = ("MigrationReport", "RuntimesReport", "CollapseReport", "ImportReport",
         "UserNamespaceReport", "ObserveReport", "ImagePreloadedRecord", "QuarantineEntry",
         "TrustEvent", "IdMapping", "HeldPod", "UserNamespaceAllocation", "PruneReport",
         "ForgetReport", "UserNamespaceCleanupReport", "Statistics", "VerifyReport",
         "RestoreReport", "LedgerEntry", "StreamingFinding")
JSON_NAMES = {"last_updated": "lastUpdatedTime", "is_default": "default"}


def json_name(member):
    first, *rest = member.split("_")
    return JSON_NAMES.get(member) or first + "".join(word.capitalize() for word in rest)


def shown(api):
    """bindings/cli/described.h: the members of a value under their names in JSON."""
    structs, enums = [], []

    def reach(type_):
        for name in re.findall(r"\w+(?:::\w+)*", type_):
            if name in api.enums and name not in enums:
                enums.append(name)
            elif name in api.structs and name not in structs and name != "Timestamp":
                for member in api.structs[name].members:
                    reach(member.type)
                structs.append(name)

    for name in SHOWN:
        reach(name)
    out = [NOTE, "// The members of values under their names in JSON: record_json.h.", "",
           "#ifndef WAYBILL_BINDINGS_CLI_DESCRIBED_H_", "#define WAYBILL_BINDINGS_CLI_DESCRIBED_H_", "",
           "#include <string_view>", "", '#include "waybill/waybill.h"', "",
           "namespace waybill::cli {", ""]
    for name in enums:
        if ("", name + "Name") in api.functions:
            out.append(f"inline std::string_view NameOf({name} value) {{ return {name}Name(value); }}")
    for name in structs:
        out += ["", "template <typename Show>",
                f"void EachMember(const {name}& value, const Show& show) {{"]
        out += [f'show("{json_name(m.name)}", value.{m.name});' for m in api.structs[name].members
                if "used inside the store" not in " ".join(m.comment).lower()]
        out.append("}")
    return "\n".join(out + ["", "}  // namespace waybill::cli", "",
                            "#endif  // WAYBILL_BINDINGS_CLI_DESCRIBED_H_", ""])
