"""Who got in, as Markdown."""

from node import KINDS


def _cell(outcome):
    if outcome is None:
        return "–"
    text = "in" if outcome.got else "out"
    if outcome.got == outcome.ought:
        return text
    return f"**{text}: wrong open**" if outcome.got else f"**{text}: wrong close**"


def _row(*cells):
    return "| " + " | ".join(cells) + " |"


def render(played):
    """played: [(title of the scene, {kind: [Outcome] or None if it failed})]."""
    kinds = [k for k in KINDS if any(k in results for _, results in played)]
    lines = [_row("who asks", "ought to be", *(KINDS[k] for k in kinds)),
             _row(*["---"] * (2 + len(kinds)))]
    opened, closed = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0)
    asked = 0
    for title, results in played:
        lines.append(_row(f"**{title}**", "", *("scene failed" if results.get(k) is None else "" for k in kinds)))
        rows = {}  # text: {kind: Outcome}, in the order of the scene
        for kind in kinds:
            for outcome in results.get(kind) or []:
                rows.setdefault(outcome.text, {})[kind] = outcome
        for text, outcomes in rows.items():
            ought = next(iter(outcomes.values())).ought
            asked += 1
            lines.append(_row(text, "in" if ought else "out", *(_cell(outcomes.get(k)) for k in kinds)))
            for kind, outcome in outcomes.items():
                opened[kind] += outcome.got and not outcome.ought
                closed[kind] += outcome.ought and not outcome.got
    lines.append(_row(f"**of {asked}: wrong opens, wrong closes**", "", *(f"**{opened[k]}, {closed[k]}**" for k in kinds)))
    return "\n".join(lines)
