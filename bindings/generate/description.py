"""The directives of waybill.h.in: what of the C++ API C and Go have, and under which names.

  @struct NAME [WORD…]        the struct, with its comment. Words:
      c=NAME go=NAME          its names, where they do not follow from the C++ name; go=- by hand
      skip=A,B                members that C does not have
      apart=A,B               members that are pointers in C, so that their structs can grow
      sized                   it begins with struct_size
      initialised             C++20 may leave out any member of a designated initialiser
      in                      it is an argument; both=… : argument and result; none: by hand
  @list NAME ELEMENT          a struct with items and their count
  @enum NAME PREFIX [WORD…]   an enumeration; its enumerators begin with PREFIX in C. Words:
      first=NAME kX=NAME      one that C++ lacks, 0; an enumerator's name
      go=NAME goprefix=PREFIX go.kX=NAME gotype=TYPE    names and type in Go; go.kX=- leaves one out
      names=FUNCTION words=A,B    what its String returns: FUNCTION of C, which is made, these, or
                              (names=-) what is written by hand
      parse                   C and Go can also read its names
  @doc FUNCTION [TEXT]        the comment of a C++ function, and TEXT
  @call [CLASS::]FUNCTION [WORD…]   comment and declaration of a method of NodeStore or CLASS, or of
                              a function; the functions of C and Go are made, too. Words:
      c=NAME go=NAME          its names, where they do not follow from the C++ name; go=- by hand
      out=NAME                the argument of C for its result
      without=NAME            an argument that has its default
      wipes                   the result's memory is wiped before it is freed
  @members STRUCT             the struct that follows is by hand: comments that its members lack
                              are those of the C++ struct
"""
import re
from dataclasses import dataclass, field

from words import camel_words, snake

INITIALS = {"id": "ID", "uid": "UID", "url": "URL", "api": "API", "ids": "IDs", "uids": "UIDs",
            "io": "IO", "os": "OS", "lmdb": "LMDB", "gids": "GIDs", "uuid": "UUID", "tty": "TTY",
            "sha256": "SHA256", "https": "HTTPS", "http": "HTTP", "websockets": "WebSockets"}
GO_MEMBERS = {"namespace_name": "Namespace", "last_updated": "LastUpdatedTime", "std_in": "Stdin",
              "std_out": "Stdout", "std_err": "Stderr", "mustpull_checks": "MustPullChecks",
              "ondisk_pullintents": "OnDiskPullIntents",
              "ondisk_pulledrecords": "OnDiskPulledRecords",
              "inmemory_pullintents_usage_percent": "InMemoryPullIntentsUsagePercent",
              "inmemory_pulledrecords_usage_percent": "InMemoryPulledRecordsUsagePercent"}


def camel(name):
    return "".join(INITIALS.get(w, w.capitalize()) for w in name.lower().split("_"))


def go_member(name):
    return GO_MEMBERS.get(name) or camel(name)


@dataclass
class Described:
    """A directive, and what it names."""
    kind: str
    name: str
    positional: list
    options: dict
    more: list = field(default_factory=list)  # lines of text that follow it
    thing: object = None

    def has(self, word):
        return word in self.positional

    def may_be_null(self):
        """Options, which a function of C may be called without."""
        return self.has("sized") or (self.kind == "members" and self.name.endswith(("Options", "List")))

    def name_function(self):
        """The function of C that names an enumerator; None: there is none, or it is by hand."""
        function = self.options.get("names")
        return function if function != "-" else None

    def arguments(self):
        """Of a call: (type, name) of what it is given."""
        return [(t, n) for t, n in self.thing.arguments if n not in self.listed("without")]

    def listed(self, key):
        return self.options[key].split(",") if key in self.options else []


class Description:
    def __init__(self, api, text):
        self.api, self.blocks = api, []
        self.structs, self.enums, self.lists, self.calls = {}, {}, {}, {}
        lines = text.split("\n")
        for line in lines:
            if not line.startswith("@"):
                self.blocks.append(line)
                continue
            if line.startswith("@ "):
                self.blocks[-1].more.append(line[2:])
                continue
            kind, name, *rest = line[1:].split(" ")
            options = dict(w.split("=", 1) for w in rest if "=" in w) if kind != "doc" else {}
            words = [w for w in rest if "=" not in w] if kind != "doc" else rest
            block = Described(kind, name, words, options)
            self.blocks.append(block)
            if kind in ("struct", "members"):
                block.thing = api.structs[name]
                self.structs[name] = block
            elif kind == "enum":
                block.thing = api.enums[name]
                self.enums[name] = block
            elif kind == "list":
                self.lists[words[0]] = block
            elif kind == "call":
                block.thing = api.functions.get(("NodeStore", name)) or api.function(name)
                self.calls[(block.thing.owner, block.thing.name)] = block

    # --- Names ------------------------------------------------------------------------------------

    def c_struct(self, name):
        block = self.structs.get(name)
        if block and "c" in block.options:
            return block.options["c"]
        return "waybill_" + snake(name.replace("::", ""))

    def go_type(self, name):
        block = self.structs.get(name) or self.enums.get(name)
        given = block.options.get("go") if block else None
        if given and given != "-":
            return given
        return camel(snake(name.replace("::", "")))

    def c_function(self, function):
        block = self.calls.get((function.owner, function.name))
        return block and block.options.get("c") or "waybill_" + snake(function.name)

    def c_enumerator(self, enum, value):
        block = self.enums.get(enum.name)
        if not block:
            return value.name
        suffix = block.options.get(value.name) or snake(value.name[1:]).upper()
        return block.positional[0] + suffix

    def go_enumerator(self, enum, value):
        block = self.enums.get(enum.name)
        if not block:
            return value.name
        if given := block.options.get("go." + value.name):
            return given
        if prefix := block.options.get("goprefix"):
            return prefix + camel(snake(value.name[1:]))
        return camel(self.c_enumerator(enum, value)[len("WAYBILL_"):])

    def members(self, block):
        skipped = block.listed("skip")
        return [m for m in block.thing.members if m.name not in skipped]

    # --- Kinds of members -------------------------------------------------------------------------

    def kind(self, type_):
        """(kind, what it is of): scalar, text, path, enum, struct, list, optional, array."""
        for word in ("vector", "optional"):
            if m := re.fullmatch(rf"std::{word}<(.*)>", type_):
                return {"vector": "list"}.get(word, word), m[1]
        if m := re.fullmatch(r"std::array<(.*), (\w+)>", type_):
            inner, count = m[1], m[2]
            count = self.api.constants.get(count, count)
            return "array", (inner, count)
        if type_ == "EnsureImageRequests":
            return "array", ("std::uint64_t", "3][3][3")
        if type_ in SCALARS:
            return "scalar", type_
        if type_ in ("std::string", "std::string_view"):
            return "text", type_
        if type_ == "std::filesystem::path":
            return "path", type_
        if type_ in self.api.enums:
            return "enum", type_
        if m := re.fullmatch(r"std::chrono::(\w+)", type_):
            return "duration", m[1]
        return "struct", type_

    def count_name(self, member):
        name = member.name
        return (name[:-1] if name.endswith("s") and not name.endswith("ss") else name) + "_count"


SCALARS = {  # C++: C, Go
    "bool": ("bool", "bool"), "double": ("double", "float64"), "unsigned": ("uint32_t", "uint32"),
    "std::uint64_t": ("uint64_t", "uint64"), "std::int64_t": ("int64_t", "int64"),
    "std::uint32_t": ("uint32_t", "uint32"), "std::int32_t": ("int32_t", "int32"),
    "std::uint16_t": ("uint16_t", "uint16"), "std::uint8_t": ("uint8_t", "uint8"),
    "std::size_t": ("uint64_t", "uint64"), "PullId": ("waybill_pull_id", "PullID")}
