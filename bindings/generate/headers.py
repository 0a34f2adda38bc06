"""Reads the public C++ headers: structs, enumerations, functions, constants, and their comments.

It knows the plain form that these headers keep to, no more: a member or an enumerator a line, its
comment above it or behind it, functions as clang-format writes them."""
import glob
import re
from dataclasses import dataclass, field


@dataclass
class Member:
    type: str
    name: str
    comment: list
    starts_paragraph: bool = False


@dataclass
class Struct:
    name: str
    comment: list
    members: list = field(default_factory=list)

    def member(self, name):
        return next((m for m in self.members if m.name == name), None)


@dataclass
class Enumerator:
    name: str
    number: int
    comment: list


@dataclass
class Enum:
    name: str
    comment: list
    values: list = field(default_factory=list)


@dataclass
class Function:
    owner: str  # the class, or ""
    name: str
    result: str
    arguments: list  # (type, name)
    comment: list
    reads: bool = False  # a const member
    declared: list = field(default_factory=list)  # the arguments as they stand there


def sentence_parts(above, behind):
    """The lines of a comment above a member, and what stands behind it, as one comment."""
    if above and behind and above[-1] and above[-1][-1] not in ".:;,":
        above = above[:-1] + [above[-1] + "."]
    return above + ([behind] if behind else [])


def split_arguments(text):
    parts, depth, current = [], 0, ""
    for c in text:
        depth += (c in "<({") - (c in ">)}")
        if c == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += c
    parts.append(current)
    declared = [re.sub(r" = .*", "", part.strip()) for part in parts if part.strip()]
    arguments = []
    for part in parts:
        part = re.sub(r" = .*", "", part.strip())
        if m := re.match(r"(.*?)[ &]+(\w+)$", part):
            type_ = re.sub(r"^const ", "", m[1]).rstrip("& ")
            arguments.append((type_, m[2]))
    return arguments, declared


class Reader:
    def __init__(self, api, text):
        self.api, self.lines, self.at = api, text.split("\n"), 0
        self.above, self.classes, self.paragraph = [], [], False

    def line(self):
        self.at += 1
        return self.lines[self.at - 1]

    def read(self):
        while self.at < len(self.lines):
            raw = self.line()
            code = raw.strip()
            if not code:
                self.above, self.paragraph = [], True
            elif code.startswith("//"):
                if not re.match(r"// (---|NOLINT)", code):
                    self.above.append(re.sub(r"^// ?", "", code))
            elif m := re.match(r"enum class (\w+)[^{;]*\{(.*)$", code):
                self.enum(m[1], m[2])
            elif m := re.match(r"(?:struct|class) (?:\[\[.*\]\] )?(\w+)(?: : public \w+)? \{$", code):
                name = "::".join([c.name for c in self.classes] + [m[1]])
                struct = Struct(name, self.take())
                self.api.structs[name] = struct
                self.classes.append(struct)
            elif code == "};" and self.classes and raw == "  " * (len(self.classes) - 1) + "};":
                self.classes.pop()
            elif re.match(r"(#|public:|private:|protected:|namespace|\}|template|friend)", code):
                if code.startswith("friend"):
                    self.statement(code)
                self.take()
            else:
                self.declaration(code)

    def take(self):
        above, self.above, self.paragraph = self.above, [], False
        return above

    def statement(self, code):
        """Up to its end: (what it says, the comment behind it)."""
        text, behind = "", ""
        while True:
            if (m := re.match(r"(.*?)\s*//\s?(.*)$", code)) and '"' not in m[1]:
                code, behind = m[1], (behind + " " + m[2]).strip()
            text = (text + " " + code).strip()
            closed = all(text.count(a) == text.count(b) for a, b in ("{}", "()"))
            if closed and (text.endswith(";") or text.endswith("}")):
                break
            code = self.line().strip()
        while behind and re.match(r"\s{12,}//", self.lines[self.at]):
            behind += " " + re.sub(r"^\s*// ?", "", self.line())
        return text, behind

    def enum(self, name, rest):
        name = "::".join([c.name for c in self.classes] + [name])
        enum = Enum(name, self.take())
        self.api.enums[name] = enum
        number = -1
        if rest.endswith("};"):
            for value in rest[:-2].split(","):
                name, _, given = value.strip().partition(" = ")
                number = int(given) if given else number + 1
                enum.values.append(Enumerator(name, number, []))
            return
        while (code := self.line().strip()) != "};":
            if code.startswith("//"):
                continuation = re.match(r"\s{12,}//", self.lines[self.at - 1]) and not self.above
                if continuation and enum.values:
                    enum.values[-1].comment.append(re.sub(r"^// ?", "", code))
                else:
                    self.above.append(re.sub(r"^// ?", "", code))
            elif m := re.match(r"(k\w+)(?: = (\d+))?,?\s*(?://\s*(.*))?$", code):
                number = int(m[2]) if m[2] else number + 1
                enum.values.append(
                    Enumerator(m[1], number, sentence_parts(self.take(), m[3] or "")))
            elif code:
                raise SystemExit(f"enum {name}: this line is no enumerator: {code}")

    def declaration(self, code):
        above, paragraph = self.above, self.paragraph
        text, behind = self.statement(code)
        self.take()
        owner = self.classes[-1].name if self.classes else ""
        if m := re.match(r"inline constexpr [\w:]+ (k\w+)(?: = |\{)(.*?)\}?;$", text):
            self.api.constants[m[1]] = m[2]
        elif m := re.match(r"(?:virtual |static |inline )*([\w:<>,* ]+?)[ &]+(\w+)\((.*)\)"
                           r"( const)?(?: = 0)?(?:;| \{.*\})$", text):
            if "operator" not in text and not text.startswith(("using", "explicit", "std::function")):
                arguments, declared = split_arguments(m[3])
                function = Function(owner, m[2], m[1], arguments, sentence_parts(above, behind),
                                    bool(m[4]), declared)
                self.api.functions.setdefault((owner, m[2]), function)
        elif self.classes and (m := re.match(r"([\w:<>, ]+?) (\w+)(?:\{.*\}| = .*)?;$", text)):
            if not text.startswith(("static", "using", "inline")):
                nested = f"{owner}::{m[1]}"
                type_ = nested if nested in self.api.enums else m[1]
                self.classes[-1].members.append(
                    Member(type_, m[2], sentence_parts(above, behind), paragraph))


class Api:
    def __init__(self, include):
        self.structs, self.enums, self.functions, self.constants = {}, {}, {}, {}
        for path in sorted(glob.glob(include + "/*.h")):
            with open(path, encoding="utf-8") as file:
                Reader(self, file.read()).read()

    def function(self, name):
        owner, _, name = name.rpartition("::")
        return self.functions[(owner, name)]
