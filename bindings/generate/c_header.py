"""Writes waybill.h out of waybill.h.in and the C++ headers."""
import re

from description import SCALARS, Described
from words import Words, snake

WIDTH = 100


class CWords(Words):
    null = "NULL"

    def __init__(self, api, description):
        super().__init__(api)
        self.description = description

    def struct(self, name):
        return self.description.c_struct(name)

    def enum(self, name):
        block = self.description.enums.get(name)
        return (block.positional[0] + "…") if block else name

    def member_of(self, struct, name):
        if (struct, name) == ("ImageOnNode", "imported"):
            return "waybill_image_list.imported"
        member = self.api.structs[struct].member(name)
        unit = re.search(r"chrono::(nanoseconds|milliseconds|seconds)", member.type)
        suffix = {"nanoseconds": "_ns", "milliseconds": "_ms"}.get(unit[1], "_seconds") if unit else ""
        return f"{self.struct(struct)}.{name}{suffix}"

    def enumerator(self, enum, value):
        return self.description.c_enumerator(enum, value)

    def function(self, owner, name):
        return self.description.c_function(self.api.functions[(owner, name)])

    def quoted(self, name):
        return f"`{name}`"

    def named_constant(self, name):
        return "WAYBILL_" + snake(name[1:]).upper()


def wrap(text, width, indent):
    """Lines of at most `width` columns: paragraphs, but lines that begin with spaces as they are."""
    lines, current = [], ""

    def flush():
        nonlocal current
        if current:
            lines.append(current)
        current = ""

    for line in text.split("\n"):
        if line.startswith("  ") or not line.strip():
            flush()
            lines.append(line.rstrip())
            continue
        for word in line.split(" "):
            if current and len(indent) + len(current) + 1 + len(word) > width:
                flush()
            current = f"{current} {word}" if current else word
    flush()
    return lines


def block_comment(text, indent=""):
    """A comment of C, `/* … */`."""
    text = text.strip()
    if not text:
        return []
    if len(indent) + len(text) + 6 <= WIDTH and "\n" not in text:
        return [f"{indent}/* {text} */"]
    lines = wrap(text, WIDTH - 3, indent)
    out = [f"{indent}/* {lines[0]}"] + [f"{indent} * {line}".rstrip() for line in lines[1:]]
    if len(out[-1]) + 3 <= WIDTH:
        out[-1] += " */"
    else:
        out.append(f"{indent} */")
    return out


def rows(members):
    """Members with their comments: behind them if there is room once clang-format has aligned them,
    or else above. `members`: [(code, comment, starts a paragraph)]."""
    out, at = [], 0
    while at < len(members):
        code, comment, paragraph = members[at]
        if paragraph and out:
            out.append("")
        if not comment:
            out.append("  " + code)
            at += 1
            continue
        # As many as fit beside each other.
        width, run = 0, []
        for other, words, starts in members[at:]:
            if not words or (run and starts):
                break
            wider = max(width, len(other))
            if any(2 + wider + 1 + len(w) + 6 > WIDTH for w in [*(w for _, w in run), words]):
                break
            width = wider
            run.append((other, words))
        if not run:
            out += block_comment(comment, "  ") + ["  " + code]
            at += 1
            continue
        out += [f"  {c} /* {w} */" for c, w in run]
        at += len(run)
    return out


def joined(text, more):
    """Two parts of a member's comment."""
    if not text or not more:
        return text or more
    return f"{text} {more}" if text.endswith(".") else f"{text}; {more}"


class Header:
    def __init__(self, api, description):
        self.api, self.description = api, description
        self.words = CWords(api, description)

    def text(self):
        out = []
        blocks = iter(self.description.blocks)
        for block in blocks:
            if isinstance(block, Described):
                if block.kind == "members":
                    out += self.by_hand(block, blocks)
                else:
                    out += getattr(self, block.kind)(block)
            else:
                out.append(block)
        return "\n".join(out)

    def type_of(self, type_):
        kind, of = self.description.kind(type_)
        if kind == "scalar":
            return SCALARS[of][0]
        if kind in ("text", "path"):
            return "waybill_string"
        return "int32_t" if kind == "enum" else self.description.c_struct(of)

    def declared(self, block, member):
        """The members of C that stand for one of C++: [code]."""
        kind, of = self.description.kind(member.type)
        empty = " WAYBILL_EMPTY" if block.has("initialised") else ""
        name = member.name
        if kind == "list":
            if self.description.kind(of)[0] == "text":
                return [f"waybill_strings {name}{empty};"]
            if of in self.description.lists and name in block.listed("lists"):
                return [f"{self.description.lists[of].name} {name}{empty};"]
            return [f"const {self.type_of(of)}* {name}{empty};",
                    f"size_t {self.description.count_name(member)}{empty};"]
        if kind == "optional":
            inner, element = self.description.kind(of)
            if inner == "list" and element in self.description.lists:
                return [f"const {self.description.lists[element].name}* {name};"]
            return [f"const {self.type_of(of)}* {name}{empty};"]
        if kind == "array":
            return [f"{self.type_of(of[0])} {name}[{of[1]}];"]
        if kind == "duration":
            unit = {"seconds": "seconds", "nanoseconds": "in_ns", "milliseconds": "ms"}[of]
            return [f"uint64_t {name}{'_ns' if of == 'nanoseconds' else '_' + unit};"]
        if name in block.listed("apart"):
            return [f"const {self.type_of(member.type)}* {name};"]
        return [f"{self.type_of(member.type)} {name}{empty};"]

    def note(self, block, member):
        """A member's comment in C."""
        text = " ".join(self.words.text(member.comment).split("\n")).strip()
        kind, of = self.description.kind(member.type)
        if kind == "optional" and "NULL" not in text:
            text = joined(text, "NULL: none")
        if member.name in block.listed("apart"):
            text = joined(text, "never NULL")
        if kind == "enum" and of in self.description.enums:
            which = self.words.enumerator(self.api.enums[of], self.api.enums[of].values[0])
            text = joined(f"{which} …", text)
        return text

    def struct(self, block):
        name = self.description.c_struct(block.name)
        members = [("size_t struct_size;", "", False)] if block.has("sized") else []
        for member in self.description.members(block):
            codes = self.declared(block, member)
            members.append((codes[0], self.note(block, member), member.starts_paragraph))
            members += [(code, "", False) for code in codes[1:]]
        comment = block_comment(self.words.text(block.thing.comment + block.more))
        out = comment + [f"typedef struct {name} {{"] + rows(members) + [f"}} {name};"]
        if block.has("sized"):
            out.append(f"#define {name.upper()}_INIT WAYBILL_INIT({name})")
        return out

    def list(self, block):
        element = self.description.c_struct(block.positional[0])
        return [f"typedef struct {block.name} {{", f"  const {element}* items;",
                "  size_t count;", f"}} {block.name};"]

    def enum(self, block):
        enum, values = block.thing, []
        if first := block.options.get("first"):
            values.append((f"{block.positional[0]}{first} = 0", "", False))
        for value in enum.values:
            text = " ".join(self.words.text(value.comment, enum).split("\n"))
            values.append((f"{self.words.enumerator(enum, value)} = {value.number}", text, False))
        values = [(code + ("," if i + 1 < len(values) else ""), text, gap)
                  for i, (code, text, gap) in enumerate(values)]
        comment = block_comment(self.words.text(enum.comment + block.more, enum))
        head = ([f"typedef int32_t {block.options['c']};"] if "c" in block.options else [])
        one_line = "enum { " + " ".join(code for code, _, _ in values) + " };"
        if len(one_line) <= WIDTH and not any(text for _, text, _ in values):
            out = comment + head + [one_line]
        else:
            out = comment + head + ["enum {"] + rows(values) + ["};"]
        return out + self.names(block)

    def names(self, block):
        """The functions that name an enumerator, and read it."""
        if not (function := block.name_function()):
            return []
        named = self.api.functions[("", block.name + "Name")]
        argument = named.arguments[0][1]
        out = block_comment(self.words.text(named.comment, block.thing))
        out.append(f"WAYBILL_API waybill_string {function}(int32_t {argument});")
        if block.has("parse"):
            out += block_comment("The inverse. WAYBILL_INVALID_ARGUMENT for any other spelling.")
            out += declaration(f"waybill_parse_{snake(block.name)}", [
                "waybill_string name", f"int32_t* {argument}", "waybill_error** error"])
        return out

    def doc(self, block):
        function = self.api.function(block.name)
        text = self.words.text(function.comment)
        more = " ".join([" ".join(block.positional), *block.more]).strip()
        return block_comment((text + ("\n" if text and more else "") + more))

    def call(self, block):
        from c_calls import CallShape
        shape = CallShape(self.description, block)
        text = self.words.text(block.thing.comment)
        if shape.result == "bool" and "Returns whether" in text:
            null = " (may be NULL)" if shape.optional else ""
            text = text.replace("Returns whether", f"*{shape.out}{null} says whether")
        comment = block_comment("\n".join([text, *shape.remarks(), *block.more]))
        return comment + declaration(shape.name, shape.parameters())

    def by_hand(self, block, lines):
        """A struct of waybill.h.in: its members get the comments that they lack."""
        struct = block.thing
        members, out, above = [], [], []
        if block.has("comment"):
            out += block_comment(self.words.text(struct.comment))
        for line in lines:
            if above or line.startswith("  /*"):
                above.append(line)
                if line.endswith("*/"):
                    text = " ".join(re.sub(r"^ +(/\*|\*) ?| ?\*/$", "", part) for part in above)
                    members.append(("", text, False))
                    above = []
            elif m := re.match(r"  (.*;)(?:\s*/\* (.*) \*/)?$", line):
                name = re.search(r"(\w+?)(?:_seconds|_ns|_ms)?(?:\[.*\])?(?: WAYBILL_EMPTY)?;",
                                 m[1])[1]
                member = struct.member(name)
                comment = m[2] or ("" if member is None else self.note(block, member))
                if members and not members[-1][0]:
                    comment = members.pop()[1]
                members.append((m[1], comment, False))
            elif line.startswith("}"):
                return out + rows(members) + [line]
            else:
                out.append(line)
        return out


def declaration(name, parameters):
    return [f"WAYBILL_API WAYBILL_MUST_CHECK waybill_code {name}({', '.join(parameters)});"]
