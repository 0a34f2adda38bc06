"""Writes described.h and described.cc (values between C and C++) and calls.cc (a function of C for
each @call)."""
import re

from description import SCALARS
from words import snake

BY_VALUE = ("ImageCopy", "ListToken", "Timestamp", "CredentialName")
RESULTS_BY_VALUE = (*BY_VALUE, "KubernetesVersion", "UserNamespacePool")
# A class: its handle in C, and what its functions begin with.
HANDLES = {"NodeStore": "waybill_store", "StreamingStore": "waybill_streaming_store"}


def one_of(description, enum, value, name, scope=""):
    """The enumerator that a number of C stands for."""
    values = description.api.enums[enum].values
    bounds = [v.name for v in (values[:1] if values[0].number else []) + values[-1:]]
    return "arguments.OneOf(" + ", ".join(
        [value, *(f"{scope}{enum}::{b}" for b in bounds), f'"{name}"']) + ")"


class Argument:
    """An argument of a method: its parameter in C, and what the method is given for it."""

    def __init__(self, description, type_, name):
        self.name, self.type = name, type_
        kind, of = description.kind(type_)
        self.kind, self.of = kind, of
        self.before = []
        if kind == "scalar":
            self.parameter, self.value = f"{SCALARS[of][0]} {name}", name
            if of == "PullId":
                self.value = "waybill::PullId{" + name + "}"
        elif kind == "text":
            self.parameter, self.value = f"waybill_string {name}", f'arguments.Text({name}, "{name}")'
        elif kind == "path":
            self.parameter, self.value = f"waybill_string {name}", f'arguments.Path({name}, "{name}")'
        elif kind == "enum":
            self.parameter = f"int32_t {name}"
            self.value = one_of(description, of, name, name, "waybill::")
        elif kind == "optional":
            self.parameter = f"const {description.c_struct(of)}* {name}"
            self.value = f"FromCIfAny({name}, arguments)"
        elif kind == "list":
            element = description.kind(of)[0]
            c = "waybill_strings" if element == "text" else description.lists[of].name
            self.parameter = f"{c} {name}"
            self.value = (f'arguments.Strings({name}, "{name}")' if element == "text" else
                          f'ListFromC({name}.items, {name}.count, "{name}", arguments)')
        elif of in BY_VALUE:
            self.parameter = f"{description.c_struct(of)} {name}"
            self.value = f"FromC({name}, arguments)"
        else:
            self.parameter = f"const {description.c_struct(of)}* {name}"
            sized = of in description.structs and description.structs[of].may_be_null()
            self.value = f"FromC({name}, arguments)" if sized else f"FromC(*{name}, arguments)"
            if not sized:
                self.before = [f'if (!arguments.Given({name}, "{name}")) return arguments.error();']
        if kind == "list" and of == "RuntimeHandler":  # a pointer, as in waybill_open_options
            self.parameter = f"const {description.lists[of].name}* {name}"
            self.before = [f'if (!arguments.Given({name}, "{name}")) return arguments.error();']
            self.value = f'ListFromC({name}->items, {name}->count, "{name}", arguments)'


class CallShape:
    """The C function of a function or method of C++."""

    def __init__(self, description, block):
        function = block.thing
        self.description, self.function, self.block = description, function, block
        self.name = description.c_function(function)
        self.arguments = [Argument(description, t, n) for t, n in block.arguments()]
        self.can_fail = function.result.startswith("Result<")
        self.result = function.result[len("Result<"):-1] if self.can_fail else function.result
        kind, of = description.kind(self.result)
        self.result_kind, self.result_of = kind, of
        self.changes = any(t in ("ChangeOptions", "ClearOptions") for t, _ in block.arguments())
        default = "report" if of.endswith("Report") else snake(of.split("::")[-1]).split("_")[-1]
        self.out = block.options.get("out", {"bool": "done"}.get(self.result, default))
        if self.result == "void":
            self.out_type = None
        elif kind == "scalar":
            self.out_type = SCALARS[of][0] + "*"
        elif kind == "text":
            self.out_type = "waybill_string**"
        elif of in RESULTS_BY_VALUE:
            self.out_type = description.c_struct(of) + "*"
        elif kind == "list" and description.kind(of)[0] == "text":
            self.out_type = "waybill_strings**"
        elif kind == "list":
            self.out_type = description.lists[of].name + "**"
        else:
            self.out_type = description.c_struct(of) + "**"
        # Whether the caller may not want it.
        self.optional = self.changes or self.result == "PullId"

    def parameters(self):
        out = [f"{self.out_type} {self.out}"] if self.out_type else []
        handle = HANDLES.get(self.function.owner)
        return ([f"{handle}* store"] if handle else []) + [
            *(a.parameter for a in self.arguments), *out, "waybill_error** error"]

    def remarks(self):
        """What is true of C alone."""
        if not self.out_type:
            return []
        if self.result == "bool":
            return []
        return [f"`{self.out}` may be NULL."] if self.optional else []

    def body(self):
        lines = []
        if self.out_type and self.out_type.endswith("**"):
            lines.append(f"if ({self.out} != nullptr) *{self.out} = nullptr;")
        inner = []
        if self.out_type and not self.optional:
            inner.append(f'if (!arguments.Given({self.out}, "{self.out}")) return arguments.error();')
        values = []
        for argument in self.arguments:
            inner += argument.before
            if argument.kind == "scalar":
                values.append(argument.value)
                continue
            inner.append(f"const auto {argument.name}_in = {argument.value};")
            values.append(f"{argument.name}_in")
        if len(values) and any(a.kind != "scalar" for a in self.arguments):
            inner.append("if (!arguments.ok()) return arguments.error();")
        owner = self.function.owner
        call = f"{'opened.' if owner else 'waybill::'}{self.function.name}({', '.join(values)})"
        if not self.can_fail:
            call = f"Result<{self.qualified(self.result)}>({call})"
        if not self.out_type:
            inner.append(f"return {call};")
        else:
            wiping = ", Wiping()" if self.block.has("wipes") else ""
            inner.append(f"return Give({call}, {self.out}{wiping});")
        name = " arguments" if any("arguments" in line for line in inner) else ""
        if owner:
            lines.append(f"return OnStore(store, error, [&]({owner}& opened, "
                         f"Arguments&{name}) -> Result<void> {{")
        else:
            lines.append(f"return Call(error, [&](Arguments&{name}) -> Result<void> {{")
        return lines + inner + ["});"]

    def qualified(self, type_):
        return re.sub(r"(?<![\w:])(?=[A-Z])", "waybill::", type_)


def name_functions(description):
    """The functions of C that say what an enumerator is called, or read it."""
    out = []
    for block in description.enums.values():
        enum, function = block.thing, block.name_function()
        if not function:
            continue
        first, last = (f"waybill::{enum.name}::{v.name}" for v in (enum.values[0], enum.values[-1]))
        named = description.api.functions[("", enum.name + "Name")]
        argument = named.arguments[0][1]
        out += ["", f"waybill_string {function}(int32_t {argument}) {{",
                f"return NameOf({argument}, {first}, {last}, waybill::{named.name});", "}"]
        if block.has("parse"):
            out += [f"waybill_code waybill_parse_{snake(enum.name)}(waybill_string name, "
                    f"int32_t* {argument}, waybill_error** error) {{",
                    f"return ParseName(name, waybill::Parse{enum.name}, {argument}, "
                    f'"{argument}", error);', "}"]
    return out


def calls(description):
    out = ["// The functions of waybill.h that do what one of C++ does. Made by ./dev generate.",
           "", '#include "bindings/c/described.h"', '#include "bindings/c/store.h"', "",
           "using namespace waybill::c;", "using waybill::NodeStore;", "using waybill::Result;",
           "using waybill::StreamingStore;", *name_functions(description)]
    for block in description.calls.values():
        shape = CallShape(description, block)
        out += ["", f"waybill_code {shape.name}({', '.join(shape.parameters())}) {{",
                *shape.body(), "}"]
    return "\n".join(out) + "\n"


class Conversions:
    def __init__(self, description):
        self.description = description

    def directions(self):
        for block in self.description.structs.values():
            if block.kind == "struct" and block.has("out"):
                yield block, False
            if block.kind == "struct" and block.has("in"):
                yield block, True

    def signature(self, block, inward):
        c, name = self.description.c_struct(block.name), block.name
        if not inward:
            return f"{c} ToC(const {name}& from, Memory& memory)"
        pointer = "*" if block.has("sized") else "&"
        return f"{name} FromC(const {c}{pointer} from, Arguments& arguments)"

    def header(self):
        out = ["// Values of the API between C++ and C. Made by ./dev generate from the public headers;",
               "// convert.h has those that differ by nature.", "",
               "#ifndef WAYBILL_BINDINGS_C_DESCRIBED_H_", "#define WAYBILL_BINDINGS_C_DESCRIBED_H_", "",
               '#include "bindings/c/call.h"', '#include "bindings/c/result.h"',
               '#include "bindings/c/waybill.h"', '#include "waybill/waybill.h"', "",
               "namespace waybill::c {", ""]
        for block, inward in self.directions():
            out.append(self.signature(block, inward) + ";")
        return "\n".join(out + [
            "", "}  // namespace waybill::c", "", "#endif  // WAYBILL_BINDINGS_C_DESCRIBED_H_", ""])

    def source(self):
        out = ["// Values of the API between C++ and C. Made by ./dev generate from the public headers.", "",
               '#include "bindings/c/described.h"', "", "#include <cstring>", "",
               '#include "bindings/c/convert.h"', "", "namespace waybill::c {"]
        for block, inward in self.directions():
            body = self.inward(block) if inward else self.outward(block)
            start, last = self.signature(block, inward), "arguments" if inward else "memory"
            if not any(last in line for line in body):
                start = start.replace(f" {last})", ")")
            out += ["", start + " {", *body, "}"]
        return "\n".join(out + ["", "}  // namespace waybill::c", ""])

    def outward(self, block):
        d = self.description
        lines = [f"{d.c_struct(block.name)} to{{}};"]
        for member in d.members(block):
            kind, of = d.kind(member.type)
            name = member.name
            to, value = f"to.{name}", f"from.{name}"
            if kind == "scalar":
                lines.append(f"{to} = {value}{'.value' if of == 'PullId' else ''};")
            elif kind == "enum":
                lines.append(f"{to} = static_cast<std::int32_t>({value});")
            elif kind == "text":
                lines.append(f"{to} = Copy({value}, memory);")
            elif kind == "path":
                lines.append(f"{to} = Copy({value}.native(), memory);")
            elif kind == "optional":
                lines.append(f"{to} = ToCIfAny({value}, memory);")
            elif kind == "array":
                lines.append(f"static_assert(sizeof({to}) == sizeof({value}));")
                lines.append(f"std::memcpy(&{to}, &{value}, sizeof({to}));")
            elif kind == "list" and d.kind(of)[0] == "text":
                lines.append(f"{to} = CopyStrings({value}, memory);")
            elif kind == "list" and d.kind(of)[0] == "scalar":
                lines.append(f"{to} = CopyEach<{of}>({value}, memory, "
                             "[](auto number, Memory&) { return number; });")
                lines.append(f"to.{d.count_name(member)} = {value}.size();")
            elif kind == "duration":
                lines.append(f"{to}_ns = static_cast<std::uint64_t>({value}.count());")
            elif kind == "list" and name in block.listed("lists"):
                lines.append(f"{to} = ListOf<{d.lists[of].name}, {d.c_struct(of)}>({value}, memory);")
            elif kind == "list":
                lines.append(f"{to} = EachToC<{d.c_struct(of)}>({value}, memory);")
                lines.append(f"to.{d.count_name(member)} = {value}.size();")
            elif name in block.listed("apart"):
                lines.append(f"{to} = CopyOne(ToC({value}, memory), memory);")
            else:
                lines.append(f"{to} = ToC({value}, memory);")
        return lines + ["return to;"]

    def inward(self, block):
        d = self.description
        lines = [f"{block.name} to;"]
        source = "from."
        if block.has("sized"):
            lines += ["if (from == nullptr) return to;",
                      'const auto known = arguments.Options(from, "options");']
            source = "known."
        for member in d.members(block):
            kind, of = d.kind(member.type)
            name = member.name
            to, value = f"to.{name}", source + name
            if kind == "scalar":
                lines.append(f"{to} = {'PullId{' + value + '}' if of == 'PullId' else value};")
            elif kind == "enum":
                lines.append(f"{to} = {one_of(d, of, value, name)};")
            elif kind == "text":
                lines.append(f'{to} = arguments.String({value}, "{name}");')
            elif kind == "optional" and d.kind(of)[0] == "list":
                lines.append(f'if ({value} != nullptr) {{')
                lines.append(f'  {to} = ListFromC({value}->items, {value}->count, "{name}", arguments);')
                lines.append("}")
            elif kind == "optional":
                lines.append(f"{to} = FromCIfAny({value}, arguments);")
            elif kind == "list" and d.kind(of)[0] == "text":
                lines.append(f'{to} = arguments.Strings({value}, "{name}");')
            elif kind == "list" and d.kind(of)[0] == "scalar":
                lines.append(f'const auto {name} = arguments.Array({value}, '
                             f'{source}{d.count_name(member)}, "{name}");')
                lines.append(f"{to}.assign({name}.begin(), {name}.end());")
            elif kind == "list":
                lines.append(f'{to} = ListFromC({value}, {source}{d.count_name(member)}, "{name}", '
                             "arguments);")
            else:
                lines.append(f"{to} = FromC({value}, arguments);")
        return lines + ["return to;"]


def version_map(header):
    """What libwaybill_c.so exports: the functions of the header."""
    names = sorted(set(re.findall(r"^WAYBILL_API [^;]*?\b(waybill_\w+)\(", header, re.M | re.S)))
    return "\n".join([
        "/* What libwaybill_c.so exports, and since which version of its ABI: the functions of waybill.h.",
        " * Made by ./dev generate. */", "WAYBILL_1 {", "  global:",
        *(f"    {name};" for name in names), "  local:", "    *;", "};", ""])
