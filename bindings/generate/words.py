"""Puts the words of C++ comments into those of another language."""
import re

# What a comment of C++ says that is true there only.
DROPPED = [r" ?\(store/README\.md, [^)]*\)", r" ?\((?:see )?waybill/\w+\.h\)", r",? (?:in|of) (?:waybill/)?\w+\.h\b"]


# What a bound counts, where its number alone would not say.
COUNTED = {"kMaxJsonDepth": "levels of nesting", "kMaxManifestsPerIndex": "manifests",
           "kMaxListedImages": "images", "kMaxKeptAside": "are kept",
           "kMaxRuntimeHandlers": "handlers", "kMaxAllowlistPatterns": "patterns"}


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def camel_words(name):
    return snake(name).split("_")


def number(api, name):
    """The value of a constant, as people write it. None: it is not a number."""
    value = api.constants[name]
    if name == "kMinAge":
        return "1 minute"
    if m := re.fullmatch(r"std::chrono::hours\(24 \* (\d+)\)", value):
        days = int(m[1])
        return f"{days // 365} years" if days >= 365 else f"{days} days"
    value = re.sub(r"std::\w+\{(\d+)\}", r"\1", value).replace("'", "")
    if not re.fullmatch(r"\d+( << \d+)?", value):
        return None
    count = eval(value)  # digits and a shift
    for unit, bits in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if "<<" in value and count % (1 << bits) == 0 and count >> bits:
            return f"{count >> bits} {unit}"
    shown = f"{count:,}" if count >= 1000 else str(count)
    counted = COUNTED.get(name, "bytes" if name.endswith("Bytes") else "")
    return f"{shown} {counted}".rstrip()


class Words:
    """A language: what things of C++ are called in it."""

    null = "nullopt"

    def __init__(self, api):
        self.api = api
        self.enumerators = {}
        for enum in api.enums.values():
            for value in enum.values:
                self.enumerators.setdefault(value.name, []).append((enum, value))
        # One word in a comment may be an English one.
        self.several_words = {
            name for name in [*api.structs, *api.enums, *(n for _, n in api.functions)]
            if len(camel_words(name)) > 1 and name[0].isupper()
        }

    def struct(self, name):
        raise NotImplementedError

    def enum(self, name):
        raise NotImplementedError

    def member(self, name):
        raise NotImplementedError

    def member_of(self, struct, name):
        raise NotImplementedError

    def enumerator(self, enum, value):
        raise NotImplementedError

    def function(self, owner, name):
        raise NotImplementedError

    def quoted(self, name):
        """A name between back-ticks."""
        raise NotImplementedError

    def named_constant(self, name):
        raise NotImplementedError

    def text(self, comment, enum=None, null=None):
        """`comment` (lines, or a text) in this language. `enum`: the one that it is about."""
        text = comment if isinstance(comment, str) else "\n".join(comment)
        for pattern in DROPPED:
            text = re.sub(pattern, "", text)
        text = re.sub(r"(\w+)::~?(\w+)", lambda m: self.qualified(m[0], m[1], m[2]), text)
        text = re.sub(r"(?<![\w.])k[A-Z]\w+", lambda m: self.constant(m[0], enum), text)
        text = re.sub(r"\b(bytes|images|handlers)( |\n)\1\b", r"\1", text)
        text = re.sub(r"\bnullopt\b", null or self.null, text)
        text = re.sub(r"(?<![\w.\[])[A-Z][a-z]\w*[A-Z]\w*", lambda m: self.known(m[0]), text)
        text = re.sub(r"\(([A-Z][a-z]+)\)", lambda m: f"({self.known(m[1], True)})", text)
        return re.sub(r"`([\w.]+)`", lambda m: self.quoted(m[1]), text)

    def qualified(self, whole, owner, name):
        if owner in self.api.enums:
            enum = self.api.enums[owner]
            value = next((v for v in enum.values if v.name == name), None)
            return self.enumerator(enum, value) if value else whole
        if (owner, name) in self.api.functions:
            return self.function(owner, name)
        if owner in self.api.structs and self.api.structs[owner].member(name):
            return self.member_of(owner, name)
        return whole

    def constant(self, name, enum):
        if name in self.api.constants:
            return number(self.api, name) or self.named_constant(name)
        found = self.enumerators.get(name, [])
        for owner in (enum, self.api.enums["ErrorCode"]):
            for e, value in found:
                if owner is not None and e is owner:
                    return self.enumerator(e, value)
        return self.enumerator(*found[0]) if len(found) == 1 else name

    def known(self, name, one_word=False):
        if not one_word and name not in self.several_words:
            return name
        for owner in ("NodeStore", "StreamingStore", ""):
            if (owner, name) in self.api.functions:
                return self.function(owner, name)
        if name in self.api.structs:
            return self.struct(name)
        return self.enum(name) if name in self.api.enums else name
