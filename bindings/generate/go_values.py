"""Writes the types, conversions and methods of the Go binding."""
import re

from c_calls import BY_VALUE, HANDLES, RESULTS_BY_VALUE, CallShape
from description import SCALARS, camel, go_member
from words import Words, snake

RECEIVERS = {"NodeStore": "Store", "OwnerCalls": "Store"}  # other classes have the same name in Go

# Where a comment of C++ names a section of its header, Go names a method.
# What has another name or place in Go.
ELSEWHERE = {"[ReasonText]": "[Reason.Text]", "([HintText])": "([Hint.String])",
             "[CheckStreamingRequest]": "[StreamingRequest.Check]",
             "[CredentialSource]": "source of credentials",
             "[ImageOnNode.Imported]": "[ImageList.Imported]"}
SECTIONS = {'as in "Recording a pull"': "as of [Store.RecordPullIntent]",
            'Errors of reading as in "Whole records"': "Errors as of [Store.GetRecord]",
            'as in "Whole records"': "as of [Store.GetRecord]"}


class GoWords(Words):
    null = "nil"

    def __init__(self, api, description):
        super().__init__(api)
        self.description = description
        self.arguments = ()
        self.members = ()

    def struct(self, name):
        return f"[{self.description.go_type(name)}]"

    enum = struct

    def member_of(self, struct, name):
        if struct == "ChangeOptions":
            return f"[{go_member(name)}]"
        return f"[{self.description.go_type(struct)}.{go_member(name)}]"

    def enumerator(self, enum, value):
        if enum.name == "ErrorCode":
            return "Err" + camel(snake(value.name[1:]))
        return self.description.go_enumerator(enum, value)

    def function(self, owner, name):
        calls = self.description.calls
        block = calls.get((owner, name)) or calls.get(("NodeStore", name))
        given = block.options.get("go", "-") if block else "-"
        receiver = RECEIVERS.get(owner, owner)
        return f"[{receiver}{'.' if receiver else ''}{go_function(name) if given == '-' else given}]"

    def quoted(self, name):
        first, *rest = name.split(".")
        if first in self.arguments:
            first = argument(first)
        elif first in self.members:
            first = go_member(first)
        elif not rest:
            return name
        return ".".join([first, *(go_member(r) for r in rest)])

    def named_constant(self, name):
        return camel(snake(name[1:]))

    def text(self, comment, enum=None, null=None):
        text = super().text(comment, enum, null)
        for there, here in (ELSEWHERE | SECTIONS).items():
            text = text.replace(there, here)
        return re.sub(r"(?<![`\w])(copy|image|record|result|options|what|who|request)\.([a-z]\w*)",
                      lambda m: f"{m[1]}.{go_member(m[2])}", text)


def argument(name):
    if name == "time":  # the package
        return "t"
    words = camel(name)
    return words[0].lower() + words[1:] if not words.startswith(("ID", "UID", "URL")) else (
        words.lower())


def go_function(name):
    return camel(snake(name))


def comment(text, indent=""):
    lines = []
    for line in text.strip().split("\n"):
        if line.startswith("  ") or not line:
            lines.append(f"{indent}// {line}".rstrip())
            continue
        current = ""
        for word in line.split(" "):
            if current and len(indent) * 4 + 3 + len(current) + 1 + len(word) > 100:
                lines.append(f"{indent}// {current}")
                current = word
            else:
                current = f"{current} {word}" if current else word
        lines.append(f"{indent}// {current}")
    return lines


def joined(text):
    """Paragraphs on a line each, so that they are broken anew; tables as they are."""
    out = []
    for line in text.split("\n"):
        plain = line and not line.startswith(" ")
        if out and plain and out[-1] and not out[-1].startswith(" "):
            out[-1] += " " + line
        else:
            out.append(line)
    return "\n".join(out)


def introduced(name, text, returns=False):
    """A comment of Go begins with the name of what it is about. `returns`: that is a function."""
    text = joined(text.strip())
    if not text:
        return ""
    first, _, rest = text.partition(" ")
    low = first[0].lower() + first[1:]
    if returns and (first in ("The", "A", "An") or first.startswith('"')):
        return f"{name} returns {low} {rest}"
    if first in ("What", "Which", "Why", "Whether", "How", "When", "Who", "Where"):
        return f"{name} says {low} {rest}"
    if first in ("A", "An"):
        return f"{name} is {low} {rest}"
    if re.fullmatch(r"[A-Z][a-z]+s", first) and first not in ("Coordinates", "This", "Ranges"):
        return f"{name} {low} {rest}"
    return f"{name}: {low if first in ('The', 'Coordinates', 'Ranges') else first} {rest}"


class GoValues:
    def __init__(self, api, description):
        self.api, self.description = api, description
        self.words = GoWords(api, description)

    def types(self):
        out = ["// Code generated by ./dev generate from the headers of the C++ library. DO NOT EDIT.", "",
               "package waybill", "", '// #include "shim.h"', 'import "C"', "",
               "import (", '\t"time"', '\t"unsafe"', ")"]
        for block in self.description.enums.values():
            if block.options.get("go") != "-":
                out += ["", *self.enum(block), *self.parser(block)]
        for block in self.description.structs.values():
            if block.kind != "struct" or block.options.get("go") == "-":
                continue
            if block.has("out") or block.has("in"):
                out += ["", *self.struct(block)]
                out += ["", *self.outward(block)] if block.has("out") else []
                out += ["", *self.inward(block)] if block.has("in") else []
        for element, block in self.description.lists.items():
            described = self.description.structs[element]
            out += ["", *self.list(block)] if described.has("in") else []
            out += ["", *self.from_list(block)] if described.has("out") else []
        return "\n".join(out) + "\n"

    # --- Types ------------------------------------------------------------------------------------

    def type_of(self, type_):
        kind, of = self.description.kind(type_)
        if kind == "scalar":
            return SCALARS[of][1]
        if kind in ("text", "path"):
            return "string"
        if kind == "list":
            return "[]" + self.type_of(of)
        if kind == "optional":
            if of == "Timestamp":
                return "time.Time"
            return self.type_of(of) if of.startswith("std::vector") else "*" + self.type_of(of)
        if kind == "array":
            return f"[{of[1]}]".replace("][", "][") + self.type_of(of[0])
        if kind == "duration" or type_ == "Timestamp":
            return "time.Duration" if kind == "duration" else "time.Time"
        return self.description.go_type(of)

    def note(self, member):
        null = "zero" if member.type == "std::optional<Timestamp>" else None
        text = joined(self.words.text(member.comment, null=null))
        return text[:-1] if text.endswith(".") and ". " not in text else text

    def struct(self, block):
        name = self.description.go_type(block.name)
        self.words.members = [m.name for m in block.thing.members]
        text = introduced(name, self.words.text(block.thing.comment))
        out = comment(text) if text else []
        out.append(f"type {name} struct {{")
        for member in self.description.members(block):
            field, note = f"{go_member(member.name)} {self.type_of(member.type)}", self.note(member)
            if not note:
                out.append("\t" + field)
            elif len(note) <= 60:
                out.append(f"\t{field} // {note}")
            else:
                out += comment(note, "\t") + ["\t" + field]
        return out + ["}"]

    def enum(self, block):
        enum, name = block.thing, self.description.go_type(block.name)
        text = introduced(name, self.words.text(enum.comment, enum))
        out = (comment(text) if text else []) + [f"type {name} {block.options.get('gotype', 'int32')}", "", "const ("]
        for value in enum.values:
            go, c = self.description.go_enumerator(enum, value), self.description.c_enumerator(enum, value)
            if go == "-":
                continue
            note = joined(self.words.text(value.comment, enum))
            note = note[:-1] if note.endswith(".") and ". " not in note else note
            line = f"\t{go} {name} = C.{c}"
            if note and len(line) + len(note) <= 105:
                out.append(f"{line} // {note}")
            else:
                out += (comment(f"{go}: {note}", "\t") if note else []) + [line]
        out.append(")")
        if (names := block.options.get("names")) == "-":
            return out
        short = name[0].lower()
        if names:
            made = f'nameOr(C.{names}(C.int32_t({short})), "{name}", int64({short}))'
            said = f"the name of {'an' if name[0] in 'AEIOU' else 'a'} {name}, as the library spells it"
        else:
            words = dict.fromkeys(range(enum.values[-1].number + 1), "")
            given = block.listed("words")
            for i, value in enumerate(enum.values):
                words[value.number] = given[i] if given else value.name[1].lower() + value.name[2:]
            listed = ", ".join(f'"{w}"' for w in words.values())
            made = f'word(int64({short}), "{name}", {listed})'
            shown = [f'"{w}"' for w in words.values() if w]
            said = ", ".join(shown[:-1]) + " or " + shown[-1]
        return out + ["", f"// String returns {said}.", f"func ({short} {name}) String() string {{",
                      f"\treturn {made}", "}"]

    def parser(self, block):
        """Reads an enumerator's name."""
        if not block.has("parse"):
            return []
        go = self.description.go_type(block.name)
        return ["", f"// Parse{go} is the inverse of String; ErrInvalidArgument for any other spelling.",
                f"func Parse{go}(name string) ({go}, error) {{", "\tvar out C.int32_t",
                "\tvar e *C.waybill_error",
                f"\tcode := C.waybill_parse_{snake(block.name)}(borrow(name), &out, &e)",
                f"\treturn {go}(out), takeError(code, e)", "}"]

    # --- Conversions ------------------------------------------------------------------------------

    def c_type(self, name):
        return "C." + self.description.c_struct(name)

    def c_field(self, name):
        return "_" + name if name in ("import", "type", "range", "func", "map") else name

    def outward(self, block):
        d, name = self.description, self.description.go_type(block.name)
        lines = [f"func go{name}(c *{self.c_type(block.name)}) {name} {{", f"\treturn {name}{{"]
        for member in d.members(block):
            kind, of = d.kind(member.type)
            c = "c." + self.c_field(member.name)
            if kind == "scalar":
                value = f"{SCALARS[of][1]}({c})"
            elif kind == "enum":
                value = f"{d.go_type(of)}({c})"
            elif kind in ("text", "path"):
                value = f"goString({c})"
            elif kind == "list" and d.kind(of)[0] == "text":
                value = f"goStrings({c})"
            elif kind == "list" and d.kind(of)[0] == "scalar":
                c_name, go = SCALARS[of]
                value = (f"goList({c}, c.{d.count_name(member)}, "
                         f"func(n *C.{c_name}) {go} {{ return {go}(*n) }})")
            elif kind == "duration":
                value = f"time.Duration({c}_ns)"
            elif kind == "list" and member.name in block.listed("lists"):
                value = f"goList({c}.items, {c}.count, go{d.go_type(of)})"
            elif kind == "list":
                value = f"goList({c}, c.{d.count_name(member)}, go{d.go_type(of)})"
            elif member.type == "std::optional<Timestamp>":
                value = f"goTimeOrZero({c})"
            elif kind == "optional":
                value = f"goIfAny({c}, go{d.go_type(of)})"
            elif kind == "array":
                value = f"*(*{self.type_of(member.type)})(unsafe.Pointer(&{c}))"
            elif member.type == "Timestamp":
                value = f"goTime({c})"
            else:
                value = f"go{d.go_type(of)}({'' if member.name in block.listed('apart') else '&'}{c})"
            lines.append(f"\t\t{go_member(member.name)}: {value},")
        return lines + ["\t}", "}"]

    def inward(self, block):
        d, name, c_type = self.description, self.description.go_type(block.name), self.c_type(
            block.name)
        lines = []
        if block.has("sized"):
            lines.append("c.struct_size = C.size_t(unsafe.Sizeof(c))")
        for member in d.members(block):
            kind, of = d.kind(member.type)
            go, c = "from." + go_member(member.name), "c." + self.c_field(member.name)
            if kind == "scalar":
                c_name = SCALARS[of][0]
                lines.append(f"{c} = C.{c_name}({go})")
            elif kind == "enum":
                lines.append(f"{c} = C.int32_t({go})")
            elif kind == "text":
                lines.append(f"{c} = a.string({go})")
            elif kind == "list" and d.kind(of)[0] == "text":
                lines.append(f"{c} = a.strings({go})")
            elif kind == "list" and d.kind(of)[0] == "scalar":
                c_name, go_name = SCALARS[of]
                lines.append(f"{c}, c.{d.count_name(member)} = cList(a, {go}, "
                             f"func(_ *arena, n *{go_name}) C.{c_name} {{ return C.{c_name}(*n) }})")
            elif kind == "list":
                lines.append(f"{c}, c.{d.count_name(member)} = cList(a, {go}, c{d.go_type(of)})")
            elif member.type == "std::optional<Timestamp>":
                lines.append(f"{c} = a.time({go})")
            elif kind == "optional" and d.kind(of)[0] == "list":
                lines.append(f"{c} = listOrNil(a, {go}, {self.list_converter(d.kind(of)[1])})")
            elif kind == "optional":
                lines.append(f"{c} = cIfAny(a, {go}, c{d.go_type(of)})")
            elif member.type == "Timestamp":
                lines.append(f"{c} = cTime({go})")
            elif member.type == "BootTime":
                lines.append(f"{c} = cBootTime({go})")
            else:
                lines.append(f"{c} = c{d.go_type(of)}(a, &{go})")
        arena = "a" if any(re.search(r"\ba\b", line) for line in lines) else "_"
        return [f"func c{name}({arena} *arena, from *{name}) (c {c_type}) {{",
                *("\t" + line for line in lines), "\treturn c", "}"]

    def list_converter(self, element):
        return "c" + camel(self.description.lists[element].name[len("waybill_"):])

    def list(self, block):
        element = block.positional[0]
        return [f"func {self.list_converter(element)}(a *arena, from []{self.description.go_type(element)}) "
                f"(c C.{block.name}) {{",
                f"\tc.items, c.count = cList(a, from, c{self.description.go_type(element)})",
                "\treturn c", "}"]

    def from_list(self, block):
        go = self.description.go_type(block.positional[0])
        name = camel(block.name[len("waybill_"):])
        return [f"func go{name}(l *C.{block.name}) []{go} {{",
                f"\treturn goList(l.items, l.count, go{go})", "}"]

    # --- Methods ----------------------------------------------------------------------------------

    def methods(self):
        out = ["// Code generated by ./dev generate from the headers of the C++ library. DO NOT EDIT.", "",
               "package waybill", "", '// #include "shim.h"', 'import "C"', "",
               "import (", '\t"time"', ")"]
        for block in self.description.calls.values():
            if block.options.get("go") != "-":
                out += ["", *self.method(block)]
        return "\n".join(out) + "\n"

    def passed(self, type_, name):
        """(parameter of Go, argument of C)."""
        d = self.description
        kind, of = d.kind(type_)
        if type_ == "ChangeOptions":
            return "options ...ChangeOption", "cChangeOptions(&a, options)"
        if kind == "text" and name == "json":
            return "json []byte", "borrowBytes(json)"
        if kind == "path":
            return f"{name} string", f"borrow({name})"
        parameter = f"{name} {self.type_of(type_)}"
        if kind == "scalar":
            return parameter, f"C.{SCALARS[of][0]}({name})"
        if kind == "enum":
            return parameter, f"C.int32_t({name})"
        if kind == "text":
            return parameter, f"borrow({name})"
        if kind == "list" and d.kind(of)[0] == "text":
            return parameter, f"a.strings({name})"
        if kind == "list":
            made = f"{self.list_converter(of)}(&a, {name})"
            return parameter, f"put(&a, {made})" if of == "RuntimeHandler" else made
        if type_ == "Timestamp":
            return parameter, f"cTime({name})"
        if type_ in ("ImageCopy", "CredentialName"):
            borrowed = {"ImageCopy": "borrowCopy", "CredentialName": "borrowName"}[type_]
            return parameter, f"{borrowed}(&{name})"
        if type_ in BY_VALUE:
            return parameter, f"c{d.go_type(of)}({name})"
        return parameter, f"put(&a, c{d.go_type(of)}(&a, &{name}))"

    def method(self, block):
        d, shape = self.description, CallShape(self.description, block)
        function = block.thing
        name = block.options.get("go", go_function(function.name))
        self.words.arguments = [n for _, n in block.arguments()]
        text = introduced(name, self.words.text(function.comment), returns=True)
        self.words.arguments = ()
        more = ("Errors" if "Err" not in text else "Further errors")
        if not function.owner:
            text += "" if "Err" in text else " ErrOutOfMemory."
        elif function.owner == "NodeStore" and "rrors as of" not in text:
            of = "GetRecord" if function.reads else "RecordPullIntent"
            text += f" {more} as of [Store.{of}]."
        parameters, before, passed = [], [], []
        for type_, argument_name in block.arguments():
            go = argument(argument_name)
            parameter, value = self.passed(type_, go)
            parameters.append(parameter)
            if value.startswith(("borrow", "C.", "cTime")):
                passed.append(value)
                continue
            before.append(f"{go}In := {value}")
            passed.append(f"{go}In")
        if any("&a" in b or "a.strings" in b for b in before):
            before = ["var a arena", "defer a.free()", *before]
        result, take = self.result(shape)
        receiver = RECEIVERS.get(function.owner, function.owner)
        receiver = f"(s *{receiver}) " if receiver else ""
        out = comment(text)
        out.append(f"func {receiver}{name}({', '.join(parameters)}) "
                   f"{f'({result}, error)' if result else 'error'} {{")
        out += ["\t" + b for b in before]
        passed = [*passed, "&out"] if result else passed
        if result:
            star = "*" if shape.out_type.endswith("**") else ""
            out.append(f"\tvar out {star}C.{shape.out_type.rstrip('*')}")
        if not function.owner:
            call = f"C.{shape.name}({', '.join([*passed, '&e'])})"
            return out + ["\tvar e *C.waybill_error", f"\tcode := {call}",
                          f"\treturn {take + ', ' if result else ''}takeError(code, e)", "}"]
        handle = "handle" if function.owner == "NodeStore" else "*C." + HANDLES[function.owner]
        out += [f"\t{'err := ' if result else 'return '}s.call(func(h {handle}, e errorOut) "
                "C.waybill_code {",
                f"\t\treturn C.{shape.name}({', '.join(['h', *passed, 'e'])})", "\t})"]
        return out + ([f"\treturn {take}, err"] if result else []) + ["}"]

    def result(self, shape):
        d = self.description
        if shape.result == "void":
            return None, None
        if shape.result_kind == "scalar":
            go = SCALARS[shape.result_of][1]
            return go, f"{go}(out)"
        if shape.result_kind == "text":
            return ("[]byte", "takeBytes(out)") if shape.out == "json" else (
                "string", "takeString(out)")
        if shape.result_kind == "list" and d.kind(shape.result_of)[0] == "text":
            return "[]string", "take(out, goStringsOf)"
        if shape.result_of in RESULTS_BY_VALUE:
            return d.go_type(shape.result_of), f"go{d.go_type(shape.result_of)}(&out)"
        if shape.result_kind == "list":
            name = camel(d.lists[shape.result_of].name[len("waybill_"):])
            return f"[]{d.go_type(shape.result_of)}", f"take(out, go{name})"
        go = d.go_type(shape.result_of)
        return go, f"take(out, go{go})"
